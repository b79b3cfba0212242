//! Sums, products and means.

use crate::error::Result;
use crate::ops::binary::mul;
use crate::ops::reduce::cumprod;
use crate::ops::reduction::{ReduceAxes, ReductionCode, ReductionGradient, reduce, reduce_float};
use crate::ops::sample::{dtypes, invalid_axes, reductions};
use crate::ops::shape::broadcast_to;
use crate::ops::{OpEntry, Param, Reference, Samples, one};
use crate::{Saves, Tensor};
use taut_kernels::reduce::Reduce;

static SUM: ReductionGradient = ReductionGradient {
    saves: |_| Saves::NOTHING,
    residual: None,
    partial: |_, call, g| broadcast_to(g, call.input_shape(0).clone()),
};

static MEAN: ReductionGradient = ReductionGradient {
    saves: |_| Saves::NOTHING,
    residual: None,
    partial: |op, call, g| {
        let count = op.over.count(call.input_shape(0))?;
        broadcast_to(mul(g, 1.0 / count as f64)?, call.input_shape(0).clone())
    },
};

static PROD: ReductionGradient = ReductionGradient {
    saves: |_| Saves::INPUT,
    residual: None,
    partial: |op, call, mut g| {
        // The derivative of an element is the product of all others: exclusive products from both ends along each axis in
        // turn. There is no division, so zeros are handled.
        let x = call.input(0)?;
        let marks = op.over.marks(x.shape())?;
        let axes = marks.iter().enumerate().filter(|(_, reduced)| **reduced).map(|(axis, _)| axis as isize);
        let mut products = vec![(x.clone(), None)];
        for axis in axes {
            let last = products.len() - 1;
            products[last].1 = Some(axis);
            let reduced = prod(&products[last].0, axis, true)?;
            products.push((reduced, None));
        }
        for (partial, axis) in products.into_iter().rev() {
            if let Some(axis) = axis {
                let before = cumprod(&partial, axis, true, false)?;
                g = mul(mul(before, cumprod(partial, axis, true, true)?)?, g)?;
            }
        }
        Ok(g)
    },
};

/// The sum over axes; over all axes if `axes` is `None`. Integers narrower than 64 bits are summed in 64 bits.
///
/// ```
/// use taut_core::{Tensor, ops::reduce::sum};
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// assert_eq!(sum(&x, None, false)?.item::<f32>()?, 10.0);
/// assert_eq!(sum(&x, 0, true)?.to_vec::<f32>()?, [4.0, 6.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn sum(x: impl Into<Tensor>, axes: impl Into<ReduceAxes>, keepdims: bool) -> Result<Tensor> {
    reduce("sum", ReductionCode::Reduce(Reduce::Sum), x.into(), axes.into(), keepdims, Some(&SUM))
}

/// The product over axes; over all axes if `axes` is `None`. Integers narrower than 64 bits are multiplied in 64 bits.
#[track_caller]
pub fn prod(x: impl Into<Tensor>, axes: impl Into<ReduceAxes>, keepdims: bool) -> Result<Tensor> {
    reduce("prod", ReductionCode::Reduce(Reduce::Prod), x.into(), axes.into(), keepdims, Some(&PROD))
}

/// The mean over axes; over all axes if `axes` is `None`. Integers give `float32`.
#[track_caller]
pub fn mean(x: impl Into<Tensor>, axes: impl Into<ReduceAxes>, keepdims: bool) -> Result<Tensor> {
    reduce_float("mean", ReductionCode::Reduce(Reduce::Mean), x.into(), axes.into(), keepdims, Some(&MEAN))
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "sum",
        Param::REDUCTION,
        |a| one(sum(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy("np.sum(x, axis=axes, keepdims=keepdims)"),
        Samples::List(|| reductions(dtypes::EVERY, -3.0, 3.0)),
    )
    .refuses(invalid_axes),
    OpEntry::new(
        "prod",
        Param::REDUCTION,
        |a| one(prod(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy("np.prod(x, axis=axes, keepdims=keepdims)"),
        Samples::List(|| reductions(dtypes::EVERY, 0.6, 1.6)),
    )
    .refuses(invalid_axes),
    OpEntry::new(
        "mean",
        Param::REDUCTION,
        |a| one(mean(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy("np.mean(x, axis=axes, keepdims=keepdims)"),
        Samples::List(|| reductions(dtypes::EVERY, -3.0, 3.0)),
    )
    .refuses(invalid_axes),
];
