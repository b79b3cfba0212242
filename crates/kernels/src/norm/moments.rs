//! Mean and variance, accurate for any offset.

use super::float::*;
use super::source::*;
use super::{CHUNK, statistics_dtype};
use crate::dtype::Element;
use crate::math::Real;
use crate::view::{View, ViewMut};
use crate::{dispatch, multiversion, pool};

/// The moments of the elements seen so far. Tiles are joined by Chan's formula, so one pass over memory is as
/// accurate as two.
#[derive(Clone, Copy, Default)]
pub(super) struct Moments {
    count: f64,
    sum: f64,
    squares: f64,
}

impl Moments {
    /// The moments of `count` elements by their sum, a centre near their mean, and the sums of the distances from that
    /// centre and of their squares.
    #[inline(always)]
    fn about(count: f64, sum: f64, center: f64, first: f64, second: f64) -> Moments {
        // The distances are small where the sum is large: they know what its rounding lost.
        let (exact, squares) = (center * count + first, second - first * first / count);
        Moments { count, sum: if exact.is_finite() { exact } else { sum }, squares }
    }

    /// Adds the elements that `other` has seen.
    #[inline(always)]
    pub(super) fn join(&mut self, other: Moments) {
        if self.count > 0.0 && other.count > 0.0 {
            let gap = other.mean() - self.mean();
            self.squares += gap * gap * (self.count * other.count / (self.count + other.count));
        }
        self.squares += other.squares;
        self.sum += other.sum;
        self.count += other.count;
    }

    /// Adds the elements of a tile.
    #[inline(always)]
    pub(super) fn add<W: Real>(&mut self, x: &[W]) {
        let (count, sum) = (x.len() as f64, sum_of(x).to_f64());
        let center: W = real(sum / count);
        let (first, second) = centered_sums(x, center);
        self.join(Moments::about(count, sum, center.to_f64(), first.to_f64(), second.to_f64()));
    }

    #[inline(always)]
    pub(super) fn mean(&self) -> f64 {
        self.sum / self.count
    }

    /// The mean squared distance from the mean.
    #[inline(always)]
    pub(super) fn variance(&self) -> f64 {
        let variance = self.squares / self.count;
        if variance < 0.0 { 0.0 } else { variance }
    }
}

/// Gathers runs of any length into tiles, and their moments: sums of a few elements would be all overhead.
pub(super) struct Gather<T: Stored> {
    buffer: [T::Wide; TILE],
    filled: usize,
    found: Moments,
}

impl<T: Stored> Gather<T> {
    #[inline(always)]
    pub(super) fn new() -> Gather<T> {
        Gather { buffer: [real(0.0); TILE], filled: 0, found: Moments::default() }
    }

    #[inline(always)]
    pub(super) fn push(&mut self, mut run: &[T]) {
        while !run.is_empty() {
            let (now, later) = run.split_at(run.len().min(TILE - self.filled));
            match T::as_wide(now) {
                Some(tile) if now.len() == TILE => self.found.add(tile),
                _ => {
                    T::widen(now, &mut self.buffer[self.filled..self.filled + now.len()]);
                    self.filled += now.len();
                    if self.filled == TILE {
                        self.flush();
                    }
                }
            }
            run = later;
        }
    }

    #[inline(always)]
    fn flush(&mut self) {
        if self.filled > 0 {
            self.found.add(&self.buffer[..self.filled]);
            self.filled = 0;
        }
    }

    /// The moments of all that was pushed since the last time.
    #[inline(always)]
    pub(super) fn take(&mut self) -> Moments {
        self.flush();
        std::mem::take(&mut self.found)
    }
}

/// Mean and variance (of the population) of `x` for every index of `axis`.
///
/// `mean` and `variance` have one element per channel and the type of the statistics. Without elements to
/// average they are NaN.
pub fn moments(x: View<'_>, axis: usize, mean: ViewMut<'_>, variance: ViewMut<'_>) {
    dispatch!(x.dtype(), T in floats => moments_of::<T>(x, axis, mean, variance));
}

fn moments_of<T: Stored>(x: View<'_>, axis: usize, mut mean: ViewMut<'_>, mut variance: ViewMut<'_>) {
    let shape = x.shape();
    let channels = shape[axis];
    let (outer, inner) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    let statistics = statistics_dtype(T::DTYPE);
    assert_eq!((mean.dtype(), variance.dtype()), (statistics, statistics), "the types of the outputs");
    assert_eq!((mean.len(), variance.len()), (channels, channels), "an output per channel");
    let source = Source::<T>::new(x);
    let (mean, variance) = (mean.slice::<T::Wide>(), Parts::new(variance.slice::<T::Wide>()));
    if inner == 1 {
        columns::<T>(source, outer, channels, mean, &variance);
    } else {
        let chunk = (CHUNK / usize::max(outer * inner, 1)).max(1);
        pool::for_each_mut(mean, chunk, |first, mean| {
            // SAFETY: as above.
            let variance = unsafe { variance.part(first..first + mean.len()) };
            runs_kernel(source, first, channels, outer, inner, mean, variance);
        });
    }
}

multiversion! {
    /// Moments of neighbouring channels that are not the last axis.
    fn runs_kernel[T: Stored](
        x: Source<'_, T>,
        first: usize,
        channels: usize,
        outer: usize,
        inner: usize,
        mean: &mut [T::Wide],
        variance: &mut [T::Wide],
    ) {
        let mut narrow = [T::from_f64(0.0); TILE];
        let mut gather = Gather::<T>::new();
        for (i, (mean, variance)) in mean.iter_mut().zip(variance).enumerate() {
            for row in 0..outer {
                let start = (row * channels + first + i) * inner;
                for range in tiles(inner) {
                    gather.push(x.tile(start + range.start, range.len(), &mut narrow));
                }
            }
            let found = gather.take();
            *mean = real(found.mean());
            *variance = real(found.variance());
        }
    }
}

/// Rows whose lanes are summed before they are joined to the whole.
const DEPTH: usize = 64;
/// The most pieces into which the rows of a block of channels are cut.
const PIECES: usize = 16;
/// Blocks of channels that keep threads busy by themselves.
const ENOUGH_BLOCKS: usize = 16;

/// Moments of channels that are the last axis: block by block of channels, and a block in pieces of its rows.
fn columns<T: Stored>(
    x: Source<'_, T>,
    rows: usize,
    channels: usize,
    mean: &mut [T::Wide],
    variance: &Parts<'_, T::Wide>,
) {
    // Rows of few channels are taken several at a time, as one row of as many lanes.
    let at_once = LANES.checked_div(channels).unwrap_or(1).max(1);
    let columns = Columns { x, rows, channels, at_once };
    let blocks = channels.div_ceil(LANES);
    let count = rows.div_ceil(at_once);
    // Pieces follow from the shape alone, so that results do not depend on the number of threads.
    let piece = if blocks >= ENOUGH_BLOCKS { count } else { count.div_ceil(PIECES).max(CHUNK / LANES) };
    let finish = |first: usize, found: &[[Moments; LANES]], mean: &mut [T::Wide]| {
        // SAFETY: the variance has the channels of the mean, which are handed out once.
        let variance = unsafe { variance.part(first..first + mean.len()) };
        for (i, (mean, variance)) in mean.iter_mut().zip(variance).enumerate() {
            let mut all = Moments::default();
            for piece in found {
                piece[i..].iter().step_by(channels).take(at_once).for_each(|&lane| all.join(lane));
            }
            *mean = real(all.mean());
            *variance = real(all.variance());
        }
    };
    if piece.next_multiple_of(DEPTH) >= count {
        let together = LANES * (CHUNK / LANES / usize::max(rows, 1)).max(1);
        pool::for_each_mut(mean, together, |first, mean| {
            for (block, mean) in mean.chunks_mut(LANES).enumerate() {
                let first = first + block * LANES;
                let mut found = [Moments::default(); LANES];
                columns_kernel(columns, first, 0, count, &mut found);
                finish(first, &[found], mean);
            }
        });
        return;
    }
    let piece = piece.next_multiple_of(DEPTH);
    for (block, mean) in mean.chunks_mut(LANES).enumerate() {
        let mut found = [[Moments::default(); LANES]; PIECES];
        let pieces = &mut found[..count.div_ceil(piece)];
        pool::for_each_mut(pieces, 1, |at, found| {
            let (start, end) = (at * piece, count.min((at + 1) * piece));
            columns_kernel(columns, block * LANES, start, end, &mut found[0]);
        });
        finish(block * LANES, pieces, mean);
    }
}

/// Channels that are the last axis, `at_once` rows of which make a row of lanes.
#[derive(Clone, Copy)]
struct Columns<'a, T> {
    x: Source<'a, T>,
    rows: usize,
    channels: usize,
    at_once: usize,
}

impl<T: Stored> Columns<'_, T> {
    /// Writes a row of lanes from channel `first` on, and returns how many of them there are.
    #[inline(always)]
    fn read(&self, first: usize, row: usize, to: &mut [T::Wide; LANES]) -> usize {
        let start = row * self.at_once;
        let rows = self.at_once.min(self.rows - start);
        let width =
            if self.channels > LANES { LANES.min(self.channels - first) } else { rows * self.channels };
        let mut narrow = [T::from_f64(0.0); LANES];
        let from = self.x.tile(start * self.channels + first, width, &mut narrow);
        match <&[T; LANES]>::try_from(from) {
            // A length known to the compiler: a few vectors instead of a call.
            Ok(whole) => T::widen(whole, to),
            Err(_) => T::widen(from, &mut to[..width]),
        }
        width
    }
}

multiversion! {
    /// Moments of the lanes of rows `start..end` from channel `first` on.
    fn columns_kernel[T: Stored](
        columns: Columns<'_, T>,
        first: usize,
        start: usize,
        end: usize,
        found: &mut [Moments; LANES],
    ) {
        // The last row has fewer lanes if rows are left over.
        let whole = if columns.rows.is_multiple_of(columns.at_once) { end } else { end.min(columns.rows / columns.at_once) };
        *found = column_moments(whole - start, |row, to| {
            columns.read(first, start + row, to);
        });
        if whole < end {
            let mut rest = [real::<T::Wide>(0.0); LANES];
            let width = columns.read(first, whole, &mut rest);
            for (found, x) in found.iter_mut().zip(&rest[..width]) {
                // The distance of an infinity from itself is NaN, as in the rows above.
                let (x, distance) = (x.to_f64(), x.to_f64() - x.to_f64());
                found.join(Moments::about(1.0, x, x, distance, 0.0));
            }
        }
    }
}

/// Moments of up to `LANES` columns of `count` rows; `read` fills in a row.
#[inline(always)]
pub(super) fn column_moments<W: Real>(
    count: usize,
    read: impl Fn(usize, &mut [W; LANES]),
) -> [Moments; LANES] {
    let zero: W = real(0.0);
    let mut rows = [[zero; LANES]; DEPTH];
    let mut found = [Moments::default(); LANES];
    for start in (0..count).step_by(DEPTH) {
        let depth = DEPTH.min(count - start);
        let (mut sum, mut center) = ([zero; LANES], [zero; LANES]);
        for (i, row) in rows[..depth].iter_mut().enumerate() {
            read(start + i, row);
            for i in 0..LANES {
                sum[i] = sum[i] + row[i];
            }
        }
        let share: W = real(1.0 / depth as f64);
        for i in 0..LANES {
            center[i] = sum[i] * share;
        }
        let (mut once, mut twice) = ([zero; LANES], [zero; LANES]);
        for row in &rows[..depth] {
            for i in 0..LANES {
                let d = row[i] - center[i];
                once[i] = once[i] + d;
                twice[i] = twice[i] + d * d;
            }
        }
        for i in 0..LANES {
            let (sum, center) = (sum[i].to_f64(), center[i].to_f64());
            found[i].join(Moments::about(depth as f64, sum, center, once[i].to_f64(), twice[i].to_f64()));
        }
    }
    found
}
