//! Depthwise convolution.

use super::{ConvOptions, conv};
use crate::error::{Error, ErrorKind, Result};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::reshape;
use crate::ops::window::{Slide, SlideArgs, sliding_reference};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Tensor};
use taut_memory::Location;

/// Depthwise 2-D convolution: each channel is convolved independently with `multiplier` filters.
///
/// `filters` are `[height, width, channels, multiplier]`; the result has `channels * multiplier` channels.
///
/// ```
/// use taut_core::ops::contract::{ConvOptions, depthwise_conv2d};
/// use taut_core::Tensor;
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 1, 1, 2])?;
/// let filters = Tensor::from_slice(&[3.0f32, 4.0], [1, 1, 2, 1])?;
/// assert_eq!(depthwise_conv2d(&x, &filters, &ConvOptions::default())?.to_vec::<f32>()?, [3.0, 8.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn depthwise_conv2d(
    x: impl Into<Tensor>,
    filters: impl Into<Tensor>,
    options: &ConvOptions,
) -> Result<Tensor> {
    let (x, filters, at) = (x.into(), filters.into(), Location::caller());
    let with_context = |e: Error| e.in_op("depthwise_conv2d", [x.spec(), filters.spec()]).at(at);
    let &[height, width, channels, multiplier] = &filters.shape()[..] else {
        let message =
            format!("filters must be [height, width, channels, multiplier], got shape {}", filters.shape());
        return Err(with_context(Error::shape(message)));
    };
    if options.groups != 1 {
        return Err(with_context(Error::value(format!("groups must be 1, got {}", options.groups)))
            .help("every channel is a group of its own"));
    }
    if channels == 0 {
        return Err(with_context(Error::shape("filters must have channels >= 1, got 0")));
    }
    let shape = [height, width, 1, channels * multiplier].map(|dim| dim as isize);
    let grouped = ConvOptions { groups: channels, ..options.clone() };
    let filters = reshape(&filters, &shape)?;
    conv(x, filters, &grouped)
}

/// Shapes of input and filters, stride, padding, data format, dilation.
type Case<'a> = (&'a [usize], &'a [usize], i64, &'static str, &'static str, i64);

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "depthwise_conv2d",
    &[
        Param::tensor("x"),
        Param::tensor("filters"),
        Param::optional("strides", ParamKind::Ints, "None"),
        Param::optional("padding", ParamKind::Str, "'VALID'"),
        Param::optional("data_format", ParamKind::Str, "None"),
        Param::optional("dilations", ParamKind::Ints, "None"),
    ],
    |a| {
        let positions = SlideArgs { strides: 2, padding: 3, data_format: 4, dilations: 5, explicit: None };
        let Slide { strides, padding, dilations, channels } = Slide::from_args(a, &positions, 2)?;
        let options = ConvOptions { strides, padding, dilations, groups: 1, channels };
        one(depthwise_conv2d(a.tensor(0)?, a.tensor(1)?, &options))
    },
    Reference::Numpy(concat!(
        sliding_reference!("x.shape", "filters.shape[:-2]"),
        "xp := np.pad(last(x).astype(np.float64), [(0, 0), *pads, (0, 0)]), ",
        "y := sum(xp[p][..., None] * filters[t].astype(np.float64) for t, p in zip(np.ndindex(*window), patches)), ",
        "back(y.reshape(shape[0], *o, shape[-1] * filters.shape[-1])).astype(x.dtype)][-1]"
    )),
    Samples::List(|| {
        let cases: [Case<'_>; 4] = [
            (&[2, 5, 6, 3], &[3, 2, 3, 2], 1, "SAME", "NHWC", 1),
            (&[2, 3, 5, 6], &[3, 3, 3, 1], 2, "VALID", "NCHW", 1),
            (&[1, 7, 7, 1], &[2, 2, 1, 2], 1, "VALID", "NHWC", 2),
            (&[0, 7, 7, 2], &[2, 2, 2, 1], 1, "SAME", "NHWC", 1),
        ];
        let with = |dtype, (x, w, stride, padding, format, dilation): Case<'_>| {
            vec![
                ramp(dtype, x, -2.0, 2.0),
                ramp(dtype, w, -1.0, 1.5),
                ArgValue::Ints(vec![stride]),
                ArgValue::Str(padding.into()),
                ArgValue::Str(format.into()),
                ArgValue::Ints(vec![dilation]),
            ]
        };
        dtypes::FLOATS.iter().flat_map(|&dtype| cases.map(|case| with(dtype, case))).collect()
    }),
)
.refuses(|| {
    let bad = |w: &[usize], message| {
        let args = vec![ramp(DType::F32, &[1, 4, 4, 2], 0.0, 1.0), ramp(DType::F32, w, 0.0, 1.0)];
        InvalidArgs::new(args, ErrorKind::Shape, message)
    };
    vec![
        bad(&[2, 2, 2], "filters must be [height, width, channels, multiplier], got shape [2, 2, 2]"),
        bad(&[2, 2, 3, 1], "the image must have 3 * 1 channels"),
        bad(&[2, 2, 0, 1], "filters must have channels >= 1, got 0"),
    ]
})];
