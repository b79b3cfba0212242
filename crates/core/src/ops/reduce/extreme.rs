//! Maximum and minimum, and their positions.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{div, equal};
use crate::ops::index::{keep_bits, pack_bits, unpack_bits};
use crate::ops::reduce::sum;
use crate::ops::reduction::{ReduceAxes, ReductionCode, ReductionGradient, reduce};
use crate::ops::sample::{dtypes, invalid_axes, ramp, reductions};
use crate::ops::shape::{broadcast_to, reshape};
use crate::ops::unary::cast;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{DType, Outputs, Saves, Tensor, apply};
use taut_kernels::reduce::{self as kernels, Reduce};
use taut_kernels::{Arg, ViewMut};

static EXTREMUM: ReductionGradient = ReductionGradient {
    saves: |_| Saves::residual_of([0]),
    residual: Some(|op, call| {
        let x = call.input(0)?;
        pack_bits(equal(x, op.keep_dims(call.output(0)?, x.shape())?)?)
    }),
    // Equal extrema share the gradient.
    partial: |op, call, g| {
        let (bits, shape) = (call.residual()?, call.input_shape(0));
        let count = sum(unpack_bits(bits, shape.clone())?, op.over.clone(), true)?;
        let share = div(&g, cast(count, g.dtype())?)?;
        keep_bits(broadcast_to(share, shape.clone())?, bits, false)
    },
};

/// The maximum over axes; over all axes if `axes` is `None`. NaN propagates; equal maxima share the gradient.
///
/// ```
/// use taut_core::{Tensor, ops::reduce::max};
/// let x = Tensor::from_slice(&[3, 1, 2, 5], [2, 2])?;
/// assert_eq!(max(&x, 1, false)?.to_vec::<i32>()?, [3, 5]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn max(x: impl Into<Tensor>, axes: impl Into<ReduceAxes>, keepdims: bool) -> Result<Tensor> {
    reduce("max", ReductionCode::Reduce(Reduce::Max), x.into(), axes.into(), keepdims, Some(&EXTREMUM))
}

/// The minimum over axes; over all axes if `axes` is `None`. NaN propagates; equal minima share the gradient.
#[track_caller]
pub fn min(x: impl Into<Tensor>, axes: impl Into<ReduceAxes>, keepdims: bool) -> Result<Tensor> {
    reduce("min", ReductionCode::Reduce(Reduce::Min), x.into(), axes.into(), keepdims, Some(&EXTREMUM))
}

#[derive(Clone, Debug)]
struct ArgExtreme {
    max: bool,
    axis: isize,
}

impl Op for ArgExtreme {
    fn name(&self) -> &'static str {
        if self.max { "argmax" } else { "argmin" }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let shape = &inputs[0].shape;
        let axis = shape.axis(self.axis)?;
        let kept = shape.clone().without(axis);
        if shape[axis] == 0 && !kept.is_empty() {
            return Err(Error::value(format!("the extremum over axis {axis} of size 0 is undefined")));
        }
        Ok(Spec { dtype: DType::I64, shape: kept }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let x = inputs[0].view();
        let axis = crate::normalize_axis(self.axis, x.shape().len())?;
        kernels::arg_extreme(self.max, x, axis, outputs[0].reborrow());
        Ok(())
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(&ArgExtreme { axis: call.axis(self.axis)?, ..self.clone() })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("axis={}", self.axis)
    }
}

impl RowRule for ArgExtreme {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let (rows, own) = (call.classes[0].axis()?.axis, call.inputs[0].shape.axis(self.axis).ok()?);
        if rows == own {
            return None;
        }
        call.independent(&[Some(rows)], &[Some(rows - usize::from(own < rows))])
    }
}

#[track_caller]
fn arg_extreme(max: bool, x: Tensor, axis: Option<isize>) -> Result<Tensor> {
    match axis {
        Some(axis) => apply(&ArgExtreme { max, axis }, [x]),
        None => apply(&ArgExtreme { max, axis: 0 }, [reshape(x, &[-1])?]),
    }
}

/// The index of the maximum along an axis (`int64`), the first if there are several; without an axis, the index into
/// the flattened tensor. NaN is ignored, as in TensorFlow; of nothing but NaN it is 0.
#[track_caller]
pub fn argmax(x: impl Into<Tensor>, axis: impl Into<Option<isize>>) -> Result<Tensor> {
    arg_extreme(true, x.into(), axis.into())
}

/// The index of the minimum along an axis (`int64`), the first if there are several; without an axis, the index into
/// the flattened tensor. NaN is ignored, as in TensorFlow; of nothing but NaN it is 0.
#[track_caller]
pub fn argmin(x: impl Into<Tensor>, axis: impl Into<Option<isize>>) -> Result<Tensor> {
    arg_extreme(false, x.into(), axis.into())
}

fn with_elements() -> Vec<Vec<ArgValue>> {
    // The extremum of no elements is an error.
    let has_elements = |args: &Vec<ArgValue>| !matches!(&args[0], ArgValue::Tensor(x) if x.is_empty());
    reductions(dtypes::ALL, -30.0, 30.0).into_iter().filter(has_elements).collect()
}

fn invalid_extremum() -> Vec<InvalidArgs> {
    let empty = || ramp(DType::F32, &[2, 0], 0.0, 1.0);
    let mut bad = invalid_axes();
    bad.push(InvalidArgs::new(
        vec![empty(), ArgValue::Int(1)],
        ErrorKind::Value,
        "axis of size 0 is undefined",
    ));
    bad
}

fn arguments() -> Vec<Vec<ArgValue>> {
    let mut samples = Vec::new();
    for &dtype in dtypes::ALL {
        samples.push(vec![ramp(dtype, &[7], -30.0, 30.0), ArgValue::Int(0)]);
        samples.push(vec![ramp(dtype, &[3, 4, 2], -30.0, 30.0), ArgValue::Int(1)]);
        samples.push(vec![ramp(dtype, &[3, 4], -30.0, 30.0), ArgValue::Int(-1)]);
        samples.push(vec![ramp(dtype, &[3, 4], -30.0, 30.0), ArgValue::None]);
        samples.push(vec![ramp(dtype, &[0, 4], -30.0, 30.0), ArgValue::Int(1)]);
    }
    samples.push(vec![
        crate::ops::sample::of(DType::F32, &[4], &[1.0, f64::NAN, 3.0, f64::NAN]),
        ArgValue::Int(0),
    ]);
    samples
}

fn invalid_axis() -> Vec<InvalidArgs> {
    let bad = |shape: &[usize], axis, kind, message| {
        InvalidArgs::new(vec![ramp(DType::F32, shape, 0.0, 1.0), ArgValue::Int(axis)], kind, message)
    };
    vec![
        bad(&[2, 3], 2, ErrorKind::Axis, "axis must be in [-2, 2), got 2"),
        bad(&[], 0, ErrorKind::Axis, "a scalar has no axes"),
        bad(&[2, 0], 1, ErrorKind::Value, "the extremum over axis 1 of size 0 is undefined"),
    ]
}

const ARG: &[Param] = &[Param::tensor("x"), Param::optional("axis", ParamKind::Int, "None")];

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "max",
        Param::REDUCTION,
        |a| one(max(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy("np.max(x, axis=axes, keepdims=keepdims)"),
        Samples::List(with_elements),
    )
    .refuses(invalid_extremum),
    OpEntry::new(
        "min",
        Param::REDUCTION,
        |a| one(min(a.tensor(0)?, a.axes(1)?.as_deref(), a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy("np.min(x, axis=axes, keepdims=keepdims)"),
        Samples::List(with_elements),
    )
    .refuses(invalid_extremum),
    OpEntry::new(
        "argmax",
        ARG,
        |a| one(argmax(a.tensor(0)?, a.int_or(1)?.map(|axis| axis as isize))),
        Reference::Numpy(
            "np.argmax(np.where(x == x, x, -np.inf if x.dtype.kind == 'f' else 0).astype(x.dtype), axis)",
        ),
        Samples::List(arguments),
    )
    .refuses(invalid_axis),
    OpEntry::new(
        "argmin",
        ARG,
        |a| one(argmin(a.tensor(0)?, a.int_or(1)?.map(|axis| axis as isize))),
        Reference::Numpy(
            "np.argmin(np.where(x == x, x, np.inf if x.dtype.kind == 'f' else 0).astype(x.dtype), axis)",
        ),
        Samples::List(arguments),
    )
    .refuses(invalid_axis),
];
