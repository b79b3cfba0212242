//! Comparisons of lists of numbers.

/// Whether two lists agree within `tolerance * (1 + |want|)` per element. NaN and infinities must be at the same places.
pub fn close(got: &[f64], want: &[f64], tolerance: f64) -> bool {
    let near = |got: f64, want: f64| {
        got == want || (got.is_nan() && want.is_nan()) || (got - want).abs() <= tolerance * (1.0 + want.abs())
    };
    got.len() == want.len() && got.iter().zip(want).all(|(&got, &want)| near(got, want))
}

/// Whether two lists have the same bits; every NaN is the same value.
pub fn same_bits(got: &[f64], want: &[f64]) -> bool {
    let same = |got: f64, want: f64| got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
    got.len() == want.len() && got.iter().zip(want).all(|(&got, &want)| same(got, want))
}

/// Asserts that two lists are [`close`].
#[track_caller]
pub fn assert_close(got: &[f64], want: &[f64], tolerance: f64) {
    assert!(close(got, want, tolerance), "got\n{got:?}, want\n{want:?} within {tolerance}");
}

/// Asserts that two lists have the [`same_bits`].
#[track_caller]
pub fn assert_same_bits(got: &[f64], want: &[f64]) {
    assert!(same_bits(got, want), "got\n{got:?}, want the bits of\n{want:?}");
}
