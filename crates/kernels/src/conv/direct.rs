//! Forward and input gradient of windows with few weights: sums in registers, over images in their own layout.
//!
//! A tile is a few destination pixels and vectors of their channels. Its sums stay in registers over all taps and source channels; the
//! source is read in place, and zeros are read where a tap is padding. So nothing is packed but the weights, and no scratch
//! memory grows with the images.

use super::Layout;
use super::pack::{Source, copy_lanes};
use super::problem::{Direction, Phase, Problem};
use super::real::{Real, Sum};
use super::shared::{Shared, lines, worth_sharing};
use super::window::{Grid, Run, Runs};
use crate::lanes::{Lanes, VectorWork, tile_width, widest_tile};
use crate::view::View;
use crate::{pool, simd};

/// The fewest source channels: with fewer, finding the taps costs more than packing them.
const FEWEST_CHANNELS: usize = 8;
/// The longest sum: beyond it, the weights of a tile leave the cache that every tile reads them from.
const DEEPEST: usize = 1152;
/// The most destination channels: with more of them, packed patches are read often enough to repay packing.
const WIDEST: usize = 128;
/// Pixels of a task, at most.
const PIXELS: usize = 512;
/// Pixels of a task are a multiple of this, so that its tiles are whole whatever their rows.
const ROWS: usize = 24;
/// Enough tasks to keep threads busy to the end.
const TASKS: usize = 16;

/// Whether a direction is computed here. That depends on shapes and on the machine alone, as plans do.
pub(super) fn applies<T: Real>(problem: &Problem, direction: Direction) -> bool {
    let (from, to) = problem.channels(direction);
    T::WIDE
        && problem.layout == Layout::ChannelsLast
        && problem.groups == 1
        && problem.taps() > 1
        && from >= FEWEST_CHANNELS
        && problem.taps() * from <= DEEPEST
        && to <= WIDEST
        && simd::fuses_multiply_add()
}

/// Elements of packed weights in blocks of `width` columns.
fn packed_len(problem: &Problem, direction: Direction, width: usize) -> usize {
    let (from, to) = problem.channels(direction);
    let (_, taps) = problem.largest_phase(direction);
    taps * from * to.next_multiple_of(width)
}

/// Bytes of scratch: weights and a pixel of zeros.
pub(super) fn scratch<T: Real>(problem: &Problem, direction: Direction) -> usize {
    // What narrower blocks of columns need is not more.
    let packed = packed_len(problem, direction, widest_tile::<T::Sum>());
    lines::<T::Sum>(packed + problem.channels(direction).0)
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
    let data = T::as_sums(source.data).expect("direct sums are not converted");
    let out = T::as_sums_mut(out).expect("direct sums are not converted");
    let source = Source { grid: source.grid, data };
    Convolution { problem, direction, source, w, grid }.run(out, scratch);
}

/// What is computed, and from what.
struct Convolution<'a, S> {
    problem: &'a Problem,
    direction: Direction,
    source: Source<'a, S>,
    w: &'a View<'a>,
    grid: &'a Grid,
}

/// A part to compute, and where its pixels go.
struct Columns<'a, S> {
    part: &'a PixelBlock<'a, S>,
    out: &'a Shared<'a, S>,
}

impl<S: Sum> VectorWork<S> for Columns<'_, S> {
    #[inline(always)]
    fn run<A: Lanes<S>>(self, simd: A) {
        // Rows of a tile: as many sums as there are registers for, and enough to wait for none.
        match self.part.width / A::COUNT {
            1 => columns::<S, A, 8, 1>(simd, self.part, self.out),
            2 => columns::<S, A, 6, 2>(simd, self.part, self.out),
            4 => columns::<S, A, 6, 4>(simd, self.part, self.out),
            8 => columns::<S, A, 1, 8>(simd, self.part, self.out),
            _ => columns::<S, A, 1, 16>(simd, self.part, self.out),
        }
    }
}

impl<S: Sum> Convolution<'_, S> {
    /// Computes the pixels of every phase.
    fn run(&self, out: &mut [S], scratch: &mut [u8]) {
        let (from, to) = self.problem.channels(self.direction);
        let width = tile_width::<S>(to);
        let scratch: &mut [S] = bytemuck::cast_slice_mut(scratch);
        let (zeros, packed) = scratch.split_at_mut(from);
        zeros.fill(<S as Sum>::ZERO);
        let out = &Shared::new(out);
        for phase in self.problem.phases(self.direction) {
            let depth = phase.taps() * from;
            let packed = &mut packed[..depth * to.next_multiple_of(width)];
            self.pack_weights(&phase, width, packed);
            let total = self.problem.n * phase.pixels.iter().product::<usize>();
            let chunk = if worth_sharing(self.problem.work()) {
                total.div_ceil(TASKS).min(PIXELS).next_multiple_of(ROWS)
            } else {
                total
            };
            let windows = Windows { source: self.source, phase, zeros: &*zeros, from, to, grid: *self.grid };
            let packed = &*packed;
            pool::for_each(total, chunk, |pixels| {
                for column in (0..to).step_by(width) {
                    let weights = &packed[column * depth..][..depth * width];
                    let part = PixelBlock {
                        windows,
                        weights,
                        first: pixels.start,
                        len: pixels.len(),
                        column,
                        width,
                    };
                    S::vectorize(Columns { part: &part, out });
                }
            });
        }
    }

    /// Writes the weights of a phase as blocks of `width` columns, with a row per tap and source channel; columns beyond the last are zeros.
    fn pack_weights(&self, phase: &Phase, width: usize, packed: &mut [S]) {
        let (taps, cin, cout) = self.problem.weight_strides(self.w.strides());
        let (by_from, by_to) = match self.direction {
            Direction::Forward => (cin, cout),
            Direction::Backward => (cout, cin),
        };
        let (from, to) = self.problem.channels(self.direction);
        let (data, offset) = (self.w.data::<S>(), self.w.offset() as isize);
        let depth = phase.taps() * from;
        for (i, row) in packed.chunks_exact_mut(width).enumerate() {
            let (column, tap, channel) = (i / depth * width, i % depth / from, i % from);
            let index = phase.weight_tap(tap);
            let at: isize = index.iter().zip(&taps).map(|(&i, by)| i as isize * by).sum();
            let first = offset + at + channel as isize * by_from + column as isize * by_to;
            let (values, beyond) = row.split_at_mut(width.min(to - column));
            copy_lanes(data, first, by_to, values);
            beyond.fill(<S as Sum>::ZERO);
        }
    }
}

/// The windows of a phase over its source.
#[derive(Clone, Copy)]
pub(crate) struct Windows<'a, S> {
    source: Source<'a, S>,
    phase: Phase,
    /// As many as a pixel has channels.
    zeros: &'a [S],
    /// Channels of the source and of the destination.
    from: usize,
    to: usize,
    /// The destination.
    grid: Grid,
}

/// Some pixels of a phase and a block of their channels.
pub(crate) struct PixelBlock<'a, S> {
    windows: Windows<'a, S>,
    weights: &'a [S],
    /// The first pixel, and how many.
    first: usize,
    len: usize,
    /// The first channel, and how many elements a row of the weights has.
    column: usize,
    width: usize,
}

/// A destination pixel.
#[derive(Clone, Copy, Default)]
struct Pixel {
    /// Where its window's first tap is in the source, which may be padding.
    first: isize,
    at: [isize; 3],
    /// Where its first channel is in the destination.
    to: usize,
}

/// Pixels that are computed together.
#[derive(Clone, Copy)]
struct Tile<const R: usize> {
    pixels: [Pixel; R],
    filled: usize,
}

impl<const R: usize> Tile<R> {
    const EMPTY: Tile<R> = Tile { pixels: [Pixel { first: 0, at: [0; 3], to: 0 }; R], filled: 0 };
}

/// Computes a part in tiles of `R` pixels and `C` vectors.
#[inline(always)]
fn columns<S: Sum, A: Lanes<S>, const R: usize, const C: usize>(
    simd: A,
    part: &PixelBlock<'_, S>,
    out: &Shared<'_, S>,
) {
    let windows = &part.windows;
    assert_eq!(part.width, C * A::COUNT, "weights packed for other vectors");
    let count = part.width.min(windows.to - part.column);
    // Windows that reach over the end of a row have tiles of their own: only where none does, the taps of a row are read as one.
    let mut tiles = [Tile::<R>::EMPTY; 2];
    let mut runs = Runs::new(windows.phase.pixels, part.first, part.len);
    let (mut next, mut left) = (Pixel::default(), 0);
    loop {
        let full = loop {
            if left == 0 {
                let Some(run) = runs.next() else { break tiles.iter().position(|tile| tile.filled > 0) };
                (next, left) = (windows.pixel(&run), run.len);
            }
            let at = usize::from(!windows.is_inside_row(&next));
            let tile = &mut tiles[at];
            tile.pixels[tile.filled] = next;
            tile.filled += 1;
            next = windows.neighbour(next);
            left -= 1;
            if tile.filled == R {
                break Some(at);
            }
        };
        let Some(full) = full else { return };
        let Tile { pixels, filled } = &mut tiles[full];
        // The last tile repeats its last pixel.
        let last = pixels[*filled - 1];
        pixels[*filled..].fill(last);
        let sums = windows.sums::<A, R, C>(simd, pixels, part.weights, full == 0);
        for (pixel, sums) in pixels.iter().zip(&sums).take(*filled) {
            // SAFETY: no other task has this pixel and these channels.
            simd.write(sums, unsafe { out.part(pixel.to + part.column, count) });
        }
        *filled = 0;
    }
}

impl<S: Sum> Windows<'_, S> {
    /// The first pixel of a run.
    #[inline(always)]
    fn pixel(&self, run: &Run) -> Pixel {
        let index = [run.d, run.h, run.w];
        let at: [isize; 3] = std::array::from_fn(|axis| self.phase.axes[axis].at(index[axis], 0));
        let to: [isize; 3] = std::array::from_fn(|axis| {
            (self.phase.to_first[axis] + index[axis] * self.phase.to_step[axis]) as isize
        });
        Pixel {
            first: self.source.grid.at(run.n, at[0], at[1], at[2]),
            at,
            to: self.grid.at(run.n, to[0], to[1], to[2]) as usize,
        }
    }

    /// The next pixel of a row.
    #[inline(always)]
    fn neighbour(&self, pixel: Pixel) -> Pixel {
        let stride = self.phase.axes[2].stride;
        let [d, h, w] = pixel.at;
        Pixel {
            first: pixel.first + stride * self.source.grid.strides[3],
            at: [d, h, w + stride],
            to: pixel.to + self.phase.to_step[2] * self.grid.strides[3] as usize,
        }
    }

    /// Whether no tap of a pixel's window is padding along the last dimension.
    #[inline(always)]
    fn is_inside_row(&self, pixel: &Pixel) -> bool {
        let over = self.phase.axes[2];
        pixel.at[2] >= 0 && pixel.at[2] + (over.taps as isize - 1) * over.step < over.size
    }

    /// The sums of a tile, in which all pixels are [inside their rows](Windows::is_inside_row), or may not be.
    #[inline(always)]
    fn sums<A: Lanes<S>, const R: usize, const C: usize>(
        &self,
        simd: A,
        tile: &[Pixel; R],
        weights: &[S],
        is_inside_rows: bool,
    ) -> [[A::Vector; C]; R] {
        let [over_d, over_h, over_w] = self.phase.axes;
        let [_, by_d, by_h, by_w, by_c] = self.source.grid.strides;
        // The taps of a row are read as one if they lie one after the other, and none is padding.
        let together = is_inside_rows && over_w.step * by_w == self.from as isize * by_c;
        let width = C * A::COUNT;
        let mut sums = [[simd.splat(<S as Sum>::ZERO); C]; R];
        if weights.is_empty() {
            return sums;
        }
        let mut weights = weights;
        for d in 0..over_d.taps as isize {
            for h in 0..over_h.taps as isize {
                let shift = [d * over_d.step, h * over_h.step];
                let offset = shift[0] * by_d + shift[1] * by_h;
                let rows_inside: [bool; R] = std::array::from_fn(|i| {
                    let [d, h, _] = tile[i].at;
                    (0..over_d.size).contains(&(d + shift[0])) & (0..over_h.size).contains(&(h + shift[1]))
                });
                if together && rows_inside == [true; R] {
                    let (rows, rest) = weights.split_at(over_w.taps * self.from * width);
                    let starts = std::array::from_fn(|i| {
                        self.element(tile[i].first + offset, over_w.taps * self.from)
                    });
                    // SAFETY: `element` checked that as many elements are there.
                    unsafe { add_products(simd, &mut sums, starts, by_c, rows) };
                    weights = rest;
                    continue;
                }
                for w in 0..over_w.taps as isize {
                    let (rows, rest) = weights.split_at(self.from * width);
                    let shift = w * over_w.step;
                    let inside: [bool; R] = std::array::from_fn(|i| {
                        rows_inside[i] & (0..over_w.size).contains(&(tile[i].at[2] + shift))
                    });
                    self.add_tap(simd, &mut sums, tile, offset + shift * by_w, inside, rows);
                    weights = rest;
                }
            }
        }
        sums
    }

    /// Adds the products of one tap, which is padding for some pixels.
    #[inline(always)]
    fn add_tap<A: Lanes<S>, const R: usize, const C: usize>(
        &self,
        simd: A,
        sums: &mut [[A::Vector; C]; R],
        tile: &[Pixel; R],
        offset: isize,
        inside: [bool; R],
        rows: &[S],
    ) {
        let by_c = self.source.grid.strides[4];
        if by_c == 1 {
            let starts = std::array::from_fn(|i| {
                if inside[i] { self.element(tile[i].first + offset, self.from) } else { self.zeros.as_ptr() }
            });
            // SAFETY: `element` checked that as many elements are there; there are as many zeros as rows.
            unsafe { add_products(simd, sums, starts, 1, rows) };
            return;
        }
        for i in 0..R {
            if inside[i] {
                let mut sum = [sums[i]];
                // SAFETY: as above.
                unsafe {
                    add_products(
                        simd,
                        &mut sum,
                        [self.element(tile[i].first + offset, self.from)],
                        by_c,
                        rows,
                    );
                };
                [sums[i]] = sum;
            }
        }
    }

    /// The element at `first`, from which on `len` elements can be read, a channel apart.
    #[inline(always)]
    fn element(&self, first: isize, len: usize) -> *const S {
        let last = first + (len as isize - 1) * self.source.grid.strides[4];
        let data = self.source.data;
        assert!(
            len > 0 && (first as usize) < data.len() && (last as usize) < data.len(),
            "window outside its images"
        );
        // SAFETY: just checked; a negative index is a large one.
        unsafe { data.as_ptr().offset(first) }
    }
}

/// Adds `weights[k] * starts[i][k * by]` to every `sums[i]`, where a row of the weights has `C` vectors.
///
/// # Safety
/// These elements must be there to read.
// A closure would not do: only what is always inlined is compiled for the caller's instruction set.
#[inline(always)]
unsafe fn add_products<S: Copy, A: Lanes<S>, const R: usize, const C: usize>(
    simd: A,
    sums: &mut [[A::Vector; C]; R],
    starts: [*const S; R],
    by: isize,
    weights: &[S],
) {
    let mut local = *sums;
    for (k, row) in weights.chunks_exact(C * A::COUNT).enumerate() {
        // SAFETY: a row has `C` vectors.
        let row: [A::Vector; C] =
            std::array::from_fn(|c| unsafe { simd.read(row.as_ptr().add(c * A::COUNT)) });
        for i in 0..R {
            // SAFETY: guaranteed by the caller.
            let x = simd.splat(unsafe { *starts[i].offset(k as isize * by) });
            for c in 0..C {
                local[i][c] = simd.fused(x, row[c], local[i][c]);
            }
        }
    }
    *sums = local;
}
