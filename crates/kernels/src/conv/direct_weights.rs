//! Weight gradient of images with enough channels: sums in registers, over images in their own layout.
//!
//! A tile is a few input channels of one tap and vectors of output channels. Its sums stay in registers over the pixels of a tile of images; pixels
//! for which the tap is padding are left out. Nothing is packed.

use super::Layout;
use super::pack::{Block, Source};
use super::problem::{Phase, Problem};
use super::real::{Real, Sum};
use super::window::Runs;
use crate::lanes::{Lanes, MOST_ELEMENTS, VectorWork};
use crate::simd;

/// Input channels that fill the smallest tile.
const FEWEST_CHANNELS: usize = 8;
/// Bytes of images that are read for every tap while they are in the first cache.
const TILE: usize = 32 << 10;
/// Runs of pixels that are walked together.
const SPANS: usize = 64;

/// Whether the weight gradient is computed here, in blocks of so many channels. That depends on shapes and on the machine alone, as
/// plans do.
pub(super) fn applies<T: Real>(problem: &Problem, block: usize) -> bool {
    let last = problem.cin - problem.cin.div_ceil(block).saturating_sub(1) * block;
    T::WIDE
        && problem.layout == Layout::ChannelsLast
        && problem.groups == 1
        && last >= FEWEST_CHANNELS
        && problem.cout.is_multiple_of(64 / size_of::<T>())
        && simd::fuses_multiply_add()
}

/// Pixels of a tile.
pub(super) fn pixels<T: Real>(problem: &Problem) -> usize {
    TILE / ((problem.cin + problem.cout) * size_of::<T>())
}

/// What is computed: the products of a tile of pixels, summed.
pub(crate) struct Products<'a, S> {
    pub(super) x: Source<'a, S>,
    pub(super) dy: Source<'a, S>,
    pub(super) windows: Phase,
    /// The first pixel, and how many.
    pub(super) pixels: (usize, usize),
    pub(super) block: &'a Block,
    pub(super) cout: usize,
    /// Whether the products are added to what is there.
    pub(super) accumulate: bool,
}

/// Products to sum up, and where the sums go.
pub(super) struct Write<'a, S> {
    pub(super) products: &'a Products<'a, S>,
    /// A row per tap and input channel.
    pub(super) sums: &'a mut [S],
}

impl<S: Sum> VectorWork<S> for Write<'_, S> {
    #[inline(always)]
    fn run<A: Lanes<S>>(self, simd: A) {
        let Write { products, sums } = self;
        let vectors = products.cout / A::COUNT;
        // As many sums as there are registers for: 32 of 64 bytes, 16 of 32.
        match (size_of::<A::Vector>(), products.block.channels.len()) {
            (64, 8..) if vectors % 2 == 0 => taps::<S, A, 8, 2>(simd, products, sums),
            (64, 16..) => taps::<S, A, 16, 1>(simd, products, sums),
            (64, _) => taps::<S, A, 8, 1>(simd, products, sums),
            _ => taps::<S, A, 4, 2>(simd, products, sums),
        }
    }
}

/// Consecutive pixels of a row for which a tap is not padding.
#[derive(Clone, Copy, Default)]
struct Span {
    /// Where the tap of the first pixel is in `x`.
    x: isize,
    /// Where the first pixel is in `dy`.
    dy: isize,
    len: usize,
}

/// Writes the sums of every tap.
#[inline(always)]
fn taps<S: Sum, A: Lanes<S>, const R: usize, const C: usize>(
    simd: A,
    products: &Products<'_, S>,
    sums: &mut [S],
) {
    let channels = products.block.channels.len();
    for (tap, sums) in products.block.taps.clone().zip(sums.chunks_exact_mut(channels * products.cout)) {
        let mut accumulate = products.accumulate;
        let mut spans = Spans::new(products, tap);
        let mut some = [Span::default(); SPANS];
        loop {
            let count = spans.fill(&mut some);
            if count > 0 || !accumulate {
                tiles::<S, A, R, C>(simd, products, &some[..count], sums, accumulate);
                accumulate = true;
            }
            if count < SPANS {
                break;
            }
        }
    }
}

/// The runs of pixels for which a tap is inside.
struct Spans<'a, S> {
    products: &'a Products<'a, S>,
    /// The tap's index in each dimension.
    tap: [usize; 3],
    runs: Runs,
}

impl<'a, S: Sum> Spans<'a, S> {
    #[inline(always)]
    fn new(products: &'a Products<'a, S>, tap: usize) -> Spans<'a, S> {
        let [_, h, w] = products.windows.axes.map(|axis| axis.taps);
        let runs = Runs::new(products.windows.pixels, products.pixels.0, products.pixels.1);
        Spans { products, tap: [tap / w / h, tap / w % h, tap % w], runs }
    }

    /// Writes the next runs, and returns how many.
    #[inline(always)]
    fn fill(&mut self, spans: &mut [Span]) -> usize {
        let Products { x, dy, windows, .. } = self.products;
        let [over_d, over_h, over_w] = windows.axes;
        let [d, h, w] = self.tap;
        let mut count = 0;
        while count < spans.len() {
            let Some(run) = self.runs.next() else { break };
            let (at_d, at_h) = (over_d.at(run.d, d), over_h.at(run.h, h));
            let inside = over_w.windows_inside(w, run.w + run.len);
            let (low, high) = (inside.start.max(run.w), inside.end);
            if low < high && (0..over_d.size).contains(&at_d) && (0..over_h.size).contains(&at_h) {
                spans[count] = Span {
                    x: x.grid.at(run.n, at_d, at_h, over_w.at(low, w)),
                    dy: dy.grid.at(run.n, run.d as isize, run.h as isize, low as isize),
                    len: high - low,
                };
                count += 1;
            }
        }
        count
    }
}

/// Writes the sums of one tap, tile by tile. The last tile of channels ends at the last one, and overlaps its neighbour.
#[inline(always)]
fn tiles<S: Sum, A: Lanes<S>, const R: usize, const C: usize>(
    simd: A,
    products: &Products<'_, S>,
    spans: &[Span],
    sums: &mut [S],
    accumulate: bool,
) {
    let (channels, cout, width) = (products.block.channels.len(), products.cout, C * A::COUNT);
    assert!(channels >= R && cout.is_multiple_of(width), "tiles larger than the sums");
    for wanted in (0..channels).step_by(R) {
        let first = wanted.min(channels - R);
        for column in (0..cout).step_by(width) {
            let tile =
                tile::<S, A, R, C>(simd, products, spans, products.block.channels.start + first, column);
            for (i, vectors) in tile.iter().enumerate().skip(wanted - first) {
                let to = &mut sums[(first + i) * cout + column..][..width];
                simd.write_or_add(vectors, to, accumulate);
            }
        }
    }
}

/// The sums of `R` input channels from `channel` on and `C` vectors of output channels from `column` on.
#[inline(always)]
fn tile<S: Sum, A: Lanes<S>, const R: usize, const C: usize>(
    simd: A,
    products: &Products<'_, S>,
    spans: &[Span],
    channel: usize,
    column: usize,
) -> [[A::Vector; C]; R] {
    let Products { x, dy, windows, .. } = products;
    let by_x = windows.axes[2].stride * x.grid.strides[3];
    let (by_dy, by_channel, by_column) = (dy.grid.strides[3], x.grid.strides[4], dy.grid.strides[4]);
    let mut sums = [[simd.splat(<S as Sum>::ZERO); C]; R];
    for span in spans {
        let x_first = span.x + channel as isize * by_channel;
        let dy_first = span.dy + column as isize * by_column;
        let pixels = span.len as isize - 1;
        x.check([x_first, x_first + pixels * by_x], (R as isize - 1) * by_channel);
        dy.check([dy_first, dy_first + pixels * by_dy], (C * A::COUNT) as isize * by_column - by_column);
        for i in 0..=pixels {
            // SAFETY: the first and the last element of the first and of the last pixel were checked, and all others lie between them.
            let (x, dy) = unsafe {
                (x.data.as_ptr().offset(x_first + i * by_x), dy.data.as_ptr().offset(dy_first + i * by_dy))
            };
            if by_channel == 1 && by_column == 1 {
                // SAFETY: as above.
                unsafe { add_products::<S, A, R, C>(simd, &mut sums, x, dy) };
                continue;
            }
            // SAFETY: as above.
            let x: [S; R] = std::array::from_fn(|r| unsafe { *x.offset(r as isize * by_channel) });
            let mut row = [<S as Sum>::ZERO; MOST_ELEMENTS];
            for (j, to) in row[..C * A::COUNT].iter_mut().enumerate() {
                // SAFETY: as above.
                *to = unsafe { *dy.offset(j as isize * by_column) };
            }
            // SAFETY: `R` elements, and those of `C` vectors.
            unsafe { add_products::<S, A, R, C>(simd, &mut sums, x.as_ptr(), row.as_ptr()) };
        }
    }
    sums
}

/// Adds the products of `R` elements from `x` on and `C` vectors from `dy` on.
///
/// # Safety
/// They must be there to read.
#[inline(always)]
unsafe fn add_products<S: Sum, A: Lanes<S>, const R: usize, const C: usize>(
    simd: A,
    sums: &mut [[A::Vector; C]; R],
    x: *const S,
    dy: *const S,
) {
    // SAFETY: guaranteed by the caller.
    let row: [A::Vector; C] = std::array::from_fn(|c| unsafe { simd.read(dy.add(c * A::COUNT)) });
    for (r, sums) in sums.iter_mut().enumerate() {
        // SAFETY: as above.
        let x = simd.splat(unsafe { *x.add(r) });
        for c in 0..C {
            sums[c] = simd.fused(x, row[c], sums[c]);
        }
    }
}

impl<S> Source<'_, S> {
    /// Panics unless the elements at `firsts`, and those `reach` behind them, are in the images.
    #[inline(always)]
    fn check(&self, firsts: [isize; 2], reach: isize) {
        let len = self.data.len();
        let inside = firsts.iter().all(|&at| (at as usize) < len && ((at + reach) as usize) < len);
        assert!(inside, "pixel outside its images");
    }
}
