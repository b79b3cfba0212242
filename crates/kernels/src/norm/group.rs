//! Normalisation per channel: batch norm's second half, and group norm.

use super::float::*;
use super::layer::{Affine, Buffers, split};
use super::moments::{Gather, Moments, column_moments};
use super::source::*;
use super::{CHUNK, statistics_dtype};
use crate::view::{Arg, View, ViewMut};
use crate::{dispatch, multiversion, pool};

/// `(x - mean) * rstd * gamma + beta`, each parameter having one element per index of `axis`.
///
/// `mean` and `rstd` have the type of the statistics, `gamma` and `beta` that of `x`.
pub fn normalize_apply(
    x: Arg<'_>,
    axis: usize,
    mean: View<'_>,
    rstd: View<'_>,
    gamma: Option<View<'_>>,
    beta: Option<View<'_>>,
    out: ViewMut<'_>,
) {
    dispatch!(out.dtype(), T in floats => {
        apply_of::<T>(Source::of(x), axis, mean, rstd, gamma, beta, out);
    });
}

fn apply_of<T: Stored>(
    x: Source<'_, T>,
    axis: usize,
    mean: View<'_>,
    rstd: View<'_>,
    gamma: Option<View<'_>>,
    beta: Option<View<'_>>,
    mut out: ViewMut<'_>,
) {
    let shape = out.shape();
    let (channels, inner) = (shape[axis], shape[axis + 1..].iter().product::<usize>());
    assert_eq!((mean.len(), rstd.len()), (channels, channels), "a statistic per channel");
    let affine = Affine::<T>::new(gamma, beta, channels);
    let channel = Channel { mean: Source::new(mean), rstd: Source::new(rstd), affine };
    // Whole runs of one channel, or whole rows of channels, make a chunk.
    let unit = if inner == 1 { channels } else { inner };
    let chunk = (CHUNK / unit.max(1)).max(1) * unit;
    pool::for_each_mut(out.slice::<T>(), chunk, |start, out| {
        if inner == 1 {
            channels_kernel(x, start, channels, channel, out);
        } else {
            runs_kernel(x, start, channels, inner, channel, out);
        }
    });
}

/// The parameters of all channels.
#[derive(Clone, Copy)]
struct Channel<'a, T: Stored> {
    mean: Source<'a, T::Wide>,
    rstd: Source<'a, T::Wide>,
    affine: Affine<'a, T>,
}

impl<T: Stored> Channel<'_, T> {
    /// Mean, scale and term of one channel.
    #[inline(always)]
    fn get(&self, channel: usize) -> (T::Wide, T::Wide, T::Wide) {
        let (gamma, beta) = self.affine.get(channel);
        (self.mean.get(channel), self.rstd.get(channel) * gamma, beta)
    }
}

multiversion! {
    /// Rows of channels.
    fn channels_kernel[T: Stored](
        x: Source<'_, T>,
        start: usize,
        channels: usize,
        channel: Channel<'_, T>,
        out: &mut [T],
    ) {
        let zeros = [real::<T::Wide>(0.0); TILE];
        let (mut buffer, mut result, mut mean, mut scale, mut term) = (zeros, zeros, zeros, zeros, zeros);
        // Narrow rows are taken several at a time, their parameters repeated; wide ones a tile at a time.
        let (stride, width) = if channels > TILE / 2 {
            (channels, channels.min(TILE))
        } else {
            let rows = TILE / channels;
            (rows * channels, rows * channels)
        };
        for first in (0..stride).step_by(width) {
            let width = width.min(stride - first);
            for i in 0..width {
                (mean[i], scale[i], term[i]) = channel.get((first + i) % channels);
            }
            for row in (0..out.len()).step_by(stride) {
                let at = row + first;
                let end = (at + width).min(out.len());
                let run = &mut out[at..end];
                let from = x.prepare(start + at, run);
                let x = widened(from, run, 0..run.len(), &mut buffer);
                let parameters = mean.iter().zip(&scale).zip(&term);
                for ((to, &x), ((&mean, &scale), &term)) in result.iter_mut().zip(x).zip(parameters) {
                    *to = (x - mean) * scale + term;
                }
                T::narrow(&result[..run.len()], run);
            }
        }
    }
}

multiversion! {
    /// Runs of `inner` elements of one channel each.
    fn runs_kernel[T: Stored](
        x: Source<'_, T>,
        start: usize,
        channels: usize,
        inner: usize,
        channel: Channel<'_, T>,
        out: &mut [T],
    ) {
        let mut buffer = [real::<T::Wide>(0.0); TILE];
        let mut result = buffer;
        for (i, run) in out.chunks_exact_mut(inner).enumerate() {
            let from = x.prepare(start + i * inner, run);
            let (mean, scale, term) = channel.get((start / inner + i) % channels);
            for range in tiles(inner) {
                let x = widened(from, run, range.clone(), &mut buffer);
                for (to, &x) in result.iter_mut().zip(x) {
                    *to = (x - mean) * scale + term;
                }
                T::narrow(&result[..range.len()], &mut run[range]);
            }
        }
    }
}

/// Normalises every group of neighbouring channels of every sample by its own mean and variance, then applies
/// `gamma` and `beta` per channel.
///
/// Dimension 0 is the batch, `axis` (not 0) the channels, which `groups` divides; `mean` and `rstd` are `[batch, groups]` of the
/// type of the statistics.
pub fn group_norm(
    x: Arg<'_>,
    axis: usize,
    groups: usize,
    gamma: Option<View<'_>>,
    beta: Option<View<'_>>,
    eps: f64,
    out: ViewMut<'_>,
    mean: Option<ViewMut<'_>>,
    rstd: Option<ViewMut<'_>>,
) {
    dispatch!(out.dtype(), T in floats => {
        group_of::<T>(Source::of(x), axis, groups, gamma, beta, eps, out, mean, rstd);
    });
}

fn group_of<T: Stored>(
    x: Source<'_, T>,
    axis: usize,
    groups: usize,
    gamma: Option<View<'_>>,
    beta: Option<View<'_>>,
    eps: f64,
    mut out: ViewMut<'_>,
    mut mean: Option<ViewMut<'_>>,
    mut rstd: Option<ViewMut<'_>>,
) {
    let shape = out.shape();
    assert!(axis > 0 && groups > 0 && shape[axis].is_multiple_of(groups), "groups of whole channels");
    let (batch, channels) = (shape[0], shape[axis]);
    let (runs, inner) = (shape[1..axis].iter().product(), shape[axis + 1..].iter().product());
    let affine = Affine::<T>::new(gamma, beta, channels);
    for statistic in [&mean, &rstd].into_iter().flatten() {
        assert_eq!(statistic.dtype(), statistics_dtype(T::DTYPE), "the type of a statistic");
        assert_eq!(statistic.len(), batch * groups, "a statistic per group");
    }
    let groups = Groups { count: groups, width: channels / groups, runs, inner };
    let out = Parts::new(out.slice::<T>());
    let mean = mean.as_mut().map(|mean| Parts::new(mean.slice::<T::Wide>()));
    let rstd = rstd.as_mut().map(|rstd| Parts::new(rstd.slice::<T::Wide>()));
    let keep = |group: usize, average: f64, scale: T::Wide| {
        for (statistic, value) in [(&mean, real(average)), (&rstd, scale)] {
            if let Some(statistic) = statistic {
                // SAFETY: every group is handed out once.
                let to = unsafe { statistic.part(group..group + 1) };
                to[0] = value;
            }
        }
    };
    if inner == 1 && runs > 1 && groups.width <= LANES {
        // Channels come last: neighbouring groups are columns of one matrix.
        let block = LANES / groups.width.max(1);
        let blocks = groups.count.div_ceil(block);
        pool::for_each(batch * blocks, (CHUNK / (runs * LANES)).max(1), |range| {
            for task in range {
                let first = task / blocks * groups.count + task % blocks * block;
                let count = block.min(groups.count - task % blocks * block);
                let (means, rstds) = columns_kernel(x, groups, first, count, eps, affine, &out);
                for i in 0..count {
                    keep(first + i, means[i], rstds[i]);
                }
            }
        });
        return;
    }
    let chunk = (CHUNK / (runs * groups.width * inner).max(1)).max(1);
    pool::for_each(batch * groups.count, chunk, |range| {
        for group in range {
            let (average, scale) = group_kernel(x, groups, group, eps, affine, &out);
            keep(group, average, scale);
        }
    });
}

/// How channels are grouped: a group of one sample is `runs` runs of `width * inner` elements.
#[derive(Clone, Copy)]
struct Groups {
    count: usize,
    width: usize,
    runs: usize,
    inner: usize,
}

multiversion! {
    fn group_kernel[T: Stored](
        x: Source<'_, T>,
        groups: Groups,
        group: usize,
        eps: f64,
        affine: Affine<'_, T>,
        out: &Parts<'_, T>,
    ) -> (f64, T::Wide) {
        let Groups { count, width, runs, inner } = groups;
        let (sample, first) = (group / count, group % count * width);
        let run_at = |run: usize| {
            let start = ((sample * runs + run) * count * width + first) * inner;
            // SAFETY: runs of different groups are disjoint, every group is handed to one thread, and that one
            // lets go of a run before it takes the next.
            (start, unsafe { out.part(start..start + width * inner) })
        };
        let mut gather = Gather::<T>::new();
        for run in 0..runs {
            let (start, to) = run_at(run);
            gather.push(x.prepare(start, to).unwrap_or(to));
        }
        let found = gather.take();
        let (mean, rstd) = (found.mean(), real::<T::Wide>(1.0 / (found.variance() + eps).sqrt()));
        let mut buffers = Buffers::<T>::new();
        for run in 0..runs {
            let (start, to) = run_at(run);
            let from = x.prepare(start, to);
            if inner == 1 {
                affine.normalize(first, (mean, rstd), from, to, &mut buffers);
                continue;
            }
            for (i, to) in to.chunks_exact_mut(inner.max(1)).enumerate() {
                let from = from.map(|from| &from[i * inner..][..inner]);
                affine.normalize_one(first + i, (mean, rstd), from, to, &mut buffers);
            }
        }
        (mean, rstd)
    }
}

multiversion! {
    /// `count` neighbouring groups of one sample, at most `LANES` channels together, whose channels are the last axis.
    fn columns_kernel[T: Stored](
        x: Source<'_, T>,
        groups: Groups,
        first: usize,
        count: usize,
        eps: f64,
        affine: Affine<'_, T>,
        out: &Parts<'_, T>,
    ) -> ([f64; LANES], [T::Wide; LANES]) {
        let Groups { width, runs, .. } = groups;
        let zeros = [real::<T::Wide>(0.0); LANES];
        let channels = groups.count * width;
        let (sample, channel) = (first / groups.count, first % groups.count * width);
        let lanes = count * width;
        let row_at = |row: usize| {
            let start = (sample * runs + row) * channels + channel;
            // SAFETY: these channels of this sample belong to this call alone, which lets go of a row before it
            // takes the next.
            (start, unsafe { out.part(start..start + lanes) })
        };
        let columns = column_moments(runs, |row, wide| {
            let (start, to) = row_at(row);
            T::widen(x.prepare(start, to).unwrap_or(to), &mut wide[..lanes]);
        });
        let (mut means, mut rstds) = ([0.0; LANES], zeros);
        let (mut center, mut rest, mut scale, mut term) = (zeros, zeros, zeros, zeros);
        for group in 0..count {
            let mut found = Moments::default();
            for column in &columns[group * width..(group + 1) * width] {
                found.join(*column);
            }
            means[group] = found.mean();
            rstds[group] = real(1.0 / (found.variance() + eps).sqrt());
            for lane in group * width..(group + 1) * width {
                let (gamma, beta) = affine.get(channel + lane);
                (center[lane], rest[lane]) = split(found.mean());
                (scale[lane], term[lane]) = (rstds[group] * gamma, beta);
            }
        }
        let mut wide = zeros;
        for row in 0..runs {
            let (start, to) = row_at(row);
            T::widen(x.prepare(start, to).unwrap_or(to), &mut wide[..lanes]);
            for i in 0..LANES {
                wide[i] = ((wide[i] - center[i]) - rest[i]) * scale[i] + term[i];
            }
            T::narrow(&wide[..lanes], to);
        }
        (means, rstds)
    }
}
