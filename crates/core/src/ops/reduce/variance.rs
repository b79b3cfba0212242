//! Variance and standard deviation.

use crate::error::Result;
use crate::ops::binary::{add, mul, sub};
use crate::ops::reduce::mean;
use crate::ops::reduction::{ReduceAxes, ReductionCode, ReductionGradient, reduce_float, safe_sqrt};
use crate::ops::sample::{dtypes, invalid_axes, reductions};
use crate::ops::unary::{imag, real};
use crate::ops::{ArgValue, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{Saves, Tensor};

static VARIANCE: ReductionGradient = ReductionGradient {
    saves: |_| Saves::INPUT,
    residual: None,
    partial: |op, call, g| {
        let x = call.input(0)?;
        let correction = if let ReductionCode::Variance { correction } = op.code { correction } else { 0.0 };
        // As in the kernel: zero degrees of freedom give NaN.
        let freedom = op.over.count(x.shape())? as f64 - correction;
        let deviation = sub(x, mean(x, op.over.clone(), true)?)?;
        mul(deviation, mul(g, 2.0 / freedom)?)
    },
};

/// The variance over axes; over all axes if `axes` is `None`. The divisor is the number of elements minus `correction`:
/// 0 for the population variance, 1 for the unbiased sample variance.
///
/// ```
/// use taut_core::{Tensor, ops::reduce::var};
/// let x = Tensor::from_slice(&[1.0f64, 2.0, 3.0, 4.0], [4])?;
/// assert_eq!(var(&x, None, 0.0, false)?.item::<f64>()?, 1.25);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn var(
    x: impl Into<Tensor>,
    axes: impl Into<ReduceAxes>,
    correction: f64,
    keepdims: bool,
) -> Result<Tensor> {
    let (x, axes) = (x.into(), axes.into());
    if x.dtype().is_complex() {
        return complex_var(x, axes, correction, keepdims);
    }
    reduce_float("var", ReductionCode::Variance { correction }, x, axes, keepdims, Some(&VARIANCE))
}

/// The standard deviation over axes; over all axes if `axes` is `None`. The divisor is the number of elements minus
/// `correction`: 0 for a population, 1 for a sample. The gradient is 0 where the deviation is 0.
#[track_caller]
pub fn std(
    x: impl Into<Tensor>,
    axes: impl Into<ReduceAxes>,
    correction: f64,
    keepdims: bool,
) -> Result<Tensor> {
    let (x, axes) = (x.into(), axes.into());
    if x.dtype().is_complex() {
        return safe_sqrt(complex_var(x, axes, correction, keepdims)?);
    }
    let code = ReductionCode::Variance { correction };
    safe_sqrt(reduce_float("std", code, x, axes, keepdims, Some(&VARIANCE))?)
}

/// The variance of complex numbers, which is real: that of the real parts and that of the imaginary parts together.
#[track_caller]
fn complex_var(x: Tensor, axes: ReduceAxes, correction: f64, keepdims: bool) -> Result<Tensor> {
    let re = var(real(&x)?, axes.clone(), correction, keepdims)?;
    add(re, var(imag(x)?, axes, correction, keepdims)?)
}

fn samples() -> Vec<Vec<ArgValue>> {
    let mut samples = reductions(dtypes::EVERY, -3.0, 3.0);
    for (i, args) in samples.iter_mut().enumerate() {
        let keepdims = args.pop().unwrap_or(ArgValue::None);
        args.extend([ArgValue::Float((i % 2) as f64), keepdims]);
    }
    samples
}

const PARAMS: &[Param] = &[
    Param::tensor("x"),
    Param::optional("axes", ParamKind::Ints, "None"),
    Param::optional("correction", ParamKind::Float, "0.0"),
    Param::optional("keepdims", ParamKind::Bool, "False"),
];

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "var",
        PARAMS,
        |a| {
            one(var(
                a.tensor(0)?,
                a.axes(1)?.as_deref(),
                a.float_or(2)?.unwrap_or(0.0),
                a.bool_or(3)?.unwrap_or(false),
            ))
        },
        Reference::Numpy("np.var(x, axis=axes, ddof=correction, keepdims=keepdims)"),
        Samples::List(samples),
    )
    .refuses(invalid_axes),
    OpEntry::new(
        "std",
        PARAMS,
        |a| {
            one(std(
                a.tensor(0)?,
                a.axes(1)?.as_deref(),
                a.float_or(2)?.unwrap_or(0.0),
                a.bool_or(3)?.unwrap_or(false),
            ))
        },
        Reference::Numpy("np.std(x, axis=axes, ddof=correction, keepdims=keepdims)"),
        Samples::List(samples),
    )
    .refuses(invalid_axes),
];
