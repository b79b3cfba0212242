//! Graphs: values, the ops that compute them, and the source lines of the calls.

mod print;
mod state;
mod trace;
mod verify;

pub use state::{ExternalState, KeySource, StateUse};
pub use trace::{
    TraceContext, Traced, TracedFunction, TracingSuspension, body_depth, create_state, current, evaluate,
    function_depth, num_traced_calls, read_state, suspend_tracing, tensor_of, trace, trace_body,
    trace_context, trace_function, trace_writing, value_of, write_state,
};
pub(crate) use trace::{ValueRef, next_key, record};

use crate::apply::apply_at;
use crate::error::{Error, ErrorKind, Result};
use crate::mode::without_source_location;
use crate::op::{Cost, Effects, Op, Spec};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::Arc;
use taut_memory::Location;

/// A value's number in its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ValueId(pub u32);

impl ValueId {
    /// As an index into [`Graph::values`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub enum Origin {
    /// The n-th input of the graph.
    Input(usize),
    /// A tensor that existed before the trace.
    Constant(Tensor),
    /// An output of a node.
    Node {
        /// Which node.
        node: usize,
        /// Which of its outputs.
        output: usize,
    },
}

/// A value: its spec and its origin.
#[derive(Clone, Debug)]
pub struct GraphValue {
    /// Type and shape.
    pub spec: Spec,
    /// Where it comes from.
    pub origin: Origin,
}

/// One op call.
#[derive(Clone, Debug)]
pub struct Node {
    /// The op with its attributes.
    pub op: Arc<dyn Op>,
    /// Its inputs.
    pub inputs: SmallVec<[ValueId; 3]>,
    /// Its outputs.
    pub outputs: SmallVec<[ValueId; 1]>,
    /// The line that called it.
    pub at: Location,
}

/// Ops in topological order. Made by [`trace`]; printed by `Display`; checked by [`Graph::verify`].
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// All values, by number.
    pub values: Vec<GraphValue>,
    /// The calls, in topological order.
    pub nodes: Vec<Node>,
    /// The values that the caller provides.
    pub inputs: Vec<ValueId>,
    /// The values that the caller gets.
    pub outputs: Vec<ValueId>,
}

impl Graph {
    /// Type and shape of a value.
    pub fn spec(&self, value: ValueId) -> &Spec {
        &self.values[value.index()].spec
    }

    /// The value of which this one is a view, or itself.
    pub fn base(&self, mut value: ValueId) -> ValueId {
        while let Origin::Node { node, .. } = self.values[value.index()].origin
            && self.nodes[node].op.kernel().is_view()
        {
            value = self.nodes[node].inputs[0];
        }
        value
    }

    /// The effects of all its ops.
    pub fn effects(&self) -> Effects {
        self.nodes.iter().fold(Effects::NONE, |effects, node| effects | node.op.effects())
    }

    /// The work of all its calls together. Views cost nothing.
    pub fn cost(&self) -> Cost {
        let calls = self.nodes.iter().filter(|node| !node.op.kernel().is_view());
        calls.fold(Cost::default(), |sum, node| {
            let inputs: Vec<&Spec> = node.inputs.iter().map(|&id| self.spec(id)).collect();
            let outputs: Vec<Spec> = node.outputs.iter().map(|&id| self.spec(id).clone()).collect();
            sum.plus(node.op.cost(&inputs, &outputs))
        })
    }

    /// About the bytes that the graph takes, without its constants.
    pub fn footprint(&self) -> usize {
        let ops: usize = self.nodes.iter().map(|node| node.op.footprint()).sum();
        ops + size_of_val(&self.nodes[..]) + size_of_val(&self.values[..])
    }

    /// Makes a value the next input of the graph.
    pub(crate) fn add_input(&mut self, value: ValueId) {
        self.values[value.index()].origin = Origin::Input(self.inputs.len());
        self.inputs.push(value);
    }

    /// Per node, whether it is live: an output depends on it, or it is a check ([`Effects::CHECK`]).
    pub fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.nodes.len()];
        // An inconsistent graph must not panic: unknown numbers are skipped.
        let mark = |needed: &mut Vec<bool>, id: ValueId| {
            if let Some(GraphValue { origin: Origin::Node { node, .. }, .. }) = self.values.get(id.index())
                && let Some(needed) = needed.get_mut(*node)
            {
                *needed = true;
            }
        };
        self.outputs.iter().for_each(|&id| mark(&mut needed, id));
        for (i, node) in self.nodes.iter().enumerate().rev() {
            needed[i] |= node.op.effects().is_check();
            if needed[i] {
                node.inputs.iter().for_each(|&id| mark(&mut needed, id));
            }
        }
        needed
    }

    /// The subgraph that computes `outputs` from `inputs`, as a graph with those inputs. Fails if it needs another input of the
    /// whole graph.
    pub fn part(&self, inputs: &[ValueId], outputs: &[ValueId]) -> Result<Graph> {
        self.part_of(inputs, outputs, false)
    }

    /// As [`Graph::part`], with the checks that depend on those inputs and on constants only.
    pub fn part_with_checks(&self, inputs: &[ValueId], outputs: &[ValueId]) -> Result<Graph> {
        self.part_of(inputs, outputs, true)
    }

    fn part_of(&self, inputs: &[ValueId], outputs: &[ValueId], checks: bool) -> Result<Graph> {
        self.check_ids()?;
        if let Some(id) = inputs.iter().chain(outputs).find(|id| id.index() >= self.values.len()) {
            return Err(Error::new(ErrorKind::Graph, format!("the graph has no value {id}")));
        }
        let mut needed = vec![false; self.values.len()];
        let mut given = vec![false; self.values.len()];
        outputs.iter().for_each(|id| needed[id.index()] = true);
        inputs.iter().for_each(|id| given[id.index()] = true);
        let mut nodes = vec![false; self.nodes.len()];
        let known = if checks { self.known(&given) } else { Vec::new() };
        for (i, node) in self.nodes.iter().enumerate().rev() {
            let check =
                checks && node.op.effects().is_check() && node.inputs.iter().all(|id| known[id.index()]);
            nodes[i] = check || node.outputs.iter().any(|id| needed[id.index()] && !given[id.index()]);
            if nodes[i] {
                node.inputs.iter().for_each(|id| needed[id.index()] = true);
            }
        }

        let mut part = Graph::default();
        let mut numbers: Vec<Option<ValueId>> = vec![None; self.values.len()];
        let add = |part: &mut Graph, spec: &Spec, origin: Origin| {
            part.values.push(GraphValue { spec: spec.clone(), origin });
            ValueId(part.values.len() as u32 - 1)
        };
        for &id in inputs {
            let position = part.inputs.len();
            let number = add(&mut part, self.spec(id), Origin::Input(position));
            part.inputs.push(number);
            numbers[id.index()] = Some(number);
        }
        for (i, value) in self.values.iter().enumerate().filter(|&(i, _)| needed[i] && !given[i]) {
            match &value.origin {
                Origin::Constant(_) => {
                    numbers[i] = Some(add(&mut part, &value.spec, value.origin.clone()));
                }
                Origin::Input(_) => return Err(unknown()),
                Origin::Node { .. } => {}
            }
        }
        for (_, node) in self.nodes.iter().enumerate().filter(|&(i, _)| nodes[i]) {
            let number = part.nodes.len();
            let known = |id: &ValueId| numbers[id.index()].ok_or_else(unknown);
            let inputs = node.inputs.iter().map(known).collect::<Result<_>>()?;
            let mut made = SmallVec::new();
            for (output, &id) in node.outputs.iter().enumerate() {
                let new = add(&mut part, self.spec(id), Origin::Node { node: number, output });
                if !given[id.index()] {
                    numbers[id.index()] = Some(new);
                }
                made.push(new);
            }
            part.nodes.push(Node { op: node.op.clone(), inputs, outputs: made, at: node.at });
        }
        let known = |id: &ValueId| numbers[id.index()].ok_or_else(unknown);
        part.outputs = outputs.iter().map(known).collect::<Result<_>>()?;
        Ok(part)
    }

    /// Per value, whether it can be computed from these and from constants.
    fn known(&self, given: &[bool]) -> Vec<bool> {
        let mut known = given.to_vec();
        for (known, value) in known.iter_mut().zip(&self.values) {
            *known |= matches!(value.origin, Origin::Constant(_));
        }
        for node in &self.nodes {
            if node.inputs.iter().all(|id| known[id.index()]) {
                node.outputs.iter().for_each(|id| known[id.index()] = true);
            }
        }
        known
    }

    /// Runs the nodes in order and drops each value after its last use.
    ///
    /// This is the simplest interpreter of a graph, and the reference for faster ones.
    #[track_caller]
    pub fn run(&self, inputs: &[Tensor]) -> Result<Vec<Tensor>> {
        self.check_ids().and_then(|()| self.check_inputs(inputs)).map_err(|e| e.at(Location::caller()))?;
        let mut last_use = vec![usize::MAX; self.values.len()];
        for (i, node) in self.nodes.iter().enumerate() {
            node.inputs.iter().for_each(|v| last_use[v.index()] = i);
        }
        self.outputs.iter().for_each(|v| last_use[v.index()] = usize::MAX);

        let mut values: Vec<Option<Tensor>> = vec![None; self.values.len()];
        for (&id, tensor) in self.inputs.iter().zip(inputs) {
            values[id.index()] = Some(tensor.clone());
        }
        for (slot, value) in values.iter_mut().zip(&self.values) {
            if let Origin::Constant(tensor) = &value.origin {
                *slot = Some(tensor.clone());
            }
        }
        let missing = || Error::new(ErrorKind::Graph, "a value is read before it is computed");
        for (i, node) in self.nodes.iter().enumerate() {
            let mut arguments: SmallVec<[Tensor; 3]> = SmallVec::new();
            for v in &node.inputs {
                arguments.push(values[v.index()].clone().ok_or_else(missing)?);
            }
            for v in node.inputs.iter().filter(|v| last_use[v.index()] == i) {
                values[v.index()] = None;
            }
            // Calls are attributed to the node's line, not to the caller of `run`.
            let outputs = without_source_location(|| apply_at(&*node.op, &mut arguments, node.at))?;
            for (v, output) in node.outputs.iter().zip(outputs) {
                values[v.index()] = Some(output);
            }
        }
        self.outputs.iter().map(|v| values[v.index()].clone().ok_or_else(missing)).collect()
    }

    /// Fails if an id is not that of a value.
    fn check_ids(&self) -> Result<()> {
        let nodes = self.nodes.iter().flat_map(|node| node.inputs.iter().chain(&node.outputs));
        match self.inputs.iter().chain(&self.outputs).chain(nodes).find(|id| id.index() >= self.values.len())
        {
            None => Ok(()),
            Some(id) => Err(Error::new(ErrorKind::Graph, format!("the graph has no value {id}"))),
        }
    }

    fn check_inputs(&self, inputs: &[Tensor]) -> Result<()> {
        if inputs.len() != self.inputs.len() {
            let message = format!("the graph takes {} inputs, got {}", self.inputs.len(), inputs.len());
            return Err(Error::value(message));
        }
        for (i, (&id, tensor)) in self.inputs.iter().zip(inputs).enumerate() {
            if self.spec(id) != tensor.spec() {
                let message = format!("input {i} must be {}, got {}", self.spec(id), tensor.spec());
                return Err(Error::shape(message));
            }
        }
        Ok(())
    }
}

#[cold]
fn unknown() -> Error {
    Error::new(
        ErrorKind::Graph,
        "the value depends on an argument of the function, which is not known in a trace",
    )
    .help("compute it from constants, or outside the function")
}
