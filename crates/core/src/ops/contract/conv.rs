//! Convolution over one to three spatial dimensions.

use super::conv_gradient::{CONV_FILTER_GRADIENT, CONV_INPUT_GRADIENT};
use crate::error::{Error, ErrorKind, Result};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::unary::cast;
use crate::ops::vmap::{merge_batch_into_axis, merge_leading_axes, single_output, split_batch_from_axis};
use crate::ops::window::{Channels, Padding, Slide, SlideArgs, sliding_reference};
use crate::ops::windowed::{Role, WindowRule, WindowShapes, Windowed};
use crate::ops::{ArgValue, Args, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::promote::common_dtype;
use crate::{DType, Gradients, Saves, Tensor, VjpCall, apply};
use taut_kernels::conv as kernel;
use taut_memory::Location;

/// Options of a convolution.
///
/// ```
/// use taut_core::ops::{Padding, contract::ConvOptions};
/// let options = ConvOptions { strides: vec![2], padding: Padding::Same, ..ConvOptions::default() };
/// assert_eq!(options.groups, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvOptions {
    /// The stride per spatial dimension; empty means 1, a single value applies to all.
    pub strides: Vec<usize>,
    /// The zero padding of the input.
    pub padding: Padding,
    /// The dilation per spatial dimension; empty means 1, a single value applies to all.
    pub dilations: Vec<usize>,
    /// The number of groups: input and output channels are split into groups that are convolved independently.
    pub groups: usize,
    /// The position of the channel axis in input and output.
    pub channels: Channels,
}

impl Default for ConvOptions {
    fn default() -> ConvOptions {
        ConvOptions {
            strides: Vec::new(),
            padding: Padding::Valid,
            dilations: Vec::new(),
            groups: 1,
            channels: Channels::Last,
        }
    }
}

impl ConvOptions {
    /// Options with these strides and this padding, `"SAME"` or `"VALID"`.
    pub(super) fn new(strides: &[usize], padding: &str) -> Result<ConvOptions> {
        Ok(ConvOptions {
            strides: strides.to_vec(),
            padding: Padding::parse(padding)?,
            ..ConvOptions::default()
        })
    }

    /// The options of the sliding window.
    pub(in crate::ops) fn slide(&self) -> Slide {
        let ConvOptions { strides, padding, dilations, channels, .. } = self.clone();
        Slide { strides, padding, dilations, channels }
    }

    /// Reads the options from a table entry's arguments, from position `first` on.
    pub(super) fn from_args(a: &Args<'_>, first: usize, rank: usize) -> Result<ConvOptions> {
        let positions = SlideArgs {
            strides: first,
            padding: first + 1,
            data_format: first + 2,
            dilations: first + 3,
            explicit: Some(first + 5),
        };
        let Slide { strides, padding, dilations, channels } = Slide::from_args(a, &positions, rank)?;
        let groups = a.int_or(first + 4)?.unwrap_or(1);
        let groups = usize::try_from(groups)
            .map_err(|_| Error::value(format!("groups must be >= 1, got {groups}")))?;
        Ok(ConvOptions { strides, padding, dilations, groups, channels })
    }
}

pub(super) static CONV: WindowRule = WindowRule {
    name: "conv",
    inputs: &[Role::Image, Role::Filters],
    output: Role::Result,
    flops: WindowShapes::multiply_add,
    scratch: |shapes, dtype| kernel::forward_scratch(&shapes.conv(), &shapes.image, &shapes.window, dtype),
    run: |shapes, inputs, out, scratch| {
        kernel::forward(&shapes.conv(), inputs[0].view(), inputs[1].view(), out, scratch);
    },
    vmap: |op, call| {
        let [x, filters] = [0, 1].map(|i| call.inputs[i].clone());
        let (rank, groups, size) = (call.shape(1).rank() - 2, op.options.groups(), call.size);
        let channels = op.options.channel_axis(rank);
        single_output(match call.mapped {
            [_, false] => {
                split_batch_from_axis(op.call(&CONV, None, [merge_leading_axes(x)?, filters])?, 0, 1, size)
            }
            [false, _] => {
                let y = op.call(&CONV, None, [x, merge_batch_into_axis(filters, rank + 1, groups)?])?;
                split_batch_from_axis(y, channels, groups, size)
            }
            _ => {
                let inputs =
                    [merge_batch_into_axis(x, channels, 1)?, merge_batch_into_axis(filters, rank + 1, 1)?];
                split_batch_from_axis(op.with_groups_of(size).call(&CONV, None, inputs)?, channels, 1, size)
            }
        })
    },
    saves: |wanted| Some(Saves::others(wanted)),
    vjp: |op, call| {
        let (x, filters) = (call.input_shape(0).clone(), call.input_shape(1).clone());
        bilinear_gradients(
            call,
            |dy, w| op.call(&CONV_INPUT_GRADIENT, Some(x), [w.clone(), dy]),
            |dy, x| op.call(&CONV_FILTER_GRADIENT, Some(filters), [x.clone(), dy]),
        )
    },
    ..WindowRule::BASE
};

/// The gradients of a bilinear op: `first(g, input 1)` is that of input 0, `second(g, input 0)` that of input 1.
pub(super) fn bilinear_gradients(
    call: &mut VjpCall<'_>,
    first: impl FnOnce(Tensor, &Tensor) -> Result<Tensor>,
    second: impl FnOnce(Tensor, &Tensor) -> Result<Tensor>,
) -> Result<Gradients> {
    let mut gradients = Gradients::from_elem(None, 2);
    let Some(g) = call.take_gradient(0) else { return Ok(gradients) };
    if call.wants(0) {
        gradients[0] = Some(first(g.clone(), call.input(1)?)?.into());
    }
    if call.wants(1) {
        gradients[1] = Some(second(g, call.input(0)?)?.into());
    }
    Ok(gradients)
}

/// Convolution over one to three spatial dimensions, with strides, dilations, groups, padding and data format.
///
/// `x` is `[batch, spatial.., channels]`, or `[batch, channels, spatial..]` with channels first; `filters` are
/// `[spatial.., channels / groups, outputs]` in both cases. As usual in deep learning this is a cross-correlation: the
/// filters are not flipped.
///
/// ```
/// use taut_core::ops::contract::{ConvOptions, conv};
/// use taut_core::Tensor;
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0, 5.0], [1, 5, 1])?;
/// let filters = Tensor::from_slice(&[1.0f32, 10.0], [2, 1, 1])?;
/// let options = ConvOptions { strides: vec![2], ..ConvOptions::default() };
/// assert_eq!(conv(&x, &filters, &options)?.to_vec::<f32>()?, [21.0, 43.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn conv(x: impl Into<Tensor>, filters: impl Into<Tensor>, options: &ConvOptions) -> Result<Tensor> {
    let (x, filters) = (x.into(), filters.into());
    let dtype = common_dtype("conv", [&x, &filters])?;
    apply(&Windowed::new(&CONV, options), [cast(x, dtype)?, cast(filters, dtype)?])
}

/// A convolution over `rank` spatial dimensions.
#[track_caller]
fn conv_of_rank(
    (name, rank): (&'static str, usize),
    x: Tensor,
    filters: Tensor,
    options: Result<ConvOptions>,
) -> Result<Tensor> {
    let at = Location::caller();
    let with_context = |error: Error| error.in_op(name, [x.spec(), filters.spec()]).at(at);
    let options = options.map_err(with_context)?;
    if filters.rank() != rank + 2 {
        return Err(with_context(Error::shape(format!(
            "filters must have {rank} spatial dimensions, input and output channels, got shape {}",
            filters.shape()
        ))));
    }
    let dtype = common_dtype(name, [&x, &filters])?;
    apply(&Windowed::new(&CONV, &options), [cast(x, dtype)?, cast(filters, dtype)?])
}

/// 1-D convolution of `x`, `[batch, width, channels]`, with `filters`, `[width, channels, outputs]`; `padding` is
/// `"SAME"` or `"VALID"`.
#[track_caller]
pub fn conv1d(
    x: impl Into<Tensor>,
    filters: impl Into<Tensor>,
    strides: &[usize],
    padding: &str,
) -> Result<Tensor> {
    let options = ConvOptions::new(strides, padding);
    conv_of_rank(("conv1d", 1), x.into(), filters.into(), options)
}

/// 2-D convolution of `x`, `[batch, height, width, channels]`, with `filters`, `[height, width, channels, outputs]`;
/// `padding` is `"SAME"` or `"VALID"`.
#[track_caller]
pub fn conv2d(
    x: impl Into<Tensor>,
    filters: impl Into<Tensor>,
    strides: &[usize],
    padding: &str,
) -> Result<Tensor> {
    let options = ConvOptions::new(strides, padding);
    conv_of_rank(("conv2d", 2), x.into(), filters.into(), options)
}

/// 3-D convolution of `x`, `[batch, depth, height, width, channels]`, with `filters`,
/// `[depth, height, width, channels, outputs]`; `padding` is `"SAME"` or `"VALID"`.
#[track_caller]
pub fn conv3d(
    x: impl Into<Tensor>,
    filters: impl Into<Tensor>,
    strides: &[usize],
    padding: &str,
) -> Result<Tensor> {
    let options = ConvOptions::new(strides, padding);
    conv_of_rank(("conv3d", 3), x.into(), filters.into(), options)
}

/// Calls a table entry: the options follow the tensors.
#[track_caller]
fn call(a: &Args<'_>, name: &'static str, rank: usize) -> Result<Vec<Tensor>> {
    let options = ConvOptions::from_args(a, 2, rank);
    one(conv_of_rank((name, rank), a.tensor(0)?, a.tensor(1)?, options))
}

const PARAMS: &[Param] = &[
    Param::tensor("x"),
    Param::tensor("filters"),
    Param::optional("strides", ParamKind::Ints, "None"),
    Param::optional("padding", ParamKind::Str, "'VALID'"),
    Param::optional("data_format", ParamKind::Str, "None"),
    Param::optional("dilations", ParamKind::Ints, "None"),
    Param::optional("groups", ParamKind::Int, "1"),
    Param::optional("explicit_paddings", ParamKind::Ints, "None"),
];

const REFERENCE: Reference = Reference::Numpy(concat!(
    sliding_reference!("x.shape", "filters.shape[:-2]"),
    "xp := np.pad(last(x).astype(np.float64), [(0, 0), *pads, (0, 0)]), ",
    "ci := filters.shape[-2], co := filters.shape[-1] // groups, ",
    "y := sum(np.einsum('...gi,igo->...go', xp[p].reshape(shape[0], *o, groups, ci), ",
    "filters[t].astype(np.float64).reshape(ci, groups, co)) for t, p in zip(np.ndindex(*window), patches)), ",
    "back(y.reshape(shape[0], *o, groups * co)).astype(x.dtype)][-1]"
));

/// Strides, padding, data format, dilations, groups, explicit paddings.
pub(super) type ConvArgs<'a> = (&'a [i64], &'static str, &'static str, &'a [i64], i64, Option<&'a [i64]>);

/// The options as argument values.
pub(super) fn conv_args(
    (strides, padding, format, dilations, groups, amounts): ConvArgs<'_>,
) -> [ArgValue; 6] {
    [
        ArgValue::Ints(strides.to_vec()),
        ArgValue::Str(padding.into()),
        ArgValue::Str(format.into()),
        ArgValue::Ints(dilations.to_vec()),
        ArgValue::Int(groups),
        amounts.map_or(ArgValue::None, |amounts| ArgValue::Ints(amounts.to_vec())),
    ]
}

/// Shapes of input and filters, and options.
pub(super) type Case<'a> = (&'a [usize], &'a [usize], ConvArgs<'a>);

/// Test cases of convolutions and their gradients.
pub(super) const CASES: &[Case<'static>] = &[
    (&[2, 7, 2], &[3, 2, 3], (&[2], "SAME", "NWC", &[], 1, None)),
    (&[2, 4, 9], &[2, 2, 4], (&[1], "VALID", "NCW", &[3], 2, None)),
    (&[0, 4, 3], &[2, 3, 2], (&[1], "VALID", "NWC", &[], 1, None)),
    (&[2, 5, 6, 2], &[3, 2, 2, 3], (&[1, 1], "SAME", "NHWC", &[1, 1], 1, None)),
    (&[1, 2, 5, 6], &[2, 3, 2, 2], (&[2, 1], "EXPLICIT", "NCHW", &[1, 2], 1, Some(&[0, 1, 2, 1]))),
    (&[1, 4, 4, 3], &[1, 1, 3, 2], (&[], "VALID", "NHWC", &[], 1, None)),
    (&[1, 4, 4, 3], &[3, 3, 1, 6], (&[2], "SAME", "NHWC", &[], 3, None)),
    (&[0, 4, 4, 3], &[2, 2, 3, 2], (&[1], "VALID", "NHWC", &[], 1, None)),
    (&[1, 3, 3, 0], &[2, 2, 0, 2], (&[1], "SAME", "NHWC", &[], 1, None)),
    (&[1, 1, 1, 2], &[2, 2, 2, 2], (&[1], "VALID", "NHWC", &[], 1, None)),
    (&[1, 3, 4, 5, 2], &[2, 2, 3, 2, 2], (&[1, 2, 1], "SAME", "NDHWC", &[], 1, None)),
    (&[1, 2, 3, 4, 3], &[2, 2, 2, 2, 1], (&[1], "VALID", "NCDHW", &[1], 1, None)),
    (&[0, 3, 3, 3, 2], &[2, 2, 2, 2, 1], (&[1], "VALID", "NDHWC", &[1], 1, None)),
];

fn samples(rank: usize) -> Vec<Vec<ArgValue>> {
    let cases = CASES.iter().filter(|(x, ..)| x.len() == rank + 2);
    let with = |dtype, &(x, w, options): &Case<'_>| {
        let mut args = vec![ramp(dtype, x, -2.0, 2.0), ramp(dtype, w, -1.0, 1.5)];
        args.extend(conv_args(options));
        args
    };
    cases.flat_map(|case| dtypes::FLOATS.iter().map(move |&dtype| with(dtype, case))).collect()
}

fn invalid() -> Vec<InvalidArgs> {
    let bad = |x: &[usize], w: &[usize], options: ConvArgs<'_>, kind, message| {
        let mut args = vec![ramp(DType::F32, x, 0.0, 1.0), ramp(DType::F32, w, 0.0, 1.0)];
        args.extend(conv_args(options));
        InvalidArgs::new(args, kind, message)
    };
    let (x, w): (&[usize], &[usize]) = (&[1, 4, 4, 2], &[2, 2, 2, 3]);
    let ints = vec![ramp(DType::I32, x, 0.0, 1.0), ramp(DType::I32, w, 0.0, 1.0)];
    let (shape, value) = (ErrorKind::Shape, ErrorKind::Value);
    vec![
        bad(
            &[1, 4, 2],
            w,
            (&[], "SAME", "NHWC", &[], 1, None),
            shape,
            "must have a batch axis, 2 spatial dimensions and channels, got shape [1, 4, 2]",
        ),
        bad(
            x,
            &[2, 2, 3],
            (&[], "SAME", "NHWC", &[], 1, None),
            shape,
            "filters must have 2 spatial dimensions",
        ),
        bad(
            x,
            &[2, 2, 3, 3],
            (&[], "SAME", "NHWC", &[], 1, None),
            shape,
            "the image must have 1 * 3 channels, groups * filter channels, got 2",
        ),
        bad(
            x,
            &[2, 2, 1, 3],
            (&[], "SAME", "NHWC", &[], 2, None),
            shape,
            "output channels must be a multiple of groups, 2, got 3",
        ),
        bad(
            x,
            &[7, 2, 2, 3],
            (&[], "VALID", "NHWC", &[], 1, None),
            shape,
            "size 7 with dilation 1 exceeds spatial dimension 0, size 4",
        ),
        bad(
            x,
            &[0, 2, 2, 3],
            (&[], "VALID", "NHWC", &[], 1, None),
            shape,
            "window sizes must be >= 1, got [0, 2]",
        ),
        bad(
            x,
            w,
            (&[], "VALID", "NHWC", &[i64::MAX], 1, None),
            shape,
            "the window must fit the padded image",
        ),
        bad(
            x,
            w,
            (&[], "EXPLICIT", "NHWC", &[], 1, Some(&[i64::MAX, i64::MAX, 0, 0])),
            shape,
            "the window must fit the padded image",
        ),
        bad(x, w, (&[0], "VALID", "NHWC", &[], 1, None), value, "strides must be >= 1, got 0"),
        bad(x, w, (&[-1], "VALID", "NHWC", &[], 1, None), value, "strides must be >= 1, got -1"),
        bad(
            x,
            w,
            (&[1, 1, 1], "VALID", "NHWC", &[], 1, None),
            value,
            "strides must have 1 entry or 2, one per spatial dimension, got [1, 1, 1]",
        ),
        bad(
            x,
            w,
            (&[], "FULL", "NHWC", &[], 1, None),
            value,
            "padding must be \"VALID\" or \"SAME\", got \"FULL\"",
        ),
        bad(
            x,
            w,
            (&[], "SAME", "NHWC", &[], 1, Some(&[1, 1, 1, 1])),
            value,
            "padding must be \"EXPLICIT\" if amounts are given, got \"SAME\"",
        ),
        bad(
            x,
            w,
            (&[], "EXPLICIT", "NHWC", &[], 1, Some(&[1, 1])),
            value,
            "explicit paddings must have 2 pairs, got 1",
        ),
        bad(
            x,
            w,
            (&[], "EXPLICIT", "NHWC", &[], 1, Some(&[1, -1, 0, 0])),
            value,
            "explicit paddings must be pairs of amounts >= 0",
        ),
        bad(
            x,
            w,
            (&[], "SAME", "NWC", &[], 1, None),
            value,
            "data_format must be \"NHWC\" or \"NCHW\", got \"NWC\"",
        ),
        bad(x, w, (&[], "SAME", "NHWC", &[], 0, None), value, "groups must be >= 1, got 0"),
        InvalidArgs::new(ints, ErrorKind::DType, "int32 is not supported"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new("conv1d", PARAMS, |a| call(a, "conv1d", 1), REFERENCE, Samples::List(|| samples(1))),
    OpEntry::new("conv2d", PARAMS, |a| call(a, "conv2d", 2), REFERENCE, Samples::List(|| samples(2)))
        .refuses(invalid),
    OpEntry::new("conv3d", PARAMS, |a| call(a, "conv3d", 3), REFERENCE, Samples::List(|| samples(3))),
];
