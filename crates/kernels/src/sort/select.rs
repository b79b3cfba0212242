//! The largest elements of a line, and binary search in a sorted one.

use super::key::Sortable;
use super::lines::{Line, Lines, Shared, for_each_line, shares};
use super::{SharedIndices, sort_slots};
use crate::index::CHUNK;
use crate::{DType, View, ViewMut, dispatch, pool};

/// Bytes of scratch [`top_k`] needs: room for `2k` candidates per share of the lines.
pub fn top_k_scratch(dtype: DType, shape: &[usize], k: usize) -> usize {
    let (n, heads) = shape.split_last().expect("top_k needs a dimension");
    shares(heads.iter().product()) * room(k, *n) * if dtype.size() == 8 { 16 } else { 8 }
}

/// How many candidates are kept before the worse half is dropped.
fn room(k: usize, n: usize) -> usize {
    (2 * k).min(n)
}

/// Finds the `k` largest elements along the last axis: `values` of `x`'s type and `indices` (`i32` or `i64`), both
/// `[.., k]`. NaN is the largest; of equal elements the one with the lower index comes first. If not `sorted`, they
/// come in no particular order.
pub fn top_k(
    x: View<'_>,
    k: usize,
    sorted: bool,
    mut values: ViewMut<'_>,
    mut indices: ViewMut<'_>,
    scratch: &mut [u8],
) {
    let (&n, heads) = x.shape().split_last().expect("top_k needs a dimension");
    assert!(k <= n, "k must be <= the length of the axis");
    assert_eq!(values.len(), heads.iter().product::<usize>() * k, "top_k's output shape");
    assert_eq!(values.len(), indices.len(), "an index per value");
    assert!(u32::try_from(n).is_ok(), "a line too long for top_k");
    if values.is_empty() {
        return;
    }
    dispatch!(x.dtype(), T in all => {
        let lines = Lines::<T>::new(x, heads.len());
        let values = Shared::new(values.slice::<T>());
        let indices = SharedIndices::new(&mut indices);
        let emit = |line: usize, place: usize, index: u32| {
            let value = lines.line(line).get(index as usize);
            // SAFETY: `for_each_line` gives a line to one call, which emits each of its places once.
            unsafe {
                indices.write(line * k + place, index as usize);
                values.write(line * k + place, value);
            }
        };
        if T::WIDTH <= 32 {
            let slots: &mut [u64] = bytemuck::cast_slice_mut(scratch);
            for_each_line(lines.count, slots, room(k, n), |i, slots| {
                let make = |key: u64, index: usize| (!(key as u32) as u64) << 32 | index as u64;
                let best = largest(lines.line(i), k, sorted, slots, make);
                best.iter().enumerate().for_each(|(place, &slot)| emit(i, place, slot as u32));
            });
        } else {
            let slots: &mut [u128] = bytemuck::cast_slice_mut(scratch);
            for_each_line(lines.count, slots, room(k, n), |i, slots| {
                let make = |key: u64, index: usize| (!key as u128) << 32 | index as u128;
                let best = largest(lines.line(i), k, sorted, slots, make);
                best.iter().enumerate().for_each(|(place, &slot)| emit(i, place, slot as u32));
            });
        }
    });
}

/// The `k` smallest of what `make` makes of each key and index: one pass that keeps candidates below the worst of
/// the best `k` so far, and drops the worse half whenever the room is full.
fn largest<'s, T: Sortable, S: Copy + Ord>(
    line: Line<'_, T>,
    k: usize,
    sorted: bool,
    slots: &'s mut [S],
    make: impl Fn(u64, usize) -> S,
) -> &'s [S] {
    let mut held = 0;
    let mut worst: Option<S> = None;
    for i in 0..line.len {
        let slot = make(line.get(i).key(), i);
        if worst.is_some_and(|worst| slot > worst) {
            continue;
        }
        slots[held] = slot;
        held += 1;
        if held == slots.len() && held > k {
            pool::check_interrupt();
            worst = Some(*slots.select_nth_unstable(k - 1).1);
            held = k;
        }
    }
    if held > k {
        slots[..held].select_nth_unstable(k - 1);
    }
    if sorted {
        sort_slots(&mut slots[..k]);
    }
    &slots[..k]
}

/// Finds where each of `values[.., m]` belongs in the ascending lines `sorted[.., n]`: the number of elements below
/// it, or not above it if `right`. `out` (`i32` or `i64`) has `values`' shape; both inputs have one type.
pub fn searchsorted(sorted: View<'_>, values: View<'_>, right: bool, mut out: ViewMut<'_>) {
    assert_eq!(values.shape(), out.shape(), "a place per value");
    assert_eq!(sorted.dtype(), values.dtype(), "values of another type");
    let axis = values.shape().len().checked_sub(1).expect("searchsorted needs a dimension");
    assert_eq!(sorted.shape()[..axis], values.shape()[..axis], "leading dimensions differ");
    if out.is_empty() {
        return;
    }
    dispatch!(values.dtype(), T in all => {
        let (rows, wanted) = (Lines::<T>::new(sorted, axis), Lines::<T>::new(values, axis));
        let place = |i: usize| {
            let (row, value) = (rows.line(i / wanted.len), wanted.line(i / wanted.len).get(i % wanted.len).key());
            partition(row.len, |j| if right { row.get(j).key() <= value } else { row.get(j).key() < value })
        };
        match out.dtype() {
            DType::I32 => pool::for_each_mut(out.slice::<i32>(), CHUNK / 8, |start, out| {
                (start..).zip(out).for_each(|(i, slot)| *slot = place(i) as i32);
            }),
            DType::I64 => pool::for_each_mut(out.slice::<i64>(), CHUNK / 8, |start, out| {
                (start..).zip(out).for_each(|(i, slot)| *slot = place(i) as i64);
            }),
            other => panic!("indices are int32 or int64, not {other}"),
        }
    });
}

/// How many of `0..len` come before the first for which `before` is false.
#[inline]
fn partition(len: usize, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
