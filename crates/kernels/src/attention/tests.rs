use super::*;
use crate::norm::tests::{Host, assert_near, for_floats, random, same_on_any_threads, tolerance};
use crate::random::{Key, bernoulli};

/// What attention is, in `f64`: output and log-sum-exp.
fn naive(
    q: &Host<impl Element>,
    k: &Host<impl Element>,
    v: &Host<impl Element>,
    allowed: impl Fn(usize, usize, usize, usize) -> f64,
    scale: f64,
) -> (Vec<f64>, Vec<f64>) {
    naive_dropped(q, k, v, allowed, scale, &[])
}

/// As [`naive`], with a factor per probability; none is 1.
fn naive_dropped(
    q: &Host<impl Element>,
    k: &Host<impl Element>,
    v: &Host<impl Element>,
    allowed: impl Fn(usize, usize, usize, usize) -> f64,
    scale: f64,
    factors: &[f64],
) -> (Vec<f64>, Vec<f64>) {
    let sizes = Sizes::new(&q.shape, &k.shape, &v.shape);
    let Sizes { batch, heads, shared, queries, keys, depth, width } = sizes;
    let (q, k, v) = (q.values(), k.values(), v.values());
    let (mut out, mut lse) = (Vec::new(), Vec::new());
    for row in 0..batch * heads * queries {
        let (b, h, i) = (row / queries / heads, row / queries % heads, row % queries);
        let base = (b * shared + h / (heads / shared)) * keys;
        let scores: Vec<f64> = (0..keys)
            .map(|j| {
                let dot: f64 = (0..depth).map(|c| q[row * depth + c] * k[(base + j) * depth + c]).sum();
                dot * scale + allowed(b, h, i, j)
            })
            .collect();
        let max = scores.iter().fold(f64::NEG_INFINITY, |m, &s| m.max(s));
        let weights: Vec<f64> =
            scores.iter().map(|s| if max == f64::NEG_INFINITY { 0.0 } else { (s - max).exp() }).collect();
        let sum: f64 = weights.iter().sum();
        for c in 0..width {
            let factor = |j: usize| factors.get(row * keys + j).copied().unwrap_or(1.0);
            let total: f64 = (0..keys).map(|j| weights[j] * factor(j) * v[(base + j) * width + c]).sum();
            out.push(if sum == 0.0 { 0.0 } else { total / sum });
        }
        lse.push(if sum == 0.0 { f64::NEG_INFINITY } else { max + sum.ln() });
    }
    (out, lse)
}

fn compute<T: Stored>(
    inputs: [&Host<T>; 3],
    mask: Option<View<'_>>,
    causal: bool,
    scale: f64,
) -> (Host<T>, Host<T::Wide>) {
    compute_dropped(inputs, mask, causal, scale, None)
}

fn compute_dropped<T: Stored>(
    [q, k, v]: [&Host<T>; 3],
    mask: Option<View<'_>>,
    causal: bool,
    scale: f64,
    dropout: Option<AttentionDropout>,
) -> (Host<T>, Host<T::Wide>) {
    let sizes = Sizes::new(&q.shape, &k.shape, &v.shape);
    let mut out = Host::<T>::random(&[sizes.batch, sizes.heads, sizes.queries, sizes.width], 5);
    let mut lse = Host::<T::Wide>::random(&[sizes.batch, sizes.heads, sizes.queries], 6);
    let bytes = attention_scratch(T::DTYPE, &q.shape, &k.shape, &v.shape);
    let mut scratch = vec![f64::NAN; bytes.div_ceil(8)];
    let scratch = &mut bytemuck::cast_slice_mut(&mut scratch)[..bytes];
    attention(q.view(), k.view(), v.view(), mask, causal, scale, dropout, out.out(), lse.out(), scratch);
    (out, lse)
}

fn check<T: Stored>([q, k, v]: [&Host<T>; 3], causal: bool, scale: f64) {
    let (out, lse) = compute([q, k, v], None, causal, scale);
    let allowed = |_, _, i, j| if causal && j > i { f64::NEG_INFINITY } else { 0.0 };
    let (expected, expected_lse) = naive(q, k, v, allowed, scale);
    assert_near(&out.values(), &expected, 2.0 * tolerance::<T>());
    assert_near(&lse.values(), &expected_lse, 4e-6);
}

/// Batch, heads, key heads, queries, keys, depth, width.
pub(super) const SHAPES: [[usize; 7]; 9] = [
    [1, 1, 1, 1, 1, 1, 1],
    [2, 2, 2, 5, 7, 4, 3],
    [1, 4, 2, 3, 300, 8, 8],
    [1, 2, 1, 130, 131, 5, 6],
    [2, 3, 1, 70, 20, 16, 1],
    [1, 1, 1, 4, 0, 3, 2],
    [0, 2, 1, 4, 3, 3, 2],
    [1, 2, 1, 0, 3, 3, 2],
    [1, 2, 2, 3, 4, 0, 2],
];

pub(super) fn hosts<T: Element>(shape: [usize; 7], scattered: bool) -> [Host<T>; 3] {
    let [b, h, g, n, m, d, e] = shape;
    let make = if scattered { Host::<T>::scattered } else { Host::<T>::random };
    [make(&[b, h, n, d], 1), make(&[b, g, m, d], 2), make(&[b, g, m, e], 3)]
}

fn check_all<T: Stored>() {
    for shape in SHAPES {
        for scattered in [false, true] {
            let [q, k, v] = hosts::<T>(shape, scattered);
            check([&q, &k, &v], false, 0.5);
            check([&q, &k, &v], true, 0.3);
        }
    }
}

#[test]
fn attention_matches_the_formula() {
    for_floats!(check_all);
}

fn check_masks<T: Stored>() {
    for shape in &SHAPES[..5] {
        let [b, h, _, n, m, ..] = *shape;
        let [q, k, v] = hosts::<T>(*shape, false);
        let keep: Vec<f64> = random(b * n * m, 8).iter().map(|x| f64::from(*x > -0.8)).collect();
        // One mask for all heads.
        let bools = Host::<Bool>::new(&[b, 1, n, m], &keep);
        let shape = [b, h, n, m];
        let strides = [bools.strides[0], 0, bools.strides[2], bools.strides[3]];
        let data: &[u8] = bytemuck::cast_slice(&bools.data);
        let view = View::new(DType::Bool, data, 0, &shape, &strides);
        for causal in [false, true] {
            let (out, lse) = compute([&q, &k, &v], Some(view), causal, 0.5);
            let allowed = |b: usize, _, i: usize, j: usize| {
                let keep = keep[(b * n + i) * m + j] == 1.0 && !(causal && j > i);
                if keep { 0.0 } else { f64::NEG_INFINITY }
            };
            let (expected, expected_lse) = naive(&q, &k, &v, allowed, 0.5);
            assert_near(&out.values(), &expected, 2.0 * tolerance::<T>());
            assert_near(&lse.values(), &expected_lse, 4e-6);
        }
        // One row of terms for all queries, backwards.
        let terms = Host::<T>::scattered(&[m], 9);
        let strides = [0, 0, 0, terms.strides[0]];
        let view = View::new(T::DTYPE, bytemuck::cast_slice(&terms.data), terms.offset, &shape, &strides);
        let (out, _) = compute([&q, &k, &v], Some(view), false, 0.5);
        let values = terms.values();
        let (expected, _) = naive(&q, &k, &v, |_, _, _, j| values[j], 0.5);
        assert_near(&out.values(), &expected, 2.0 * tolerance::<T>());
    }
}

#[test]
fn masks_are_boolean_or_additive_and_broadcast() {
    for_floats!(check_masks);
}

#[test]
fn queries_that_see_nothing_give_zeros() {
    let [q, k, v] = hosts::<f32>([1, 1, 1, 3, 200, 4, 2], false);
    let mut keep = vec![1.0; 3 * 200];
    keep[200..400].fill(0.0);
    let bools = Host::<Bool>::new(&[1, 1, 3, 200], &keep);
    let (out, lse) = compute([&q, &k, &v], Some(bools.view()), false, 1.0);
    assert_eq!(out.data[2..4], [0.0, 0.0]);
    assert_eq!(lse.data[1], f32::NEG_INFINITY);
    assert!(lse.data[0].is_finite() && lse.data[2].is_finite());
    let minus = Host::<f32>::new(&[1, 1, 3, 200], &[f64::NEG_INFINITY; 600]);
    let (out, lse) = compute([&q, &k, &v], Some(minus.view()), false, 1.0);
    assert!(out.data.iter().all(|&x| x == 0.0) && lse.data.iter().all(|&x| x == f32::NEG_INFINITY));
}

#[test]
fn nan_reaches_the_rows_it_concerns() {
    let [mut q, k, v] = hosts::<f32>([1, 1, 1, 3, 200, 4, 2], false);
    q.data[4] = f32::NAN;
    let (out, lse) = compute([&q, &k, &v], None, false, 1.0);
    let nan: Vec<bool> = out.data.iter().map(|x| x.is_nan()).collect();
    assert_eq!(nan, [false, false, true, true, false, false]);
    assert!(lse.data[1].is_nan());
}

#[test]
fn huge_scores_do_not_overflow() {
    // One key stands out by far more than the exponential's range: the result is its value.
    let q = Host::<f32>::new(&[1, 1, 2, 1], &[1.0, -1.0]);
    let keys: Vec<f64> = (0..300).map(|j| f64::from(j) * 1e3).collect();
    let k = Host::<f32>::new(&[1, 1, 300, 1], &keys);
    let v = Host::<f32>::new(&[1, 1, 300, 1], &(0..300).map(f64::from).collect::<Vec<_>>());
    let (out, lse) = compute([&q, &k, &v], None, false, 1.0);
    assert_eq!((out.data, lse.data), (vec![299.0, 0.0], vec![299e3, 0.0]));
}

#[test]
fn attention_does_not_depend_on_the_number_of_threads() {
    let [q, k, v] = hosts::<f32>([2, 3, 1, 200, 150, 16, 16], false);
    same_on_any_threads(|| {
        let (out, lse) = compute([&q, &k, &v], None, true, 0.25);
        (out.data, lse.data)
    });
}

#[test]
fn workspace_does_not_grow_with_the_number_of_keys() {
    let bytes = |m: usize| attention_scratch(DType::F32, &[1, 1, 64, 64], &[1, 1, m, 64], &[1, 1, m, 64]);
    assert_eq!(bytes(1000), bytes(1_000_000));
}

/// Dropout, and the factor of each of `len` weights.
pub(super) fn dropout(rate: f64, len: usize) -> (AttentionDropout, Vec<f64>) {
    let dropout = AttentionDropout { rate, key: Key { seed: 3, op: 5 }, first: 7 };
    let mut kept = vec![Bool::FALSE; len];
    let bytes = bytemuck::cast_slice_mut(&mut kept);
    bernoulli(dropout.key, dropout.first, 1.0 - rate, ViewMut::new(DType::Bool, bytes, &[len]));
    (dropout, kept.iter().map(|kept| if kept.get() { 1.0 / (1.0 - rate) } else { 0.0 }).collect())
}

fn check_dropout<T: Stored>() {
    for shape in SHAPES {
        let [b, h, _, n, m, ..] = shape;
        let [q, k, v] = hosts::<T>(shape, false);
        for (rate, causal) in [(0.5, false), (0.2, true), (0.0, false)] {
            let (dropout, factors) = dropout(rate, b * h * n * m);
            let (out, lse) = compute_dropped([&q, &k, &v], None, causal, 0.4, Some(dropout));
            let allowed = |_, _, i, j| if causal && j > i { f64::NEG_INFINITY } else { 0.0 };
            let (expected, expected_lse) = naive_dropped(&q, &k, &v, allowed, 0.4, &factors);
            assert_near(&out.values(), &expected, 4.0 * tolerance::<T>());
            assert_near(&lse.values(), &expected_lse, 4e-6);
        }
    }
}

#[test]
fn dropped_weights_are_those_of_bernoulli_at_their_position() {
    for_floats!(check_dropout);
}

#[test]
fn dropout_does_not_depend_on_the_number_of_threads() {
    let [q, k, v] = hosts::<f32>([2, 3, 1, 200, 150, 16, 16], false);
    let (dropout, _) = dropout(0.3, 0);
    same_on_any_threads(|| compute_dropped([&q, &k, &v], None, true, 0.25, Some(dropout)).0.data);
}
