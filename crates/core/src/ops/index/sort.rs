//! Sorting.

use crate::error::Result;
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::indices::sum_along_axis;
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{ArgValue, Args, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{
    DType, Differentiable, ErrorKind, Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply, normalize_axis,
};
use taut_kernels::{Arg, ViewMut, sort as kernels};

#[derive(Clone, Debug)]
struct Sort {
    axis: isize,
    descending: bool,
    /// Whether the result is the sorting indices (argsort) instead of the elements.
    indices: bool,
}

impl Op for Sort {
    fn name(&self) -> &'static str {
        if self.indices { "argsort" } else { "sort" }
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        shape.axis(self.axis)?;
        let dtype = if self.indices { DType::I64 } else { *dtype };
        Ok(Spec { dtype, shape: shape.clone() }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (x, out) = (inputs[0].view(), outputs[0].reborrow());
        let axis = normalize_axis(self.axis, x.shape().len())?;
        if self.indices {
            kernels::argsort(x, axis, self.descending, out, scratch);
        } else {
            kernels::sort(x, axis, self.descending, out, scratch);
        }
        Ok(())
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        let Spec { dtype, shape } = inputs[0];
        match shape.axis(self.axis) {
            Ok(axis) if self.indices => kernels::argsort_scratch(shape, axis, DType::I64),
            Ok(axis) => kernels::sort_scratch(*dtype, shape, axis),
            Err(_) => 0,
        }
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(&Sort { axis: call.axis(self.axis)?, ..self.clone() })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("axis={}{}", self.axis, if self.descending { ", descending" } else { "" })
    }
}

impl RowRule for Sort {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let own = call.inputs[0].shape.axis(self.axis).ok()?;
        call.independent_axis(|axis| axis != own)
    }
}

impl Differentiable for Sort {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        // The backward pass sorts again: the saved indices would be up to eight times as large as the input.
        (!self.indices).then_some(Saves::INPUT)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let shape = call.input_shape(0);
            let indices = argsort(call.input(0)?, self.axis, self.descending)?;
            sum_along_axis(g, &indices, shape.axis(self.axis)?, shape)
        })
    }
}

/// Sorts the elements along an axis. NaN counts as the largest value: it comes last, or first if `descending`.
///
/// ```
/// use taut_core::{Tensor, ops::index::sort};
/// let x = Tensor::from_slice(&[3, 1, 2], [3])?;
/// assert_eq!(sort(&x, -1, true)?.to_vec::<i32>()?, [3, 2, 1]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn sort(x: impl Into<Tensor>, axis: isize, descending: bool) -> Result<Tensor> {
    apply(&Sort { axis, descending, indices: false }, [x.into()])
}

/// The indices (`int64`) that sort the elements along an axis. The sort is stable; NaN counts as the largest value.
#[track_caller]
pub fn argsort(x: impl Into<Tensor>, axis: isize, descending: bool) -> Result<Tensor> {
    apply(&Sort { axis, descending, indices: true }, [x.into()])
}

const PARAMS: &[Param] = &[
    Param::tensor("x"),
    Param::optional("axis", ParamKind::Int, "-1"),
    Param::optional("descending", ParamKind::Bool, "False"),
];

fn options(a: &Args<'_>) -> Result<(isize, bool)> {
    Ok((a.int_or(1)?.unwrap_or(-1) as isize, a.bool_or(2)?.unwrap_or(false)))
}

fn samples() -> Vec<Vec<ArgValue>> {
    let cases: [(&[usize], i64, bool); 7] = [
        (&[0], 0, false),
        (&[1], -1, true),
        (&[40], 0, false),
        (&[40], 0, true),
        (&[3, 4], 0, true),
        (&[2, 5, 3], 1, false),
        (&[2, 0, 3], -1, false),
    ];
    let mut list = Vec::new();
    for &dtype in dtypes::ALL {
        for (x, axis, descending) in cases {
            list.push(vec![ramp(dtype, x, -9.0, 9.0), ArgValue::Int(axis), ArgValue::Bool(descending)]);
        }
        if dtype.is_float() {
            let special = [1.0, f64::NAN, f64::INFINITY, -1.0, f64::NEG_INFINITY, f64::NAN, 1.0, 0.0];
            for descending in [false, true] {
                list.push(vec![of(dtype, &[8], &special), ArgValue::Int(0), ArgValue::Bool(descending)]);
            }
        }
    }
    list
}

fn invalid() -> Vec<InvalidArgs> {
    let bad = |x: &[usize], axis, message| {
        InvalidArgs::new(vec![ramp(DType::F32, x, 0.0, 1.0), ArgValue::Int(axis)], ErrorKind::Axis, message)
    };
    vec![
        bad(&[2], 1, "axis must be in [-1, 1), got 1"),
        bad(&[2], -2, "axis must be in [-1, 1), got -2"),
        bad(&[], -1, "a scalar has no axes, got axis -1"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "sort",
        PARAMS,
        |a| {
            let (axis, descending) = options(a)?;
            one(sort(a.tensor(0)?, axis, descending))
        },
        Reference::Numpy("np.flip(np.sort(x, axis), axis) if descending else np.sort(x, axis)"),
        Samples::List(samples),
    )
    .refuses(invalid),
    OpEntry::new(
        "argsort",
        PARAMS,
        |a| {
            let (axis, descending) = options(a)?;
            one(argsort(a.tensor(0)?, axis, descending))
        },
        // Descending and stable: the reverse of the ascending order of the reverse.
        Reference::Numpy(
            "np.flip(x.shape[axis] - 1 - np.argsort(np.flip(x, axis), axis, kind='stable'), axis) if descending else \
             np.argsort(x, axis, kind='stable')",
        ),
        Samples::List(samples),
    )
    .refuses(invalid),
];
