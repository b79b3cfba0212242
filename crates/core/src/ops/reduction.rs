//! Reductions: ops that differ only in the kernel's code and in their gradient.

use crate::apply::{Outputs, apply};
use crate::error::{Error, ErrorKind, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Form, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{equal, maximum, where_};
use crate::ops::elementwise::holomorphic;
use crate::ops::shape::reshape_to;
use crate::ops::unary::{cast, sqrt};
use crate::promote::float_of;
use crate::rows::{RowCall, RowClass, RowRule, RowSplit};
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use taut_kernels::reduce::{self as kernels, Reduce};
use taut_kernels::{Arg, Element, ViewMut, dispatch};

/// The axes of a reduction: one, several, or all (`None`). Negative axes count from the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReduceAxes(pub Option<SmallVec<[isize; 4]>>);

impl ReduceAxes {
    /// For each dimension, whether it is reduced.
    pub(super) fn marks(&self, shape: &Shape) -> Result<SmallVec<[bool; 8]>> {
        let mut marks = SmallVec::from_elem(self.0.is_none(), shape.rank());
        if let Some(axes) = &self.0 {
            shape.axes(axes)?.iter().for_each(|&axis| marks[axis] = true);
        }
        Ok(marks)
    }

    /// The number of elements reduced to one.
    pub(super) fn count(&self, shape: &Shape) -> Result<usize> {
        let marks = self.marks(shape)?;
        Ok(shape.iter().zip(&marks).filter(|&(_, &reduced)| reduced).map(|(&dim, _)| dim).product())
    }
}

impl From<isize> for ReduceAxes {
    fn from(axis: isize) -> ReduceAxes {
        ReduceAxes(Some(SmallVec::from_slice(&[axis])))
    }
}

impl From<&[isize]> for ReduceAxes {
    fn from(axes: &[isize]) -> ReduceAxes {
        ReduceAxes(Some(SmallVec::from_slice(axes)))
    }
}

impl<const N: usize> From<&[isize; N]> for ReduceAxes {
    fn from(axes: &[isize; N]) -> ReduceAxes {
        ReduceAxes::from(&axes[..])
    }
}

impl<const N: usize> From<[isize; N]> for ReduceAxes {
    fn from(axes: [isize; N]) -> ReduceAxes {
        ReduceAxes::from(&axes[..])
    }
}

impl From<Option<&[isize]>> for ReduceAxes {
    fn from(axes: Option<&[isize]>) -> ReduceAxes {
        axes.map_or_else(ReduceAxes::default, ReduceAxes::from)
    }
}

/// A reduction over axes.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// Its name.
    pub name: &'static str,
    /// The function it computes.
    pub code: ReductionCode,
    /// The axes it reduces.
    pub over: ReduceAxes,
    /// Its gradient, if it is differentiable.
    pub gradient: Option<&'static ReductionGradient>,
}

/// The gradient of a reduction.
#[derive(Debug)]
pub struct ReductionGradient {
    /// The values it saves for backward, as [`Differentiable::saves`].
    pub saves: fn(Set) -> Saves,
    /// The residual computed in the forward pass, as [`Differentiable::residual`].
    pub residual: Option<fn(&Reduction, &VjpCall<'_>) -> Result<Tensor>>,
    /// The gradient with respect to the input, given the output's gradient with the reduced axes kept as size one.
    pub partial: fn(&Reduction, &VjpCall<'_>, Tensor) -> Result<Tensor>,
}

impl Reduction {
    /// Reshapes a tensor of the result's shape so that the reduced axes have size one and it broadcasts against the input.
    #[track_caller]
    pub(super) fn keep_dims(&self, reduced: impl Into<Tensor>, input: &Shape) -> Result<Tensor> {
        let marks = self.over.marks(input)?;
        let kept: Shape =
            input.iter().zip(&marks).map(|(&dim, &reduced)| if reduced { 1 } else { dim }).collect();
        reshape_to(reduced, &kept)
    }
}

/// The function that a reduction computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReductionCode {
    /// One of the kernel's reductions.
    Reduce(Reduce),
    /// The variance, with `correction` subtracted from the count of elements.
    Variance {
        /// 0 for the population variance, 1 for the unbiased sample variance.
        correction: f64,
    },
}

impl Op for Reduction {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        let marks = self.over.marks(shape)?;
        let result = match self.code {
            ReductionCode::Reduce(code) => code.result(*dtype),
            ReductionCode::Variance { .. } => dtype.is_float().then_some(*dtype),
        };
        let result = result.ok_or_else(|| Error::dtype(format!("{dtype} is not supported")))?;
        let kept: Shape =
            shape.iter().zip(&marks).filter(|&(_, &reduced)| !reduced).map(|(&dim, _)| dim).collect();
        if matches!(self.code, ReductionCode::Reduce(Reduce::Max | Reduce::Min))
            && !kept.is_empty()
            && self.over.count(shape)? == 0
        {
            return Err(Error::new(ErrorKind::Value, "the extremum over an axis of size 0 is undefined"));
        }
        Ok(Spec { dtype: result, shape: kept }.into())
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Reduce
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        self.over.marks(&inputs[0].shape).map_or(0, |marks| kernels::reduce_scratch(&inputs[0].shape, &marks))
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (x, out) = (inputs[0].view(), outputs[0].reborrow());
        let marks = self.over.marks(&Shape::from(x.shape()))?;
        match self.code {
            ReductionCode::Reduce(code) => kernels::reduce(code, x, &marks, out, scratch),
            ReductionCode::Variance { correction } => kernels::var(x, &marks, correction, out, scratch),
        }
        Ok(())
    }

    fn form(&self, inputs: &[&Spec]) -> Form<'_> {
        match (self.code, self.over.marks(&inputs[0].shape)) {
            // Fused kernels have no complex numbers.
            (ReductionCode::Reduce(code), Ok(axes)) if !inputs[0].dtype.is_complex() => {
                Form::Reduce { code, axes }
            }
            _ => Form::Opaque,
        }
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let marks = self.over.marks(&call.shape(0))?;
        let axes = (1..).zip(marks).filter(|&(_, reduced)| reduced).map(|(axis, _)| axis).collect();
        call.apply_as_is(&Reduction { over: ReduceAxes(Some(axes)), ..self.clone() })
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        Cost { flops: inputs[0].shape.len() as u64, bytes: Cost::traffic(inputs, outputs) }
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        let axes = self.over.0.as_ref().map_or_else(|| "all".into(), |axes| format!("{axes:?}"));
        match self.code {
            ReductionCode::Variance { correction } if correction != 0.0 => {
                format!("axes={axes}, correction={correction}")
            }
            _ => format!("axes={axes}"),
        }
    }
}

impl RowRule for Reduction {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let marks = self.over.marks(&call.inputs[0].shape).ok()?;
        let code = if let ReductionCode::Reduce(code) = self.code { Some(code) } else { None };
        match call.classes[0] {
            RowClass::Rows(rows) if !marks[rows.axis] => {
                let removed = marks[..rows.axis].iter().filter(|&&reduced| reduced).count();
                call.independent(&[Some(rows.axis)], &[Some(rows.axis - removed)])
            }
            RowClass::Rows(_) => {
                let sum = matches!(code, Some(Reduce::Sum | Reduce::CountNonzero | Reduce::Mean))
                    .then(|| call.linear())?;
                sum.map(|sum| RowSplit { is_mean: code == Some(Reduce::Mean), ..sum })
            }
            RowClass::PartialSum if matches!(code, Some(Reduce::Sum | Reduce::Mean)) => call.linear(),
            _ => None,
        }
    }
}

impl Differentiable for Reduction {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        self.gradient.map(|gradient| (gradient.saves)(wanted))
    }

    fn residual(&self, call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        self.gradient.and_then(|gradient| gradient.residual).map(|residual| residual(self, call)).transpose()
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let Some(gradient) = self.gradient else { return Ok(Gradients::new()) };
        call.first(|call, g| {
            let g = self.keep_dims(g, call.input_shape(0))?;
            holomorphic(g, |g| (gradient.partial)(self, call, g))
        })
    }
}

/// Applies a reduction; with `keepdims`, the reduced axes stay as axes of size one.
#[inline]
#[track_caller]
pub(super) fn reduce(
    name: &'static str,
    code: ReductionCode,
    x: Tensor,
    over: ReduceAxes,
    keepdims: bool,
    gradient: Option<&'static ReductionGradient>,
) -> Result<Tensor> {
    if !keepdims {
        return apply(&Reduction { name, code, over, gradient }, [x]);
    }
    let shape = x.shape().clone();
    let op = Reduction { name, code, over, gradient };
    op.keep_dims(apply(&op, [x])?, &shape)
}

/// As [`reduce`]; integers and bools are converted to `float32` first.
#[inline]
#[track_caller]
pub(super) fn reduce_float(
    name: &'static str,
    code: ReductionCode,
    x: Tensor,
    over: ReduceAxes,
    keep: bool,
    gradient: Option<&'static ReductionGradient>,
) -> Result<Tensor> {
    let dtype = float_of(x.dtype());
    reduce(name, code, cast(x, dtype)?, over, keep, gradient)
}

/// The square root of sums of squares, with gradient 0 at 0, where the chain rule would give infinity times zero.
#[track_caller]
pub(super) fn safe_sqrt(squares: Tensor) -> Result<Tensor> {
    let (zero, usable) = replace_zeros(squares)?;
    where_(zero, 0, sqrt(usable)?)
}

/// The mask `x == 0`, and x with zeros replaced by 1: for functions that are 0 at 0 and not differentiable there.
#[track_caller]
pub(super) fn replace_zeros(x: Tensor) -> Result<(Tensor, Tensor)> {
    let zero = equal(&x, 0)?;
    let usable = where_(&zero, 1, x)?;
    Ok((zero, usable))
}

/// x with minus infinity replaced by the smallest finite number, so that `x - x` is 0, not NaN.
#[track_caller]
pub(super) fn clamp_to_finite_min(x: &Tensor) -> Result<Tensor> {
    let least = dispatch!(x.dtype(), T in floats => T::MIN.to_f64());
    maximum(x, least)
}
