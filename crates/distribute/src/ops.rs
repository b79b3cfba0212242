//! The collectives as ops.

mod broadcast;
mod gather;
mod reduce;
mod shards;

pub use broadcast::broadcast;
pub use gather::all_gather;
pub use reduce::{ReduceOp, all_reduce, reduce_scatter};
pub use shards::{gather_shards, own_shard, reduce_shard, replace_shards};

use crate::group::Group;
use crate::tree::{Role, Tree};
use taut_core::{DType, Effects, Error, Result, Spec, Traffic};
use taut_kernels::{Arg, ViewMut};

/// Every rank must run every collective, in the same order: none is dropped, merged, repeated or reordered.
const EFFECTS: Effects = Effects::CAN_FAIL.and(Effects::CHECK).and(Effects::ORDERED).and(Effects::NO_CSE);

/// The most bytes of a message.
const MESSAGE: u64 = 4 << 20;

fn attributes(group: &Group) -> String {
    format!("ranks={}", group.size())
}

/// Fails for a dtype without sums.
fn check_numbers(spec: &Spec) -> Result<()> {
    if spec.dtype == DType::Bool {
        return Err(Error::dtype("bool is not supported").help("cast it to an integer first"));
    }
    Ok(())
}

/// The bytes of an input that is contiguous and not in place.
fn bytes_of<'a>(input: &Arg<'a>) -> Result<&'a [u8]> {
    match input {
        Arg::View(view) => view.contiguous_bytes().ok_or_else(not_contiguous),
        Arg::InPlace(_) => Err(not_contiguous()),
    }
}

#[cold]
fn not_contiguous() -> Error {
    Error::value("a collective must receive contiguous memory of its own")
}

/// Copies the input to the output, unless it is there already.
fn fill(input: &Arg<'_>, output: &mut ViewMut<'_>) -> Result<()> {
    if let Arg::View(_) = input {
        output.bytes().copy_from_slice(bytes_of(input)?);
    }
    Ok(())
}

/// What the busiest rank sends when every member gives away all but its part of `bytes`, in halves.
fn halving(ranks: usize, bytes: u64) -> Traffic {
    let tree = Tree::of(ranks);
    let members = tree.members as u64;
    let pieces = bytes.div_ceil(MESSAGE).max(1);
    let mut traffic = Traffic {
        ranks,
        messages: pieces * u64::from(tree.rounds()),
        bytes: (u128::from(bytes) * u128::from(members - 1) / u128::from(members)) as u64,
    };
    if matches!(tree.role(0), Role::Leader { .. }) {
        traffic.messages += pieces;
        traffic.bytes += bytes;
    }
    traffic
}
