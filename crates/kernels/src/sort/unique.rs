//! The distinct values of a tensor.

use super::argsort_line;
use super::key::Sortable;
use super::lines::Lines;
use crate::index::runs::Runs;
use crate::pool::check_interrupt;
use crate::{DType, View, ViewMut, dispatch};

/// Where [`unique_fill`] writes. Indices and counts are `i32` or `i64`.
#[derive(Debug)]
pub struct Unique<'a> {
    /// The distinct values in ascending order, NaNs last. A NaN is equal to no other.
    pub values: ViewMut<'a>,
    /// For each value, the row-major index where it first occurs. Sorting by it gives the order of first appearance.
    pub first: Option<ViewMut<'a>>,
    /// For each element, the number of its value.
    pub inverse: Option<ViewMut<'a>>,
    /// How often each value occurs.
    pub counts: Option<ViewMut<'a>>,
}

/// Bytes of scratch for [`unique_count`] and [`unique_fill`]: eight per element, and a row-major copy of elements that
/// are not contiguous.
pub fn unique_scratch(x: View<'_>) -> usize {
    x.len() * (8 + if x.is_contiguous() { 0 } else { x.dtype().size() })
}

/// Splits the scratch, and calls `$body` with `x` as one line `$line` and its sorted indices `$order`.
macro_rules! with_line {
    ($x:expr, $scratch:expr, $T:ident, |$line:ident, $order:ident| $body:expr) => {
        dispatch!($x.dtype(), $T in all => {
            let count = $x.len();
            let (order, copy) = $scratch.split_at_mut(8 * count);
            let $order: &mut [u64] = bytemuck::cast_slice_mut(order);
            let shape = [count];
            let (bytes, offset): (&[u8], usize) = if $x.is_contiguous() {
                (bytemuck::cast_slice($x.data::<$T>()), $x.offset())
            } else {
                let copy = &mut bytemuck::cast_slice_mut::<u8, $T>(copy)[..count];
                Runs::of(&$x).read($x.data::<$T>(), 0, 0, copy);
                (bytemuck::cast_slice(copy), 0)
            };
            let flat = View::new($x.dtype(), bytes, offset, &shape, &[1]);
            let $line = Lines::<$T>::new(flat, 0).line(0);
            $body
        })
    };
}

/// Whether two elements are one value: by their keys, which tell denormal numbers apart, and a NaN is equal to no other.
fn are_equal<T: Sortable + PartialEq>(a: T, b: T) -> bool {
    a == b && a.key() == b.key()
}

/// How many distinct values `x` has. The scratch then holds what [`unique_fill`] needs.
pub fn unique_count(x: View<'_>, scratch: &mut [u8]) -> usize {
    if x.is_empty() {
        return 0;
    }
    with_line!(x, scratch, T, |line, order| {
        argsort_line(line, false, order);
        let value = |slot: u64| line.get(slot as usize);
        1 + order.windows(2).filter(|pair| !are_equal(value(pair[0]), value(pair[1]))).count()
    })
}

/// Writes the distinct values of `x` and the other requested outputs, with the scratch as [`unique_count`] left it.
pub fn unique_fill(x: View<'_>, scratch: &mut [u8], mut out: Unique<'_>) {
    if x.is_empty() {
        return;
    }
    with_line!(x, scratch, T, |line, order| {
        let value = |slot: u64| line.get(slot as usize);
        let groups = order.chunk_by(|&a, &b| are_equal(value(a), value(b)));
        let values = out.values.slice::<T>();
        for (group, (indices, value)) in groups.zip(values).enumerate() {
            if group.is_multiple_of(1 << 16) {
                check_interrupt();
            }
            // Equal values are in the order of their indices: the first is the lowest.
            *value = line.get(indices[0] as usize);
            put(&mut out.first, group, indices[0] as usize);
            put(&mut out.counts, group, indices.len());
            for &i in indices {
                put(&mut out.inverse, i as usize, group);
            }
        }
    });
}

/// Writes one index, if it is requested.
#[inline]
fn put(out: &mut Option<ViewMut<'_>>, i: usize, value: usize) {
    let Some(out) = out else { return };
    match out.dtype() {
        DType::I32 => out.slice::<i32>()[i] = value as i32,
        DType::I64 => out.slice::<i64>()[i] = value as i64,
        other => panic!("indices are int32 or int64, not {other}"),
    }
}
