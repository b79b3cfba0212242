//! Dead-code elimination in loops: values that no used output depends on are not computed.

use super::checkpoints::Checkpoints;
use super::definition::LoopOp;
use crate::dependence::inputs_of_outputs;
use std::sync::Arc;
use taut_core::{Graph, Op, PrunedOp};

/// The values of a loop that its used outputs need.
struct NeededValues {
    states: Vec<usize>,
    slices: Vec<usize>,
    captures: Vec<usize>,
    stacks: Vec<usize>,
    checkpoints: bool,
}

/// A loop without the states, stacks, slices and captures that the used outputs do not need; `None` if they need all.
pub(super) fn prune_loop(op: &LoopOp, used: &[bool]) -> Option<PrunedOp> {
    if op.effects().is_check() {
        return None;
    }
    let needed = NeededValues::new(op, used);
    let is_complete = needed.states.len() == op.arity.states
        && needed.slices.len() == op.arity.slices
        && needed.captures.len() == op.arity.captures
        && needed.stacks.len() == op.arity.stacks
        && needed.checkpoints == op.checkpoints.is_some();
    if is_complete {
        return None;
    }
    let smaller = needed.pruned(op)?;
    let signature = op.signature();
    let inputs = signature.inputs.count.positions();
    let states = needed.states.iter().map(|&k| signature.inputs.states.at(k));
    let slices = needed.slices.iter().map(|&i| signature.inputs.slices.at(i));
    let captures = needed.captures.iter().map(|&i| signature.inputs.captures.at(i));
    let inputs = inputs.chain(states).chain(slices).chain(captures).collect();
    let mut outputs: Vec<usize> = needed.states.iter().map(|&k| signature.outputs.states.at(k)).collect();
    outputs.extend(signature.outputs.count.first());
    outputs.extend(needed.stacks.iter().map(|&k| signature.outputs.stack(k)));
    if let Some(position) = smaller.signature().outputs.checkpoint_buffer.first() {
        outputs.insert(position, signature.outputs.checkpoint_buffer.at(0));
    }
    Some(PrunedOp { op: Arc::new(smaller), inputs, outputs })
}

impl NeededValues {
    fn new(op: &LoopOp, used: &[bool]) -> NeededValues {
        let signature = op.signature();
        let is_used = |output: usize| used.get(output) == Some(&true);
        let checkpoints = signature.outputs.checkpoint_buffer.first().is_some_and(is_used);
        // Checkpoints hold all states.
        let mut states: Vec<bool> =
            signature.outputs.states.positions().map(|output| is_used(output) || checkpoints).collect();
        let stacks: Vec<bool> = (0..op.arity.stacks).map(|k| is_used(signature.outputs.stack(k))).collect();
        let body_states = signature.body_inputs.states;
        let for_condition = op.condition.as_ref().map(|c| inputs_of_outputs(c.graph(), &[true]));
        if let Some(read) = &for_condition {
            states.iter_mut().zip(body_states.of(read)).for_each(|(needed, &read)| *needed |= read);
        }
        // A needed state may need further states.
        let mut read = loop {
            let outputs: Vec<bool> = states.iter().chain(&stacks).copied().collect();
            let read = inputs_of_outputs(op.body.graph(), &outputs);
            let before = states.clone();
            states.iter_mut().zip(body_states.of(&read)).for_each(|(needed, &read)| *needed |= read);
            if states == before {
                break read;
            }
        };
        for_condition.iter().for_each(|other| read.iter_mut().zip(other).for_each(|(read, &o)| *read |= o));
        let marked = |marks: &[bool]| (0..marks.len()).filter(|&i| marks[i]).collect();
        NeededValues {
            states: marked(&states),
            slices: marked(signature.body_inputs.slices.of(&read)),
            captures: marked(signature.body_inputs.captures.of(&read)),
            stacks: marked(&stacks),
            checkpoints,
        }
    }

    /// The loop with these values alone.
    fn pruned(&self, op: &LoopOp) -> Option<LoopOp> {
        let signature = op.signature();
        let part = |graph: &Graph, outputs: &[usize]| {
            let body = signature.body_inputs;
            let inputs = body.index.positions().chain(self.states.iter().map(|&k| body.states.at(k)));
            let inputs = inputs.chain(self.slices.iter().map(|&i| body.slices.at(i)));
            let inputs = inputs.chain(self.captures.iter().map(|&i| body.captures.at(i)));
            let inputs: Vec<_> = inputs.map(|i| graph.inputs[i]).collect();
            let outputs: Vec<_> = outputs.iter().map(|&i| graph.outputs[i]).collect();
            graph.part(&inputs, &outputs).ok()
        };
        let states = self.states.iter().map(|&k| signature.body_outputs.states.at(k));
        let stacks = self.stacks.iter().map(|&k| signature.body_outputs.stacks.at(k));
        let body = part(op.body.graph(), &states.chain(stacks).collect::<Vec<_>>())?;
        let condition = match &op.condition {
            None => None,
            Some(condition) => Some(part(condition.graph(), &[0])?),
        };
        let counts = (self.states.len(), self.slices.len());
        let smaller = LoopOp::new(op.name, (body, condition), counts, op.steps, op.options);
        Some(LoopOp {
            reverse: op.reverse,
            first_index: op.first_index,
            report: op.report.clone(),
            checkpoints: op.checkpoints.filter(|_| self.checkpoints).map(|checkpoints| Checkpoints {
                count: checkpoints.count,
                stacks_before: self.stacks.iter().filter(|&&k| k < checkpoints.stacks_before).count(),
            }),
            ..smaller
        })
    }
}
