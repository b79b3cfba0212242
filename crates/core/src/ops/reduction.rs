//! Folding axes away: ops that differ only in a kernel's code and in which types they take.

use crate::apply::apply;
use crate::error::{Error, ErrorKind, Result};
use crate::op::{Cost, Kernel, Op, Spec, Specs};
use crate::ops::shape::reshape;
use crate::ops::unary::cast;
use crate::promote::float_of;
use crate::shape::Shape;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use taut_kernels::reduce::{self as kernels, Reduce};
use taut_kernels::{Arg, ViewMut};

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

    fn kernel(&self) -> Kernel {
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

/// Folds axes away, and keeps them as axes of size one if asked to.
#[inline]
#[track_caller]
pub(super) fn reduce(
    name: &'static str,
    code: Folding,
    x: Tensor,
    over: Over,
    keepdims: bool,
) -> Result<Tensor> {
    if !keepdims {
        return apply(&Reduction { name, code, over }, [x]);
    }
    let shape = x.shape().clone();
    let op = Reduction { name, code, over };
    let folded = apply(&op, [x])?;
    let marks = op.over.marks(&shape)?;
    let kept: Vec<isize> =
        shape.iter().zip(&marks).map(|(&dim, &m)| if m { 1 } else { dim as isize }).collect();
    reshape(folded, &kept)
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
) -> Result<Tensor> {
    // A mean of integers is a float64 in NumPy, whatever their width.
    let dtype = if x.dtype().is_float() { x.dtype() } else { float_of(crate::DType::I64) };
    reduce(name, code, cast(x, dtype)?, over, keep)
}
