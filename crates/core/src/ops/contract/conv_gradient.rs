//! The gradients of a convolution with respect to its input and to its filters.

use super::conv::{CASES, ConvOptions, conv, float_dtype, flops, product, way};
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::batching::{into_axis, merge, out_of_axis, single, times};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::unary::cast;
use crate::ops::window::sliding_reference;
use crate::ops::{ArgValue, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply, promote};
use taut_kernels::conv as kernel;
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

#[derive(Clone, Debug)]
struct InputGradient {
    input_shape: Shape,
    options: ConvOptions,
}

impl Op for InputGradient {
    fn name(&self) -> &'static str {
        "conv_input_gradient"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let dtype = float_dtype(inputs)?;
        let (_, y) = self.options.resolve(&self.input_shape, &inputs[0].shape)?;
        check_gradient(&inputs[1].shape, &y)?;
        Ok(Spec { dtype, shape: self.input_shape.clone() }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Contract
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        let (x, w) = (&self.input_shape, &inputs[0].shape);
        let params = self.options.resolve(x, w);
        params.map_or(0, |(params, _)| kernel::input_gradient_scratch(&params, x, w, inputs[0].dtype))
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (w, dy) = (inputs[0].view(), inputs[1].view());
        let (params, _) = self.options.resolve(&self.input_shape, &w.shape().into())?;
        kernel::input_gradient(&params, dy, w, outputs[0].reborrow(), scratch);
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let [filters, dy] = [0, 1].map(|i| call.inputs[i].clone());
        let (shape, size, options) = (&self.input_shape, call.size, &self.options);
        let (rank, groups) = (shape.rank() - 2, options.groups);
        let channels = options.channels.axis(rank);
        let wider = |axis: usize| Ok::<_, Error>(shape.clone().with(axis, times(shape[axis], size)?));
        single(match call.mapped {
            [false, _] => {
                out_of_axis(conv_input_gradient(wider(0)?, filters, merge(dy)?, options)?, 0, 1, size)
            }
            [_, false] => {
                let filters = into_axis(filters, rank, 1)?;
                let dx = conv_input_gradient(wider(channels)?, filters, dy, options)?;
                out_of_axis(dx, channels, groups, size)
            }
            _ => {
                let (filters, dy) = (into_axis(filters, rank + 1, 1)?, into_axis(dy, channels, 1)?);
                let dx = conv_input_gradient(wider(channels)?, filters, dy, &options.apart(size))?;
                out_of_axis(dx, channels, 1, size)
            }
        })
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        flops(&inputs[1].shape, &inputs[0].shape, inputs, outputs)
    }

    fn attributes(&self) -> String {
        format!("input_shape={}, {}", self.input_shape, self.options.attributes())
    }
}

impl Differentiable for InputGradient {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        Some(Saves::others(wanted))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let filters = call.input_shape(0).clone();
        product(
            call,
            |dx, dy| conv_filter_gradient(dx, filters, dy, &self.options),
            |dx, w| conv(dx, w, &self.options),
        )
    }
}

#[derive(Clone, Debug)]
struct FilterGradient {
    filter_shape: Shape,
    options: ConvOptions,
}

impl Op for FilterGradient {
    fn name(&self) -> &'static str {
        "conv_filter_gradient"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let dtype = float_dtype(inputs)?;
        let (_, y) = self.options.resolve(&inputs[0].shape, &self.filter_shape)?;
        check_gradient(&inputs[1].shape, &y)?;
        Ok(Spec { dtype, shape: self.filter_shape.clone() }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Contract
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        let (x, w) = (&inputs[0].shape, &self.filter_shape);
        let params = self.options.resolve(x, w);
        params.map_or(0, |(params, _)| kernel::weight_gradient_scratch(&params, x, w, inputs[0].dtype))
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (x, dy) = (inputs[0].view(), inputs[1].view());
        let (params, _) = self.options.resolve(&x.shape().into(), &self.filter_shape)?;
        kernel::weight_gradient(&params, x, dy, outputs[0].reborrow(), scratch);
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let [x, dy] = [0, 1].map(|i| call.inputs[i].clone());
        let (shape, size, options) = (&self.filter_shape, call.size, &self.options);
        let (rank, groups) = (shape.rank() - 2, options.groups);
        let channels = options.channels.axis(rank);
        let wider = |axis: usize| Ok::<_, Error>(shape.clone().with(axis, times(shape[axis], size)?));
        single(match call.mapped {
            [_, false] => {
                let dw = conv_filter_gradient(into_axis(x, channels, groups)?, wider(rank)?, dy, options)?;
                out_of_axis(dw, rank, 1, size)
            }
            [false, _] => {
                let dy = into_axis(dy, channels, groups)?;
                out_of_axis(conv_filter_gradient(x, wider(rank + 1)?, dy, options)?, rank + 1, groups, size)
            }
            _ => {
                let (x, dy) = (into_axis(x, channels, 1)?, into_axis(dy, channels, 1)?);
                let dw = conv_filter_gradient(x, wider(rank + 1)?, dy, &options.apart(size))?;
                out_of_axis(dw, rank + 1, 1, size)
            }
        })
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        flops(&inputs[1].shape, &self.filter_shape, inputs, outputs)
    }

    fn attributes(&self) -> String {
        format!("filter_shape={}, {}", self.filter_shape, self.options.attributes())
    }
}

impl Differentiable for FilterGradient {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        Some(Saves::others(wanted))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let x = call.input_shape(0).clone();
        product(
            call,
            |dw, dy| conv_input_gradient(x, dw, dy, &self.options),
            |dw, x| conv(x, dw, &self.options),
        )
    }
}

fn check_gradient(dy: &Shape, y: &Shape) -> Result<()> {
    if dy == y {
        return Ok(());
    }
    Err(Error::shape(format!("the gradient has shape {dy}, the convolution's result {y}")))
}

/// The gradient of a convolution with respect to its input, given that of its result.
#[track_caller]
pub fn conv_input_gradient(
    input_shape: impl Into<Shape>,
    filters: impl Into<Tensor>,
    dy: impl Into<Tensor>,
    options: &ConvOptions,
) -> Result<Tensor> {
    let (filters, dy) = (filters.into(), dy.into());
    let dtype = promote(filters.dtype(), dy.dtype());
    let op = InputGradient { input_shape: input_shape.into(), options: options.clone() };
    apply(&op, [cast(filters, dtype)?, cast(dy, dtype)?])
}

/// The gradient of a convolution with respect to its filters, given that of its result.
#[track_caller]
pub fn conv_filter_gradient(
    x: impl Into<Tensor>,
    filter_shape: impl Into<Shape>,
    dy: impl Into<Tensor>,
    options: &ConvOptions,
) -> Result<Tensor> {
    let (x, dy) = (x.into(), dy.into());
    let dtype = promote(x.dtype(), dy.dtype());
    let op = FilterGradient { filter_shape: filter_shape.into(), options: options.clone() };
    apply(&op, [cast(x, dtype)?, cast(dy, dtype)?])
}

/// The gradient of [`conv2d`](super::conv2d) with respect to its input, given that of its result.
#[track_caller]
pub fn conv2d_input_gradient(
    input_shape: impl Into<Shape>,
    filters: impl Into<Tensor>,
    dy: impl Into<Tensor>,
    strides: &[usize],
    padding: &str,
) -> Result<Tensor> {
    let at = Location::caller();
    let options =
        ConvOptions::new(strides, padding).map_err(|e| e.in_op("conv2d_input_gradient", []).at(at))?;
    conv_input_gradient(input_shape, filters, dy, &options)
}

/// The gradient of [`conv2d`](super::conv2d) with respect to its filters, given that of its result.
#[track_caller]
pub fn conv2d_filter_gradient(
    x: impl Into<Tensor>,
    filter_shape: impl Into<Shape>,
    dy: impl Into<Tensor>,
    strides: &[usize],
    padding: &str,
) -> Result<Tensor> {
    let at = Location::caller();
    let options =
        ConvOptions::new(strides, padding).map_err(|e| e.in_op("conv2d_filter_gradient", []).at(at))?;
    conv_filter_gradient(x, filter_shape, dy, &options)
}

const WAY: [Param; 6] = [
    Param::optional("strides", ParamKind::Ints, "None"),
    Param::optional("padding", ParamKind::Str, "'VALID'"),
    Param::optional("data_format", ParamKind::Str, "None"),
    Param::optional("dilations", ParamKind::Ints, "None"),
    Param::optional("groups", ParamKind::Int, "1"),
    Param::optional("explicit_paddings", ParamKind::Ints, "None"),
];

/// The samples of both gradients; `which` chooses the tensor that stands beside the gradient.
fn samples(input: bool) -> Vec<Vec<ArgValue>> {
    let mut samples = Vec::new();
    for &dtype in dtypes::FLOATS {
        for &(x, w, how) in CASES {
            let ints = |shape: &[usize]| ArgValue::Ints(shape.iter().map(|&d| d as i64).collect());
            let [x_tensor, w_tensor] = [x, w].map(|shape| ramp(dtype, shape, -2.0, 2.0));
            let mut args = if input { vec![ints(x), w_tensor] } else { vec![x_tensor, ints(w)] };
            let mut all = vec![ArgValue::None; 3];
            all.extend(way(how));
            let options = ConvOptions::from_args(&crate::ops::Args(&all), 3, x.len() - 2);
            let result = options.and_then(|o| o.resolve(&x.into(), &w.into()));
            let (_, y) = result.expect("the cases are right");
            args.push(ramp(dtype, &y, -1.0, 1.5));
            args.extend(way(how));
            samples.push(args);
        }
    }
    samples
}

fn refuses_input() -> Vec<Bad> {
    let args = |x: &[i64], dy: &[usize]| {
        let w = ramp(DType::F32, &[2, 2, 2, 3], 0.0, 1.0);
        vec![ArgValue::Ints(x.to_vec()), w, ramp(DType::F32, dy, 0.0, 1.0)]
    };
    vec![
        Bad::new(
            args(&[1, 4, 4, 2], &[1, 4, 4, 3]),
            ErrorKind::Shape,
            "the convolution's result [1, 3, 3, 3]",
        ),
        Bad::new(args(&[1, 4, 4, 3], &[1, 3, 3, 3]), ErrorKind::Shape, "the input has 3 channels"),
        Bad::new(args(&[1, 4, 2], &[1, 3, 3]), ErrorKind::Shape, "does not have a batch"),
        Bad::new(args(&[1, -4, 4, 2], &[1, 3, 3, 3]), ErrorKind::Shape, "a dimension of -4 does not exist"),
    ]
}

fn refuses_filter() -> Vec<Bad> {
    let args = |w: &[i64], dy: &[usize]| {
        let x = ramp(DType::F32, &[1, 4, 4, 2], 0.0, 1.0);
        vec![x, ArgValue::Ints(w.to_vec()), ramp(DType::F32, dy, 0.0, 1.0)]
    };
    vec![
        Bad::new(
            args(&[2, 2, 2, 3], &[1, 4, 4, 3]),
            ErrorKind::Shape,
            "the convolution's result [1, 3, 3, 3]",
        ),
        Bad::new(args(&[2], &[1, 3, 3, 3]), ErrorKind::Shape, "have no input and output channels"),
        Bad::new(args(&[7, 2, 2, 3], &[1, 3, 3, 3]), ErrorKind::Shape, "a window of 7"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "conv_input_gradient",
        &[
            Param::new("input_shape", ParamKind::Ints),
            Param::tensor("filters"),
            Param::tensor("dy"),
            WAY[0],
            WAY[1],
            WAY[2],
            WAY[3],
            WAY[4],
            WAY[5],
        ],
        |a| {
            let filters = a.tensor(1)?;
            let options = ConvOptions::from_args(a, 3, filters.rank().saturating_sub(2))?;
            one(conv_input_gradient(a.shape(0)?, filters, a.tensor(2)?, &options))
        },
        Reference::Numpy(concat!(
            sliding_reference!("input_shape", "filters.shape[:-2]"),
            "ci := filters.shape[-2], co := filters.shape[-1] // groups, ",
            "dyg := last(dy).astype(np.float64).reshape(shape[0], *o, groups, co), ",
            "dx := np.zeros((shape[0], *padded, shape[-1])), ",
            "[dx.__setitem__(p, dx[p] + np.einsum('...go,igo->...gi', dyg, filters[t].astype(np.float64)",
            ".reshape(ci, groups, co)).reshape(dx[p].shape)) for t, p in zip(np.ndindex(*window), patches)], ",
            "back(dx[crop]).astype(dy.dtype)][-1]"
        )),
        Samples::List(|| samples(true)),
    )
    .refuses(refuses_input),
    OpEntry::new(
        "conv_filter_gradient",
        &[
            Param::tensor("x"),
            Param::new("filter_shape", ParamKind::Ints),
            Param::tensor("dy"),
            WAY[0],
            WAY[1],
            WAY[2],
            WAY[3],
            WAY[4],
            WAY[5],
        ],
        |a| {
            let shape = a.shape(1)?;
            let options = ConvOptions::from_args(a, 3, shape.len().saturating_sub(2))?;
            one(conv_filter_gradient(a.tensor(0)?, shape, a.tensor(2)?, &options))
        },
        Reference::Numpy(concat!(
            sliding_reference!("x.shape", "filter_shape[:-2]"),
            "ci := filter_shape[-2], co := filter_shape[-1] // groups, ",
            "xp := np.pad(last(x).astype(np.float64), [(0, 0), *pads, (0, 0)]), ",
            "rows := int(np.prod((shape[0], *o))), dyg := last(dy).astype(np.float64).reshape(rows, groups, co), ",
            "np.stack([np.einsum('ngi,ngo->igo', xp[p].reshape(rows, groups, ci), dyg) ",
            "for p in patches]).reshape(filter_shape).astype(x.dtype)][-1]"
        )),
        Samples::List(|| samples(false)),
    )
    .refuses(refuses_filter),
];
