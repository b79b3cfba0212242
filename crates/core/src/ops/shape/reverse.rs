//! Reversal along axes.

use crate::error::Result;
use crate::op::{Kernel, Op, Spec, Specs, ViewOp, VmapCall};
use crate::ops::sample::{dtypes, invalid_axes, ramp};
use crate::ops::{ArgValue, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Differentiable, Gradients, Layout, Outputs, Saves, Set, Tensor, VjpCall, apply};

#[derive(Clone, Debug)]
struct Reverse {
    axes: Vec<isize>,
}

impl Op for Reverse {
    fn name(&self) -> &'static str {
        "reverse"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        inputs[0].shape.axes(&self.axes)?;
        Ok(inputs[0].clone().into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(&Reverse { axes: call.axes(&self.axes)? })
    }

    fn attributes(&self) -> String {
        format!("axis={:?}", self.axes)
    }
}

impl ViewOp for Reverse {
    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        let axes = input.shape.axes(&self.axes).ok()?;
        Some(axes.iter().fold(input.clone(), |layout, &axis| {
            let dim = layout.shape[axis];
            layout.range(axis, dim.saturating_sub(1), dim, -1)
        }))
    }
}

impl Differentiable for Reverse {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, g| reverse(g, &self.axes))
    }
}

/// Reverses the order of elements along axes, as a view.
///
/// ```
/// use taut_core::{Tensor, ops::shape::reverse};
/// let x = Tensor::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// assert_eq!(reverse(&x, &[1])?.to_vec::<i32>()?, [2, 1, 4, 3]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn reverse(tensor: impl Into<Tensor>, axis: &[isize]) -> Result<Tensor> {
    apply(&Reverse { axes: axis.to_vec() }, [tensor.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "reverse",
    &[Param::tensor("tensor"), Param::new("axis", ParamKind::Ints)],
    |a| one(reverse(a.tensor(0)?, &a.axes(1)?.unwrap_or_default())),
    Reference::Numpy("np.flip(tensor, axis)"),
    Samples::List(|| {
        let cases: [(&[usize], &[i64]); 8] = [
            (&[], &[]),
            (&[5], &[0]),
            (&[1], &[-1]),
            (&[2, 3], &[1]),
            (&[2, 3], &[0, 1]),
            (&[2, 3, 4], &[-1, 0]),
            (&[2, 3], &[]),
            (&[2, 0], &[0, 1]),
        ];
        let with =
            |dtype| cases.map(|(x, axes)| vec![ramp(dtype, x, -4.0, 4.0), ArgValue::Ints(axes.to_vec())]);
        dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
    }),
)
.refuses(invalid_axes)];
