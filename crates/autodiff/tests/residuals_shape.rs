//! The bytes that shape, index and nn ops save for their gradients, and their gradients at edge cases.

use taut_autodiff::{DenseGradient, Gradient, GradientTape};
use taut_core::ops::index::*;
use taut_core::ops::nn::*;
use taut_core::ops::reduce::sum;
use taut_core::ops::sample;
use taut_core::ops::shape::*;
use taut_core::ops::unary::cast;
use taut_core::{DType, Index, Result, Shape, Tensor, s};
use taut_memory::testing::ledger_check;
use taut_testing::vector;

fn f32s(shape: &[usize], low: f64, high: f64) -> Tensor {
    sample::tensor(DType::F32, &Shape::from(shape), low, high)
}

fn ids(values: &[i64]) -> Tensor {
    Tensor::from_slice(values, [values.len()]).unwrap()
}

fn column(values: &[i64]) -> Tensor {
    Tensor::from_slice(values, [values.len(), 1]).unwrap()
}

/// The bytes that a tape saves of a call when it watches these.
fn held(watched: &[&Tensor], call: impl FnOnce() -> Result<Tensor>) -> usize {
    let tape = GradientTape::new();
    watched.iter().for_each(|tensor| tape.watch(*tensor));
    let result = call().unwrap();
    let held = tape.bytes_held();
    drop(result);
    held
}

/// The gradient of the sum of a call's result, weighted by 1, 2, 3, ..
fn gradient(x: &Tensor, call: impl FnOnce(&Tensor) -> Result<Tensor>) -> Vec<f64> {
    let tape = GradientTape::new();
    tape.watch(x);
    let y = call(x).unwrap();
    let weights: Vec<f64> = (1..=y.len()).map(|i| i as f64).collect();
    let weights = cast(Tensor::from_vec(weights, y.shape().clone()).unwrap(), y.dtype()).unwrap();
    let y = sum((y * weights).unwrap(), None, false).unwrap();
    let found = tape.gradient(&y, x).unwrap().dense().unwrap();
    assert_eq!(found.spec(), x.spec());
    cast(found, DType::F64).unwrap().to_vec::<f64>().unwrap()
}

#[test]
fn moving_elements_keeps_nothing() {
    let _ledger = ledger_check();
    let x = f32s(&[4, 6], -1.0, 1.0);
    let moved = || {
        let y = transpose(&x, None)?;
        let y = reverse(roll(y, &[2], &[0])?, &[1])?;
        let y = pad(y, &[[1, 2], [0, 3]], PadMode::Reflect)?;
        let y = slice(y, &s![Index::from(..).by(-2), 1.., taut_core::NewAxis])?;
        let parts = split(y, 2, 1)?;
        repeat(tile(concat(&[parts[1].clone(), parts[0].clone()], 0)?, &[1, 2, 3])?, &[2], 0)
    };
    assert_eq!(held(&[&x], moved), 0);
}

#[test]
fn gradients_of_slices_and_padding() {
    let _ledger = ledger_check();
    let x = vector(&[0.0; 7]);
    assert_eq!(
        gradient(&x, |x| slice(x, &[Index::Range { start: Some(5), end: Some(0), step: -2 }])),
        [0.0, 3.0, 0.0, 2.0, 0.0, 1.0, 0.0]
    );
    assert_eq!(gradient(&x, |x| slice(x, &s![3])), [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    assert_eq!(gradient(&x, |x| slice(x, &s![7..])), [0.0; 7]);
    let unused = gradient(&x, |x| Ok(split(x, [2, 3, 2], 0)?[1].clone()));
    assert_eq!(unused, [0.0, 0.0, 1.0, 2.0, 3.0, 0.0, 0.0]);
    let x = vector(&[1.0, 2.0, 3.0]);
    assert_eq!(gradient(&x, |x| pad(x, &[[2, 1]], PadMode::Reflect)), [3.0, 2.0 + 4.0 + 6.0, 1.0 + 5.0]);
    assert_eq!(gradient(&x, |x| pad(x, &[[2, 1]], PadMode::Symmetric)), [2.0 + 3.0, 1.0 + 4.0, 5.0 + 6.0]);
    assert_eq!(gradient(&x, |x| repeat(x, &[2, 0, 1], 0)), [1.0 + 2.0, 0.0, 3.0]);
}

#[test]
fn gather_keeps_ids_and_gives_rows() {
    let _ledger = ledger_check();
    let (table, rows) = (f32s(&[1000, 8], -1.0, 1.0), ids(&[7, 3, 7]));
    for lookup in
        [|t: &Tensor, i: &Tensor| gather(t, i, 0, 0), |t: &Tensor, i: &Tensor| embedding_lookup(t, i)]
    {
        assert_eq!(held(&[&table], || lookup(&table, &rows)), 3 * 8);
        let tape = GradientTape::new();
        tape.watch(&table);
        let y = lookup(&table, reshape(&rows, &[3, 1]).as_ref().unwrap()).unwrap();
        let Some(Gradient::Sparse(found)) = tape.gradient(&y, &table).unwrap() else { panic!("not sparse") };
        assert_eq!((found.values.shape(), found.dense_shape), (&Shape::from([3, 8]), Shape::from([1000, 8])));
        assert_eq!(found.indices.to_vec::<i64>().unwrap(), [7, 3, 7]);
    }
    let tape = GradientTape::new();
    tape.watch(&table);
    let y = gather(&table, &rows, 0, 0).unwrap();
    let Some(Gradient::Sparse(found)) = tape.gradient(&y, &table).unwrap() else { panic!("not sparse") };
    let dense = found.to_dense().unwrap();
    let row = |i: usize| dense.to_vec::<f32>().unwrap()[8 * i..8 * i + 8].to_vec();
    assert_eq!((row(3), row(7), row(0)), (vec![1.0; 8], vec![2.0; 8], vec![0.0; 8]));
    // Along another axis it is a whole tensor, still from the ids alone.
    assert_eq!(held(&[&table], || gather(&table, &rows, 1, 0)), 3 * 8);
    assert_eq!(
        gradient(&vector(&[0.0; 4]), |x| take_along_axis(x, ids(&[2, 0, 2]), 0)),
        [2.0, 0.0, 4.0, 0.0]
    );
}

#[test]
fn scatters_keep_indices_or_bits() {
    let _ledger = ledger_check();
    let (x, at, new) = (f32s(&[100], -1.0, 1.0), column(&[4, 9, 4]), f32s(&[3], -1.0, 1.0));
    assert_eq!(held(&[&x, &new], || tensor_scatter_add(&x, &at, &new)), 3 * 8);
    assert_eq!(held(&[&x], || tensor_scatter_update(&x, &at, &new)), 3 * 8);
    assert_eq!(held(&[&new], || tensor_scatter_max(&x, &at, &new)), 3 * 8 + 13 + 1);
    // Of two updates of an element, the last one is used.
    let zeros = vector(&[0.0; 3]);
    assert_eq!(
        gradient(&zeros, |u| tensor_scatter_update(vector(&[0.0; 3]), column(&[2, 1, 2]), u)),
        [0.0, 2.0, 3.0]
    );
    assert_eq!(gradient(&zeros, |x| tensor_scatter_update(x, column(&[2]), vector(&[1.0]))), [1.0, 2.0, 0.0]);
    // Those that reach the largest value share its gradient.
    let (x, at, new) = (vector(&[1.0, 5.0, f64::NAN]), column(&[0, 0, 1, 2]), vector(&[1.0, 0.0, 4.0, 1.0]));
    assert_eq!(gradient(&x, |x| tensor_scatter_max(x, &at, &new)), [0.5, 2.0, 0.0]);
    assert_eq!(gradient(&new, |new| tensor_scatter_max(&x, &at, new)), [0.5, 0.0, 0.0, 0.0]);
}

#[test]
fn segments_keep_ids_and_bits() {
    let _ledger = ledger_check();
    let (x, rows) = (f32s(&[6, 10], -1.0, 1.0), ids(&[0, 0, 1, 1, 1, 4]));
    assert_eq!(held(&[&x], || segment_sum(&x, &rows)), 6 * 8);
    assert_eq!(held(&[&x], || unsorted_segment_mean(&x, &rows, 9)), 6 * 8);
    assert_eq!(held(&[&x], || segment_max(&x, &rows)), 6 * 8 + 60usize.div_ceil(8));
    assert_eq!(held(&[&x], || segment_prod(&x, &rows)), 6 * 8 + 60 * 4 + 5 * 10 * 4);
    let rows = ids(&[0, 0, 0, 2]);
    let tied = vector(&[3.0, 1.0, 3.0, -1.0]);
    assert_eq!(gradient(&tied, |x| segment_max(x, &rows)), [0.5, 0.0, 0.5, 3.0]);
    assert_eq!(
        gradient(&tied, |x| unsorted_segment_mean(x, &rows, 4)),
        [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 3.0]
    );
    assert_eq!(gradient(&vector(&[3.0, 0.0, 2.0, 0.0]), |x| segment_prod(x, &rows)), [0.0, 6.0, 0.0, 3.0]);
    assert_eq!(gradient(&vector(&[3.0, 0.0, 0.0, 1.0]), |x| segment_prod(x, &rows)), [0.0, 0.0, 0.0, 3.0]);
    let weights = f32s(&[4], -1.0, 1.0);
    assert_eq!(held(&[&weights], || bincount(&rows, Some(&weights), 0)), 4 * 8);
    assert_eq!(gradient(&tied, |w| bincount(&rows, Some(w), 0)), [1.0, 1.0, 1.0, 3.0]);
}

#[test]
fn sorting_saves_the_smaller() {
    let _ledger = ledger_check();
    let x = f32s(&[2, 50], -1.0, 1.0);
    assert_eq!(held(&[&x], || sort(&x, -1, true)), 2 * 50 * 4);
    assert_eq!(held(&[&x], || Ok(top_k(&x, 3, true)?.0)), 2 * 3 * 8);
    let x = vector(&[2.0, 7.0, 5.0]);
    assert_eq!(gradient(&x, |x| sort(x, 0, false)), [1.0, 3.0, 2.0]);
    assert_eq!(gradient(&x, |x| Ok(top_k(x, 2, true)?.0)), [0.0, 1.0, 2.0]);
    let x = vector(&[4.0, 1.0, 4.0]);
    assert_eq!(gradient(&x, |x| Ok(unique(x)?.0)), [1.0, 1.0, 1.0]);
    let mask = Tensor::from_slice(&[true, false, true], [3]).unwrap();
    assert_eq!(gradient(&x, |x| boolean_mask(x, &mask, 0)), [1.0, 0.0, 2.0]);
}

#[test]
fn softmax_keeps_its_output() {
    let _ledger = ledger_check();
    let x = f32s(&[3, 5], -1.0, 1.0);
    assert_eq!(held(&[&x], || softmax(&x, -1)), 3 * 5 * 4);
    assert_eq!(held(&[&x], || log_softmax(&x, 0)), 3 * 5 * 4);
    // An element of probability zero has gradient zero, not NaN.
    let x = vector(&[f64::NEG_INFINITY, 0.0, 0.0]);
    assert_eq!(gradient(&x, |x| softmax(x, 0)), [0.0, -0.25, 0.25]);
    assert_eq!(gradient(&x, |x| slice(log_softmax(x, 0)?, &s![1..])), [0.0, -0.5, 0.5]);
}

#[test]
fn cross_entropies_keep_the_logits_only() {
    let _ledger = ledger_check();
    let (tokens, classes) = (6, 40);
    let logits = f32s(&[2, 3, classes], -3.0, 3.0);
    let labels = cast(sample::tensor(DType::I32, &Shape::from([2, 3]), 0.0, 39.0), DType::I64).unwrap();
    let sparse = || sparse_softmax_cross_entropy_with_logits(&labels, &logits);
    assert_eq!(held(&[&logits], sparse), tokens * classes * 4 + tokens * 8);
    let weights = f32s(&[2, 3, classes], 0.0, 1.0);
    let dense = || softmax_cross_entropy_with_logits(&weights, &logits);
    assert_eq!(held(&[&logits], dense), 2 * tokens * classes * 4);
    assert_eq!(held(&[&weights], dense), tokens * classes * 4);
    let independent = || sigmoid_cross_entropy_with_logits(&weights, &logits);
    assert_eq!(held(&[&logits], independent), 2 * tokens * classes * 4);
    assert_eq!(held(&[&weights], independent), tokens * classes * 4);
    // Smooth where both terms of the formula are not. Large numbers do not overflow.
    let (x, labels) = (vector(&[0.0, 1e4, -1e4]), vector(&[0.25, 1.0, 1.0]));
    assert_eq!(gradient(&x, |x| sigmoid_cross_entropy_with_logits(&labels, x)), [0.25, 0.0, -3.0]);
    assert_eq!(gradient(&labels, |z| sigmoid_cross_entropy_with_logits(z, &x)), [0.0, -2e4, 3e4]);
    let x = vector(&[1e4, 0.0, 1e4]);
    let one = Tensor::scalar(2i64).unwrap();
    assert_eq!(gradient(&x, |x| sparse_softmax_cross_entropy_with_logits(&one, x)), [0.5, 0.0, -0.5]);
}

#[test]
fn norms_keep_the_input_and_statistics() {
    let _ledger = ledger_check();
    let (rows, n) = (6, 20);
    let x = f32s(&[2, 3, n], -1.0, 1.0);
    let (gamma, beta) = (f32s(&[n], 0.5, 1.5), f32s(&[n], -1.0, 1.0));
    let layer = || layer_norm(&x, Some(&gamma), Some(&beta), 1, 1e-5);
    let whole = rows * n * 4;
    assert_eq!(held(&[&x, &gamma, &beta], layer), whole + 2 * rows * 4 + n * 4);
    assert_eq!(held(&[&gamma], layer), whole + 2 * rows * 4);
    assert_eq!(held(&[&beta], layer), 0);
    assert_eq!(held(&[&x], || rms_norm(&x, None, 1, 1e-5)), whole + rows * 4);
    assert_eq!(held(&[&x, &gamma], || rms_norm(&x, Some(&gamma), 1, 1e-5)), whole + rows * 4 + n * 4);
    let groups = || group_norm(&x, Some(&gamma), Some(&beta), 5, -1, 1e-5);
    assert_eq!(held(&[&x, &gamma, &beta], groups), whole + 2 * (2 * 5) * 4 + n * 4);
    assert_eq!(held(&[&beta], groups), 0);
    let (mean, variance) = (f32s(&[n], -1.0, 1.0), f32s(&[n], 0.5, 1.0));
    let batch = || batch_norm(&x, &mean, &variance, Some(&beta), Some(&gamma), 1e-3, -1);
    assert_eq!(held(&[&x], batch), 2 * n * 4, "the reciprocal deviation and the scale");
    assert_eq!(held(&[&x, &gamma, &beta], batch), whole + 3 * n * 4);
    assert_eq!(held(&[&beta], batch), 0);
    let both = || {
        let (mean, variance) = moments(&x, [0, 1], false)?;
        mean + variance
    };
    assert_eq!(held(&[&x], both), whole + n * 4);
}

#[test]
fn dropout_keeps_its_key() {
    let _ledger = ledger_check();
    let key = Tensor::from_slice(&[1u64, 2], [2]).unwrap();
    let x = f32s(&[100], 0.5, 1.0);
    assert_eq!(held(&[&x], || dropout(&x, 0.5, &key)), 16);
    let tape = GradientTape::new();
    tape.watch(&x);
    let y = dropout(&x, 0.5, &key).unwrap();
    let found = tape.gradient(&y, &x).unwrap().dense().unwrap().to_vec::<f32>().unwrap();
    let kept = y.to_vec::<f32>().unwrap().into_iter().map(|y| if y == 0.0 { 0.0 } else { 2.0 });
    assert_eq!(found, kept.collect::<Vec<f32>>());
    assert!(found.contains(&0.0) && found.contains(&2.0));
}

#[test]
fn attention_keeps_no_scores() {
    let _ledger = ledger_check();
    let (heads, n, m, d, e) = (4, 30, 20, 3, 5);
    let (q, k, v) =
        (f32s(&[1, heads, n, d], -1.0, 1.0), f32s(&[1, 2, m, d], -1.0, 1.0), f32s(&[1, 2, m, e], -1.0, 1.0));
    let call = || attention(&q, &k, &v, None, false, None);
    let (q_bytes, k_bytes, v_bytes) = (heads * n * d * 4, 2 * m * d * 4, 2 * m * e * 4);
    let (lse, out) = (heads * n * 4, heads * n * e * 4);
    assert_eq!(held(&[&q, &k, &v], call), q_bytes + k_bytes + v_bytes + lse + out);
    assert_eq!(held(&[&q], call), q_bytes + k_bytes + v_bytes + lse + out);
    assert_eq!(held(&[&v], call), q_bytes + k_bytes + lse);
    // A query whose keys are all masked has gradient zero, not NaN, for either kind of mask.
    let bools = Tensor::from_vec((0..n * m).map(|i| i >= m).collect::<Vec<bool>>(), [n, m]).unwrap();
    let numbers = (0..n * m).map(|i| if i >= m { 0.0f32 } else { f32::NEG_INFINITY });
    let numbers = Tensor::from_vec(numbers.collect::<Vec<f32>>(), [n, m]).unwrap();
    for mask in [bools, numbers] {
        let found = gradient(&q, |q| attention(q, &k, &v, Some(&mask), false, None));
        assert!(found.iter().all(|v| v.is_finite()));
        assert!(found[..d].iter().all(|&v| v == 0.0) && found[d..2 * d].iter().any(|&v| v != 0.0));
    }
    // The log-sum-exp is an output as well: its gradient is the weighted mean of the keys.
    let keys = Tensor::from_slice(&[1.0f64, 3.0], [1, 1, 2, 1]).unwrap();
    let query = Tensor::from_slice(&[0.0f64], [1, 1, 1, 1]).unwrap();
    let found = gradient(&query, |q| Ok(attention_with_lse(q, &keys, &keys, None, false, Some(1.0))?.1));
    assert_eq!(found, [2.0]);
}

/// Gradients in narrow types agree with those in float64 within rounding.
#[test]
fn narrow_types_agree_with_float64() {
    let _ledger = ledger_check();
    let functions: [(&str, fn(&Tensor) -> Result<Tensor>); 12] = [
        ("softmax", |x| softmax(x, -1)),
        ("log_softmax", |x| log_softmax(x, 0)),
        ("layer_norm", |x| layer_norm(x, None, None, 1, 1e-3)),
        ("layer_norm of scale", |x| {
            let input = cast(sample::tensor(DType::F64, &Shape::from([3, 4]), -1.0, 2.0), x.dtype())?;
            let scale = reshape(slice(x, &s![0])?, &[4])?;
            layer_norm(input, Some(&scale), None, 1, 1e-3)
        }),
        ("rms_norm", |x| rms_norm(x, None, 2, 1e-3)),
        ("group_norm", |x| group_norm(x, None, None, 2, -1, 1e-3)),
        ("moments", |x| Ok(moments(x, 0, false)?.1)),
        ("attention", |x| {
            let x = reshape(x, &[1, 1, 3, 4])?;
            attention(&x, &x, &x, None, true, None)
        }),
        ("sparse_softmax_cross_entropy", |x| sparse_softmax_cross_entropy_with_logits(ids(&[1, 0, 3]), x)),
        ("sigmoid_cross_entropy", |x| sigmoid_cross_entropy_with_logits(softmax(x, -1)?, x)),
        ("segment_mean", |x| segment_mean(x, ids(&[0, 0, 1]))),
        ("take_along_axis", |x| sort(pad(x, &[[1, 1], [1, 1]], PadMode::Symmetric)?, 1, false)),
    ];
    for (name, function) in functions {
        for (dtype, tolerance) in [(DType::F32, 1e-5), (DType::F16, 8e-3), (DType::BF16, 6e-2)] {
            let x = cast(sample::tensor(DType::F64, &Shape::from([3, 4]), -2.0, 2.0), dtype).unwrap();
            let exact = gradient(&cast(&x, DType::F64).unwrap(), function);
            let scale = exact.iter().fold(1.0, |most: f64, v| most.max(v.abs()));
            for (got, want) in gradient(&x, function).into_iter().zip(&exact) {
                assert!((got - want).abs() <= tolerance * scale, "{name} in {dtype}: {got}, not {want}");
            }
        }
    }
}
