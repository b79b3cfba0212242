//! One more interpreter of graphs: many sets of inputs at once.
//!
//! Every value is either the same in all sets, and computed once, or *mapped*: it has the sets as its first axis. A node
//! that reads a mapped value is computed by its op's rule, [`Op::vmap`](taut_core::Op::vmap).

#[cfg(test)]
mod tests;

use crate::looping::stacked;
use smallvec::SmallVec;
use taut_core::graph::{Node, Origin};
use taut_core::ops::creation::zeros;
use taut_core::{
    Error, ErrorKind, Graph, Outputs, Result, Spec, Tensor, VmapCall, apply_at, with_source_location,
};

/// Computes a graph for `size` sets of inputs, of which the mapped ones have the sets as their first axis. Returns the
/// outputs, and which of them are mapped: those that depend on a mapped input.
///
/// What a node that reads mapped values gives is asked of `without_rule` if its op has no rule: with the node, its inputs,
/// which of them are mapped, and the number of sets. Of no sets, nothing is asked.
///
/// It works in the mode that the thread is in: eagerly, or tracing. Values are dropped after their last use.
pub(crate) fn batched(
    graph: &Graph,
    inputs: &[Tensor],
    mapped: &[bool],
    size: usize,
    without_rule: &mut dyn FnMut(&Node, &[Tensor], &[bool], usize) -> Result<Outputs>,
) -> Result<(Vec<Tensor>, Vec<bool>)> {
    check(graph, inputs, mapped, size)?;
    let needed = graph.needed();
    let uses = last_uses(graph, &needed);
    let mut values: Vec<Option<(Tensor, bool)>> = vec![None; graph.values.len()];
    for ((&id, tensor), &mapped) in graph.inputs.iter().zip(inputs).zip(mapped) {
        values[id.index()] = Some((tensor.clone(), mapped));
    }
    for (slot, value) in values.iter_mut().zip(&graph.values) {
        if let Origin::Constant(tensor) = &value.origin {
            *slot = Some((tensor.clone(), false));
        }
    }
    let missing = || Error::new(ErrorKind::Graph, "a value is read before it is made");
    for (i, node) in graph.nodes.iter().enumerate().filter(|&(i, _)| needed[i]) {
        let mut arguments: SmallVec<[Tensor; 3]> = SmallVec::new();
        let mut mapped: SmallVec<[bool; 3]> = SmallVec::new();
        for id in &node.inputs {
            let (tensor, is_mapped) = values[id.index()].clone().ok_or_else(missing)?;
            arguments.push(tensor);
            mapped.push(is_mapped);
        }
        for id in node.inputs.iter().filter(|id| uses[id.index()] == Use::Last(i)) {
            values[id.index()] = None;
        }
        let any = mapped.contains(&true);
        let outputs = if any {
            let wanted = node.outputs.iter().map(|&id| stacked(size, graph.spec(id)));
            let call = VmapCall { inputs: &arguments, mapped: &mapped, size };
            many_sets(node, &call, &wanted.collect::<Vec<_>>(), without_rule)?
        } else {
            apply_at(&*node.op, &mut arguments, node.at)?
        };
        for (id, output) in node.outputs.iter().zip(outputs) {
            if uses[id.index()] != Use::Never {
                values[id.index()] = Some((output, any));
            }
        }
    }
    let outputs = graph.outputs.iter().map(|id| values[id.index()].clone().ok_or_else(missing));
    Ok(outputs.collect::<Result<Vec<_>>>()?.into_iter().unzip())
}

/// A node that reads mapped values: by its rule, or else as the caller says. Its outputs have the `wanted` specs.
fn many_sets(
    node: &Node,
    call: &VmapCall<'_>,
    wanted: &[Spec],
    without_rule: &mut dyn FnMut(&Node, &[Tensor], &[bool], usize) -> Result<Outputs>,
) -> Result<Outputs> {
    with_source_location(None, node.at, || {
        if call.size == 0 {
            return empty(wanted);
        }
        let outputs = match node.op.vmap(call)? {
            Some(outputs) => outputs,
            None => without_rule(node, call.inputs, call.mapped, call.size)?,
        };
        if outputs.iter().map(Tensor::spec).ne(wanted) {
            let got: Vec<&Spec> = outputs.iter().map(Tensor::spec).collect();
            let message = format!("of {} sets, {} makes {got:?}, not {wanted:?}", call.size, node.op.name());
            return Err(Error::new(ErrorKind::Graph, message).at(node.at));
        }
        Ok(outputs)
    })
}

/// What no sets at all give.
fn empty(specs: &[Spec]) -> Result<Outputs> {
    specs.iter().map(|spec| zeros(spec.shape.clone(), spec.dtype)).collect()
}

/// How long a value lives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// Nobody reads it.
    Never,
    /// Until this node has read it.
    Last(usize),
    /// It is an output.
    Output,
}

/// Of every value, its last use among the nodes that are needed.
fn last_uses(graph: &Graph, needed: &[bool]) -> Vec<Use> {
    let mut uses = vec![Use::Never; graph.values.len()];
    for (i, node) in graph.nodes.iter().enumerate().filter(|&(i, _)| needed[i]) {
        node.inputs.iter().for_each(|id| uses[id.index()] = Use::Last(i));
    }
    graph.outputs.iter().for_each(|id| uses[id.index()] = Use::Output);
    uses
}

/// Refuses inputs that are not those of the graph, each with its sets.
fn check(graph: &Graph, inputs: &[Tensor], mapped: &[bool], size: usize) -> Result<()> {
    if inputs.len() != graph.inputs.len() || mapped.len() != graph.inputs.len() {
        let message = format!("the graph takes {} inputs, not {}", graph.inputs.len(), inputs.len());
        return Err(Error::value(message));
    }
    for (i, (&id, (input, &mapped))) in graph.inputs.iter().zip(inputs.iter().zip(mapped)).enumerate() {
        let own = graph.spec(id);
        let wanted = if mapped { stacked(size, own) } else { own.clone() };
        if *input.spec() != wanted {
            let message = format!("input {i} is {}, and {size} sets take {wanted}", input.spec());
            return Err(Error::shape(message));
        }
    }
    Ok(())
}
