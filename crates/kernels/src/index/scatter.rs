//! Writing by index, into an output that already has values.

use super::arith::Arith;
use super::gather::row_chunk;
use super::runs::{Runs, Small};
use super::{BadIndex, CHUNK, IndexTuples, Indices, TILE};
use crate::{Element, View, ViewMut, dispatch, pool};

/// How an update is combined with the existing value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scatter {
    /// Replaces it; of several updates of one element, the last is kept.
    Update,
    /// Adds to it.
    Add,
    /// Subtracts from it.
    Sub,
    /// Keeps the larger; NaN propagates.
    Max,
    /// Keeps the smaller; NaN propagates.
    Min,
    /// Multiplies it.
    Mul,
}

/// Runs `$body` with `$f` bound to the combining function of a code that computes.
macro_rules! combining {
    ($code:expr, $A:ty, $f:ident => $body:expr) => {
        match $code {
            Scatter::Update => {
                let $f = |_: $A, new: $A| new;
                $body
            }
            Scatter::Add => {
                let $f = <$A as Arith>::add;
                $body
            }
            Scatter::Sub => {
                let $f = <$A as Arith>::sub;
                $body
            }
            Scatter::Max => {
                let $f = <$A as Arith>::max;
                $body
            }
            Scatter::Min => {
                let $f = <$A as Arith>::min;
                $body
            }
            Scatter::Mul => {
                let $f = <$A as Arith>::mul;
                $body
            }
        }
    };
}

/// The updates: a view read as rows, in row-major order.
pub(super) struct Updates<'a, T> {
    data: &'a [T],
    runs: Runs,
    row: usize,
}

impl<'a, T: Element> Updates<'a, T> {
    pub(super) fn new(view: View<'a>, row: usize) -> Updates<'a, T> {
        Updates { data: view.data(), runs: Runs::of(&view), row }
    }

    /// Calls `f` on each value of `out` and the update for it from row `number`.
    #[inline]
    fn apply<A: Copy>(&self, number: usize, out: &mut [A], f: impl Fn(A, T) -> A) {
        let mut done = 0;
        self.runs.for_each(number * self.row, self.row, |offset, stride, n| {
            let part = &mut out[done..done + n];
            done += n;
            if stride == 1 {
                let from = &self.data[offset as usize..offset as usize + n];
                for (value, &update) in part.iter_mut().zip(from) {
                    *value = f(*value, update);
                }
            } else {
                let mut at = offset;
                for value in part {
                    *value = f(*value, self.data[at as usize]);
                    at += stride;
                }
            }
        });
    }
}

/// The most threads per output. Each reads all index tuples, so more of them are slower.
pub(super) const SHARES: usize = 8;

/// Applies row `i` of the updates to the row of `out` that place `i` names, in order, for every `i`. `strides` turn
/// coordinates into row numbers.
pub(super) fn scatter_rows<A: Send + Copy, T: Element>(
    out: &mut [A],
    places: &IndexTuples<'_>,
    strides: &[isize],
    updates: &Updates<'_, T>,
    combine: impl Fn(A, T) -> A + Sync,
) {
    let row = updates.row;
    let count = places.count();
    let rows = out.len() / row;
    let shares = if row >= 8 && count * row > CHUNK { SHARES } else { 1 };
    pool::for_each_mut(out, rows.div_ceil(shares) * row, |start, out| {
        let first = start / row;
        let mut tile = [0isize; TILE];
        for at in (0..count).step_by(TILE) {
            let tile = &mut tile[..TILE.min(count - at)];
            places.read(at, strides, tile);
            for (i, &target) in tile.iter().enumerate() {
                let Some(local) = (target as usize).checked_sub(first) else { continue };
                if let Some(slots) = out.get_mut(local * row..(local + 1) * row) {
                    updates.apply(at + i, slots, &combine);
                }
            }
        }
    });
}

/// Combines `updates` into the slices of `out` that the `k` coordinates in `indices[.., k]` name. `updates` has the
/// shape `indices[..-1] + out[k..]`. Types without arithmetic (`bool`) can only be updated; complex
/// numbers only updated, added and subtracted.
pub fn scatter_nd(
    code: Scatter,
    mut out: ViewMut<'_>,
    indices: View<'_>,
    updates: View<'_>,
) -> Result<(), BadIndex> {
    let shape = out.shape();
    let k = *indices.shape().last().expect("indices have a last dimension");
    let places = IndexTuples::tuples(indices);
    let row: usize = shape[k..].iter().product();
    assert_eq!(updates.len(), places.count() * row, "updates of another shape");
    assert_eq!(updates.dtype(), out.dtype(), "updates of another type");
    places.check(&shape[..k], 0)?;
    if out.is_empty() || updates.is_empty() {
        return Ok(());
    }
    let mut strides = Small::<isize>::zeros(k);
    let mut stride = 1;
    for (slot, &len) in strides.iter_mut().zip(&shape[..k]).rev() {
        *slot = stride;
        stride *= len as isize;
    }
    if code != Scatter::Update && out.dtype().is_complex() {
        let ((rows, strides), all) = (updates.part_layout(), out.part_shape());
        return scatter_nd(code, out.parts(&all), indices, updates.parts(&rows, &strides));
    }
    if code == Scatter::Update {
        dispatch!(out.dtype(), T in sizes => {
            let updates = Updates::<T>::new(updates, row);
            scatter_rows(out.slice::<T>(), &places, &strides, &updates, |_, new| new);
        });
    } else {
        dispatch!(out.dtype(), T in numbers => {
            let updates = Updates::<T>::new(updates, row);
            combining!(code, T, f => scatter_rows(out.slice::<T>(), &places, &strides, &updates, f));
        });
    }
    Ok(())
}

/// Combines each update into the element of `out` that its index names along `axis`: the inverse of
/// [`take_along_axis`](super::take_along_axis). `updates` has the shape of `indices`, which is `out`'s but for `axis`.
pub fn put_along_axis(
    code: Scatter,
    mut out: ViewMut<'_>,
    indices: View<'_>,
    updates: View<'_>,
    axis: usize,
) -> Result<(), BadIndex> {
    let shape = out.shape();
    assert_eq!(indices.shape(), updates.shape(), "an update per index");
    assert_eq!(updates.dtype(), out.dtype(), "updates of another type");
    assert!(
        shape.iter().zip(indices.shape()).enumerate().all(|(d, (a, b))| d == axis || a == b)
            && shape.len() == indices.shape().len(),
        "shapes differ beyond the axis"
    );
    let (whole, axes) = (indices, shape.len());
    let inner: usize = shape[axis + 1..].iter().product();
    let lines = indices.shape()[axis];
    let indices = Indices::new(indices);
    indices.check(shape[axis], axis)?;
    if out.is_empty() || updates.is_empty() {
        return Ok(());
    }
    let block = shape[axis] * inner;
    if code != Scatter::Update && out.dtype().is_complex() {
        let ((shape, strides), all) = (updates.part_layout(), out.part_shape());
        let mut repeated = Small::zeros(shape.len());
        repeated[..axes].copy_from_slice(whole.strides());
        let indices = whole.with_layout(&shape, &repeated);
        return put_along_axis(code, out.parts(&all), indices, updates.parts(&shape, &strides), axis);
    }
    if code == Scatter::Update {
        dispatch!(out.dtype(), T in sizes => {
            put::<T>(out.slice(), &indices, &updates, block, lines, inner, |_, new| new);
        });
    } else {
        dispatch!(out.dtype(), T in numbers => {
            combining!(code, T, f => put::<T>(out.slice(), &indices, &updates, block, lines, inner, f));
        });
    }
    Ok(())
}

/// [`put_along_axis`] on `out` seen as blocks `[axis, inner]`, each with `lines` rows of updates.
fn put<T: Element>(
    out: &mut [T],
    indices: &Indices<'_>,
    updates: &View<'_>,
    block: usize,
    lines: usize,
    inner: usize,
    combine: impl Fn(T, T) -> T + Sync,
) {
    let (runs, data) = (Runs::of(updates), updates.data::<T>());
    let per_block = lines * inner;
    pool::for_each_mut(out, row_chunk(block), |start, out| {
        let mut index = [0i64; TILE];
        let mut value = [T::zeroed(); TILE];
        for (b, out) in out.chunks_exact_mut(block).enumerate() {
            let base = (start / block + b) * per_block;
            for at in (0..per_block).step_by(TILE) {
                let n = TILE.min(per_block - at);
                indices.read(base + at, &mut index[..n]);
                runs.read(data, 0, base + at, &mut value[..n]);
                let mut column = at % inner;
                for (&i, &v) in index[..n].iter().zip(&value) {
                    let slot = &mut out[i as usize * inner + column];
                    *slot = combine(*slot, v);
                    column = if column + 1 == inner { 0 } else { column + 1 };
                }
            }
        }
    });
}
