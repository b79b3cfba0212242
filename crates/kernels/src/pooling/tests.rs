use super::*;
use crate::conv::testing::*;
use crate::dtype::DType;

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

fn params(
    layout: Layout,
    window: &[usize],
    strides: &[usize],
    dilations: &[usize],
    padding: &[(usize, usize)],
) -> PoolParams {
    let mut p = PoolParams {
        layout,
        rank: window.len(),
        window: [0; 3],
        strides: [0; 3],
        dilations: [0; 3],
        padding: [(0, 0); 3],
    };
    p.window[..p.rank].copy_from_slice(window);
    p.strides[..p.rank].copy_from_slice(strides);
    p.dilations[..p.rank].copy_from_slice(dilations);
    p.padding[..p.rank].copy_from_slice(padding);
    p
}

/// Windows, their strides, dilations and padding, and the spatial size of the input.
fn cases() -> Vec<(PoolParams, Vec<usize>)> {
    use Layout::{ChannelsFirst as First, ChannelsLast as Last};
    let mut cases = Vec::new();
    for layout in [Last, First] {
        let mut add = |w: &[usize], s: &[usize], d: &[usize], p: &[(usize, usize)], size: &[usize]| {
            cases.push((params(layout, w, s, d, p), size.to_vec()));
        };
        add(&[1], &[1], &[1], &[(0, 0)], &[1]);
        add(&[3], &[1], &[1], &[(1, 1)], &[70]);
        add(&[3], &[2], &[2], &[(4, 1)], &[9]);
        add(&[2, 2], &[2, 2], &[1, 1], &[(0, 0); 2], &[6, 7]);
        add(&[3, 2], &[2, 1], &[1, 2], &[(1, 1), (0, 2)], &[5, 6]);
        add(&[3, 3], &[1, 1], &[1, 1], &[(1, 1), (1, 1)], &[5, 5]);
        add(&[2, 3], &[4, 5], &[1, 1], &[(0, 1), (2, 0)], &[9, 11]);
        add(&[2, 1, 3], &[1, 2, 2], &[2, 1, 1], &[(1, 0), (0, 0), (1, 1)], &[4, 3, 5]);
        add(&[17, 16], &[2, 1], &[1, 1], &[(8, 8), (7, 8)], &[3, 4]);
    }
    cases
}

fn shape(p: &PoolParams, n: usize, spatial: &[usize], c: usize) -> Vec<usize> {
    let mut shape = vec![n];
    if p.layout == Layout::ChannelsFirst {
        shape.push(c);
    }
    shape.extend(spatial);
    if p.layout == Layout::ChannelsLast {
        shape.push(c);
    }
    shape
}

fn out_spatial(p: &PoolParams, spatial: &[usize]) -> Vec<usize> {
    (0..p.rank)
        .map(|i| output_size(spatial[i], p.window[i], p.strides[i], p.dilations[i], p.padding[i]).unwrap())
        .collect()
}

/// Calls `visit(output element, input elements of its window in order)`.
fn windows(p: &PoolParams, x: &Array, out: &[usize], mut visit: impl FnMut(usize, &[usize])) {
    let spatial = if p.layout == Layout::ChannelsLast { 1 } else { 2 };
    let taps: usize = p.window[..p.rank].iter().product();
    for element in 0..out.iter().product() {
        let mut index = vec![0; out.len()];
        let mut rest = element;
        for d in (0..out.len()).rev() {
            index[d] = rest % out[d];
            rest /= out[d];
        }
        let mut inside = Vec::new();
        for tap in 0..taps {
            let (mut at, mut rest, mut valid) = (index.clone(), tap, true);
            for d in (0..p.rank).rev() {
                let t = rest % p.window[d];
                rest /= p.window[d];
                let position = index[spatial + d] * p.strides[d] + t * p.dilations[d];
                valid &= position >= p.padding[d].0 && position - p.padding[d].0 < x.shape[spatial + d];
                at[spatial + d] = position.saturating_sub(p.padding[d].0);
            }
            if valid {
                inside.push(x.index(&at));
            }
        }
        visit(element, &inside);
    }
}

fn winner(x: &Array, window: &[usize]) -> Option<usize> {
    let nan = window.iter().copied().find(|&i| x.values[i].is_nan());
    let largest = window.iter().map(|&i| x.values[i]).fold(f64::NEG_INFINITY, f64::max);
    nan.or_else(|| window.iter().copied().find(|&i| x.values[i] == largest))
}

fn naive_max(p: &PoolParams, x: &Array, out: &[usize], lowest: f64) -> Array {
    let mut y = Array::zeros(out);
    windows(p, x, out, |o, window| y.values[o] = winner(x, window).map_or(lowest, |i| x.values[i]));
    y
}

fn naive_average(p: &PoolParams, count_padding: bool, x: &Array, out: &[usize]) -> Array {
    let taps: usize = p.window[..p.rank].iter().product();
    let mut y = Array::zeros(out);
    windows(p, x, out, |o, window| {
        let count = if count_padding { taps } else { window.len() };
        y.values[o] = window.iter().map(|&i| x.values[i]).sum::<f64>() / count.max(1) as f64;
    });
    y
}

#[test]
fn max_matches_enumeration() {
    for (p, spatial) in cases() {
        for (dtype, storage) in FLOATS.into_iter().zip(STORAGES).chain(STORAGES.map(|s| (DType::F32, s))) {
            for channels in [1, 3, 67] {
                let mut x = Array::random(&shape(&p, 2, &spatial, channels), 1);
                let middle = x.values.len() / 2;
                x.values[middle] = f64::NAN;
                x.values[middle / 2] = f64::INFINITY;
                let out = shape(&p, 2, &out_spatial(&p, &spatial), channels);
                let stored = x.store(dtype, storage);
                let got = output(dtype, &out, |y| max(&p, stored.view(), y));
                let want = naive_max(&p, &x, &out, f64::NEG_INFINITY);
                assert_close(&got, &want, 0.0, &format!("{p:?} {dtype} {storage:?}"));
            }
        }
    }
}

#[test]
fn max_of_integers() {
    let p = params(Layout::ChannelsLast, &[2, 3], &[1, 2], &[1, 1], &[(0, 2), (1, 1)]);
    let out = shape(&p, 1, &out_spatial(&p, &[4, 5]), 3);
    for dtype in DType::REAL.into_iter().filter(|d| d.is_integer()) {
        let mut x = Array::random(&[1, 4, 5, 3], 2);
        for v in &mut x.values {
            *v = if dtype.is_signed_integer() { (*v * 8.0).round() } else { (*v * 8.0).round().abs() };
        }
        let lowest = if dtype.is_signed_integer() { -2f64.powi(dtype.size() as i32 * 8 - 1) } else { 0.0 };
        let stored = x.store(dtype, Storage::Reversed);
        let got = output(dtype, &out, |y| max(&p, stored.view(), y));
        assert_close(&got, &naive_max(&p, &x, &out, lowest), 0.0, dtype.name());
    }
}

#[test]
fn average_matches_enumeration() {
    for (p, spatial) in cases() {
        for (dtype, storage) in FLOATS.into_iter().zip(STORAGES) {
            for count_padding in [false, true] {
                let x = Array::random(&shape(&p, 2, &spatial, 66), 3);
                let out = shape(&p, 2, &out_spatial(&p, &spatial), 66);
                let stored = x.store(dtype, storage);
                let got = output(dtype, &out, |y| average(&p, count_padding, stored.view(), y));
                let want = naive_average(&p, count_padding, &x, &out);
                assert_close(&got, &want, epsilon(dtype), &format!("{p:?} {dtype} {count_padding}"));
            }
        }
    }
}

#[test]
fn average_gradient_shares_evenly() {
    for (p, spatial) in cases() {
        for (dtype, storage) in FLOATS.into_iter().zip(STORAGES) {
            for count_padding in [false, true] {
                let x = Array::zeros(&shape(&p, 2, &spatial, 66));
                let dy = Array::random(&shape(&p, 2, &out_spatial(&p, &spatial), 66), 4);
                let taps: usize = p.window[..p.rank].iter().product();
                let mut want = x.clone();
                windows(&p, &x, &dy.shape, |o, window| {
                    let count = if count_padding { taps } else { window.len() };
                    for &i in window {
                        want.values[i] += dy.values[o] / count as f64;
                    }
                });
                let stored = dy.store(dtype, storage);
                let got =
                    output(dtype, &x.shape, |dx| average_gradient(&p, count_padding, stored.view(), dx));
                assert_close(&got, &want, 2.0 * epsilon(dtype), &format!("{p:?} {dtype} {count_padding}"));
            }
        }
    }
}

#[test]
fn max_gradient_goes_to_the_first_maximum() {
    for (p, spatial) in cases() {
        for (i, (dtype, storage)) in FLOATS.into_iter().zip(STORAGES).enumerate() {
            let mut x = Array::random(&shape(&p, 2, &spatial, 67), 5);
            // Few distinct values make ties; negative infinity must be able to win.
            x.values.iter_mut().for_each(|v| *v = v.round());
            x.values.iter_mut().take(200).for_each(|v| *v = f64::NEG_INFINITY);
            let last = x.values.len() - 1;
            x.values[last] = f64::NAN;
            let dy = Array::random(&shape(&p, 2, &out_spatial(&p, &spatial), 67), 6);
            let mut want = Array::zeros(&x.shape);
            windows(&p, &x, &dy.shape, |o, window| {
                if let Some(i) = winner(&x, window) {
                    want.values[i] += dy.values[o];
                }
            });
            let (x, dy) = (x.store(dtype, storage), dy.store(dtype, STORAGES[3 - i]));
            let mut scratch = Scratch::new(max_gradient_scratch(&p, dy.view().shape()));
            let got =
                output(dtype, &want.shape, |dx| max_gradient(&p, x.view(), dy.view(), dx, scratch.bytes()));
            assert_close(&got, &want, epsilon(dtype), &format!("{p:?} {dtype} {storage:?}"));
            let winners = Winners::new(&p, x.view(), dy.view().shape());
            let mut scratch = Scratch::new(winners.len);
            let known = output(dtype, &want.shape, |dx| {
                to_winners(&p, winners.view(), dy.view(), dx, scratch.bytes());
            });
            assert_eq!(known.values, got.values, "{p:?} {dtype} {storage:?}");
        }
    }
}

/// What [`max_winners`] makes.
struct Winners {
    dtype: DType,
    /// Words, so that numbers of any width are aligned.
    words: Vec<u32>,
    len: usize,
    shape: Vec<usize>,
    strides: Vec<isize>,
}

impl Winners {
    fn new(p: &PoolParams, x: View<'_>, shape: &[usize]) -> Winners {
        let dtype = winner_dtype(p);
        let len = shape.iter().product::<usize>() * dtype.size();
        let mut words = vec![0u32; len.div_ceil(4)];
        max_winners(p, x, ViewMut::new(dtype, &mut bytemuck::cast_slice_mut(&mut words)[..len], shape));
        let strides = (0..shape.len()).map(|d| shape[d + 1..].iter().product::<usize>() as isize).collect();
        Winners { dtype, words, len, shape: shape.to_vec(), strides }
    }

    fn view(&self) -> View<'_> {
        let bytes = &bytemuck::cast_slice(&self.words)[..self.len];
        View::new(self.dtype, bytes, 0, &self.shape, &self.strides)
    }
}

#[test]
fn of_winners_is_the_transpose_of_to_winners() {
    for (p, spatial) in cases() {
        for (dtype, storage) in FLOATS.into_iter().zip(STORAGES) {
            let mut x = Array::random(&shape(&p, 2, &spatial, 5), 5);
            x.values.iter_mut().for_each(|v| *v = v.round());
            let out = shape(&p, 2, &out_spatial(&p, &spatial), 5);
            let winners = Winners::new(&p, x.store(dtype, storage).view(), &out);
            let g = Array::random(&x.shape, 6);
            let mut want = Array::zeros(&out);
            windows(&p, &x, &out, |o, window| {
                want.values[o] = winner(&x, window).map_or(0.0, |i| g.values[i]);
            });
            let g = g.store(dtype, storage);
            let got = output(dtype, &out, |y| of_winners(&p, g.view(), winners.view(), y));
            assert_close(&got, &want, epsilon(dtype), &format!("{p:?} {dtype} {storage:?}"));
        }
    }
}

#[test]
fn strided_winners() {
    let p = params(Layout::ChannelsFirst, &[2], &[2], &[1], &[(0, 0)]);
    let dy = [1.0f32, 2.0, 3.0, 4.0];
    let dy = View::new(DType::F32, bytemuck::cast_slice(&dy), 0, &[1, 2, 2], &[4, 2, 1]);
    // Two channels with the same winners, from the last window to the first.
    let winners = View::new(DType::U8, &[0, 1], 1, &[1, 2, 2], &[0, 0, -1]);
    let mut scratch = Scratch::new(4);
    let dx = output(DType::F32, &[1, 2, 4], |dx| to_winners(&p, winners, dy, dx, scratch.bytes()));
    assert_eq!(dx.values, [0.0, 1.0, 2.0, 0.0, 0.0, 3.0, 4.0, 0.0]);
    let x = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0];
    let x = View::new(DType::F32, bytemuck::cast_slice(&x), 0, &[1, 2, 4], &[8, 4, 1]);
    let picked = output(DType::F32, &[1, 2, 2], |y| of_winners(&p, x, winners, y));
    assert_eq!(picked.values, [2.0, 3.0, 6.0, 7.0]);
}

#[test]
fn empty_batches_and_images() {
    for layout in [Layout::ChannelsLast, Layout::ChannelsFirst] {
        let p = params(layout, &[2, 2], &[1, 1], &[1, 1], &[(1, 1), (1, 1)]);
        for (n, spatial, channels) in [(0, [3, 3], 2), (2, [0, 3], 2), (2, [3, 3], 0), (1, [0, 0], 1)] {
            let x = Array::zeros(&shape(&p, n, &spatial, channels));
            let out = shape(&p, n, &out_spatial(&p, &spatial), channels);
            let stored = x.store(DType::F32, Storage::Contiguous);
            let got = output(DType::F32, &out, |y| max(&p, stored.view(), y));
            assert_close(&got, &naive_max(&p, &x, &out, f64::NEG_INFINITY), 0.0, "max");
            let got = output(DType::F32, &out, |y| average(&p, false, stored.view(), y));
            assert_close(&got, &naive_average(&p, false, &x, &out), 0.0, "average");
            let dy = Array::random(&out, 7).store(DType::F32, Storage::Contiguous);
            let mut scratch = Scratch::new(max_gradient_scratch(&p, &out));
            let dx = output(DType::F32, &x.shape, |dx| {
                max_gradient(&p, stored.view(), dy.view(), dx, scratch.bytes());
            });
            assert_eq!(dx.shape, x.shape);
        }
    }
}

#[test]
fn broadcast_input() {
    let p = params(Layout::ChannelsLast, &[2], &[1], &[1], &[(0, 0)]);
    let values = [1.0f32, 5.0, 2.0];
    let x = View::new(DType::F32, bytemuck::cast_slice(&values), 0, &[2, 3, 2], &[0, 1, 0]);
    let got = output(DType::F32, &[2, 2, 2], |y| max(&p, x, y));
    assert_eq!(got.values, [5.0; 8]);
    let got = output(DType::F32, &[2, 2, 2], |y| average(&p, true, x, y));
    assert_eq!(got.values, [3.0, 3.0, 3.5, 3.5, 3.0, 3.0, 3.5, 3.5]);
}
