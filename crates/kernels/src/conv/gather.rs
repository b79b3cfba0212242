//! Forward and input gradient: tiles of packed patches times weights.

use super::Layout;
use super::pack::{Block, Source, block_shape, blocks};
use super::problem::{Direction, Phase, Problem};
use super::real::{Real, Sum};
use super::shared::{Shared, lines, slots, with_slots};
use super::window::{Grid, Runs};
use crate::matmul::{Mat, MatMut, gemm};
use crate::pool;
use crate::view::View;

/// Bytes of packed patches a task works on.
const TILE: usize = 256 << 10;
/// Columns of a tile: more makes the tile leave the cache, fewer makes products too short.
const WIDEST: usize = 576;
/// From this many channels on, the weights of one tap are a product worth making on its own, and are multiplied as
/// they lie.
const TAP_ALONE: usize = 128;
/// Enough tasks to keep threads busy to the end.
const TASKS: usize = 8;

/// How a direction's work is cut into tasks.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Source and destination channels of a group.
    from: usize,
    to: usize,
    /// Pixels of a tile.
    pixels: usize,
    /// Taps and channels of a block of patches.
    block: (usize, usize),
    /// Destination channels of a task.
    columns: usize,
    /// Whether products are written where they belong, without a stage.
    direct: bool,
    /// Elements of packed weights.
    weights: usize,
    /// Tasks of the largest phase.
    tasks: usize,
}

impl Plan {
    fn new<T: Real>(problem: &Problem, direction: Direction) -> Plan {
        let (from, to) = problem.channels(direction);
        let (all_pixels, taps) = problem.largest_phase(direction);
        let block = block_shape(taps, from, WIDEST);
        let pixels = (TILE / (block.0 * block.1 * size_of::<T::Sum>())).clamp(32, 512) & !7;
        let pixels = pixels.min(all_pixels.max(1));
        let tiles = all_pixels.div_ceil(pixels) * problem.groups;
        let whole = direction == Direction::Forward || problem.phases(direction).take(2).count() < 2;
        let direct = T::WIDE
            && whole
            && problem.layout == Layout::ChannelsLast
            && problem.groups == 1
            && (tiles >= TASKS || to <= 64);
        let columns = if direct {
            to
        } else {
            let pieces = TASKS.div_ceil(tiles.max(1));
            to.div_ceil(pieces).clamp(64.min(to.max(1)), 256)
        };
        Plan {
            from,
            to,
            pixels,
            block,
            columns,
            direct,
            weights: if T::WIDE && from >= TAP_ALONE { 0 } else { taps * from * to * problem.groups },
            tasks: tiles * to.div_ceil(columns.max(1)),
        }
    }

    /// Bytes of a task's packed patches.
    fn patches<T: Real>(&self) -> usize {
        lines::<T::Sum>(self.pixels * self.block.0 * self.block.1)
    }

    /// Bytes of a task's scratch: its patches and its stage.
    fn slot<T: Real>(&self) -> usize {
        let stage = if self.direct { 0 } else { self.pixels * self.columns };
        self.patches::<T>() + lines::<T::Sum>(stage)
    }
}

/// Bytes of scratch for all threads.
pub(super) fn scratch<T: Real>(problem: &Problem, direction: Direction) -> usize {
    let plan = Plan::new::<T>(problem, direction);
    lines::<T::Sum>(plan.weights) + slots(plan.tasks, problem.work()) * plan.slot::<T>()
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
    if out.is_empty() {
        return;
    }
    let plan = Plan::new::<T>(problem, direction);
    let (packed, scratch) = scratch.split_at_mut(lines::<T::Sum>(plan.weights));
    let packed = &mut bytemuck::cast_slice_mut::<u8, T::Sum>(packed)[..plan.weights];
    let out = Shared::new(out);
    let most = slots(plan.tasks, problem.work());
    for phase in problem.phases(direction) {
        let weights = Weights::new::<T>(problem, direction, plan.block, &phase, w, packed);
        let total = problem.n * phase.pixels.iter().product::<usize>();
        let (tiles, pieces) = (total.div_ceil(plan.pixels), plan.to.div_ceil(plan.columns));
        let tasks = tiles * problem.groups * pieces;
        with_slots(scratch, plan.slot::<T>(), most.min(tasks.max(1)), tasks, |task, slot| {
            let (tile, rest) = (task / (problem.groups * pieces), task % (problem.groups * pieces));
            let (group, column) = (rest / pieces, rest % pieces * plan.columns);
            let pixels = (tile * plan.pixels, plan.pixels.min(total - tile * plan.pixels));
            let columns = (column, plan.columns.min(plan.to - column));
            let (patches, stage) = slot.split_at_mut(plan.patches::<T>());
            let patches = bytemuck::cast_slice_mut(patches);
            if plan.direct {
                // SAFETY: a direct phase has one task per tile, and its pixels' channels are consecutive.
                let rows = unsafe { out.part(pixels.0 * plan.to, pixels.1 * plan.to) };
                let rows = T::as_sums_mut(rows).expect("direct products are not converted");
                let product = MatMut::row_major(rows, pixels.1, plan.to);
                multiply(&plan, &phase, &source, &weights, pixels, group, columns, product, patches);
                return;
            }
            let stage: &mut [T::Sum] = &mut bytemuck::cast_slice_mut(stage)[..pixels.1 * columns.1];
            let (rows, cols) = (pixels.1, columns.1);
            let channels_last = problem.layout == Layout::ChannelsLast;
            let product = if channels_last {
                MatMut::row_major(stage, rows, cols)
            } else {
                MatMut::new(stage, 0, rows, cols, 1, rows as isize)
            };
            multiply(&plan, &phase, &source, &weights, pixels, group, columns, product, patches);
            let channels = (group * plan.to + column, cols);
            store(problem.layout, &phase, grid, pixels, channels, stage, &out);
        });
    }
}

/// The product of a tile of patches and some columns of a group's weights.
fn multiply<T: Real>(
    plan: &Plan,
    phase: &Phase,
    source: &Source<'_, T>,
    weights: &Weights<'_, T::Sum>,
    pixels: (usize, usize),
    group: usize,
    columns: (usize, usize),
    mut product: MatMut<'_, T::Sum>,
    patches: &mut [T::Sum],
) {
    let mut any = false;
    for block in blocks(phase.taps(), plan.from, weights.block) {
        let a = source.patches(phase, pixels, group * plan.from, &block, patches);
        gemm(a, weights.matrix(phase, group, &block, columns), product.reborrow(), any);
        any = true;
    }
    if !any {
        let (a, b) = (Mat::row_major(&[], pixels.1, 0), Mat::row_major(&[], 0, columns.1));
        gemm(a, b, product, false);
    }
}

/// Copies a stage to the pixels and channels (first, count) it was computed for.
fn store<T: Real>(
    layout: Layout,
    phase: &Phase,
    grid: &Grid,
    pixels: (usize, usize),
    channels: (usize, usize),
    stage: &[T::Sum],
    out: &Shared<'_, T>,
) {
    let step = phase.to_step[2];
    for run in Runs::new(phase.pixels, pixels.0, pixels.1) {
        let at = |i: usize, j: usize| (phase.to_first[i] + j * phase.to_step[i]) as isize;
        let first = grid.at(run.n, at(0, run.d), at(1, run.h), at(2, run.w)) as usize;
        if layout == Layout::ChannelsLast {
            for (i, from) in stage[run.done * channels.1..].chunks_exact(channels.1).take(run.len).enumerate()
            {
                // SAFETY: no other task has this pixel and these channels.
                let to = unsafe { out.part(first + i * step * grid.channels + channels.0, channels.1) };
                T::narrow_slice(from, to);
            }
            continue;
        }
        for c in 0..channels.1 {
            let from = &stage[c * pixels.1 + run.done..][..run.len];
            let first = first + (channels.0 + c) * grid.strides[4] as usize;
            if step == 1 {
                // SAFETY: no other task has these pixels and this channel.
                T::narrow_slice(from, unsafe { out.part(first, run.len) });
            } else {
                for (i, &value) in from.iter().enumerate() {
                    // SAFETY: as above.
                    unsafe { out.put(first + i * step, T::narrow(value)) };
                }
            }
        }
    }
}

/// The weights as matrices of a row per tap and source channel, a column per destination channel.
struct Weights<'a, S> {
    data: &'a [S],
    /// Element strides; taps' are those of the weights as given, or 0 if `packed`.
    taps: [isize; 3],
    from: isize,
    to: isize,
    group: isize,
    offset: isize,
    /// Packed in the order of the phase's taps: the rows in one.
    packed: bool,
    /// Source channels of a group.
    channels: usize,
    /// Taps and channels of a block.
    block: (usize, usize),
}

impl<'a, S: Sum> Weights<'a, S> {
    /// The weights of a phase, as they lie if possible, else packed into `packed`.
    fn new<T: Real<Sum = S>>(
        problem: &Problem,
        direction: Direction,
        block: (usize, usize),
        phase: &Phase,
        w: &View<'a>,
        packed: &'a mut [S],
    ) -> Weights<'a, S> {
        let (taps, cin, cout) = problem.weight_strides(w.strides());
        let (from, to, channels, columns) = match direction {
            Direction::Forward => (cin, cout, problem.cin, problem.cout),
            Direction::Backward => (cout, cin, problem.cout, problem.cin),
        };
        let (group, offset) = (cout * problem.cout as isize, w.offset() as isize);
        let data: &'a [T] = w.data();
        if let Some(data) = T::as_sums(data) {
            let mut expected = from * channels as isize;
            let mut in_one = direction == Direction::Forward;
            for (&size, &stride) in problem.window.iter().zip(&taps).rev() {
                in_one &= size == 1 || stride == expected;
                expected *= size as isize;
            }
            if in_one || channels >= TAP_ALONE || phase.taps() <= 1 {
                let block = if in_one { block } else { (1, block.1) };
                return Weights { data, taps, from, to, group, offset, packed: false, channels, block };
            }
        }
        let rows = problem.groups * phase.taps() * channels;
        let packed = &mut packed[..rows * columns];
        let row_of = |row: usize| {
            let (channel, tap) = (row % channels, row / channels);
            let index = phase.weight_tap(tap % phase.taps());
            let at: isize = index.iter().zip(&taps).map(|(&i, s)| i as isize * s).sum();
            offset + at + channel as isize * from + (tap / phase.taps()) as isize * group
        };
        pool::for_each_mut(packed, columns * (1usize << 14).div_ceil(columns.max(1)), |first, part| {
            for (i, to_row) in part.chunks_exact_mut(columns).enumerate() {
                super::pack::copy_lanes(data, row_of(first / columns + i), to, to_row);
            }
        });
        Weights {
            data: packed,
            taps: [0; 3],
            from: columns as isize,
            to: 1,
            group: (phase.taps() * channels * columns) as isize,
            offset: 0,
            packed: true,
            channels,
            block,
        }
    }

    fn matrix(&self, phase: &Phase, group: usize, block: &Block, columns: (usize, usize)) -> Mat<'_, S> {
        let tap = if self.packed {
            (block.taps.start * self.channels) as isize * self.from
        } else {
            let index = phase.weight_tap(block.taps.start);
            index.iter().zip(&self.taps).map(|(&i, s)| i as isize * s).sum()
        };
        let start = self.offset
            + group as isize * self.group
            + tap
            + block.channels.start as isize * self.from
            + columns.0 as isize * self.to;
        Mat::new(self.data, start as usize, block.width(), columns.1, self.from, self.to)
    }
}
