use super::*;
use crate::index::testing::*;
use crate::simd::{Level, restrict};
use crate::{DType, ViewMut};

const KEY: Key = Key { seed: 20260101, op: 7 };
const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

fn drawn(dtype: DType, count: usize, draw: impl Fn(ViewMut<'_>)) -> Vec<f64> {
    let mut out = Array::zeros(dtype, &[count]);
    draw(out.out());
    out.values()
}

/// Mean, variance, and standardised third and fourth moments.
fn moments(values: &[f64]) -> [f64; 4] {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let central = |p: i32| values.iter().map(|v| (v - mean).powi(p)).sum::<f64>() / n;
    let variance = central(2);
    [mean, variance, central(3) / variance.powf(1.5), central(4) / (variance * variance)]
}

/// The Kolmogorov-Smirnov distance times the root of the count; 1.95 is exceeded once in a thousand.
fn distance(values: &[f64], distribution: impl Fn(f64) -> f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let gap = |(i, &v): (usize, &f64)| {
        let p = distribution(v);
        (p - i as f64 / n).abs().max(((i + 1) as f64 / n - p).abs())
    };
    sorted.iter().enumerate().map(gap).fold(0.0, f64::max) * n.sqrt()
}

/// The normal distribution function, by integrating the density with Simpson's rule from zero.
fn normal_below(x: f64) -> f64 {
    let density = |t: f64| (-0.5 * t * t).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let steps = 64;
    let h = x / steps as f64;
    let weight = |i: usize| if i == 0 || i == steps { 1.0 } else { 2.0 + 2.0 * (i % 2) as f64 };
    0.5 + (0..=steps).map(|i| weight(i) * density(i as f64 * h)).sum::<f64>() * h / 3.0
}

/// Every kernel that fills element by element, by name.
type Filler = fn(Key, u64, ViewMut<'_>);
const FILLERS: [(&str, &[DType], Filler); 9] = [
    ("uniform", &FLOATS, |k, i, o| uniform(k, i, -2.0, 3.0, o)),
    ("normal", &FLOATS, |k, i, o| normal(k, i, 1.0, 2.0, o)),
    ("truncated", &FLOATS, |k, i, o| truncated_normal(k, i, 1.0, 2.0, o)),
    ("exponential", &FLOATS, |k, i, o| exponential(k, i, 0.5, o)),
    ("integers", &[DType::U8, DType::I16, DType::I32, DType::U64, DType::I64], |k, i, o| {
        integers(k, i, 3, 90, o);
    }),
    ("bernoulli", &[DType::Bool], |k, i, o| bernoulli(k, i, 0.3, o)),
    ("bits32", &[DType::U32], random_bits),
    ("bits64", &[DType::U64], random_bits),
    ("gamma", &FLOATS, |k, i, o| {
        let alpha = Array::new(o.dtype(), &[1], &[2.5]).broadcast(o.shape());
        gamma(k, i, alpha.view(), 2.0, o);
    }),
];

#[test]
fn a_value_depends_on_its_index_alone() {
    let count = 1000;
    for (name, dtypes, filler) in FILLERS {
        for &dtype in dtypes {
            let whole = drawn(dtype, count, |o| filler(KEY, 0, o));
            for piece in [1, 7, 32, 333] {
                let mut pieces = Vec::new();
                while pieces.len() < count {
                    let n = piece.min(count - pieces.len());
                    pieces.extend(drawn(dtype, n, |o| filler(KEY, pieces.len() as u64, o)));
                }
                assert_eq!(pieces, whole, "{name} {dtype} in pieces of {piece}");
            }
            assert!(drawn(dtype, 0, |o| filler(KEY, 5, o)).is_empty());
            // Far along, past 2^32 counters.
            let far = (1u64 << 40) - 5;
            let ten = drawn(dtype, 10, |o| filler(KEY, far, o));
            assert_eq!(drawn(dtype, 3, |o| filler(KEY, far + 7, o)), ten[7..]);
        }
    }
}

#[test]
fn values_do_not_depend_on_the_chunks_of_the_pool() {
    let count = 3 * CHUNK + 11;
    let whole = drawn(DType::F32, count, |o| normal(KEY, 0, 0.0, 1.0, o));
    let tail = drawn(DType::F32, count - 20_001, |o| normal(KEY, 20_001, 0.0, 1.0, o));
    assert_eq!(whole[20_001..], tail);
}

#[test]
fn instruction_sets_agree() {
    for (name, dtypes, filler) in FILLERS {
        for &dtype in dtypes {
            restrict(Level::Baseline);
            let base = drawn(dtype, 777, |o| filler(KEY, 3, o));
            restrict(Level::Avx512);
            assert_eq!(drawn(dtype, 777, |o| filler(KEY, 3, o)), base, "{name} {dtype}");
        }
    }
}

#[test]
fn seeds_and_ops_give_other_sequences() {
    let base = drawn(DType::F64, 100, |o| uniform(KEY, 0, 0.0, 1.0, o));
    for key in [
        Key { seed: KEY.seed + 1, ..KEY },
        Key { op: KEY.op + 1, ..KEY },
        Key { seed: KEY.seed + (1 << 32), ..KEY },
        Key { op: KEY.op + (1 << 32), ..KEY },
    ] {
        let other = drawn(DType::F64, 100, |o| uniform(key, 0, 0.0, 1.0, o));
        assert!(base.iter().zip(&other).all(|(a, b)| a != b));
    }
}

#[test]
fn bits_are_the_generator_s() {
    let words = drawn(DType::U32, 64, |o| random_bits(Key { seed: 0, op: 0 }, 0, o));
    // Counter zero under key zero, in lane zero of the four words.
    let published = [0x6627e8d5u32, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8];
    assert_eq!([0, 8, 16, 24].map(|i| words[i]), published.map(f64::from));
    let mut wide = Array::zeros(DType::U64, &[16]);
    random_bits(Key { seed: 0, op: 0 }, 0, wide.out());
    let wide = wide.typed::<u64>();
    assert_eq!([wide[0], wide[8]], [0xe169c58d_6627e8d5, 0x9b00dbd8_bc57ac4c]);
}

#[test]
fn uniforms_fill_their_interval() {
    for dtype in FLOATS {
        let values = drawn(dtype, 40_000, |o| uniform(KEY, 0, -1.0, 3.0, o));
        assert!(values.iter().all(|v| (-1.0..3.0).contains(v)), "{dtype}");
        let [mean, variance, skew, kurtosis] = moments(&values);
        // Standard errors at this count: 0.006, 0.006, 0.009, 0.007.
        assert!((mean - 1.0).abs() < 0.025, "{mean}");
        assert!((variance - 16.0 / 12.0).abs() < 0.025, "{variance}");
        assert!(skew.abs() < 0.04 && (kurtosis - 1.8).abs() < 0.03);
        if dtype.size() >= 4 {
            let d = distance(&values, |v| (v + 1.0) / 4.0);
            assert!(d < 1.95, "{dtype} {d}");
        }
    }
}

#[test]
fn uniforms_never_reach_the_end() {
    // One step wide: only the low end is left; many draws would round up to the high end.
    for (low, high) in [(1.0f32, 1.0 + f32::EPSILON), (16777216.0, 16777218.0), (-1e-45, 0.0), (0.0, 1e-45)] {
        let values = drawn(DType::F32, 2000, |o| uniform(KEY, 0, low as f64, high as f64, o));
        assert!(values.iter().all(|&v| v >= low as f64 && v < high as f64), "{low} {high}");
    }
    for dtype in [DType::F16, DType::BF16] {
        let values = drawn(dtype, 20_000, |o| uniform(KEY, 0, 0.0, 1.0, o));
        assert!(values.iter().all(|v| (0.0..1.0).contains(v)));
        assert!(values.iter().any(|&v| v > 0.99));
    }
    for (dtype, most) in [(DType::F32, f32::MAX as f64), (DType::F64, f64::MAX)] {
        let values = drawn(dtype, 1000, |o| uniform(KEY, 0, -most, most, o));
        assert!(values.iter().all(|v| v.is_finite() && *v < most));
        assert!(values.iter().any(|&v| v > most / 2.0) && values.iter().any(|&v| v < -most / 2.0));
        assert!(drawn(dtype, 9, |o| uniform(KEY, 0, 2.0, 2.0, o)).iter().all(|&v| v == 2.0));
    }
}

#[test]
fn normals_are_normal() {
    for dtype in FLOATS {
        let values = drawn(dtype, 100_000, |o| normal(KEY, 0, 0.0, 1.0, o));
        let [mean, variance, skew, kurtosis] = moments(&values);
        // Standard errors: 0.0032, 0.0045, 0.0077, 0.0155.
        assert!(mean.abs() < 0.013, "{dtype} {mean}");
        assert!((variance - 1.0).abs() < 0.018, "{dtype} {variance}");
        assert!(skew.abs() < 0.03 && (kurtosis - 3.0).abs() < 0.06, "{dtype} {skew} {kurtosis}");
        if dtype.size() >= 4 {
            let d = distance(&values, normal_below);
            assert!(d < 1.95, "{dtype} {d}");
        }
        let moved = drawn(dtype, 10_000, |o| normal(KEY, 0, 5.0, 0.5, o));
        let [mean, variance, ..] = moments(&moved);
        assert!((mean - 5.0).abs() < 0.02 && (variance - 0.25).abs() < 0.015, "{dtype}");
    }
}

#[test]
fn neighbouring_normals_are_independent() {
    for dtype in [DType::F32, DType::F64] {
        let values = drawn(dtype, 100_000, |o| normal(KEY, 0, 0.0, 1.0, o));
        // Lags that pair the two halves of one Box-Muller draw are among these, squares included.
        for lag in [1, 2, 8, 16, 24, 32] {
            let pairs = values.iter().zip(&values[lag..]);
            let n = (values.len() - lag) as f64;
            let plain = pairs.clone().map(|(a, b)| a * b).sum::<f64>() / n.sqrt();
            let squares = pairs.map(|(a, b)| (a * a - 1.0) * (b * b - 1.0)).sum::<f64>() / (2.0 * n.sqrt());
            assert!(plain.abs() < 4.0 && squares.abs() < 5.0, "{dtype} lag {lag}: {plain} {squares}");
        }
    }
}

#[test]
fn normal_tails_have_the_expected_counts() {
    let values = drawn(DType::F32, 2_000_000, |o| normal(KEY, 0, 0.0, 1.0, o));
    for (bound, probability) in [(2.0, 0.045500264), (3.0, 0.002699796), (4.0, 6.334248e-5)] {
        let expected = probability * 2e6;
        for sign in [-1.0, 1.0] {
            let seen = values.iter().filter(|&&v| v * sign > bound).count() as f64;
            assert!((seen - expected / 2.0).abs() < 4.0 * (expected / 2.0).sqrt(), "{bound}: {seen}");
        }
    }
    // 1.1 of two million lie beyond five standard deviations, but nothing lies beyond what 39 bits can make.
    assert!(values.iter().all(|v| v.abs() < 7.5));
    assert!(values.iter().any(|v| v.abs() > 4.7));
}

#[test]
fn truncated_normals_stay_inside() {
    // The variance of a normal cut at two: 1 - 4 phi(2) / (2 Phi(2) - 1).
    let density = (-2.0f64).exp() / (2.0 * std::f64::consts::PI).sqrt();
    let covered = 2.0 * normal_below(2.0) - 1.0;
    let expected = 1.0 - 4.0 * density / covered;
    for dtype in FLOATS {
        let values = drawn(dtype, 50_000, |o| truncated_normal(KEY, 0, 0.0, 1.0, o));
        assert!(values.iter().all(|v| v.abs() < 2.0), "{dtype}");
        assert!(values.iter().any(|v| *v > 1.9) && values.iter().any(|v| *v < -1.9));
        let [mean, variance, skew, _] = moments(&values);
        assert!(mean.abs() < 0.016 && (variance - expected).abs() < 0.016 && skew.abs() < 0.03, "{dtype}");
        if dtype.size() >= 4 {
            let d = distance(&values, |v| (normal_below(v) - normal_below(-2.0)) / covered);
            assert!(d < 1.95, "{dtype} {d}");
        }
        let moved = drawn(dtype, 5000, |o| truncated_normal(KEY, 0, 8.0, 0.25, o));
        assert!(moved.iter().all(|v| *v > 7.5 && *v < 8.5), "{dtype}");
    }
}

#[test]
fn exponentials() {
    for dtype in FLOATS {
        let values = drawn(dtype, 50_000, |o| exponential(KEY, 0, 2.0, o));
        assert!(values.iter().all(|v| *v >= 0.0 && v.is_finite()));
        let [mean, variance, ..] = moments(&values);
        assert!((mean - 0.5).abs() < 0.01 && (variance - 0.25).abs() < 0.015, "{dtype} {mean} {variance}");
        if dtype.size() >= 4 {
            let d = distance(&values, |v| 1.0 - (-2.0 * v).exp());
            assert!(d < 1.95, "{dtype} {d}");
        }
    }
}

#[test]
fn integers_are_even_and_in_range() {
    for dtype in DType::REAL.into_iter().filter(|d| d.is_integer()) {
        let values = drawn(dtype, 20_000, |o| integers(KEY, 0, 5, 15, o));
        let counts: Vec<f64> =
            (5..15).map(|v| values.iter().filter(|&&x| x == f64::from(v)).count() as f64).collect();
        assert_eq!(counts.iter().sum::<f64>(), 20_000.0, "{dtype}");
        let chi: f64 = counts.iter().map(|c| (c - 2000.0).powi(2) / 2000.0).sum();
        // Nine degrees of freedom: 27.9 is exceeded once in a thousand.
        assert!(chi < 27.9, "{dtype} {chi}");
        assert!(drawn(dtype, 50, |o| integers(KEY, 0, 3, 4, o)).iter().all(|&v| v == 3.0));
    }
    let values = drawn(DType::I8, 20_000, |o| integers(KEY, 0, -128, 128, o));
    assert!((-128..128).all(|v| values.contains(&f64::from(v))));
    // The whole range of each 64-bit type, and of u32.
    let [mean, variance, ..] = moments(&drawn(DType::U32, 20_000, |o| integers(KEY, 0, 0, 1 << 32, o)));
    let full = 2f64.powi(32);
    assert!((mean / full - 0.5).abs() < 0.01 && (variance / (full * full) - 1.0 / 12.0).abs() < 0.003);
    let full = 2f64.powi(64);
    for (dtype, low, high) in
        [(DType::U64, 0, 1i128 << 64), (DType::I64, i128::from(i64::MIN), i128::from(i64::MAX) + 1)]
    {
        let [mean, variance, ..] = moments(&drawn(dtype, 20_000, |o| integers(KEY, 0, low, high, o)));
        assert!(((mean - low as f64) / full - 0.5).abs() < 0.01, "{dtype}");
        assert!((variance / (full * full) - 1.0 / 12.0).abs() < 0.003);
    }
    // A span that 64 random bits would make lumpy: three quarters of 2^64.
    let high = 3i128 << 62;
    let values = drawn(DType::U64, 30_000, |o| integers(KEY, 0, 0, high, o));
    let d = distance(&values, |v| v / high as f64);
    assert!(d < 1.95, "{d}");
}

#[test]
fn bernoulli_samples_have_their_probability() {
    for p in [0.0, 0.1, 0.5, 0.999, 1.0] {
        let n = 50_000.0;
        let values = drawn(DType::Bool, 50_000, |o| bernoulli(KEY, 0, p, o));
        let heads = values.iter().sum::<f64>();
        let deviation = (n * p * (1.0 - p)).sqrt();
        assert!((heads - n * p).abs() <= 4.0 * deviation, "{p}: {heads}");
        for dtype in FLOATS {
            let chance = Array::new(dtype, &[1], &[p]).broadcast(&[5000]);
            let exact = chance.values()[0];
            let each = drawn(DType::Bool, 5000, |o| bernoulli_each(KEY, 0, chance.view(), o));
            assert_eq!(each, drawn(DType::Bool, 5000, |o| bernoulli(KEY, 0, exact, o)));
        }
    }
    let chances = Array::new(DType::F32, &[4], &[0.0, 1.0, f64::NAN, 7.0]);
    let values = drawn(DType::Bool, 4, |o| bernoulli_each(KEY, 0, chances.view(), o));
    assert_eq!(values, [0.0, 1.0, 0.0, 1.0]);
}

fn choices(logits: &Array, samples: usize, index: DType) -> Vec<f64> {
    let mut out = Array::zeros(index, &[logits.shape[0], samples]);
    let mut space = scratch(categorical_scratch(logits.shape[1]));
    categorical(KEY, 0, logits.view(), out.out(), bytemuck::cast_slice_mut(&mut space));
    out.values()
}

#[test]
fn choices_follow_their_logits() {
    let weights = [1.0f64, 0.0, 2.0, 5.0];
    let shifted: Vec<f64> = weights.iter().map(|w| w.ln() + 300.0).collect();
    let infinite = [f64::INFINITY, 0.0, f64::INFINITY, f64::NEG_INFINITY];
    for layout in LAYOUTS {
        let logits = Array::laid_out(layout, DType::F64, &[2, 4], &[&shifted[..], &infinite].concat());
        for index in [DType::I32, DType::I64] {
            let values = choices(&logits, 20_000, index);
            let chi: f64 = [0, 2, 3]
                .iter()
                .map(|&class| {
                    let seen = values[..20_000].iter().filter(|&&v| v == class as f64).count() as f64;
                    let expected = 20_000.0 * weights[class] / 8.0;
                    (seen - expected).powi(2) / expected
                })
                .sum();
            // Two degrees of freedom.
            assert!(chi < 13.8, "{chi}");
            assert!(!values[..20_000].contains(&1.0));
            assert!(values[20_000..].iter().all(|&v| v == 0.0 || v == 2.0));
        }
    }
    for dtype in FLOATS {
        let one = Array::new(dtype, &[1, 1], &[f64::NEG_INFINITY]);
        assert_eq!(choices(&one, 3, DType::I64), [0.0; 3]);
        let broken = Array::new(dtype, &[1, 2], &[f64::NAN, 1.0]);
        assert!(choices(&broken, 9, DType::I32).iter().all(|&v| v == 0.0 || v == 1.0));
    }
    // A row's samples do not depend on the rows before.
    let logits = Array::new(DType::F32, &[3, 4], &[0.0; 12]);
    let all = choices(&logits, 10, DType::I64);
    let mut out = Array::zeros(DType::I64, &[1, 10]);
    let row = Array::new(DType::F32, &[1, 4], &[0.0; 4]);
    let mut space = scratch(categorical_scratch(4));
    categorical(KEY, 20, row.view(), out.out(), bytemuck::cast_slice_mut(&mut space));
    assert_eq!(out.values(), all[20..]);
}

#[test]
fn permutations_hold_everything_once_and_are_even() {
    for dtype in [DType::I32, DType::I64] {
        for n in [0, 1, 2, 63, 64, 65, 1000] {
            let mut values = drawn(dtype, n, |o| permutation(KEY, o));
            if n == 1000 {
                assert!(values.iter().enumerate().filter(|(i, v)| *i as f64 == **v).count() < 10);
            }
            values.sort_by(f64::total_cmp);
            assert!(values.iter().enumerate().all(|(i, v)| i as f64 == *v));
        }
    }
    // All 24 orders of four, over 12000 keys: 23 degrees of freedom.
    let mut counts = std::collections::BTreeMap::new();
    for op in 0..12_000 {
        let order = drawn(DType::I64, 4, |o| permutation(Key { op, ..KEY }, o));
        *counts.entry(order.iter().fold(0, |n, &v| n * 4 + v as u32)).or_insert(0.0) += 1.0;
    }
    assert_eq!(counts.len(), 24);
    let chi: f64 = counts.values().map(|c: &f64| (c - 500.0).powi(2) / 500.0).sum();
    assert!(chi < 49.7, "{chi}");
}

#[test]
fn gammas_have_their_moments() {
    for (alpha, n) in [(0.05, 40_000), (0.5, 40_000), (1.0, 40_000), (3.0, 40_000), (1000.0, 10_000)] {
        for dtype in [DType::F32, DType::F64] {
            let shapes = Array::new(dtype, &[1], &[alpha]).broadcast(&[n]);
            let values = drawn(dtype, n, |o| gamma(KEY, 0, shapes.view(), 2.0, o));
            assert!(values.iter().all(|v| *v >= 0.0 && v.is_finite()));
            let [mean, variance, ..] = moments(&values);
            // Mean alpha / rate, variance alpha / rate^2; the variance's error grows as the shape shrinks.
            let error = (alpha / 4.0 / n as f64).sqrt();
            assert!((mean - alpha / 2.0).abs() < 4.0 * error, "{alpha} {dtype}: {mean}");
            let spread = alpha / 4.0 * ((2.0 + 6.0 / alpha) / n as f64).sqrt();
            assert!((variance - alpha / 4.0).abs() < 5.0 * spread, "{alpha} {dtype}: {variance}");
        }
    }
    // Shape one is the exponential, shape one half the square of a normal.
    let ones = Array::new(DType::F64, &[1], &[1.0]).broadcast(&[20_000]);
    let d =
        distance(&drawn(DType::F64, 20_000, |o| gamma(KEY, 0, ones.view(), 1.0, o)), |v| 1.0 - (-v).exp());
    assert!(d < 1.95, "{d}");
    let halves = Array::new(DType::F64, &[1], &[0.5]).broadcast(&[20_000]);
    let squares = drawn(DType::F64, 20_000, |o| gamma(KEY, 0, halves.view(), 0.5, o));
    let d = distance(&squares, |v| 2.0 * normal_below(v.sqrt()) - 1.0);
    assert!(d < 1.95, "{d}");
    let odd = Array::new(DType::F32, &[4], &[0.0, -1.0, f64::NAN, f64::INFINITY]);
    let values = drawn(DType::F32, 4, |o| gamma(KEY, 0, odd.view(), 1.0, o));
    assert!(values[..3].iter().all(|v| v.is_nan()) && values[3].is_infinite());
}
