//! Branches over a batch of inputs.

use super::definition::BranchOp;
use crate::loops::loop_over_batch;
use crate::vmap::vmap_graph_fully;
use taut_core::{Outputs, Result, Spec, VmapCall, apply_many, record, trace};

/// A choice that is the same for all examples is made once. `None` if it is not.
pub(super) fn vmap_branch(op: &BranchOp, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
    if call.mapped[0] || op.has_residuals() {
        return Ok(None);
    }
    let mapped = &call.mapped[1..];
    let specs: Vec<Spec> = call.inputs[1..].iter().map(|input| input.spec().clone()).collect();
    let mut graphs = Vec::new();
    for branch in &op.branches {
        let traced = record::without_recording(|| {
            trace(&specs, |inputs| {
                let call = VmapCall { inputs, mapped, size: call.size };
                vmap_graph_fully(branch.graph(), &call, &mut loop_over_batch(op.options))
            })
        })?;
        graphs.push(traced.graph);
    }
    Ok(Some(apply_many(&BranchOp::new(op.name, graphs, op.options), call.inputs.to_vec())?))
}
