//! An interpreter of graphs that computes a whole batch at once.
//!
//! Every value is either the same for all examples, and computed once, or *mapped*: it has the examples as its first axis. A
//! node that reads a mapped value is computed by its op's rule, [`Op::vmap`](taut_core::Op::vmap).

#[cfg(test)]
mod tests;

use crate::specs::stacked_spec;
use smallvec::SmallVec;
use taut_core::graph::{Node, Origin};
use taut_core::ops::creation::zeros;
use taut_core::ops::shape::broadcast_to;
use taut_core::{
    Error, ErrorKind, Graph, Outputs, Result, Spec, Tensor, VmapCall, apply_at, with_source_location,
};

/// Computes a node for a batch where its op has no rule.
type Fallback<'a> = dyn FnMut(&Node, &VmapCall<'_>) -> Result<Outputs> + 'a;

/// Applies a graph to a batch. Returns the outputs, and which of them are mapped: those that depend on a mapped input.
///
/// A node that reads mapped values and whose op has no rule is computed by `fallback`; it is not called for an empty batch.
///
/// Calls are made in the mode of the thread: eager or tracing. Values are dropped after their last use.
pub(crate) fn vmap_graph(
    graph: &Graph,
    call: &VmapCall<'_>,
    fallback: &mut Fallback<'_>,
) -> Result<(Vec<Tensor>, Vec<bool>)> {
    check_inputs(graph, call)?;
    let needed = graph.needed();
    let uses = last_uses(graph, &needed);
    let mut values = known_values(graph, call);
    let missing = || Error::new(ErrorKind::Graph, "a value is read before it is computed");
    for (i, node) in graph.nodes.iter().enumerate().filter(|&(i, _)| needed[i]) {
        let mut arguments: SmallVec<[Tensor; 3]> = SmallVec::new();
        let mut mapped: SmallVec<[bool; 3]> = SmallVec::new();
        for id in &node.inputs {
            let (tensor, is_mapped) = values[id.index()].clone().ok_or_else(missing)?;
            arguments.push(tensor);
            mapped.push(is_mapped);
        }
        for id in node.inputs.iter().filter(|id| uses[id.index()] == LastUse::Node(i)) {
            values[id.index()] = None;
        }
        let any_mapped = mapped.contains(&true);
        let outputs = if any_mapped {
            let expected: Vec<Spec> =
                node.outputs.iter().map(|&id| stacked_spec(call.size, graph.spec(id))).collect();
            let node_call = VmapCall { inputs: &arguments, mapped: &mapped, size: call.size };
            vmap_node(node, &node_call, &expected, fallback)?
        } else {
            apply_at(&*node.op, &mut arguments, node.at)?
        };
        for (id, output) in node.outputs.iter().zip(outputs) {
            if uses[id.index()] != LastUse::Never {
                values[id.index()] = Some((output, any_mapped));
            }
        }
    }
    let outputs = graph.outputs.iter().map(|id| values[id.index()].clone().ok_or_else(missing));
    Ok(outputs.collect::<Result<Vec<_>>>()?.into_iter().unzip())
}

/// As [`vmap_graph`], with all outputs mapped.
pub(crate) fn vmap_graph_fully(
    graph: &Graph,
    call: &VmapCall<'_>,
    fallback: &mut Fallback<'_>,
) -> Result<Vec<Tensor>> {
    let (outputs, mapped) = vmap_graph(graph, call, fallback)?;
    let expand = |(output, mapped): (Tensor, bool)| {
        if mapped { Ok(output) } else { repeated(output, call.size) }
    };
    outputs.into_iter().zip(mapped).map(expand).collect()
}

/// A value that is the same for all examples, with a first axis for them.
pub(crate) fn repeated(tensor: Tensor, size: usize) -> Result<Tensor> {
    let shape = tensor.shape().clone().with_inserted(0, size);
    broadcast_to(tensor, shape)
}

/// The inputs and constants of a graph, and whether each is mapped.
fn known_values(graph: &Graph, call: &VmapCall<'_>) -> Vec<Option<(Tensor, bool)>> {
    let mut values: Vec<Option<(Tensor, bool)>> = vec![None; graph.values.len()];
    for ((&id, tensor), &mapped) in graph.inputs.iter().zip(call.inputs).zip(call.mapped) {
        values[id.index()] = Some((tensor.clone(), mapped));
    }
    for (known, value) in values.iter_mut().zip(&graph.values) {
        if let Origin::Constant(tensor) = &value.origin {
            *known = Some((tensor.clone(), false));
        }
    }
    values
}

/// Computes a node that reads mapped values. Its outputs must have the `expected` specs.
fn vmap_node(
    node: &Node,
    call: &VmapCall<'_>,
    expected: &[Spec],
    fallback: &mut Fallback<'_>,
) -> Result<Outputs> {
    with_source_location(None, node.at, || {
        if call.size == 0 {
            return empty(expected);
        }
        let outputs = match node.op.vmap(call)? {
            Some(outputs) => outputs,
            None => fallback(node, call)?,
        };
        if outputs.iter().map(Tensor::spec).ne(expected) {
            let got: Vec<&Spec> = outputs.iter().map(Tensor::spec).collect();
            let message = format!(
                "the vmap rule of {} must return {expected:?} for a batch of {}, got {got:?}",
                node.op.name(),
                call.size
            );
            return Err(Error::new(ErrorKind::Graph, message).at(node.at));
        }
        Ok(outputs)
    })
}

/// The outputs for an empty batch.
fn empty(specs: &[Spec]) -> Result<Outputs> {
    specs.iter().map(|spec| zeros(spec.shape.clone(), spec.dtype)).collect()
}

/// When a value is read last.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastUse {
    /// It is not read.
    Never,
    /// By this node.
    Node(usize),
    /// It is an output.
    Output,
}

/// The last use of every value among the needed nodes.
fn last_uses(graph: &Graph, needed: &[bool]) -> Vec<LastUse> {
    let mut uses = vec![LastUse::Never; graph.values.len()];
    for (i, node) in graph.nodes.iter().enumerate().filter(|&(i, _)| needed[i]) {
        node.inputs.iter().for_each(|id| uses[id.index()] = LastUse::Node(i));
    }
    graph.outputs.iter().for_each(|id| uses[id.index()] = LastUse::Output);
    uses
}

/// Checks that the inputs are those of the graph, with the examples as the first axis of the mapped ones.
fn check_inputs(graph: &Graph, call: &VmapCall<'_>) -> Result<()> {
    let (expected, got) = (graph.inputs.len(), call.inputs.len());
    if got != expected || call.mapped.len() != expected {
        return Err(Error::value(format!("the graph must have {expected} inputs, got {got}")));
    }
    for (i, (&id, (input, &mapped))) in
        graph.inputs.iter().zip(call.inputs.iter().zip(call.mapped)).enumerate()
    {
        let own = graph.spec(id);
        let expected = if mapped { stacked_spec(call.size, own) } else { own.clone() };
        if *input.spec() != expected {
            let message =
                format!("input {i} of a batch of {} must be {expected}, got {}", call.size, input.spec());
            return Err(Error::shape(message));
        }
    }
    Ok(())
}
