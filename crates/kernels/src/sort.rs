//! Sorting, selecting and searching.
//!
//! All types have one total order: numbers as usual, NaN above everything. Descending order is the exact reverse of
//! the ascending values, so NaN comes first there. Equal elements keep the order of their indices in both
//! directions. (`-0.0` equals `0.0`; when only values are requested, `-0.0` comes out first.)

mod key;
mod lines;
mod select;
mod unique;

pub use select::{searchsorted, top_k, top_k_scratch};
pub use unique::{Unique, unique_count, unique_fill, unique_scratch};

use crate::index::CHUNK;
use crate::{DType, View, ViewMut, dispatch, pool};
use key::Sortable;
use lines::{Line, Lines, Shared, for_each_line, shares};

/// Bytes of scratch [`sort`] needs: none along the last axis.
pub fn sort_scratch(dtype: DType, shape: &[usize], axis: usize) -> usize {
    let inner: usize = shape[axis + 1..].iter().product();
    if inner == 1 { 0 } else { shares(other_lines(shape, axis)) * shape[axis] * dtype.size() }
}

/// Bytes of scratch [`argsort`] needs: none along the last axis when indices are `i64`.
pub fn argsort_scratch(shape: &[usize], axis: usize, index: DType) -> usize {
    let inner: usize = shape[axis + 1..].iter().product();
    if inner == 1 && index == DType::I64 { 0 } else { shares(other_lines(shape, axis)) * shape[axis] * 8 }
}

/// How many lines run along `axis`.
fn other_lines(shape: &[usize], axis: usize) -> usize {
    shape[..axis].iter().chain(&shape[axis + 1..]).product()
}

/// Where line `i` of a contiguous output starts, when lines are `len` long and `inner` apart.
#[inline]
fn line_start(i: usize, len: usize, inner: usize) -> usize {
    i / inner * len * inner + i % inner
}

/// Elements per thread for lines of this length: sorting is not cheap work.
fn line_chunk(len: usize) -> usize {
    (CHUNK / 8 / len).max(1) * len
}

/// Sorts `x` along `axis` into `out`.
pub fn sort(x: View<'_>, axis: usize, descending: bool, mut out: ViewMut<'_>, scratch: &mut [u8]) {
    assert_eq!(x.shape(), out.shape(), "sort keeps the shape");
    if out.is_empty() {
        return;
    }
    let inner: usize = x.shape()[axis + 1..].iter().product();
    dispatch!(x.dtype(), T in all => {
        type Bits = <T as Sortable>::Bits;
        let lines = Lines::<T>::new(x, axis);
        let bits: &mut [Bits] = bytemuck::cast_slice_mut(out.bytes());
        if inner == 1 {
            pool::for_each_mut(bits, line_chunk(lines.len), |start, out| {
                for (i, slots) in (start / lines.len..).zip(out.chunks_exact_mut(lines.len)) {
                    sort_line(lines.line(i), descending, slots);
                    // The same bytes, now as elements.
                    for slot in slots {
                        *slot = bytemuck::cast(T::decode(*slot));
                    }
                }
            });
        } else {
            let out = Shared::new(bits);
            for_each_line(lines.count, bytemuck::cast_slice_mut::<u8, Bits>(scratch), lines.len, |i, slots| {
                sort_line(lines.line(i), descending, slots);
                let start = line_start(i, lines.len, inner);
                for (j, &slot) in slots.iter().enumerate() {
                    // SAFETY: element j of line i belongs to this call alone.
                    unsafe { out.write(start + j * inner, bytemuck::cast(T::decode(slot))) };
                }
            });
        }
    });
}

/// The most elements that are sorted without a check for interrupts: less than a second of work.
const UNCHECKED: usize = 1 << 23;

/// Sorts, and unwinds when it is interrupted. Longer slices are split at their medians first, which is a part of the work of sorting
/// them.
fn sort_slots<S: Ord>(slots: &mut [S]) {
    pool::check_interrupt();
    if slots.len() <= UNCHECKED {
        return slots.sort_unstable();
    }
    let (low, _, high) = slots.select_nth_unstable(slots.len() / 2);
    sort_slots(low);
    sort_slots(high);
}

/// Fills `slots` with the encoded elements of a line, sorted.
fn sort_line<T: Sortable>(line: Line<'_, T>, descending: bool, slots: &mut [T::Bits]) {
    for (i, slot) in slots.iter_mut().enumerate() {
        *slot = line.get(i).encode();
    }
    sort_slots(slots);
    if descending {
        slots.reverse();
    }
}

/// Writes the indices that sort `x` along `axis` (`i32` or `i64`); equal elements keep their order.
pub fn argsort(x: View<'_>, axis: usize, descending: bool, mut out: ViewMut<'_>, scratch: &mut [u8]) {
    assert_eq!(x.shape(), out.shape(), "argsort keeps the shape");
    if out.is_empty() {
        return;
    }
    let inner: usize = x.shape()[axis + 1..].iter().product();
    let index = out.dtype();
    dispatch!(x.dtype(), T in all => {
        let lines = Lines::<T>::new(x, axis);
        if inner == 1 && index == DType::I64 {
            let slots: &mut [u64] = bytemuck::cast_slice_mut(out.bytes());
            pool::for_each_mut(slots, line_chunk(lines.len), |start, out| {
                for (i, slots) in (start / lines.len..).zip(out.chunks_exact_mut(lines.len)) {
                    argsort_line(lines.line(i), descending, slots);
                }
            });
        } else {
            let slots: &mut [u64] = bytemuck::cast_slice_mut(scratch);
            let out = SharedIndices::new(&mut out);
            for_each_line(lines.count, slots, lines.len, |i, slots| {
                argsort_line(lines.line(i), descending, slots);
                let start = line_start(i, lines.len, inner);
                for (j, &slot) in slots.iter().enumerate() {
                    // SAFETY: element j of line i belongs to this call alone.
                    unsafe { out.write(start + j * inner, slot as usize) };
                }
            });
        }
    });
}

/// An output of indices that several threads write, each to elements of its own.
enum SharedIndices<'a> {
    I32(Shared<'a, i32>),
    I64(Shared<'a, i64>),
}

impl<'a> SharedIndices<'a> {
    fn new(out: &'a mut ViewMut<'_>) -> SharedIndices<'a> {
        match out.dtype() {
            DType::I32 => SharedIndices::I32(Shared::new(out.slice())),
            DType::I64 => SharedIndices::I64(Shared::new(out.slice())),
            other => panic!("indices are int32 or int64, not {other}"),
        }
    }

    /// Writes element `i`.
    ///
    /// # Safety
    /// No other thread writes element `i` while this output is shared.
    #[inline]
    unsafe fn write(&self, i: usize, index: usize) {
        // SAFETY: the caller's promise is the one these calls ask for.
        unsafe {
            match self {
                SharedIndices::I32(out) => out.write(i, index as i32),
                SharedIndices::I64(out) => out.write(i, index as i64),
            }
        }
    }
}

/// Fills `slots` with the indices that sort a line.
///
/// Half of each slot holds the index, half the top bits of the key's distance from the smallest key: sorting plain
/// integers is several times faster than chasing indices. Where 32 bits do not tell two keys apart, the few elements
/// that tie are sorted again by the whole key.
fn argsort_line<T: Sortable>(line: Line<'_, T>, descending: bool, slots: &mut [u64]) {
    let flip = if descending { u64::MAX } else { 0 };
    let key = |i: usize| line.get(i).key() ^ flip;
    if line.len > u32::MAX as usize {
        slots.iter_mut().enumerate().for_each(|(i, slot)| *slot = i as u64);
        slots.sort_unstable_by_key(|&i| (key(i as usize), i));
        return;
    }
    let (mut low, mut high) = (u64::MAX, 0);
    for i in 0..line.len {
        low = low.min(key(i));
        high = high.max(key(i));
    }
    let shift = 32u32.saturating_sub((high - low).leading_zeros());
    for (i, slot) in slots.iter_mut().enumerate() {
        *slot = ((key(i) - low) >> shift) << 32 | i as u64;
    }
    sort_slots(slots);
    if shift > 0 {
        for ties in slots.chunk_by_mut(|a, b| a >> 32 == b >> 32).filter(|ties| ties.len() > 1) {
            ties.sort_unstable_by_key(|&slot| (key(slot as u32 as usize), slot));
        }
    }
    for slot in slots {
        *slot &= u32::MAX as u64;
    }
}

#[cfg(test)]
mod tests;
