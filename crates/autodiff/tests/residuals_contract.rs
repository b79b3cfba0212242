//! The bytes that convolution, pooling, einsum and linear algebra save for their gradients, and their gradients where formulas
//! are delicate: at ties, at singular matrices, and in half precision.

use taut_autodiff::{DenseGradient, GradientTape};
use taut_core::ops::binary::{mul, sub};
use taut_core::ops::contract::*;
use taut_core::ops::creation::eye;
use taut_core::ops::linalg::*;
use taut_core::ops::sample;
use taut_core::ops::unary::cast;
use taut_core::{DType, Result, Tensor};
use taut_memory::testing::ledger_check;

fn f32s(shape: &[usize]) -> Tensor {
    sample::tensor(DType::F32, shape, -1.0, 2.0)
}

fn f64s(shape: &[usize], values: &[f64]) -> Tensor {
    Tensor::from_slice(values, shape).unwrap()
}

/// A stack of well-conditioned symmetric matrices.
fn definite(shape: &[usize]) -> Tensor {
    let n = shape[shape.len() - 1];
    let values: Vec<f32> = (0..shape.iter().product())
        .map(|i: usize| {
            let (row, column) = (i / n % n, i % n);
            if row == column { (2 * n + i) as f32 } else { 1.0 / (1 + row + column) as f32 }
        })
        .collect();
    Tensor::from_slice(&values, shape).unwrap()
}

/// The bytes that a tape holds after a call with some of the tensors watched.
fn held<T>(watched: &[&Tensor], call: impl FnOnce() -> Result<T>) -> usize {
    let tape = GradientTape::new();
    watched.iter().for_each(|&tensor| tape.watch(tensor));
    let result = call().unwrap();
    let bytes = tape.bytes_held();
    drop(result);
    bytes
}

/// The gradients of the sum of a function's result.
fn slopes(tensors: &[Tensor], f: impl FnOnce(&[Tensor]) -> Result<Tensor>) -> Vec<Vec<f64>> {
    let tape = GradientTape::new();
    tape.watch(tensors);
    let result = f(tensors).unwrap();
    let found = tape.gradient(&result, tensors).unwrap();
    let read = |t: Tensor| cast(t, DType::F64).unwrap().to_vec::<f64>().unwrap();
    found.into_iter().map(|g| read(g.dense().unwrap())).collect()
}

fn slope(x: &Tensor, f: impl FnOnce(&Tensor) -> Result<Tensor>) -> Vec<f64> {
    slopes(std::slice::from_ref(x), |x| f(&x[0])).remove(0)
}

#[track_caller]
fn near(got: &[f64], want: &[f64]) {
    let close = |(g, w): (&f64, &f64)| (g - w).abs() <= 1e-11 * (1.0 + w.abs());
    assert!(got.len() == want.len() && got.iter().zip(want).all(close), "{got:?}, not {want:?}");
}

#[test]
fn convolutions_keep_the_other_operand() {
    let _ledger = ledger_check();
    let (x, w) = (f32s(&[2, 5, 6, 3]), f32s(&[3, 3, 3, 4]));
    let (x_bytes, w_bytes) = (4 * 2 * 5 * 6 * 3, 4 * 3 * 3 * 3 * 4);
    let conv = || conv2d(&x, &w, &[2], "SAME");
    assert_eq!(held(&[&x, &w], conv), x_bytes + w_bytes);
    assert_eq!(held(&[&x], conv), w_bytes);
    assert_eq!(held(&[&w], conv), x_bytes);

    let options = ConvOptions { strides: vec![2], ..ConvOptions::default() };
    let (x, w) = (f32s(&[1, 3, 3, 4]), f32s(&[2, 2, 5, 4]));
    let grown = || conv_transpose(&x, &w, None, &options);
    assert_eq!(held(&[&x], grown), 4 * 2 * 2 * 5 * 4);
    assert_eq!(held(&[&w], grown), 4 * 3 * 3 * 4);

    let (x, w) = (f32s(&[1, 4, 4, 3]), f32s(&[2, 2, 3, 2]));
    let depthwise = || depthwise_conv2d(&x, &w, &ConvOptions::default());
    assert_eq!(held(&[&x], depthwise), 4 * 2 * 2 * 3 * 2);
    assert_eq!(held(&[&w], depthwise), 4 * 4 * 4 * 3);
    assert_eq!(held(&[], depthwise), 0);
}

#[test]
fn max_pooling_keeps_a_byte_per_window() {
    let _ledger = ledger_check();
    let x = f32s(&[2, 8, 6, 3]);
    assert_eq!(held(&[&x], || max_pool(&x, &[2, 2], &[2], "VALID")), 2 * 4 * 3 * 3);
    assert_eq!(held(&[&x], || max_pool(&x, &[3, 3], &[1], "SAME")), 2 * 8 * 6 * 3);
    assert_eq!(held(&[&x], || avg_pool(&x, &[3, 3], &[1], "SAME")), 0);
    // More taps than a byte can number.
    let x = f32s(&[1, 20, 20, 1]);
    assert_eq!(held(&[&x], || max_pool(&x, &[17, 17], &[1], "VALID")), 4 * 4 * 4);
    let got = slope(&x, |x| max_pool(x, &[17, 17], &[1], "VALID"));
    assert_eq!(got.iter().sum::<f64>(), 16.0);
}

#[test]
fn einsum_keeps_its_operands_and_no_copies() {
    let _ledger = ledger_check();
    let (q, k) = (f32s(&[2, 3, 4, 5]), f32s(&[2, 6, 4, 5]));
    let (q_bytes, k_bytes) = (4 * 2 * 3 * 4 * 5, 4 * 2 * 6 * 4 * 5);
    let scores = || einsum("bqhd,bkhd->bhqk", &[q.clone(), k.clone()]);
    let both = held(&[&q, &k], scores);
    assert_eq!(both, q_bytes + k_bytes);
    assert_eq!(held(&[&q], scores), k_bytes);
    assert_eq!(held(&[&k], scores), q_bytes);
    // The operands themselves: another op that saves one adds no bytes.
    let tape = GradientTape::new();
    tape.watch(&[&q, &k]);
    let kept = (scores().unwrap(), mul(&q, &q).unwrap());
    assert_eq!(tape.bytes_held(), both);
    drop(kept);

    let x = f32s(&[3, 3]);
    assert_eq!(held(&[&x], || einsum("ii", std::slice::from_ref(&x))), 0);
    assert_eq!(held(&[&x], || einsum("ij->j", std::slice::from_ref(&x))), 0);
    let (a, b) = (f32s(&[2, 3]), f32s(&[3, 4]));
    assert_eq!(held(&[&a], || tensordot(&a, &b, 1)), 4 * 3 * 4);
    assert_eq!(held(&[&b], || tensordot(&a, &b, 1)), 4 * 2 * 3);
}

#[test]
fn factors_are_kept_rather_than_the_matrix() {
    let _ledger = ledger_check();
    let a = definite(&[2, 4, 4]);
    let matrix = 4 * 2 * 4 * 4;
    assert_eq!(held(&[&a], || cholesky(&a)), matrix);
    assert_eq!(held(&[&a], || inv(&a)), matrix);
    assert_eq!(held(&[&a], || det(&a)), matrix + 4 * 2);
    assert_eq!(held(&[&a], || slogdet(&a)), matrix + 4 * 2);
    assert_eq!(held(&[&a], || eigh(&a)), matrix + 4 * 2 * 4);
    assert_eq!(held(&[&a], || eigvalsh(&a)), matrix);
    let a = f32s(&[5, 3]);
    assert_eq!(held(&[&a], || qr(&a, false)), 4 * (5 * 3 + 3 * 3));
    assert_eq!(held(&[&a], || svd(&a, false)), 4 * (5 * 3 + 3 + 3 * 3));
    assert_eq!(held(&[&a], || svdvals(&a)), 4 * 5 * 3);
}

#[test]
fn solutions_are_kept_for_the_matrix_alone() {
    let _ledger = ledger_check();
    let (a, b) = (definite(&[3, 3]), f32s(&[3, 2]));
    let (matrix, side) = (4 * 3 * 3, 4 * 3 * 2);
    assert_eq!(held(&[&a, &b], || solve(&a, &b)), matrix + side);
    assert_eq!(held(&[&a], || solve(&a, &b)), matrix + side);
    assert_eq!(held(&[&b], || solve(&a, &b)), matrix);
    assert_eq!(held(&[&a], || triangular_solve(&a, &b, true, false, false)), matrix + side);
    assert_eq!(held(&[&b], || triangular_solve(&a, &b, true, false, false)), matrix);
    let (a, b) = (f32s(&[5, 3]), f32s(&[5, 2]));
    assert_eq!(held(&[&a], || lstsq(&a, &b, None)), 4 * (5 * 3 + 5 * 2 + 3 * 2));
    assert_eq!(held(&[&b], || lstsq(&a, &b, None)), 4 * 5 * 3);
}

#[test]
fn ties_of_max_pooling_go_to_the_first() {
    let _ledger = ledger_check();
    let x = f64s(&[1, 6, 1], &[1.0, 1.0, 0.0, f64::NAN, f64::NEG_INFINITY, f64::NEG_INFINITY]);
    assert_eq!(slope(&x, |x| max_pool(x, &[2], &[2], "VALID")), [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]);
    // A window of nothing but padding has no winner.
    let options = PoolOptions {
        ksize: vec![2],
        padding: taut_core::ops::Padding::Explicit(vec![(2, 0)]),
        ..PoolOptions::default()
    };
    let x = f64s(&[1, 3, 1], &[3.0, 2.0, 1.0]);
    assert_eq!(slope(&x, |x| max_pool_with(x, &options)), [2.0, 1.0, 0.0]);
    // The gradient of the gradient reads the same positions.
    let dy = f64s(&[1, 4, 1], &[1.0, 1.0, 1.0, 1.0]);
    let weights = f64s(&[1, 3, 1], &[5.0, 7.0, 9.0]);
    let got = slope(&dy, |dy| mul(max_pool_gradient(&x, dy, &options)?, &weights));
    assert_eq!(got, [0.0, 5.0, 5.0, 7.0]);
}

#[test]
fn determinants_of_singular_matrices() {
    let _ledger = ledger_check();
    // The cofactors, for any rank.
    let a = f64s(&[3, 2, 2], &[1.0, 2.0, 2.0, 4.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0]);
    let want = [4.0, -2.0, -2.0, 1.0, 4.0, -3.0, -2.0, 1.0, 0.0, 0.0, 0.0, 0.0];
    near(&slope(&a, |a| det(a)), &want);
    let a = f64s(&[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    near(&slope(&a, |a| det(a)), &[-3.0, 6.0, -3.0, 6.0, -12.0, 6.0, -3.0, 6.0, -3.0]);
    // No error, and the other matrices of the batch have their gradients.
    let a = f64s(&[2, 2, 2], &[1.0, 2.0, 2.0, 4.0, 2.0, 0.0, 0.0, 4.0]);
    let got = slope(&a, |a| Ok(slogdet(a)?.1));
    assert!(!got[0].is_finite());
    near(&got[4..], &[0.5, 0.0, 0.0, 0.25]);
}

#[test]
fn second_derivatives_of_determinants_at_equal_singular_values() {
    let _ledger = ledger_check();
    let a = eye(3, None, (), DType::F64, 0).unwrap();
    let w = f64s(&[3, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 10.0]);
    let got = slope(&a, |a| {
        let tape = GradientTape::new();
        tape.watch(a);
        let d = det(a)?;
        mul(tape.gradient(&d, a)?.dense()?, &w)
    });
    // trace(w) I - wᵀ.
    near(&got, &[15.0, -4.0, -7.0, -2.0, 11.0, -8.0, -3.0, -6.0, 6.0]);
}

#[test]
fn singular_values_need_not_be_distinct_where_vectors_are_not_asked_for() {
    let _ledger = ledger_check();
    let a = eye(3, None, (), DType::F64, 0).unwrap();
    let one = a.to_vec::<f64>().unwrap();
    near(&slope(&a, |a| svdvals(a)), &one);
    near(&slope(&a, |a| Ok(svd(a, true)?.1)), &one);
    near(&slope(&a, |a| eigvalsh(a)), &one);
    near(&slope(&a, |a| Ok(eigh(a)?.0)), &one);
}

/// Vectors that complete a basis are not unique, but the space they span is, and has a gradient.
#[test]
fn the_span_of_completing_vectors_has_a_gradient() {
    let _ledger = ledger_check();
    let a = sample::tensor(DType::F64, &[4, 2], -2.0, 2.0);
    let w = sample::tensor(DType::F64, &[4, 4], -1.0, 1.0);
    let last = f64s(&[4, 2], &[0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 1.0]);
    let projector = |q: Tensor| mul(matmul_with(&q, &q, false, true)?, &w);
    let want = slope(&a, |a| sub(0.0, projector(qr(a, false)?.0)?));
    assert!(want.iter().any(|v| v.abs() > 0.1));
    near(&slope(&a, |a| projector(matmul(svd(a, true)?.0, &last)?)), &want);
    near(&slope(&a, |a| projector(matmul(qr(a, true)?.0, &last)?)), &want);
    let got = slope(&a, |a| sub(0.0, projector(svd(a, false)?.0)?));
    near(&got, &want);
}

/// Only a triangle is read: the other one has no gradient.
#[test]
fn the_unread_triangle_has_no_gradient() {
    let _ledger = ledger_check();
    let a = cast(definite(&[3, 3]), DType::F64).unwrap();
    for got in [slope(&a, |a| cholesky(a)), slope(&a, |a| eigvalsh(a)), slope(&a, |a| Ok(eigh(a)?.1))] {
        assert_eq!([got[1], got[2], got[5]], [0.0; 3]);
    }
    let b = f64s(&[3, 1], &[1.0, 2.0, 3.0]);
    let got = slope(&a, |a| triangular_solve(a, &b, false, true, true));
    assert_eq!([got[0], got[3], got[4], got[6], got[7], got[8]], [0.0; 6]);
    assert!(got[1] != 0.0);
}

#[test]
fn narrow_types_agree_with_float64() {
    let _ledger = ledger_check();
    let (x, w) = (
        sample::tensor(DType::F64, &[2, 3, 6, 2], -1.0, 1.0),
        sample::tensor(DType::F64, &[3, 2, 2, 3], -1.0, 1.0),
    );
    let limits = [(DType::F32, 1e-5), (DType::F16, 1e-2), (DType::BF16, 8e-2)];
    for (dtype, limit) in limits {
        let narrow = [cast(&x, dtype).unwrap(), cast(&w, dtype).unwrap()];
        let wide = [cast(&narrow[0], DType::F64).unwrap(), cast(&narrow[1], DType::F64).unwrap()];
        let check = |f: &dyn Fn(&[Tensor]) -> Result<Tensor>, inputs: usize| {
            let (got, want) = (slopes(&narrow[..inputs], f), slopes(&wide[..inputs], f));
            for (got, want) in got.iter().flatten().zip(want.iter().flatten()) {
                assert!((got - want).abs() <= limit * (1.0 + want.abs()), "{dtype}: {got}, not {want}");
            }
        };
        check(&|t| mul(conv2d(&t[0], &t[1], &[2, 1], "SAME")?, 0.5), 2);
        check(&|t| mul(max_pool(&t[0], &[3, 2], &[2], "SAME")?, 0.5), 1);
        check(&|t| mul(avg_pool(&t[0], &[3, 2], &[2], "SAME")?, 0.5), 1);
        check(&|t| einsum("bhwc,hkcd->bwkd", t), 2);
    }
}
