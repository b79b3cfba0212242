//! Transposed convolution.

use super::conv::{ConvArgs, ConvOptions, conv_args};
use super::conv_input_gradient;
use crate::error::{Error, ErrorKind, Result};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::window::sliding_reference;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Padding, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Shape, Tensor};
use taut_memory::Location;

/// The input shape of a convolution whose output has the shape of `x`: the smallest that the strides allow.
fn input_shape(x: &Shape, filters: &Shape, options: &ConvOptions) -> Result<Shape> {
    let rank = filters.rank().saturating_sub(2);
    if !(1..=3).contains(&rank) || x.rank() != rank + 2 {
        return Err(Error::shape(format!(
            "image and filters must have one rank, 3 to 5, got shapes {x} and {filters}"
        )));
    }
    let too_large = || Error::shape("the result has more elements than memory has addresses");
    let slide = options.slide();
    let mut shape = x.clone();
    for i in 0..rank {
        let axis = options.channels.spatial() + i;
        let (stride, dilation) = slide.step(i);
        let size = if options.padding == Padding::Same {
            x[axis].checked_mul(stride)
        } else {
            let amounts = match &options.padding {
                Padding::Explicit(amounts) => amounts.get(i).map_or(0, |p| p.0.saturating_add(p.1)),
                _ => 0,
            };
            let span = filters[i].saturating_sub(1).checked_mul(dilation).and_then(|s| s.checked_add(1));
            let last = x[axis].saturating_sub(1).checked_mul(stride);
            last.zip(span).and_then(|(last, span)| last.checked_add(span)).map(|s| s.saturating_sub(amounts))
        };
        shape = shape.with(axis, size.ok_or_else(too_large)?);
    }
    let channels = filters[rank].checked_mul(options.groups).ok_or_else(too_large)?;
    Ok(shape.with(options.channels.axis(rank), channels))
}

/// Transposed convolution: the gradient of [`conv`](super::conv()) with respect to its input, applied to `x`.
///
/// `filters` are `[spatial.., outputs, channels]`. With a stride above one several output sizes are possible:
/// `output_shape` selects one, the smallest is the default.
///
/// ```
/// use taut_core::ops::contract::{ConvOptions, conv_transpose};
/// use taut_core::Tensor;
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [1, 2, 1])?;
/// let filters = Tensor::from_slice(&[1.0f32, 10.0], [2, 1, 1])?;
/// let options = ConvOptions { strides: vec![2], ..ConvOptions::default() };
/// assert_eq!(conv_transpose(&x, &filters, None, &options)?.to_vec::<f32>()?, [1.0, 10.0, 2.0, 20.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn conv_transpose(
    x: impl Into<Tensor>,
    filters: impl Into<Tensor>,
    output_shape: Option<&[usize]>,
    options: &ConvOptions,
) -> Result<Tensor> {
    let (x, filters, at) = (x.into(), filters.into(), Location::caller());
    let shape = match output_shape {
        Some(shape) => Shape::from(shape),
        None => input_shape(x.shape(), filters.shape(), options)
            .map_err(|e| e.in_op("conv_transpose", [x.spec(), filters.spec()]).at(at))?,
    };
    conv_input_gradient(shape, filters, x, options)
}

/// Shapes of input, filters and output, and options.
type Case<'a> = (&'a [usize], &'a [usize], Option<&'a [i64]>, ConvArgs<'a>);

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "conv_transpose",
    &[
        Param::tensor("x"),
        Param::tensor("filters"),
        Param::optional("output_shape", ParamKind::Ints, "None"),
        Param::optional("strides", ParamKind::Ints, "None"),
        Param::optional("padding", ParamKind::Str, "'VALID'"),
        Param::optional("data_format", ParamKind::Str, "None"),
        Param::optional("dilations", ParamKind::Ints, "None"),
        Param::optional("groups", ParamKind::Int, "1"),
        Param::optional("explicit_paddings", ParamKind::Ints, "None"),
    ],
    |a| {
        let filters = a.tensor(1)?;
        let options = ConvOptions::from_args(a, 3, filters.rank().saturating_sub(2))?;
        let shape = a.ints_or(2)?.map(|_| a.shape(2)).transpose()?;
        one(conv_transpose(a.tensor(0)?, filters, shape.as_deref(), &options))
    },
    Reference::Numpy(concat!(
        "[k := filters.shape[:-2], m := len(k), c := 1 if (data_format or '').startswith('NC') else -1, ",
        "sizes := x.shape[2:] if c == 1 else x.shape[1:-1], ",
        "ss := (tuple(strides or ()) * m)[:m] or (1,) * m, dd := (tuple(dilations or ()) * m)[:m] or (1,) * m, ",
        "grown := [i * a if padding == 'SAME' else max(i - 1, 0) * a + (q - 1) * e + 1 - ",
        "sum((explicit_paddings or (0,) * 2 * m)[2 * j:2 * j + 2]) ",
        "for j, (i, a, q, e) in enumerate(zip(sizes, ss, k, dd))], ",
        "target := output_shape or ((x.shape[0], filters.shape[-2] * groups, *grown) if c == 1 else ",
        "(x.shape[0], *grown, filters.shape[-2] * groups)), ",
        sliding_reference!("target", "filters.shape[:-2]"),
        "ci := filters.shape[-2], co := filters.shape[-1] // groups, ",
        "dyg := last(x).astype(np.float64).reshape(shape[0], *o, groups, co), ",
        "dx := np.zeros((shape[0], *padded, shape[-1])), ",
        "[dx.__setitem__(p, dx[p] + np.einsum('...go,igo->...gi', dyg, filters[t].astype(np.float64)",
        ".reshape(ci, groups, co)).reshape(dx[p].shape)) for t, p in zip(np.ndindex(*window), patches)], ",
        "back(dx[crop]).astype(x.dtype)][-1]][-1]"
    )),
    Samples::List(|| {
        let cases: [Case<'_>; 6] = [
            (&[2, 3, 2], &[3, 4, 2], None, (&[2], "SAME", "NWC", &[], 1, None)),
            (&[2, 3, 4, 2], &[3, 2, 3, 2], None, (&[2, 1], "VALID", "NHWC", &[1, 2], 1, None)),
            (&[1, 2, 3, 3], &[2, 2, 3, 2], Some(&[1, 3, 7, 7]), (&[2], "EXPLICIT", "NCHW", &[], 1, Some(&[0, 0, 0, 0]))),
            (&[1, 3, 3, 4], &[2, 2, 3, 4], None, (&[1], "EXPLICIT", "NHWC", &[], 2, Some(&[1, 0, 0, 1]))),
            (&[1, 2, 2, 2, 1], &[2, 2, 2, 2, 1], None, (&[2], "SAME", "NDHWC", &[], 1, None)),
            (&[0, 3, 2], &[3, 4, 2], None, (&[2], "SAME", "NWC", &[], 1, None)),
        ];
        let with = |dtype, &(x, w, shape, options): &Case<'_>| {
            let shape = shape.map_or(ArgValue::None, |shape| ArgValue::Ints(shape.to_vec()));
            let mut args = vec![ramp(dtype, x, -2.0, 2.0), ramp(dtype, w, -1.0, 1.5), shape];
            args.extend(conv_args(options));
            args
        };
        dtypes::FLOATS.iter().flat_map(|&d| cases.iter().map(move |case| with(d, case))).collect()
    }),
)
.refuses(|| {
    let bad = |x: &[usize], shape: ArgValue, message| {
        let w = ramp(DType::F32, &[3, 4, 2], 0.0, 1.0);
        InvalidArgs::new(vec![ramp(DType::F32, x, 0.0, 1.0), w, shape], ErrorKind::Shape, message)
    };
    vec![
        bad(&[3, 2], ArgValue::None, "image and filters must have one rank, 3 to 5, got shapes [3, 2] and [3, 4, 2]"),
        bad(&[1, 3, 3], ArgValue::None, "the gradient must have the result's shape"),
        bad(&[1, 3, 2], ArgValue::Ints(vec![1, 9, 4]), "the result's shape [1, 7, 2]"),
        bad(&[1, 3, 2], ArgValue::Ints(vec![1, -9, 4]), "dimension must be >= 0, got -9"),
    ]
})];
