//! Comparison of tensors, shared by the tests.
#![allow(dead_code)]

pub mod graphs;

use taut_core::{DType, Tensor};
use taut_testing::values;

/// Whether two lists hold the same bits, NaN being one value.
pub fn same_bits(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len()
        && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()))
}

/// The tolerance, relative to the largest result, of sums that add the same terms in another order.
pub fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        DType::F32 => 2e-6,
        DType::F64 => 1e-12,
        _ => 0.0,
    }
}

/// Whether two lists agree up to a fraction of the largest number, with NaN and infinities at the same positions.
pub fn close(a: &[f64], b: &[f64], tolerance: f64) -> bool {
    let largest = b.iter().filter(|v| v.is_finite()).fold(1.0f64, |most, v| most.max(v.abs()));
    let near = |a: f64, b: f64| a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * largest;
    a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| near(a, b))
}

/// Asserts that results agree: bit for bit, or within the tolerance.
pub fn assert_agree(what: &str, got: &[Tensor], want: &[Tensor], exactly: bool) {
    assert_eq!(got.len(), want.len(), "{what}: another number of results");
    for (i, (got, want)) in got.iter().zip(want).enumerate() {
        assert_eq!(got.spec(), want.spec(), "{what}: another type or shape of result {i}");
        let (a, b) = (values(got), values(want));
        let agree = if exactly { same_bits(&a, &b) } else { close(&a, &b, tolerance(got.dtype())) };
        assert!(agree, "{what}: result {i} is\n{got:?}, not\n{want:?}");
    }
}
