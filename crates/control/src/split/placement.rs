//! What the loop over parts computes, and what it hands on.

use crate::parts::{Classes, Cuts, MixedRows, NodeClass, ValueClass};
use taut_core::graph::{Node, ValueId};
use taut_core::rows::{RowAxis, RowClass};
use taut_core::{DType, Graph, Spec};

/// A graph whose batch can be computed in parts.
pub(super) struct PlacedGraph {
    pub(super) graph: Graph,
    /// The number of rows of the batch.
    pub(super) rows: usize,
    pub(super) classes: Classes,
    pub(super) placement: Placement,
}

/// When every node is computed, and which values leave the loop over parts.
pub(super) struct Placement {
    /// Per node, whether it is computed for each part.
    pub(super) in_body: Vec<bool>,
    /// Per node, whether it is computed after all parts.
    pub(super) after: Vec<bool>,
    /// Per node, whether it is computed on the whole batch before the parts, though it depends on rows.
    pub(super) whole: Vec<bool>,
    /// The inputs of the graph with rows that parts read.
    pub(super) row_inputs: Vec<ValueId>,
    /// The sums over parts that are needed after them.
    pub(super) sums: Vec<ValueId>,
    /// Nodes that add to a sum in place, each with the position of that sum.
    pub(super) adds: Vec<(usize, usize)>,
    /// The values with rows that are needed after all parts.
    pub(super) stacks: Vec<(ValueId, RowAxis)>,
    /// The rows of values that are the same for all parts.
    pub(super) cuts: Cuts,
}

/// Where values are needed, from the last node to the first.
struct Uses {
    by_parts: Vec<bool>,
    after: Vec<bool>,
}

impl Placement {
    pub(super) fn new(graph: &Graph, classes: &Classes, rows: usize) -> Result<Placement, MixedRows> {
        let mut placement = Placement {
            in_body: vec![false; graph.nodes.len()],
            after: vec![false; graph.nodes.len()],
            whole: classes.computed_whole(graph),
            row_inputs: Vec::new(),
            sums: Vec::new(),
            adds: Vec::new(),
            stacks: Vec::new(),
            cuts: Cuts::default(),
        };
        let values = graph.values.len();
        let mut uses = Uses { by_parts: vec![false; values], after: vec![false; values] };
        graph.outputs.iter().for_each(|id| uses.after[id.index()] = true);
        for i in (0..graph.nodes.len()).rev() {
            placement.place(graph, classes, &mut uses, i);
        }
        placement.hand_on(graph, classes, &uses)?;
        let in_body = &placement.in_body;
        placement.cuts.add_all(graph, classes, rows, |i| in_body[i]);
        placement.check_joins(graph, classes)?;
        let has_checks = |i: usize| placement.in_body[i] && graph.nodes[i].op.effects().is_check();
        let is_empty = placement.sums.is_empty() && placement.stacks.is_empty();
        if is_empty && !(0..graph.nodes.len()).any(has_checks) {
            return Err(MixedRows::NoRows);
        }
        Ok(placement)
    }

    fn place(&mut self, graph: &Graph, classes: &Classes, uses: &mut Uses, i: usize) {
        let node = &graph.nodes[i];
        let read = read_inputs(node);
        let marked = |marks: &[bool]| node.outputs.iter().any(|id| marks[id.index()]);
        match &classes.nodes[i] {
            NodeClass::Unused | NodeClass::Before => {}
            NodeClass::After => {
                self.after[i] = true;
                read.iter().for_each(|id| uses.after[id.index()] = true);
            }
            NodeClass::Part(_) => {
                let needed = marked(&uses.by_parts) || node.op.effects().is_check();
                let is_linear = node.outputs.iter().all(|&id| classes.class(id).is_partial_sum())
                    && !node.inputs.iter().any(|&id| classes.class(id).has_rows());
                if is_linear && !needed && marked(&uses.after) && !lowers_bytes(graph, classes, uses, node) {
                    self.after[i] = true;
                    read.iter().for_each(|id| uses.after[id.index()] = true);
                } else if needed || marked(&uses.after) {
                    self.in_body[i] = true;
                    node.inputs.iter().for_each(|id| uses.by_parts[id.index()] = true);
                }
            }
        }
    }

    /// Refuses calls that need the rows of all parts and are more work than the parts: splitting the rest would gain little.
    fn check_joins(&self, graph: &Graph, classes: &Classes) -> Result<(), MixedRows> {
        let flops = |i: &usize| {
            let Node { op, inputs, outputs, .. } = &graph.nodes[*i];
            let inputs: Vec<&Spec> = inputs.iter().map(|&id| graph.spec(id)).collect();
            let outputs: Vec<Spec> = outputs.iter().map(|&id| graph.spec(id).clone()).collect();
            op.cost(&inputs, &outputs).flops
        };
        let in_parts = (0..graph.nodes.len()).filter(|&i| self.in_body[i]);
        let work = in_parts.map(|i| flops(&i)).fold(0, u64::saturating_add);
        let joins = |i: &usize| {
            self.after[*i] && read_inputs(&graph.nodes[*i]).iter().any(|&id| classes.class(id).has_rows())
        };
        match (0..graph.nodes.len()).filter(joins).find(|i| flops(i) > work) {
            Some(i) => Err(MixedRows::mixed(&graph.nodes[i], None)),
            None => Ok(()),
        }
    }

    /// Collects the values that the loop reads and hands on.
    fn hand_on(&mut self, graph: &Graph, classes: &Classes, uses: &Uses) -> Result<(), MixedRows> {
        let with_rows = graph.inputs.iter().filter(|&&id| classes.class(id).has_rows());
        self.row_inputs = with_rows.copied().filter(|id| uses.by_parts[id.index()]).collect();
        for (i, node) in graph.nodes.iter().enumerate().filter(|&(i, _)| self.in_body[i] && !self.whole[i]) {
            for &id in node.outputs.iter().filter(|id| uses.after[id.index()]) {
                match classes.class(id) {
                    ValueClass::Part(RowClass::PartialSum) => {
                        if adds_in_place(graph, classes, uses, i) {
                            self.adds.push((i, self.sums.len()));
                        }
                        self.sums.push(id);
                    }
                    ValueClass::Part(RowClass::Rows(axis)) => self.stacks.push((id, axis)),
                    ValueClass::Part(RowClass::PackedRows { .. }) => {
                        return Err(MixedRows::mixed(&graph.nodes[i], None));
                    }
                    ValueClass::Part(RowClass::Same) | ValueClass::After => {}
                }
            }
        }
        Ok(())
    }
}

/// Whether a node can add to a sum over parts, instead of adding to zero first.
fn adds_in_place(graph: &Graph, classes: &Classes, uses: &Uses, i: usize) -> bool {
    let (NodeClass::Part(split), [output]) = (&classes.nodes[i], &graph.nodes[i].outputs[..]) else {
        return false;
    };
    let inputs = &graph.nodes[i].inputs;
    let is_zero = classes.class(inputs[0]) == ValueClass::SAME && !inputs[1..].contains(&inputs[0]);
    let dtype = graph.spec(*output).dtype;
    split.adds_to_first && is_zero && !uses.by_parts[output.index()] && sum_dtype(dtype) == dtype
}

/// The dtype in which parts are summed: at least 32 bits.
pub(super) fn sum_dtype(dtype: DType) -> DType {
    if dtype.is_float() && dtype.size() < 4 { DType::F32 } else { dtype }
}

/// The inputs that determine a node's value: of a view, the first.
pub(super) fn read_inputs(node: &Node) -> &[ValueId] {
    if node.op.kernel().is_view() { &node.inputs[..1] } else { &node.inputs }
}

/// Whether a linear op on sums is better computed for each part: its outputs are smaller than the sums it reads, of which each
/// would be kept from part to part, or it widens a sum of 16-bit floats.
fn lowers_bytes(graph: &Graph, classes: &Classes, uses: &Uses, node: &Node) -> bool {
    let mut sums: Vec<ValueId> = Vec::new();
    for &id in read_inputs(node) {
        let kept_anyway = uses.after[id.index()];
        if classes.class(id).is_partial_sum() && !kept_anyway && !sums.contains(&id) {
            sums.push(id);
        }
    }
    let bytes = |ids: &[ValueId]| ids.iter().map(|&id| graph.spec(id).bytes()).sum::<usize>();
    let is_narrow = |spec: &Spec| spec.dtype.is_float() && spec.dtype.size() < 4;
    let widens = sums.iter().any(|&id| is_narrow(graph.spec(id)))
        && !node.outputs.iter().any(|&id| is_narrow(graph.spec(id)));
    widens || bytes(&sums) > bytes(&node.outputs)
}
