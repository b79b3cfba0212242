//! Outputs made from a rule rather than from an input: ramps, diagonals, triangles, one-hot rows.

use super::gather::{read_flat, row_chunk};
use super::runs::Runs;
use super::{CHUNK, Indices, TILE};
use crate::{DType, Element, View, ViewMut, dispatch, pool};
use bytemuck::Zeroable;

/// Writes `on` where the coordinate along `axis` equals the index at the other coordinates, `off` elsewhere (both
/// as the bytes of an element). An index outside the axis gives a line of `off` only, as TensorFlow does; nothing
/// here is out of range.
pub fn one_hot(indices: View<'_>, axis: usize, on: &[u8], off: &[u8], mut out: ViewMut<'_>) {
    let depth = out.shape()[axis];
    let inner: usize = out.shape()[axis + 1..].iter().product();
    assert_eq!(out.len(), indices.len() * depth, "one_hot's output shape");
    if out.is_empty() {
        return;
    }
    let indices = Indices::new(indices);
    let block = depth * inner;
    dispatch!(out.dtype(), T in sizes => {
        let (on, off): (T, T) = (bytemuck::pod_read_unaligned(on), bytemuck::pod_read_unaligned(off));
        pool::for_each_mut(out.slice::<T>(), row_chunk(block), |start, out| {
            out.fill(off);
            let mut tile = [0i64; TILE];
            let (first, count) = (start / depth, out.len() / depth);
            for at in (0..count).step_by(TILE) {
                let tile = &mut tile[..TILE.min(count - at)];
                indices.read(first + at, tile);
                for (i, &index) in (at..).zip(&*tile) {
                    if (index as u64) < depth as u64 {
                        out[i / inner * block + index as usize * inner + i % inner] = on;
                    }
                }
            }
        });
    });
}

/// Copies the matrices in the last two dimensions of `x`, with zeros above diagonal `k` (`upper` false) or below it
/// (`upper` true). Diagonal 0 is the main one, positive ones lie above it.
pub fn triangle(x: View<'_>, k: isize, upper: bool, mut out: ViewMut<'_>) {
    assert_eq!(x.shape(), out.shape(), "triangle keeps the shape");
    if out.is_empty() {
        return;
    }
    let &[.., rows, columns] = x.shape() else { panic!("a triangle needs two dimensions") };
    let runs = Runs::of(&x);
    dispatch!(x.dtype(), T in sizes => {
        let data = x.data::<T>();
        pool::for_each_mut(out.slice::<T>(), row_chunk(columns), |start, out| {
            for (row, out) in (start / columns..).zip(out.chunks_exact_mut(columns)) {
                // The first column above diagonal k, or the first on it.
                let edge = ((row % rows) as isize).saturating_add(k).saturating_add(isize::from(!upper));
                let edge = edge.clamp(0, columns as isize) as usize;
                let (keep, zero) = if upper { (edge..columns, 0..edge) } else { (0..edge, edge..columns) };
                out[zero].fill(T::zeroed());
                read_flat(data, &runs, row * columns + keep.start, &mut out[keep]);
            }
        });
    });
}

/// Element `i` of a diagonal that starts in the first row or column, in a matrix with `columns` columns.
#[inline]
fn on_diagonal(i: usize, k: isize, columns: usize) -> usize {
    let (row, column) = if k < 0 { (i + k.unsigned_abs(), i) } else { (i, i + k as usize) };
    row * columns + column
}

/// Writes matrices with ones on diagonal `k` and zeros elsewhere.
pub fn eye(k: isize, mut out: ViewMut<'_>) {
    let &[.., rows, columns] = out.shape() else { panic!("eye needs two dimensions") };
    out.bytes().fill(0);
    let (below, above) = (k.min(0).unsigned_abs(), k.max(0) as usize);
    let count = rows.saturating_sub(below).min(columns.saturating_sub(above));
    if count == 0 {
        return;
    }
    dispatch!(out.dtype(), T in every => {
        for matrix in out.slice::<T>().chunks_exact_mut(rows * columns) {
            (0..count).for_each(|i| matrix[on_diagonal(i, k, columns)] = T::from_f64(1.0));
        }
    });
}

/// Writes square matrices with the last dimension of `x` on diagonal `k` and zeros elsewhere; the matrices have
/// `x.shape[-1] + |k|` rows.
pub fn diagonal(x: View<'_>, k: isize, mut out: ViewMut<'_>) {
    let &n = x.shape().last().expect("a diagonal needs a dimension");
    let side = n + k.unsigned_abs();
    assert!(out.shape().ends_with(&[side, side]), "diagonal's output shape");
    out.bytes().fill(0);
    if x.is_empty() {
        return;
    }
    let runs = Runs::of(&x);
    dispatch!(x.dtype(), T in sizes => {
        let data = x.data::<T>();
        for (m, matrix) in out.slice::<T>().chunks_exact_mut(side * side).enumerate() {
            let mut i = 0;
            runs.for_each(m * n, n, |offset, stride, len| {
                for t in 0..len {
                    matrix[on_diagonal(i, k, side)] = data[(offset + t as isize * stride) as usize];
                    i += 1;
                }
            });
        }
    });
}

/// Writes `start + i * step` (both as the bytes of an element). Integers wrap; floats are computed in double
/// precision and rounded once, so errors do not add up.
pub fn range(start: &[u8], step: &[u8], mut out: ViewMut<'_>) {
    match out.dtype() {
        DType::F16 | DType::BF16 | DType::F32 | DType::F64 => dispatch!(out.dtype(), T in floats => {
            let start = bytemuck::pod_read_unaligned::<T>(start).to_f64();
            let step = bytemuck::pod_read_unaligned::<T>(step).to_f64();
            ramp::<T>(out.slice(), |i| T::from_f64(start + i as f64 * step));
        }),
        dtype => dispatch!(dtype, T in integers => {
            let (start, step): (T, T) = (bytemuck::pod_read_unaligned(start), bytemuck::pod_read_unaligned(step));
            ramp::<T>(out.slice(), |i| start.wrapping_add((i as T).wrapping_mul(step)));
        }),
    }
}

/// Writes evenly spaced floats from `start` to `stop`. With `endpoint` the last one is `stop` exactly; without, the
/// spacing is that of one more element.
pub fn linspace(start: f64, stop: f64, endpoint: bool, mut out: ViewMut<'_>) {
    let n = out.len();
    let gaps = if endpoint { n.saturating_sub(1) } else { n };
    let step = (stop - start) / gaps as f64;
    dispatch!(out.dtype(), T in floats => {
        ramp::<T>(out.slice(), |i| T::from_f64(match i {
            0 => start,
            i if endpoint && i == gaps => stop,
            // Where the difference overflows, the ends are weighted instead.
            i if step.is_finite() => start + i as f64 * step,
            i => {
                let t = i as f64 / gaps as f64;
                start * (1.0 - t) + stop * t
            }
        }));
    });
}

fn ramp<T: Element>(out: &mut [T], value: impl Fn(usize) -> T + Sync) {
    pool::for_each_mut(out, CHUNK, |start, out| {
        for (i, slot) in (start..).zip(out) {
            *slot = value(i);
        }
    });
}
