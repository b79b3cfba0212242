//! Shards: each rank's part of a tensor, for state that is distributed over ranks.
//!
//! A tensor of `len` elements has one shard per rank, of `ceil(len / ranks)` elements in row-major order; what the last shards have
//! beyond the end is zero. So all ranks have shards of one shape, and one plan.

use super::{EFFECTS, attributes, bytes_of, check_numbers, halving};
use crate::collective::{Combine, reduce_scatter_scratch};
use crate::group::{CallInfo, Group};
use crate::ops::reduce::ReduceOp;
use taut_core::ops::binary::mul;
use taut_core::{
    Effects, Error, Kernel, Op, Result, Shape, Spec, Specs, Tensor, Traffic, apply, source_location,
};
use taut_kernels::{Arg, ViewMut};
use taut_memory::Location;

/// What an op on shards does.
#[derive(Clone, Debug)]
enum ShardStep {
    /// A tensor to its own shard; nothing is sent.
    Own,
    /// The sum of a tensor over ranks, to its own shard.
    Reduce,
    /// A shard to the whole tensor of this shape.
    Gather(Shape),
    /// The old tensor and a shard of the new one to the new one.
    Replace,
}

#[derive(Clone, Debug)]
struct Shards {
    group: Group,
    step: ShardStep,
    at: Location,
}

impl Shards {
    #[track_caller]
    fn new(group: &Group, step: ShardStep) -> Shards {
        Shards { group: group.clone(), step, at: source_location(Location::caller()) }
    }
}

/// This rank's shard of a tensor that every rank has: `ceil(len / ranks)` elements in row-major order, with zeros after the end.
#[track_caller]
pub fn own_shard(x: impl Into<Tensor>, group: &Group) -> Result<Tensor> {
    apply(&Shards::new(group, ShardStep::Own), [x.into()])
}

/// This rank's shard of the sum or mean of a tensor over ranks, with the bits that [`all_reduce`](crate::all_reduce) gives.
#[track_caller]
pub fn reduce_shard(x: impl Into<Tensor>, how: ReduceOp, group: &Group) -> Result<Tensor> {
    let sum = apply(&Shards::new(group, ShardStep::Reduce), [x.into()])?;
    match how {
        ReduceOp::Sum => Ok(sum),
        ReduceOp::Mean => mul(sum, 1.0 / group.size() as f64),
        ReduceOp::Max | ReduceOp::Min => {
            Err(Error::value(format!("shards must be reduced by Sum or Mean, got {how:?}"))
                .at(Location::caller()))
        }
    }
}

/// The whole tensor of this shape from the shards of all ranks.
#[track_caller]
pub fn gather_shards(shard: impl Into<Tensor>, shape: impl Into<Shape>, group: &Group) -> Result<Tensor> {
    apply(&Shards::new(group, ShardStep::Gather(shape.into())), [shard.into()])
}

/// As [`gather_shards`], in the memory of the tensor's old value: a variable whose update is sharded needs no second copy.
#[track_caller]
pub fn replace_shards(old: impl Into<Tensor>, shard: impl Into<Tensor>, group: &Group) -> Result<Tensor> {
    apply(&Shards::new(group, ShardStep::Replace), [old.into(), shard.into()])
}

fn shard_spec(whole: &Spec, ranks: usize) -> Spec {
    Spec::new(whole.dtype, [whole.shape.len().div_ceil(ranks)])
}

impl Op for Shards {
    fn name(&self) -> &'static str {
        match self.step {
            ShardStep::Own => "own_shard",
            ShardStep::Reduce => "reduce_shard",
            ShardStep::Gather(_) => "gather_shards",
            ShardStep::Replace => "replace_shards",
        }
    }

    fn attributes(&self) -> String {
        attributes(&self.group)
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let ranks = self.group.size();
        let whole = match &self.step {
            ShardStep::Own => return Ok(shard_spec(inputs[0], ranks).into()),
            ShardStep::Reduce => {
                check_numbers(inputs[0])?;
                return Ok(shard_spec(inputs[0], ranks).into());
            }
            ShardStep::Gather(shape) => Spec::new(inputs[0].dtype, shape.clone()),
            ShardStep::Replace => inputs[0].clone(),
        };
        let (expected, shard) = (shard_spec(&whole, ranks), inputs[inputs.len() - 1]);
        if *shard != expected {
            let message = format!("the shard of {whole} for {ranks} ranks must be {expected}, got {shard}");
            return Err(Error::shape(message));
        }
        Ok(whole.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (rank, name) = (self.group.rank(), self.name());
        let (dtype, elements) = (outputs[0].dtype(), outputs[0].len());
        let call = CallInfo { name, dtype, elements, detail: 0, at: self.at };
        let out = outputs[0].bytes();
        match self.step {
            ShardStep::Own => {
                let whole = bytes_of(&inputs[0])?;
                let start = (rank * out.len()).min(whole.len());
                let end = (start + out.len()).min(whole.len());
                out[..end - start].copy_from_slice(&whole[start..end]);
                out[end - start..].fill(0);
                Ok(())
            }
            ShardStep::Reduce => {
                let whole = bytes_of(&inputs[0])?;
                self.group.reduce_scatter_bytes(call, Combine::Sum, whole, out, scratch)
            }
            ShardStep::Gather(_) | ShardStep::Replace => {
                let shard = bytes_of(&inputs[inputs.len() - 1])?;
                let start = (rank * shard.len()).min(out.len());
                let end = (start + shard.len()).min(out.len());
                out[start..end].copy_from_slice(&shard[..end - start]);
                self.group.all_gather_bytes(call, shard.len(), out)
            }
        }
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        let ranks = self.group.size();
        match self.step {
            ShardStep::Reduce => {
                reduce_scatter_scratch(ranks, inputs[0].dtype, inputs[0].shape.len().div_ceil(ranks))
            }
            _ => 0,
        }
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        match self.step {
            ShardStep::Replace => &[0],
            _ => &[],
        }
    }

    fn effects(&self) -> Effects {
        match self.step {
            ShardStep::Own => Effects::NO_CSE,
            _ => EFFECTS,
        }
    }

    fn traffic(&self, inputs: &[&Spec]) -> Option<Traffic> {
        let bytes = match &self.step {
            ShardStep::Own => return None,
            ShardStep::Reduce | ShardStep::Replace => inputs[0].bytes(),
            ShardStep::Gather(shape) => shape.len() * inputs[0].dtype.size(),
        };
        Some(halving(self.group.size(), bytes as u64))
    }
}
