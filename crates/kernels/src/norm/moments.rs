//! Mean and variance, accurate for any offset.

use super::float::*;
use super::source::*;
use super::{CHUNK, statistics_dtype};
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
        let blocks = LANES * (CHUNK / LANES / usize::max(outer, 1)).max(1);
        pool::for_each_mut(mean, blocks, |first, mean| {
            // SAFETY: the variance has the channels of the mean, which are handed out once.
            let variance = unsafe { variance.part(first..first + mean.len()) };
            for (block, (mean, variance)) in
                mean.chunks_mut(LANES).zip(variance.chunks_mut(LANES)).enumerate()
            {
                lanes_kernel(source, first + block * LANES, channels, outer, mean, variance);
            }
        });
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
const DEPTH: usize = TILE / LANES;

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

multiversion! {
    /// Moments of up to `LANES` neighbouring channels that are the last axis.
    fn lanes_kernel[T: Stored](
        x: Source<'_, T>,
        first: usize,
        channels: usize,
        outer: usize,
        mean: &mut [T::Wide],
        variance: &mut [T::Wide],
    ) {
        let width = mean.len();
        let found = column_moments(outer, |row, to| {
            let mut narrow = [T::from_f64(0.0); LANES];
            T::widen(x.tile(row * channels + first, width, &mut narrow), &mut to[..width]);
        });
        for (i, found) in found[..width].iter().enumerate() {
            mean[i] = real(found.mean());
            variance[i] = real(found.variance());
        }
    }
}
