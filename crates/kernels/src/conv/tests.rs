use super::testing::*;
use super::*;
use crate::{pool, simd};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];
use Layout::{ChannelsFirst as First, ChannelsLast as Last};

#[derive(Clone, Debug)]
struct Case {
    p: ConvParams,
    x: Vec<usize>,
    w: Vec<usize>,
    y: Vec<usize>,
}

/// A convolution with `c_in` and `c_out` channels of every group.
struct Sizes<'a> {
    n: usize,
    spatial: &'a [usize],
    window: &'a [usize],
    strides: &'a [usize],
    dilations: &'a [usize],
    padding: &'a [(usize, usize)],
    groups: usize,
    c_in: usize,
    c_out: usize,
}

impl Sizes<'_> {
    fn case(&self, layout: Layout) -> Case {
        let rank = self.spatial.len();
        let mut p = ConvParams {
            layout,
            rank,
            strides: [0; 3],
            dilations: [0; 3],
            padding: [(0, 0); 3],
            groups: self.groups,
        };
        p.strides[..rank].copy_from_slice(self.strides);
        p.dilations[..rank].copy_from_slice(self.dilations);
        p.padding[..rank].copy_from_slice(self.padding);
        let out: Vec<usize> = (0..rank)
            .map(|i| {
                output_size(self.spatial[i], self.window[i], p.strides[i], p.dilations[i], p.padding[i])
                    .unwrap()
            })
            .collect();
        let image = |spatial: &[usize], channels: usize| match layout {
            Last => [&[self.n], spatial, &[channels]].concat(),
            First => [&[self.n, channels], spatial].concat(),
        };
        Case {
            p,
            x: image(self.spatial, self.groups * self.c_in),
            w: [self.window, &[self.c_in, self.groups * self.c_out]].concat(),
            y: image(&out, self.groups * self.c_out),
        }
    }
}

/// Small convolutions of every kind.
fn cases() -> Vec<Case> {
    // The last has enough channels for sums in registers, which do not fill their tiles.
    let channels =
        [(1, 3, 5), (3, 2, 4), (4, 1, 1), (3, 1, 2), (1, 1, 20), (2, 1, 17), (1, 9, 1), (1, 17, 32)];
    let mut cases = Vec::new();
    for layout in [Last, First] {
        for (groups, c_in, c_out) in channels {
            let mut add = |n,
                           spatial: &[usize],
                           window: &[usize],
                           strides: &[usize],
                           dilations: &[usize],
                           padding: &[(usize, usize)]| {
                let sizes = Sizes { n, spatial, window, strides, dilations, padding, groups, c_in, c_out };
                cases.push(sizes.case(layout));
            };
            add(1, &[1], &[1], &[1], &[1], &[(0, 0)]);
            add(2, &[9], &[3], &[1], &[1], &[(1, 1)]);
            add(2, &[70], &[4], &[3], &[2], &[(5, 2)]);
            add(1, &[11], &[3], &[4], &[6], &[(3, 0)]);
            add(2, &[5, 6], &[1, 1], &[1, 1], &[1, 1], &[(0, 0); 2]);
            add(2, &[6, 5], &[1, 1], &[2, 3], &[1, 1], &[(0, 0), (1, 0)]);
            add(2, &[5, 7], &[3, 3], &[1, 1], &[1, 1], &[(1, 1); 2]);
            add(2, &[8, 7], &[3, 2], &[2, 2], &[1, 2], &[(0, 1), (2, 1)]);
            add(1, &[3, 2], &[5, 4], &[1, 2], &[1, 1], &[(2, 3), (4, 3)]);
            add(1, &[4, 5, 3], &[2, 3, 2], &[2, 1, 1], &[1, 2, 1], &[(1, 0), (2, 1), (0, 1)]);
            add(2, &[3, 1, 4], &[1, 1, 1], &[1, 1, 1], &[1, 1, 1], &[(0, 0); 3]);
        }
    }
    cases
}

/// Calls `visit(x element, w element, y element)` for every product of the definition.
fn products(case: &Case, mut visit: impl FnMut(usize, usize, usize)) {
    let p = &case.p;
    let (spatial, channel) = if p.layout == Last { (1, p.rank + 1) } else { (2, 1) };
    let (c_in, c_out) = (case.w[p.rank], case.w[p.rank + 1]);
    let by_channel: usize = case.x[channel + 1..].iter().product();
    let x = Array::zeros(&case.x);
    let unravel = |mut linear: usize, shape: &[usize], index: &mut [usize]| {
        for d in (0..shape.len()).rev() {
            index[d] = linear % shape[d];
            linear /= shape[d];
        }
    };
    let (mut at, mut tap) = (vec![0; p.rank + 2], vec![0; p.rank]);
    for o in 0..case.y.iter().product() {
        unravel(o, &case.y, &mut at);
        let output = at[channel];
        for t in 0..case.w[..p.rank].iter().product() {
            unravel(t, &case.w[..p.rank], &mut tap);
            let mut from = at.clone();
            let valid = (0..p.rank).all(|d| {
                let position = at[spatial + d] * p.strides[d] + tap[d] * p.dilations[d];
                from[spatial + d] = position.wrapping_sub(p.padding[d].0);
                from[spatial + d] < case.x[spatial + d]
            });
            if valid {
                from[channel] = output / (c_out / p.groups) * c_in;
                let from = x.index(&from);
                (0..c_in).for_each(|c| visit(from + c * by_channel, (t * c_in + c) * c_out + output, o));
            }
        }
    }
}

fn run_forward(case: &Case, dtype: DType, x: View<'_>, w: View<'_>) -> Array {
    let mut scratch = Scratch::new(forward_scratch(&case.p, &case.x, &case.w, dtype));
    output(dtype, &case.y, |y| forward(&case.p, x, w, y, scratch.bytes()))
}

fn run_input_gradient(case: &Case, dtype: DType, dy: View<'_>, w: View<'_>) -> Array {
    let mut scratch = Scratch::new(input_gradient_scratch(&case.p, &case.x, &case.w, dtype));
    output(dtype, &case.x, |dx| input_gradient(&case.p, dy, w, dx, scratch.bytes()))
}

fn run_weight_gradient(case: &Case, dtype: DType, x: View<'_>, dy: View<'_>) -> Array {
    let mut scratch = Scratch::new(weight_gradient_scratch(&case.p, &case.x, &case.w, dtype));
    output(dtype, &case.w, |dw| weight_gradient(&case.p, x, dy, dw, scratch.bytes()))
}

/// Compares all three kernels with the definition.
fn check(case: &Case, dtype: DType, storages: [Storage; 3]) {
    let (x, w, dy) = (Array::random(&case.x, 1), Array::random(&case.w, 2), Array::random(&case.y, 3));
    let (mut y, mut dx, mut dw) = (Array::zeros(&case.y), Array::zeros(&case.x), Array::zeros(&case.w));
    products(case, |i, k, o| {
        y.values[o] += x.values[i] * w.values[k];
        dx.values[i] += dy.values[o] * w.values[k];
        dw.values[k] += x.values[i] * dy.values[o];
    });
    let context = format!("{case:?} {dtype} {storages:?}");
    let [x, w, dy] = [(&x, 0), (&w, 1), (&dy, 2)].map(|(array, i)| array.store(dtype, storages[i]));
    // Products of the test values are exact in `f32`, so that only the result is rounded.
    let tolerance = epsilon(dtype);
    assert_close(&run_forward(case, dtype, x.view(), w.view()), &y, tolerance, &format!("forward {context}"));
    let got = run_input_gradient(case, dtype, dy.view(), w.view());
    assert_close(&got, &dx, tolerance, &format!("input gradient {context}"));
    let got = run_weight_gradient(case, dtype, x.view(), dy.view());
    assert_close(&got, &dw, tolerance, &format!("weight gradient {context}"));
}

#[test]
fn small_convolutions_match_the_definition() {
    for (i, case) in cases().iter().enumerate() {
        for (j, dtype) in FLOATS.into_iter().enumerate() {
            check(case, dtype, [Storage::Contiguous; 3]);
            check(case, dtype, [STORAGES[(i + j) % 4], STORAGES[(i / 4 + j) % 4], STORAGES[(i / 2 + j) % 4]]);
        }
    }
}

/// Sizes at which tiles, blocks of taps, of channels and of columns, slabs and stages all come in several.
fn large_cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for layout in [Last, First] {
        let mut add = |n, spatial: &[usize], window: &[usize], strides: &[usize], (groups, c_in, c_out)| {
            let (padding, dilations) = (vec![(1, 1); spatial.len()], vec![1; spatial.len()]);
            let (padding, dilations) = (&padding[..], &dilations[..]);
            cases.push(
                Sizes { n, spatial, window, strides, dilations, padding, groups, c_in, c_out }.case(layout),
            );
        };
        add(2, &[21, 19], &[3, 3], &[1, 1], (1, 70, 11));
        add(1, &[4, 5], &[2, 3], &[2, 1], (1, 600, 70));
        add(1, &[3, 4], &[2, 2], &[1, 1], (1, 130, 200));
        add(3, &[40, 17], &[5, 4], &[3, 2], (2, 3, 9));
        add(1, &[18, 12], &[7, 7], &[2, 2], (1, 3, 64));
        add(1, &[25, 25], &[3, 3], &[1, 1], (70, 1, 1));
        add(1, &[200], &[7], &[2], (5, 1, 3));
        // Rows of one pixel: more runs than are walked together.
        add(9, &[40, 1], &[3, 3], &[1, 1], (1, 16, 16));
        add(2, &[9, 13], &[3, 3], &[2, 2], (1, 24, 80));
    }
    cases
}

#[test]
fn large_convolutions_match_the_definition() {
    for case in large_cases() {
        check(&case, DType::F32, [Storage::Contiguous; 3]);
        check(&case, DType::F64, [Storage::TransposedGaps, Storage::Reversed, Storage::Contiguous]);
        check(&case, DType::BF16, [Storage::Contiguous; 3]);
    }
}

#[test]
fn pointwise_convolutions_match_the_definition() {
    for layout in [Last, First] {
        for (n, spatial) in [(3, [20, 30]), (1, [2, 3])] {
            let case = Sizes {
                n,
                spatial: &spatial,
                window: &[1, 1],
                strides: &[1, 1],
                dilations: &[1, 1],
                padding: &[(0, 0); 2],
                groups: 1,
                c_in: 19,
                c_out: 70,
            }
            .case(layout);
            for storage in STORAGES {
                check(&case, DType::F32, [storage; 3]);
            }
            check(&case, DType::F16, [Storage::Contiguous; 3]);
        }
    }
}

#[test]
fn gradients_are_adjoint() {
    for case in cases().iter().chain(&large_cases()) {
        let (x, w, dy) = (Array::random(&case.x, 4), Array::random(&case.w, 5), Array::random(&case.y, 6));
        let [sx, sw, sdy] = [&x, &w, &dy].map(|a| a.store(DType::F64, Storage::Contiguous));
        let y = run_forward(case, DType::F64, sx.view(), sw.view()).dot(&dy);
        let dx = run_input_gradient(case, DType::F64, sdy.view(), sw.view()).dot(&x);
        let dw = run_weight_gradient(case, DType::F64, sx.view(), sdy.view()).dot(&w);
        assert!((y - dx).abs() < 1e-9 * y.abs().max(1.0), "{case:?}: {y} {dx}");
        assert!((y - dw).abs() < 1e-9 * y.abs().max(1.0), "{case:?}: {y} {dw}");
    }
}

#[test]
fn empty_sizes_give_zeros() {
    for layout in [Last, First] {
        for (n, spatial, groups, c_in, c_out) in [
            (0, [4, 4], 1, 2, 3),
            (2, [0, 4], 1, 2, 3),
            (2, [4, 4], 1, 0, 3),
            (2, [4, 4], 1, 2, 0),
            (0, [4, 4], 2, 1, 1),
            (1, [0, 0], 2, 1, 1),
        ] {
            for padding in [(0, 0), (1, 1)] {
                let window = if padding.0 == 0 { [1, 1] } else { [2, 2] };
                let (strides, dilations, padding) = (&[1, 1], &[1, 1], &[padding; 2]);
                let sizes = Sizes {
                    n,
                    spatial: &spatial,
                    window: &window,
                    strides,
                    dilations,
                    padding,
                    groups,
                    c_in,
                    c_out,
                };
                for dtype in [DType::F32, DType::BF16] {
                    check(&sizes.case(layout), dtype, [Storage::Contiguous; 3]);
                }
            }
        }
    }
}

#[test]
fn broadcast_operands() {
    // All ones: an output counts its taps.
    let one = [1.0f32];
    let case = Sizes {
        n: 2,
        spatial: &[3, 4],
        window: &[3, 3],
        strides: &[1, 1],
        dilations: &[1, 1],
        padding: &[(1, 1); 2],
        groups: 1,
        c_in: 5,
        c_out: 2,
    }
    .case(Last);
    let view = |shape| View::new(DType::F32, bytemuck::cast_slice(&one), 0, shape, &[0; 4]);
    let y = run_forward(&case, DType::F32, view(&case.x), view(&case.w));
    let counts = [[4, 6, 6, 4], [6, 9, 9, 6], [4, 6, 6, 4]];
    for (i, &v) in y.values.iter().enumerate() {
        assert_eq!(v, 5.0 * counts[i / 8 % 3][i / 2 % 4] as f64);
    }
    let dx = run_input_gradient(&case, DType::F32, view(&case.y), view(&case.w));
    for (i, &v) in dx.values.iter().enumerate() {
        assert_eq!(v, 2.0 * counts[i / 20 % 3][i / 5 % 4] as f64);
    }
}

#[test]
fn infinities_and_nan_reach_their_windows_only() {
    let sizes = Sizes {
        n: 1,
        spatial: &[6],
        window: &[3],
        strides: &[1],
        dilations: &[1],
        padding: &[(1, 1)],
        groups: 1,
        c_in: 1,
        c_out: 20,
    };
    for layout in [Last, First] {
        let case = sizes.case(layout);
        let mut x = Array::zeros(&case.x);
        x.values[0] = f64::INFINITY;
        x.values[5] = f64::NAN;
        let w = Array { shape: case.w.clone(), values: vec![1.0; 60] };
        let y = run_forward(
            &case,
            DType::F32,
            x.store(DType::F32, Storage::Contiguous).view(),
            w.store(DType::F32, Storage::Contiguous).view(),
        );
        for o in 0..6 {
            let v = y.at(&if layout == Last { [0, o, 7] } else { [0, 7, o] });
            match o {
                0 | 1 => assert_eq!(v, f64::INFINITY),
                2 | 3 => assert_eq!(v, 0.0),
                _ => assert!(v.is_nan()),
            }
        }
    }
}

#[test]
fn threads_and_instruction_sets_do_not_change_results() {
    let layouts = [Last, First];
    for (layout, (groups, c_in, c_out)) in
        layouts.into_iter().flat_map(|l| [(l, (1, 24, 40)), (l, (1, 20, 48)), (l, (48, 1, 1))])
    {
        let case = Sizes {
            n: 2,
            spatial: &[33, 31],
            window: &[3, 3],
            strides: &[2, 1],
            dilations: &[1, 1],
            padding: &[(1, 1); 2],
            groups,
            c_in,
            c_out,
        }
        .case(layout);
        let mut arrays =
            [(&case.x, 7), (&case.w, 8), (&case.y, 9)].map(|(shape, seed)| Array::random(shape, seed));
        // Values whose sums round, so that another order would show.
        arrays.iter_mut().flat_map(|a| &mut a.values).for_each(|v| *v = (*v * 1.7).sin());
        let [x, w, dy] = arrays.map(|a| a.store(DType::F32, Storage::Contiguous));
        let all = || {
            let y = run_forward(&case, DType::F32, x.view(), w.view());
            let dx = run_input_gradient(&case, DType::F32, dy.view(), w.view());
            let dw = run_weight_gradient(&case, DType::F32, x.view(), dy.view());
            [y, dx, dw].map(|a| a.values)
        };
        pool::set_threads(1);
        let one = all();
        for threads in [2, 3, 7] {
            pool::set_threads(threads);
            assert!(one == all(), "{threads} threads, {case:?}");
        }
        pool::set_threads(0);
        simd::restrict(simd::Level::Avx2);
        let narrow = all();
        simd::restrict(simd::Level::Avx512);
        // Packed products are another crate's, whose sums depend on the instruction set.
        if layout == Last && c_in > 1 {
            assert!(one == narrow, "narrower vectors, {case:?}");
        }
    }
}

/// The scratch of a weight gradient depends on the filters and the threads, not on the number of pixels.
#[test]
fn weight_gradient_scratch_does_not_grow_with_the_images() {
    let p = ConvParams {
        layout: Layout::ChannelsLast,
        rank: 2,
        strides: [1; 3],
        dilations: [1; 3],
        padding: [(1, 1); 3],
        groups: 1,
    };
    let bytes = |batch: usize, size: usize| {
        weight_gradient_scratch(&p, &[batch, size, size, 16], &[3, 3, 16, 32], DType::F32)
    };
    assert_eq!(bytes(64, 64), bytes(64, 512));
    assert_eq!(bytes(64, 64), bytes(1024, 512));
    // Per thread a tile of 128 KiB, and at most 256 KiB of partial sums.
    assert!(bytes(1024, 512) <= pool::threads() * (128 << 10) + (256 << 10));
}
