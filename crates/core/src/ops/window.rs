//! Windows that slide over images: what convolution and pooling share.

use crate::error::{Error, Result};
use crate::shape::Shape;
use smallvec::SmallVec;
use taut_kernels::conv::{self, Layout};

/// Where the channels of an image are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Channels {
    /// `[batch, spatial.., channels]`: NWC, NHWC, NDHWC.
    #[default]
    Last,
    /// `[batch, channels, spatial..]`: NCW, NCHW, NCDHW.
    First,
}

impl Channels {
    /// Reads a data format such as `"NHWC"`, for images of this many spatial dimensions.
    pub fn parse(format: &str, rank: usize) -> Result<Channels> {
        let names = [("NWC", "NCW"), ("NHWC", "NCHW"), ("NDHWC", "NCDHW")];
        let (last, first) = names[rank.clamp(1, 3) - 1];
        match format {
            _ if format == last => Ok(Channels::Last),
            _ if format == first => Ok(Channels::First),
            _ => Err(Error::value(format!("data format {format:?} is unknown"))
                .help(format!("{last:?} and {first:?} are known"))),
        }
    }

    /// The axis of the channels of an image with this many spatial dimensions.
    pub(super) fn axis(self, rank: usize) -> usize {
        if self == Channels::Last { rank + 1 } else { 1 }
    }

    /// The axis of the first spatial dimension.
    pub(super) fn spatial(self) -> usize {
        if self == Channels::Last { 1 } else { 2 }
    }
}

/// What is added around an image before a window slides over it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// Nothing: windows lie inside.
    #[default]
    Valid,
    /// So much that there are as many windows as strides in the image, the odd one at the end.
    Same,
    /// This much before and after each spatial dimension.
    Explicit(Vec<(usize, usize)>),
}

impl Padding {
    /// Reads `"VALID"` or `"SAME"`.
    pub fn parse(padding: &str) -> Result<Padding> {
        match padding {
            "VALID" => Ok(Padding::Valid),
            "SAME" => Ok(Padding::Same),
            _ => Err(Error::value(format!("padding {padding:?} is unknown"))
                .help("\"VALID\", \"SAME\" and \"EXPLICIT\" (with the amounts) are known")),
        }
    }

    /// Reads a word and, for `"EXPLICIT"`, the amounts before and after each dimension, one after the other.
    pub(super) fn parse_with(padding: &str, amounts: Option<&[i64]>) -> Result<Padding> {
        let Some(amounts) = amounts else { return Padding::parse(padding) };
        if padding != "EXPLICIT" {
            return Err(
                Error::value(format!("padding {padding:?} takes no amounts")).help("say \"EXPLICIT\"")
            );
        }
        let (pairs, rest) = amounts.as_chunks::<2>();
        if !rest.is_empty() || amounts.iter().any(|&amount| amount < 0) {
            return Err(Error::value(format!(
                "paddings {amounts:?} are not pairs of amounts before and after a dimension"
            )));
        }
        Ok(Padding::Explicit(
            pairs.iter().map(|&[before, after]| (before as usize, after as usize)).collect(),
        ))
    }
}

/// A window's way over an image, with a number per spatial dimension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sliding {
    pub layout: Layout,
    pub rank: usize,
    pub strides: [usize; 3],
    pub dilations: [usize; 3],
    pub padding: [(usize, usize); 3],
    /// How many windows there are.
    pub count: [usize; 3],
}

impl Sliding {
    /// Works out how a window of size `window` slides over an image of shape `x`.
    pub(super) fn new(
        x: &Shape,
        window: &[usize],
        strides: &[usize],
        dilations: &[usize],
        padding: &Padding,
        channels: Channels,
    ) -> Result<Sliding> {
        let rank = window.len();
        if !(1..=3).contains(&rank) || x.rank() != rank + 2 {
            return Err(Error::shape(format!(
                "an image of shape {x} does not have a batch, channels and 1 to 3 spatial dimensions, {rank} of them"
            )));
        }
        let mut sliding = Sliding {
            layout: match channels {
                Channels::Last => Layout::ChannelsLast,
                Channels::First => Layout::ChannelsFirst,
            },
            rank,
            strides: spread(strides, rank, "strides")?,
            dilations: spread(dilations, rank, "dilations")?,
            padding: [(0, 0); 3],
            count: [1; 3],
        };
        if let Padding::Explicit(amounts) = padding {
            if amounts.len() != rank {
                return Err(Error::value(format!("{} paddings for {rank} dimensions", amounts.len())));
            }
            sliding.padding[..rank].copy_from_slice(amounts);
        }
        for i in 0..rank {
            let (size, stride, dilation) =
                (x[channels.spatial() + i], sliding.strides[i], sliding.dilations[i]);
            if *padding == Padding::Same {
                sliding.padding[i] = same_padding(size, window[i], stride, dilation);
            }
            let count = conv::output_size(size, window[i], stride, dilation, sliding.padding[i]);
            sliding.count[i] = count.ok_or_else(|| {
                let (before, after) = sliding.padding[i];
                Error::shape(format!(
                    "a window of {} with dilation {dilation} does not fit spatial dimension {i} of size {size} \
                     padded by {before} and {after}",
                    window[i]
                ))
            })?;
        }
        Ok(sliding)
    }

    /// The shape of an image with a pixel per window.
    pub(super) fn output(&self, batch: usize, channels: usize) -> Shape {
        let spatial = self.count[..self.rank].iter().copied();
        match self.layout {
            Layout::ChannelsLast => [batch].into_iter().chain(spatial).chain([channels]).collect(),
            Layout::ChannelsFirst => [batch, channels].into_iter().chain(spatial).collect(),
        }
    }
}

/// A number per dimension: none given is one everywhere, one is the same everywhere.
fn spread(given: &[usize], rank: usize, what: &str) -> Result<[usize; 3]> {
    let mut all = [1; 3];
    match given {
        [] => {}
        &[one] => all[..rank].fill(one),
        _ if given.len() == rank => all[..rank].copy_from_slice(given),
        _ => return Err(Error::value(format!("{} {what} for {rank} spatial dimensions", given.len()))),
    }
    if all.contains(&0) {
        return Err(Error::value(format!("{what} of 0 go nowhere")));
    }
    Ok(all)
}

/// What makes as many windows as strides begin in the input. Nothing if sizes overflow: they are refused later.
fn same_padding(size: usize, window: usize, stride: usize, dilation: usize) -> (usize, usize) {
    let last = size.div_ceil(stride).saturating_sub(1) * stride;
    let span = window.saturating_sub(1).saturating_mul(dilation).saturating_add(1);
    let total = last.saturating_add(span).saturating_sub(size);
    let total = if size == 0 { 0 } else { total };
    (total / 2, total - total / 2)
}

/// Sizes from Python: integers, none negative. Left out is none.
pub(super) fn sizes(given: Option<Vec<i64>>, what: &str) -> Result<SmallVec<[usize; 4]>> {
    let size = |v| usize::try_from(v).map_err(|_| Error::value(format!("{what} of {v} do not exist")));
    given.unwrap_or_default().into_iter().map(size).collect()
}

/// The opening of NumPy references: the names that follow are defined over `x`, the image, and `window`, its size.
/// `patches` holds, per tap of the window, where it lies in the padded image for every window.
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
