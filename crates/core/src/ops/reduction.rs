//! Folding axes away: ops that differ only in a kernel's code and in which types they take.

use crate::apply::{Outputs, apply};
use crate::error::{Error, ErrorKind, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Form, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{equal, maximum, where_};
use crate::ops::shape::reshape_to;
use crate::ops::unary::{cast, sqrt};
use crate::promote::float_of;
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use taut_kernels::reduce::{self as kernels, Reduce};
use taut_kernels::{Arg, Element, ViewMut, dispatch};

/// The axes that a reduction folds away: one, several, or all (`None`). Negative ones count from the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Over(pub Option<SmallVec<[isize; 4]>>);

impl Over {
    /// A mark per dimension.
    pub(super) fn marks(&self, shape: &Shape) -> Result<SmallVec<[bool; 8]>> {
        let mut marks = SmallVec::from_elem(self.0.is_none(), shape.rank());
        if let Some(axes) = &self.0 {
            shape.axes(axes)?.iter().for_each(|&axis| marks[axis] = true);
        }
        Ok(marks)
    }

    /// How many elements are folded into one.
    pub(super) fn count(&self, shape: &Shape) -> Result<usize> {
        let marks = self.marks(shape)?;
        Ok(shape.iter().zip(&marks).filter(|&(_, &folded)| folded).map(|(&dim, _)| dim).product())
    }
}

impl From<isize> for Over {
    fn from(axis: isize) -> Over {
        Over(Some(SmallVec::from_slice(&[axis])))
    }
}

impl From<&[isize]> for Over {
    fn from(axes: &[isize]) -> Over {
        Over(Some(SmallVec::from_slice(axes)))
    }
}

impl<const N: usize> From<&[isize; N]> for Over {
    fn from(axes: &[isize; N]) -> Over {
        Over::from(&axes[..])
    }
}

impl<const N: usize> From<[isize; N]> for Over {
    fn from(axes: [isize; N]) -> Over {
        Over::from(&axes[..])
    }
}

impl From<Option<&[isize]>> for Over {
    fn from(axes: Option<&[isize]>) -> Over {
        axes.map_or_else(Over::default, Over::from)
    }
}

/// An op that folds axes away.
#[derive(Clone, Debug)]
pub struct Reduction {
    /// Its name.
    pub name: &'static str,
    /// What it computes.
    pub code: Folding,
    /// The axes it folds away.
    pub over: Over,
    /// Its derivative, if it has one.
    pub rule: Option<&'static FoldRule>,
}

/// The derivative of a reduction.
#[derive(Debug)]
pub struct FoldRule {
    /// What it keeps of a call, as [`Differentiable::saves`].
    pub saves: fn(Set) -> Saves,
    /// The further value it keeps, as [`Differentiable::residual`].
    pub residual: Option<fn(&Reduction, &VjpCall<'_>) -> Result<Tensor>>,
    /// The gradient of the input, from that of the output with the folded axes kept as axes of size one.
    pub partial: fn(&Reduction, &VjpCall<'_>, Tensor) -> Result<Tensor>,
}

impl Reduction {
    /// The result, or something of its shape, with the folded axes as axes of size one, so that it broadcasts.
    #[track_caller]
    pub(super) fn unfold(&self, folded: impl Into<Tensor>, input: &Shape) -> Result<Tensor> {
        let marks = self.over.marks(input)?;
        let kept: Shape =
            input.iter().zip(&marks).map(|(&dim, &folded)| if folded { 1 } else { dim }).collect();
        reshape_to(folded, &kept)
    }
}

/// What a reduction computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Folding {
    /// One of the kernel's folds.
    Fold(Reduce),
    /// The variance, with `correction` subtracted from the count.
    Variance {
        /// 0 for a population, 1 for a sample.
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
            Folding::Fold(code) => code.result(*dtype),
            Folding::Variance { .. } => dtype.is_float().then_some(*dtype),
        };
        let result = result.ok_or_else(|| Error::dtype(format!("{dtype} is not supported")))?;
        let kept: Shape =
            shape.iter().zip(&marks).filter(|&(_, &folded)| !folded).map(|(&dim, _)| dim).collect();
        if matches!(self.code, Folding::Fold(Reduce::Max | Reduce::Min))
            && !kept.is_empty()
            && self.over.count(shape)? == 0
        {
            return Err(Error::new(
                ErrorKind::Value,
                "nothing has no extreme: an axis of size 0 is folded away",
            ));
        }
        Ok(Spec { dtype: result, shape: kept }.into())
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
            Folding::Fold(code) => kernels::reduce(code, x, &marks, out, scratch),
            Folding::Variance { correction } => kernels::var(x, &marks, correction, out, scratch),
        }
        Ok(())
    }

    fn form(&self, inputs: &[&Spec]) -> Form<'_> {
        match (self.code, self.over.marks(&inputs[0].shape)) {
            (Folding::Fold(code), Ok(axes)) => Form::Fold { code, axes },
            _ => Form::Opaque,
        }
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let marks = self.over.marks(&call.shape(0))?;
        let axes = (1..).zip(marks).filter(|&(_, folded)| folded).map(|(axis, _)| axis).collect();
        call.plain(&Reduction { over: Over(Some(axes)), ..self.clone() })
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        Cost { flops: inputs[0].shape.len() as u64, bytes: Cost::traffic(inputs, outputs) }
    }

    fn attributes(&self) -> String {
        let axes = self.over.0.as_ref().map_or_else(|| "all".into(), |axes| format!("{axes:?}"));
        match self.code {
            Folding::Variance { correction } if correction != 0.0 => {
                format!("axes={axes}, correction={correction}")
            }
            _ => format!("axes={axes}"),
        }
    }
}

impl Differentiable for Reduction {
    fn saves(&self, wanted: Set) -> Option<Saves> {
        self.rule.map(|rule| (rule.saves)(wanted))
    }

    fn residual(&self, call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        self.rule.and_then(|rule| rule.residual).map(|residual| residual(self, call)).transpose()
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let Some(rule) = self.rule else { return Ok(Gradients::new()) };
        call.first(|call, g| (rule.partial)(self, call, self.unfold(g, call.input_shape(0))?))
    }
}

/// Folds axes away, and keeps them as axes of size one if asked to.
#[inline]
#[track_caller]
pub(super) fn reduce(
    name: &'static str,
    code: Folding,
    x: Tensor,
    over: Over,
    keepdims: bool,
    rule: Option<&'static FoldRule>,
) -> Result<Tensor> {
    if !keepdims {
        return apply(&Reduction { name, code, over, rule }, [x]);
    }
    let shape = x.shape().clone();
    let op = Reduction { name, code, over, rule };
    op.unfold(apply(&op, [x])?, &shape)
}

/// As [`reduce`], in floating point.
#[inline]
#[track_caller]
pub(super) fn reduce_float(
    name: &'static str,
    code: Folding,
    x: Tensor,
    over: Over,
    keep: bool,
    rule: Option<&'static FoldRule>,
) -> Result<Tensor> {
    // A mean of integers is a float64 in NumPy, whatever their width.
    let dtype = if x.dtype().is_float() { x.dtype() } else { float_of(crate::DType::I64) };
    reduce(name, code, cast(x, dtype)?, over, keep, rule)
}

/// The square root of lengths, with the gradient 0 at 0: there the true one is infinite, times the zeros it is made of.
#[track_caller]
pub(super) fn root(squares: Tensor) -> Result<Tensor> {
    let (zero, usable) = away_from_zero(squares)?;
    where_(zero, 0, sqrt(usable)?)
}

/// Where x is 0, and x with 1 in those places: for a function that is 0 at 0 and has no gradient there.
#[track_caller]
pub(super) fn away_from_zero(x: Tensor) -> Result<(Tensor, Tensor)> {
    let zero = equal(&x, 0)?;
    let usable = where_(&zero, 1, x)?;
    Ok((zero, usable))
}

/// The same but for minus infinity, which becomes the least number: so that it can be subtracted from itself.
#[track_caller]
pub(super) fn above_minus_infinity(x: &Tensor) -> Result<Tensor> {
    let least = dispatch!(x.dtype(), T in floats => T::MIN.to_f64());
    maximum(x, least)
}
