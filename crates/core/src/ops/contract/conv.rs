//! Convolution over one to three spatial dimensions.

use super::{conv_filter_gradient, conv_input_gradient};
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::batching::{into_axis, merge, out_of_axis, single};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::unary::cast;
use crate::ops::window::{Channels, Padding, Sliding, sizes, sliding_reference};
use crate::ops::{ArgValue, Args, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply, promote};
use taut_kernels::conv::{self as kernel, ConvParams};
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

/// How a convolution's window slides.
///
/// ```
/// use taut_core::ops::{Padding, contract::ConvOptions};
/// let options = ConvOptions { strides: vec![2], padding: Padding::Same, ..ConvOptions::default() };
/// assert_eq!(options.groups, 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvOptions {
    /// The step from one window to the next: none is 1, one is for all dimensions.
    pub strides: Vec<usize>,
    /// What is added around the input.
    pub padding: Padding,
    /// The step from one tap of the window to the next: none is 1, one is for all dimensions.
    pub dilations: Vec<usize>,
    /// Input and output channels fall into this many groups that do not see each other.
    pub groups: usize,
    /// Where the channels are, in the input and in the output.
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
    /// Options of these strides and this padding, `"SAME"` or `"VALID"`.
    pub(super) fn new(strides: &[usize], padding: &str) -> Result<ConvOptions> {
        Ok(ConvOptions {
            strides: strides.to_vec(),
            padding: Padding::parse(padding)?,
            ..ConvOptions::default()
        })
    }

    /// The kernel's parameters and the output's shape, for an input and filters of these shapes.
    pub(super) fn resolve(&self, x: &Shape, filters: &Shape) -> Result<(ConvParams, Shape)> {
        let Some(rank) = filters.rank().checked_sub(2) else {
            return Err(Error::shape(format!(
                "filters of shape {filters} have no input and output channels"
            )));
        };
        let sliding =
            Sliding::new(x, &filters[..rank], &self.strides, &self.dilations, &self.padding, self.channels)?;
        let (groups, inputs, outputs) = (self.groups, filters[rank], filters[rank + 1]);
        let channels = x[self.channels.axis(rank)];
        if groups == 0 {
            return Err(Error::value("0 groups hold no channels"));
        }
        if inputs.checked_mul(groups) != Some(channels) {
            return Err(Error::shape(format!(
                "the input has {channels} channels, the filters {inputs} for each of {groups} groups"
            )));
        }
        if !outputs.is_multiple_of(groups) {
            return Err(Error::shape(format!("{outputs} output channels do not fall into {groups} groups")));
        }
        let Sliding { layout, rank, strides, dilations, padding, .. } = sliding;
        let params = ConvParams { layout, rank, strides, dilations, padding, groups };
        Ok((params, sliding.output(x[0], outputs)))
    }

    /// The options among the arguments of a row of the table, from `first` on.
    pub(super) fn from_args(a: &Args<'_>, first: usize, rank: usize) -> Result<ConvOptions> {
        let groups = a.int_or(first + 4)?.unwrap_or(1);
        Ok(ConvOptions {
            strides: sizes(a.ints_or(first)?, "strides")?.into_vec(),
            padding: Padding::parse_with(
                a.str_or(first + 1)?.unwrap_or("VALID"),
                a.ints_or(first + 5)?.as_deref(),
            )?,
            channels: a.str_or(first + 2)?.map_or(Ok(Channels::Last), |f| Channels::parse(f, rank))?,
            dilations: sizes(a.ints_or(first + 3)?, "dilations")?.into_vec(),
            groups: usize::try_from(groups)
                .map_err(|_| Error::value(format!("{groups} groups hold no channels")))?,
        })
    }

    /// The same for the channels of `size` images that do not see each other, one image after the other.
    pub(super) fn apart(&self, size: usize) -> ConvOptions {
        ConvOptions { groups: self.groups.saturating_mul(size), ..self.clone() }
    }

    pub(super) fn attributes(&self) -> String {
        let ConvOptions { strides, padding, dilations, groups, channels } = self;
        format!(
            "strides={strides:?}, padding={padding:?}, dilations={dilations:?}, groups={groups}, {channels:?}"
        )
    }
}

#[derive(Clone, Debug)]
struct Conv {
    options: ConvOptions,
}

impl Op for Conv {
    fn name(&self) -> &'static str {
        "conv"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let dtype = float_dtype(inputs)?;
        let (_, shape) = self.options.resolve(&inputs[0].shape, &inputs[1].shape)?;
        Ok(Spec { dtype, shape }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Contract
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        let (x, w) = (&inputs[0].shape, &inputs[1].shape);
        let params = self.options.resolve(x, w);
        params.map_or(0, |(params, _)| kernel::forward_scratch(&params, x, w, inputs[0].dtype))
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (x, w) = (inputs[0].view(), inputs[1].view());
        let (params, _) = self.options.resolve(&x.shape().into(), &w.shape().into())?;
        kernel::forward(&params, x, w, outputs[0].reborrow(), scratch);
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let [x, filters] = [0, 1].map(|i| call.inputs[i].clone());
        let (rank, groups, size) = (call.shape(1).rank() - 2, self.options.groups, call.size);
        let channels = self.options.channels.axis(rank);
        single(match call.mapped {
            [_, false] => out_of_axis(conv(merge(x)?, filters, &self.options)?, 0, 1, size),
            [false, _] => {
                let y = conv(x, into_axis(filters, rank + 1, groups)?, &self.options)?;
                out_of_axis(y, channels, groups, size)
            }
            _ => {
                let filters = into_axis(filters, rank + 1, 1)?;
                let y = conv(into_axis(x, channels, 1)?, filters, &self.options.apart(size))?;
                out_of_axis(y, channels, 1, size)
            }
        })
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        flops(&outputs[0].shape, &inputs[1].shape, inputs, outputs)
    }

    fn attributes(&self) -> String {
        self.options.attributes()
    }
}

impl Differentiable for Conv {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        Some(Saves::others(wanted))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let (x, filters) = (call.input_shape(0).clone(), call.input_shape(1).clone());
        product(
            call,
            |dy, w| conv_input_gradient(x, w, dy, &self.options),
            |dy, x| conv_filter_gradient(x, filters, dy, &self.options),
        )
    }
}

/// The gradients of an op of two inputs that is linear in each: `first` makes that of the first input from the gradient and the
/// second input, `second` that of the second from the gradient and the first.
pub(super) fn product(
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

/// Two operations for every output element, tap and input channel; the same for the gradients.
pub(super) fn flops(y: &Shape, filters: &Shape, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
    let taps: usize = filters[..filters.rank() - 1].iter().product();
    let bytes = inputs.iter().map(|s| s.bytes()).sum::<usize>() + outputs[0].bytes();
    Cost { flops: 2 * taps as u64 * y.len() as u64, bytes: bytes as u64 }
}

/// The floating-point type that both inputs have.
pub(super) fn float_dtype(inputs: &[&Spec]) -> Result<DType> {
    let (a, b) = (inputs[0].dtype, inputs[1].dtype);
    if a != b {
        return Err(Error::dtype(format!("types {a} and {b} differ")));
    }
    if a.is_float() {
        Ok(a)
    } else {
        Err(Error::dtype(format!("{a} is not supported")).help("cast to a float"))
    }
}

/// The convolution of `x` with `filters` over one to three spatial dimensions, with all the ways to slide.
///
/// `x` is `[batch, spatial.., channels]` (or channels first, as the options say); `filters` are
/// `[spatial.., channels / groups, outputs]` in both cases. As in all of deep learning the filters are not mirrored.
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
    let dtype = promote(x.dtype(), filters.dtype());
    apply(&Conv { options: options.clone() }, [cast(x, dtype)?, cast(filters, dtype)?])
}

/// A convolution over a fixed number of spatial dimensions.
#[track_caller]
fn ranked(
    (name, rank): (&'static str, usize),
    x: Tensor,
    filters: Tensor,
    options: Result<ConvOptions>,
) -> Result<Tensor> {
    let at = Location::caller();
    let refuse = |error: Error| error.in_op(name, [x.spec(), filters.spec()]).at(at);
    let options = options.map_err(refuse)?;
    if filters.rank() != rank + 2 {
        return Err(refuse(Error::shape(format!(
            "filters of shape {} do not have {rank} spatial dimensions, input and output channels",
            filters.shape()
        ))));
    }
    let dtype = promote(x.dtype(), filters.dtype());
    apply(&Conv { options }, [cast(x, dtype)?, cast(filters, dtype)?])
}

/// Convolution over one spatial dimension: `x` is `[batch, width, channels]`, `filters` are
/// `[width, channels, outputs]`; `padding` is `"SAME"` or `"VALID"`.
#[track_caller]
pub fn conv1d(
    x: impl Into<Tensor>,
    filters: impl Into<Tensor>,
    strides: &[usize],
    padding: &str,
) -> Result<Tensor> {
    let options = ConvOptions::new(strides, padding);
    ranked(("conv1d", 1), x.into(), filters.into(), options)
}

/// Convolution over two spatial dimensions: `x` is `[batch, height, width, channels]`, `filters` are
/// `[height, width, channels, outputs]`; `padding` is `"SAME"` or `"VALID"`.
#[track_caller]
pub fn conv2d(
    x: impl Into<Tensor>,
    filters: impl Into<Tensor>,
    strides: &[usize],
    padding: &str,
) -> Result<Tensor> {
    let options = ConvOptions::new(strides, padding);
    ranked(("conv2d", 2), x.into(), filters.into(), options)
}

/// Convolution over three spatial dimensions: `x` is `[batch, depth, height, width, channels]`, `filters` are
/// `[depth, height, width, channels, outputs]`; `padding` is `"SAME"` or `"VALID"`.
#[track_caller]
pub fn conv3d(
    x: impl Into<Tensor>,
    filters: impl Into<Tensor>,
    strides: &[usize],
    padding: &str,
) -> Result<Tensor> {
    let options = ConvOptions::new(strides, padding);
    ranked(("conv3d", 3), x.into(), filters.into(), options)
}

/// Calls a row of the table: the options follow the tensors.
#[track_caller]
fn call(a: &Args<'_>, name: &'static str, rank: usize) -> Result<Vec<Tensor>> {
    let options = ConvOptions::from_args(a, 2, rank);
    one(ranked((name, rank), a.tensor(0)?, a.tensor(1)?, options))
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

/// A way to slide: strides, padding, data format, dilations, groups, explicit padding.
pub(super) type Way<'a> = (&'a [i64], &'static str, &'static str, &'a [i64], i64, Option<&'a [i64]>);

/// A way to slide, as arguments.
pub(super) fn way((strides, padding, format, dilations, groups, amounts): Way<'_>) -> [ArgValue; 6] {
    [
        ArgValue::Ints(strides.to_vec()),
        ArgValue::Str(padding),
        ArgValue::Str(format),
        ArgValue::Ints(dilations.to_vec()),
        ArgValue::Int(groups),
        amounts.map_or(ArgValue::None, |amounts| ArgValue::Ints(amounts.to_vec())),
    ]
}

/// Shapes of input and filters, and a way to slide.
pub(super) type Case<'a> = (&'a [usize], &'a [usize], Way<'a>);

/// What convolutions and their gradients are tried on.
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
    let with = |dtype, &(x, w, how): &Case<'_>| {
        let mut args = vec![ramp(dtype, x, -2.0, 2.0), ramp(dtype, w, -1.0, 1.5)];
        args.extend(way(how));
        args
    };
    cases.flat_map(|case| dtypes::FLOATS.iter().map(move |&dtype| with(dtype, case))).collect()
}

fn refuses() -> Vec<Bad> {
    let bad = |x: &[usize], w: &[usize], how: Way<'_>, kind, message| {
        let mut args = vec![ramp(DType::F32, x, 0.0, 1.0), ramp(DType::F32, w, 0.0, 1.0)];
        args.extend(way(how));
        Bad::new(args, kind, message)
    };
    let (x, w): (&[usize], &[usize]) = (&[1, 4, 4, 2], &[2, 2, 2, 3]);
    let ints = vec![ramp(DType::I32, x, 0.0, 1.0), ramp(DType::I32, w, 0.0, 1.0)];
    let (shape, value) = (ErrorKind::Shape, ErrorKind::Value);
    vec![
        bad(&[1, 4, 2], w, (&[], "SAME", "NHWC", &[], 1, None), shape, "does not have a batch, channels and"),
        bad(x, &[2, 2, 3], (&[], "SAME", "NHWC", &[], 1, None), shape, "do not have 2 spatial dimensions"),
        bad(
            x,
            &[2, 2, 3, 3],
            (&[], "SAME", "NHWC", &[], 1, None),
            shape,
            "the input has 2 channels, the filters 3",
        ),
        bad(
            x,
            &[2, 2, 1, 3],
            (&[], "SAME", "NHWC", &[], 2, None),
            shape,
            "3 output channels do not fall into 2",
        ),
        bad(x, &[7, 2, 2, 3], (&[], "VALID", "NHWC", &[], 1, None), shape, "a window of 7 with dilation 1"),
        bad(x, &[0, 2, 2, 3], (&[], "VALID", "NHWC", &[], 1, None), shape, "a window of 0 with dilation 1"),
        bad(x, w, (&[], "VALID", "NHWC", &[i64::MAX], 1, None), shape, "does not fit"),
        bad(
            x,
            w,
            (&[], "EXPLICIT", "NHWC", &[], 1, Some(&[i64::MAX, i64::MAX, 0, 0])),
            shape,
            "does not fit",
        ),
        bad(x, w, (&[0], "VALID", "NHWC", &[], 1, None), value, "strides of 0 go nowhere"),
        bad(x, w, (&[-1], "VALID", "NHWC", &[], 1, None), value, "strides of -1 do not exist"),
        bad(x, w, (&[1, 1, 1], "VALID", "NHWC", &[], 1, None), value, "3 strides for 2 spatial dimensions"),
        bad(x, w, (&[], "FULL", "NHWC", &[], 1, None), value, "padding \"FULL\" is unknown"),
        bad(x, w, (&[], "SAME", "NHWC", &[], 1, Some(&[1, 1, 1, 1])), value, "takes no amounts"),
        bad(x, w, (&[], "EXPLICIT", "NHWC", &[], 1, Some(&[1, 1])), value, "1 paddings for 2 dimensions"),
        bad(x, w, (&[], "EXPLICIT", "NHWC", &[], 1, Some(&[1, -1, 0, 0])), value, "are not pairs of amounts"),
        bad(x, w, (&[], "SAME", "NWC", &[], 1, None), value, "data format \"NWC\" is unknown"),
        bad(x, w, (&[], "SAME", "NHWC", &[], 0, None), value, "0 groups hold no channels"),
        Bad::new(ints, ErrorKind::DType, "int32 is not supported"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new("conv1d", PARAMS, |a| call(a, "conv1d", 1), REFERENCE, Samples::List(|| samples(1))),
    OpEntry::new("conv2d", PARAMS, |a| call(a, "conv2d", 2), REFERENCE, Samples::List(|| samples(2)))
        .refuses(refuses),
    OpEntry::new("conv3d", PARAMS, |a| call(a, "conv3d", 3), REFERENCE, Samples::List(|| samples(3))),
];
