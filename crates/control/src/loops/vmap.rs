//! Loops over a batch of inputs.

use super::definition::LoopOp;
use super::signature::{BodyInput, StepCount};
use crate::dependence::depends_on_inputs;
use crate::specs::{index_spec, row_spec, stacked_spec};
use crate::vmap::{repeated, vmap_graph};
use taut_compile::CompileOptions;
use taut_core::graph::Node;
use taut_core::ops::shape::transpose;
use taut_core::{
    Graph, Outputs, Result, Spec, Tensor, VmapCall, apply_at, apply_many, record, trace, with_source_location,
};

/// A loop whose number of steps is the same for the whole batch carries the states of all examples. `None` if it is not.
pub(super) fn vmap_loop(op: &LoopOp, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
    let signature = op.signature();
    if op.checkpoints.is_some() || signature.inputs.count.of(call.mapped).contains(&true) {
        return Ok(None);
    }
    let Some(mapped) = MappedValues::new(op, call) else { return Ok(None) };
    let batched = batched_loop(op, &mapped, call.size)?;
    let mut arguments: Vec<Tensor> = Vec::new();
    for (position, input) in call.inputs.iter().enumerate() {
        let is_slice = signature.inputs.slices.index_of(position).is_some();
        arguments.push(match (mapped.loop_input(op, position), call.mapped[position]) {
            // A loop has the rows first, a batch the examples.
            (true, true) if is_slice => swap_first_axes(input)?,
            (true, false) => repeated(input.clone(), call.size)?,
            _ => input.clone(),
        });
    }
    let mut outputs = apply_many(&batched, arguments)?;
    for (position, output) in outputs.iter_mut().enumerate() {
        let stack = signature.outputs.stack_at(position).map(|k| mapped.stacks[k]);
        let state = signature.outputs.states.index_of(position);
        let is_mapped_state = state.is_some_and(|k| mapped.inputs[signature.body_inputs.states.at(k)]);
        *output = match stack {
            Some(true) => swap_first_axes(output)?,
            _ if is_mapped_state => output.clone(),
            _ => repeated(output.clone(), call.size)?,
        };
    }
    Ok(Some(outputs))
}

/// The values of a loop that differ between the examples of a batch.
struct MappedValues {
    /// Per input of the body.
    inputs: Vec<bool>,
    stacks: Vec<bool>,
}

impl MappedValues {
    /// `None` if the number of steps differs.
    fn new(op: &LoopOp, call: &VmapCall<'_>) -> Option<MappedValues> {
        let (graph, signature) = (op.body.graph(), op.signature());
        let sources =
            (0..signature.body_inputs.len()).map(|i| signature.inputs.source(signature.body_inputs.kind(i)));
        let mut inputs: Vec<bool> =
            sources.map(|source| source.is_some_and(|input| call.mapped[input])).collect();
        // A state that depends on a mapped value is mapped in the next step.
        let depends = loop {
            let depends = depends_on_inputs(graph, &inputs);
            let before = inputs.clone();
            for k in 0..op.arity.states {
                let output = graph.outputs[signature.body_outputs.states.at(k)];
                inputs[signature.body_inputs.states.at(k)] |= depends[output.index()];
            }
            if inputs == before {
                break depends;
            }
        };
        if let Some(condition) = &op.condition {
            let depends = depends_on_inputs(condition.graph(), &inputs);
            if depends[condition.graph().outputs[0].index()] {
                return None;
            }
        }
        let stacks = signature.body_outputs.stacks.of(&graph.outputs);
        let stacks = stacks.iter().map(|id| depends[id.index()]).collect();
        Some(MappedValues { inputs, stacks })
    }

    /// Whether an input of the loop is mapped.
    fn loop_input(&self, op: &LoopOp, position: usize) -> bool {
        let signature = op.signature();
        let is_source = |kind: BodyInput| signature.inputs.source(kind) == Some(position);
        (0..self.inputs.len()).any(|i| self.inputs[i] && is_source(signature.body_inputs.kind(i)))
    }
}

/// The loop over the values of all examples.
fn batched_loop(op: &LoopOp, mapped: &MappedValues, size: usize) -> Result<LoopOp> {
    let signature = op.signature();
    let specs: Vec<Spec> = op
        .body
        .inputs()
        .zip(&mapped.inputs)
        .map(|(spec, &is_mapped)| if is_mapped { stacked_spec(size, spec) } else { spec.clone() })
        .collect();
    let states = signature.body_inputs.states.of(&mapped.inputs);
    let outputs: Vec<bool> = states.iter().chain(&mapped.stacks).copied().collect();
    let batched = |graph: &Graph, outputs: &[bool]| {
        batched_graph(graph, &specs, (&mapped.inputs, size), outputs, op.options)
    };
    let body = batched(op.body.graph(), &outputs)?;
    let condition = match &op.condition {
        None => None,
        Some(condition) => Some(batched(condition.graph(), &[false])?),
    };
    let counts = (op.arity.states, op.arity.slices);
    let plain = LoopOp::new(op.name, (body, condition), counts, op.steps, op.options);
    Ok(LoopOp {
        reverse: op.reverse,
        first_index: op.first_index,
        grad_budget: op.grad_budget.map(|budget| budget.saturating_mul(size)),
        report: op.report.clone(),
        ..plain
    })
}

/// A graph over a batch, whose marked outputs have the examples as their first axis.
fn batched_graph(
    graph: &Graph,
    specs: &[Spec],
    (mapped, size): (&[bool], usize),
    outputs: &[bool],
    options: CompileOptions,
) -> Result<Graph> {
    let traced = record::without_recording(|| {
        trace(specs, |arguments| {
            let call = VmapCall { inputs: arguments, mapped, size };
            let (found, mapped) = vmap_graph(graph, &call, &mut loop_over_batch(options))?;
            let expand = |((output, is_mapped), &marked): ((Tensor, bool), &bool)| {
                if marked && !is_mapped { repeated(output, size) } else { Ok(output) }
            };
            found.into_iter().zip(mapped).zip(outputs).map(expand).collect()
        })
    })?;
    Ok(traced.graph)
}

fn swap_first_axes(tensor: &Tensor) -> Result<Tensor> {
    let order: Vec<isize> = [1, 0].into_iter().chain(2..tensor.rank() as isize).collect();
    transpose(tensor, Some(&order[..]))
}

/// The fallback for ops without a vmap rule: a loop over the examples.
pub(crate) fn loop_over_batch(
    options: CompileOptions,
) -> impl FnMut(&Node, &VmapCall<'_>) -> Result<Outputs> {
    move |node, call| {
        let VmapCall { inputs, mapped, size } = *call;
        let (slices, captures): (Vec<usize>, Vec<usize>) = (0..inputs.len()).partition(|&i| mapped[i]);
        let mut specs = vec![index_spec()];
        specs.extend(slices.iter().map(|&i| row_spec(inputs[i].spec())));
        specs.extend(captures.iter().map(|&i| inputs[i].spec().clone()));
        let order: Vec<usize> = slices.iter().chain(&captures).copied().collect();
        let traced = record::without_recording(|| {
            trace(&specs, |arguments| {
                let mut example: Vec<Tensor> = inputs.to_vec();
                for (&i, argument) in order.iter().zip(&arguments[1..]) {
                    example[i] = argument.clone();
                }
                Ok(apply_at(&*node.op, &mut example, node.at)?.into_vec())
            })
        })?;
        let steps = StepCount::Fixed(size);
        let op = LoopOp::new("map_fn", (traced.graph, None), (0, slices.len()), steps, options);
        let arguments = order.iter().map(|&i| inputs[i].clone()).collect();
        with_source_location(None, node.at, || apply_many(&op, arguments))
    }
}
