//! Forward mode, Hessian-vector products and Jacobians.

use taut_autodiff::{DenseGradient, ForwardAccumulator, GradientTape, Variable, hvp, jvp};
use taut_core::Tensor;
use taut_core::ops::binary::{add, div, mul};
use taut_core::ops::contract::matmul;
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::reshape;
use taut_core::ops::unary::relu;
use taut_memory::testing::ledger_check;
use taut_testing::{values, vector};

#[test]
fn forward_mode_agrees_with_backward_mode() {
    let _ledger = ledger_check();
    let (x, v) = (vector(&[1.0, 2.0, -3.0]), vector(&[0.5, -1.0, 2.0]));
    let f = |x: &Tensor| div(mul(x, x)?, add(relu(x)?, 1.0)?);
    let (primals, along) = jvp(|p| Ok(vec![f(&p[0])?]), [&x], [&v]).unwrap();
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = f(&x).unwrap();
    assert_eq!(values(&primals[0]), values(&y));
    let jacobian = tape.jacobian(&y, &x).unwrap().unwrap();
    let product = matmul(&jacobian, &v).unwrap();
    for (a, b) in values(&along[0]).iter().zip(values(&product)) {
        assert!((a - b).abs() < 1e-12, "{a} {b}");
    }
    let w = Variable::new(vector(&[2.0])).unwrap();
    let forward = ForwardAccumulator::new(&w, &vector(&[1.0])).unwrap();
    let z = mul(&w, mul(&w, &w).unwrap()).unwrap();
    assert_eq!(values(&forward.jvp(&z).unwrap()), [12.0]);
    assert!(forward.jvp(&v).is_none());
    assert!(ForwardAccumulator::new(&x, &vector(&[1.0])).is_err());
}

#[test]
fn hessian_vector_products_in_both_orders() {
    let _ledger = ledger_check();
    let (x, v) = (vector(&[1.0, 2.0]), vector(&[1.0, 0.5]));
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
    assert_eq!(values(&product), values(&expected));
    // Backward over forward: a tape around the accumulator records the tangents.
    let tape = GradientTape::new();
    tape.watch(&x);
    let forward = ForwardAccumulator::new(&x, &v).unwrap();
    let along = forward.jvp(&f(&x).unwrap()).unwrap();
    drop(forward);
    assert_eq!(values(&tape.gradient(&along, &x).unwrap().dense().unwrap()), values(&expected));
}

#[test]
fn jacobians_have_the_shapes_of_target_and_source() {
    let _ledger = ledger_check();
    let x = Tensor::from_slice(&[1.0f64, 2.0, 3.0, 4.0, 5.0, 6.0], [3, 2]).unwrap();
    let w = Tensor::from_slice(&[1.0f64, -1.0, 2.0, 0.5], [2, 2]).unwrap();
    let unused = vector(&[1.0]);
    let tape = GradientTape::persistent();
    tape.watch(&(&x, &w, &unused));
    let y = matmul(&x, &w).unwrap();
    let (dx, dw, none) = tape.jacobian(&y, &(&x, &w, &unused)).unwrap();
    assert_eq!((dx.unwrap().shape(), dw.unwrap().shape()), (&[3, 2, 3, 2].into(), &[3, 2, 2, 2].into()));
    assert!(none.is_none());
    let batch = tape.batch_jacobian(&y, &x).unwrap().unwrap();
    assert_eq!(batch.shape(), &[3, 2, 2]);
    let transposed = [1.0, 2.0, -1.0, 0.5];
    assert_eq!(values(&reshape(&batch, &[-1]).unwrap()), transposed.repeat(3));
    let error = tape.batch_jacobian(&y, &w).unwrap_err();
    assert!(error.message().contains("must have one batch size"), "{error}");
}
