//! Ops that hold graphs, planned for less memory.

use taut_core::{Graph, Result, Spec};

/// Ops that take less than this part of a plan's bytes as scratch memory are left as they are.
const LARGE: usize = 4;

/// The same graph with the graphs of its largest ops planned for a `divisor`-th part of their memory; `None` if there is no such
/// op. The ops are [prepared](taut_core::Subgraphs::prepare): a plan of the graph was made, and takes `bytes`.
pub fn with_smaller_subgraphs(graph: &Graph, bytes: usize, divisor: usize) -> Result<Option<Graph>> {
    let mut smaller: Option<Graph> = None;
    for (number, node) in graph.nodes.iter().enumerate() {
        let Some(subgraphs) = node.op.subgraphs() else { continue };
        let inputs: Vec<&Spec> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
        if node.op.scratch(&inputs).saturating_mul(LARGE) < bytes {
            continue;
        }
        if let Some(op) = subgraphs.with_smaller_plans(divisor)? {
            smaller.get_or_insert_with(|| graph.clone()).nodes[number].op = op;
        }
    }
    Ok(smaller)
}
