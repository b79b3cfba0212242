//! Groups of rows with equal ids, found by sorting the ids, without an array of all possible ids.
//!
//! Unlike elsewhere in this module, an id out of range is skipped, not an error. Only [`group`] checks all ids, so the functions that run
//! after it cannot fail after they have written a part.

use super::arith::Arith;
use super::gather::row_chunk;
use super::runs::Runs;
use super::scatter::SHARES;
use super::{BadIndex, CHUNK, Indices, TILE};
use crate::{View, ViewMut, dispatch, pool};
use std::ops::Range;

/// Bytes of scratch that [`group`] needs for `ids` ids.
pub const fn group_scratch(ids: usize) -> usize {
    8 * ids
}

/// Sorts ids, all of which must be in `0..limit`. `order` gets their positions in stable sorted order, so that equal ids are neighbours;
/// `starts` the start of each group of equal ids in `order`, and the number of ids after the last group. Returns the number of groups.
/// Both are `int32`.
pub fn group(
    ids: View<'_>,
    limit: usize,
    mut order: ViewMut<'_>,
    mut starts: ViewMut<'_>,
    scratch: &mut [u8],
) -> Result<usize, BadIndex> {
    let count = ids.len();
    let ids = Indices::new(ids);
    ids.check(limit, 0)?;
    let keys: &mut [u64] = bytemuck::cast_slice_mut(&mut scratch[..group_scratch(count)]);
    let mut tile = [0i64; TILE];
    for (t, keys) in keys.chunks_mut(TILE).enumerate() {
        let tile = &mut tile[..keys.len()];
        ids.read(t * TILE, tile);
        for (i, (key, &id)) in keys.iter_mut().zip(&*tile).enumerate() {
            *key = (id as u64) << 32 | (t * TILE + i) as u64;
        }
    }
    // No two keys are equal: sorting them is stable.
    keys.sort_unstable();
    let (order, starts) = (order.slice::<i32>(), starts.slice::<i32>());
    let mut groups = 0;
    let mut last = u64::MAX;
    for (i, &key) in keys.iter().enumerate() {
        order[i] = key as u32 as i32;
        if key >> 32 != last {
            last = key >> 32;
            starts[groups] = i as i32;
            groups += 1;
        }
    }
    starts[groups..].fill(count as i32);
    Ok(groups)
}

/// The result of [`group`].
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    /// The ids.
    pub ids: View<'a>,
    /// Their positions, sorted by id.
    pub order: View<'a>,
    /// The starts of the groups.
    pub starts: View<'a>,
}

/// The members of a group, as positions in `order`; none if there is no such group.
#[inline]
fn members(starts: &[i32], total: usize, group: usize) -> Range<usize> {
    let at = |group: usize| starts.get(group).map_or(total, |&start| (start as usize).min(total));
    let end = at(group + 1);
    at(group).min(end)..end
}

/// The sum of the rows of each group from number `first` on, in their order, and its id; zeros and -1 after the last group.
/// Half-precision sums are accumulated in single precision. Order and starts are contiguous.
pub fn group_sum(
    rows: View<'_>,
    groups: &Groups<'_>,
    first: usize,
    mut ids: ViewMut<'_>,
    mut out: ViewMut<'_>,
) {
    let total = groups.ids.len();
    let (Some(order), Some(starts)) = (groups.order.contiguous::<i32>(), groups.starts.contiguous::<i32>())
    else {
        panic!("order and starts are contiguous");
    };
    let own = Indices::new(groups.ids);
    for (i, id) in ids.slice::<i64>().iter_mut().enumerate() {
        let members = members(starts, total, first + i);
        *id = -1;
        if let Some(&one) = order.get(members.start).filter(|_| !members.is_empty()) {
            own.read(one as usize, std::slice::from_mut(id));
        }
    }
    let row: usize = rows.shape()[1..].iter().product();
    if row == 0 || out.is_empty() {
        return;
    }
    let (stride, base) = (rows.strides()[0], rows.offset() as isize);
    let tail = Runs::of_dims(&rows, 1..rows.shape().len(), 0);
    dispatch!(rows.dtype(), T in numbers => {
        let data = rows.data::<T>();
        pool::for_each_mut(out.slice::<T>(), row_chunk(row), |start, out| {
            for (i, out) in out.chunks_exact_mut(row).enumerate() {
                let members = members(starts, total, first + start / row + i);
                let places = order[members].iter().map(|&at| base + at as isize * stride);
                add_rows(data, &tail, places, out);
            }
        });
    });
}

/// Writes the sum of the rows at `places`, one after the other, into `out`.
#[inline]
fn add_rows<T: Arith>(
    data: &[T],
    tail: &Runs,
    mut places: impl Iterator<Item = isize> + Clone,
    out: &mut [T],
) {
    let Some(first) = places.next() else { return out.fill(T::ZERO) };
    let mut rest = places.peekable();
    if rest.peek().is_none() {
        return tail.read(data, first, 0, out);
    }
    let mut sums = [T::Wide::ZERO; TILE];
    let mut part = [T::ZERO; TILE];
    for (t, out) in out.chunks_mut(TILE).enumerate() {
        let (sums, part) = (&mut sums[..out.len()], &mut part[..out.len()]);
        tail.read(data, first, t * TILE, part);
        sums.iter_mut().zip(&*part).for_each(|(sum, &value)| *sum = value.widen());
        for place in rest.clone() {
            tail.read(data, place, t * TILE, part);
            sums.iter_mut().zip(&*part).for_each(|(sum, &value)| *sum = sum.add(value.widen()));
        }
        out.iter_mut().zip(&*sums).for_each(|(out, &sum)| *out = T::narrow(sum));
    }
}

/// Gathers the rows of `x` with these ids; zeros for ids out of range.
pub fn take_rows(x: View<'_>, ids: View<'_>, mut out: ViewMut<'_>) {
    let rows = x.shape()[0];
    let row: usize = x.shape()[1..].iter().product();
    if out.is_empty() {
        return;
    }
    let ids = Indices::new(ids);
    let (stride, base) = (x.strides()[0], x.offset() as isize);
    let tail = Runs::of_dims(&x, 1..x.shape().len(), 0);
    dispatch!(x.dtype(), T in sizes => {
        let data = x.data::<T>();
        pool::for_each_mut(out.slice::<T>(), row_chunk(row), |start, out| {
            let mut tile = [0i64; TILE];
            for (t, out) in out.chunks_mut(TILE * row).enumerate() {
                let tile = &mut tile[..out.len() / row];
                ids.read(start / row + t * TILE, tile);
                for (out, &id) in out.chunks_exact_mut(row).zip(&*tile) {
                    if id as u64 >= rows as u64 {
                        out.fill(bytemuck::Zeroable::zeroed());
                    } else {
                        tail.read(data, base + id as isize * stride, 0, out);
                    }
                }
            }
        });
    });
}

/// Scatters rows to the rows of `out` with these ids; rows whose ids are out of range are dropped. Of several rows for one id, the last is kept.
pub fn put_rows(mut out: ViewMut<'_>, ids: View<'_>, rows: View<'_>) {
    let row: usize = out.shape()[1..].iter().product();
    let count = ids.len();
    if out.is_empty() || count == 0 {
        return;
    }
    let all = out.shape()[0];
    let ids = Indices::new(ids);
    let from = Runs::of(&rows);
    let shares = if row >= 8 && count * row > CHUNK { SHARES } else { 1 };
    dispatch!(rows.dtype(), T in sizes => {
        let data = rows.data::<T>();
        pool::for_each_mut(out.slice::<T>(), all.div_ceil(shares) * row, |start, out| {
            let mut tile = [0i64; TILE];
            for at in (0..count).step_by(TILE) {
                let tile = &mut tile[..TILE.min(count - at)];
                ids.read(at, tile);
                for (i, &id) in tile.iter().enumerate() {
                    let local = usize::try_from(id).ok().and_then(|id| id.checked_sub(start / row));
                    let Some(local) = local.filter(|&local| local < out.len() / row) else { continue };
                    from.read(data, 0, (at + i) * row, &mut out[local * row..(local + 1) * row]);
                }
            }
        });
    });
}
