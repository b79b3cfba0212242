//! The tensor of one rank on every rank.

use super::{EFFECTS, attributes, fill};
use crate::group::{CallInfo, Group};
use crate::ops::reduce::{ReduceOp, all_reduce};
use taut_core::ops::creation::zeros_like;
use taut_core::{
    Differentiable, Effects, Error, Gradients, Kernel, Op, Result, Saves, Set, Spec, Specs, Tensor, Traffic,
    VjpCall, apply, source_location,
};
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

#[derive(Clone, Debug)]
struct Broadcast {
    group: Group,
    root: usize,
    at: Location,
}

/// The tensor of rank `root`, on every rank. All ranks give the same dtype and shape; the values of the others are not used. In the
/// memory of `x`, if that is passed by value. The gradient of the root's tensor is the sum of the gradients over ranks, and that of
/// the others is zero.
#[track_caller]
pub fn broadcast(x: impl Into<Tensor>, root: usize, group: &Group) -> Result<Tensor> {
    let at = source_location(Location::caller());
    apply(&Broadcast { group: group.clone(), root, at }, [x.into()])
}

impl Op for Broadcast {
    fn name(&self) -> &'static str {
        "broadcast"
    }

    fn attributes(&self) -> String {
        format!("root={}, {}", self.root, attributes(&self.group))
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (root, ranks) = (self.root, self.group.size());
        if root >= ranks {
            return Err(Error::value(format!("root must be in [0, {ranks}), got {root}")));
        }
        Ok(inputs[0].clone().into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        fill(&inputs[0], &mut outputs[0])?;
        let (dtype, elements) = (outputs[0].dtype(), outputs[0].len());
        let detail = self.root as u64;
        let call = CallInfo { name: "broadcast", dtype, elements, detail, at: self.at };
        self.group.broadcast_bytes(call, self.root, outputs[0].bytes())
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn effects(&self) -> Effects {
        EFFECTS
    }

    fn traffic(&self, inputs: &[&Spec]) -> Option<Traffic> {
        let (ranks, bytes) = (self.group.size(), inputs[0].bytes() as u64);
        // The root sends to one rank per level of the tree.
        let levels = u64::from(ranks.next_power_of_two().ilog2());
        let messages = levels * bytes.div_ceil(super::MESSAGE).max(1);
        Some(Traffic { ranks, messages, bytes: levels.saturating_mul(bytes) })
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for Broadcast {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, gradient| {
            let sum = all_reduce(gradient, ReduceOp::Sum, &self.group)?;
            if self.group.rank() == self.root { Ok(sum) } else { zeros_like(sum, None) }
        })
    }
}
