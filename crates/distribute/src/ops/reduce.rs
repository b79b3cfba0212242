//! Sums over ranks: `all_reduce` and `reduce_scatter`.

use super::{EFFECTS, attributes, bytes_of, check_numbers, fill, halving};
use crate::collective::{Combine, all_reduce_scratch, reduce_scatter_scratch};
use crate::group::{CallInfo, Group};
use crate::ops::gather::all_gather;
use taut_core::ops::binary::mul;
use taut_core::{
    Differentiable, Effects, Error, Gradients, Kernel, Op, Outputs, Result, Saves, Set, Spec, Specs, Tensor,
    Traffic, VjpCall, VmapCall, apply, source_location,
};
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

/// How the values of ranks are combined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReduceOp {
    /// Their sum.
    Sum,
    /// Their mean: of floats only.
    Mean,
    /// The largest.
    Max,
    /// The smallest.
    Min,
}

impl ReduceOp {
    fn combine(self) -> Combine {
        match self {
            ReduceOp::Sum | ReduceOp::Mean => Combine::Sum,
            ReduceOp::Max => Combine::Max,
            ReduceOp::Min => Combine::Min,
        }
    }

    /// Divides the sum of a mean, an elementwise op that fuses with what follows.
    fn scale(self, sum: Tensor, group: &Group) -> Result<Tensor> {
        if self == ReduceOp::Mean && group.size() > 1 { mul(sum, 1.0 / group.size() as f64) } else { Ok(sum) }
    }

    fn check(self, x: &Tensor) -> Result<()> {
        if self == ReduceOp::Mean && !x.dtype().is_float() {
            let message = format!("a mean over ranks must be of floats, got {}", x.dtype());
            return Err(Error::dtype(message).help("cast to a float first, or use ReduceOp::Sum"));
        }
        Ok(())
    }
}

#[derive(Clone, Debug)]
struct AllReduce {
    group: Group,
    how: Combine,
    at: Location,
}

#[derive(Clone, Debug)]
struct ReduceScatter {
    group: Group,
    how: Combine,
    at: Location,
}

/// The tensor combined over all ranks of a group, on every rank. All ranks give the same dtype and shape.
///
/// A sum is added in the order of [`tree_sum`](crate::tree_sum), half precision in `float32`, and has the same bits on every rank.
/// Its gradient is the sum of the gradients over ranks. In the memory of `x`, if that is passed by value.
#[track_caller]
pub fn all_reduce(x: impl Into<Tensor>, how: ReduceOp, group: &Group) -> Result<Tensor> {
    let (x, at) = (x.into(), source_location(Location::caller()));
    how.check(&x).map_err(|error| error.at(at))?;
    let op = AllReduce { group: group.clone(), how: how.combine(), at };
    how.scale(apply(&op, [x])?, group)
}

/// The tensor combined over all ranks, of which each rank gets its part of the first axis: rank `r` of `n` the `r`-th of `n` parts.
///
/// The length of the first axis must be a multiple of the number of ranks. A rank gets the bits that [`all_reduce`] would give.
#[track_caller]
pub fn reduce_scatter(x: impl Into<Tensor>, how: ReduceOp, group: &Group) -> Result<Tensor> {
    let (x, at) = (x.into(), source_location(Location::caller()));
    how.check(&x).map_err(|error| error.at(at))?;
    let op = ReduceScatter { group: group.clone(), how: how.combine(), at };
    how.scale(apply(&op, [x])?, group)
}

fn how_text(how: Combine) -> &'static str {
    match how {
        Combine::Sum => "sum",
        Combine::Max => "max",
        Combine::Min => "min",
    }
}

impl AllReduce {
    fn call(&self, output: &ViewMut<'_>) -> CallInfo {
        let name = match self.how {
            Combine::Sum => "all_reduce sum",
            Combine::Max => "all_reduce max",
            Combine::Min => "all_reduce min",
        };
        CallInfo { name, dtype: output.dtype(), elements: output.len(), detail: 0, at: self.at }
    }
}

impl Op for AllReduce {
    fn name(&self) -> &'static str {
        "all_reduce"
    }

    fn attributes(&self) -> String {
        format!("{}, {}", how_text(self.how), attributes(&self.group))
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        check_numbers(inputs[0])?;
        Ok(inputs[0].clone().into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        fill(&inputs[0], &mut outputs[0])?;
        let call = self.call(&outputs[0]);
        self.group.all_reduce_bytes(call, self.how, outputs[0].bytes(), scratch)
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        all_reduce_scratch(self.group.size(), inputs[0].dtype, inputs[0].shape.len())
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn effects(&self) -> Effects {
        EFFECTS
    }

    fn traffic(&self, inputs: &[&Spec]) -> Option<Traffic> {
        let half = halving(self.group.size(), inputs[0].bytes() as u64);
        Some(Traffic { messages: 2 * half.messages, bytes: 2 * half.bytes, ..half })
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        apply(self, [call.inputs[0].clone()]).map(|output| Some(Outputs::from_iter([output])))
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        (self.how == Combine::Sum).then_some(self as &dyn Differentiable)
    }
}

impl Differentiable for AllReduce {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, gradient| all_reduce(gradient, ReduceOp::Sum, &self.group))
    }
}

impl Op for ReduceScatter {
    fn name(&self) -> &'static str {
        "reduce_scatter"
    }

    fn attributes(&self) -> String {
        format!("{}, {}", how_text(self.how), attributes(&self.group))
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        check_numbers(inputs[0])?;
        let (mut spec, ranks) = (inputs[0].clone(), self.group.size());
        let Some(&rows) = spec.shape.first() else {
            return Err(Error::shape("expected rank >= 1, got a scalar"));
        };
        if !rows.is_multiple_of(ranks) {
            let message =
                format!("the first axis must be a multiple of the number of ranks, {ranks}, got {rows}");
            return Err(Error::shape(message).help("pad it, or use all_reduce"));
        }
        let mut shape = spec.shape.to_vec();
        shape[0] = rows / ranks;
        spec.shape = shape.into();
        Ok(spec.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let name = match self.how {
            Combine::Sum => "reduce_scatter sum",
            Combine::Max => "reduce_scatter max",
            Combine::Min => "reduce_scatter min",
        };
        let (dtype, elements) = (outputs[0].dtype(), outputs[0].len());
        let call = CallInfo { name, dtype, elements, detail: 0, at: self.at };
        self.group.reduce_scatter_bytes(call, self.how, bytes_of(&inputs[0])?, outputs[0].bytes(), scratch)
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        let ranks = self.group.size();
        reduce_scatter_scratch(ranks, inputs[0].dtype, inputs[0].shape.len() / ranks)
    }

    fn effects(&self) -> Effects {
        EFFECTS
    }

    fn traffic(&self, inputs: &[&Spec]) -> Option<Traffic> {
        Some(halving(self.group.size(), inputs[0].bytes() as u64))
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        (self.how == Combine::Sum).then_some(self as &dyn Differentiable)
    }
}

impl Differentiable for ReduceScatter {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, gradient| all_gather(gradient, &self.group))
    }
}
