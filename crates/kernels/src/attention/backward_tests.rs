use super::tests::{SHAPES, dropout, hosts};
use super::*;
use crate::norm::tests::{Host, assert_near, for_floats, random, same_on_any_threads, tolerance};

/// What the gradient reads.
struct Case<T: Stored> {
    inputs: [Host<T>; 3],
    g: Host<T>,
    statistics: [Host<T::Wide>; 2],
}

impl<T: Stored> Case<T> {
    fn new(shape: [usize; 7], scattered: bool) -> Case<T> {
        let [b, h, _, n, _, _, e] = shape;
        let g = if scattered { Host::scattered(&[b, h, n, e], 4) } else { Host::random(&[b, h, n, e], 4) };
        let statistics = [5, 6].map(|seed| Host::random(&[b, h, n], seed));
        Case { inputs: hosts(shape, scattered), g, statistics }
    }

    fn sizes(&self) -> Sizes {
        let [q, k, v] = &self.inputs;
        Sizes::new(&q.shape, &k.shape, &v.shape)
    }

    /// The gradients; those that are not wanted are empty.
    fn compute(&self, mask: Option<View<'_>>, causal: bool, scale: f64, wanted: [bool; 3]) -> [Host<T>; 3] {
        self.compute_dropped(mask, causal, scale, None, wanted)
    }

    fn compute_dropped(
        &self,
        mask: Option<View<'_>>,
        causal: bool,
        scale: f64,
        dropout: Option<AttentionDropout>,
        wanted: [bool; 3],
    ) -> [Host<T>; 3] {
        let [q, k, v] = &self.inputs;
        let mut out = [0, 1, 2].map(|i| {
            let shape = if wanted[i] { &self.inputs[i].shape[..] } else { &[0] };
            Host::<T>::random(shape, 9)
        });
        let bytes = attention_gradient_scratch(T::DTYPE, &q.shape, &k.shape, &v.shape);
        let mut scratch = vec![f64::NAN; bytes.div_ceil(8)];
        let scratch = &mut bytemuck::cast_slice_mut(&mut scratch)[..bytes];
        let [lse, delta] = self.statistics.each_ref().map(Host::view);
        let (q, k, v, g) = (q.view(), k.view(), v.view(), self.g.view());
        let call = AttentionCall { q, k, v, mask, causal, scale, dropout, g, lse, delta };
        let [dq, dk, dv] = out.each_mut();
        let outputs = [dq, dk, dv];
        let mut wanted = wanted.into_iter();
        let outputs = outputs.map(|out| wanted.next().unwrap_or(false).then(|| out.out()));
        attention_gradient(&call, outputs, scratch);
        out
    }

    /// The formula, in `f64`, with `allowed` added to the scores.
    fn naive(&self, allowed: impl Fn(usize, usize, usize, usize) -> f64, scale: f64) -> [Vec<f64>; 3] {
        self.naive_dropped(allowed, scale, &[])
    }

    /// As [`Case::naive`], with a factor per probability; none is 1.
    fn naive_dropped(
        &self,
        allowed: impl Fn(usize, usize, usize, usize) -> f64,
        scale: f64,
        factors: &[f64],
    ) -> [Vec<f64>; 3] {
        let Sizes { batch, heads, shared, queries, keys, depth, width } = self.sizes();
        let [q, k, v] = self.inputs.each_ref().map(Host::values);
        let (g, [lse, delta]) = (self.g.values(), self.statistics.each_ref().map(Host::values));
        let mut out = [vec![0.0; q.len()], vec![0.0; k.len()], vec![0.0; v.len()]];
        for row in 0..batch * heads * queries {
            let (b, h, i) = (row / queries / heads, row / queries % heads, row % queries);
            let base = (b * shared + h / (heads / shared)) * keys;
            for j in 0..keys {
                let key = base + j;
                let score: f64 = (0..depth).map(|c| q[row * depth + c] * k[key * depth + c]).sum();
                let p = (score * scale + allowed(b, h, i, j) - lse[row]).exp();
                let of_weight: f64 = (0..width).map(|c| g[row * width + c] * v[key * width + c]).sum();
                let factor = factors.get(row * keys + j).copied().unwrap_or(1.0);
                let ds = p * (factor * of_weight - delta[row]) * scale;
                for c in 0..depth {
                    out[0][row * depth + c] += ds * k[key * depth + c];
                    out[1][key * depth + c] += ds * q[row * depth + c];
                }
                for c in 0..width {
                    out[2][key * width + c] += factor * p * g[row * width + c];
                }
            }
        }
        out
    }
}

/// Fails unless gradients agree, up to rounding of the largest sums.
fn assert_gradients<T: Stored>(found: &[Host<T>; 3], expected: &[Vec<f64>; 3]) {
    for (found, expected) in found.iter().zip(expected) {
        let largest = expected.iter().fold(1.0f64, |max, x| max.max(x.abs()));
        let scaled = |values: &[f64]| values.iter().map(|x| x / largest).collect::<Vec<_>>();
        assert_near(&scaled(&found.values()), &scaled(expected), 4.0 * tolerance::<T>());
    }
}

fn check_all<T: Stored>() {
    for shape in SHAPES {
        for scattered in [false, true] {
            let case = Case::<T>::new(shape, scattered);
            for causal in [false, true] {
                let allowed = |_, _, i, j| if causal && j > i { f64::NEG_INFINITY } else { 0.0 };
                let found = case.compute(None, causal, 0.3, [true; 3]);
                assert_gradients(&found, &case.naive(allowed, 0.3));
            }
        }
    }
}

#[test]
fn gradients_match_the_formula() {
    for_floats!(check_all);
}

fn check_masks<T: Stored>() {
    for shape in &SHAPES[..5] {
        let [b, h, _, n, m, ..] = *shape;
        let case = Case::<T>::new(*shape, false);
        let keep: Vec<f64> = random(b * n * m, 8).iter().map(|x| f64::from(*x > -0.8)).collect();
        // One mask for all heads.
        let bools = Host::<Bool>::new(&[b, 1, n, m], &keep);
        let full = [b, h, n, m];
        let strides = [bools.strides[0], 0, bools.strides[2], bools.strides[3]];
        let view = View::new(DType::Bool, bytemuck::cast_slice(&bools.data), 0, &full, &strides);
        let allowed = |b: usize, _, i: usize, j: usize| {
            if keep[(b * n + i) * m + j] == 1.0 { 0.0 } else { f64::NEG_INFINITY }
        };
        let found = case.compute(Some(view), false, 0.3, [true; 3]);
        assert_gradients(&found, &case.naive(allowed, 0.3));
        // One row of terms for all queries, backwards.
        let terms = Host::<T>::scattered(&[m], 9);
        let strides = [0, 0, 0, terms.strides[0]];
        let view = View::new(T::DTYPE, bytemuck::cast_slice(&terms.data), terms.offset, &full, &strides);
        let values = terms.values();
        let found = case.compute(Some(view), false, 0.3, [true; 3]);
        assert_gradients(&found, &case.naive(|_, _, _, j| values[j], 0.3));
    }
}

#[test]
fn masks_apply_to_gradients() {
    for_floats!(check_masks);
}

#[test]
fn gradients_that_are_not_wanted_change_no_others() {
    let case = Case::<f32>::new([2, 4, 2, 130, 140, 8, 6], false);
    let all = case.compute(None, true, 0.3, [true; 3]);
    for wanted in 1..7 {
        let wanted = [0, 1, 2].map(|i| wanted >> i & 1 == 1);
        let some = case.compute(None, true, 0.3, wanted);
        for i in (0..3).filter(|&i| wanted[i]) {
            assert_eq!(some[i].data, all[i].data, "gradient {i} of {wanted:?}");
        }
    }
}

#[test]
fn queries_without_keys_have_no_gradient() {
    let mut case = Case::<f32>::new([1, 1, 1, 3, 200, 4, 2], false);
    case.statistics[0].data[1] = f32::NEG_INFINITY;
    let mut keep = vec![1.0; 600];
    keep[200..400].fill(0.0);
    let bools = Host::<Bool>::new(&[1, 1, 3, 200], &keep);
    let [dq, dk, dv] = case.compute(Some(bools.view()), false, 1.0, [true; 3]);
    assert_eq!(dq.data[4..8], [0.0; 4]);
    assert!([dq, dk, dv].iter().all(|out| out.data.iter().all(|x| x.is_finite())));
}

fn check_threads<T: Stored + PartialEq>() {
    // Whole heads per thread with one thread and with many heads; blocks with few heads and four threads.
    for shape in [[2, 3, 1, 200, 150, 16, 16], [4, 8, 8, 70, 140, 16, 16], [1, 1, 1, 300, 400, 32, 16]] {
        let case = Case::<T>::new(shape, false);
        same_on_any_threads(|| case.compute(None, true, 0.25, [true; 3]).map(|out| out.data));
    }
}

#[test]
fn gradients_do_not_depend_on_the_number_of_threads() {
    for_floats!(check_threads);
}

#[test]
fn workspace_grows_neither_with_queries_nor_with_keys() {
    let bytes = |n: usize, m: usize| {
        attention_gradient_scratch(DType::F32, &[1, 1, n, 64], &[1, 1, m, 64], &[1, 1, m, 64])
    };
    assert_eq!(bytes(1000, 1000), bytes(1_000_000, 1_000_000));
    // Two tiles of 64 queries by 128 keys per thread.
    assert_eq!(bytes(1000, 1000), pool::threads().min(16) * 2 * 64 * 128 * 4);
}

fn check_dropout<T: Stored>() {
    for shape in SHAPES {
        let [b, h, _, n, m, ..] = shape;
        let case = Case::<T>::new(shape, false);
        for (rate, causal) in [(0.5, false), (0.2, true)] {
            let (dropout, factors) = dropout(rate, b * h * n * m);
            let allowed = |_, _, i, j| if causal && j > i { f64::NEG_INFINITY } else { 0.0 };
            let expected = case.naive_dropped(allowed, 0.3, &factors);
            let found = case.compute_dropped(None, causal, 0.3, Some(dropout), [true; 3]);
            assert_gradients(&found, &expected);
            // The values alone, for which no gradients of scores are computed.
            let [.., found] = case.compute_dropped(None, causal, 0.3, Some(dropout), [false, false, true]);
            assert_gradients(
                &[Host::random(&[0], 1), Host::random(&[0], 1), found],
                &[vec![], vec![], expected[2].clone()],
            );
        }
    }
}

#[test]
fn gradients_of_dropped_weights_match_the_formula() {
    for_floats!(check_dropout);
}

#[test]
fn gradients_of_dropped_weights_do_not_depend_on_the_number_of_threads() {
    for shape in [[2, 3, 1, 200, 150, 16, 16], [4, 8, 8, 70, 140, 16, 16], [1, 1, 1, 300, 400, 32, 16]] {
        let case = Case::<f32>::new(shape, false);
        let (dropout, _) = dropout(0.3, 0);
        same_on_any_threads(|| {
            case.compute_dropped(None, true, 0.25, Some(dropout), [true; 3]).map(|out| out.data)
        });
    }
}
