//! Reductions over groups of rows.

use super::arith::Arith;
use super::scatter::{Updates, scatter_rows};
use super::{BadIndex, IndexTuples, Indices, TILE};
use crate::{DType, Element, View, ViewMut, dispatch};
use std::fmt;

/// How the rows of a segment become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Segment {
    /// Their sum.
    Sum,
    /// Their sum divided by their number; integers truncate.
    Mean,
    /// Their product.
    Prod,
    /// The largest; NaN propagates.
    Max,
    /// The smallest; NaN propagates.
    Min,
}

/// What a segment without rows becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Empty {
    /// Zero.
    Zero,
    /// The identity: 0 for sums and means, 1 for products, and for the largest (smallest) the lowest
    /// (highest) finite value of the type.
    Identity,
}

/// Why segment ids were rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentError {
    /// An id names no segment.
    BadIndex(BadIndex),
    /// Ids that must be sorted are not: this one is smaller than the one before.
    NotSorted {
        /// Which id, counted in row-major order.
        position: usize,
    },
}

impl From<BadIndex> for SegmentError {
    fn from(bad: BadIndex) -> SegmentError {
        SegmentError::BadIndex(bad)
    }
}

impl fmt::Display for SegmentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SegmentError::BadIndex(bad) => bad.fmt(f),
            SegmentError::NotSorted { position } => {
                write!(f, "segment ids must not decrease, got a smaller one at position {position}")
            }
        }
    }
}

impl std::error::Error for SegmentError {}

/// Bytes of scratch [`segment`] needs for an output of this type and shape: a count per segment, and room for half
/// precision sums in single precision.
pub fn segment_scratch(dtype: DType, shape: &[usize]) -> usize {
    let wide = if dtype.size() == 2 && dtype.is_float() { 4 * shape.iter().product::<usize>() } else { 0 };
    shape.first().map_or(0, |segments| 8 * segments) + wide
}

/// Reduces the rows of `x` with equal `ids` to one row of `out`, in the order of the rows. `ids` has the leading
/// dimensions of `x`, `out` one row per segment. If `sorted`, ids must not decrease.
pub fn segment(
    code: Segment,
    x: View<'_>,
    ids: View<'_>,
    sorted: bool,
    empty: Empty,
    mut out: ViewMut<'_>,
    scratch: &mut [u8],
) -> Result<(), SegmentError> {
    let segments = out.shape()[0];
    let row: usize = out.shape()[1..].iter().product();
    assert!(x.shape().starts_with(ids.shape()), "ids do not match the rows");
    assert!(x.dtype() == out.dtype(), "an output of another type");
    let indices = Indices::new(ids);
    // The order is checked first: a caller that took the number of segments from the last id gets the right error then.
    if sorted {
        check_sorted(&indices)?;
    }
    indices.check(segments, 0)?;
    if out.is_empty() {
        return Ok(());
    }
    assert_eq!(x.len(), ids.len() * row, "rows of another length");
    if x.dtype().is_complex() {
        let ((shape, strides), all) = (x.part_layout(), out.part_shape());
        return segment(code, x.parts(&shape, &strides), ids, sorted, empty, out.parts(&all), scratch);
    }
    let (counts, wide) = scratch.split_at_mut(8 * segments);
    let counts: &mut [u64] = bytemuck::cast_slice_mut(counts);
    counts.fill(0);
    let mut tile = [0i64; TILE];
    for start in (0..indices.count).step_by(TILE) {
        let tile = &mut tile[..TILE.min(indices.count - start)];
        indices.read(start, tile);
        for &id in tile.iter() {
            counts[id as usize] += 1;
        }
    }
    let places = IndexTuples::scalars(ids);
    dispatch!(x.dtype(), T in numbers => {
        type Wide = <T as Arith>::Wide;
        let updates = Updates::<T>::new(x, row);
        if size_of::<T>() == size_of::<Wide>() {
            reduce::<T, T>(code, &places, &updates, out.slice(), |v| v);
            finish::<T>(code, empty, counts, row, out.slice());
        } else {
            let wide = &mut bytemuck::cast_slice_mut::<u8, Wide>(wide)[..out.len()];
            reduce::<T, Wide>(code, &places, &updates, wide, T::widen);
            if code == Segment::Mean {
                divide(counts, row, wide);
            }
            for (narrow, &wide) in out.slice::<T>().iter_mut().zip(&*wide) {
                *narrow = T::narrow(wide);
            }
            // The mean is taken already.
            let code = if code == Segment::Mean { Segment::Sum } else { code };
            finish::<T>(code, empty, counts, row, out.slice());
        }
    });
    Ok(())
}

fn check_sorted(indices: &Indices<'_>) -> Result<(), SegmentError> {
    let mut tile = [0i64; TILE];
    let mut before = i64::MIN;
    for start in (0..indices.count).step_by(TILE) {
        let tile = &mut tile[..TILE.min(indices.count - start)];
        indices.read(start, tile);
        for (i, &id) in tile.iter().enumerate() {
            if id < before {
                return Err(SegmentError::NotSorted { position: start + i });
            }
            before = id;
        }
    }
    Ok(())
}

/// Starts every segment at its identity and folds the rows in.
fn reduce<T: Element, A: Arith>(
    code: Segment,
    places: &IndexTuples<'_>,
    updates: &Updates<'_, T>,
    out: &mut [A],
    widen: impl Fn(T) -> A + Sync,
) {
    match code {
        Segment::Sum | Segment::Mean => {
            out.fill(A::ZERO);
            scatter_rows(out, places, &[1], updates, |a: A, t| a.add(widen(t)));
        }
        Segment::Prod => {
            out.fill(A::ONE);
            scatter_rows(out, places, &[1], updates, |a: A, t| a.mul(widen(t)));
        }
        Segment::Max => {
            fold_extreme(places, updates, out, &widen, A::max);
        }
        Segment::Min => {
            fold_extreme(places, updates, out, &widen, A::min);
        }
    }
}

/// Largest or smallest: two passes, so that infinities need no identity: every segment starts at one of its own rows.
fn fold_extreme<T: Element, A: Arith>(
    places: &IndexTuples<'_>,
    updates: &Updates<'_, T>,
    out: &mut [A],
    widen: &(impl Fn(T) -> A + Sync),
    pick: impl Fn(A, A) -> A + Sync,
) {
    scatter_rows(out, places, &[1], updates, |_, t| widen(t));
    scatter_rows(out, places, &[1], updates, |a: A, t| pick(a, widen(t)));
}

fn divide<A: Arith>(counts: &[u64], row: usize, out: &mut [A]) {
    for (row, &count) in out.chunks_exact_mut(row).zip(counts) {
        if count > 1 {
            for value in row {
                *value = value.share(count);
            }
        }
    }
}

/// Divides means, and gives segments without rows their value.
fn finish<T: Arith>(code: Segment, empty: Empty, counts: &[u64], row: usize, out: &mut [T]) {
    if code == Segment::Mean {
        divide(counts, row, out);
    }
    let value = match (empty, code) {
        (Empty::Zero, _) | (_, Segment::Sum | Segment::Mean) => T::ZERO,
        (_, Segment::Prod) => T::ONE,
        (_, Segment::Max) => T::LOWEST,
        (_, Segment::Min) => T::HIGHEST,
    };
    for (row, _) in out.chunks_exact_mut(row).zip(counts).filter(|(_, count)| **count == 0) {
        row.fill(value);
    }
}
