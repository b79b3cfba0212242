//! Dead-code elimination: removes calls and constants that no output depends on, and the unused outputs of calls whose op
//! can leave them out.

use crate::rewrite::Rewriter;
use taut_core::graph::{Node, ValueId};
use taut_core::{Graph, PrunedOp};

pub(crate) fn eliminate_dead_code(graph: &Graph) -> Graph {
    let liveness = node_liveness(graph);
    let mut new = Rewriter::new(graph);
    let mut map: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    for (node, liveness) in graph.nodes.iter().zip(&liveness) {
        let (op, inputs, outputs) = match liveness {
            NodeLiveness::Dead => continue,
            NodeLiveness::Live => (&node.op, node.inputs.clone(), node.outputs.clone()),
            NodeLiveness::Pruned(PrunedOp { op, inputs, outputs }) => (
                op,
                inputs.iter().map(|&i| node.inputs[i]).collect(),
                outputs.iter().map(|&i| node.outputs[i]).collect(),
            ),
        };
        let inputs = inputs.iter().map(|&id| new.copied(graph, &mut map, id)).collect();
        let specs = outputs.iter().map(|&id| graph.spec(id).clone()).collect();
        let made = new.push(op.clone(), inputs, specs, node.at);
        for (&old, new) in outputs.iter().zip(made) {
            map[old.index()] = Some(new);
        }
    }
    let outputs = graph.outputs.iter().map(|&id| new.copied(graph, &mut map, id)).collect();
    new.finish(outputs)
}

/// How much of a node is live.
enum NodeLiveness {
    Dead,
    Live,
    /// Some of its outputs; the op that computes only those.
    Pruned(PrunedOp),
}

/// Per node, how much of it is live.
fn node_liveness(graph: &Graph) -> Vec<NodeLiveness> {
    let mut live = vec![false; graph.values.len()];
    graph.outputs.iter().for_each(|id| live[id.index()] = true);
    let mut nodes: Vec<NodeLiveness> = Vec::with_capacity(graph.nodes.len());
    for node in graph.nodes.iter().rev() {
        let Node { op, inputs, outputs, .. } = node;
        let count = outputs.iter().filter(|id| live[id.index()]).count();
        let liveness = match () {
            () if count == 0 && !op.effects().is_check() => NodeLiveness::Dead,
            () if count == outputs.len() => NodeLiveness::Live,
            () => {
                let used: Vec<bool> = outputs.iter().map(|id| live[id.index()]).collect();
                let pruned = op.subgraphs().and_then(|subgraphs| subgraphs.prune_outputs(&used));
                pruned.map_or(NodeLiveness::Live, NodeLiveness::Pruned)
            }
        };
        match &liveness {
            NodeLiveness::Dead => {}
            NodeLiveness::Live => inputs.iter().for_each(|id| live[id.index()] = true),
            NodeLiveness::Pruned(pruned) => {
                pruned.inputs.iter().for_each(|&i| live[inputs[i].index()] = true);
            }
        }
        nodes.push(liveness);
    }
    nodes.reverse();
    nodes
}
