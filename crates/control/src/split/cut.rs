//! Rows of values that are the same for all parts: a constant of the batch's size, say, that meets rows.

use super::classify::{Classes, NodeClass};
use super::placement::producer;
use smallvec::SmallVec;
use taut_core::graph::{Node, ValueId};
use taut_core::rows::{RowAxis, RowClass, RowSplit, op_for_rows};
use taut_core::{Graph, Spec};

/// The rows of one value.
pub(super) struct Cut {
    pub(super) value: ValueId,
    pub(super) axis: RowAxis,
    /// How a part computes its rows; `None` if they are a slice of the whole value.
    pub(super) computed: Option<(usize, RowSplit)>,
}

/// The rows that parts need, each once. What a cut needs comes before it.
#[derive(Default)]
pub(super) struct Cuts(pub(super) Vec<Cut>);

impl Cuts {
    pub(super) fn position(&self, value: ValueId, axis: RowAxis) -> Option<usize> {
        self.0.iter().position(|cut| (cut.value, cut.axis) == (value, axis))
    }

    /// Adds the rows of a value. They are computed by parts where an op can compute a part alone: what is broadcast, filled or
    /// drawn is never stored for the whole batch.
    pub(super) fn add(
        &mut self,
        graph: &Graph,
        classes: &Classes,
        rows: usize,
        value: ValueId,
        axis: RowAxis,
    ) {
        if self.position(value, axis).is_some() {
            return;
        }
        let computed = computed_by_parts(graph, classes, rows, value, axis);
        if let Some((node, split)) = &computed {
            for (&id, class) in graph.nodes[*node].inputs.iter().zip(&split.inputs) {
                if let RowClass::Rows(axis) = *class {
                    self.add(graph, classes, rows, id, axis);
                }
            }
        }
        self.0.push(Cut { value, axis, computed });
    }
}

fn computed_by_parts(
    graph: &Graph,
    classes: &Classes,
    rows: usize,
    value: ValueId,
    axis: RowAxis,
) -> Option<(usize, RowSplit)> {
    let (i, node) = producer(graph, value)?;
    let is_plain = matches!(classes.nodes[i], NodeClass::Before) && node.outputs.len() == 1;
    let effects = node.op.effects();
    if !is_plain || effects.is_check() || effects.is_ordered() || classes.is_whole(i) {
        return None;
    }
    let same: SmallVec<[RowClass; 3]> = SmallVec::from_elem(RowClass::Same, node.inputs.len());
    let split = classes.split_with(graph, node, &same, rows, Some(axis))?;
    let fits = split.outputs[0] == RowClass::Rows(axis) && part_op(graph, node, &split, 1).is_some();
    fits.then_some((i, split))
}

/// The op that computes a part of so many rows.
pub(super) fn part_op(
    graph: &Graph,
    node: &Node,
    split: &RowSplit,
    rows: usize,
) -> Option<std::sync::Arc<dyn taut_core::Op>> {
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
    if split.inputs.iter().any(is_packed) {
        // The bits of a part fit the op that has the part's shape.
        let resized = node.op.rows().and_then(|rule| rule.resized(&outputs));
        return Some(resized.unwrap_or_else(|| node.op.clone()));
    }
    let mut inputs: Vec<Spec> =
        node.inputs.iter().zip(&split.inputs).map(|(&id, &class)| part(id, class)).collect();
    inputs.extend(split.positions.map(|_| crate::specs::index_spec()));
    op_for_rows(&node.op, split, &inputs.iter().collect::<Vec<_>>(), &outputs)
}
