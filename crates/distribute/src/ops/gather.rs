//! The tensors of all ranks, one after the other.

use super::{EFFECTS, attributes, bytes_of, halving};
use crate::group::{CallInfo, Group};
use crate::ops::reduce::{ReduceOp, reduce_scatter};
use taut_core::{
    Differentiable, Effects, Error, Gradients, Kernel, Op, Result, Saves, Set, Spec, Specs, Tensor, Traffic,
    VjpCall, apply, source_location,
};
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

#[derive(Clone, Debug)]
struct AllGather {
    group: Group,
    at: Location,
}

/// The tensors of all ranks joined along the first axis, in the order of ranks, on every rank. All ranks give the same dtype and
/// shape. The gradient is that of [`reduce_scatter`].
#[track_caller]
pub fn all_gather(x: impl Into<Tensor>, group: &Group) -> Result<Tensor> {
    let at = source_location(Location::caller());
    apply(&AllGather { group: group.clone(), at }, [x.into()])
}

impl Op for AllGather {
    fn name(&self) -> &'static str {
        "all_gather"
    }

    fn attributes(&self) -> String {
        attributes(&self.group)
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let mut shape = inputs[0].shape.to_vec();
        let Some(rows) = shape.first_mut() else {
            return Err(Error::shape("expected rank >= 1, got a scalar").help("use expand_dims first"));
        };
        *rows = rows.checked_mul(self.group.size()).ok_or_else(|| {
            Error::shape(format!(
                "{} times {rows} rows are more than memory has addresses",
                self.group.size()
            ))
        })?;
        Ok(Spec::new(inputs[0].dtype, shape).into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (own, rank) = (bytes_of(&inputs[0])?, self.group.rank());
        let (dtype, elements) = (outputs[0].dtype(), outputs[0].len());
        let call = CallInfo { name: "all_gather", dtype, elements, detail: 0, at: self.at };
        let out = outputs[0].bytes();
        out[rank * own.len()..(rank + 1) * own.len()].copy_from_slice(own);
        self.group.all_gather_bytes(call, own.len(), out)
    }

    fn effects(&self) -> Effects {
        EFFECTS
    }

    fn traffic(&self, inputs: &[&Spec]) -> Option<Traffic> {
        let ranks = self.group.size();
        Some(halving(ranks, (inputs[0].bytes() as u64).saturating_mul(ranks as u64)))
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for AllGather {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, gradient| reduce_scatter(gradient, ReduceOp::Sum, &self.group))
    }
}
