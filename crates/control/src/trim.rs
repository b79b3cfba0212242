//! What nobody reads of a loop is not computed.

use crate::looping::{Loop, Slots};
use std::sync::Arc;
use taut_core::{Graph, Op, PrunedOp};

/// A loop without the states, stacks, slices and captures that the used outputs do not need; `None` if it needs all.
pub(crate) fn prune_outputs(op: &Loop, used: &[bool]) -> Option<PrunedOp> {
    let graph = op.body.graph();
    if op.effects().is_check() {
        return None;
    }
    let (states, slices, stacks) = (op.states, op.slices, op.stacks);
    let wants = |output: usize| used.get(output) == Some(&true);
    let slab_used = op.slots.is_some() && wants(op.slab());
    // States that are kept together stay together.
    let mut state: Vec<bool> = (0..states).map(|k| wants(k) || slab_used).collect();
    let stack: Vec<bool> = (0..stacks).map(|k| wants(op.stack(k))).collect();
    let tested = op.test.as_ref().map(|test| needed(test.graph(), &[true]));
    if let Some(read) = &tested {
        (0..states).for_each(|k| state[k] |= read[1 + k]);
    }
    let read = loop {
        let outputs: Vec<bool> = state.iter().chain(&stack).copied().collect();
        let read = needed(graph, &outputs);
        let mut grew = false;
        for k in 0..states {
            grew |= read[1 + k] && !state[k];
            state[k] |= read[1 + k];
        }
        if !grew {
            break read;
        }
    };
    let is_read = |i: usize| read[i] || tested.as_ref().is_some_and(|tested| tested[i]);
    let kept_slices: Vec<usize> = (0..slices).filter(|&i| is_read(1 + states + i)).collect();
    let rest = 1 + states + slices..graph.inputs.len();
    let kept_captures: Vec<usize> = rest.clone().filter(|&i| is_read(i)).collect();
    let drops_slab = op.slots.is_some() && !slab_used;
    let all = state.iter().chain(&stack).all(|&kept| kept)
        && kept_slices.len() == slices
        && kept_captures.len() == rest.len();
    if all && !drops_slab {
        return None;
    }
    let kept_states: Vec<usize> = (0..states).filter(|&k| state[k]).collect();
    let kept_stacks: Vec<usize> = (0..stacks).filter(|&k| stack[k]).collect();
    let body_inputs: Vec<usize> = std::iter::once(0)
        .chain(kept_states.iter().map(|k| 1 + k))
        .chain(kept_slices.iter().map(|i| 1 + states + i))
        .chain(kept_captures.iter().copied())
        .collect();
    let body_outputs: Vec<usize> =
        kept_states.iter().copied().chain(kept_stacks.iter().map(|k| states + k)).collect();
    let part = |graph: &Graph, outputs: &[usize]| {
        let inputs: Vec<_> = body_inputs.iter().map(|&i| graph.inputs[i]).collect();
        let outputs: Vec<_> = outputs.iter().map(|&i| graph.outputs[i]).collect();
        graph.part(&inputs, &outputs).ok()
    };
    let body = part(graph, &body_outputs)?;
    let test = match &op.test {
        None => None,
        Some(test) => Some(part(test.graph(), &[0])?),
    };
    let counts = (kept_states.len(), kept_slices.len(), kept_stacks.len());
    let mut smaller = Loop::new(op.name, body, test, counts, op.steps, op.reverse);
    smaller.slots = op.slots.as_ref().filter(|_| slab_used).map(|slots| Slots {
        count: slots.count,
        after: kept_stacks.iter().filter(|&&k| k < slots.after).count(),
    });
    smaller.start = op.start;
    smaller.report.clone_from(&op.report);
    let first = op.first();
    let inputs = (0..first).chain(body_inputs[1..].iter().map(|i| first + i - 1)).collect();
    let count = op.counts().then_some(states);
    let mut rest: Vec<usize> = kept_stacks.iter().map(|&k| op.stack(k)).collect();
    if let Some(slots) = &smaller.slots {
        rest.insert(slots.after, op.slab());
    }
    let outputs = kept_states.iter().copied().chain(count).chain(rest).collect();
    Some(PrunedOp { op: Arc::new(smaller), inputs, outputs })
}

/// Per input of a graph, whether one of these outputs depends on it.
fn needed(graph: &Graph, outputs: &[bool]) -> Vec<bool> {
    let mut values = vec![false; graph.values.len()];
    for (id, _) in graph.outputs.iter().zip(outputs).filter(|(_, wanted)| **wanted) {
        values[id.index()] = true;
    }
    for node in graph.nodes.iter().rev() {
        if node.outputs.iter().any(|id| values[id.index()]) {
            node.inputs.iter().for_each(|id| values[id.index()] = true);
        }
    }
    graph.inputs.iter().map(|id| values[id.index()]).collect()
}
