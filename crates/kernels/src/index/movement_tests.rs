use super::testing::*;
use super::*;
use crate::DType;

fn counting(count: usize) -> Vec<f64> {
    (0..count).map(|i| (i % 120) as f64 + 1.0).collect()
}

fn rounded(dtype: DType, values: Vec<f64>) -> Vec<f64> {
    if dtype == DType::Bool { values.iter().map(|&v| f64::from(v != 0.0)).collect() } else { values }
}

#[test]
fn concat_along_every_axis() {
    let lens = [2, 0, 3, 1];
    for dtype in DType::REAL {
        for axis in 0..3 {
            for layout in LAYOUTS {
                let mut total = [2, 3, 4];
                total[axis] = lens.iter().sum();
                let values = rounded(dtype, counting(total.iter().product()));
                let mut from = 0;
                let mut inputs = Vec::new();
                for len in lens {
                    let mut shape = total;
                    shape[axis] = len;
                    let part: Vec<f64> = coordinates(&shape)
                        .into_iter()
                        .map(|mut c| {
                            c[axis] += from;
                            values[flat(&total, &c)]
                        })
                        .collect();
                    inputs.push(Array::laid_out(layout, dtype, &shape, &part));
                    from += len;
                }
                let views: Vec<_> = inputs.iter().map(Array::view).collect();
                let mut out = Array::zeros(dtype, &total);
                concat(&views, axis, out.out());
                assert_eq!(out.values(), values, "{dtype} axis {axis} {layout:?}");
            }
        }
    }
}

#[test]
fn concat_of_many_elements_crosses_chunks() {
    let (a, b) = (scrambled(20_000, 200), scrambled(30_000, 200));
    let (x, y) = (Array::new(DType::U8, &[10_000, 2], &a), Array::new(DType::U8, &[10_000, 3], &b));
    let mut out = Array::zeros(DType::U8, &[10_000, 5]);
    concat(&[x.view(), y.view()], 1, out.out());
    let expected: Vec<f64> = a.chunks(2).zip(b.chunks(3)).flat_map(|(a, b)| [a, b].concat()).collect();
    assert_eq!(out.values(), expected);
    let (x, y) = (Array::new(DType::U8, &[20_000], &a), Array::new(DType::U8, &[30_000], &b));
    let mut out = Array::zeros(DType::U8, &[50_000]);
    concat(&[x.view(), y.view()], 0, out.out());
    assert_eq!(out.values(), [a, b].concat());
}

/// Where output coordinate `at - before` comes from, found by walking step by step.
fn walked(mode: Pad<'_>, at: isize, len: isize) -> Option<usize> {
    let (mut i, mut direction, mut position) = (0, at.signum(), 0);
    if matches!(mode, Pad::Constant(_)) {
        return (0..len).contains(&at).then_some(at as usize);
    }
    while i != at {
        i += at.signum();
        let next = position + direction;
        if (0..len).contains(&next) {
            position = next;
            continue;
        }
        match mode {
            Pad::Wrap => position = next.rem_euclid(len),
            Pad::Symmetric => direction = -direction,
            _ => {
                direction = -direction;
                position += if len > 1 { direction } else { 0 };
            }
        }
    }
    Some(position as usize)
}

#[test]
fn pad_in_all_modes() {
    let shape = [3, 1, 4];
    let nine = 9.0f32.to_le_bytes();
    let values = counting(12);
    for layout in LAYOUTS {
        let x = Array::laid_out(layout, DType::F32, &shape, &values);
        for mode in [Pad::Constant(&nine), Pad::Reflect, Pad::Symmetric, Pad::Wrap] {
            for (before, after) in [
                ([0, 0, 0], [0, 0, 0]),
                ([1, 0, 2], [2, 0, 1]),
                ([0, 0, 3], [0, 0, 0]),
                ([2, 1, 0], [0, 2, 0]),
                ([7, 0, 9], [8, 0, 11]),
            ] {
                let total = [0, 1, 2].map(|d| before[d] + shape[d] + after[d]);
                let mut out = Array::zeros(DType::F32, &total);
                pad(x.view(), &before, mode, out.out());
                let expected: Vec<f64> = coordinates(&total)
                    .iter()
                    .map(|c| {
                        let at: Option<Vec<usize>> = (0..3)
                            .map(|d| walked(mode, c[d] as isize - before[d] as isize, shape[d] as isize))
                            .collect();
                        at.map_or(9.0, |at| values[flat(&shape, &at)])
                    })
                    .collect();
                assert_eq!(out.values(), expected, "{mode:?} {before:?} {after:?} {layout:?}");
            }
        }
    }
}

#[test]
fn pad_every_type_and_odd_shapes() {
    for dtype in DType::REAL {
        let x = Array::new(dtype, &[2], &[1.0, 1.0]);
        let mut out = Array::new(dtype, &[4], &[1.0; 4]);
        pad(x.view(), &[1], Pad::Constant(&vec![0; dtype.size()]), out.out());
        assert_eq!(out.values(), [0.0, 1.0, 1.0, 0.0], "{dtype}");
    }
    let scalar = Array::new(DType::F32, &[], &[3.0]);
    let mut out = Array::zeros(DType::F32, &[]);
    pad(scalar.view(), &[], Pad::Reflect, out.out());
    assert_eq!(out.values(), [3.0]);
    let empty = Array::zeros(DType::I32, &[0, 2]);
    let mut out = Array::zeros(DType::I32, &[2, 2]);
    pad(empty.view(), &[1, 0], Pad::Constant(&7i32.to_le_bytes()), out.out());
    assert_eq!(out.values(), [7.0; 4]);
}

#[test]
fn roll_wraps_around() {
    let shape = [3, 4, 5];
    let values = counting(60);
    for layout in LAYOUTS {
        let x = Array::laid_out(layout, DType::I16, &shape, &values);
        for shifts in [[0, 0, 0], [1, 0, 0], [0, -1, 7], [-4, 2, 1], [0, 0, -13]] {
            let mut out = Array::zeros(DType::I16, &shape);
            roll(x.view(), &shifts, out.out());
            let expected: Vec<f64> = coordinates(&shape)
                .iter()
                .map(|c| {
                    let at =
                        [0, 1, 2].map(|d| (c[d] as isize - shifts[d]).rem_euclid(shape[d] as isize) as usize);
                    values[flat(&shape, &at)]
                })
                .collect();
            assert_eq!(out.values(), expected, "{shifts:?} {layout:?}");
        }
    }
    let empty = Array::zeros(DType::F32, &[0]);
    roll(empty.view(), &[3], Array::zeros(DType::F32, &[0]).out());
}

#[test]
fn tile_and_repeat() {
    let shape = [2, 3, 2];
    let values = counting(12);
    for dtype in [DType::Bool, DType::F16, DType::I32, DType::F64] {
        let values = rounded(dtype, values.clone());
        for layout in LAYOUTS {
            let x = Array::laid_out(layout, dtype, &shape, &values);
            for times in [[1, 1, 1], [3, 1, 2], [1, 4, 1], [2, 2, 2], [0, 1, 1]] {
                let total = [0, 1, 2].map(|d| shape[d] * times[d]);
                let mut out = Array::zeros(dtype, &total);
                tile(x.view(), out.out());
                let expected: Vec<f64> = coordinates(&total)
                    .iter()
                    .map(|c| values[flat(&shape, &[0, 1, 2].map(|d| c[d] % shape[d]))])
                    .collect();
                assert_eq!(out.values(), expected, "{times:?} {layout:?}");
            }
            let counts: [(usize, &[usize]); 5] =
                [(1, &[2, 0, 3]), (1, &[0, 0, 1]), (0, &[1, 2]), (2, &[3]), (0, &[2])];
            for (axis, counts) in counts {
                let slices: Vec<usize> = (0..shape[axis])
                    .flat_map(|i| vec![i; counts[if counts.len() == 1 { 0 } else { i }]])
                    .collect();
                let mut total = shape;
                total[axis] = slices.len();
                let mut out = Array::zeros(dtype, &total);
                repeat(x.view(), counts, axis, out.out());
                let expected: Vec<f64> = coordinates(&total)
                    .into_iter()
                    .map(|mut c| {
                        c[axis] = slices[c[axis]];
                        values[flat(&shape, &c)]
                    })
                    .collect();
                assert_eq!(out.values(), expected, "{counts:?} axis {axis} {layout:?}");
            }
        }
    }
}

#[test]
fn repeat_crosses_chunks() {
    let counts: Vec<usize> = scrambled(8000, 9).iter().map(|&c| c as usize).collect();
    let total = counts.iter().sum();
    let x = Array::new(DType::F64, &[8000], &(0..8000).map(f64::from).collect::<Vec<_>>());
    let mut out = Array::zeros(DType::F64, &[total]);
    repeat(x.view(), &counts, 0, out.out());
    let expected: Vec<f64> = (0..8000).flat_map(|i| vec![i as f64; counts[i]]).collect();
    assert_eq!(out.values(), expected);
}

#[test]
fn triangles_keep_one_side() {
    let shape = [2, 3, 4];
    let values = counting(24);
    for dtype in DType::REAL {
        let values = rounded(dtype, values.clone());
        for layout in LAYOUTS {
            let x = Array::laid_out(layout, dtype, &shape, &values);
            for k in [-9, -2, -1, 0, 1, 3, 9, isize::MAX, isize::MIN] {
                for upper in [false, true] {
                    let mut out = Array::new(dtype, &shape, &[1.0; 24]);
                    triangle(x.view(), k, upper, out.out());
                    let kept = |c: &[usize]| {
                        let above = (c[2] as i128) - (c[1] as i128);
                        if upper { above >= k as i128 } else { above <= k as i128 }
                    };
                    let expected: Vec<f64> = coordinates(&shape)
                        .iter()
                        .map(|c| if kept(c) { values[flat(&shape, c)] } else { 0.0 })
                        .collect();
                    assert_eq!(out.values(), expected, "{k} {upper} {layout:?}");
                }
            }
        }
    }
}

#[test]
fn eye_and_diagonal() {
    for dtype in DType::REAL {
        for k in [-5isize, -1, 0, 2, 5] {
            let shape = [2, 3, 4];
            let mut out = Array::new(dtype, &shape, &[1.0; 24]);
            eye(k, out.out());
            let expected: Vec<f64> =
                coordinates(&shape).iter().map(|c| f64::from(c[2] as isize - c[1] as isize == k)).collect();
            assert_eq!(out.values(), expected);
        }
        let values = rounded(dtype, counting(6));
        for layout in LAYOUTS {
            let x = Array::laid_out(layout, dtype, &[2, 3], &values);
            for k in [-2isize, 0, 1] {
                let side = 3 + k.unsigned_abs();
                let mut out = Array::new(dtype, &[2, side, side], &vec![1.0; 2 * side * side]);
                diagonal(x.view(), k, out.out());
                let expected: Vec<f64> = coordinates(&out.shape)
                    .iter()
                    .map(|c| {
                        let on = c[2] as isize - c[1] as isize == k;
                        if on { values[c[0] * 3 + c[1].min(c[2])] } else { 0.0 }
                    })
                    .collect();
                assert_eq!(out.values(), expected);
            }
        }
    }
}

#[test]
fn one_hot_leaves_indices_out_of_range_off() {
    let picks = [1.0, -1.0, 3.0, 0.0, 2.0, 1.0];
    let (on, off) = (5i16.to_le_bytes(), (-2i16).to_le_bytes());
    for layout in LAYOUTS {
        let indices = Array::laid_out(layout, DType::I32, &[2, 3], &picks);
        for (axis, shape) in [(0, [3, 2, 3]), (1, [2, 3, 3]), (2, [2, 3, 3])] {
            let mut out = Array::zeros(DType::I16, &shape);
            one_hot(indices.view(), axis, &on, &off, out.out());
            let expected: Vec<f64> = coordinates(&shape)
                .into_iter()
                .map(|mut c| {
                    let class = c.remove(axis);
                    if picks[flat(&[2, 3], &c)] == class as f64 { 5.0 } else { -2.0 }
                })
                .collect();
            assert_eq!(out.values(), expected, "axis {axis} {layout:?}");
        }
    }
    let index = Array::new(DType::U8, &[], &[1.0]);
    let mut out = Array::zeros(DType::Bool, &[3]);
    one_hot(index.view(), 0, &[1], &[0], out.out());
    assert_eq!(out.values(), [0.0, 1.0, 0.0]);
}

#[test]
fn ramps() {
    let mut out = Array::zeros(DType::I8, &[4]);
    range(&[100], &[20], out.out());
    assert_eq!(out.values(), [100.0, 120.0, -116.0, -96.0]);
    let mut out = Array::zeros(DType::U16, &[3]);
    range(&10u16.to_le_bytes(), &(-5i16).to_le_bytes(), out.out());
    assert_eq!(out.values(), [10.0, 5.0, 0.0]);
    let mut out = Array::zeros(DType::I64, &[2]);
    range(&(i64::MAX - 1).to_le_bytes(), &1i64.to_le_bytes(), out.out());
    assert_eq!(out.typed::<i64>(), [i64::MAX - 1, i64::MAX]);
    let mut out = Array::zeros(DType::F32, &[100_001]);
    range(&0f32.to_le_bytes(), &0.1f32.to_le_bytes(), out.out());
    let step = 0.1f32 as f64;
    assert!(out.values().iter().enumerate().all(|(i, &v)| v == (i as f64 * step) as f32 as f64));

    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let mut out = Array::zeros(dtype, &[5]);
        linspace(-1.0, 1.0, true, out.out());
        assert_eq!(out.values(), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        let mut out = Array::zeros(dtype, &[4]);
        linspace(0.0, 1.0, false, out.out());
        assert_eq!(out.values(), [0.0, 0.25, 0.5, 0.75]);
        let mut out = Array::zeros(dtype, &[1]);
        linspace(2.0, 8.0, true, out.out());
        assert_eq!(out.values(), [2.0]);
        linspace(2.0, 8.0, true, Array::zeros(dtype, &[0]).out());
    }
    let mut out = Array::zeros(DType::F64, &[3]);
    linspace(-f64::MAX, f64::MAX, true, out.out());
    assert_eq!(out.values(), [-f64::MAX, 0.0, f64::MAX]);
    // The last element is the end itself, not a rounded sum.
    let mut out = Array::zeros(DType::F64, &[11]);
    linspace(0.0, 0.3, true, out.out());
    assert_eq!(out.values()[10], 0.3);
}
