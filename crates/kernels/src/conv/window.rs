//! The arithmetic of sliding windows, shared by convolution and pooling.

use std::ops::Range;

/// Where the channels are in a batch of images (or of sequences, or of volumes).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layout {
    /// `[n, spatial.., channels]`.
    ChannelsLast,
    /// `[n, channels, spatial..]`.
    ChannelsFirst,
}

/// How many windows fit along one dimension: `padding` is what is added before and after the input.
///
/// `None` if the window, the stride or the dilation is zero, if the sizes overflow, or if the padded input lacks
/// more than one stride to hold a window. If it lacks at most one stride, no window fits: `Some(0)`.
///
/// ```
/// # use taut_kernels::conv::output_size;
/// assert_eq!(output_size(7, 3, 2, 1, (1, 1)), Some(4));
/// assert_eq!(output_size(0, 1, 1, 1, (0, 0)), Some(0));
/// assert_eq!(output_size(2, 5, 1, 1, (0, 0)), None);
/// ```
pub fn output_size(
    input: usize,
    window: usize,
    stride: usize,
    dilation: usize,
    padding: (usize, usize),
) -> Option<usize> {
    if stride == 0 || dilation == 0 {
        return None;
    }
    let span = window.checked_sub(1)?.checked_mul(dilation)?.checked_add(1)?;
    let padded = input.checked_add(padding.0)?.checked_add(padding.1)?;
    // Positions are computed as `isize` later on.
    let reach = padded.checked_add(stride)?;
    isize::try_from(reach.checked_add(dilation)?.checked_add(span)?).ok()?;
    Some(reach.checked_sub(span)? / stride)
}

/// A batch of images seen as `[n, depth, height, width, channels]`, whatever its layout and rank.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    pub(crate) n: usize,
    pub(crate) size: [usize; 3],
    pub(crate) channels: usize,
    /// The first element.
    pub(crate) offset: isize,
    /// Strides of n, depth, height, width, channels.
    pub(crate) strides: [isize; 5],
}

impl Grid {
    /// The grid of a shape with these strides. Lower ranks get leading spatial dimensions of size one.
    pub(crate) fn new(
        layout: Layout,
        rank: usize,
        shape: &[usize],
        strides: &[isize],
        offset: usize,
    ) -> Grid {
        assert!((1..=3).contains(&rank), "spatial rank {rank}");
        assert_eq!(shape.len(), rank + 2, "a batch, {rank} spatial dimensions and channels");
        let (spatial, channel) = match layout {
            Layout::ChannelsLast => (1, rank + 1),
            Layout::ChannelsFirst => (2, 1),
        };
        let mut grid = Grid {
            n: shape[0],
            size: [1; 3],
            channels: shape[channel],
            offset: offset as isize,
            strides: [strides[0], 0, 0, 0, strides[channel]],
        };
        for i in 0..rank {
            grid.size[3 - rank + i] = shape[spatial + i];
            grid.strides[4 - rank + i] = strides[spatial + i];
        }
        grid
    }

    /// The grid of a row-major shape.
    pub(crate) fn contiguous(layout: Layout, rank: usize, shape: &[usize]) -> Grid {
        assert!((1..=3).contains(&rank) && shape.len() == rank + 2, "spatial rank {rank}, shape {shape:?}");
        let mut strides = [1isize; 5];
        for i in (0..=rank).rev() {
            strides[i] = strides[i + 1] * shape[i + 1] as isize;
        }
        Grid::new(layout, rank, shape, &strides[..rank + 2], 0)
    }

    /// Pixels of one image.
    pub(crate) fn image(&self) -> usize {
        self.size.iter().product()
    }

    /// Where a pixel's first channel is.
    #[inline(always)]
    pub(crate) fn at(&self, n: usize, d: isize, h: isize, w: isize) -> isize {
        let s = &self.strides;
        self.offset + n as isize * s[0] + d * s[1] + h * s[2] + w * s[3]
    }
}

/// Spreads per-dimension parameters over three dimensions, `fill` for the leading ones that a rank lacks.
pub(crate) fn three<T: Copy>(rank: usize, values: &[T; 3], fill: T) -> [T; 3] {
    let mut out = [fill; 3];
    out[3 - rank..].copy_from_slice(&values[..rank]);
    out
}

/// One dimension of a sliding window: tap `t` of window `j` lies at `j * stride + first + t * step`, and is
/// padding if that is outside `0..size`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) stride: isize,
    pub(crate) first: isize,
    pub(crate) step: isize,
    pub(crate) taps: usize,
    pub(crate) size: isize,
}

impl Axis {
    /// The position of tap `tap` of window `j`, which may be padding.
    #[inline(always)]
    pub(crate) fn at(&self, j: usize, tap: usize) -> isize {
        j as isize * self.stride + self.first + tap as isize * self.step
    }

    /// The taps of window `j` that are inside.
    #[inline(always)]
    pub(crate) fn taps_inside(&self, j: usize) -> Range<usize> {
        let start = self.at(j, 0);
        if start >= 0 && start + (self.taps as isize - 1) * self.step < self.size {
            return 0..self.taps; // No division on the way most windows take.
        }
        let low = if start >= 0 { 0 } else { (-start + self.step - 1) / self.step };
        let high = if start >= self.size { 0 } else { (self.size - start + self.step - 1) / self.step };
        let high = (high as usize).min(self.taps);
        (low as usize).min(high)..high
    }

    /// The windows, of `0..windows`, whose tap `tap` is inside.
    #[inline(always)]
    pub(crate) fn windows_inside(&self, tap: usize, windows: usize) -> Range<usize> {
        let start = self.at(0, tap);
        let low = if start >= 0 { 0 } else { (-start + self.stride - 1) / self.stride };
        let high = if start >= self.size { 0 } else { (self.size - start + self.stride - 1) / self.stride };
        let high = (high as usize).min(windows);
        (low as usize).min(high)..high
    }

    /// Whether no tap of `0..windows` is padding.
    #[inline(always)]
    pub(crate) fn all_inside(&self, windows: usize) -> bool {
        windows == 0 || self.taps == 0 || (self.first >= 0 && self.at(windows - 1, self.taps - 1) < self.size)
    }

    /// The windows, of `0..windows`, that may have a tap at `position`.
    #[inline(always)]
    pub(crate) fn windows_over(&self, position: isize, windows: usize) -> Range<usize> {
        let reach = (self.taps as isize - 1) * self.step;
        let high = (position - self.first).div_euclid(self.stride) + 1;
        let low = (position - self.first - reach + self.stride - 1).div_euclid(self.stride);
        let high = (high.max(0) as usize).min(windows);
        (low.max(0) as usize).min(high)..high
    }

    /// The tap of window `j` that lies at `position`, if there is one.
    #[inline(always)]
    pub(crate) fn tap_at(&self, j: usize, position: isize) -> Option<usize> {
        let distance = position - self.at(j, 0);
        let tap = distance / self.step;
        (distance >= 0 && tap * self.step == distance && (tap as usize) < self.taps).then_some(tap as usize)
    }
}

/// Consecutive cells of one row of a `[n, d, h, w]` space.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    /// Cells walked before this run.
    pub(crate) done: usize,
    pub(crate) n: usize,
    pub(crate) d: usize,
    pub(crate) h: usize,
    /// The first cell.
    pub(crate) w: usize,
    /// How many cells, at least one.
    pub(crate) len: usize,
}

/// Walks cells of a row-major `[n, d, h, w]` space row by row.
#[derive(Debug)]
pub(crate) struct Runs {
    size: [usize; 3],
    left: usize,
    next: Run,
}

impl Runs {
    /// The runs of `len` cells from number `first` on.
    #[inline(always)]
    pub(crate) fn new(size: [usize; 3], first: usize, len: usize) -> Runs {
        let [depth, height, width] = size.map(|s| s.max(1));
        let row = first / width;
        let plane = row / height;
        let next =
            Run { done: 0, n: plane / depth, d: plane % depth, h: row % height, w: first % width, len: 0 };
        Runs { size, left: len, next }
    }
}

impl Iterator for Runs {
    type Item = Run;

    #[inline(always)]
    fn next(&mut self) -> Option<Run> {
        if self.left == 0 {
            return None;
        }
        let len = (self.size[2] - self.next.w).min(self.left);
        let run = Run { len, ..self.next };
        self.left -= len;
        self.next.done += len;
        self.next.w = 0;
        self.next.h += 1;
        if self.next.h == self.size[1] {
            self.next.h = 0;
            self.next.d += 1;
        }
        if self.next.d == self.size[0] {
            self.next.d = 0;
            self.next.n += 1;
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_sizes() {
        assert_eq!(output_size(5, 3, 1, 1, (0, 0)), Some(3));
        assert_eq!(output_size(5, 3, 2, 2, (1, 2)), Some(2));
        assert_eq!(output_size(2, 3, 1, 1, (0, 0)), Some(0));
        assert_eq!(output_size(1, 3, 1, 1, (0, 0)), None);
        for zero in [
            output_size(5, 0, 1, 1, (0, 0)),
            output_size(5, 1, 0, 1, (0, 0)),
            output_size(5, 1, 1, 0, (0, 0)),
        ] {
            assert_eq!(zero, None);
        }
        assert_eq!(output_size(usize::MAX, 1, 1, 1, (1, 0)), None);
        assert_eq!(output_size(5, usize::MAX, 1, 3, (0, 0)), None);
    }

    #[test]
    fn axis_ranges_match_enumeration() {
        for (stride, first, step, taps, size) in [
            (1, -1, 1, 3, 5),
            (2, -3, 2, 4, 7),
            (3, 0, 1, 2, 9),
            (1, -6, 3, 3, 2),
            (2, 2, 1, 5, 4),
            (1, -9, 1, 2, 3),
            (1, 0, 1, 0, 3),
            (2, 0, 3, 2, 18),
        ] {
            let axis = Axis { stride, first, step, taps, size };
            let windows = 8;
            let inside =
                |j: usize, t: usize| (0..size).contains(&(j as isize * stride + first + t as isize * step));
            for j in 0..windows {
                let want: Vec<usize> = (0..taps).filter(|&t| inside(j, t)).collect();
                assert_eq!(axis.taps_inside(j).collect::<Vec<_>>(), want, "{axis:?} window {j}");
            }
            for t in 0..taps {
                let want: Vec<usize> = (0..windows).filter(|&j| inside(j, t)).collect();
                assert_eq!(axis.windows_inside(t, windows).collect::<Vec<_>>(), want, "{axis:?} tap {t}");
            }
            let all = (0..windows).all(|j| (0..taps).all(|t| inside(j, t)));
            assert_eq!(axis.all_inside(windows), all, "{axis:?}");
            for i in 0..size {
                let mut found = Vec::new();
                for j in axis.windows_over(i, windows) {
                    found.extend(axis.tap_at(j, i).map(|t| (j, t)));
                }
                let mut want = Vec::new();
                for j in 0..windows {
                    want.extend((0..taps).filter(|&t| axis.at(j, t) == i).map(|t| (j, t)));
                }
                assert_eq!(found, want, "{axis:?} position {i}");
            }
        }
    }

    #[test]
    fn runs_cover_in_order() {
        let size = [2, 3, 4];
        for (first, len) in [(0, 48), (5, 30), (23, 2), (7, 1), (3, 0)] {
            let mut cells = Vec::new();
            for run in Runs::new(size, first, len) {
                assert_eq!(run.done, cells.len());
                cells.extend((run.w..run.w + run.len).map(|w| ((run.n * 2 + run.d) * 3 + run.h) * 4 + w));
            }
            assert_eq!(cells, (first..first + len).collect::<Vec<_>>());
        }
    }
}
