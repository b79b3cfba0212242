//! Reading by index.

use super::runs::{Runs, copy_run};
use super::{BadIndex, CHUNK, IndexTuples, Indices, TILE};
use crate::{Element, View, ViewMut, dispatch, pool};

/// Copies rows of `row` elements from `tail` displaced by each of `offsets`.
#[inline]
fn copy_rows<T: Element>(data: &[T], tail: &Runs, offsets: &[isize], row: usize, out: &mut [T]) {
    if row == 1 {
        for (slot, &offset) in out.iter_mut().zip(offsets) {
            *slot = data[offset as usize];
        }
    } else if tail.is_dense() {
        for (slot, &offset) in out.chunks_exact_mut(row).zip(offsets) {
            slot.copy_from_slice(&data[offset as usize..offset as usize + row]);
        }
    } else {
        for (slot, &offset) in out.chunks_exact_mut(row).zip(offsets) {
            tail.read(data, offset, 0, slot);
        }
    }
}

/// Elements per thread when rows of this length must not be split.
#[inline]
pub(crate) fn row_chunk(row: usize) -> usize {
    (CHUNK / row).max(1) * row
}

/// Takes slices of `x` along `axis`. The first `batch_dims` dimensions of `x` and `indices` go together; `out` has
/// the shape `x[..axis] + indices[batch_dims..] + x[axis + 1..]`.
pub fn gather(
    x: View<'_>,
    indices: View<'_>,
    axis: usize,
    batch_dims: usize,
    mut out: ViewMut<'_>,
) -> Result<(), BadIndex> {
    let shape = x.shape();
    let per_batch: usize = indices.shape()[batch_dims..].iter().product();
    let between: usize = shape[batch_dims..axis].iter().product();
    let row: usize = shape[axis + 1..].iter().product();
    assert_eq!(indices.shape()[..batch_dims], shape[..batch_dims], "batch dimensions differ");
    assert_eq!(out.len(), shape[..axis].iter().product::<usize>() * per_batch * row, "gather's output shape");
    let indices = Indices::new(indices);
    indices.check(shape[axis], axis)?;
    if out.is_empty() {
        return Ok(());
    }
    let head = Runs::of_dims(&x, 0..axis, x.offset());
    let tail = Runs::of_dims(&x, axis + 1..shape.len(), 0);
    let stride = x.strides()[axis];
    dispatch!(x.dtype(), T in sizes => {
        let data = x.data::<T>();
        pool::for_each_mut(out.slice::<T>(), row_chunk(row), |start, out| {
            let mut tile = [0i64; TILE];
            let mut offsets = [0isize; TILE];
            let (mut lead, mut j) = (start / row / per_batch, start / row % per_batch);
            let mut rest = out;
            while !rest.is_empty() {
                let n = TILE.min(per_batch - j).min(rest.len() / row);
                let tile = &mut tile[..n];
                indices.read(lead / between * per_batch + j, tile);
                let base = head.offset_at(lead);
                for (offset, &index) in offsets.iter_mut().zip(&*tile) {
                    *offset = base + index as isize * stride;
                }
                let (part, after) = rest.split_at_mut(n * row);
                copy_rows(data, &tail, &offsets[..n], row, part);
                rest = after;
                j += n;
                if j == per_batch {
                    (lead, j) = (lead + 1, 0);
                }
            }
        });
    });
    Ok(())
}

/// Takes the slices of `x` that the `k` coordinates in `indices[.., k]` name. The first `batch_dims` dimensions of
/// `x` and `indices` go together; `out` has the shape `indices[..-1] + x[batch_dims + k..]`.
pub fn gather_nd(
    x: View<'_>,
    indices: View<'_>,
    batch_dims: usize,
    mut out: ViewMut<'_>,
) -> Result<(), BadIndex> {
    let shape = x.shape();
    let last = indices.shape().len() - 1;
    let end = batch_dims + indices.shape()[last];
    let per_batch: usize = indices.shape()[batch_dims..last].iter().product();
    let row: usize = shape[end..].iter().product();
    assert_eq!(indices.shape()[..batch_dims], shape[..batch_dims], "batch dimensions differ");
    let places = IndexTuples::tuples(indices);
    assert_eq!(out.len(), places.count() * row, "gather_nd's output shape");
    places.check(&shape[batch_dims..end], batch_dims)?;
    if out.is_empty() {
        return Ok(());
    }
    let head = Runs::of_dims(&x, 0..batch_dims, x.offset());
    let tail = Runs::of_dims(&x, end..shape.len(), 0);
    let strides = &x.strides()[batch_dims..end];
    dispatch!(x.dtype(), T in sizes => {
        let data = x.data::<T>();
        pool::for_each_mut(out.slice::<T>(), row_chunk(row), |start, out| {
            let mut offsets = [0isize; TILE];
            let mut at = start / row;
            let mut rest = out;
            while !rest.is_empty() {
                let n = TILE.min(per_batch - at % per_batch).min(rest.len() / row);
                let offsets = &mut offsets[..n];
                places.read(at, strides, offsets);
                let base = head.offset_at(at / per_batch);
                for offset in offsets.iter_mut() {
                    *offset += base;
                }
                let (part, after) = rest.split_at_mut(n * row);
                copy_rows(data, &tail, offsets, row, part);
                rest = after;
                at += n;
            }
        });
    });
    Ok(())
}

/// Takes one element of `x` along `axis` for every index: `out[.., j, ..] = x[.., indices[.., j, ..], ..]`. `indices`
/// and `out` have the shape of `x` but for `axis`.
pub fn take_along_axis(
    x: View<'_>,
    indices: View<'_>,
    axis: usize,
    mut out: ViewMut<'_>,
) -> Result<(), BadIndex> {
    let shape = indices.shape();
    assert_eq!(shape, out.shape(), "take_along_axis' output shape");
    assert!(
        shape.iter().zip(x.shape()).enumerate().all(|(d, (a, b))| d == axis || a == b)
            && shape.len() == x.shape().len(),
        "shapes differ beyond the axis"
    );
    let indices = Indices::new(indices);
    indices.check(x.shape()[axis], axis)?;
    let bases = along(&x, shape, axis);
    let stride = x.strides()[axis];
    dispatch!(x.dtype(), T in sizes => {
        let data = x.data::<T>();
        pool::for_each_mut(out.slice::<T>(), CHUNK, |start, out| {
            let mut tile = [0i64; TILE];
            let mut offsets = [0isize; TILE];
            for (i, part) in out.chunks_mut(TILE).enumerate() {
                let tile = &mut tile[..part.len()];
                indices.read(start + i * TILE, tile);
                let mut done = 0;
                bases.for_each(start + i * TILE, part.len(), |offset, step, n| {
                    for t in 0..n {
                        offsets[done + t] = offset + t as isize * step + tile[done + t] as isize * stride;
                    }
                    done += n;
                });
                for (slot, &offset) in part.iter_mut().zip(&offsets) {
                    *slot = data[offset as usize];
                }
            }
        });
    });
    Ok(())
}

/// For each element of `shape`, the offset in `x` of the same coordinates with the one on `axis` at zero.
fn along(x: &View<'_>, shape: &[usize], axis: usize) -> Runs {
    let dims = shape.iter().zip(x.strides()).enumerate();
    Runs::new(x.offset(), dims.map(|(d, (&len, &stride))| (len, if d == axis { 0 } else { stride })))
}

/// Copies elements `start..` of a view in row-major order into `out`.
#[inline]
pub(crate) fn read_flat<T: Element>(data: &[T], runs: &Runs, start: usize, out: &mut [T]) {
    if runs.is_dense() {
        copy_run(data, runs.offset_at(start), 1, out);
    } else {
        runs.read(data, 0, start, out);
    }
}
