//! Vector norms, and normalizing and clipping by norm.

use crate::error::{Error, ErrorKind, Result};
use crate::ops::binary::{div, maximum, mul, not_equal, pow, where_};
use crate::ops::reduce::{max, min, sum};
use crate::ops::reduction::{ReduceAxes, replace_zeros, safe_sqrt};
use crate::ops::sample::{dtypes, invalid_axes, ramp, reductions};
use crate::ops::unary::{abs, cast, is_finite, rsqrt, square};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::promote::float_of;
use crate::record::detached;
use crate::{DType, Tensor};
use taut_memory::Location;

/// The vector norm of order `ord` over axes; over all axes if `axes` is `None`.
///
/// `ord` 2 is the Euclidean norm, 1 the sum of magnitudes, infinity the largest and -infinity the smallest magnitude, 0
/// the number of nonzero elements; any other `p` gives `sum(|x|^p)^(1/p)`.
///
/// ```
/// use taut_core::{Tensor, ops::reduce::norm};
/// let x = Tensor::from_slice(&[3.0f32, 4.0], [2])?;
/// assert_eq!(norm(&x, 2.0, None, false)?.item::<f32>()?, 5.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn norm(x: impl Into<Tensor>, ord: f64, axes: impl Into<ReduceAxes>, keepdims: bool) -> Result<Tensor> {
    let x = x.into();
    let float = float_of(x.dtype());
    let (x, axes) = (magnitude(cast(x, float)?)?, axes.into());
    match ord {
        2.0 => {
            // Scaled by the largest magnitude, so that no square overflows or underflows.
            if x.is_empty() {
                return safe_sqrt(sum(square(x)?, axes, keepdims)?);
            }
            // The norm does not depend on the scale, which is therefore excluded from the gradient.
            let largest = max(abs(detached(&x))?, axes.clone(), true)?;
            let usable = where_(&is_divisor(&largest)?, &largest, 1.0)?;
            let scaled = div(x, &usable)?;
            let length = mul(safe_sqrt(sum(square(scaled)?, axes.clone(), true)?)?, usable)?;
            if keepdims { Ok(length) } else { sum(length, axes, false) }
        }
        1.0 => sum(abs(x)?, axes, keepdims),
        f64::INFINITY => max(abs(x)?, axes, keepdims),
        f64::NEG_INFINITY => min(abs(x)?, axes, keepdims),
        0.0 => {
            let dtype = x.dtype();
            sum(cast(not_equal(x, 0)?, dtype)?, axes, keepdims)
        }
        _ => {
            let (zero, usable) = replace_zeros(sum(pow(abs(x)?, ord)?, axes, keepdims)?)?;
            where_(zero, 0, pow(usable, 1.0 / ord)?)
        }
    }
}

/// Where a magnitude is a valid divisor: positive and finite.
#[track_caller]
fn is_divisor(magnitude: &Tensor) -> Result<Tensor> {
    use crate::ops::binary::{greater, logical_and};
    use crate::ops::unary::is_finite;
    logical_and(greater(magnitude, 0)?, is_finite(magnitude)?)
}

/// Normalizes x by its Euclidean norm over axes: `x / sqrt(max(sum(x^2), epsilon))`.
#[track_caller]
pub fn l2_normalize(x: impl Into<Tensor>, axes: impl Into<ReduceAxes>, epsilon: f64) -> Result<Tensor> {
    let x = x.into();
    let squares = sum(square(magnitude(x.clone())?)?, axes, true)?;
    mul(x, rsqrt(maximum(squares, epsilon)?)?)
}

/// The absolute values of complex numbers; other numbers as they are.
#[track_caller]
fn magnitude(x: Tensor) -> Result<Tensor> {
    if x.dtype().is_complex() { abs(x) } else { Ok(x) }
}

/// Scales x down so that its Euclidean norm over axes is at most `clip_norm`.
#[track_caller]
pub fn clip_by_norm(x: impl Into<Tensor>, clip_norm: f64, axes: impl Into<ReduceAxes>) -> Result<Tensor> {
    let x = x.into();
    check_clip("clip_by_norm", clip_norm, &x, Location::caller())?;
    let length = norm(&x, 2.0, axes, true)?;
    let scale = div(clip_norm, maximum(length, clip_norm)?)?;
    mul(x, scale)
}

fn check_clip(op: &'static str, clip_norm: f64, x: &Tensor, at: Location) -> Result<()> {
    if clip_norm > 0.0 {
        return Ok(());
    }
    Err(Error::value(format!("clip_norm must be > 0, got {clip_norm}")).in_op(op, [x.spec()]).at(at))
}

/// The Euclidean norm of several tensors taken together: `sqrt(sum(norm(t)^2))`.
#[track_caller]
pub fn global_norm(tensors: &[Tensor]) -> Result<Tensor> {
    let Some((first, rest)) = tensors.split_first() else {
        let error = Error::value("expected at least one tensor, got an empty list");
        return Err(error.in_op("global_norm", []).at(Location::caller()));
    };
    let mut squares = sum(square(magnitude(first.clone())?)?, None, false)?;
    for tensor in rest {
        squares = (squares + sum(square(magnitude(tensor.clone())?)?, None, false)?)?;
    }
    safe_sqrt(squares)
}

/// Scales several tensors by one factor so that their [`global_norm`] is at most `clip_norm`; returns them and the norm
/// before scaling. If that norm is not finite, all elements become NaN.
#[track_caller]
pub fn clip_by_global_norm(tensors: &[Tensor], clip_norm: f64) -> Result<(Vec<Tensor>, Tensor)> {
    let at = Location::caller();
    let length = global_norm(tensors).map_err(|e| e.at(at))?;
    check_clip("clip_by_global_norm", clip_norm, &length, at)?;
    // With an infinite norm the factor would be 0 and silently turn finite elements into zeros.
    let scale = div(clip_norm, maximum(&length, clip_norm)?)?;
    let scale = where_(is_finite(&length)?, scale, f64::NAN)?;
    let mut clipped = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        clipped.push(mul(tensor, cast(&scale, tensor.dtype().part())?)?);
    }
    Ok((clipped, length))
}

fn orders() -> Vec<Vec<ArgValue>> {
    let mut samples = Vec::new();
    for ord in [2.0, 1.0, f64::INFINITY, f64::NEG_INFINITY, 0.0, 3.0] {
        for &dtype in &[DType::F32, DType::F64, DType::I32] {
            samples.push(vec![
                ramp(dtype, &[5], -3.0, 3.0),
                ArgValue::Float(ord),
                ArgValue::Ints(vec![0]),
                ArgValue::Bool(false),
            ]);
            samples.push(vec![
                ramp(dtype, &[3, 4], -3.0, 3.0),
                ArgValue::Float(ord),
                ArgValue::Ints(vec![-1]),
                ArgValue::Bool(true),
            ]);
        }
    }
    // Squares that overflow.
    let extreme = crate::ops::sample::of(DType::F32, &[2, 2], &[3e30, 4e30, 0.0, 0.0]);
    samples.push(vec![extreme, ArgValue::Float(2.0), ArgValue::Ints(vec![1]), ArgValue::Bool(false)]);
    for &dtype in &[DType::F32, DType::F64] {
        samples.push(vec![
            ramp(dtype, &[0, 2], 0.0, 1.0),
            ArgValue::Float(2.0),
            ArgValue::Ints(vec![0]),
            ArgValue::Bool(false),
        ]);
    }
    samples
}

fn lists() -> Vec<Vec<ArgValue>> {
    let list = |dtype: DType| {
        let tensors =
            [&[3usize][..], &[2, 2], &[]].map(|shape| crate::ops::sample::tensor(dtype, shape, -3.0, 3.0));
        ArgValue::Tensors(tensors.to_vec())
    };
    let both =
        |clip: f64| dtypes::WIDE_COMPLEX.iter().map(move |&dtype| vec![list(dtype), ArgValue::Float(clip)]);
    both(1.5).chain(both(100.0)).collect()
}

fn invalid_clip(first: ArgValue) -> InvalidArgs {
    InvalidArgs::new(vec![first, ArgValue::Float(-1.0)], ErrorKind::Value, "clip_norm must be > 0, got -1")
}

const TENSORS_CLIP: &[Param] =
    &[Param::new("tensors", ParamKind::Tensors), Param::new("clip_norm", ParamKind::Float)];

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "norm",
        &[
            Param::tensor("x"),
            Param::optional("ord", ParamKind::Float, "2.0"),
            Param::optional("axes", ParamKind::Ints, "None"),
            Param::optional("keepdims", ParamKind::Bool, "False"),
        ],
        |a| {
            one(norm(
                a.tensor(0)?,
                a.float_or(1)?.unwrap_or(2.0),
                a.axes(2)?.as_deref(),
                a.bool_or(3)?.unwrap_or(false),
            ))
        },
        Reference::Numpy(
            "np.linalg.norm(x.astype(np.float64), ord, axes[0], keepdims).astype(x.dtype if x.dtype.kind == 'f' else np.float64)",
        ),
        Samples::List(orders),
    ),
    OpEntry::new(
        "l2_normalize",
        &[
            Param::tensor("x"),
            Param::optional("axes", ParamKind::Ints, "None"),
            Param::optional("epsilon", ParamKind::Float, "1e-12"),
        ],
        |a| one(l2_normalize(a.tensor(0)?, a.axes(1)?.as_deref(), a.float_or(2)?.unwrap_or(1e-12))),
        Reference::Numpy("x / np.sqrt(np.maximum(np.sum(np.abs(x) ** 2, axis=axes, keepdims=True), 1e-12))"),
        Samples::List(|| {
            let mut samples = reductions(dtypes::WIDE_COMPLEX, -3.0, 3.0);
            samples.iter_mut().for_each(|args| args.truncate(2));
            samples
        }),
    )
    .refuses(invalid_axes),
    OpEntry::new(
        "clip_by_norm",
        &[
            Param::tensor("x"),
            Param::new("clip_norm", ParamKind::Float),
            Param::optional("axes", ParamKind::Ints, "None"),
        ],
        |a| one(clip_by_norm(a.tensor(0)?, a.float(1)?, a.axes(2)?.as_deref())),
        Reference::Numpy(
            "x * (clip_norm / np.maximum(np.sqrt(np.sum(np.abs(x) ** 2, axis=axes, keepdims=True)), clip_norm))",
        ),
        Samples::List(|| {
            let mut samples = reductions(dtypes::WIDE_COMPLEX, -3.0, 3.0);
            samples.iter_mut().for_each(|args| {
                args.truncate(2);
                args.insert(1, ArgValue::Float(1.5));
            });
            samples
        }),
    )
    .refuses(|| vec![invalid_clip(ramp(DType::F32, &[3], 0.0, 1.0))]),
    OpEntry::new(
        "global_norm",
        &[Param::new("tensors", ParamKind::Tensors)],
        |a| one(global_norm(&a.tensors(0)?)),
        Reference::Numpy("np.sqrt(sum(np.sum(np.abs(t) ** 2) for t in tensors))"),
        Samples::List(|| lists().into_iter().map(|mut args| args.drain(..1).collect()).collect()),
    )
    .refuses(|| {
        vec![InvalidArgs::new(
            vec![ArgValue::Tensors(vec![])],
            ErrorKind::Value,
            "expected at least one tensor",
        )]
    }),
    OpEntry::new(
        "clip_by_global_norm",
        TENSORS_CLIP,
        |a| {
            let (mut clipped, length) = clip_by_global_norm(&a.tensors(0)?, a.float(1)?)?;
            clipped.push(length);
            Ok(clipped)
        },
        Reference::Numpy(
            "(lambda n: [t * np.minimum(clip_norm / n, 1).astype(t.dtype) for t in tensors] + [n])(\
             np.sqrt(sum(np.sum(np.abs(t) ** 2) for t in tensors)))",
        ),
        Samples::List(lists),
    )
    .refuses(|| {
        let list = ArgValue::Tensors(vec![crate::ops::sample::tensor(DType::F32, &[2], 0.0, 1.0)]);
        vec![invalid_clip(list)]
    }),
];
