//! Traced functions under tapes.

use std::sync::Arc;
use taut_autodiff::{DenseGradient, Gradient, GradientTape, Variable, hvp, jvp};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::contract::matmul;
use taut_core::ops::index::gather;
use taut_core::ops::random::Generator;
use taut_core::ops::reduce::{mean, sum};
use taut_core::ops::shape::transpose;
use taut_core::ops::unary::{exp, relu, sin, square, tanh};
use taut_core::{DType, Result, Tensor};
use taut_function::function;
use taut_memory::testing::ledger_check;

fn random(shape: &[usize], seed: u64) -> Tensor {
    Generator::from_seed(seed).normal(shape, 0.0, 1.0, DType::F64).unwrap()
}

fn close(a: &Tensor, b: &Tensor) {
    let (a, b) = (a.to_vec::<f64>().unwrap(), b.to_vec::<f64>().unwrap());
    assert_eq!(a.len(), b.len());
    assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs().max(1.0)), "{a:?}\n{b:?}");
}

#[test]
fn a_call_is_one_tape_entry_with_the_eager_gradient() {
    let _ledger = ledger_check();
    let w = Variable::new(random(&[5, 4], 1)).unwrap();
    let constant = Variable::builder().trainable(false).build(random(&[4], 2)).unwrap();
    let body = {
        let (w, constant) = (w.clone(), constant.clone());
        move |x: &Tensor| mean(square(relu(add(matmul(tanh(x)?, &w)?, &constant)?)?)?, None, false)
    };
    let f = function(body.clone());
    let x = random(&[3, 5], 3);
    let eager = {
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = body(&x).unwrap();
        tape.gradient(&y, &(&x, &w)).unwrap()
    };
    for _ in 0..2 {
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = f.call(&x).unwrap();
        close(&y, &body(&x).unwrap());
        assert_eq!(tape.num_entries(), 1);
        let (dx, dw) = tape.gradient(&y, &(&x, &w)).unwrap();
        close(&dx.dense().unwrap(), &eager.0.clone().dense().unwrap());
        close(&dw.dense().unwrap(), &eager.1.clone().dense().unwrap());
    }
    assert_eq!(f.trace_count(), 1);
}

#[test]
fn only_what_the_gradient_needs_is_saved() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| exp(tanh(sin(x)?)?));
    let x = random(&[100], 3);
    let eager = {
        let tape = GradientTape::new();
        tape.watch(&x);
        let _y = exp(tanh(sin(&x).unwrap()).unwrap()).unwrap();
        tape.bytes_held()
    };
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = f.call(&x).unwrap();
    assert_eq!((tape.bytes_held(), eager), (2400, 2400), "x, the output of tanh, the output of exp");
    drop(y);
    let unwatched = f.call(&random(&[100], 4)).unwrap();
    assert_eq!(tape.bytes_held(), 0, "no output is alive, and nothing is tracked");
    drop(unwatched);
}

#[test]
fn functions_and_eager_ops_mix_on_a_tape() {
    let _ledger = ledger_check();
    let f = function(|(a, b): &(Tensor, Tensor)| Ok((matmul(a, transpose(b, None)?)?, mul(a, 2.0)?)));
    let (a, b) = (random(&[3, 4], 1), random(&[2, 4], 2));
    let compute = |traced: bool| -> Result<_> {
        let tape = GradientTape::new();
        tape.watch(&(&a, &b));
        let start = square(&a)?;
        let (product, double) = if traced {
            f.call((&start, &b))?
        } else {
            (matmul(&start, transpose(&b, None)?)?, mul(&start, 2.0)?)
        };
        let loss = add(sum(exp(mul(product, 0.1)?)?, None, false)?, sum(square(double)?, None, false)?)?;
        tape.gradient(&loss, &(&a, &b))
    };
    let ((a1, b1), (a2, b2)) = (compute(true).unwrap(), compute(false).unwrap());
    close(&a1.dense().unwrap(), &a2.dense().unwrap());
    close(&b1.dense().unwrap(), &b2.dense().unwrap());
}

#[test]
fn an_unused_output_has_a_zero_gradient() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| Ok((square(x)?, exp(x)?)));
    let x = random(&[4], 1);
    let tape = GradientTape::new();
    tape.watch(&x);
    let (y, _unused) = f.call(&x).unwrap();
    close(&tape.gradient(&y, &x).unwrap().dense().unwrap(), &mul(&x, 2.0).unwrap());
}

#[test]
fn second_derivatives() {
    let _ledger = ledger_check();
    let f = Arc::new(function(|x: &Tensor| sum(mul(sin(x)?, exp(x)?)?, None, false)));
    let x = random(&[4], 1);
    let want: Vec<f64> = x.to_vec::<f64>().unwrap().iter().map(|x| 2.0 * x.exp() * x.cos()).collect();
    let want = Tensor::from_vec(want, [4]).unwrap();
    let outer = GradientTape::new();
    outer.watch(&x);
    let inner = GradientTape::new();
    inner.watch(&x);
    let y = f.call(&x).unwrap();
    let first = inner.gradient(&y, &x).unwrap().dense().unwrap();
    close(&outer.gradient(&first, &x).unwrap().dense().unwrap(), &want);

    let persistent = GradientTape::persistent();
    persistent.watch(&x);
    let y = f.call(&x).unwrap();
    let first = persistent.gradient(&y, &x).unwrap().dense().unwrap();
    close(&persistent.gradient(&first, &x).unwrap().dense().unwrap(), &want);

    let ones = Tensor::from_vec(vec![1.0f64; 4], [4]).unwrap();
    let g = f.clone();
    let along = hvp(|x| g.call(x), &x, &ones).unwrap();
    close(&along, &want);
}

#[test]
fn forward_mode() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| mul(sin(x)?, exp(x)?));
    let (x, v) = (random(&[4], 1), random(&[4], 2));
    let (y, tangent) = jvp(|x: &[Tensor]| Ok(vec![f.call(&x[0])?]), [&x], [&v]).unwrap();
    let (want_y, want) = jvp(|x: &[Tensor]| Ok(vec![mul(sin(&x[0])?, exp(&x[0])?)?]), [&x], [&v]).unwrap();
    close(&y[0], &want_y[0]);
    close(&tangent[0], &want[0]);
}

#[test]
fn sparse_gradients_of_a_table_stay_sparse() {
    let _ledger = ledger_check();
    let table = Variable::new(random(&[1000, 3], 1)).unwrap();
    let inside = table.clone();
    let f = function(move |ids: &Tensor| sum(square(gather(&inside, ids, 0, 0)?)?, None, false));
    let ids = Tensor::from_slice(&[3i64, 7, 3], [3]).unwrap();
    let tape = GradientTape::new();
    let y = f.call(&ids).unwrap();
    let gradient = tape.gradient(&y, &table).unwrap().unwrap();
    let Gradient::Sparse(slices) = &gradient else { panic!("dense") };
    assert_eq!(slices.values.shape(), &[3, 3]);
    let want = mul(gather(&table, &ids, 0, 0).unwrap(), 2.0).unwrap();
    close(&slices.values, &want);
}

#[test]
fn a_gradient_inside_a_function_and_one_around_it() {
    let _ledger = ledger_check();
    let slope = function(|x: &Tensor| {
        let tape = GradientTape::new();
        tape.watch(x);
        let y = sum(mul(square(x)?, x)?, None, false)?;
        tape.gradient(&y, x)?.dense()
    });
    let x = random(&[4], 1);
    close(&slope.call(&x).unwrap(), &mul(square(&x).unwrap(), 3.0).unwrap());
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = slope.call(&x).unwrap();
    close(&tape.gradient(&y, &x).unwrap().dense().unwrap(), &mul(&x, 6.0).unwrap());
}

#[test]
fn variables_that_a_call_updates_are_differentiated_at_their_old_value() {
    let _ledger = ledger_check();
    let w = Variable::new(random(&[4], 1)).unwrap();
    let before = w.read().copy().unwrap();
    let inside = w.clone();
    let f = function(move |x: &Tensor| {
        let y = sum(mul(square(&inside)?, x)?, None, false)?;
        inside.assign_add(x)?;
        Ok(y)
    });
    let x = random(&[4], 2);
    let tape = GradientTape::new();
    let y = f.call(&x).unwrap();
    let gradient = tape.gradient(&y, &w).unwrap().dense().unwrap();
    close(&gradient, &mul(mul(&before, &x).unwrap(), 2.0).unwrap());
    close(&w.read(), &add(&before, &x).unwrap());
}

#[test]
fn a_captured_tensor_that_is_watched_has_its_gradient() {
    let _ledger = ledger_check();
    let (x, y) = (random(&[3], 1), random(&[3], 2));
    let inside = x.clone();
    let f = function(move |y: &Tensor| sum(mul(y, square(&inside)?)?, None, false));
    f.call(&y).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x);
    let z = f.call(&y).unwrap();
    close(&tape.gradient(&z, &x).unwrap().dense().unwrap(), &mul(mul(&x, &y).unwrap(), 2.0).unwrap());
}

#[test]
fn donated_arguments_cannot_be_tracked_but_variables_can() {
    let _ledger = ledger_check();
    let w = Variable::new(random(&[3], 1)).unwrap();
    let inside = w.clone();
    let f = function(move |x: &Tensor| sum(mul(x, &inside)?, None, false));
    let x = random(&[3], 2);
    let want = x.copy().unwrap();
    let tape = GradientTape::new();
    let y = f.call_donated(x).unwrap();
    close(&tape.gradient(&y, &w).unwrap().dense().unwrap(), &want);
    let tape = GradientTape::new();
    tape.watch(&want);
    let error = f.call_donated(want).unwrap_err();
    assert!(error.to_string().contains("cannot be donated"), "{error}");
}

#[test]
fn plans_of_forward_and_backward_are_known() {
    let _ledger = ledger_check();
    let f = function(|x: &Tensor| exp(tanh(sin(x)?)?));
    let x = random(&[100], 3);
    let (forward, backward) = f.plan_gradient(&x).unwrap();
    assert_eq!(forward.peak_bytes(), 2400 - 800, "the outputs of tanh and exp; x is the caller's");
    assert_eq!(backward.peak_bytes(), 0, "the gradient overwrites the residuals");
}
