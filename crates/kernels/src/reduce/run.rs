//! Runs a planned reduction: which rows or columns the vector loops get, in which order partial results are merged,
//! and how the work is split between threads.
//!
//! One output's elements are cut into units of a fixed size. A unit is folded by one of the loops of
//! [`kernel`](super::kernel), and the units' results are merged in a tree with 16 branches, so a rounding error
//! grows with the logarithm of the number of elements. Sizes and tree follow from shape and layout alone. Threads
//! get whole outputs, or whole branches of the tree, so results do not depend on their number.

use super::Computed;
use super::fold::Fold;
use super::kernel::{self, GROUP, LEAF_STEPS, Lanes, ROW_STEPS};
use super::plan::{Plan, offsets, runs};
use super::shared::{PerOutput, Shared, WIDE};
use crate::dtype::Element;
use crate::pool;
use crate::strided::Buffer;
use bytemuck::cast_slice_mut;

/// How many outputs are computed together along rows, or down few columns.
pub(crate) const NARROW: usize = 16;
/// Elements gathered at a time when they are not contiguous.
const GATHER: usize = 1024;
/// Elements computed at a time when they are not stored: whole leaves of rows, and whole groups of rows of a tile.
const ROOM: usize = GROUP * WIDE;
/// Rows in a unit of columns.
const COLUMN_UNIT: usize = 64;
/// Branches of the merge tree.
const BRANCHES: usize = 16;
/// The most branches handed to threads.
pub(crate) const PARTIALS: usize = 64;
/// Fewer elements than this are not worth waking a thread.
const PARALLEL: usize = 32 * 1024;
/// With this many tiles there is no need to split one of them.
const ENOUGH_TILES: usize = 32;

/// Bytes of scratch with which any reduction of `count` elements into each of `outputs` outputs runs in parallel.
pub(crate) fn scratch_bytes(count: usize, outputs: usize) -> usize {
    let splits = count >= 2 * COLUMN_UNIT && count.saturating_mul(outputs) >= PARALLEL;
    if outputs <= 1 || !splits || outputs >= ENOUGH_TILES * WIDE {
        return 0;
    }
    PARTIALS * outputs.min(WIDE) * size_of::<u64>()
}

/// Up to [`WIDE`] outputs that are computed together.
#[derive(Clone, Copy)]
pub(crate) struct Tile {
    /// Where the first output's first element is.
    pub(crate) first: usize,
    pub(crate) width: usize,
}

/// Where a reduction's elements come from.
#[derive(Clone, Copy)]
pub(crate) enum Data<'a, T> {
    /// From memory, at the plan's offsets.
    Memory(&'a [T]),
    /// From a function of their number. The plan is that of contiguous memory, so every run it visits is too.
    Computed(Computed<'a>),
}

/// The input of a reduction with the plan of its walk.
#[derive(Clone, Copy)]
pub(crate) struct Source<'a, T> {
    pub(crate) data: Data<'a, T>,
    pub(crate) plan: &'a Plan<'a>,
}

/// A buffer for elements that are not contiguous. Made once for many units, because clearing it takes time.
pub(crate) struct Gathered<T>([T; GATHER]);

impl<T: Element> Source<'_, T> {
    /// How many elements of an output make up a unit.
    pub(crate) fn unit<const L: usize>(&self, width: usize) -> usize {
        if self.plan.columns {
            COLUMN_UNIT * self.rows_at_once(width)
        } else if self.plan.contiguous_rows() {
            ROW_STEPS * L
        } else {
            GATHER
        }
    }

    /// Very narrow contiguous columns are folded several rows at a time, as if they were one wide row.
    fn rows_at_once(&self, width: usize) -> usize {
        let whole = self.plan.tile.n == width && self.plan.tile.x == 1;
        match self.plan.reduced {
            [only] if whole && width <= NARROW && only.x == width as isize => COLUMN_UNIT / width,
            _ => 1,
        }
    }

    fn computed(&self) -> bool {
        matches!(self.data, Data::Computed(_))
    }

    /// Whether elements are computed for several rows at once.
    fn computed_rows(&self) -> bool {
        self.computed() && self.plan.contiguous_rows() && self.plan.count <= ROOM
    }

    pub(crate) fn room(&self) -> Option<Gathered<T>> {
        if self.computed() {
            return None;
        }
        let direct = if self.plan.columns { self.plan.tile.x == 1 } else { self.plan.contiguous_rows() };
        (!direct).then(|| Gathered([T::zeroed(); GATHER]))
    }

    /// Folds elements `at..at + len` of one output, along its row.
    #[inline]
    fn fold_row<F: Fold<In = T>, const L: usize>(
        &self,
        fold: F,
        lanes: Lanes<L>,
        first: usize,
        (at, len): (usize, usize),
        context: &[F::Context],
        room: &mut Option<Gathered<T>>,
        acc: &mut [F::Acc],
    ) {
        let data = match self.data {
            Data::Memory(data) => data,
            Data::Computed(compute) => {
                acc[0] = self.compute_row(fold, lanes, compute, first, (at, len), context[0]);
                return;
            }
        };
        let Some(Gathered(room)) = room else {
            return kernel::rows(fold, lanes, data, first + at, 0, len, context, acc);
        };
        let mut filled = 0;
        runs(self.plan.reduced, at, len, &mut |offset, stride, n| {
            gather(data, first.wrapping_add_signed(offset), stride, &mut room[filled..filled + n]);
            filled += n;
        });
        kernel::rows(fold, lanes, &room[..], 0, 0, len, context, acc);
    }

    /// [`Source::fold_row`] of elements that are computed, a part at a time.
    fn compute_row<F: Fold<In = T>, const L: usize>(
        &self,
        fold: F,
        lanes: Lanes<L>,
        compute: Computed<'_>,
        first: usize,
        (at, len): (usize, usize),
        context: F::Context,
    ) -> F::Acc {
        const { assert!(ROOM.is_multiple_of(LEAF_STEPS * L) && GATHER <= ROOM) };
        let mut buffer = Buffer::<ROOM>::new();
        let room: &mut [T] = cast_slice_mut(buffer.zeroed(len.min(ROOM) * size_of::<T>()));
        if len <= ROOM {
            let mut filled = 0;
            runs(self.plan.reduced, at, len, &mut |offset, _one, n| {
                compute(first.wrapping_add_signed(offset), cast_slice_mut(&mut room[filled..filled + n]));
                filled += n;
            });
            let mut acc = [F::START];
            kernel::rows(fold, lanes, room, 0, 0, len, &[context], &mut acc);
            return acc[0];
        }
        let mut accs = [F::START; L];
        for start in (0..len).step_by(ROOM) {
            let part = &mut room[..ROOM.min(len - start)];
            compute(first + at + start, cast_slice_mut(part));
            kernel::row_part(fold, lanes, part, context, &mut accs);
        }
        kernel::row_end::<F, L>(&mut accs)
    }

    /// Merges `rows` contiguous rows, as wide as `accs` and each `stride` after the one before, column by column.
    fn merge_rows<F: Fold<In = T>>(
        &self,
        fold: F,
        first: usize,
        stride: isize,
        rows: usize,
        contexts: &[F::Context],
        accs: &mut [F::Acc],
    ) {
        let compute = match self.data {
            Data::Memory(data) => {
                return kernel::columns(fold, data, first, stride, rows, contexts, accs);
            }
            Data::Computed(compute) => compute,
        };
        let width = accs.len();
        // Whole groups, so that elements meet in the order in which they would in memory.
        let batch = ROOM / width / GROUP * GROUP;
        let mut buffer = Buffer::<ROOM>::new();
        let room: &mut [T] = cast_slice_mut(buffer.zeroed(batch.min(rows) * width * size_of::<T>()));
        for start in (0..rows).step_by(batch) {
            let n = batch.min(rows - start);
            let first = first.wrapping_add_signed(start as isize * stride);
            if stride == width as isize {
                compute(first, cast_slice_mut(&mut room[..n * width]));
            } else {
                for (i, row) in room[..n * width].chunks_exact_mut(width).enumerate() {
                    compute(first.wrapping_add_signed(i as isize * stride), cast_slice_mut(row));
                }
            }
            kernel::columns(fold, room, 0, width as isize, n, contexts, accs);
        }
    }

    /// Folds elements `at..at + len` of each output of the tile, row by row.
    fn fold_columns<F: Fold<In = T>>(
        &self,
        fold: F,
        first: usize,
        (at, len): (usize, usize),
        contexts: &[F::Context],
        room: &mut Option<Gathered<T>>,
        accs: &mut [F::Acc],
    ) {
        let width = accs.len();
        let many = self.rows_at_once(width);
        runs(self.plan.reduced, at, len, &mut |offset, stride, rows| {
            let first = first.wrapping_add_signed(offset);
            if let (Some(Gathered(room)), Data::Memory(data)) = (&mut *room, self.data) {
                for start in (0..rows).step_by(GATHER / width) {
                    let n = (rows - start).min(GATHER / width);
                    for (i, row) in room[..n * width].chunks_exact_mut(width).enumerate() {
                        let at = first.wrapping_add_signed((start + i) as isize * stride);
                        gather(data, at, self.plan.tile.x, row);
                    }
                    kernel::columns(fold, &room[..], 0, width as isize, n, contexts, accs);
                }
            } else if many > 1 {
                let (wide, bulk) = (many * width, rows / many);
                let mut all = [contexts[0]; COLUMN_UNIT];
                for part in all[..wide].chunks_exact_mut(width) {
                    part.copy_from_slice(&contexts[..width]);
                }
                let mut wide_accs = [F::START; COLUMN_UNIT];
                self.merge_rows(fold, first, wide as isize, bulk, &all, &mut wide_accs[..wide]);
                for part in wide_accs[..wide].chunks_exact(width) {
                    merge::<F>(accs, part);
                }
                let rest = first + bulk * wide;
                self.merge_rows(fold, rest, stride, rows - bulk * many, contexts, accs);
            } else {
                self.merge_rows(fold, first, stride, rows, contexts, accs);
            }
        });
    }

    /// Folds unit number `unit` into fresh accumulators.
    pub(crate) fn fold_unit<F: Fold<In = T>, const L: usize>(
        &self,
        fold: F,
        lanes: Lanes<L>,
        first: usize,
        unit: usize,
        contexts: &[F::Context],
        room: &mut Option<Gathered<T>>,
        accs: &mut [F::Acc],
    ) {
        let size = self.unit::<L>(accs.len());
        let at = unit * size;
        let span = (at, size.min(self.plan.count - at));
        if self.plan.columns {
            self.fold_columns(fold, first, span, contexts, room, accs);
        } else {
            self.fold_row(fold, lanes, first, span, contexts, room, accs);
        }
    }

    /// Reduces the outputs of `tile` into `accs`, fresh and as many. With `scratch`, and if it suffices, in parallel.
    pub(crate) fn fold<F: Fold<In = T>, const L: usize>(
        &self,
        fold: F,
        lanes: Lanes<L>,
        tile: Tile,
        contexts: &[F::Context],
        accs: &mut [F::Acc],
        mut scratch: Option<&mut [u8]>,
    ) {
        let plan = self.plan;
        let short_rows = plan.contiguous_rows() && plan.count <= ROW_STEPS * L;
        match self.data {
            _ if plan.count == 0 => accs.fill(F::EMPTY),
            _ if plan.columns => {
                self.fold_units(fold, lanes, tile.first, contexts, accs, scratch);
            }
            Data::Memory(data) if short_rows => {
                let stride = plan.tile.x as usize;
                kernel::rows(fold, lanes, data, tile.first, stride, plan.count, contexts, accs);
            }
            Data::Computed(compute) if self.computed_rows() => {
                let len = accs.len() * plan.count;
                let mut buffer = Buffer::<ROOM>::new();
                let room: &mut [T] = cast_slice_mut(buffer.zeroed(len * size_of::<T>()));
                compute(tile.first, cast_slice_mut(room));
                kernel::rows(fold, lanes, room, 0, plan.count, plan.count, contexts, accs);
            }
            _ => {
                for (j, acc) in accs.chunks_mut(1).enumerate() {
                    let first = tile.first + j * plan.tile.x as usize;
                    let context = &contexts[j..=j];
                    let scratch = scratch.as_deref_mut();
                    self.fold_units(fold, lanes, first, context, acc, scratch);
                }
            }
        }
    }

    fn fold_units<F: Fold<In = T>, const L: usize>(
        &self,
        fold: F,
        lanes: Lanes<L>,
        first: usize,
        contexts: &[F::Context],
        accs: &mut [F::Acc],
        scratch: Option<&mut [u8]>,
    ) {
        let width = accs.len();
        let units = self.plan.count.div_ceil(self.unit::<L>(width));
        let branch = |start: usize, units: usize, accs: &mut [F::Acc]| {
            let mut room = self.room();
            let mut leaf = |unit: usize, accs: &mut [F::Acc]| {
                self.fold_unit(fold, lanes, first, unit, contexts, &mut room, accs);
            };
            merge_tree::<F>(start, units, &mut leaf, accs);
        };

        let Some(scratch) = scratch else { return branch(0, units, accs) };
        let span = branch_units(units);
        let parts = units.div_ceil(span);
        let mut few = [F::START; PARTIALS];
        let bytes = parts * width * size_of::<F::Acc>();
        let partials = if parts * width <= PARTIALS {
            &mut few[..parts * width]
        } else if bytes <= scratch.len() {
            cast_slice_mut(&mut scratch[..bytes])
        } else {
            return branch(0, units, accs);
        };
        pool::for_each_mut(partials, width, |at, part| {
            part.fill(F::START);
            let start = at / width * span;
            branch(start, span.min(units - start), part);
        });
        let mut leaf =
            |part: usize, accs: &mut [F::Acc]| accs.copy_from_slice(&partials[part * width..][..width]);
        merge_tree::<F>(0, parts, &mut leaf, accs);
    }
}

/// How many units are folded by one thread: a whole branch of the merge tree.
pub(crate) fn branch_units(units: usize) -> usize {
    let mut span = 1;
    while units.div_ceil(span) > PARTIALS {
        span *= BRANCHES;
    }
    span
}

/// How many parts one output can be split into.
fn parts(units: usize) -> usize {
    units.div_ceil(branch_units(units))
}

fn gather<T: Copy>(data: &[T], first: usize, stride: isize, to: &mut [T]) {
    if stride == 1 {
        to.copy_from_slice(&data[first..first + to.len()]);
        return;
    }
    let mut at = first;
    for element in to {
        *element = data[at];
        at = at.wrapping_add_signed(stride);
    }
}

#[inline(always)]
fn merge<F: Fold>(accs: &mut [F::Acc], other: &[F::Acc]) {
    for (a, b) in accs.iter_mut().zip(other) {
        *a = F::merge(*a, *b);
    }
}

/// Merges leaves `start..start + leaves` into fresh accumulators. Wherever a branch of the tree is cut off and merged by
/// itself first, the result is the same.
fn merge_tree<F: Fold>(
    start: usize,
    leaves: usize,
    leaf: &mut dyn FnMut(usize, &mut [F::Acc]),
    accs: &mut [F::Acc],
) {
    if leaves == 1 {
        return leaf(start, accs);
    }
    let mut span = 1;
    while span * BRANCHES < leaves {
        span *= BRANCHES;
    }
    for at in (0..leaves).step_by(span) {
        let mut part = PerOutput::new();
        let part = part.filled(accs.len(), F::START);
        merge_tree::<F>(start + at, span.min(leaves - at), leaf, part);
        merge::<F>(accs, part);
    }
}

/// The computation of the outputs of a tile.
pub(crate) trait TileReduction: Sync {
    type In: Element;
    type Out: Element;

    /// Elements of an output's row that are folded in one go; what is longer can be split between threads.
    fn unit(&self, source: &Source<'_, Self::In>, width: usize) -> usize;

    /// Computes the outputs of `tile` and emits each with its number. May use threads if there is `scratch`.
    fn tile(
        &self,
        source: &Source<'_, Self::In>,
        tile: Tile,
        scratch: Option<&mut [u8]>,
        emit: impl FnMut(usize, Self::Out),
    );
}

/// Computes every output of the plan.
pub(crate) fn drive<P: TileReduction>(
    program: &P,
    source: &Source<'_, P::In>,
    out: &mut [P::Out],
    scratch: &mut [u8],
) {
    assert_eq!(out.len(), source.plan.outputs, "one output per kept position");
    let plan = source.plan;
    let shared = Shared::new(out);
    let compute = |tile: Tile, out: usize, scratch: Option<&mut [u8]>| {
        program.tile(source, tile, scratch, |j, value| {
            let at = out.wrapping_add_signed(j as isize * plan.tile.out);
            // SAFETY: the plan maps each kept position to its own output, and each is in one tile.
            unsafe { shared.write(at, value) }
        });
    };
    let many = plan.columns || source.computed_rows() && plan.count <= ROOM / NARROW;
    let most = if many && plan.tile.n > NARROW { WIDE } else { NARROW };
    let unit = |width: usize| program.unit(source, width);
    drive_tiles(plan, tile_width(plan, source.computed(), most), &unit, &compute, scratch);
}

/// How many outputs a tile has, at most `most`.
fn tile_width(plan: &Plan<'_>, computed: bool, most: usize) -> usize {
    let n = plan.tile.n;
    if plan.outputs == 0 {
        1
    } else if plan.columns {
        // As few tiles as possible, and none of them much narrower than the others.
        n.div_ceil(n.div_ceil(most)).next_multiple_of(COLUMN_UNIT).min(most)
    } else if computed {
        (ROOM / plan.count.max(1)).clamp(1, most)
    } else {
        // Long rows are tiles of their own, so that there are enough tiles to share.
        (GATHER * NARROW / plan.count.max(1)).clamp(1, NARROW)
    }
}

/// Calls `compute` on every tile with the number of its first output; with scratch if the tile is to be split between
/// threads. `unit` is [`TileReduction::unit`] of a width.
fn drive_tiles(
    plan: &Plan<'_>,
    width: usize,
    unit: &dyn Fn(usize) -> usize,
    compute: &(dyn Fn(Tile, usize, Option<&mut [u8]>) + Sync),
    scratch: &mut [u8],
) {
    let n = plan.tile.n;
    if plan.outputs == 0 {
        return;
    }
    let per_line = n.div_ceil(width);
    let tiles = plan.outputs / n * per_line;
    let compute = |number: usize, scratch: Option<&mut [u8]>| {
        let (line, start) = (number / per_line, number % per_line * width);
        let (x, out) = offsets(plan.outer, line);
        let first = plan.x_base.wrapping_add_signed(x + start as isize * plan.tile.x);
        let out = plan.out_base.wrapping_add_signed(out + start as isize * plan.tile.out);
        compute(Tile { first, width: width.min(n - start) }, out, scratch);
    };

    if plan.count.max(1).saturating_mul(plan.outputs) < PARALLEL {
        (0..tiles).for_each(|number| compute(number, None));
        return;
    }
    let units = plan.count.div_ceil(unit(width.min(n)).max(1));
    if tiles < ENOUGH_TILES && parts(units) > tiles {
        (0..tiles).for_each(|number| compute(number, Some(&mut *scratch)));
    } else {
        let batch = (PARALLEL / 2 / (plan.count.max(1) * width.min(n))).max(1);
        pool::for_each(tiles, batch, |numbers| numbers.for_each(|number| compute(number, None)));
    }
}

/// A reduction in one pass.
pub(crate) struct Once<F: Fold, const L: usize, G> {
    pub(crate) fold: F,
    pub(crate) lanes: Lanes<L>,
    pub(crate) context: F::Context,
    pub(crate) finish: G,
}

impl<F, O, G, const L: usize> TileReduction for Once<F, L, G>
where
    F: Fold,
    O: Element,
    G: Fn(F::Acc) -> O + Sync,
{
    type In = F::In;
    type Out = O;

    fn unit(&self, source: &Source<'_, F::In>, width: usize) -> usize {
        source.unit::<L>(width)
    }

    #[inline]
    fn tile(
        &self,
        source: &Source<'_, F::In>,
        tile: Tile,
        scratch: Option<&mut [u8]>,
        mut emit: impl FnMut(usize, O),
    ) {
        let (mut contexts, mut accs) = (PerOutput::new(), PerOutput::new());
        let contexts = contexts.filled(tile.width, self.context);
        let accs = accs.filled(tile.width, F::START);
        source.fold(self.fold, self.lanes, tile, contexts, accs, scratch);
        for (j, &acc) in accs.iter().enumerate() {
            emit(j, (self.finish)(acc));
        }
    }
}

/// A reduction in two passes: what the first finds is the second's context.
pub(crate) struct Twice<A, B, const L: usize, C, G> {
    pub(crate) first: A,
    pub(crate) second: B,
    pub(crate) lanes: Lanes<L>,
    pub(crate) context: C,
    pub(crate) finish: G,
}

impl<A, B, O, C, G, const L: usize> TileReduction for Twice<A, B, L, C, G>
where
    A: Fold<Context = ()>,
    B: Fold<In = A::In>,
    O: Element,
    C: Fn(A::Acc) -> B::Context + Sync,
    G: Fn(B::Context, B::Acc) -> O + Sync,
{
    type In = A::In;
    type Out = O;

    fn unit(&self, source: &Source<'_, A::In>, width: usize) -> usize {
        source.unit::<L>(width)
    }

    fn tile(
        &self,
        source: &Source<'_, A::In>,
        tile: Tile,
        mut scratch: Option<&mut [u8]>,
        mut emit: impl FnMut(usize, O),
    ) {
        let (mut found, mut accs, mut contexts) = (PerOutput::new(), PerOutput::new(), PerOutput::new());
        let found = found.filled(tile.width, A::START);
        let accs = accs.filled(tile.width, B::START);
        let none = &[(); WIDE][..tile.width];
        source.fold(self.first, self.lanes, tile, none, found, scratch.as_deref_mut());
        let contexts = contexts.filled(tile.width, (self.context)(A::EMPTY));
        for (context, &acc) in contexts.iter_mut().zip(&*found) {
            *context = (self.context)(acc);
        }
        source.fold(self.second, self.lanes, tile, contexts, accs, scratch);
        for (j, (&context, &acc)) in contexts.iter().zip(&*accs).enumerate() {
            emit(j, (self.finish)(context, acc));
        }
    }
}
