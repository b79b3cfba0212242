//! Initialisers: moments within statistical error, bounds, orthogonality.

use taut_core::ops::contract::matmul_with;
use taut_core::ops::shape::reshape;
use taut_core::ops::unary::cast;
use taut_core::{DType, ErrorKind};
use taut_memory::testing::ledger_check;
use taut_nn::initializers::{Distribution, Fan, Initializer};
use taut_testing::values;

fn drawn(initializer: Initializer, shape: &[usize]) -> Vec<f64> {
    values(&initializer.make(shape, DType::F32).unwrap())
}

/// Mean and variance are within five standard errors. The relative standard error of the variance is at most `sqrt(2 / n)` for these
/// distributions, whose tails are not heavier than those of the normal distribution.
fn assert_moments(what: &str, x: &[f64], mean: f64, variance: f64) {
    let n = x.len() as f64;
    let found = x.iter().sum::<f64>() / n;
    let spread = x.iter().map(|x| (x - found).powi(2)).sum::<f64>() / n;
    assert!((found - mean).abs() <= 5.0 * (variance / n).sqrt(), "{what}: mean {found} instead of {mean}");
    let error = 5.0 * variance * (2.0 / n).sqrt();
    assert!((spread - variance).abs() <= error, "{what}: variance {spread} instead of {variance}");
}

fn assert_within(what: &str, x: &[f64], limit: f64) {
    let largest = x.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    assert!(largest <= limit * (1.0 + 1e-6), "{what}: {largest} is beyond {limit}");
    assert!(largest >= 0.9 * limit, "{what}: {largest} stays far below {limit}");
}

#[test]
fn constants_are_constant() {
    let _ledger = ledger_check();
    assert_eq!(drawn(Initializer::Zeros, &[2, 2]), [0.0; 4]);
    assert_eq!(drawn(Initializer::Ones, &[]), [1.0]);
    assert_eq!(drawn(Initializer::Constant(0.25), &[3]), [0.25; 3]);
    assert_eq!(drawn(Initializer::Identity { gain: 2.0 }, &[2, 3]), [2.0, 0.0, 0.0, 0.0, 2.0, 0.0]);
    assert!(drawn(Initializer::GlorotUniform, &[0, 3]).is_empty());
}

#[test]
fn plain_distributions_have_their_moments() {
    let _ledger = ledger_check();
    let shape = [100, 200];
    let x = drawn(Initializer::RandomNormal { mean: 1.0, std: 0.5 }, &shape);
    assert_moments("normal", &x, 1.0, 0.25);
    let x = drawn(Initializer::RandomUniform { low: -1.0, high: 3.0 }, &shape);
    assert_moments("uniform", &x, 1.0, 16.0 / 12.0);
    assert!(x.iter().all(|x| (-1.0..=3.0).contains(x)));
    // Cut at two deviations, the variance is 1 - 4 phi(2) / (2 Phi(2) - 1) of what it was.
    let x = drawn(Initializer::TruncatedNormal { mean: 0.0, std: 2.0 }, &shape);
    let density = (-2.0f64).exp() / (2.0 * std::f64::consts::PI).sqrt();
    assert_moments("truncated", &x, 0.0, 4.0 * (1.0 - 4.0 * density / 0.954_499_736_103_641_6));
    assert_within("truncated", &x, 4.0);
}

/// `fan_in` and `fan_out` of the kernels of layers.
#[test]
fn variances_follow_the_fans() {
    let _ledger = ledger_check();
    // Shape, fan_in, fan_out.
    let cases: [(&[usize], f64, f64); 4] = [
        (&[150, 100], 150.0, 100.0),
        (&[3, 3, 40, 60], 9.0 * 40.0, 9.0 * 60.0),
        (&[5, 60, 50], 5.0 * 60.0, 5.0 * 50.0),
        (&[12000], 12000.0, 12000.0),
    ];
    for (shape, inputs, outputs) in cases {
        let average = f64::midpoint(inputs, outputs);
        let truncated = [
            (Initializer::GlorotNormal, 1.0 / average),
            (Initializer::HeNormal, 2.0 / inputs),
            (Initializer::LecunNormal, 1.0 / inputs),
        ];
        for (initializer, variance) in truncated {
            assert_moments(&format!("{initializer:?} {shape:?}"), &drawn(initializer, shape), 0.0, variance);
        }
        let uniform = [
            (Initializer::GlorotUniform, 1.0 / average),
            (Initializer::HeUniform, 2.0 / inputs),
            (Initializer::LecunUniform, 1.0 / inputs),
        ];
        for (initializer, variance) in uniform {
            let (what, x) = (format!("{initializer:?} {shape:?}"), drawn(initializer, shape));
            assert_moments(&what, &x, 0.0, variance);
            assert_within(&what, &x, (3.0 * variance).sqrt());
        }
        let scaled = Initializer::VarianceScaling {
            scale: 3.0,
            mode: Fan::Out,
            distribution: Distribution::UntruncatedNormal,
        };
        assert_moments("scaled", &drawn(scaled, shape), 0.0, 3.0 / outputs);
    }
}

#[test]
fn orthogonal_matrices_have_orthonormal_rows_or_columns() {
    let _ledger = ledger_check();
    for (shape, dtype, tolerance) in [
        (&[6, 4][..], DType::F64, 1e-12),
        (&[4, 6], DType::F64, 1e-12),
        (&[3, 2, 5], DType::F32, 1e-5),
        (&[5, 5], DType::F16, 1e-2),
    ] {
        let q = Initializer::Orthogonal { gain: 3.0 }.make(shape, dtype).unwrap();
        assert_eq!((q.dtype(), &q.shape()[..]), (dtype, shape));
        let columns = shape[shape.len() - 1];
        let rows = q.len() / columns;
        let q = reshape(cast(q, DType::F64).unwrap(), &[rows as isize, columns as isize]).unwrap();
        let few = rows.min(columns);
        let product = matmul_with(&q, &q, rows >= columns, rows < columns).unwrap();
        for (i, got) in values(&product).iter().enumerate() {
            let want = if i / few == i % few { 9.0 } else { 0.0 };
            assert!((got - want).abs() < 9.0 * tolerance, "{shape:?}: {got} instead of {want}");
        }
    }
}

#[test]
fn invalid_settings_are_rejected() {
    let _ledger = ledger_check();
    let refused =
        |initializer: Initializer, shape: &[usize]| initializer.make(shape, DType::F32).unwrap_err();
    assert_eq!(refused(Initializer::Orthogonal { gain: 1.0 }, &[3]).kind(), ErrorKind::Shape);
    assert_eq!(refused(Initializer::Identity { gain: 1.0 }, &[3, 3, 3]).kind(), ErrorKind::Shape);
    let (mode, distribution) = (Fan::In, Distribution::Uniform);
    let scaling = |scale| Initializer::VarianceScaling { scale, mode, distribution };
    assert_eq!(refused(scaling(0.0), &[3, 3]).kind(), ErrorKind::Value);
    assert_eq!(refused(scaling(f64::NAN), &[3, 3]).kind(), ErrorKind::Value);
    assert_eq!(refused(Initializer::RandomNormal { mean: 0.0, std: -1.0 }, &[3]).kind(), ErrorKind::Value);
}
