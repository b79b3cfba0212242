//! Variables that must be equal on every rank.

use crate::group::{Digest, Group};
use crate::ops::broadcast;
use taut_autodiff::Variable;
use taut_core::{Error, ErrorKind, Result};
use taut_memory::Location;

/// Gives the variables of every rank the values of rank `root`.
#[track_caller]
pub fn broadcast_variables(variables: &[Variable], root: usize, group: &Group) -> Result<()> {
    variables
        .iter()
        .try_for_each(|variable| variable.assign(broadcast(variable.value().copy()?, root, group)?))
}

/// Fails on every rank if named variables differ between ranks: in number, names, types, shapes or values. Compares hashes: eight
/// bytes per variable are sent.
#[track_caller]
pub fn check_equal(named: &[(String, Variable)], group: &Group) -> Result<()> {
    let at = Location::caller();
    if group.size() == 1 {
        return Ok(());
    }
    let mut hashes = Vec::with_capacity(named.len());
    for (name, variable) in named {
        let value = variable.value();
        let value = if value.is_contiguous() { value } else { value.copy()? };
        let mut digest = Digest::default();
        digest.bytes(name.as_bytes());
        digest.bytes(variable.spec().to_string().as_bytes());
        digest.bytes(value.span().unwrap_or_default());
        hashes.push(digest.value());
    }
    let counts = group.all_gather_words("number of variables", &[named.len() as u64])?;
    let differs = |message: String| {
        let help = "set the same seed on every rank before the model is made, or call broadcast_variables";
        Err(Error::new(ErrorKind::Value, message).help(help).at(at))
    };
    if let Some(rank) = counts.iter().position(|count| *count != counts[0]) {
        let (first, other) = (counts[0], counts[rank]);
        return differs(format!(
            "all ranks must have the same variables, got {first} on rank 0 and {other} on rank {rank}"
        ));
    }
    let all = group.all_gather_words("hashes of variables", &hashes)?;
    let Some(at_index) = (0..all.len()).find(|&i| all[i] != all[i % named.len()]) else { return Ok(()) };
    let (rank, (name, variable)) = (at_index / named.len(), &named[at_index % named.len()]);
    differs(format!(
        "variables must be equal on all ranks, got different values of '{name}' {} on ranks 0 and {rank}",
        variable.spec()
    ))
}
