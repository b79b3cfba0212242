//! Leaves out the calls that lead to no output, and the constants that nobody reads. Of a call that can do with less, it
//! leaves out what is not used.

use crate::rewrite::Rewriter;
use taut_core::graph::{Node, ValueId};
use taut_core::{Graph, PrunedOp};

pub(crate) fn prune(graph: &Graph) -> Graph {
    let trims = trims(graph);
    let mut new = Rewriter::new(graph);
    let mut map: Vec<Option<ValueId>> = vec![None; graph.values.len()];
    for (node, keep) in graph.nodes.iter().zip(&trims) {
        let (op, inputs, outputs) = match keep {
            Keep::Nothing => continue,
            Keep::All => (&node.op, node.inputs.clone(), node.outputs.clone()),
            Keep::Part(PrunedOp { op, inputs, outputs }) => (
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

/// What of a node is kept.
enum Keep {
    Nothing,
    All,
    Part(PrunedOp),
}

/// Per node, what of it is needed.
fn trims(graph: &Graph) -> Vec<Keep> {
    let mut used = vec![false; graph.values.len()];
    graph.outputs.iter().for_each(|id| used[id.index()] = true);
    let mut keeps: Vec<Keep> = Vec::with_capacity(graph.nodes.len());
    for node in graph.nodes.iter().rev() {
        let Node { op, inputs, outputs, .. } = node;
        let count = outputs.iter().filter(|id| used[id.index()]).count();
        let keep = match () {
            () if count == 0 && !op.effects().is_check() => Keep::Nothing,
            () if count == outputs.len() => Keep::All,
            () => {
                let marks: Vec<bool> = outputs.iter().map(|id| used[id.index()]).collect();
                let pruned = op.subgraphs().and_then(|held| held.prune_outputs(&marks));
                pruned.map_or(Keep::All, Keep::Part)
            }
        };
        match &keep {
            Keep::Nothing => {}
            Keep::All => inputs.iter().for_each(|id| used[id.index()] = true),
            Keep::Part(prune_outputs) => {
                prune_outputs.inputs.iter().for_each(|&i| used[inputs[i].index()] = true)
            }
        }
        keeps.push(keep);
    }
    keeps.reverse();
    keeps
}
