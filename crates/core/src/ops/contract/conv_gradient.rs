//! The gradients of a convolution with respect to its input and to its filters.

use super::conv::{CASES, CONV, ConvOptions, bilinear_gradients, conv_args};
use crate::error::{ErrorKind, Result};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::unary::cast;
use crate::ops::vmap::{
    batched_size, merge_batch_into_axis, merge_leading_axes, single_output, split_batch_from_axis,
};
use crate::ops::window::sliding_reference;
use crate::ops::windowed::{Role, WindowOptions, WindowRule, WindowShapes, Windowed};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::promote::common_dtype;
use crate::{DType, Saves, Shape, Tensor, apply};
use taut_kernels::conv as kernel;
use taut_memory::Location;

pub(super) static CONV_INPUT_GRADIENT: WindowRule = WindowRule {
    name: "conv_input_gradient",
    inputs: &[Role::Filters, Role::Result],
    output: Role::Image,
    flops: WindowShapes::multiply_add,
    scratch: |shapes, dtype| {
        kernel::input_gradient_scratch(&shapes.conv(), &shapes.image, &shapes.window, dtype)
    },
    run: |shapes, inputs, out, scratch| {
        kernel::input_gradient(&shapes.conv(), inputs[1].view(), inputs[0].view(), out, scratch);
    },
    vmap: |op, call| {
        let ([filters, dy], size) = ([0, 1].map(|i| call.inputs[i].clone()), call.size);
        let (rank, groups) = (call.shape(0).rank() - 2, op.options.groups());
        let channels = op.options.channel_axis(rank);
        single_output(match call.mapped {
            [false, _] => {
                let dx =
                    op.call(&CONV_INPUT_GRADIENT, wider(op, 0, size)?, [filters, merge_leading_axes(dy)?])?;
                split_batch_from_axis(dx, 0, 1, size)
            }
            [_, false] => {
                let inputs = [merge_batch_into_axis(filters, rank, 1)?, dy];
                let dx = op.call(&CONV_INPUT_GRADIENT, wider(op, channels, size)?, inputs)?;
                split_batch_from_axis(dx, channels, groups, size)
            }
            _ => {
                let inputs =
                    [merge_batch_into_axis(filters, rank + 1, 1)?, merge_batch_into_axis(dy, channels, 1)?];
                let shape = wider(op, channels, size)?;
                let dx = op.with_groups_of(size).call(&CONV_INPUT_GRADIENT, shape, inputs)?;
                split_batch_from_axis(dx, channels, 1, size)
            }
        })
    },
    saves: |wanted| Some(Saves::others(wanted)),
    vjp: |op, call| {
        let filters = call.input_shape(0).clone();
        bilinear_gradients(
            call,
            |dx, dy| op.call(&CONV_FILTER_GRADIENT, Some(filters), [dx, dy.clone()]),
            |dx, w| op.call(&CONV, None, [dx, w.clone()]),
        )
    },
    ..WindowRule::BASE
};

pub(super) static CONV_FILTER_GRADIENT: WindowRule = WindowRule {
    name: "conv_filter_gradient",
    inputs: &[Role::Image, Role::Result],
    output: Role::Filters,
    flops: WindowShapes::multiply_add,
    scratch: |shapes, dtype| {
        kernel::weight_gradient_scratch(&shapes.conv(), &shapes.image, &shapes.window, dtype)
    },
    run: |shapes, inputs, out, scratch| {
        kernel::weight_gradient(&shapes.conv(), inputs[0].view(), inputs[1].view(), out, scratch);
    },
    vmap: |op, call| {
        let ([x, dy], size) = ([0, 1].map(|i| call.inputs[i].clone()), call.size);
        let (rank, groups) = (call.shape(0).rank() - 2, op.options.groups());
        let channels = op.options.channel_axis(rank);
        single_output(match call.mapped {
            [_, false] => {
                let inputs = [merge_batch_into_axis(x, channels, groups)?, dy];
                let dw = op.call(&CONV_FILTER_GRADIENT, wider(op, rank, size)?, inputs)?;
                split_batch_from_axis(dw, rank, 1, size)
            }
            [false, _] => {
                let inputs = [x, merge_batch_into_axis(dy, channels, groups)?];
                let dw = op.call(&CONV_FILTER_GRADIENT, wider(op, rank + 1, size)?, inputs)?;
                split_batch_from_axis(dw, rank + 1, groups, size)
            }
            _ => {
                let inputs =
                    [merge_batch_into_axis(x, channels, 1)?, merge_batch_into_axis(dy, channels, 1)?];
                let shape = wider(op, rank + 1, size)?;
                let dw = op.with_groups_of(size).call(&CONV_FILTER_GRADIENT, shape, inputs)?;
                split_batch_from_axis(dw, rank + 1, 1, size)
            }
        })
    },
    saves: |wanted| Some(Saves::others(wanted)),
    vjp: |op, call| {
        let x = call.input_shape(0).clone();
        bilinear_gradients(
            call,
            |dw, dy| op.call(&CONV_INPUT_GRADIENT, Some(x), [dw, dy.clone()]),
            |dw, x| op.call(&CONV, None, [x.clone(), dw]),
        )
    },
    ..WindowRule::BASE
};

/// The shape of an op's output with a batch of `size` merged into one axis.
fn wider(op: &Windowed, axis: usize, size: usize) -> Result<Option<Shape>> {
    let widen = |shape: &Shape| Ok(shape.clone().with(axis, batched_size(shape[axis], size)?));
    op.shape.as_ref().map(widen).transpose()
}

/// The gradient of `conv` with respect to its input, given the gradient `dy` of its result.
#[track_caller]
pub fn conv_input_gradient(
    input_shape: impl Into<Shape>,
    filters: impl Into<Tensor>,
    dy: impl Into<Tensor>,
    options: &ConvOptions,
) -> Result<Tensor> {
    let (filters, dy) = (filters.into(), dy.into());
    let dtype = common_dtype("conv_input_gradient", [&filters, &dy])?;
    let op = Windowed::shaped(&CONV_INPUT_GRADIENT, options, input_shape);
    apply(&op, [cast(filters, dtype)?, cast(dy, dtype)?])
}

/// The gradient of `conv` with respect to its filters, given the gradient `dy` of its result.
#[track_caller]
pub fn conv_filter_gradient(
    x: impl Into<Tensor>,
    filter_shape: impl Into<Shape>,
    dy: impl Into<Tensor>,
    options: &ConvOptions,
) -> Result<Tensor> {
    let (x, dy) = (x.into(), dy.into());
    let dtype = common_dtype("conv_filter_gradient", [&x, &dy])?;
    let op = Windowed::shaped(&CONV_FILTER_GRADIENT, options, filter_shape);
    apply(&op, [cast(x, dtype)?, cast(dy, dtype)?])
}

/// The gradient of [`conv2d`](super::conv2d) with respect to its input, given the gradient `dy` of its result.
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

/// The gradient of [`conv2d`](super::conv2d) with respect to its filters, given the gradient `dy` of its result.
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

const OPTIONS: [Param; 6] = [
    Param::optional("strides", ParamKind::Ints, "None"),
    Param::optional("padding", ParamKind::Str, "'VALID'"),
    Param::optional("data_format", ParamKind::Str, "None"),
    Param::optional("dilations", ParamKind::Ints, "None"),
    Param::optional("groups", ParamKind::Int, "1"),
    Param::optional("explicit_paddings", ParamKind::Ints, "None"),
];

/// The samples of the input gradient, or of the filter gradient.
fn samples(input: bool) -> Vec<Vec<ArgValue>> {
    let mut samples = Vec::new();
    for &dtype in dtypes::FLOATS {
        for &(x, w, options) in CASES {
            let ints = |shape: &[usize]| ArgValue::Ints(shape.iter().map(|&d| d as i64).collect());
            let [x_tensor, w_tensor] = [x, w].map(|shape| ramp(dtype, shape, -2.0, 2.0));
            let mut args = if input { vec![ints(x), w_tensor] } else { vec![x_tensor, ints(w)] };
            let mut all = vec![ArgValue::None; 3];
            all.extend(conv_args(options));
            let parsed = ConvOptions::from_args(&crate::ops::Args(&all), 3, x.len() - 2);
            let shapes = parsed.and_then(|o| WindowOptions::from(&o).resolve(&x.into(), Some(&w.into())));
            let y = shapes.expect("the cases are valid").result;
            args.push(ramp(dtype, &y, -1.0, 1.5));
            args.extend(conv_args(options));
            samples.push(args);
        }
    }
    samples
}

fn invalid_input_gradient() -> Vec<InvalidArgs> {
    let args = |x: &[i64], dy: &[usize]| {
        let w = ramp(DType::F32, &[2, 2, 2, 3], 0.0, 1.0);
        vec![ArgValue::Ints(x.to_vec()), w, ramp(DType::F32, dy, 0.0, 1.0)]
    };
    vec![
        InvalidArgs::new(
            args(&[1, 4, 4, 2], &[1, 4, 4, 3]),
            ErrorKind::Shape,
            "must have the result's shape [1, 3, 3, 3]",
        ),
        InvalidArgs::new(
            args(&[1, 4, 4, 3], &[1, 3, 3, 3]),
            ErrorKind::Shape,
            "the image must have 1 * 2 channels",
        ),
        InvalidArgs::new(
            args(&[1, 4, 2], &[1, 3, 3]),
            ErrorKind::Shape,
            "the image must have a batch axis, 2 spatial dimensions and channels",
        ),
        InvalidArgs::new(
            args(&[1, -4, 4, 2], &[1, 3, 3, 3]),
            ErrorKind::Shape,
            "dimension must be >= 0, got -4",
        ),
    ]
}

fn invalid_filter_gradient() -> Vec<InvalidArgs> {
    let args = |w: &[i64], dy: &[usize]| {
        let x = ramp(DType::F32, &[1, 4, 4, 2], 0.0, 1.0);
        vec![x, ArgValue::Ints(w.to_vec()), ramp(DType::F32, dy, 0.0, 1.0)]
    };
    vec![
        InvalidArgs::new(
            args(&[2, 2, 2, 3], &[1, 4, 4, 3]),
            ErrorKind::Shape,
            "must have the result's shape [1, 3, 3, 3]",
        ),
        InvalidArgs::new(
            args(&[2], &[1, 3, 3, 3]),
            ErrorKind::Shape,
            "filters must have input and output channels, got shape [2]",
        ),
        InvalidArgs::new(args(&[7, 2, 2, 3], &[1, 3, 3, 3]), ErrorKind::Shape, "size 7 with dilation 1"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "conv_input_gradient",
        &[
            Param::new("input_shape", ParamKind::Ints),
            Param::tensor("filters"),
            Param::tensor("dy"),
            OPTIONS[0],
            OPTIONS[1],
            OPTIONS[2],
            OPTIONS[3],
            OPTIONS[4],
            OPTIONS[5],
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
    .refuses(invalid_input_gradient),
    OpEntry::new(
        "conv_filter_gradient",
        &[
            Param::tensor("x"),
            Param::new("filter_shape", ParamKind::Ints),
            Param::tensor("dy"),
            OPTIONS[0],
            OPTIONS[1],
            OPTIONS[2],
            OPTIONS[3],
            OPTIONS[4],
            OPTIONS[5],
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
    .refuses(invalid_filter_gradient),
];
