//! Convolutions with one input channel per group: every channel on its own, as vector lanes (channels last) or row by
//! row (channels first), without packing images.

use super::Layout;
use super::pack::{Source, copy_lanes};
use super::problem::{Direction, Phase, Problem};
use super::real::{Real, Sum};
use super::shared::{Shared, lines};
use super::weights::sum_slabs;
use super::window::{Grid, Run, Runs};
use crate::view::View;
use crate::{multiversion, pool};
use std::ops::Range;

/// The most output channels per input channel that are computed here; more make products worth packing for.
pub(super) const MAX_MULTIPLIER: usize = 16;

/// Lanes of a block.
const LANES: usize = 64;
/// Multiplications of a task.
const TASK: usize = 1 << 16;
/// Slabs of pixels whose weight gradients are added in order.
const SLABS: usize = 16;

/// Bytes of scratch: the weights, in the order of their use.
pub(super) fn scratch<T: Real>(problem: &Problem) -> usize {
    lines::<T::Sum>(problem.taps() * problem.groups * problem.cout)
}

/// Computes every destination pixel.
pub(super) fn run<T: Real>(
    problem: &Problem,
    direction: Direction,
    source: Source<'_, T>,
    w: &View<'_>,
    grid: &Grid,
    out: &mut [T],
    scratch: &mut [u8],
) {
    let multiplier = problem.cout;
    let outputs = problem.groups * multiplier;
    let (strides, _, by_output) = problem.weight_strides(w.strides());
    let weights: &mut [T::Sum] = bytemuck::cast_slice_mut(&mut scratch[..self::scratch::<T>(problem)]);
    let out = Shared::new(out);
    for phase in problem.phases(direction) {
        let taps = phase.taps();
        let weights = &mut weights[..taps * outputs];
        for (tap, row) in weights.chunks_exact_mut(outputs).enumerate() {
            let index = phase.weight_tap(tap);
            let at: isize = index.iter().zip(&strides).map(|(&i, s)| i as isize * s).sum();
            copy_lanes(w.data::<T>(), w.offset() as isize + at, by_output, row);
        }
        let job = Job { phase: &phase, source, grid, weights, direction, multiplier, outputs };
        let [depth, height, width] = phase.pixels;
        // Channels first, a unit is a row of one channel; channels last, a pixel of all.
        let (units, unit) = match problem.layout {
            Layout::ChannelsLast => (problem.n * depth * height * width, outputs),
            Layout::ChannelsFirst => (problem.n * grid.channels * depth * height, width * multiplier),
        };
        pool::for_each(units, (TASK / (unit * taps).max(1)).max(1), |range| match problem.layout {
            Layout::ChannelsLast => pixels(&job, range, &out),
            Layout::ChannelsFirst => rows(&job, range, &out),
        });
    }
}

/// One phase of one direction.
struct Job<'a, T: Real> {
    phase: &'a Phase,
    source: Source<'a, T>,
    /// The destination.
    grid: &'a Grid,
    /// A row of output channels per tap.
    weights: &'a [T::Sum],
    direction: Direction,
    /// Output channels per input channel.
    multiplier: usize,
    outputs: usize,
}

impl<T: Real> Job<'_, T> {
    /// Where the pixel of a run that is `i` further is written.
    #[inline(always)]
    fn destination(&self, run: Run, i: usize) -> usize {
        let at = |d: usize, j: usize| (self.phase.to_first[d] + j * self.phase.to_step[d]) as isize;
        self.grid.at(run.n, at(0, run.d), at(1, run.h), at(2, run.w + i)) as usize
    }
}

/// `sums += values * factors`, lane by lane.
#[inline(always)]
fn fused<S: Sum>(sums: &mut [S], values: &[S], factors: &[S]) {
    for ((sum, &value), &factor) in sums.iter_mut().zip(values).zip(factors) {
        *sum = value.fused(factor, *sum);
    }
}

/// Loads elements `stride` apart. Inlined into the loops that are compiled per instruction set, unlike `copy_lanes`.
#[inline(always)]
fn load<T: Real>(data: &[T], from: isize, stride: isize, to: &mut [T::Sum]) {
    if stride == 1 {
        let from = &data[from as usize..][..to.len()];
        for (to, from) in to.iter_mut().zip(from) {
            *to = from.widen();
        }
    } else {
        for (i, to) in to.iter_mut().enumerate() {
            *to = data[(from + i as isize * stride) as usize].widen();
        }
    }
}

/// Loads inputs `stride` apart, each `multiplier` times.
#[inline(always)]
fn load_repeated<T: Real>(data: &[T], from: isize, stride: isize, multiplier: usize, to: &mut [T::Sum]) {
    if multiplier == 1 {
        load(data, from, stride, to);
        return;
    }
    for (i, to) in to.chunks_exact_mut(multiplier).enumerate() {
        to.fill(data[(from + i as isize * stride) as usize].widen());
    }
}

multiversion! {
    /// Pixels of channels-last images; the lanes are output channels.
    fn pixels[T: Real](job: &Job<'_, T>, range: Range<usize>, out: &Shared<'_, T>) {
        let Grid { strides, .. } = job.source.grid;
        let [over_d, over_h, over_w] = job.phase.axes;
        let multiplier = job.multiplier;
        let lanes = LANES / multiplier * multiplier;
        let forward = job.direction == Direction::Forward;
        for run in Runs::new(job.phase.pixels, range.start, range.len()) {
            let (ds, hs) = (over_d.taps_inside(run.d), over_h.taps_inside(run.h));
            for i in 0..run.len {
                let ws = over_w.taps_inside(run.w + i);
                let destination = job.destination(run, i);
                for first in (0..job.outputs).step_by(lanes) {
                    let count = lanes.min(job.outputs - first);
                    let mut sums = [T::Sum::ZERO; LANES];
                    let mut values = [T::Sum::ZERO; LANES];
                    let (sums, values) = (&mut sums[..count], &mut values[..count]);
                    let channel = if forward { first / multiplier } else { first };
                    for d in ds.clone() {
                        for h in hs.clone() {
                            let (at_d, at_h) = (over_d.at(run.d, d), over_h.at(run.h, h));
                            let row = job.source.grid.at(run.n, at_d, at_h, 0) + channel as isize * strides[4];
                            for w in ws.clone() {
                                let tap = (d * over_h.taps + h) * over_w.taps + w;
                                let factors = &job.weights[tap * job.outputs + first..][..count];
                                let from = row + over_w.at(run.w + i, w) * strides[3];
                                if forward {
                                    load_repeated(job.source.data, from, strides[4], multiplier, values);
                                } else {
                                    load(job.source.data, from, strides[4], values);
                                }
                                fused(sums, values, factors);
                            }
                        }
                    }
                    if forward || multiplier == 1 {
                        // SAFETY: no other task has this pixel.
                        T::narrow_slice(sums, unsafe { out.part(destination + first, count) });
                        continue;
                    }
                    // SAFETY: as above.
                    let to = unsafe { out.part(destination + first / multiplier, count / multiplier) };
                    for (to, sums) in to.iter_mut().zip(sums.chunks_exact(multiplier)) {
                        *to = T::narrow(sums.iter().fold(T::Sum::ZERO, |a, &b| a + b));
                    }
                }
            }
        }
    }
}

multiversion! {
    /// Rows of channels-first images; the lanes are the pixels of a row.
    fn rows[T: Real](job: &Job<'_, T>, range: Range<usize>, out: &Shared<'_, T>) {
        let Grid { strides, .. } = job.source.grid;
        let [over_d, over_h, over_w] = job.phase.axes;
        let [depth, height, width] = job.phase.pixels;
        let step = job.phase.to_step[2];
        for row in range {
            let (plane, h) = (row / height, row % height);
            let (image, d) = (plane / depth, plane % depth);
            let (n, channel) = (image / job.grid.channels, image % job.grid.channels);
            // The source channel and the output channel whose weights it is multiplied with.
            let (from, outputs) = match job.direction {
                Direction::Forward => (channel / job.multiplier, channel..channel + 1),
                Direction::Backward => (channel * job.multiplier, channel * job.multiplier..(channel + 1) * job.multiplier),
            };
            for first in (0..width).step_by(LANES) {
                let count = LANES.min(width - first);
                let mut sums = [T::Sum::ZERO; LANES];
                let mut values = [T::Sum::ZERO; LANES];
                for (from, output) in (from..).zip(outputs.clone()) {
                    for td in over_d.taps_inside(d) {
                        for th in over_h.taps_inside(h) {
                            let start = job.source.grid.at(n, over_d.at(d, td), over_h.at(h, th), 0)
                                + from as isize * strides[4];
                            for tw in 0..over_w.taps {
                                let valid = over_w.windows_inside(tw, width);
                                let low = valid.start.clamp(first, first + count);
                                let high = valid.end.clamp(low, first + count);
                                if low == high {
                                    continue;
                                }
                                let tap = (td * over_h.taps + th) * over_w.taps + tw;
                                let factor = job.weights[tap * job.outputs + output];
                                let values = &mut values[..high - low];
                                let at = start + over_w.at(low, tw) * strides[3];
                                load(job.source.data, at, over_w.stride * strides[3], values);
                                for (sum, &value) in sums[low - first..].iter_mut().zip(&*values) {
                                    *sum = value.fused(factor, *sum);
                                }
                            }
                        }
                    }
                }
                let run = Run { done: 0, n, d, h, w: first, len: count };
                let to = job.destination(run, 0) + channel * job.grid.strides[4] as usize;
                if step == 1 {
                    // SAFETY: no other task has this row of this channel.
                    T::narrow_slice(&sums[..count], unsafe { out.part(to, count) });
                } else {
                    for (i, &sum) in sums[..count].iter().enumerate() {
                        // SAFETY: as above.
                        unsafe { out.put(to + i * step, T::narrow(sum)) };
                    }
                }
            }
        }
    }
}

fn slabs(problem: &Problem) -> usize {
    let weights = problem.taps() * problem.groups * problem.cout;
    (problem.pixels().saturating_mul(weights) / TASK).clamp(1, SLABS)
}

/// Bytes of scratch: a sum per slab and weight.
pub(super) fn weight_scratch<T: Real>(problem: &Problem) -> usize {
    lines::<T::Sum>(slabs(problem).saturating_mul(problem.taps() * problem.groups * problem.cout))
}

/// Computes the gradient of every weight.
pub(super) fn weights<T: Real>(
    problem: &Problem,
    x: Source<'_, T>,
    dy: Source<'_, T>,
    dw: &mut [T],
    scratch: &mut [u8],
) {
    let slabs = slabs(problem);
    let scratch = &mut scratch[..weight_scratch::<T>(problem)];
    let partials = &mut bytemuck::cast_slice_mut::<u8, T::Sum>(scratch)[..slabs * dw.len()];
    let per_slab = problem.pixels().div_ceil(slabs);
    let phase = problem.forward_phase();
    let (len, multiplier) = (dw.len(), problem.cout);
    if len == 0 {
        return;
    }
    pool::for_each_mut(partials, len, |at, sums| {
        let first = (at / len * per_slab).min(problem.pixels());
        let count = per_slab.min(problem.pixels() - first);
        sums.fill(T::Sum::ZERO);
        match problem.layout {
            Layout::ChannelsLast => slab_of_pixels(&phase, multiplier, x, dy, first, count, sums),
            Layout::ChannelsFirst => slab_of_rows(&phase, multiplier, x, dy, first, count, sums),
        }
    });
    sum_slabs::<T>(partials, len, slabs, dw);
}

multiversion! {
    /// Adds the products of channels-last pixels; the lanes are output channels.
    fn slab_of_pixels[T: Real](
        phase: &Phase,
        multiplier: usize,
        x: Source<'_, T>,
        dy: Source<'_, T>,
        first: usize,
        count: usize,
        sums: &mut [T::Sum],
    ) {
        let [over_d, over_h, over_w] = phase.axes;
        let outputs = dy.grid.channels;
        let lanes = LANES / multiplier * multiplier;
        for run in Runs::new(phase.pixels, first, count) {
            for channel in (0..outputs).step_by(lanes) {
                let lanes = lanes.min(outputs - channel);
                for d in over_d.taps_inside(run.d) {
                    for h in over_h.taps_inside(run.h) {
                        for w in 0..over_w.taps {
                            let inside = over_w.windows_inside(w, phase.pixels[2]);
                            let low = inside.start.clamp(run.w, run.w + run.len);
                            let high = inside.end.clamp(low, run.w + run.len);
                            // Sums of a row first: long sums of small numbers lose digits.
                            let mut row = [T::Sum::ZERO; LANES];
                            let (mut a, mut b) = ([T::Sum::ZERO; LANES], [T::Sum::ZERO; LANES]);
                            for j in low..high {
                                let at = x.grid.at(run.n, over_d.at(run.d, d), over_h.at(run.h, h), over_w.at(j, w))
                                    + (channel / multiplier) as isize * x.grid.strides[4];
                                load_repeated(x.data, at, x.grid.strides[4], multiplier, &mut a[..lanes]);
                                let at = dy.grid.at(run.n, run.d as isize, run.h as isize, j as isize)
                                    + channel as isize * dy.grid.strides[4];
                                load(dy.data, at, dy.grid.strides[4], &mut b[..lanes]);
                                fused(&mut row[..lanes], &a[..lanes], &b[..lanes]);
                            }
                            let tap = (d * over_h.taps + h) * over_w.taps + w;
                            for (sum, &row) in sums[tap * outputs + channel..][..lanes].iter_mut().zip(&row) {
                                *sum = *sum + row;
                            }
                        }
                    }
                }
            }
        }
    }
}

multiversion! {
    /// Adds the products of channels-first rows; the lanes are the pixels of a row.
    fn slab_of_rows[T: Real](
        phase: &Phase,
        multiplier: usize,
        x: Source<'_, T>,
        dy: Source<'_, T>,
        first: usize,
        count: usize,
        sums: &mut [T::Sum],
    ) {
        let [over_d, over_h, over_w] = phase.axes;
        let outputs = dy.grid.channels;
        for run in Runs::new(phase.pixels, first, count) {
            for channel in 0..outputs {
                for d in over_d.taps_inside(run.d) {
                    for h in over_h.taps_inside(run.h) {
                        for w in 0..over_w.taps {
                            let inside = over_w.windows_inside(w, phase.pixels[2]);
                            let low = inside.start.clamp(run.w, run.w + run.len);
                            let high = inside.end.clamp(low, run.w + run.len);
                            let mut row = [T::Sum::ZERO; LANES];
                            let (mut a, mut b) = ([T::Sum::ZERO; LANES], [T::Sum::ZERO; LANES]);
                            for j in (low..high).step_by(LANES) {
                                let lanes = LANES.min(high - j);
                                let at = x.grid.at(run.n, over_d.at(run.d, d), over_h.at(run.h, h), over_w.at(j, w))
                                    + (channel / multiplier) as isize * x.grid.strides[4];
                                load(x.data, at, over_w.stride * x.grid.strides[3], &mut a[..lanes]);
                                let at = dy.grid.at(run.n, run.d as isize, run.h as isize, j as isize)
                                    + channel as isize * dy.grid.strides[4];
                                load(dy.data, at, dy.grid.strides[3], &mut b[..lanes]);
                                fused(&mut row[..lanes], &a[..lanes], &b[..lanes]);
                            }
                            let tap = (d * over_h.taps + h) * over_w.taps + w;
                            let sum = &mut sums[tap * outputs + channel];
                            *sum = *sum + row.iter().fold(T::Sum::ZERO, |a, &b| a + b);
                        }
                    }
                }
            }
        }
    }
}
