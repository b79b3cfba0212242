//! Loops and branches for many sets of inputs at once.

use crate::batch::batched;
use crate::branch::Branch;
use crate::gradient::dependent;
use crate::looping::{Loop, stacked};
use crate::map::{all_mapped, by_loop, repeated};
use taut_core::ops::shape::transpose;
use taut_core::{Graph, Outputs, Result, Spec, Tensor, VmapCall, apply_many, record, trace};

/// A loop whose number of steps is the same for all sets carries the states of all of them.
pub(crate) fn batch_loop(op: &Loop, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
    let (first, size) = (op.first(), call.size);
    if op.slots.is_some() || (first == 1 && call.mapped[0]) {
        return Ok(None);
    }
    let graph = op.body.graph();
    // Per input of the body; the index is the same for all.
    let mut mapped: Vec<bool> = std::iter::once(false).chain(call.mapped[first..].iter().copied()).collect();
    let depends = loop {
        let depends = dependent(graph, &mapped);
        let mut grew = false;
        for k in 0..op.states {
            let after = depends[graph.outputs[k].index()];
            grew |= after && !mapped[1 + k];
            mapped[1 + k] |= after;
        }
        if !grew {
            break depends;
        }
    };
    if let Some(test) = &op.test {
        let depends = dependent(test.graph(), &mapped);
        if depends[test.graph().outputs[0].index()] {
            return Ok(None);
        }
    }
    let specs: Vec<Spec> = (0..mapped.len())
        .map(|i| if mapped[i] { stacked(size, op.body.input(i)) } else { op.body.input(i).clone() })
        .collect();
    let stack_mapped: Vec<bool> =
        (0..op.stacks).map(|k| depends[graph.outputs[op.states + k].index()]).collect();
    let wanted: Vec<bool> = mapped[1..=op.states].iter().chain(&stack_mapped).copied().collect();
    let body = over(graph, &specs, &mapped, size, &wanted)?;
    let test = match &op.test {
        None => None,
        Some(test) => Some(over(test.graph(), &specs, &mapped, size, &[false])?),
    };
    let counts = (op.states, op.slices, op.stacks);
    let mut many_op = Loop::new(op.name, body, test, counts, op.steps, op.reverse);
    many_op.start = op.start;
    many_op.budget = op.budget.map(|budget| budget.saturating_mul(size));
    many_op.report.clone_from(&op.report);
    let mut arguments: Vec<Tensor> = call.inputs[..first].to_vec();
    for (i, input) in call.inputs[first..].iter().enumerate() {
        let is_mapped = call.mapped[first + i];
        let is_slice = i >= op.states && i < op.states + op.slices;
        arguments.push(match (mapped[1 + i], is_mapped) {
            // The rows come first in a loop, the sets first in a map.
            (true, true) if is_slice => swapped(input)?,
            (true, false) => repeated(input.clone(), size)?,
            _ => input.clone(),
        });
    }
    let mut outputs = apply_many(&many_op, arguments)?;
    for (i, output) in outputs.iter_mut().enumerate() {
        let stack = i.checked_sub(op.stack(0)).map(|k| stack_mapped[k]);
        let carried = i < op.states && mapped[1 + i];
        *output = match stack {
            Some(true) => swapped(output)?,
            _ if carried => output.clone(),
            _ => repeated(output.clone(), size)?,
        };
    }
    Ok(Some(outputs))
}

/// A graph for many sets, whose outputs have the sets as their first axis where `wanted` says so.
fn over(graph: &Graph, specs: &[Spec], mapped: &[bool], size: usize, wanted: &[bool]) -> Result<Graph> {
    let traced = record::without_recording(|| {
        trace(specs, |arguments| {
            let (outputs, are_mapped) = batched(graph, arguments, mapped, size, &mut by_loop)?;
            let fit = |((output, mapped), &wanted): ((Tensor, bool), &bool)| {
                if wanted && !mapped { repeated(output, size) } else { Ok(output) }
            };
            outputs.into_iter().zip(are_mapped).zip(wanted).map(fit).collect()
        })
    })?;
    Ok(traced.graph)
}

/// With its first two axes in the other order.
fn swapped(tensor: &Tensor) -> Result<Tensor> {
    let order: Vec<isize> = [1, 0].into_iter().chain(2..tensor.rank() as isize).collect();
    transpose(tensor, Some(&order[..]))
}

/// A choice that is the same for all sets is made once.
pub(crate) fn batch_branch(op: &Branch, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
    let size = call.size;
    if call.mapped[0] || op.keeps() {
        return Ok(None);
    }
    let mapped = &call.mapped[1..];
    let specs: Vec<Spec> = call.inputs[1..].iter().map(|input| input.spec().clone()).collect();
    let mut graphs = Vec::new();
    for branch in &op.branches {
        let traced = record::without_recording(|| {
            trace(&specs, |arguments| all_mapped(branch.graph(), arguments, mapped, size))
        })?;
        graphs.push(traced.graph);
    }
    Ok(Some(apply_many(&Branch::new(op.name, graphs), call.inputs.to_vec())?))
}
