//! Liveness of values: the last node that needs each.

use taut_core::Graph;
use taut_core::graph::Origin;

/// The last node that needs each value or a view of it; `usize::MAX` for inputs, constants and returned values.
pub(crate) fn last_uses(graph: &Graph) -> Vec<usize> {
    let is_computed = |origin: &Origin| matches!(origin, Origin::Node { .. });
    let values = graph.values.iter();
    let mut last: Vec<usize> =
        values.map(|value| if is_computed(&value.origin) { 0 } else { usize::MAX }).collect();
    graph.outputs.iter().for_each(|id| last[id.index()] = usize::MAX);
    for (number, node) in graph.nodes.iter().enumerate().rev() {
        let view = node.op.kernel().is_view();
        let needed = if view { last[node.outputs[0].index()].max(number) } else { number };
        for id in &node.inputs {
            last[id.index()] = last[id.index()].max(needed);
        }
    }
    last
}
