//! Reachability in graphs: what depends on an input, and what an output depends on.

use taut_core::Graph;

/// Per value, whether it depends on one of the marked inputs.
pub(crate) fn depends_on_inputs(graph: &Graph, inputs: &[bool]) -> Vec<bool> {
    let mut depends = vec![false; graph.values.len()];
    graph.inputs.iter().zip(inputs).for_each(|(id, &marked)| depends[id.index()] = marked);
    for node in &graph.nodes {
        if node.inputs.iter().any(|id| depends[id.index()]) {
            node.outputs.iter().for_each(|id| depends[id.index()] = true);
        }
    }
    depends
}

/// Per input, whether one of the marked outputs depends on it.
pub(crate) fn inputs_of_outputs(graph: &Graph, outputs: &[bool]) -> Vec<bool> {
    let mut needed = vec![false; graph.values.len()];
    for (id, _) in graph.outputs.iter().zip(outputs).filter(|(_, marked)| **marked) {
        needed[id.index()] = true;
    }
    for node in graph.nodes.iter().rev() {
        if node.outputs.iter().any(|id| needed[id.index()]) {
            node.inputs.iter().for_each(|id| needed[id.index()] = true);
        }
    }
    graph.inputs.iter().map(|id| needed[id.index()]).collect()
}

/// Per input, whether a node or an output reads it.
pub(crate) fn inputs_read(graph: &Graph) -> Vec<bool> {
    let mut read = vec![false; graph.values.len()];
    let uses = graph.nodes.iter().flat_map(|node| &node.inputs).chain(&graph.outputs);
    uses.for_each(|id| read[id.index()] = true);
    graph.inputs.iter().map(|id| read[id.index()]).collect()
}
