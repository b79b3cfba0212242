//! Gradients of several slices of one tensor: joined by one concatenation, not padded one by one.

use taut_autodiff::{DenseGradient, GradientTape};
use taut_core::ops::binary::{add, mul};
use taut_core::ops::reduce::sum;
use taut_core::ops::shape::slice;
use taut_core::{DType, Graph, Index, Result, Spec, Tensor, s, trace};
use taut_memory::testing::ledger_check;
use taut_testing::{ramp, values};

/// The sum over slices `i` of `(i + 1) * sum(x[slice]^3)`.
fn total(x: &Tensor, slices: &[Vec<Index>]) -> Result<Tensor> {
    let mut total = Tensor::scalar(0.0f64)?;
    for (i, indices) in slices.iter().enumerate() {
        let part = slice(x, indices)?;
        let cube = mul(mul(&part, &part)?, &part)?;
        total = add(total, mul(sum(cube, None, false)?, i as f64 + 1.0)?)?;
    }
    Ok(total)
}

fn gradient(x: &Tensor, slices: &[Vec<Index>]) -> Result<Tensor> {
    let tape = GradientTape::new();
    tape.watch(x);
    tape.gradient(&total(x, slices)?, x)?.dense()
}

/// The gradient by hand: `3 (i + 1) x^2` added for each slice that holds an element.
fn by_hand(x: &Tensor, slices: &[Vec<Index>]) -> Vec<f64> {
    let numbers: Vec<f64> = (0..x.len()).map(|i| i as f64).collect();
    let positions = Tensor::from_vec(numbers, x.shape().clone()).unwrap();
    let x = values(x);
    let mut found = vec![0.0; x.len()];
    for (i, indices) in slices.iter().enumerate() {
        for at in values(&slice(&positions, indices).unwrap()) {
            found[at as usize] += 3.0 * (i as f64 + 1.0) * x[at as usize] * x[at as usize];
        }
    }
    found
}

fn cases() -> Vec<(&'static str, Vec<Vec<Index>>)> {
    let all = Index::from(..);
    vec![
        ("three parts", vec![s![.., 0..2].to_vec(), s![.., 2..5].to_vec(), s![.., 5..6].to_vec()]),
        ("parts out of order, with a gap", vec![s![.., 4..6].to_vec(), s![.., 0..1].to_vec()]),
        ("positions", vec![s![2].to_vec(), s![0].to_vec(), s![1].to_vec()]),
        ("one part", vec![s![.., 1..3].to_vec()]),
        ("overlap", vec![s![.., 0..4].to_vec(), s![.., 3..6].to_vec()]),
        ("the same part twice", vec![s![1].to_vec(), s![1].to_vec()]),
        ("two axes", vec![s![0].to_vec(), s![.., 2..3].to_vec()]),
        ("a corner", vec![s![0, 0..2].to_vec(), s![1].to_vec(), s![2].to_vec()]),
        ("the whole", vec![s![.., ..].to_vec(), s![0].to_vec()]),
        ("steps", vec![vec![all, Index::from(..).by(2)], vec![all, Index::from(1..).by(2)]]),
        ("backwards", vec![vec![Index::from(..).by(-1)], s![0].to_vec()]),
        ("an empty part", vec![s![0..0].to_vec(), s![0..3].to_vec()]),
    ]
}

#[test]
fn gradients_of_slices_are_those_by_hand() {
    let _ledger = ledger_check();
    let x = ramp(&[3, 6]);
    for (name, slices) in cases() {
        let found = gradient(&x, &slices).unwrap();
        let (found, want) = (values(&found), by_hand(&x, &slices));
        let close = found.iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs()));
        assert!(close, "{name}: {found:?}, expected {want:?}");
    }
}

#[test]
fn second_derivatives_pass_through_joined_parts() {
    let _ledger = ledger_check();
    let x = ramp(&[3, 6]);
    for (name, slices) in cases() {
        let tape = GradientTape::new();
        tape.watch(&x);
        let first = gradient(&x, &slices).unwrap();
        let second = tape.gradient(&sum(first, None, false).unwrap(), &x).unwrap().dense().unwrap();
        // The derivative of c x^2, c = 3 (i + 1), is 2 c x.
        let want: Vec<f64> = by_hand(&x, &slices)
            .iter()
            .zip(values(&x))
            .map(|(g, x)| if x == 0.0 { 0.0 } else { 2.0 * g / x })
            .collect();
        let close = values(&second).iter().zip(&want).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs()));
        assert!(close, "{name}: {:?}, expected {want:?}", values(&second));
    }
}

fn count(graph: &Graph, name: &str) -> usize {
    graph.nodes.iter().filter(|node| node.op.name() == name).count()
}

#[test]
fn disjoint_parts_are_one_concatenation() {
    let _ledger = ledger_check();
    let x = ramp(&[3, 6]);
    for (name, slices) in &cases()[..3] {
        let specs = [Spec::new(DType::F64, [3, 6])];
        let traced = trace(&specs, |x| Ok(vec![gradient(&x[0], slices)?])).unwrap();
        assert_eq!((count(&traced.graph, "concat"), count(&traced.graph, "pad")), (1, 0), "{name}");
        let run = traced.graph.run(std::slice::from_ref(&x)).unwrap();
        assert_eq!(values(&run[0]), values(&gradient(&x, slices).unwrap()), "{name}");
    }
}
