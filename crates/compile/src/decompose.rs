//! Decomposition: an op that equals a composition of elementwise ops is replaced by them, so that they are fused with the
//! nodes around it.

use crate::rewrite::Rewriter;
use smallvec::SmallVec;
use std::borrow::Cow;
use taut_core::graph::{Node, ValueId};
use taut_core::{Decompose, Form, Graph, Result, Spec, trace, with_source_location};

pub(crate) fn decompose(graph: Cow<'_, Graph>) -> Result<Graph> {
    if !graph.nodes.iter().any(|node| with_composite(&graph, node, |composite| composite.is_some())) {
        return Ok(graph.into_owned());
    }
    let mut new = Rewriter::new(&graph);
    let mut map: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    for node in &graph.nodes {
        let body = with_composite(&graph, node, |composite| {
            composite.map(|composite| body(&graph, node, composite)).transpose()
        })?;
        if let Some(body) = body {
            inline(&graph, node, &body, &mut new, &mut map);
            continue;
        }
        let inputs = node.inputs.iter().map(|&id| new.copied(&graph, &mut map, id)).collect();
        let specs = node.outputs.iter().map(|&id| graph.spec(id).clone()).collect();
        let made = new.push(node.op.clone(), inputs, specs, node.at);
        for (&old, new) in node.outputs.iter().zip(made) {
            map[old.index()] = Some(new);
        }
    }
    let outputs = graph.outputs.iter().map(|&id| new.copied(&graph, &mut map, id)).collect();
    Ok(new.finish(outputs))
}

/// Calls `work` with the composition that a node equals, if there is one.
fn with_composite<R>(graph: &Graph, node: &Node, work: impl FnOnce(Option<&dyn Decompose>) -> R) -> R {
    let specs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
    match node.op.form(&specs) {
        Form::Composite(composite) => work(Some(composite)),
        _ => work(None),
    }
}

/// The composition as a graph of the node's inputs and outputs.
fn body(graph: &Graph, node: &Node, composite: &dyn Decompose) -> Result<Graph> {
    let specs: Vec<Spec> = node.inputs.iter().map(|&id| graph.spec(id).clone()).collect();
    let run = |inputs: &[taut_core::Tensor]| {
        with_source_location(None, node.at, || Ok(composite.decompose(inputs)?.into_vec()))
    };
    Ok(trace(&specs, run)?.graph)
}

/// Copies a graph in place of a node with the same inputs and outputs.
fn inline(graph: &Graph, node: &Node, body: &Graph, new: &mut Rewriter, map: &mut [Option<ValueId>]) {
    let mut inner: Vec<Option<ValueId>> = vec![None; body.values.len()];
    for (&input, &id) in body.inputs.iter().zip(&node.inputs) {
        inner[input.index()] = Some(new.copied(graph, map, id));
    }
    for part in &body.nodes {
        let inputs = part.inputs.iter().map(|&id| new.copied(body, &mut inner, id)).collect();
        let specs = part.outputs.iter().map(|&id| body.spec(id).clone()).collect();
        let made = new.push(part.op.clone(), inputs, specs, node.at);
        for (&old, new) in part.outputs.iter().zip(made) {
            inner[old.index()] = Some(new);
        }
    }
    for (&output, &id) in body.outputs.iter().zip(&node.outputs) {
        map[id.index()] = Some(new.copied(body, &mut inner, output));
    }
}
