//! The proof: the class of every value.

use super::refusal::MixedRows;
use smallvec::SmallVec;
use taut_core::graph::{Node, Origin, ValueId};
use taut_core::rows::{RowAxis, RowCall, RowClass, RowSplit, split_rows};
use taut_core::{Form, Graph, Kernel, Spec};

/// How a value depends on rows, and when it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueClass {
    /// It has a value for each part; the same for all of them, if that is its class.
    Part(RowClass),
    /// It is known after all parts.
    After,
}

impl ValueClass {
    pub(crate) const SAME: ValueClass = ValueClass::Part(RowClass::Same);

    /// Whether parts have ranges of it, or bits of ranges.
    pub(crate) fn has_rows(self) -> bool {
        matches!(self, ValueClass::Part(RowClass::Rows(_) | RowClass::PackedRows { .. }))
    }

    pub(crate) fn is_partial_sum(self) -> bool {
        self == ValueClass::Part(RowClass::PartialSum)
    }
}

/// When a node is computed.
#[derive(Clone, Debug)]
pub(crate) enum NodeClass {
    /// Nothing needs it.
    Unused,
    /// Once, before all parts.
    Before,
    /// For each part.
    Part(RowSplit),
    /// Once, after all parts.
    After,
}

/// The classes of a graph's values and nodes.
pub(crate) struct Classes {
    pub(crate) values: Vec<ValueClass>,
    pub(crate) nodes: Vec<NodeClass>,
    /// Per value, whether all of its elements are known to be zero.
    zeros: Vec<bool>,
    /// Per value, the node at which its rows were summed or mixed.
    mixers: Vec<Option<usize>>,
    /// Per node, whether it is computed once before all parts, on the whole batch, though it depends on rows: a sum of inputs
    /// that rows depend on, such as the number of tokens that count in a mean.
    whole: Vec<bool>,
    /// Whether a call with side effects comes after all parts: then all later ones do.
    has_late_effects: bool,
}

/// Why a node could not be classified.
enum Conflict {
    /// These inputs of a node must be known for every row.
    Needed {
        node: usize,
        values: Vec<ValueId>,
    },
    Refused(MixedRows),
}

/// The classes of all values of a graph with inputs of these classes.
pub(crate) fn classify(graph: &Graph, inputs: &[RowClass], rows: usize) -> Result<Classes, MixedRows> {
    let mut whole = vec![false; graph.nodes.len()];
    loop {
        let mut classes = Classes::new(graph, inputs, whole);
        match classes.classify_nodes(graph, rows) {
            Ok(()) => return Ok(classes),
            Err(Conflict::Refused(refusal)) => return Err(refusal),
            Err(Conflict::Needed { node, values }) => {
                let cheap = values.iter().find_map(|&value| classes.cheap_sum(graph, value));
                let Some(sum) = cheap else { return Err(classes.refusal(graph, node, &values)) };
                whole = classes.whole;
                whole[sum] = true;
            }
        }
    }
}

/// The classes of all values of a body that computes a part with every run; `None` if a value needs more than one part, or if
/// numbers depend on the position of a row. `zeros` marks inputs that are zero.
pub(crate) fn classify_body(
    graph: &Graph,
    inputs: &[RowClass],
    zeros: &[bool],
    rows: usize,
) -> Option<Classes> {
    let mut classes = Classes::new(graph, inputs, vec![false; graph.nodes.len()]);
    graph.inputs.iter().zip(zeros).for_each(|(id, &zero)| classes.zeros[id.index()] = zero);
    classes.classify_nodes(graph, rows).ok()?;
    let is_local = |node: &NodeClass| match node {
        NodeClass::Unused | NodeClass::Before => true,
        NodeClass::Part(split) => split.positions.is_none(),
        NodeClass::After => false,
    };
    classes.nodes.iter().all(is_local).then_some(classes)
}

impl Classes {
    fn new(graph: &Graph, inputs: &[RowClass], whole: Vec<bool>) -> Classes {
        let mut classes = Classes {
            values: vec![ValueClass::SAME; graph.values.len()],
            nodes: vec![NodeClass::Unused; graph.nodes.len()],
            zeros: graph.values.iter().map(|value| is_zero_constant(&value.origin)).collect(),
            mixers: vec![None; graph.values.len()],
            whole,
            has_late_effects: false,
        };
        for (id, &class) in graph.inputs.iter().zip(inputs) {
            classes.values[id.index()] = ValueClass::Part(class);
        }
        classes
    }

    /// Whether a node that depends on rows is computed once on the whole batch.
    pub(crate) fn is_whole(&self, node: usize) -> bool {
        self.whole[node]
    }

    pub(crate) fn class(&self, value: ValueId) -> ValueClass {
        self.values[value.index()]
    }

    fn classify_nodes(&mut self, graph: &Graph, rows: usize) -> Result<(), Conflict> {
        let needed = graph.needed();
        for i in (0..graph.nodes.len()).filter(|&i| needed[i]) {
            self.nodes[i] = self.classify_node(graph, i, rows)?;
            let node = &graph.nodes[i];
            self.has_late_effects |=
                matches!(self.nodes[i], NodeClass::After) && node.op.effects().is_ordered();
            for (k, id) in node.outputs.iter().enumerate() {
                self.values[id.index()] = match &self.nodes[i] {
                    NodeClass::Unused | NodeClass::Before => ValueClass::SAME,
                    NodeClass::Part(split) => ValueClass::Part(split.outputs[k]),
                    NodeClass::After => ValueClass::After,
                };
                self.mixers[id.index()] = self.mixer(node, i, *id);
                self.zeros[id.index()] = self.is_zero(graph, node);
            }
        }
        match graph
            .outputs
            .iter()
            .find(|id| matches!(self.class(**id), ValueClass::Part(RowClass::PackedRows { .. })))
        {
            Some(&packed) => Err(Conflict::Refused(self.refusal_of(graph, packed, None))),
            None => Ok(()),
        }
    }

    fn classify_node(&self, graph: &Graph, i: usize, rows: usize) -> Result<NodeClass, Conflict> {
        let node = &graph.nodes[i];
        let effects = node.op.effects();
        // Of a view's inputs, only the first has an effect on its value.
        let is_view = node.op.kernel().is_view();
        let read = if is_view { &node.inputs[..1] } else { &node.inputs[..] };
        let any = |test: &dyn Fn(ValueClass) -> bool| read.iter().any(|&id| test(self.class(id)));
        let in_parts =
            node.inputs.iter().any(|&id| !matches!(self.class(id), ValueClass::SAME | ValueClass::After));
        if self.whole[i] {
            return Ok(NodeClass::Before);
        }
        let has_after = any(&|class| class == ValueClass::After);
        if !has_after && !in_parts {
            let late = effects.is_ordered() && self.has_late_effects;
            return Ok(if late { NodeClass::After } else { NodeClass::Before });
        }
        let has_rows = any(&ValueClass::has_rows);
        if !has_rows && (has_after || is_view && !in_parts) {
            return Ok(NodeClass::After);
        }
        let split = if has_after { None } else { self.split(graph, node, rows, false) };
        if effects.is_ordered() && (has_rows || split.is_some()) {
            return Err(Conflict::Refused(MixedRows::side_effect(node)));
        }
        if let Some(split) = split {
            return Ok(NodeClass::Part(split));
        }
        // With its sums, the op would treat rows independently: rows depend on sums over them.
        if has_rows && self.split(graph, node, rows, true).is_some() {
            let is_sum =
                |id: &ValueId| self.class(*id) == ValueClass::After || self.class(*id).is_partial_sum();
            let values = read.iter().copied().filter(is_sum).collect();
            return Err(Conflict::Needed { node: i, values });
        }
        if any(&|class| matches!(class, ValueClass::Part(RowClass::PackedRows { .. }))) {
            return Err(Conflict::Refused(MixedRows::mixed(node, None)));
        }
        // The op needs all rows at once, or finished sums.
        Ok(NodeClass::After)
    }

    /// How a node computes a part; with `known_sums`, if sums over parts were known to every part.
    fn split(&self, graph: &Graph, node: &Node, rows: usize, known_sums: bool) -> Option<RowSplit> {
        let class = |id: &ValueId| match self.class(*id) {
            ValueClass::After => RowClass::Same,
            ValueClass::Part(RowClass::PartialSum) if known_sums => RowClass::Same,
            ValueClass::Part(class) => class,
        };
        let classes: SmallVec<[RowClass; 3]> = node.inputs.iter().map(class).collect();
        self.split_with(graph, node, &classes, rows, None)
    }

    /// How a node computes a part, given the classes of its inputs, or the rows that are wanted of its output.
    pub(crate) fn split_with(
        &self,
        graph: &Graph,
        node: &Node,
        classes: &[RowClass],
        rows: usize,
        wanted: Option<RowAxis>,
    ) -> Option<RowSplit> {
        let inputs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
        let outputs: SmallVec<[&Spec; 1]> = node.outputs.iter().map(|&id| graph.spec(id)).collect();
        let zeros: SmallVec<[bool; 3]> = node.inputs.iter().map(|id| self.zeros[id.index()]).collect();
        let call = RowCall { rows, inputs: &inputs, classes, zeros: &zeros, outputs: &outputs, wanted };
        split_rows(&*node.op, &call)
    }

    /// The node at which the rows that an output depends on were summed or mixed.
    fn mixer(&self, node: &Node, i: usize, output: ValueId) -> Option<usize> {
        let class = self.class(output);
        if class != ValueClass::After && !class.is_partial_sum() {
            return None;
        }
        let earlier = node.inputs.iter().find_map(|id| self.mixers[id.index()]);
        let mixes_here = node.inputs.iter().any(|&id| self.class(id).has_rows());
        if mixes_here { Some(i) } else { earlier.or(Some(i)) }
    }

    fn is_zero(&self, graph: &Graph, node: &Node) -> bool {
        let inputs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
        match (node.op.form(&inputs), node.op.kernel()) {
            (Form::Uniform(value), _) => value.is_zero(),
            (_, Kernel::View(_)) => self.zeros[node.inputs[0].index()],
            _ => false,
        }
    }

    /// The node at which the rows that a value depends on were summed, if computing it once on the whole batch costs no more than
    /// reading the inputs.
    fn cheap_sum(&self, graph: &Graph, value: ValueId) -> Option<usize> {
        let last = self.mixers[value.index()]?;
        let (mut needed, mut read) = (vec![false; graph.nodes.len()], 0);
        needed[last] = true;
        let mut inputs: Vec<ValueId> = Vec::new();
        for i in (0..=last).rev().filter(|&i| !matches!(self.nodes[i], NodeClass::Before)) {
            if !needed[i] {
                continue;
            }
            for &id in &graph.nodes[i].inputs {
                match graph.values[id.index()].origin {
                    Origin::Node { node, .. } => needed[node] = true,
                    Origin::Input(_) if self.class(id).has_rows() && !inputs.contains(&id) => inputs.push(id),
                    _ => {}
                }
            }
        }
        inputs.iter().for_each(|&id| read += graph.spec(id).shape.len());
        let is_cheap = |i: usize| {
            let Node { op, outputs, .. } = &graph.nodes[i];
            let arithmetic = matches!(op.kernel(), Kernel::Elementwise | Kernel::Reduce | Kernel::View(_));
            arithmetic && outputs.iter().all(|&id| graph.spec(id).shape.len() <= read)
        };
        let depends = |i: &usize| needed[*i] && !matches!(self.nodes[*i], NodeClass::Before);
        (0..=last).filter(depends).all(is_cheap).then_some(last)
    }

    fn refusal(&self, graph: &Graph, node: usize, values: &[ValueId]) -> MixedRows {
        let mixed = values.iter().copied().find(|id| self.mixers[id.index()].is_some());
        let reader = &graph.nodes[node];
        mixed.map_or_else(|| MixedRows::mixed(reader, None), |id| self.refusal_of(graph, id, Some(reader)))
    }

    fn refusal_of(&self, graph: &Graph, value: ValueId, reader: Option<&Node>) -> MixedRows {
        let made_by = match graph.values[value.index()].origin {
            Origin::Node { node, .. } => Some(node),
            _ => None,
        };
        match self.mixers[value.index()].or(made_by) {
            Some(mixer) => MixedRows::mixed(&graph.nodes[mixer], reader),
            None => MixedRows::NoRows,
        }
    }

    /// Per node, whether it is computed on the whole batch before the parts, for a sum that rows depend on.
    pub(crate) fn computed_whole(&self, graph: &Graph) -> Vec<bool> {
        let mut whole = self.whole.clone();
        for (i, node) in graph.nodes.iter().enumerate().rev() {
            if !whole[i] {
                continue;
            }
            for id in &node.inputs {
                if let Origin::Node { node, .. } = graph.values[id.index()].origin {
                    whole[node] |= !matches!(self.nodes[node], NodeClass::Before);
                }
            }
        }
        whole
    }
}

fn is_zero_constant(origin: &Origin) -> bool {
    let Origin::Constant(tensor) = origin else { return false };
    // All dtypes have zero as zero bytes. Larger constants are not looked at.
    tensor.len() == 1
        && tensor
            .view()
            .is_ok_and(|view| view.contiguous_bytes().is_some_and(|bytes| bytes.iter().all(|&b| b == 0)))
}
