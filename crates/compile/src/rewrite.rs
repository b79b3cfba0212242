//! Builds a new graph, with common-subexpression elimination: equal calls of equal inputs become one.

use smallvec::SmallVec;
use std::collections::HashMap;
use std::fmt::{self, Write};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use taut_core::graph::{GraphValue, Node, Origin, ValueId};
use taut_core::{Form, Graph, Op, Spec, Specs, Tensor};
use taut_memory::Location;

/// The values that a node reads.
pub(crate) type NodeInputs = SmallVec<[ValueId; 3]>;
/// The values that a node computes.
pub(crate) type NodeOutputs = SmallVec<[ValueId; 1]>;

/// Builds a graph with the inputs of another.
pub(crate) struct Rewriter {
    pub(crate) graph: Graph,
    /// Nodes by the hash of their op, inputs and output specs.
    calls: HashMap<u64, SmallVec<[u32; 1]>>,
    /// Constants of one element, by type and bytes.
    scalars: HashMap<(taut_core::DType, [u8; 8]), ValueId>,
}

impl Rewriter {
    /// A graph with the inputs of `old` and no nodes. Input n is value n.
    pub(crate) fn new(old: &Graph) -> Rewriter {
        let mut graph = Graph { nodes: Vec::with_capacity(old.nodes.len()), ..Graph::default() };
        graph.values.reserve(old.values.len());
        let mut new = Rewriter { graph, calls: HashMap::new(), scalars: HashMap::new() };
        for (i, &id) in old.inputs.iter().enumerate() {
            let id = new.value(old.spec(id).clone(), Origin::Input(i));
            new.graph.inputs.push(id);
        }
        new
    }

    pub(crate) fn finish(mut self, outputs: Vec<ValueId>) -> Graph {
        self.graph.outputs = outputs;
        self.graph
    }

    fn value(&mut self, spec: Spec, origin: Origin) -> ValueId {
        self.graph.values.push(GraphValue { spec, origin });
        ValueId(self.graph.values.len() as u32 - 1)
    }

    /// A value of `old` in the new graph; `map` holds the new ids of computed values. Constants are copied at their first
    /// use.
    pub(crate) fn copied(&mut self, old: &Graph, map: &mut [Option<ValueId>], id: ValueId) -> ValueId {
        if let Some(new) = map[id.index()] {
            return new;
        }
        let new = match &old.values[id.index()].origin {
            Origin::Input(input) => self.graph.inputs[*input],
            Origin::Constant(tensor) => self.constant(tensor.clone()),
            Origin::Node { .. } => unreachable!("a verified graph computes a value before it is read"),
        };
        map[id.index()] = Some(new);
        new
    }

    pub(crate) fn constant(&mut self, tensor: Tensor) -> ValueId {
        let key = scalar_bytes(&tensor).map(|bytes| (tensor.dtype(), bytes)).filter(|_| tensor.rank() == 0);
        if let Some(&known) = key.as_ref().and_then(|key| self.scalars.get(key)) {
            return known;
        }
        let id = self.value(tensor.spec().clone(), Origin::Constant(tensor));
        if let Some(key) = key {
            self.scalars.insert(key, id);
        }
        id
    }

    /// The tensor of a constant.
    pub(crate) fn tensor(&self, id: ValueId) -> Option<&Tensor> {
        match &self.graph.values[id.index()].origin {
            Origin::Constant(tensor) => Some(tensor),
            _ => None,
        }
    }

    /// The node that computes a value.
    pub(crate) fn producer(&self, id: ValueId) -> Option<&Node> {
        match self.graph.values[id.index()].origin {
            Origin::Node { node, .. } => Some(&self.graph.nodes[node]),
            _ => None,
        }
    }

    /// Appends a call.
    pub(crate) fn push(
        &mut self,
        op: Arc<dyn Op>,
        inputs: NodeInputs,
        specs: Specs,
        at: Location,
    ) -> NodeOutputs {
        let node = self.graph.nodes.len();
        let outputs: NodeOutputs = (specs.into_iter().enumerate())
            .map(|(output, spec)| self.value(spec, Origin::Node { node, output }))
            .collect();
        self.graph.nodes.push(Node { op, inputs, outputs: outputs.clone(), at });
        outputs
    }

    /// Appends a call, unless an equal one exists: common-subexpression elimination.
    pub(crate) fn call(
        &mut self,
        op: Arc<dyn Op>,
        inputs: NodeInputs,
        specs: Specs,
        at: Location,
    ) -> NodeOutputs {
        if !op.effects().allows_cse() {
            return self.push(op, inputs, specs, at);
        }
        let mut hash = Text(DefaultHasher::new());
        (op.name(), &inputs, &specs).hash(&mut hash.0);
        let input_specs: SmallVec<[&Spec; 3]> = inputs.iter().map(|&id| self.graph.spec(id)).collect();
        let form = op.form(&input_specs);
        match &form {
            // The name nearly always determines them; the rest is compared where hashes collide.
            Form::Elementwise(_) | Form::Uniform(_) => {}
            Form::Reduce { code, axes } => (code, axes).hash(&mut hash.0),
            // Writing to a hasher cannot fail.
            Form::Opaque
            | Form::Product(_)
            | Form::Composite(_)
            | Form::Repeat(_)
            | Form::OptimizationBarrier => {
                let _ = describe(&mut hash, &form, &*op);
            }
        }
        let key = hash.0.finish();
        drop(input_specs);
        if let Some(same) = self.same_call(key, &*op, &form, &inputs, &specs) {
            return same;
        }
        self.calls.entry(key).or_default().push(self.graph.nodes.len() as u32);
        self.push(op, inputs, specs, at)
    }

    /// The outputs of an earlier call of the same op on the same inputs.
    fn same_call(
        &self,
        key: u64,
        op: &dyn Op,
        form: &Form<'_>,
        inputs: &NodeInputs,
        specs: &Specs,
    ) -> Option<NodeOutputs> {
        let earlier = self.calls.get(&key)?.iter().map(|&node| &self.graph.nodes[node as usize]);
        let input_specs: SmallVec<[&Spec; 3]> = inputs.iter().map(|&id| self.graph.spec(id)).collect();
        let mut earlier = earlier.filter(|node| node.inputs == *inputs && node.op.name() == op.name());
        let same = |node: &&Node| {
            node.outputs.iter().map(|&id| self.graph.spec(id)).eq(specs)
                && text(form, op) == text(&node.op.form(&input_specs), &*node.op)
        };
        earlier.find(same).map(|node| node.outputs.clone())
    }
}

/// Writes what distinguishes ops of one name. The form is shorter than the op's `Debug`, which may include its derivative.
fn describe(to: &mut impl Write, form: &Form<'_>, op: &dyn Op) -> fmt::Result {
    match form {
        Form::Elementwise(_) | Form::Reduce { .. } | Form::Uniform(_) => write!(to, "{form:?}"),
        Form::Opaque
        | Form::Product(_)
        | Form::Composite(_)
        | Form::Repeat(_)
        | Form::OptimizationBarrier => write!(to, "{op:?}"),
    }
}

fn text(form: &Form<'_>, op: &dyn Op) -> String {
    let mut text = String::new();
    let _ = describe(&mut text, form, op);
    text
}

/// Hashes what is written to it.
struct Text(DefaultHasher);

impl Write for Text {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.write(text.as_bytes());
        Ok(())
    }
}

/// The bytes of a tensor's only element, padded with zeros; `None` if it has another number of elements, or a larger one.
pub(crate) fn scalar_bytes(tensor: &Tensor) -> Option<[u8; 8]> {
    if tensor.len() != 1 || tensor.dtype().size() > 8 {
        return None;
    }
    let view = tensor.view().ok()?;
    let mut bytes = [0; 8];
    taut_kernels::dispatch!(tensor.dtype(), T in words => {
        for (to, from) in bytes.iter_mut().zip(view.data::<T>()[view.offset()].to_ne_bytes()) {
            *to = from;
        }
    });
    Some(bytes)
}
