//! Custom gradients and gradient checkpointing.

use taut_autodiff::{
    DenseGradient, GradientRule, GradientTape, Variable, checkpoint, custom_gradient, recompute_grad,
};
use taut_core::ops::binary::{add, div, mul};
use taut_core::ops::random::{set_seed, uniform};
use taut_core::ops::unary::relu;
use taut_core::{DType, Gradient, Result, Tensor};
use taut_memory::testing::ledger_check;
use taut_testing::{values, vector};

/// x * y and x / y, with a rule that saves x and y. `scale` multiplies the gradient of x, to show that the rule is used.
fn product_and_quotient(x: &Tensor, y: &Tensor, scale: f64) -> Result<Vec<Tensor>> {
    custom_gradient([x, y], |inputs| {
        let (x, y) = (&inputs[0], &inputs[1]);
        let outputs = vec![mul(x, y)?, div(x, y)?];
        Ok(GradientRule::new(outputs, vec![x.clone(), y.clone()], move |saved, gradients| {
            let (x, y) = (&saved[0], &saved[1]);
            let dx = add(mul(&gradients[0], y)?, div(&gradients[1], y)?)?;
            let quotient = div(mul(&gradients[1], x)?, mul(y, y)?)?;
            let dy = taut_core::ops::binary::sub(mul(&gradients[0], x)?, quotient)?;
            Ok(vec![Some(mul(dx, scale)?.into()), Some(dy.into())])
        }))
    })
}

#[test]
fn a_custom_gradient_is_used_and_saves_what_it_declares() {
    let _ledger = ledger_check();
    let (x, y) = (vector(&[3.0, 4.0]), vector(&[2.0, 5.0]));
    let tape = GradientTape::new();
    tape.watch(&(&x, &y));
    let both = product_and_quotient(&x, &y, 10.0).unwrap();
    assert_eq!((tape.num_entries(), tape.bytes_held()), (1, 32));
    let (dx, dy) = tape.gradient(&both[0], &(&x, &y)).unwrap();
    assert_eq!(values(&dx.dense().unwrap()), [20.0, 50.0]);
    assert_eq!(values(&dy.dense().unwrap()), [3.0, 4.0]);
}

#[test]
fn a_custom_gradient_has_a_second_order() {
    let _ledger = ledger_check();
    let (x, y) = (vector(&[3.0]), vector(&[2.0]));
    let plain = |x: &Tensor, y: &Tensor| Ok::<_, taut_core::Error>(vec![mul(x, y)?, div(x, y)?]);
    let second = |f: &dyn Fn(&Tensor, &Tensor) -> Result<Vec<Tensor>>| {
        let outer = GradientTape::new();
        outer.watch(&(&x, &y));
        let inner = GradientTape::new();
        inner.watch(&(&x, &y));
        let both = f(&x, &y).unwrap();
        let dy = inner.gradient(&both, &y).unwrap().dense().unwrap();
        let (dxy, dyy) = outer.gradient(&dy, &(&x, &y)).unwrap();
        (values(&dxy.dense().unwrap()), values(&dyy.dense().unwrap()))
    };
    let custom = second(&|x, y| product_and_quotient(x, y, 1.0));
    assert_eq!(custom, second(&plain));
    assert_eq!(custom, (vec![1.0 - 0.25], vec![2.0 * 3.0 / 8.0]));
}

/// Saved values may be computed inside the function: an outer tape records how.
#[test]
fn saved_values_are_recorded_for_the_second_order() {
    let _ledger = ledger_check();
    let x = vector(&[2.0]);
    let cube = |x: &Tensor| {
        custom_gradient([x], |inputs| {
            let square = mul(&inputs[0], &inputs[0])?;
            let y = mul(&square, &inputs[0])?;
            let slope = mul(square, 3.0)?;
            Ok(GradientRule::new(vec![y], vec![slope], |saved, g| {
                Ok(vec![Some(mul(&g[0], &saved[0])?.into())])
            }))
        })
    };
    for persistent in [false, true] {
        let outer = GradientTape::persistent();
        outer.watch(&x);
        let dy = if persistent {
            let y = cube(&x).unwrap();
            outer.gradient(&y, &x).unwrap().dense().unwrap()
        } else {
            let inner = GradientTape::new();
            inner.watch(&x);
            let y = cube(&x).unwrap();
            inner.gradient(&y, &x).unwrap().dense().unwrap()
        };
        assert_eq!(values(&dy), [12.0]);
        assert_eq!(values(&outer.gradient(&dy, &x).unwrap().dense().unwrap()), [12.0]);
    }
}

#[test]
fn a_wrong_custom_gradient_is_refused() {
    let _ledger = ledger_check();
    let x = vector(&[2.0, 3.0]);
    let refused = |found: fn() -> Vec<Option<Gradient>>| {
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = custom_gradient([&x], |i| {
            Ok(GradientRule::new(vec![mul(&i[0], 2.0)?], vec![], move |_, _| Ok(found())))
        });
        tape.gradient(&y.unwrap(), &x).unwrap_err()
    };
    let few = refused(Vec::new);
    assert!(few.message().contains("a gradient per input, for 1 inputs, got 0"), "{few}");
    let shape = refused(|| vec![Some(vector(&[1.0]).into())]);
    assert!(shape.message().contains("its input's spec float64[2], got float64[1]"), "{shape}");
    assert_eq!(shape.location().unwrap().file(), file!());
}

/// Dropout by hand: random numbers, a mask.
fn noisy(x: &Tensor) -> Result<Tensor> {
    let noise = uniform(x.shape().clone(), 0.0, 1.0, DType::F64)?;
    mul(relu(mul(x, x)?)?, noise)
}

#[test]
fn checkpointed_gradients_have_the_same_bits_and_save_only_inputs() {
    let _ledger = ledger_check();
    let x = vector(&[1.5, -2.0, 0.3, 4.0]);
    let w = Variable::new(vector(&[0.5, 0.25, 2.0, 1.0])).unwrap();
    let captured = vector(&[1.0, 2.0, 3.0, 4.0]);
    let run = |recompute: bool| {
        set_seed(7);
        let tape = GradientTape::new();
        tape.watch(&(&x, &captured));
        let inside = mul(&captured, 2.0).unwrap();
        let block = {
            let (w, inside) = (w.clone(), inside.clone());
            move |i: &[Tensor]| Ok(vec![mul(noisy(&mul(&i[0], &w)?)?, &inside)?])
        };
        let nested = recompute_grad(block.clone());
        let y = if recompute {
            checkpoint([&x], move |i| nested.call(nested.call(i)?)).unwrap()
        } else {
            block(&block(std::slice::from_ref(&x)).unwrap()).unwrap()
        };
        let held = tape.bytes_held();
        let (dx, dw, dc) = tape.gradient(&y, &(&x, &w, &captured)).unwrap();
        let next = uniform([1], 0.0, 1.0, DType::F64).unwrap();
        let found = [dx, dw, dc].map(|g| values(&g.dense().unwrap()));
        (found, values(&y[0]), values(&next), held)
    };
    let (plain, again) = (run(false), run(true));
    assert_eq!((plain.0, plain.1, plain.2), (again.0, again.1, again.2));
    // The argument, the captured tensor, and the scalar of the product before it.
    assert_eq!(again.3, 2 * 32 + 8);
    assert!(plain.3 > again.3);
}

#[test]
fn checkpointed_gradients_have_a_second_order() {
    let _ledger = ledger_check();
    let x = vector(&[2.0]);
    let outer = GradientTape::new();
    outer.watch(&x);
    let inner = GradientTape::new();
    inner.watch(&x);
    let y = checkpoint([&x], |i| Ok(vec![mul(mul(&i[0], &i[0])?, &i[0])?])).unwrap();
    let dy = inner.gradient(&y, &x).unwrap().dense().unwrap();
    assert_eq!(values(&outer.gradient(&dy, &x).unwrap().dense().unwrap()), [12.0]);
}
