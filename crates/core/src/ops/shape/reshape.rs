//! Reshaping.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Kernel, Op, Spec, Specs, ViewOp, VmapCall};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::vmap::single_output;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowPart, RowRule, RowSplit, view_rows};
use crate::{DType, Differentiable, Gradients, Layout, Outputs, Saves, Set, Shape, Tensor, VjpCall, apply};
use std::sync::Arc;

#[derive(Clone, Debug)]
struct Reshape {
    shape: Vec<isize>,
}

impl Reshape {
    /// The shape with a -1 replaced by the inferred size.
    fn resolve(&self, from: &Shape) -> Result<Shape> {
        if let Some(&dim) = self.shape.iter().find(|&&dim| dim < -1) {
            return Err(Error::shape(format!("dimension must be >= 0, or -1 to be inferred, got {dim}")));
        }
        if self.shape.iter().filter(|&&dim| dim == -1).count() > 1 {
            return Err(Error::shape(format!("only one dimension can be -1, got shape {:?}", self.shape)));
        }
        let len = from.len();
        let known = (self.shape.iter().filter(|&&dim| dim != -1))
            .try_fold(1usize, |known, &dim| known.checked_mul(dim as usize));
        let fits = match known {
            // Without elements any size fits: the other sizes are kept, so that rows of 3 stay rows of 3 if there are none.
            Some(0) if self.shape.contains(&-1) => (len == 0).then(|| {
                let kept: usize = from.iter().filter(|&&dim| dim != 0).product();
                let wanted = self.shape.iter().filter(|&&dim| dim > 0).map(|&dim| dim as usize);
                kept / wanted.fold(1usize, usize::saturating_mul)
            }),
            Some(known) if self.shape.contains(&-1) => len.is_multiple_of(known).then(|| len / known),
            known => known.filter(|&known| known == len),
        };
        let Some(missing) = fits else {
            return Err(Error::shape(format!("cannot reshape {len} elements to shape {:?}", self.shape)));
        };
        Ok(self.shape.iter().map(|&dim| if dim == -1 { missing } else { dim as usize }).collect())
    }
}

/// The op that reshapes to this shape.
pub(crate) fn reshape_op(shape: &Shape) -> Arc<dyn Op> {
    Arc::new(Reshape { shape: shape.iter().map(|&dim| dim as isize).collect() })
}

impl Op for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(Spec { dtype: inputs[0].dtype, shape: self.resolve(&inputs[0].shape)? }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        single_output(reshape_to(&call.inputs[0], &call.batched_shape(&self.resolve(&call.shape(0))?)))
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("shape={:?}", self.shape)
    }
}

impl RowRule for Reshape {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        // By strides, as every view.
        view_rows(self, call)
    }

    fn resized(&self, part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        Some(reshape_op(&part.outputs[0].shape))
    }
}

impl ViewOp for Reshape {
    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        input.reshape(&self.resolve(&input.shape).ok()?)
    }
}

impl Differentiable for Reshape {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        reshape_gradient(call)
    }
}

/// Reshapes a tensor, keeping its elements in row-major order; one dimension may be -1 and is inferred. A view, or a copy
/// if no strides describe the result.
///
/// ```
/// use taut_core::{Tensor, ops::shape::reshape};
/// let x = Tensor::from_slice(&[1, 2, 3, 4, 5, 6], [2, 3])?;
/// assert_eq!(reshape(&x, &[3, -1])?.shape(), &[3, 2]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn reshape(x: impl Into<Tensor>, shape: &[isize]) -> Result<Tensor> {
    apply(&Reshape { shape: shape.to_vec() }, [x.into()])
}

/// The gradient of ops that only change the shape.
pub(super) fn reshape_gradient(call: &mut VjpCall<'_>) -> Result<Gradients> {
    call.first(|call, g| reshape_to(g, call.input_shape(0)))
}

/// As [`reshape`], without an inferred dimension.
#[track_caller]
pub(crate) fn reshape_to(x: impl Into<Tensor>, shape: &Shape) -> Result<Tensor> {
    apply(&Reshape { shape: shape.iter().map(|&dim| dim as isize).collect() }, [x.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "reshape",
    &[Param::tensor("x"), Param::new("shape", ParamKind::Ints)],
    |a| one(reshape(a.tensor(0)?, &a.axes(1)?.unwrap_or_default())),
    Reference::Numpy("np.reshape(x, shape)"),
    Samples::List(|| {
        let cases: [(&[usize], &[i64]); 6] = [
            (&[2, 3], &[3, 2]),
            (&[2, 3, 4], &[6, -1]),
            (&[2, 3, 4], &[2, 1, 12, 1]),
            (&[], &[1, 1]),
            (&[1], &[]),
            (&[0, 3], &[3, 0]),
        ];
        let with =
            |dtype| cases.map(|(from, to)| vec![ramp(dtype, from, -4.0, 4.0), ArgValue::Ints(to.to_vec())]);
        dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
    }),
)
.refuses(|| {
    let bad = |shape: &[i64], message| {
        let args = vec![ramp(DType::F32, &[2, 3], 0.0, 1.0), ArgValue::Ints(shape.to_vec())];
        InvalidArgs::new(args, ErrorKind::Shape, message)
    };
    vec![
        bad(&[4], "cannot reshape 6 elements to shape [4]"),
        bad(&[-1, -1], "only one dimension can be -1"),
        bad(&[-2, 3], "dimension must be >= 0, or -1 to be inferred, got -2"),
        bad(&[-1, 0], "cannot reshape 6 elements to shape [-1, 0]"),
        bad(&[i64::MAX, i64::MAX], "cannot reshape 6 elements"),
    ]
})];
