//! Patches of images, packed into a tile of a matrix.

use super::ConvParams;
use super::problem::Phase;
use super::real::{Real, Sum};
use super::window::{Axis, Grid, Runs};
use crate::matmul::Mat;
use crate::view::View;
use std::ops::Range;

/// The images a convolution reads.
#[derive(Clone, Copy)]
pub(super) struct Source<'a, T> {
    pub(super) grid: Grid,
    pub(super) data: &'a [T],
}

/// Which columns of the patches' matrix: some taps, and of each the same channels of a group.
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub(super) taps: Range<usize>,
    /// Numbered within the group.
    pub(super) channels: Range<usize>,
}

impl Block {
    pub(super) fn width(&self) -> usize {
        self.taps.len() * self.channels.len()
    }
}

/// How many taps and channels a block of at most `widest` columns has, such that blocks are about equal.
pub(super) fn block_shape(taps: usize, channels: usize, widest: usize) -> (usize, usize) {
    let even = |n: usize, most: usize| n.div_ceil(n.div_ceil(most).max(1)).max(1);
    let channels = even(channels, widest);
    (even(taps, widest / channels), channels)
}

/// The blocks of a matrix of patches, in order. Blocks of several taps have all channels.
pub(super) fn blocks(
    taps: usize,
    channels: usize,
    (block_taps, block_channels): (usize, usize),
) -> impl Iterator<Item = Block> {
    (0..taps).step_by(block_taps).flat_map(move |t| {
        (0..channels).step_by(block_channels).map(move |c| Block {
            taps: t..taps.min(t + block_taps),
            channels: c..channels.min(c + block_channels),
        })
    })
}

impl<'a, T: Real> Source<'a, T> {
    pub(super) fn new(p: &ConvParams, view: &View<'a>) -> Source<'a, T> {
        let grid = Grid::new(p.layout, p.rank, view.shape(), view.strides(), view.offset());
        Source { grid, data: view.data() }
    }

    /// The patches of `len` pixels of a phase from number `first` on: a row per pixel, a column per tap and channel
    /// of `block`. Packed into `tile`, unless the images already lie like that.
    pub(super) fn patches<'t>(
        &self,
        phase: &Phase,
        (first, len): (usize, usize),
        first_channel: usize,
        block: &Block,
        tile: &'t mut [T::Sum],
    ) -> Mat<'t, T::Sum>
    where
        'a: 't,
    {
        let channel = first_channel + block.channels.start;
        if phase.is_pointwise()
            && block.taps.len() == 1
            && let Some(matrix) = self.as_matrix(first, len, channel, block.channels.len())
        {
            return matrix;
        }
        let width = block.width();
        let tile = &mut tile[..len * width];
        let place = Place { source: self, phase, first, len, channel, block };
        // Pixels that are neighbours in memory are copied by rows, channels that are by pixels.
        if self.grid.strides[3] == 1 {
            place.by_rows(tile);
            Mat::new(tile, 0, len, width, 1, len as isize)
        } else {
            place.by_pixels(tile);
            Mat::row_major(tile, len, width)
        }
    }

    /// Pixels and channels as they lie, if they are a matrix of the type that sums have.
    fn as_matrix(
        &self,
        first: usize,
        len: usize,
        channel: usize,
        channels: usize,
    ) -> Option<Mat<'a, T::Sum>> {
        let data: &[T::Sum] = T::as_sums(self.data)?;
        let Grid { size: [depth, height, width], strides: [by_n, by_d, by_h, by_w, by_c], .. } = self.grid;
        let rows = (height == 1 || by_h == by_w * width as isize)
            && (depth == 1 || by_d == by_w * (width * height) as isize);
        let image = self.grid.image();
        let one_image = first / image == (first + len - 1) / image;
        if !rows || !(one_image || by_n == by_w * image as isize) {
            return None;
        }
        let start = self.grid.at(first / image, 0, 0, (first % image) as isize) + channel as isize * by_c;
        Some(Mat::new(data, start as usize, len, channels, by_w, by_c))
    }
}

/// What is packed, and from where.
struct Place<'a, T> {
    source: &'a Source<'a, T>,
    phase: &'a Phase,
    first: usize,
    len: usize,
    channel: usize,
    block: &'a Block,
}

impl<T: Real> Place<'_, T> {
    /// Rows of the tile are pixels: the channels of a tap are copied together.
    fn by_pixels(&self, tile: &mut [T::Sum]) {
        let Grid { strides, size, .. } = self.source.grid;
        let [over_d, over_h, over_w] = self.phase.axes;
        let (channels, width) = (self.block.channels.len(), self.block.width());
        // Neighbouring taps whose channels are neighbours in memory are copied as one.
        let together = strides[4] == 1 && over_w.step * strides[3] == channels as isize;
        for run in Runs::new(self.phase.pixels, self.first, self.len) {
            let mut column = 0;
            let mut tap = self.block.taps.start;
            while tap < self.block.taps.end {
                let row = tap / over_w.taps;
                let first = tap % over_w.taps;
                let taps = first..over_w.taps.min(first + self.block.taps.end - tap);
                tap += taps.len();
                let d = over_d.at(run.d, row / over_h.taps);
                let h = over_h.at(run.h, row % over_h.taps);
                let inside = inside(d, size[0]) && inside(h, size[1]);
                let base = self.source.grid.at(run.n, d, h, 0) + self.channel as isize * strides[4];
                let strip = Strip { base, taps, inside, column, width, together };
                self.strip(&over_w, run.w, &mut tile[run.done * width..][..run.len * width], strip.clone());
                column += strip.taps.len() * channels;
            }
        }
    }

    /// Copies some taps of one row of the window for consecutive pixels.
    fn strip(&self, over_w: &Axis, first_w: usize, tile: &mut [T::Sum], strip: Strip) {
        let Strip { base, taps, inside, column, width, together } = strip;
        let strides = self.source.grid.strides;
        let channels = self.block.channels.len();
        for (i, pixel) in tile.chunks_exact_mut(width).enumerate() {
            let to = &mut pixel[column..column + taps.len() * channels];
            let valid = if inside { over_w.taps_inside(first_w + i) } else { 0..0 };
            let low = valid.start.clamp(taps.start, taps.end);
            let high = valid.end.clamp(low, taps.end);
            let (before, rest) = to.split_at_mut((low - taps.start) * channels);
            let (copied, after) = rest.split_at_mut((high - low) * channels);
            before.fill(T::Sum::ZERO);
            after.fill(T::Sum::ZERO);
            if copied.is_empty() {
                continue;
            }
            let from = base + over_w.at(first_w + i, low) * strides[3];
            if together {
                T::widen_slice(&self.source.data[from as usize..][..copied.len()], copied);
            } else {
                for (t, to) in copied.chunks_exact_mut(channels).enumerate() {
                    copy_lanes(
                        self.source.data,
                        from + t as isize * over_w.step * strides[3],
                        strides[4],
                        to,
                    );
                }
            }
        }
    }

    /// Columns of the tile are pixels: the pixels of an image's row are copied together.
    fn by_rows(&self, tile: &mut [T::Sum]) {
        let Grid { strides, size, .. } = self.source.grid;
        let [over_d, over_h, over_w] = self.phase.axes;
        let channels = self.block.channels.len();
        for (i, tap) in self.block.taps.clone().enumerate() {
            let (tw, row) = (tap % over_w.taps, tap / over_w.taps);
            let valid = over_w.windows_inside(tw, self.phase.pixels[2]);
            let rows = &mut tile[i * channels * self.len..][..channels * self.len];
            for run in Runs::new(self.phase.pixels, self.first, self.len) {
                let d = over_d.at(run.d, row / over_h.taps);
                let h = over_h.at(run.h, row % over_h.taps);
                let inside = inside(d, size[0]) && inside(h, size[1]);
                let low = if inside { valid.start.clamp(run.w, run.w + run.len) } else { run.w };
                let high = if inside { valid.end.clamp(low, run.w + run.len) } else { low };
                let base =
                    self.source.grid.at(run.n, d, h, over_w.at(low, tw)) + self.channel as isize * strides[4];
                for (c, to) in rows.chunks_exact_mut(self.len).enumerate() {
                    let to = &mut to[run.done..run.done + run.len];
                    to[..low - run.w].fill(T::Sum::ZERO);
                    to[high - run.w..].fill(T::Sum::ZERO);
                    if low < high {
                        let from = base + c as isize * strides[4];
                        copy_lanes(
                            self.source.data,
                            from,
                            over_w.stride * strides[3],
                            &mut to[low - run.w..high - run.w],
                        );
                    }
                }
            }
        }
    }
}

/// Some taps of one row of the window, and the columns they go to.
#[derive(Clone)]
struct Strip {
    base: isize,
    taps: Range<usize>,
    inside: bool,
    column: usize,
    width: usize,
    together: bool,
}

/// Copies elements that are `stride` apart.
#[inline]
pub(super) fn copy_lanes<T: Real>(data: &[T], from: isize, stride: isize, to: &mut [T::Sum]) {
    match stride {
        1 => T::widen_slice(&data[from as usize..][..to.len()], to),
        2.. => {
            let from = data[from as usize..].iter().step_by(stride as usize);
            for (to, from) in to.iter_mut().zip(from) {
                *to = from.widen();
            }
        }
        _ => {
            for (i, to) in to.iter_mut().enumerate() {
                *to = data[(from + i as isize * stride) as usize].widen();
            }
        }
    }
}

#[inline(always)]
fn inside(position: isize, size: usize) -> bool {
    (0..size as isize).contains(&position)
}
