//! Leaves out the calls that lead to no output, and the constants that nobody reads.

use crate::rewrite::Rewriter;
use taut_core::Graph;
use taut_core::graph::{Origin, ValueId};

pub(crate) fn prune(graph: &Graph) -> Graph {
    let mut needed = vec![false; graph.nodes.len()];
    let mark = |needed: &mut Vec<bool>, id: ValueId| {
        if let Origin::Node { node, .. } = graph.values[id.index()].origin {
            needed[node] = true;
        }
    };
    graph.outputs.iter().for_each(|&id| mark(&mut needed, id));
    for (i, node) in graph.nodes.iter().enumerate().rev() {
        if needed[i] {
            node.inputs.iter().for_each(|&id| mark(&mut needed, id));
        }
    }

    let mut new = Rewriter::new(graph);
    let mut map: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    for (node, _) in graph.nodes.iter().zip(needed).filter(|&(_, needed)| needed) {
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
