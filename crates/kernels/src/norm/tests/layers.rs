//! Moments and normalisations.

use super::super::*;
use super::*;
use crate::pool::tests::with_threads;
use crate::simd;

fn mean_and_variance(x: &[f64]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().sum::<f64>() / n;
    (mean, x.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n)
}

/// Per channel, all its elements.
fn by_channel(x: &[f64], shape: &[usize], axis: usize) -> Vec<Vec<f64>> {
    let (outer, channels, inner) = around(shape, axis);
    (0..channels)
        .map(|c| (0..outer * inner).map(|i| x[(i / inner * channels + c) * inner + i % inner]).collect())
        .collect()
}

fn check_moments<T: Stored>() {
    let shapes: [(&[usize], usize); 13] = [
        (&[9001, 16], 1),
        (&[3001, 7], 1),
        (&[2100, 40], 1),
        (&[70, 600], 1),
        (&[5, 7], 1),
        (&[5], 0),
        (&[1, 1], 1),
        (&[40, 3], 1),
        (&[2, 40, 70], 2),
        (&[3, 4, 50], 1),
        (&[2, 3, 1500], 1),
        (&[7, 6], 0),
        (&[300, 2, 1], 1),
    ];
    for (shape, axis) in shapes {
        for x in [Host::<T>::random(shape, 3), Host::<T>::scattered(shape, 4)] {
            let channels = shape[axis];
            let (mut mean, mut variance) = (wide::<T>(&[channels]), wide::<T>(&[channels]));
            moments(x.view(), axis, mean.out(), variance.out());
            for (c, values) in by_channel(&x.values(), shape, axis).iter().enumerate() {
                let expected = mean_and_variance(values);
                assert_near(&[mean.values()[c], variance.values()[c]], &[expected.0, expected.1], 1e-6);
            }
        }
    }
}

#[test]
fn moments_match_the_formula() {
    for_floats!(check_moments);
}

#[test]
fn moments_survive_a_large_offset() {
    for (shape, axis) in [([1000, 40, 1], 1), ([10, 3, 1000], 1)] {
        let values: Vec<f64> = random(shape.iter().product(), 8).iter().map(|x| 1000.0 + x * 0.01).collect();
        let x = Host::<f32>::new(&shape, &values);
        let channels = shape[axis];
        let (mut mean, mut variance) = (wide::<f32>(&[channels]), wide::<f32>(&[channels]));
        moments(x.view(), axis, mean.out(), variance.out());
        for (c, values) in by_channel(&x.values(), &shape, axis).iter().enumerate() {
            let expected = mean_and_variance(values);
            assert!((mean.values()[c] / expected.0 - 1.0).abs() < 1e-7);
            assert!((variance.values()[c] / expected.1 - 1.0).abs() < 1e-5, "{expected:?}");
        }
    }
}

#[test]
fn moments_do_not_depend_on_threads_or_vectors() {
    for (shape, axis) in [([9001, 16], 1), ([40_000, 64], 1), ([16, 9001], 0)] {
        let x = Host::<f32>::random(&shape, 5);
        let found = |threads, level| {
            let _turn = with_threads(threads);
            simd::restrict(level);
            let (mut mean, mut variance) = (wide::<f32>(&[shape[axis]]), wide::<f32>(&[shape[axis]]));
            moments(x.view(), axis, mean.out(), variance.out());
            simd::restrict(simd::Level::Avx512);
            (mean.data, variance.data)
        };
        let expected = found(1, simd::Level::Avx512);
        assert_eq!(found(3, simd::Level::Avx512), expected);
        assert_eq!(found(2, simd::Level::Avx2), expected);
        assert_eq!(found(2, simd::Level::Baseline), expected);
    }
}

#[test]
fn moments_of_nothing_are_nan_and_infinities_pass() {
    let (mut mean, mut variance) = (wide::<f32>(&[2]), wide::<f32>(&[2]));
    for shape in [[0, 2, 1], [3, 2, 0]] {
        moments(Host::<f32>::new(&shape, &[]).view(), 1, mean.out(), variance.out());
        assert!(mean.data.iter().chain(&variance.data).all(|x| x.is_nan()));
    }
    let mut x = Host::<f32>::random(&[2000, 2], 4);
    x.data[0] = f32::INFINITY;
    x.data[1] = f32::NAN;
    moments(x.view(), 1, mean.out(), variance.out());
    assert!(mean.data[0] == f32::INFINITY && mean.data[1].is_nan());
    assert!(variance.data.iter().all(|x| x.is_nan()));
    // In a row that does not fill the lanes.
    let mut x = Host::<f32>::random(&[2001, 2], 4);
    x.data[4000] = f32::INFINITY;
    x.data[4001] = f32::NAN;
    moments(x.view(), 1, mean.out(), variance.out());
    assert!(mean.data[0] == f32::INFINITY && mean.data[1].is_nan());
    assert!(variance.data.iter().all(|x| x.is_nan()));
}

const EPS: f64 = 1e-3;

fn check_layer_norm<T: Stored>() {
    let cases: [(&[usize], usize); 7] = [
        (&[4], 1),
        (&[3, 1], 1),
        (&[2, 5, 7], 1),
        (&[2, 5, 7], 2),
        (&[3, 1300], 1),
        (&[0, 5], 1),
        (&[40, 600], 1),
    ];
    for (shape, axes) in cases {
        let (outer, row) = shape.split_at(shape.len() - axes);
        let (rows, n): (usize, usize) = (outer.iter().product(), row.iter().product());
        for scattered in [false, true] {
            let make = if scattered { Host::<T>::scattered } else { Host::<T>::random };
            let (x, gamma, beta) = (make(shape, 1), make(row, 2), make(row, 3));
            for affine in [false, true] {
                let (g, b) = (affine.then(|| gamma.view()), affine.then(|| beta.view()));
                let mut out = Host::<T>::random(shape, 9);
                let (mut mean, mut rstd) = (wide::<T>(outer), wide::<T>(outer));
                layer_norm(x.arg(), axes, g, b, EPS, out.out(), Some(mean.out()), Some(rstd.out()));
                let mut rms = Host::<T>::random(shape, 9);
                let mut rms_rstd = wide::<T>(outer);
                rms_norm(x.arg(), axes, g, EPS, rms.out(), Some(rms_rstd.out()));
                let (values, gammas, betas) = (x.values(), gamma.values(), beta.values());
                let (found, found_rms) = (out.values(), rms.values());
                for r in 0..rows {
                    let row = &values[r * n..][..n];
                    let (m, v) = mean_and_variance(row);
                    let scale = 1.0 / (v + EPS).sqrt();
                    assert_near(&[mean.values()[r], rstd.values()[r]], &[m, scale], 3e-6);
                    let square = row.iter().map(|x| x * x).sum::<f64>() / n as f64;
                    let rms_scale = 1.0 / (square + EPS).sqrt();
                    assert_near(&[rms_rstd.values()[r]], &[rms_scale], 3e-6);
                    let factor = |i: usize| if affine { gammas[i] } else { 1.0 };
                    let term = |i: usize| if affine { betas[i] } else { 0.0 };
                    let expected: Vec<f64> =
                        (0..n).map(|i| (row[i] - m) * scale * factor(i) + term(i)).collect();
                    assert_near(&found[r * n..][..n], &expected, 3.0 * tolerance::<T>());
                    let expected: Vec<f64> = (0..n).map(|i| row[i] * rms_scale * factor(i)).collect();
                    assert_near(&found_rms[r * n..][..n], &expected, 3.0 * tolerance::<T>());
                }
                let mut in_place = x.contiguous();
                layer_norm(Arg::InPlace(0), axes, g, b, EPS, in_place.out(), None, None);
                assert_same(&in_place, &out);
            }
        }
    }
}

#[test]
fn layer_and_rms_norm_match_the_formula() {
    for_floats!(check_layer_norm);
}

#[test]
fn layer_norm_survives_a_large_offset() {
    let values: Vec<f64> = random(3000, 8).iter().map(|x| 1e4 + x).collect();
    let x = Host::<f32>::new(&[1, 3000], &values);
    let mut out = Host::<f32>::random(&[1, 3000], 1);
    layer_norm(x.arg(), 1, None, None, 0.0, out.out(), None, None);
    let (m, v) = mean_and_variance(&x.values());
    let expected: Vec<f64> = x.values().iter().map(|x| (x - m) / v.sqrt()).collect();
    assert_near(&out.values(), &expected, 1e-6);
}

#[test]
fn a_constant_row_normalises_to_zero() {
    let x = Host::<f32>::new(&[2, 1000], &[0.1; 2000]);
    let mut out = Host::<f32>::random(&[2, 1000], 1);
    layer_norm(x.arg(), 1, None, None, 1e-12, out.out(), None, None);
    assert!(out.data.iter().all(|x| x.abs() < 1e-2), "{:?}", &out.data[..3]);
}

#[test]
fn rows_without_elements_have_no_statistics() {
    let x = Host::<f64>::new(&[3, 0], &[]);
    let mut out = x.clone();
    let (mut mean, mut rstd) = (wide::<f64>(&[3]), wide::<f64>(&[3]));
    layer_norm(x.arg(), 1, None, None, EPS, out.out(), Some(mean.out()), Some(rstd.out()));
    assert!(mean.data.iter().chain(&rstd.data).all(|x| x.is_nan()));
}

fn check_apply<T: Stored>() {
    let cases: [(&[usize], usize); 8] = [
        (&[5], 0),
        (&[50, 3], 1),
        (&[9, 300], 1),
        (&[3, 1300], 1),
        (&[2, 3, 49], 1),
        (&[2, 3, 1100], 1),
        (&[4, 2, 3], 0),
        (&[2, 0, 3], 1),
    ];
    for (shape, axis) in cases {
        let channels = shape[axis];
        for scattered in [false, true] {
            let make = if scattered { Host::<T>::scattered } else { Host::<T>::random };
            let (x, gamma, beta) = (make(shape, 1), make(&[channels], 2), make(&[channels], 3));
            let (mean, rstd) =
                (Host::<T::Wide>::scattered(&[channels], 4), Host::<T::Wide>::random(&[channels], 5));
            let mut out = Host::<T>::random(shape, 9);
            let (g, b) = (Some(gamma.view()), Some(beta.view()));
            normalize_apply(x.arg(), axis, mean.view(), rstd.view(), g, b, out.out());
            let (_, _, inner) = around(shape, axis);
            let (m, s, g, b) = (mean.values(), rstd.values(), gamma.values(), beta.values());
            let at = |i: usize| i / inner % channels;
            let expected: Vec<f64> = x
                .values()
                .iter()
                .enumerate()
                .map(|(i, x)| (x - m[at(i)]) * s[at(i)] * g[at(i)] + b[at(i)])
                .collect();
            assert_near(&out.values(), &expected, 8.0 * tolerance::<T>());
            let mut in_place = x.contiguous();
            let (g, b) = (Some(gamma.view()), Some(beta.view()));
            normalize_apply(Arg::InPlace(0), axis, mean.view(), rstd.view(), g, b, in_place.out());
            assert_same(&in_place, &out);
        }
    }
}

#[test]
fn normalize_apply_matches_the_formula() {
    for_floats!(check_apply);
}

fn check_group_norm<T: Stored>() {
    let cases: [(&[usize], usize, usize); 8] = [
        (&[2, 6], 1, 3),
        (&[2, 40, 70], 2, 10),
        (&[2, 6, 5], 1, 2),
        (&[2, 4, 700], 1, 2),
        (&[2, 3, 4, 6], 3, 2),
        (&[1, 30, 1200], 2, 1),
        (&[3, 2, 4, 5], 2, 4),
        (&[0, 4, 3], 1, 2),
    ];
    for (shape, axis, groups) in cases {
        let channels = shape[axis];
        let (batch, width) = (shape[0], channels / groups);
        for scattered in [false, true] {
            let make = if scattered { Host::<T>::scattered } else { Host::<T>::random };
            let (x, gamma, beta) = (make(shape, 1), make(&[channels], 2), make(&[channels], 3));
            let mut out = Host::<T>::random(shape, 9);
            let (mut mean, mut rstd) = (wide::<T>(&[batch, groups]), wide::<T>(&[batch, groups]));
            let (g, b) = (Some(gamma.view()), Some(beta.view()));
            let (mean_out, rstd_out) = (Some(mean.out()), Some(rstd.out()));
            group_norm(x.arg(), axis, groups, g, b, EPS, out.out(), mean_out, rstd_out);
            let (values, found) = (x.values(), out.values());
            let (gammas, betas) = (gamma.values(), beta.values());
            let (_, _, inner) = around(shape, axis);
            let sample_len: usize = shape[1..].iter().product();
            for group in 0..batch * groups {
                let members: Vec<usize> = (0..sample_len)
                    .map(|i| group / groups * sample_len + i)
                    .filter(|i| i / inner % channels / width == group % groups)
                    .collect();
                let (m, v) = mean_and_variance(&members.iter().map(|&i| values[i]).collect::<Vec<_>>());
                let scale = 1.0 / (v + EPS).sqrt();
                assert_near(&[mean.values()[group], rstd.values()[group]], &[m, scale], 3e-6);
                for i in members {
                    let c = i / inner % channels;
                    let expected = (values[i] - m) * scale * gammas[c] + betas[c];
                    assert_near(&[found[i]], &[expected], 3.0 * tolerance::<T>());
                }
            }
            let mut in_place = x.contiguous();
            group_norm(Arg::InPlace(0), axis, groups, g, b, EPS, in_place.out(), None, None);
            assert_same(&in_place, &out);
        }
    }
}

#[test]
fn group_norm_matches_the_formula() {
    for_floats!(check_group_norm);
}

#[test]
fn normalisations_do_not_depend_on_the_number_of_threads() {
    let shape = [64, 40, 50];
    let x = Host::<f32>::random(&shape, 5);
    same_on_any_threads(|| {
        let mut out = Host::<f32>::random(&shape, 6);
        layer_norm(x.arg(), 2, None, None, EPS, out.out(), None, None);
        let layer = out.data.clone();
        group_norm(x.arg(), 2, 5, None, None, EPS, out.out(), None, None);
        let group = out.data.clone();
        let (mut mean, mut variance) = (wide::<f32>(&[50]), wide::<f32>(&[50]));
        moments(x.view(), 2, mean.out(), variance.out());
        let (mut middle, mut spread) = (wide::<f32>(&[40]), wide::<f32>(&[40]));
        moments(x.view(), 1, middle.out(), spread.out());
        normalize_apply(x.arg(), 2, mean.view(), variance.view(), None, None, out.out());
        [layer, group, mean.data, variance.data, middle.data, spread.data, out.data]
    });
}
