//! Custom gradients, recomputation, forward mode, jacobians, gradients inside a trace, sparse gradients, checks.

use taut_autodiff::{
    Dense, ForwardAccumulator, GradientTape, IndexedSlices, Rule, Variable, checkpoint, custom_gradient,
    disable_check_numerics, enable_check_numerics, gradient_graph, gradients, hvp, jvp, recompute_grad,
};
use taut_core::ops::binary::{add, div, mul};
use taut_core::ops::contract::matmul;
use taut_core::ops::creation::{ones, zeros};
use taut_core::ops::random::{set_seed, uniform};
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::{broadcast_to, reshape};
use taut_core::ops::unary::{check_numerics, relu};
use taut_core::{DType, ErrorKind, Gradient, Result, Spec, Tensor, trace};
use taut_memory::testing::ledger_check;

fn numbers(values: &[f64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap()
}

fn list(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().unwrap()
}

/// x * y and x / y, with a rule that keeps x and y; `scale` makes it wrong on purpose, to see that it is used.
fn product_and_quotient(x: &Tensor, y: &Tensor, scale: f64) -> Result<Vec<Tensor>> {
    custom_gradient(&[x.clone(), y.clone()], |inputs| {
        let (x, y) = (&inputs[0], &inputs[1]);
        let outputs = vec![mul(x, y)?, div(x, y)?];
        Ok(Rule::new(outputs, vec![x.clone(), y.clone()], move |saved, gradients| {
            let (x, y) = (&saved[0], &saved[1]);
            let dx = add(mul(&gradients[0], y)?, div(&gradients[1], y)?)?;
            let quotient = div(mul(&gradients[1], x)?, mul(y, y)?)?;
            let dy = taut_core::ops::binary::sub(mul(&gradients[0], x)?, quotient)?;
            Ok(vec![Some(mul(dx, scale)?.into()), Some(dy.into())])
        }))
    })
}

#[test]
fn a_custom_gradient_is_used_and_keeps_what_it_says() {
    let _ledger = ledger_check();
    let (x, y) = (numbers(&[3.0, 4.0]), numbers(&[2.0, 5.0]));
    let tape = GradientTape::new();
    tape.watch(&(&x, &y));
    let both = product_and_quotient(&x, &y, 10.0).unwrap();
    assert_eq!((tape.num_entries(), tape.bytes_held()), (1, 32));
    let (dx, dy) = tape.gradient(&both[0], &(&x, &y)).unwrap();
    assert_eq!(list(&dx.dense().unwrap()), [20.0, 50.0]);
    assert_eq!(list(&dy.dense().unwrap()), [3.0, 4.0]);
}

#[test]
fn a_custom_gradient_has_a_second_order() {
    let _ledger = ledger_check();
    let (x, y) = (numbers(&[3.0]), numbers(&[2.0]));
    let plain = |x: &Tensor, y: &Tensor| Ok::<_, taut_core::Error>(vec![mul(x, y)?, div(x, y)?]);
    let second = |f: &dyn Fn(&Tensor, &Tensor) -> Result<Vec<Tensor>>| {
        let outer = GradientTape::new();
        outer.watch(&(&x, &y));
        let inner = GradientTape::new();
        inner.watch(&(&x, &y));
        let both = f(&x, &y).unwrap();
        let dy = inner.gradient(&both, &y).unwrap().dense().unwrap();
        let (dxy, dyy) = outer.gradient(&dy, &(&x, &y)).unwrap();
        (list(&dxy.dense().unwrap()), list(&dyy.dense().unwrap()))
    };
    let custom = second(&|x, y| product_and_quotient(x, y, 1.0));
    assert_eq!(custom, second(&plain));
    assert_eq!(custom, (vec![1.0 - 0.25], vec![2.0 * 3.0 / 8.0]));
}

/// What the rule saves may be computed inside: its gradient is followed where somebody asks for it.
#[test]
fn saved_values_are_followed_for_the_second_order() {
    let _ledger = ledger_check();
    let x = numbers(&[2.0]);
    let cube = |x: &Tensor| {
        custom_gradient(&[x.clone()], |inputs| {
            let square = mul(&inputs[0], &inputs[0])?;
            let y = mul(&square, &inputs[0])?;
            let slope = mul(square, 3.0)?;
            Ok(Rule::new(vec![y], vec![slope], |saved, g| Ok(vec![Some(mul(&g[0], &saved[0])?.into())])))
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
        assert_eq!(list(&dy), [12.0]);
        assert_eq!(list(&outer.gradient(&dy, &x).unwrap().dense().unwrap()), [12.0]);
    }
}

#[test]
fn a_wrong_custom_gradient_is_refused() {
    let _ledger = ledger_check();
    let x = numbers(&[2.0, 3.0]);
    let ask = |found: fn() -> Vec<Option<Gradient>>| {
        let tape = GradientTape::new();
        tape.watch(&x);
        let y = custom_gradient(&[x.clone()], |i| Ok(Rule::new(vec![mul(&i[0], 2.0)?], vec![], move |_, _| Ok(found()))));
        tape.gradient(&y.unwrap(), &x).unwrap_err()
    };
    let few = ask(Vec::new);
    assert!(few.message().contains("0 gradients for 1 inputs"), "{few}");
    let shape = ask(|| vec![Some(numbers(&[1.0]).into())]);
    assert!(shape.message().contains("returned float64[1] for an input float64[2]"), "{shape}");
    assert!(shape.location().unwrap().file().ends_with("more.rs"));
}

/// Dropout by hand: random numbers, a mask.
fn noisy(x: &Tensor) -> Result<Tensor> {
    let noise = uniform(x.shape().clone(), 0.0, 1.0, DType::F64)?;
    mul(relu(mul(x, x)?)?, noise)
}

#[test]
fn recomputed_gradients_are_the_same_bits_and_keep_only_inputs() {
    let _ledger = ledger_check();
    let x = numbers(&[1.5, -2.0, 0.3, 4.0]);
    let w = Variable::new(numbers(&[0.5, 0.25, 2.0, 1.0])).unwrap();
    let captured = numbers(&[1.0, 2.0, 3.0, 4.0]);
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
            checkpoint(&[x.clone()], move |i| nested(&nested(i)?)).unwrap()
        } else {
            block(&block(std::slice::from_ref(&x)).unwrap()).unwrap()
        };
        let held = tape.bytes_held();
        let (dx, dw, dc) = tape.gradient(&y, &(&x, &w, &captured)).unwrap();
        let next = uniform([1], 0.0, 1.0, DType::F64).unwrap();
        let found = [dx, dw, dc].map(|g| list(&g.dense().unwrap()));
        (found, list(&y[0]), list(&next), held)
    };
    let (plain, again) = (run(false), run(true));
    assert_eq!((plain.0, plain.1, plain.2), (again.0, again.1, again.2));
    // The argument and what was captured; a scalar of the product before it.
    assert_eq!(again.3, 2 * 32 + 8);
    assert!(plain.3 > again.3);
}

#[test]
fn recomputed_gradients_have_a_second_order() {
    let _ledger = ledger_check();
    let x = numbers(&[2.0]);
    let outer = GradientTape::new();
    outer.watch(&x);
    let inner = GradientTape::new();
    inner.watch(&x);
    let y = checkpoint(&[x.clone()], |i| Ok(vec![mul(mul(&i[0], &i[0])?, &i[0])?])).unwrap();
    let dy = inner.gradient(&y, &x).unwrap().dense().unwrap();
    assert_eq!(list(&outer.gradient(&dy, &x).unwrap().dense().unwrap()), [12.0]);
}

#[test]
fn forward_mode_agrees_with_backward_mode() {
    let _ledger = ledger_check();
    let (x, v) = (numbers(&[1.0, 2.0, -3.0]), numbers(&[0.5, -1.0, 2.0]));
    let f = |x: &Tensor| div(mul(x, x)?, add(relu(x)?, 1.0)?);
    let (values, along) = jvp(|p| Ok(vec![f(&p[0])?]), &[x.clone()], &[v.clone()]).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = f(&x).unwrap();
    assert_eq!(list(&values[0]), list(&y));
    let jacobian = tape.jacobian(&y, &x).unwrap().unwrap();
    let product = matmul(&jacobian, &v).unwrap();
    for (a, b) in list(&along[0]).iter().zip(list(&product)) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
    let w = Variable::new(numbers(&[2.0])).unwrap();
    let forward = ForwardAccumulator::new(&w, &numbers(&[1.0])).unwrap();
    let z = mul(&w, mul(&w, &w).unwrap()).unwrap();
    assert_eq!(list(&forward.jvp(&z).unwrap()), [12.0]);
    assert!(forward.jvp(&v).is_none());
    assert!(ForwardAccumulator::new(&x, &numbers(&[1.0])).is_err());
}

#[test]
fn hessian_vector_products_in_both_orders() {
    let _ledger = ledger_check();
    let (x, v) = (numbers(&[1.0, 2.0]), numbers(&[1.0, 0.5]));
    let f = |x: &Tensor| sum(mul(mul(x, x)?, mul(x, sum(x, None, false)?)?)?, None, false);
    let product = hvp(f, &x, &v).unwrap();
    // Backward over backward.
    let outer = GradientTape::new();
    outer.watch(&x);
    let inner = GradientTape::new();
    inner.watch(&x);
    let y = f(&x).unwrap();
    let dy = inner.gradient(&y, &x).unwrap().dense().unwrap();
    let along = sum(mul(dy, &v).unwrap(), None, false).unwrap();
    let expected = outer.gradient(&along, &x).unwrap().dense().unwrap();
    assert_eq!(list(&product), list(&expected));
    // Backward over forward: a tape around the accumulator follows the tangents.
    let tape = GradientTape::new();
    tape.watch(&x);
    let forward = ForwardAccumulator::new(&x, &v).unwrap();
    let along = forward.jvp(&f(&x).unwrap()).unwrap();
    drop(forward);
    assert_eq!(list(&tape.gradient(&along, &x).unwrap().dense().unwrap()), list(&expected));
}

#[test]
fn jacobians_have_the_shapes_of_target_and_source() {
    let _ledger = ledger_check();
    let x = Tensor::from_slice(&[1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]).unwrap();
    let w = Tensor::from_slice(&[1.0f64, -1.0, 2.0, 0.5], [2, 2]).unwrap();
    let unused = numbers(&[1.0]);
    let tape = GradientTape::persistent();
    tape.watch(&(&x, &w, &unused));
    let y = matmul(&x, &w).unwrap();
    let (dx, dw, none) = tape.jacobian(&y, &(&x, &w, &unused)).unwrap();
    assert_eq!((dx.unwrap().shape(), dw.unwrap().shape()), (&[3, 2, 3, 2].into(), &[3, 2, 2, 2].into()));
    assert!(none.is_none());
    let batch = tape.batch_jacobian(&y, &x).unwrap().unwrap();
    assert_eq!(batch.shape(), &[3, 2, 2]);
    let transposed = [1.0, 2.0, -1.0, 0.5];
    assert_eq!(list(&reshape(&batch, &[-1]).unwrap()), transposed.repeat(3));
    let error = tape.batch_jacobian(&y, &w).unwrap_err();
    assert!(error.message().contains("batches of different size"), "{error}");
}

#[test]
fn gradients_inside_a_trace() {
    let _ledger = ledger_check();
    let specs = [Spec::new(DType::F64, [2]), Spec::new(DType::F64, [2])];
    let traced = trace(&specs, |inputs| {
        let y = relu(mul(&inputs[0], &inputs[0])?)?;
        let found = gradients(std::slice::from_ref(&y), inputs)?;
        assert!(found[1].is_none());
        Ok(vec![found.into_iter().next().unwrap().dense()?])
    })
    .unwrap();
    traced.graph.verify().unwrap();
    let x = numbers(&[3.0, -4.0]);
    assert_eq!(list(&traced.graph.run(&[x.clone(), x.clone()]).unwrap()[0]), [6.0, -8.0]);
    let error = gradients(std::slice::from_ref(&x), std::slice::from_ref(&x)).unwrap_err();
    assert!(error.to_string().contains("use a GradientTape"), "{error}");

    let forward = trace(&specs, |i| Ok(vec![mul(&i[0], &i[1])?])).unwrap().graph;
    let joint = gradient_graph(&forward, &[1]).unwrap();
    joint.verify().unwrap();
    let run = joint.run(&[numbers(&[1.0, 2.0]), numbers(&[5.0, 6.0])]).unwrap();
    assert_eq!((list(&run[0]), list(&run[1])), (vec![5.0, 12.0], vec![1.0, 2.0]));
    assert!(gradient_graph(&forward, &[2]).is_err());
}

#[test]
fn sparse_gradients_add_scale_and_clip_like_dense_ones() {
    let _ledger = ledger_check();
    let rows = Tensor::from_slice(&[1.0f64, -2.0, 3.0, 4.0, 5.0, -6.0], [3, 2]).unwrap();
    let slices = IndexedSlices::new(rows, Tensor::from_slice(&[4, 1, 4], [3]).unwrap(), [1000, 2]).unwrap();
    let dense = slices.to_dense().unwrap();
    assert_eq!(slices.bytes(), 3 * 16 + 3 * 4);
    let once = slices.coalesce().unwrap();
    assert_eq!(once.indices.to_vec::<i32>().unwrap(), [1, 4]);
    let (sparse, dense) = (Gradient::from(slices), Gradient::from(dense));
    type Change = fn(Gradient) -> Result<Gradient>;
    let changes: [Change; 4] = [
        |g| g.scale(0.5),
        |g| g.clip_by_value(-2.5, 3.5),
        |g| g.clip_by_norm(1.5),
        |g| Ok(Gradient::clip_by_global_norm(vec![Some(g), None], 2.0)?.0.swap_remove(0).unwrap()),
    ];
    for change in changes {
        let (a, b) = (change(sparse.clone()).unwrap(), change(dense.clone()).unwrap());
        assert!(matches!(a, Gradient::Sparse(_)) && a.bytes() < 100);
        assert_eq!(list(&a.dense().unwrap()), list(&b.dense().unwrap()));
    }
    let twice = sparse.clone().plus(sparse.clone()).unwrap();
    assert!(matches!(twice, Gradient::Sparse(_)));
    let mixed = sparse.clone().plus(dense.clone()).unwrap();
    assert_eq!(list(&twice.dense().unwrap()), list(&mixed.dense().unwrap()));
    assert!(sparse.clone().clip_by_value(1.0, 2.0).unwrap_err().message().contains("its zeros are outside"));
    assert!(sparse.clip_by_norm(0.0).is_err());
    let wrong = IndexedSlices::new(numbers(&[1.0]), Tensor::from_slice(&[0, 1], [2]).unwrap(), [4]);
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Shape);
}

#[test]
fn checks_name_the_op_and_the_line_forward_and_backward() {
    let _ledger = ledger_check();
    let (x, zero) = (numbers(&[1.0, 2.0]), numbers(&[1.0, 0.0]));
    let broken = div(&x, &zero).unwrap(); // quiet without a check
    assert_eq!(check_numerics(&broken, "the ratio").unwrap_err().kind(), ErrorKind::Numeric);
    enable_check_numerics();
    let forward = div(&x, &zero).unwrap_err();
    // 0 / 1 has a value; 0 / 1 / 1 its gradient too; a gradient of infinity does not.
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = mul(&x, 1e200).unwrap();
    let line = line!() - 1;
    let seed = broadcast_to(Tensor::scalar(1e200f64).unwrap(), [2]).unwrap();
    let request = taut_autodiff::Request { output_gradients: Some(vec![Some(seed)]), ..Default::default() };
    let backward = tape.gradient_with(&y, &x, request).unwrap_err();
    disable_check_numerics();
    assert_eq!((forward.op(), forward.kind()), (Some("div"), ErrorKind::Numeric));
    assert!(forward.message().contains("1 infinite"), "{forward}");
    assert!(forward.location().unwrap().file().ends_with("more.rs"));
    assert_eq!(backward.gradient_of(), Some("mul"));
    assert_eq!(backward.location().unwrap().line(), line, "{backward}");
    div(&x, &zero).unwrap();
}

#[test]
fn variables_are_updated_in_their_own_memory() {
    let _ledger = ledger_check();
    let v = Variable::builder().name("v").build(zeros([3, 2], DType::F32).unwrap()).unwrap();
    let address = v.address();
    v.assign(ones([3, 2], DType::F32).unwrap()).unwrap();
    v.assign_add(2.0).unwrap();
    v.assign_sub(ones([3, 2], DType::F32).unwrap()).unwrap();
    let rows = Tensor::from_slice(&[2, 0, 2], [3, 1]).unwrap();
    v.scatter_add(&rows, ones([3, 2], DType::F32).unwrap()).unwrap();
    assert_eq!(v.read().to_vec::<f32>().unwrap(), [3.0, 3.0, 2.0, 2.0, 4.0, 4.0]);
    v.scatter_mul(Tensor::from_slice(&[1], [1]).unwrap(), broadcast_to(Tensor::scalar(5.0f32).unwrap(), [2]).unwrap()).unwrap();
    assert_eq!(v.address(), address);

    // A training step: the tape's values are gone before the update.
    let tape = GradientTape::new();
    let loss = sum(mul(&v, &v).unwrap(), None, false).unwrap();
    let gradient = tape.gradient(&loss, &v).unwrap().dense().unwrap();
    v.assign_sub(mul(gradient, 0.5).unwrap()).unwrap();
    assert_eq!(v.address(), address);
    assert_eq!(v.read().to_vec::<f32>().unwrap(), [0.0; 6]);

    // Somebody holds the old value: it stays as it is.
    let held = v.read();
    v.assign_add(1.0).unwrap();
    assert_eq!(held.to_vec::<f32>().unwrap(), [0.0; 6]);
    assert_eq!(v.read().to_vec::<f32>().unwrap(), [1.0; 6]);

    // What cannot be is refused, and nothing changes.
    let address = v.address();
    let shape = v.assign(ones([2, 3], DType::F32).unwrap()).unwrap_err();
    assert_eq!(shape.kind(), ErrorKind::Shape);
    assert!(shape.to_string().contains("a variable `v` float32[3, 2] cannot take float32[2, 3]"), "{shape}");
    assert_eq!(v.assign_add(ones([3, 2], DType::F64).unwrap()).unwrap_err().kind(), ErrorKind::DType);
    let outside = Tensor::from_slice(&[0, 7], [2, 1]).unwrap();
    assert_eq!(v.scatter_add(&outside, ones([2, 2], DType::F32).unwrap()).unwrap_err().kind(), ErrorKind::Index);
    assert_eq!(v.address(), address);
    assert_eq!(v.read().to_vec::<f32>().unwrap(), [1.0; 6]);
}

#[test]
fn variables_are_shared_between_threads() {
    let _ledger = ledger_check();
    let v = Variable::new(zeros([1000], DType::I64).unwrap()).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    v.assign_add(1i64).unwrap();
                    let seen = v.value().to_vec::<i64>().unwrap();
                    assert!(seen.iter().all(|&s| s == seen[0]), "half an update");
                }
            });
        }
    });
    assert_eq!(v.value().to_vec::<i64>().unwrap(), [400; 1000]);
}
