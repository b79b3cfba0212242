//! Reading and writing by index, and moving elements around.
//!
//! Indices are views of any integer type. Every index is checked before anything is written: one that is negative
//! or too large is a [`BadIndex`], never clamped or wrapped. Where an index occurs twice, its updates are applied
//! in the order of the indices, for any number of threads: the *output* is split between threads, never the updates.

mod arith;
mod fill;
mod gather;
mod groups;
mod movement;
mod pad;
pub(crate) mod runs;
mod scatter;
mod search;
mod segment;
#[cfg(test)]
pub(crate) mod testing;

pub use fill::{diagonal, eye, linspace, one_hot, range, triangle};
pub use gather::{gather, gather_nd, take_along_axis};
pub use groups::{Groups, group, group_scratch, group_sum, put_rows, take_rows};
pub use movement::{concat, repeat, tile};
pub use pad::{Pad, pad, roll};
pub use scatter::{Scatter, put_along_axis, scatter_nd};
pub use search::{bincount, count_nonzero, nonzero};
pub use segment::{Empty, Segment, SegmentError, segment, segment_scratch};

use crate::{View, dispatch};
use runs::Runs;
use std::fmt;

/// The least number of elements of cheap work per thread.
pub(crate) const CHUNK: usize = 16 * 1024;

/// How many indices are converted at a time.
const TILE: usize = 64;

/// An index that points outside the dimension it indexes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadIndex {
    /// The index (one beyond `i64` is reported as `i64::MAX`).
    pub value: i64,
    /// The length of the dimension: valid indices are `0..limit`.
    pub limit: usize,
    /// Its position among the indices, in row-major order.
    pub position: usize,
    /// The dimension it indexes.
    pub axis: usize,
}

impl fmt::Display for BadIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let BadIndex { value, limit, position, axis } = self;
        write!(f, "indices of axis {axis} must be in [0, {limit}), got {value} at position {position}")
    }
}

impl std::error::Error for BadIndex {}

/// A view of indices of any integer type, read as `i64`.
pub(crate) struct Indices<'a> {
    view: View<'a>,
    runs: Runs,
    count: usize,
}

impl<'a> Indices<'a> {
    pub(crate) fn new(view: View<'a>) -> Indices<'a> {
        Indices { runs: Runs::of(&view), count: view.len(), view }
    }

    /// The indices with the last dimension left out (fixed at zero).
    fn heads(view: View<'a>) -> Indices<'a> {
        let dims = 0..view.shape().len() - 1;
        let count = view.shape()[dims.clone()].iter().product();
        Indices { runs: Runs::of_dims(&view, dims, view.offset()), count, view }
    }

    /// Reads indices number `start..start + out.len()`, displaced by `shift` elements.
    // Not inlined: eight loops, for a tile of indices at a time.
    #[inline(never)]
    fn read_shifted(&self, shift: isize, start: usize, out: &mut [i64]) {
        dispatch!(self.view.dtype(), T in integers => {
            let data = self.view.data::<T>();
            let mut done = 0;
            self.runs.for_each(start, out.len(), |offset, stride, n| {
                let mut at = offset + shift;
                for slot in &mut out[done..done + n] {
                    *slot = (data[at as usize] as i128).min(i64::MAX as i128) as i64;
                    at += stride;
                }
                done += n;
            });
        });
    }

    /// Reads indices number `start..start + out.len()`.
    #[inline]
    pub(crate) fn read(&self, start: usize, out: &mut [i64]) {
        self.read_shifted(0, start, out);
    }

    fn check_shifted(&self, shift: isize, limit: usize) -> Result<(), (i64, usize)> {
        let mut tile = [0i64; TILE];
        for start in (0..self.count).step_by(TILE) {
            let tile = &mut tile[..TILE.min(self.count - start)];
            self.read_shifted(shift, start, tile);
            // A negative index is a huge one when read as unsigned.
            let bad = |&&v: &&i64| v as u64 >= limit as u64;
            if tile.iter().fold(false, |any, v| any | bad(&v)) {
                let (i, &value) =
                    tile.iter().enumerate().find(|(_, v)| bad(v)).expect("the reduction found one");
                return Err((value, start + i));
            }
        }
        Ok(())
    }

    /// Checks that every index is in `0..limit`.
    pub(crate) fn check(&self, limit: usize, axis: usize) -> Result<(), BadIndex> {
        self.check_shifted(0, limit).map_err(|(value, position)| BadIndex { value, limit, position, axis })
    }
}

/// Index tuples of several coordinates, a view `[.., k]`, or plain row numbers.
pub(crate) struct IndexTuples<'a> {
    heads: Indices<'a>,
    /// Coordinates per tuple, and the stride between them.
    rank: usize,
    stride: isize,
}

impl<'a> IndexTuples<'a> {
    /// Tuples of `k` coordinates from indices `[.., k]`.
    pub(crate) fn tuples(view: View<'a>) -> IndexTuples<'a> {
        let last = view.shape().len() - 1;
        IndexTuples { heads: Indices::heads(view), rank: view.shape()[last], stride: view.strides()[last] }
    }

    /// Tuples of one coordinate.
    pub(crate) fn scalars(view: View<'a>) -> IndexTuples<'a> {
        IndexTuples { heads: Indices::new(view), rank: 1, stride: 0 }
    }

    /// The number of tuples.
    pub(crate) fn count(&self) -> usize {
        self.heads.count
    }

    /// Checks every coordinate against the dimension it indexes, the first of which is number `axis`.
    pub(crate) fn check(&self, shape: &[usize], axis: usize) -> Result<(), BadIndex> {
        let mut first: Option<BadIndex> = None;
        for (c, &limit) in shape[..self.rank].iter().enumerate() {
            if let Err((value, at)) = self.heads.check_shifted(c as isize * self.stride, limit) {
                let position = at * self.rank + c;
                if first.is_none_or(|f| position < f.position) {
                    first = Some(BadIndex { value, limit, position, axis: axis + c });
                }
            }
        }
        first.map_or(Ok(()), Err)
    }

    /// Writes the sum of coordinate times stride of tuples number `start..start + out.len()`.
    #[inline]
    pub(crate) fn read(&self, start: usize, strides: &[isize], out: &mut [isize]) {
        let mut tile = [0i64; TILE];
        let tile = &mut tile[..out.len()];
        out.fill(0);
        for (c, &stride) in strides[..self.rank].iter().enumerate() {
            self.heads.read_shifted(c as isize * self.stride, start, tile);
            for (sum, &index) in out.iter_mut().zip(&*tile) {
                *sum += index as isize * stride;
            }
        }
    }
}

#[cfg(test)]
mod groups_tests;
#[cfg(test)]
mod movement_tests;
#[cfg(test)]
mod tests;
