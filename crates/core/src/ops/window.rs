//! Sliding windows over spatial dimensions: channels, padding, strides and dilations of convolution and pooling.

use crate::error::{Error, Result};
use crate::ops::Args;
use crate::shape::Shape;
use taut_kernels::conv::{self, ConvParams, Layout};
use taut_kernels::pooling::PoolParams;

/// The position of the channel axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Channels {
    /// `[batch, spatial.., channels]`: NWC, NHWC, NDHWC.
    #[default]
    Last,
    /// `[batch, channels, spatial..]`: NCW, NCHW, NCDHW.
    First,
}

impl Channels {
    /// Parses a data format such as `"NHWC"` for `rank` spatial dimensions.
    pub fn parse(format: &str, rank: usize) -> Result<Channels> {
        let names = [("NWC", "NCW"), ("NHWC", "NCHW"), ("NDHWC", "NCDHW")];
        let (last, first) = names[rank.clamp(1, 3) - 1];
        match format {
            _ if format == last => Ok(Channels::Last),
            _ if format == first => Ok(Channels::First),
            _ => Err(Error::value(format!("data_format must be {last:?} or {first:?}, got {format:?}"))),
        }
    }

    /// The channel axis, with `rank` spatial dimensions.
    pub(super) fn axis(self, rank: usize) -> usize {
        if self == Channels::Last { rank + 1 } else { 1 }
    }

    /// The axis of the first spatial dimension.
    pub(super) fn spatial(self) -> usize {
        if self == Channels::Last { 1 } else { 2 }
    }
}

/// The zero padding of the spatial dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// No padding: only windows that lie inside the image.
    #[default]
    Valid,
    /// Padding such that there are `ceil(size / stride)` windows; an odd total puts the extra element at the end.
    Same,
    /// `(before, after)` for each spatial dimension.
    Explicit(Vec<(usize, usize)>),
}

impl Padding {
    /// Parses `"VALID"` or `"SAME"`.
    pub fn parse(padding: &str) -> Result<Padding> {
        match padding {
            "VALID" => Ok(Padding::Valid),
            "SAME" => Ok(Padding::Same),
            _ => Err(Error::value(format!("padding must be \"VALID\" or \"SAME\", got {padding:?}"))
                .help("for other amounts, pass \"EXPLICIT\" and the amounts")),
        }
    }

    /// Parses the padding and, for `"EXPLICIT"`, the amounts `[before_0, after_0, before_1, after_1, …]`.
    fn parse_with(padding: &str, amounts: Option<&[i64]>) -> Result<Padding> {
        let Some(amounts) = amounts else { return Padding::parse(padding) };
        if padding != "EXPLICIT" {
            let message = format!("padding must be \"EXPLICIT\" if amounts are given, got {padding:?}");
            return Err(Error::value(message));
        }
        let (pairs, rest) = amounts.as_chunks::<2>();
        if !rest.is_empty() || amounts.iter().any(|&amount| amount < 0) {
            return Err(Error::value(format!(
                "explicit paddings must be pairs of amounts >= 0, before and after each dimension, got {amounts:?}"
            )));
        }
        Ok(Padding::Explicit(
            pairs.iter().map(|&[before, after]| (before as usize, after as usize)).collect(),
        ))
    }
}

/// Strides, padding, dilations and channels as given by the caller: an empty list means 1, a single value applies to all
/// dimensions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Slide {
    pub strides: Vec<usize>,
    pub padding: Padding,
    pub dilations: Vec<usize>,
    pub channels: Channels,
}

/// The positions of the arguments of a [`Slide`] among those of a table entry.
pub(super) struct SlideArgs {
    pub strides: usize,
    pub padding: usize,
    pub data_format: usize,
    pub dilations: usize,
    /// The amounts of explicit padding, if the entry has them.
    pub explicit: Option<usize>,
}

impl Slide {
    /// Reads the arguments of a table entry, for `rank` spatial dimensions.
    pub(super) fn from_args(a: &Args<'_>, at: &SlideArgs, rank: usize) -> Result<Slide> {
        let amounts = at.explicit.map_or(Ok(None), |position| a.ints_or(position))?;
        let format = a.str_or(at.data_format)?;
        Ok(Slide {
            strides: sizes(a.ints_or(at.strides)?, "strides")?,
            padding: Padding::parse_with(a.str_or(at.padding)?.unwrap_or("VALID"), amounts.as_deref())?,
            dilations: sizes(a.ints_or(at.dilations)?, "dilations")?,
            channels: format.map_or(Ok(Channels::Last), |format| Channels::parse(format, rank))?,
        })
    }

    /// The stride and the dilation of a spatial dimension, not validated.
    pub(super) fn step(&self, dimension: usize) -> (usize, usize) {
        let at = |list: &[usize]| match list {
            [] => 1,
            &[one] => one,
            _ => list.get(dimension).copied().unwrap_or(1),
        };
        (at(&self.strides), at(&self.dilations))
    }
}

/// The validated geometry of a window over an image: the parameters of the kernels.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowGeometry {
    layout: Layout,
    rank: usize,
    window: [usize; 3],
    strides: [usize; 3],
    dilations: [usize; 3],
    padding: [(usize, usize); 3],
    /// The number of windows along each dimension.
    count: [usize; 3],
    groups: usize,
}

impl WindowGeometry {
    /// The geometry of a window of these sizes over an image of shape `x`.
    pub(super) fn new(x: &Shape, window: &[usize], slide: &Slide) -> Result<WindowGeometry> {
        let rank = window.len();
        if !(1..=3).contains(&rank) {
            return Err(Error::shape(format!("a window must have 1 to 3 spatial dimensions, got {rank}")));
        }
        if x.rank() != rank + 2 {
            return Err(Error::shape(format!(
                "the image must have a batch axis, {rank} spatial dimensions and channels, got shape {x}"
            )));
        }
        if window.contains(&0) {
            return Err(Error::shape(format!("window sizes must be >= 1, got {window:?}")));
        }
        let layout = match slide.channels {
            Channels::Last => Layout::ChannelsLast,
            Channels::First => Layout::ChannelsFirst,
        };
        let mut geometry = WindowGeometry {
            layout,
            rank,
            window: [1; 3],
            strides: per_dimension(&slide.strides, rank, "strides")?,
            dilations: per_dimension(&slide.dilations, rank, "dilations")?,
            padding: [(0, 0); 3],
            count: [1; 3],
            groups: 1,
        };
        geometry.window[..rank].copy_from_slice(window);
        geometry.count_windows(&x[slide.channels.spatial()..], &slide.padding)?;
        Ok(geometry)
    }

    /// Computes the padding and the number of windows for an image of these spatial sizes.
    fn count_windows(&mut self, sizes: &[usize], padding: &Padding) -> Result<()> {
        if let Padding::Explicit(amounts) = padding {
            if amounts.len() != self.rank {
                let (got, rank) = (amounts.len(), self.rank);
                return Err(Error::value(format!("explicit paddings must have {rank} pairs, got {got}")));
            }
            self.padding[..self.rank].copy_from_slice(amounts);
        }
        for (i, &size) in sizes[..self.rank].iter().enumerate() {
            let (window, stride, dilation) = (self.window[i], self.strides[i], self.dilations[i]);
            if *padding == Padding::Same {
                self.padding[i] = same_padding(size, window, stride, dilation);
            }
            let count = conv::output_size(size, window, stride, dilation, self.padding[i]);
            self.count[i] = count.ok_or_else(|| {
                let (before, after) = self.padding[i];
                Error::shape(format!(
                    "the window must fit the padded image: size {window} with dilation {dilation} exceeds \
                     spatial dimension {i}, size {size} padded by {before} and {after}"
                ))
            })?;
        }
        Ok(())
    }

    /// The geometry of a grouped convolution; `channels` are those of the image.
    pub(super) fn grouped(self, channels: usize, filters: &Shape, groups: usize) -> Result<WindowGeometry> {
        let (inputs, outputs) = (filters[self.rank], filters[self.rank + 1]);
        if groups == 0 {
            return Err(Error::value("groups must be >= 1, got 0"));
        }
        if inputs.checked_mul(groups) != Some(channels) {
            return Err(Error::shape(format!(
                "the image must have {groups} * {inputs} channels, groups * filter channels, got {channels}"
            )));
        }
        if !outputs.is_multiple_of(groups) {
            return Err(Error::shape(format!(
                "output channels must be a multiple of groups, {groups}, got {outputs}"
            )));
        }
        Ok(WindowGeometry { groups, ..self })
    }

    /// The shape of an output with one element per window and channel.
    pub(super) fn output(&self, batch: usize, channels: usize) -> Shape {
        let spatial = self.count[..self.rank].iter().copied();
        match self.layout {
            Layout::ChannelsLast => [batch].into_iter().chain(spatial).chain([channels]).collect(),
            Layout::ChannelsFirst => [batch, channels].into_iter().chain(spatial).collect(),
        }
    }

    /// The kernels' parameters of a convolution.
    pub(super) fn conv(&self) -> ConvParams {
        let WindowGeometry { layout, rank, strides, dilations, padding, groups, .. } = *self;
        ConvParams { layout, rank, strides, dilations, padding, groups }
    }

    /// The kernels' parameters of pooling.
    pub(super) fn pool(&self) -> PoolParams {
        let WindowGeometry { layout, rank, window, strides, dilations, padding, .. } = *self;
        PoolParams { layout, rank, window, strides, dilations, padding }
    }
}

/// One value per spatial dimension: an empty list means 1, a single value applies to all.
fn per_dimension(given: &[usize], rank: usize, what: &str) -> Result<[usize; 3]> {
    let mut all = [1; 3];
    match given {
        [] => {}
        &[one] => all[..rank].fill(one),
        _ if given.len() == rank => all[..rank].copy_from_slice(given),
        _ => {
            let message =
                format!("{what} must have 1 entry or {rank}, one per spatial dimension, got {given:?}");
            return Err(Error::value(message));
        }
    }
    if all.contains(&0) {
        return Err(Error::value(format!("{what} must be >= 1, got 0")));
    }
    Ok(all)
}

/// The padding of [`Padding::Same`]. Sizes that overflow saturate here and are rejected by the caller.
fn same_padding(size: usize, window: usize, stride: usize, dilation: usize) -> (usize, usize) {
    let last = size.div_ceil(stride).saturating_sub(1) * stride;
    let span = window.saturating_sub(1).saturating_mul(dilation).saturating_add(1);
    let total = last.saturating_add(span).saturating_sub(size);
    let total = if size == 0 { 0 } else { total };
    (total / 2, total - total / 2)
}

/// Converts sizes; `None` is an empty list. Zeros are rejected with the geometry.
pub(super) fn sizes(given: Option<Vec<i64>>, what: &str) -> Result<Vec<usize>> {
    let size = |v| usize::try_from(v).map_err(|_| Error::value(format!("{what} must be >= 1, got {v}")));
    given.unwrap_or_default().into_iter().map(size).collect()
}

/// The common first part of NumPy references. It defines names from `x`, the input, and `window`, the window's size;
/// `patches` holds, per tap of the window, its indices in the padded input for every window.
macro_rules! sliding_reference {
    ($image:literal, $window:literal) => {
        concat!(
            "[shape := ", $image, ", window := ", $window, ", n := len(window), ",
            "first := (data_format or '').startswith('NC'), ",
            "last := lambda t: np.moveaxis(t, 1, -1) if first else t, ",
            "back := lambda t: np.moveaxis(t, -1, 1) if first else t, ",
            "shape := (shape[0], *shape[2:], shape[1]) if first else shape, ",
            "s := (tuple(strides or ()) * n)[:n] or (1,) * n, ",
            "d := (tuple(dilations or ()) * n)[:n] or (1,) * n, ",
            "span := [(k - 1) * e + 1 for k, e in zip(window, d)], ",
            "pads := [(lambda t: (t // 2, t - t // 2))(max((-(-i // a) - 1) * a + p - i, 0)) if padding == 'SAME' ",
            "else (0, 0) if padding == 'VALID' else explicit_paddings[2 * j:2 * j + 2] ",
            "for j, (i, a, p) in enumerate(zip(shape[1:-1], s, span))], ",
            "o := [(i + b + c - p) // a + 1 for i, (b, c), p, a in zip(shape[1:-1], pads, span, s)], ",
            "padded := [i + b + c for i, (b, c) in zip(shape[1:-1], pads)], ",
            "crop := (slice(None), *(slice(b, b + i) for i, (b, c) in zip(shape[1:-1], pads))), ",
            "patches := [np.ix_(range(shape[0]), *(k * e + a * np.arange(m) for k, e, a, m in zip(t, d, s, o)), ",
            "range(shape[-1])) for t in np.ndindex(*window)], "
        )
    };
}
pub(super) use sliding_reference;
