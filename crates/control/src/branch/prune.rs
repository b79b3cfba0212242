//! Dead-code elimination in branches: results that no used output needs are not computed.

use super::definition::{BranchOp, branch_body};
use crate::dependence::inputs_read;
use std::sync::Arc;
use taut_core::graph::ValueId;
use taut_core::{Op, PrunedOp};

/// A branch op with the used outputs alone, and the captures that they need; `None` if all outputs are used.
pub(super) fn prune_branch(op: &BranchOp, used: &[bool]) -> Option<PrunedOp> {
    let outputs: Vec<usize> = (0..op.outputs.len()).filter(|&i| used.get(i) == Some(&true)).collect();
    if outputs.len() == op.outputs.len() || op.effects().is_check() {
        return None;
    }
    let pick = |all: &[ValueId], kept: &[usize]| kept.iter().map(|&i| all[i]).collect::<Vec<ValueId>>();
    let (mut read, mut results) = (vec![false; op.captures()], Vec::new());
    for (branch, positions) in op.branches.iter().zip(&op.positions) {
        let graph = branch.graph();
        let kept: Vec<usize> = (0..positions.len()).filter(|&i| outputs.contains(&positions[i])).collect();
        let part = graph.part(&graph.inputs, &pick(&graph.outputs, &kept)).ok()?;
        read.iter_mut().zip(inputs_read(&part)).for_each(|(read, own)| *read |= own);
        results.push(kept);
    }
    let captures: Vec<usize> = (0..read.len()).filter(|&i| read[i]).collect();
    let mut smaller = op.clone();
    smaller.gradient = None;
    // The outputs that update a capture, and the captures that are updated, if both are kept.
    let first_updated = op.captures() - op.updated();
    let updating = outputs.iter().copied().filter(|&output| output < op.updated());
    let updated = captures.iter().filter_map(|&i| i.checked_sub(first_updated));
    let updated = if updating.clone().eq(updated) { updating.count() } else { 0 };
    let kept_inputs = captures.len();
    smaller.aliases = (kept_inputs - updated..kept_inputs).map(|i| [BranchOp::capture_input(i)]).collect();
    smaller.outputs = outputs.iter().map(|&i| op.outputs[i].clone()).collect();
    for (n, (branch, kept)) in smaller.branches.iter_mut().zip(&results).enumerate() {
        let graph = branch.graph();
        let part = graph.part(&pick(&graph.inputs, &captures), &pick(&graph.outputs, kept)).ok()?;
        let position = |&i: &usize| outputs.iter().position(|&output| output == op.positions[n][i]);
        smaller.positions[n] = kept.iter().filter_map(position).collect();
        *branch = Arc::new(branch_body(part, updated));
    }
    let inputs = std::iter::once(0).chain(captures.into_iter().map(BranchOp::capture_input)).collect();
    Some(PrunedOp { op: Arc::new(smaller), inputs, outputs })
}
