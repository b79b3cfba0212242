//! The tape.
use taut_autodiff::{Dense, GradientTape, Variable};
use taut_core::Tensor;
use taut_core::ops::contract::matmul;
use taut_core::ops::reduce::sum;
use taut_core::ops::unary::relu;
use taut_memory::testing::ledger_check;

#[test]
fn power() {
    let _ledger = ledger_check();
    let x = Tensor::scalar(3.0f32).unwrap();
    let outer = GradientTape::new();
    outer.watch(&x);
    let inner = GradientTape::new();
    inner.watch(&x);
    let y = ((&x * &x).unwrap() * &x).unwrap();
    assert_eq!(inner.num_entries(), 2);
    let dy = inner.gradient(&y, &x).unwrap().dense().unwrap();
    assert_eq!(dy.item::<f32>().unwrap(), 27.0);
    let ddy = outer.gradient(&dy, &x).unwrap().dense().unwrap();
    assert_eq!(ddy.item::<f32>().unwrap(), 18.0);
}

#[test]
fn dense_layer() {
    let _ledger = ledger_check();
    let w = Variable::new(Tensor::from_slice(&[1.0f32, -2.0, 3.0, 4.0], [2, 2]).unwrap()).unwrap();
    let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 2]).unwrap();
    let tape = GradientTape::new();
    let y = relu(matmul(&x, &w).unwrap()).unwrap();
    let loss = sum(&y, None, false).unwrap();
    assert_eq!(tape.bytes_held(), 8 + 1, "{}", tape.explain());
    let dw = tape.gradient(&loss, &w).unwrap().dense().unwrap();
    assert_eq!(dw.to_vec::<f32>().unwrap(), [1.0, 1.0, 2.0, 2.0]);
}
