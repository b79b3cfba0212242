//! Broadcasting to a shape, as a view.

use crate::error::{ErrorKind, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Kernel, Op, Spec, Specs, ViewOp, VmapCall};
use crate::ops::elementwise::sum_to;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::vmap::single_output;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowPart, RowRule, RowSplit, view_rows};
use crate::{DType, Layout, Outputs, Shape, Tensor, apply};
use std::sync::Arc;

#[derive(Clone, Debug)]
struct BroadcastTo {
    shape: Shape,
}

impl Op for BroadcastTo {
    fn name(&self) -> &'static str {
        "broadcast_to"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        Ok(Spec { dtype: *dtype, shape: Layout::contiguous(shape.clone()).broadcast(&self.shape)?.shape }
            .into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        let input = call.input_of_rank(0, self.shape.rank())?;
        single_output(broadcast_to(input, call.batched_shape(&self.shape)))
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("shape={}", self.shape)
    }
}

impl RowRule for BroadcastTo {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        // By strides, as every view.
        view_rows(self, call)
    }

    fn resized(&self, part: &RowPart<'_>) -> Option<Arc<dyn Op>> {
        Some(Arc::new(BroadcastTo { shape: part.outputs[0].shape.clone() }))
    }
}

impl ViewOp for BroadcastTo {
    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        input.broadcast(&self.shape).ok()
    }
}

impl Differentiable for BroadcastTo {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| sum_to(g, call.input_shape(0)))
    }
}

/// Broadcasts a tensor to `shape`: repeats axes of size one and adds leading axes, as a view.
///
/// ```
/// use taut_core::{Tensor, ops::shape::broadcast_to};
/// let x = Tensor::from_slice(&[1, 2], [2, 1])?;
/// assert_eq!(broadcast_to(&x, [2, 3])?.to_vec::<i32>()?, [1, 1, 1, 2, 2, 2]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn broadcast_to(input: impl Into<Tensor>, shape: impl Into<Shape>) -> Result<Tensor> {
    apply(&BroadcastTo { shape: shape.into() }, [input.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "broadcast_to",
    &[Param::tensor("input"), Param::new("shape", ParamKind::Ints)],
    |a| one(broadcast_to(a.tensor(0)?, a.shape(1)?)),
    Reference::Numpy("np.broadcast_to(input, shape)"),
    Samples::List(|| {
        let cases: [(&[usize], &[i64]); 8] = [
            (&[], &[]),
            (&[], &[2, 3]),
            (&[3], &[2, 3]),
            (&[2, 1], &[2, 4]),
            (&[2, 1, 3], &[4, 2, 5, 3]),
            (&[1], &[0]),
            (&[0, 1], &[2, 0, 3]),
            (&[2, 3], &[2, 3]),
        ];
        let with =
            |dtype| cases.map(|(from, to)| vec![ramp(dtype, from, -4.0, 4.0), ArgValue::Ints(to.to_vec())]);
        dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
    }),
)
.refuses(|| {
    let bad = |from: &[usize], to: &[i64], message| {
        InvalidArgs::new(
            vec![ramp(DType::F32, from, 0.0, 1.0), ArgValue::Ints(to.to_vec())],
            ErrorKind::Shape,
            message,
        )
    };
    vec![
        bad(&[2, 3], &[3], "shape [2, 3] does not broadcast to [3]"),
        bad(&[2], &[3], "shape [2] does not broadcast to [3]"),
        bad(&[2], &[0], "shape [2] does not broadcast to [0]"),
        bad(&[1], &[-1], "dimension must be >= 0, got -1"),
        bad(&[1], &[i64::MAX, i64::MAX], "more elements than memory has addresses"),
    ]
})];
