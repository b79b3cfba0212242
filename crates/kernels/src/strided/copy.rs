//! Copies and fills.

use super::walk::{Cursor, Walk, gather};
use super::{BLOCK_ROWS, PARALLEL, for_tiles};
use crate::dtype::Element;
use crate::pool;
use crate::view::{Arg, View, ViewMut};

/// Columns that a block of a transposing copy takes at a time.
const BLOCK: usize = 16;

/// Copies `x` into `out`, which has the same shape and element size.
///
/// # Panics
/// If shapes or element sizes differ.
pub fn copy(x: View<'_>, mut out: ViewMut<'_>) {
    assert_eq!(x.dtype().size(), out.dtype().size(), "a copy keeps the element size");
    assert_eq!(x.shape(), out.shape(), "a copy keeps the shape");
    if out.is_empty() {
        return;
    }
    let walk = Walk::<1>::new(x.shape(), |_, d| x.strides()[d]);
    if matches!(walk.inner(0), 0 | 1) || walk.shape().len() == 1 {
        return for_tiles([Arg::View(x)], out, |[x], out| out.copy_from_slice(x));
    }
    crate::dispatch!(x.dtype(), T in sizes => blocks::<T>(x.data(), x.offset(), &walk, out.slice()));
}

/// Copies in blocks of rows of the output that lie close together in the input.
fn blocks<T: Element>(data: &[T], start: usize, walk: &Walk<1>, out: &mut [T]) {
    let (shape, strides) = (walk.shape(), walk.strides(0));
    let last = shape.len() - 1;
    // The dimension in which the input is densest; the rows of a block are taken along it.
    let dense = (0..last).filter(|&d| strides[d] != 0).min_by_key(|&d| strides[d].unsigned_abs());
    let dense =
        dense.filter(|&d| strides[d].unsigned_abs() < strides[last].unsigned_abs()).unwrap_or(last - 1);
    let row = shape[last];
    // Rows of the output between two steps along `dense`.
    let between: usize = shape[dense + 1..last].iter().product();
    let unit = between * row;
    let work = |first: usize, part: &mut [T]| {
        let mut done = 0;
        while done < part.len() {
            // Blocks do not reach beyond the dense dimension's end.
            let index = (first + done) / unit % shape[dense];
            let rows = ((part.len() - done) / unit).min(shape[dense] - index);
            let block = &mut part[done..done + rows * unit];
            let mut cursor = Cursor::new(walk, first + done, [start as isize]);
            for middle in 0..between {
                for column in (0..row).step_by(BLOCK) {
                    let n = BLOCK.min(row - column);
                    for r in 0..rows {
                        let from =
                            cursor.offsets[0] + r as isize * strides[dense] + column as isize * strides[last];
                        let to = r * unit + middle * row + column;
                        gather(data, from, strides[last], &mut block[to..to + n]);
                    }
                }
                cursor.advance(row);
            }
            done += rows * unit;
        }
    };
    let chunk = BLOCK_ROWS * unit;
    if out.len() < PARALLEL {
        out.chunks_mut(chunk).enumerate().for_each(|(i, part)| work(i * chunk, part));
    } else {
        pool::for_each_mut(out, chunk, work);
    }
}

/// Sets every element of `out` to `value`, the bytes of one element.
///
/// # Panics
/// If `value` does not have the size of an element.
pub fn fill(mut out: ViewMut<'_>, value: &[u8]) {
    assert_eq!(value.len(), out.dtype().size(), "one element's bytes");
    crate::dispatch!(out.dtype(), T in sizes => {
        let value = bytemuck::pod_read_unaligned::<T>(value);
        let out = out.slice::<T>();
        if out.len() < PARALLEL {
            out.fill(value);
        } else {
            pool::for_each_mut(out, PARALLEL, |_, part| part.fill(value));
        }
    });
}
