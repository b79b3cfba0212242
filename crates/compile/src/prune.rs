//! Leaves out the calls that lead to no output, and the constants that nobody reads.

use crate::rewrite::Rewriter;
use taut_core::Graph;
use taut_core::graph::ValueId;

pub(crate) fn prune(graph: &Graph) -> Graph {
    let mut new = Rewriter::new(graph);
    let mut map: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    for (node, _) in graph.nodes.iter().zip(graph.needed()).filter(|&(_, needed)| needed) {
        let inputs = node.inputs.iter().map(|&id| new.copied(graph, &mut map, id)).collect();
        let specs = node.outputs.iter().map(|&id| graph.spec(id).clone()).collect();
        let outputs = new.push(node.op.clone(), inputs, specs, node.at);
        for (&old, new) in node.outputs.iter().zip(outputs) {
            map[old.index()] = Some(new);
        }
    }
    let outputs = graph.outputs.iter().map(|&id| new.copied(graph, &mut map, id)).collect();
    new.finish(outputs)
}
