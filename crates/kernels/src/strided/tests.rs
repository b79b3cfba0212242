use super::*;
use crate::dtype::{DType, Element};

/// A layout of elements numbered in memory order: shape, strides, offset.
#[derive(Clone, Debug)]
struct Layout {
    shape: Vec<usize>,
    strides: Vec<isize>,
    offset: usize,
}

impl Layout {
    fn new(shape: &[usize], strides: &[isize], offset: usize) -> Layout {
        Layout { shape: shape.to_vec(), strides: strides.to_vec(), offset }
    }

    /// Position in memory of every element, in row-major order, by the definition.
    fn positions(&self) -> Vec<usize> {
        let len: usize = self.shape.iter().product();
        let position = |mut n: usize| {
            let mut at = self.offset as isize;
            for (dim, stride) in self.shape.iter().zip(&self.strides).rev() {
                at += (n % dim) as isize * stride;
                n /= dim;
            }
            at as usize
        };
        (0..len).map(position).collect()
    }
}

fn contiguous(shape: &[usize]) -> Layout {
    let mut strides = vec![1isize; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d] as isize;
    }
    Layout::new(shape, &strides, 0)
}

/// For one shape, layouts that take every path: whole, repeated, rows, gathered, across, reversed, shifted.
fn layouts(rows: usize, columns: usize) -> Vec<Layout> {
    let (r, c) = (rows as isize, columns as isize);
    let shape = [rows, columns];
    vec![
        contiguous(&shape),
        Layout::new(&shape, &[c, 1], 5),
        Layout::new(&shape, &[0, 0], 3),
        Layout::new(&shape, &[0, 1], 2),
        Layout::new(&shape, &[1, 0], 1),
        Layout::new(&shape, &[1, r], 0),
        Layout::new(&shape, &[2 * c, 2], 0),
        Layout::new(&shape, &[c + 3, 1], 1),
        Layout::new(&shape, &[-c, 1], (rows - 1) * columns),
        Layout::new(&shape, &[c, -1], columns - 1),
        Layout::new(&shape, &[-1, -r], rows * columns - 1),
        Layout::new(&shape, &[3, 3 * r], 0),
    ]
}

fn numbers<T: Element>(len: usize) -> Vec<T> {
    (0..len).map(|i| T::from_f64((i * 7 % 120) as f64)).collect()
}

/// Runs the driver on two operands with a kernel that tells them apart, against the definition.
fn check_pair<T: Element>(a: &Layout, b: &Layout) {
    let len: usize = a.shape.iter().product();
    let size = 4 * len + 64;
    let (data_a, data_b) = (numbers::<T>(size), numbers::<T>(size).into_iter().rev().collect::<Vec<T>>());
    let subtract = |[a, b]: [&[u8]; 2], out: &mut [u8]| {
        let (a, b, out) = (cast_slice::<u8, T>(a), cast_slice::<u8, T>(b), cast_slice_mut::<u8, T>(out));
        assert!(a.len() == out.len() && b.len() == out.len());
        for (out, (a, b)) in out.iter_mut().zip(a.iter().zip(b)) {
            *out = T::from_f64(a.to_f64() - 0.5 * b.to_f64());
        }
    };
    let want: Vec<T> = a
        .positions()
        .into_iter()
        .zip(b.positions())
        .map(|(a, b)| T::from_f64(data_a[a].to_f64() - 0.5 * data_b[b].to_f64()))
        .collect();
    let view_a = View::new(T::DTYPE, cast_slice(&data_a), a.offset, &a.shape, &a.strides);
    let view_b = View::new(T::DTYPE, cast_slice(&data_b), b.offset, &b.shape, &b.strides);
    let mut out = numbers::<T>(len);
    let target = ViewMut::new(T::DTYPE, cast_slice_mut(&mut out), &a.shape);
    for_tiles([Arg::View(view_a), Arg::View(view_b)], target, subtract);
    assert_eq!(out, want, "{a:?} and {b:?}");
    // The same with the first operand in place.
    copy(view_a, ViewMut::new(T::DTYPE, cast_slice_mut(&mut out), &a.shape));
    let target = ViewMut::new(T::DTYPE, cast_slice_mut(&mut out), &a.shape);
    for_tiles([Arg::InPlace(0), Arg::View(view_b)], target, subtract);
    assert_eq!(out, want, "{a:?} in place and {b:?}");
    // And with the second one, or both.
    copy(view_b, ViewMut::new(T::DTYPE, cast_slice_mut(&mut out), &a.shape));
    let target = ViewMut::new(T::DTYPE, cast_slice_mut(&mut out), &a.shape);
    for_tiles([Arg::View(view_a), Arg::InPlace(0)], target, subtract);
    assert_eq!(out, want, "{a:?} and {b:?} in place");
}

#[test]
fn pairs_of_layouts() {
    for (rows, columns) in [(1, 1), (1, 7), (5, 3), (40, 20), (3, 70), (33, 130), (20, 513)] {
        for a in &layouts(rows, columns) {
            for b in &layouts(rows, columns) {
                check_pair::<f32>(a, b);
            }
        }
    }
}

#[test]
fn element_sizes() {
    let cases = layouts(18, 67);
    for (i, a) in cases.iter().enumerate() {
        for b in [&cases[(i + 3) % cases.len()], &cases[5]] {
            check_pair::<u8>(a, b);
            check_pair::<i16>(a, b);
            check_pair::<f64>(a, b);
        }
    }
}

#[test]
fn beyond_the_parallel_threshold() {
    for (rows, columns) in [(300, 60), (130, 150), (2, 9000), (9000, 2)] {
        assert!(rows * columns > PARALLEL);
        let cases = layouts(rows, columns);
        for (i, a) in cases.iter().enumerate() {
            check_pair::<f32>(a, &cases[(i + 5) % cases.len()]);
        }
    }
}

#[test]
fn more_dimensions() {
    // Batches of transposes, the far dimension first, and broadcasts in the middle.
    let shape = [3, 4, 66, 5];
    let len = 3 * 4 * 66 * 5;
    for strides in [
        [1320, 330, 1, 66],
        [1, 3, 12, 792],
        [330, 0, 5, 1],
        [0, 5, 0, 1],
        [1320, 330, 5, 1],
        [-1320, 330, -5, 1],
    ] {
        let reach: isize = shape.iter().zip(strides).map(|(d, s)| (*d as isize - 1) * s.min(0)).sum();
        let a = Layout::new(&shape, &strides, reach.unsigned_abs());
        check_pair::<i32>(&a, &contiguous(&shape));
        assert_eq!(a.positions().len(), len);
    }
    // Dimensions of one element, whatever their strides.
    let a = Layout::new(&[1, 8, 1, 9, 1], &[77, 9, -3, 1, 5], 0);
    check_pair::<f64>(&a, &Layout::new(&[1, 8, 1, 9, 1], &[0, 1, 0, 8, 0], 0));
}

#[test]
fn nothing_and_one_element() {
    let data = [1.5f32, 2.5];
    let scalar = View::new(DType::F32, cast_slice(&data), 1, &[], &[]);
    let mut out = [0f32];
    copy(scalar, ViewMut::new(DType::F32, cast_slice_mut(&mut out), &[]));
    assert_eq!(out, [2.5]);
    let empty = View::new(DType::F32, &[], 0, &[3, 0], &[0, 1]);
    copy(empty, ViewMut::new(DType::F32, &mut [], &[3, 0]));
    for_tiles([Arg::InPlace(0)], ViewMut::new(DType::F32, &mut [], &[0]), |[_], _| panic!("nothing to do"));
}

#[test]
fn copies_of_every_size() {
    fn check<T: Element>(layout: &Layout) {
        let len: usize = layout.shape.iter().product();
        let data = numbers::<T>(4 * len + 64);
        let mut out = numbers::<T>(len);
        let x = View::new(T::DTYPE, cast_slice(&data), layout.offset, &layout.shape, &layout.strides);
        copy(x, ViewMut::new(T::DTYPE, cast_slice_mut(&mut out), &layout.shape));
        let want: Vec<T> = layout.positions().into_iter().map(|i| data[i]).collect();
        assert_eq!(out, want, "{layout:?}");
    }
    for layout in layouts(70, 90).iter().chain(&layouts(9, 2500)) {
        check::<u8>(layout);
        check::<crate::dtype::f16>(layout);
        check::<f32>(layout);
        check::<i64>(layout);
    }
}

#[test]
fn fills() {
    for len in [0, 1, 100, 2 * PARALLEL + 3] {
        let mut out = vec![0i16; len];
        fill(ViewMut::new(DType::I16, cast_slice_mut(&mut out), &[len]), &(-321i16).to_ne_bytes());
        assert!(out.iter().all(|x| *x == -321));
        let mut out = vec![0f64; len];
        fill(ViewMut::new(DType::F64, cast_slice_mut(&mut out), &[len]), &2.5f64.to_ne_bytes());
        assert!(out.iter().all(|x| *x == 2.5));
    }
}

#[test]
#[should_panic(expected = "shape")]
fn shapes_must_agree() {
    let data = [0f32; 6];
    let x = View::new(DType::F32, cast_slice(&data), 0, &[2, 3], &[3, 1]);
    copy(x, ViewMut::new(DType::F32, cast_slice_mut(&mut [0f32; 6]), &[3, 2]));
}
