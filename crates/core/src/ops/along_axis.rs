//! Adding to elements by their index along an axis: the gradient of reading them.

use crate::error::{Error, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::index::take_along_axis;
use crate::ops::indices::{check_integers, update_cost};
use crate::ops::unary::neg;
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{Outputs, Tensor, apply};
use taut_kernels::index::{self, Scatter};
use taut_kernels::{Arg, ViewMut, elementwise};

/// Inputs: a tensor, indices of its shape except on the axis, and an update per index. The output is the tensor with every update
/// added at its index, or subtracted.
#[derive(Clone, Debug)]
struct AddAlongAxis {
    axis: usize,
    subtract: bool,
}

impl Op for AddAlongAxis {
    fn name(&self) -> &'static str {
        if self.subtract { "subtract_along_axis" } else { "add_along_axis" }
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (tensor, indices, updates) = (inputs[0], inputs[1], inputs[2]);
        check_integers("indices", indices)?;
        tensor.shape.axis(self.axis as isize)?;
        let (shape, dims) = (&tensor.shape, &indices.shape);
        let fits = dims.rank() == shape.rank() && dims.clone().with(self.axis, shape[self.axis]) == *shape;
        if !fits || updates.shape != *dims || updates.dtype != tensor.dtype {
            let message = format!(
                "indices and updates must have the shape of the tensor except on axis {}, got {tensor}, {indices} and {updates}",
                self.axis
            );
            return Err(Error::shape(message));
        }
        Ok(tensor.clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        if let Arg::View(tensor) = inputs[0] {
            elementwise::copy(tensor, outputs[0].reborrow());
        }
        let code = if self.subtract { Scatter::Sub } else { Scatter::Add };
        Ok(index::put_along_axis(code, outputs[0].reborrow(), inputs[1].view(), inputs[2].view(), self.axis)?)
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn cost(&self, inputs: &[&Spec], _outputs: &[Spec]) -> Cost {
        update_cost(inputs[1], inputs[2])
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_batched(&AddAlongAxis { axis: self.axis + 1, ..self.clone() })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("axis={}", self.axis)
    }
}

impl RowRule for AddAlongAxis {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let Some((_, rows)) = call.first_rows() else {
            let sums = call.is_partial_sum(0) && call.is_same(1) && call.is_partial_sum(2);
            return if sums { call.linear() } else { None };
        };
        if rows.axis == self.axis {
            None
        } else {
            call.independent(&[Some(rows.axis); 3], &[Some(rows.axis)])
        }
    }
}

impl Differentiable for AddAlongAxis {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::inputs([1]))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let mut gradients = Gradients::from_elem(None, 3);
        let Some(g) = call.take_gradient(0) else { return Ok(gradients) };
        if call.wants(2) {
            let taken = take_along_axis(&g, call.input(1)?, self.axis as isize)?;
            gradients[2] = Some(if self.subtract { neg(taken)? } else { taken }.into());
        }
        gradients[0] = call.wants(0).then(|| g.into());
        Ok(gradients)
    }
}

/// Adds each update to the element of `tensor` at its index along the axis.
#[track_caller]
pub(super) fn add_along_axis(
    tensor: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: usize,
) -> Result<Tensor> {
    apply(&AddAlongAxis { axis, subtract: false }, [tensor, indices, updates])
}

/// Subtracts each update from the element of `tensor` at its index along the axis.
#[track_caller]
pub(super) fn subtract_along_axis(
    tensor: Tensor,
    indices: Tensor,
    updates: Tensor,
    axis: usize,
) -> Result<Tensor> {
    apply(&AddAlongAxis { axis, subtract: true }, [tensor, indices, updates])
}
