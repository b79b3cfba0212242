//! Loop-invariant code motion: what does not change from step to step is computed once, before the loop.

use crate::dependence::inputs_read;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::{Effects, Form, Graph, Result, Spec, Tensor};

/// Moves calls that depend on captures alone out of a body: they are applied now (or traced into the surrounding graph), and
/// their results are captures of the body that is returned. The captures are the body's last inputs; those that it does not
/// read any more are dropped.
///
/// Only calls that cannot fail are moved, so that a loop of zero steps does not fail either. Views stay, since they are free inside
/// the loop.
pub(crate) fn hoist_invariants(body: Graph, captures: Vec<Tensor>) -> Result<(Graph, Vec<Tensor>)> {
    // A body with checks keeps all of its nodes: cutting the graph would drop a check whose result is unused.
    if body.effects().is_check() {
        return Ok((body, captures));
    }
    let varying = body.inputs.len() - captures.len();
    let hoisted = hoisted_values(&body, &hoisted_nodes(&body, varying));
    let (mut captures, mut inputs) = (captures, body.inputs.clone());
    if !hoisted.is_empty() {
        captures.extend(body.part(&body.inputs[varying..], &hoisted)?.run(&captures)?);
        inputs.extend(&hoisted);
    }
    let smaller = body.part(&inputs, &body.outputs)?;
    drop_unread_captures(smaller, varying, captures)
}

/// Per node, whether it is a call without effects on captures and constants alone, and no view.
fn hoisted_nodes(body: &Graph, varying: usize) -> Vec<bool> {
    let mut invariant: Vec<bool> =
        body.values.iter().map(|v| matches!(v.origin, Origin::Constant(_))).collect();
    let mut from_capture = vec![false; body.values.len()];
    for id in &body.inputs[varying..] {
        invariant[id.index()] = true;
        from_capture[id.index()] = true;
    }
    let mut hoisted = vec![false; body.nodes.len()];
    for (i, node) in body.nodes.iter().enumerate() {
        let is_invariant = node.inputs.iter().all(|id| invariant[id.index()])
            && node.inputs.iter().any(|id| from_capture[id.index()])
            && !node.op.effects().is_check();
        if is_invariant && is_pure(body, node) {
            for id in &node.outputs {
                (invariant[id.index()], from_capture[id.index()]) = (true, true);
            }
            hoisted[i] = !node.op.kernel().is_view();
        }
    }
    hoisted
}

/// Whether calls cannot fail and may be moved. What stands behind a barrier is computed again at every step, as the user asked.
fn is_pure(body: &Graph, node: &Node) -> bool {
    let inputs: Vec<&Spec> = node.inputs.iter().map(|&id| body.spec(id)).collect();
    let op = &node.op;
    let is_barrier = || matches!(op.form(&inputs), Form::OptimizationBarrier);
    op.kernel().is_arithmetic() || (op.effects() == Effects::NONE && !is_barrier())
}

/// The results of hoisted nodes that the rest of the body reads.
fn hoisted_values(body: &Graph, hoisted: &[bool]) -> Vec<ValueId> {
    let is_hoisted = |id: &ValueId| match body.values[id.index()].origin {
        Origin::Node { node, .. } => hoisted[node],
        _ => false,
    };
    let rest = body.nodes.iter().zip(hoisted).filter(|(_, hoisted)| !**hoisted);
    let mut values: Vec<ValueId> = Vec::new();
    for &id in rest.flat_map(|(node, _)| &node.inputs).chain(&body.outputs).filter(|id| is_hoisted(id)) {
        if !values.contains(&id) {
            values.push(id);
        }
    }
    values
}

fn drop_unread_captures(body: Graph, varying: usize, captures: Vec<Tensor>) -> Result<(Graph, Vec<Tensor>)> {
    let read = inputs_read(&body);
    if read[varying..].iter().all(|&read| read) {
        return Ok((body, captures));
    }
    let (fixed, own) = body.inputs.split_at(varying);
    let kept = own.iter().zip(&captures).zip(&read[varying..]).filter(|(_, read)| **read);
    let (ids, captures): (Vec<ValueId>, Vec<Tensor>) =
        kept.map(|((&id, capture), _)| (id, capture.clone())).unzip();
    let inputs: Vec<ValueId> = fixed.iter().copied().chain(ids).collect();
    Ok((body.part(&inputs, &body.outputs)?, captures))
}
