//! The op that computes a part.

use std::sync::Arc;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::rows::{RowClass, RowPart, RowSplit, op_for_rows};
use taut_core::{Graph, Op, Spec};

/// The node that computes a value.
pub(crate) fn producer(graph: &Graph, value: ValueId) -> Option<(usize, &Node)> {
    match graph.values[value.index()].origin {
        Origin::Node { node, .. } => Some((node, &graph.nodes[node])),
        _ => None,
    }
}

/// The op that computes a part of so many rows of the whole batch's.
pub(crate) fn part_op(
    graph: &Graph,
    node: &Node,
    split: &RowSplit,
    (rows, whole_rows): (usize, usize),
) -> Option<Arc<dyn Op>> {
    let part = |id: ValueId, class: RowClass| match class {
        RowClass::Rows(axis) => axis.resize(graph.spec(id), rows),
        _ => graph.spec(id).clone(),
    };
    let is_packed = |class: &RowClass| matches!(class, RowClass::PackedRows { .. });
    if split.outputs.iter().any(is_packed) {
        return Some(node.op.clone());
    }
    let outputs: Vec<Spec> =
        node.outputs.iter().zip(&split.outputs).map(|(&id, &class)| part(id, class)).collect();
    let mut inputs: Vec<Spec> =
        node.inputs.iter().zip(&split.inputs).map(|(&id, &class)| part(id, class)).collect();
    inputs.extend(split.positions.map(|_| crate::specs::index_spec()));
    let inputs: Vec<&Spec> = inputs.iter().collect();
    let part = RowPart { rows, whole_rows, split, inputs: &inputs, outputs: &outputs };
    if split.inputs.iter().any(is_packed) {
        // The bits of a part fit the op that has the part's shape.
        let resized = node.op.rows().and_then(|rule| rule.resized(&part));
        return Some(resized.unwrap_or_else(|| node.op.clone()));
    }
    op_for_rows(&node.op, &part)
}
