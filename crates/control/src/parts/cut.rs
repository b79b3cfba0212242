//! Rows of values that are the same for all parts: a constant of the batch's size, say, that meets rows.

use super::classify::{Classes, NodeClass, ValueClass};
use super::part_op::{part_op, producer};
use smallvec::SmallVec;
use taut_core::Graph;
use taut_core::graph::ValueId;
use taut_core::rows::{RowAxis, RowClass, RowSplit};

/// The rows of one value.
pub(crate) struct Cut {
    pub(crate) value: ValueId,
    pub(crate) axis: RowAxis,
    /// How a part computes its rows; `None` if they are a slice of the whole value.
    pub(crate) computed: Option<(usize, RowSplit)>,
}

/// The rows that parts need, each once. What a cut needs comes before it.
#[derive(Default)]
pub(crate) struct Cuts(pub(crate) Vec<Cut>);

impl Cuts {
    pub(crate) fn position(&self, value: ValueId, axis: RowAxis) -> Option<usize> {
        self.0.iter().position(|cut| (cut.value, cut.axis) == (value, axis))
    }

    /// Adds the rows of all values that these nodes need rows of.
    pub(crate) fn add_all(
        &mut self,
        graph: &Graph,
        classes: &Classes,
        rows: usize,
        in_parts: impl Fn(usize) -> bool,
    ) {
        for (i, node) in graph.nodes.iter().enumerate().filter(|&(i, _)| in_parts(i)) {
            let NodeClass::Part(split) = &classes.nodes[i] else { continue };
            for (&id, class) in node.inputs.iter().zip(&split.inputs) {
                if let (ValueClass::SAME, RowClass::Rows(axis)) = (classes.class(id), class) {
                    self.add(graph, classes, rows, id, *axis);
                }
            }
        }
    }

    /// Adds the rows of a value. They are computed by parts where an op can compute a part alone: what is broadcast, filled or
    /// drawn is never stored for the whole batch.
    pub(crate) fn add(
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
    let fits = split.outputs[0] == RowClass::Rows(axis) && part_op(graph, node, &split, (1, rows)).is_some();
    fits.then_some((i, split))
}
