//! Weight gradient: packed patches, transposed, times output gradients, summed over tiles.

use super::direct_weights::{self, Products};
use super::pack::{Source, block_shape, blocks};
use super::problem::Problem;
use super::real::{Real, Sum};
use super::shared::{LINE, Shared, lines, slots, with_slots};
use crate::matmul::{MatMut, gemm};
use crate::pool;

/// Bytes of patches and output gradients a task works on: scratch memory of every thread, so no more than products need.
const TILE: usize = 128 << 10;
/// Rows of the result that a task computes: more need larger tiles, fewer make products too thin.
const WIDEST: usize = 192;
/// Pixels of a tile: fewer make products too short.
const PIXELS: std::ops::RangeInclusive<usize> = 64..=512;
/// Bytes of partial sums.
const PARTIALS: usize = 256 << 10;
/// Enough tasks to keep threads busy to the end.
const TASKS: usize = 16;
/// Tasks that there are at least, even if their partial sums have more bytes than that.
const FEWEST_TASKS: usize = 8;

/// How the work is cut into tasks: blocks of rows of the result, and slabs of pixels whose sums are added in order.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Pixels of a tile.
    pixels: usize,
    tiles: usize,
    slabs: usize,
    /// Taps and channels of a block.
    block: (usize, usize),
    blocks: usize,
    /// Whether the sums of the first slab are made in the result itself.
    direct: bool,
    /// Whether patches are packed, or images read as they lie.
    packs: bool,
}

impl Plan {
    fn new<T: Real>(problem: &Problem) -> Plan {
        let taps = problem.taps();
        let block = block_shape(taps, problem.cin, WIDEST);
        let blocks = taps.div_ceil(block.0) * problem.cin.div_ceil(block.1);
        let width = block.0 * block.1 + problem.cout;
        let packs = !direct_weights::applies::<T>(problem, block.1);
        let pixels =
            if packs { TILE / (width * size_of::<T::Sum>()) } else { direct_weights::pixels::<T>(problem) };
        let pixels = pixels.clamp(*PIXELS.start(), *PIXELS.end()) & !7;
        let pixels = pixels.min(problem.pixels().max(1));
        let tiles = problem.pixels().div_ceil(pixels).max(1);
        let partial = Plan::rows(problem) * problem.cout * size_of::<T::Sum>();
        let slabs_for = |tasks: usize| tasks.div_ceil((blocks * problem.groups).max(1));
        let fitting = 1 + PARTIALS / partial.max(1);
        let slabs = slabs_for(TASKS).min(fitting).max(slabs_for(FEWEST_TASKS)).clamp(1, tiles);
        let slabs = tiles.div_ceil(tiles.div_ceil(slabs));
        Plan { pixels, tiles, slabs, block, blocks, direct: T::WIDE && problem.groups == 1, packs }
    }

    /// Rows of the result, those of all groups one after the other.
    fn rows(problem: &Problem) -> usize {
        problem.groups * problem.taps() * problem.cin
    }

    fn tasks(&self, problem: &Problem) -> usize {
        problem.groups * self.blocks * self.slabs
    }

    /// Elements of partial sums.
    fn partials(&self, problem: &Problem) -> usize {
        (self.slabs - usize::from(self.direct)) * Plan::rows(problem) * problem.cout
    }

    /// Bytes of a task's scratch: its patches and its output gradients.
    fn slot<T: Real>(&self, problem: &Problem) -> usize {
        if !self.packs {
            return LINE;
        }
        lines::<T::Sum>(self.pixels * self.block.0 * self.block.1)
            + lines::<T::Sum>(self.pixels * problem.cout)
    }
}

/// Bytes of scratch for all threads.
pub(super) fn scratch<T: Real>(problem: &Problem) -> usize {
    let plan = Plan::new::<T>(problem);
    lines::<T::Sum>(plan.partials(problem))
        + slots(plan.tasks(problem), problem.work()) * plan.slot::<T>(problem)
}

/// Computes the gradient of every weight.
pub(super) fn run<T: Real>(
    problem: &Problem,
    x: Source<'_, T>,
    dy: Source<'_, T>,
    dw: &mut [T],
    scratch: &mut [u8],
) {
    if problem.pixels() == 0 {
        dw.fill(T::narrow(T::Sum::ZERO));
        return;
    }
    if dw.is_empty() {
        return;
    }
    let plan = Plan::new::<T>(problem);
    let (partials, scratch) = scratch.split_at_mut(lines::<T::Sum>(plan.partials(problem)));
    let partials: &mut [T::Sum] = bytemuck::cast_slice_mut(partials);
    let (cout, groups) = (problem.cout, problem.groups);
    let slab = Plan::rows(problem) * cout;
    if plan.direct {
        let sums = T::as_sums_mut(dw).expect("direct sums are not converted");
        slab_sums(problem, &plan, x, dy, [&mut *sums, &mut *partials], scratch);
        if plan.slabs > 1 {
            pool::for_each_mut(sums, 1 << 14, |first, part| {
                add_slabs(&partials[first..], slab, plan.slabs - 1, part);
            });
        }
        return;
    }
    slab_sums(problem, &plan, x, dy, [&mut [], &mut *partials], scratch);
    // The result's rows interleave the groups.
    let rows = problem.taps() * problem.cin;
    pool::for_each_mut(dw, cout * (1usize << 14).div_ceil(cout), |first, part| {
        for (i, to) in part.chunks_exact_mut(cout).enumerate() {
            let (row, group) = ((first / cout + i) / groups, (first / cout + i) % groups);
            let at = (group * rows + row) * cout;
            sum_slabs::<T>(&partials[at..], slab, plan.slabs, to);
        }
    });
}

/// Writes the sums of `slabs` rows that are `stride` apart.
pub(super) fn sum_slabs<T: Real>(partials: &[T::Sum], stride: usize, slabs: usize, to: &mut [T]) {
    for (j, to) in to.iter_mut().enumerate() {
        let mut sum = partials[j];
        for slab in 1..slabs {
            sum = sum + partials[slab * stride + j];
        }
        *to = T::narrow(sum);
    }
}

/// Adds `slabs` rows that are `stride` apart to `to`, in their order.
fn add_slabs<S: Sum>(partials: &[S], stride: usize, slabs: usize, to: &mut [S]) {
    for (j, to) in to.iter_mut().enumerate() {
        for slab in 0..slabs {
            *to = *to + partials[slab * stride + j];
        }
    }
}

/// Writes `[slab, group, row, column]` sums: those of the first slab to `result`, unless it is empty, the others to `partials`.
fn slab_sums<T: Real>(
    problem: &Problem,
    plan: &Plan,
    x: Source<'_, T>,
    dy: Source<'_, T>,
    [result, partials]: [&mut [T::Sum]; 2],
    scratch: &mut [u8],
) {
    let (result, partials) = (Shared::new(result), Shared::new(partials));
    let (cin, cout, taps) = (problem.cin, problem.cout, problem.taps());
    let windows = problem.forward_phase();
    let pixels_themselves = problem.identity_phase();
    let tasks = plan.tasks(problem);
    let most = slots(tasks, problem.work());
    with_slots(scratch, plan.slot::<T>(problem), most, tasks, |task, slot| {
        let (slab, rest) = (task / (plan.blocks * problem.groups), task % (plan.blocks * problem.groups));
        let (group, number) = (rest / plan.blocks, rest % plan.blocks);
        let block = blocks(taps, cin, plan.block).nth(number).expect("as many blocks as planned");
        let (sums, place) = match slab {
            0 if plan.direct => (&result, 0),
            _ => (&partials, slab - usize::from(plan.direct)),
        };
        let row =
            (place * problem.groups + group) * taps * cin + block.taps.start * cin + block.channels.start;
        // SAFETY: the blocks' rows are disjoint, and every slab and group has its own.
        let sums = unsafe { sums.part(row * cout, block.width() * cout) };
        let per_slab = plan.tiles.div_ceil(plan.slabs);
        let first = slab * per_slab;
        let tiles = first..plan.tiles.min(first + per_slab);
        let pixels_of = |tile: usize| {
            let start = tile * plan.pixels;
            (start, plan.pixels.min(problem.pixels() - start))
        };
        if !plan.packs
            && let (Some(x_data), Some(dy_data)) = (T::as_sums(x.data), T::as_sums(dy.data))
        {
            for tile in tiles {
                let products = Products {
                    x: Source { grid: x.grid, data: x_data },
                    dy: Source { grid: dy.grid, data: dy_data },
                    windows,
                    pixels: pixels_of(tile),
                    block: &block,
                    cout,
                    accumulate: tile > first,
                };
                <T::Sum as crate::lanes::LaneElement>::vectorize(direct_weights::Write {
                    products: &products,
                    sums,
                });
            }
            return;
        }
        let (patches, gradients) =
            slot.split_at_mut(lines::<T::Sum>(plan.pixels * plan.block.0 * plan.block.1));
        let patches: &mut [T::Sum] = bytemuck::cast_slice_mut(patches);
        let gradients: &mut [T::Sum] = bytemuck::cast_slice_mut(gradients);
        let whole = super::pack::Block { taps: 0..1, channels: 0..cout };
        for tile in tiles {
            let pixels = pixels_of(tile);
            let a = x.patches(&windows, pixels, group * cin, &block, patches).transposed();
            let b = dy.patches(&pixels_themselves, pixels, group * cout, &whole, gradients);
            gemm(a, b, MatMut::row_major(sums, block.width(), cout), tile > first);
        }
    });
}
