//! A convolution's sizes, and its decomposition into phases.

use super::window::{Axis, Grid, three};
use super::{ConvParams, Layout, output_size};
use crate::dtype::DType;

/// Which way images flow through the weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    /// From `x` to `y`.
    Forward,
    /// From the gradient of `y` to that of `x`.
    Backward,
}

/// The sizes of a convolution, over three spatial dimensions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Problem {
    pub(super) layout: Layout,
    rank: usize,
    pub(super) n: usize,
    pub(super) x: [usize; 3],
    pub(super) y: [usize; 3],
    pub(super) window: [usize; 3],
    strides: [usize; 3],
    dilations: [usize; 3],
    before: [usize; 3],
    pub(super) groups: usize,
    /// Input channels of a group.
    pub(super) cin: usize,
    /// Output channels of a group.
    pub(super) cout: usize,
}

/// A set of destination pixels that see the same taps: each is a sum over a window of the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Phase {
    /// The windows over the source.
    pub(super) axes: [Axis; 3],
    /// How many destination pixels there are in each dimension.
    pub(super) pixels: [usize; 3],
    /// Where the first one is.
    pub(super) to_first: [usize; 3],
    /// The distance to the next one.
    pub(super) to_step: [usize; 3],
    /// The weights' tap that the window's first tap is multiplied with.
    tap_first: [usize; 3],
    tap_step: [isize; 3],
}

impl Phase {
    pub(super) fn taps(&self) -> usize {
        self.axes.iter().map(|a| a.taps).product()
    }

    /// The weights' tap of the window's tap number `tap`.
    pub(super) fn weight_tap(&self, tap: usize) -> [usize; 3] {
        let [_, h, w] = self.axes.map(|a| a.taps);
        let index = [tap / w / h, tap / w % h, tap % w];
        std::array::from_fn(|i| (self.tap_first[i] as isize + index[i] as isize * self.tap_step[i]) as usize)
    }

    /// Whether windows have one tap and lie at their pixel: destination pixels are source pixels.
    pub(super) fn is_pointwise(&self) -> bool {
        let whole = |(a, &pixels): (&Axis, &usize)| {
            a.taps == 1 && a.first == 0 && a.stride == 1 && a.size == pixels as isize
        };
        self.axes.iter().zip(&self.pixels).all(whole)
    }
}

impl Problem {
    pub(super) fn new(p: &ConvParams, x_shape: &[usize], w_shape: &[usize]) -> Problem {
        let rank = p.rank;
        let x = Grid::contiguous(p.layout, rank, x_shape);
        assert_eq!(w_shape.len(), rank + 2, "weights are [{rank} spatial dimensions, c_in / groups, c_out]");
        let (cin, outputs) = (w_shape[rank], w_shape[rank + 1]);
        assert!(p.groups > 0 && x.channels == cin * p.groups, "{} channels for {w_shape:?}", x.channels);
        assert_eq!(outputs % p.groups, 0, "{outputs} output channels in {} groups", p.groups);
        let mut window = [1; 3];
        window[3 - rank..].copy_from_slice(&w_shape[..rank]);
        let (strides, dilations) = (three(rank, &p.strides, 1), three(rank, &p.dilations, 1));
        let padding = three(rank, &p.padding, (0, 0));
        let y = std::array::from_fn(|i| {
            output_size(x.size[i], window[i], strides[i], dilations[i], padding[i])
                .unwrap_or_else(|| panic!("the window of spatial dimension {i} does not fit"))
        });
        Problem {
            layout: p.layout,
            rank,
            n: x.n,
            x: x.size,
            y,
            window,
            strides,
            dilations,
            before: padding.map(|p| p.0),
            groups: p.groups,
            cin,
            cout: outputs / p.groups,
        }
    }

    /// Panics unless `y_shape` is the output's shape and all types are the same.
    pub(super) fn check(&self, y_shape: &[usize], dtypes: [DType; 3]) {
        let y = Grid::contiguous(self.layout, self.rank, y_shape);
        let agrees = y.n == self.n && y.size == self.y && y.channels == self.groups * self.cout;
        assert!(agrees, "output shape {y_shape:?} of {self:?}");
        assert!(dtypes.iter().all(|d| *d == dtypes[0]), "types differ: {dtypes:?}");
    }

    /// Row-major images as large as the input.
    pub(super) fn x_grid(&self) -> Grid {
        self.grid(self.x, self.groups * self.cin)
    }

    /// Row-major images as large as the output.
    pub(super) fn y_grid(&self) -> Grid {
        self.grid(self.y, self.groups * self.cout)
    }

    fn grid(&self, [d, h, w]: [usize; 3], c: usize) -> Grid {
        match self.layout {
            Layout::ChannelsLast => Grid::contiguous(self.layout, 3, &[self.n, d, h, w, c]),
            Layout::ChannelsFirst => Grid::contiguous(self.layout, 3, &[self.n, c, d, h, w]),
        }
    }

    /// Whether channels can be computed on their own, as vector lanes.
    pub(super) fn is_depthwise(&self) -> bool {
        self.cin == 1 && (1..=super::depthwise::MAX_MULTIPLIER).contains(&self.cout)
    }

    /// Channels of a group in the source and in the destination.
    pub(super) fn channels(&self, direction: Direction) -> (usize, usize) {
        match direction {
            Direction::Forward => (self.cin, self.cout),
            Direction::Backward => (self.cout, self.cin),
        }
    }

    pub(super) fn taps(&self) -> usize {
        self.window.iter().product()
    }

    /// Output pixels of all images.
    pub(super) fn pixels(&self) -> usize {
        self.n * self.y.iter().product::<usize>()
    }

    /// Multiplications, padding included.
    pub(super) fn work(&self) -> usize {
        [self.taps(), self.groups * self.cin, self.cout]
            .into_iter()
            .fold(self.pixels(), usize::saturating_mul)
    }

    /// The weights' strides in elements: the taps', the input channels' and the output channels'.
    pub(super) fn weight_strides(&self, strides: &[isize]) -> ([isize; 3], isize, isize) {
        let mut taps = [0; 3];
        taps[3 - self.rank..].copy_from_slice(&strides[..self.rank]);
        (taps, strides[self.rank], strides[self.rank + 1])
    }

    /// The phases that together write every destination pixel once.
    pub(super) fn phases(&self, direction: Direction) -> impl Iterator<Item = Phase> + use<> {
        let this = *self;
        let counts = match direction {
            Direction::Forward => [1; 3],
            Direction::Backward => std::array::from_fn(|i| this.strides[i].min(this.x[i])),
        };
        (0..counts.iter().product()).map(move |number: usize| {
            let starts = [number / counts[2] / counts[1], number / counts[2] % counts[1], number % counts[2]];
            match direction {
                Direction::Forward => this.forward_phase(),
                Direction::Backward => this.backward_phase(starts),
            }
        })
    }

    /// The only phase of the forward direction.
    pub(super) fn forward_phase(&self) -> Phase {
        Phase {
            axes: std::array::from_fn(|i| Axis {
                stride: self.strides[i] as isize,
                first: -(self.before[i] as isize),
                step: self.dilations[i] as isize,
                taps: self.window[i],
                size: self.x[i] as isize,
            }),
            pixels: self.y,
            to_first: [0; 3],
            to_step: [1; 3],
            tap_first: [0; 3],
            tap_step: [1; 3],
        }
    }

    /// The phase in which each output pixel sees itself.
    pub(super) fn identity_phase(&self) -> Phase {
        let itself = |size: usize| Axis { stride: 1, first: 0, step: 1, taps: 1, size: size as isize };
        Phase { axes: self.y.map(itself), ..self.forward_phase() }
    }

    /// The inputs at `starts` and then every stride. Output `o` saw input `i` by tap `t` if
    /// `o * stride + t * dilation == i + before`, so the taps of a residue of `i` are an arithmetic progression.
    /// They are taken from the last to the first, which makes `o` grow.
    fn backward_phase(&self, starts: [usize; 3]) -> Phase {
        let mut phase = self.forward_phase();
        for (i, start) in starts.into_iter().enumerate() {
            let (stride, dilation, window) = (self.strides[i], self.dilations[i], self.window[i]);
            let common = gcd(stride, dilation);
            let period = stride / common;
            let at = start + self.before[i];
            let first = (0..period.min(window)).find(|t| t * dilation % stride == at % stride);
            let taps = first.map_or(0, |t| (window - 1 - t) / period + 1);
            let last = first.unwrap_or(0) + taps.saturating_sub(1) * period;
            phase.axes[i] = Axis {
                stride: 1,
                first: (at as isize - (last * dilation) as isize) / stride as isize,
                step: (dilation / common) as isize,
                taps,
                size: self.y[i] as isize,
            };
            phase.pixels[i] = (self.x[i] - start).div_ceil(stride);
            phase.to_first[i] = start;
            phase.to_step[i] = stride;
            phase.tap_first[i] = last;
            phase.tap_step[i] = -(period as isize);
        }
        phase
    }

    /// The most destination pixels and the most taps a phase has.
    pub(super) fn largest_phase(&self, direction: Direction) -> (usize, usize) {
        match direction {
            Direction::Forward => (self.pixels(), self.taps()),
            Direction::Backward => {
                let pixels = (0..3).map(|i| self.x[i].div_ceil(self.strides[i]));
                let taps = (0..3).map(|i| {
                    self.window[i].div_ceil(self.strides[i] / gcd(self.strides[i], self.dilations[i]))
                });
                (self.n * pixels.product::<usize>(), taps.product())
            }
        }
    }
}

fn gcd(mut a: usize, mut b: usize) -> usize {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
