//! What does not change from step to step is computed once, before the loop.

use crate::looping::checks;
use taut_core::graph::{Origin, ValueId};
use taut_core::{Graph, Result, Tensor};

/// Moves out of a body what depends on its captures alone: it is computed here and now, or becomes part of the graph
/// being traced, and is a capture of the body that is returned. The captures are the inputs from number `varying` on;
/// those that nobody reads any more are left out.
///
/// Only arithmetic is moved: it cannot fail, so that a loop of no steps does not fail either. Views stay, since
/// they cost nothing there.
pub(crate) fn hoisted(body: Graph, varying: usize, captures: Vec<Tensor>) -> Result<(Graph, Vec<Tensor>)> {
    // A check that nobody reads would be lost with the way it is read.
    if checks(&body) {
        return Ok((body, captures));
    }
    let mut fixed: Vec<bool> = body.values.iter().map(|v| matches!(v.origin, Origin::Constant(_))).collect();
    let mut captured = vec![false; body.values.len()];
    for id in &body.inputs[varying..] {
        fixed[id.index()] = true;
        captured[id.index()] = true;
    }
    let mut moved = vec![false; body.nodes.len()];
    for (i, node) in body.nodes.iter().enumerate() {
        let is_fixed = node.inputs.iter().all(|id| fixed[id.index()])
            && node.inputs.iter().any(|id| captured[id.index()])
            && !node.op.effects().is_check();
        let kernel = node.op.kernel();
        if is_fixed && (kernel.is_arithmetic() || kernel.is_view()) {
            for id in &node.outputs {
                (fixed[id.index()], captured[id.index()]) = (true, true);
            }
            moved[i] = kernel.is_arithmetic();
        }
    }
    // What the rest of the body reads of it.
    let made = |id: &ValueId| match body.values[id.index()].origin {
        Origin::Node { node, .. } => moved[node],
        _ => false,
    };
    let mut new: Vec<ValueId> = Vec::new();
    let rest = body.nodes.iter().zip(&moved).filter(|(_, moved)| !**moved).flat_map(|(node, _)| &node.inputs);
    for &id in rest.chain(&body.outputs).filter(|id| made(id)) {
        if !new.contains(&id) {
            new.push(id);
        }
    }
    let (varied, held) = body.inputs.split_at(varying);
    let mut captures = captures;
    let mut inputs: Vec<ValueId> = body.inputs.clone();
    if !new.is_empty() {
        captures.extend(body.part(held, &new)?.run(&captures)?);
        inputs.extend(&new);
    }
    let smaller = body.part(&inputs, &body.outputs)?;
    let mut read = vec![false; smaller.values.len()];
    let uses = smaller.nodes.iter().flat_map(|node| &node.inputs).chain(&smaller.outputs);
    uses.for_each(|id| read[id.index()] = true);
    let used: Vec<usize> =
        (varied.len()..smaller.inputs.len()).filter(|&i| read[smaller.inputs[i].index()]).collect();
    if used.len() == captures.len() {
        return Ok((smaller, captures));
    }
    let inputs: Vec<ValueId> =
        smaller.inputs[..varying].iter().copied().chain(used.iter().map(|&i| smaller.inputs[i])).collect();
    let captures = used.iter().map(|&i| captures[i - varying].clone()).collect();
    Ok((smaller.part(&inputs, &smaller.outputs)?, captures))
}
