//! A graph and its gradient as one graph, and cut in two: what is computed first, and what is computed backward from it.

use crate::structure::GradientSource;
use crate::tape::{GradientRequest, GradientTape};
use taut_core::graph::{Origin, ValueId, calls_so_far};
use taut_core::{
    Error, ErrorKind, Gradient, Graph, IndexedSlices, Result, Shape, Spec, Tensor, record, trace,
};

/// What the backward pass computes for an input of the graph: positions among its outputs.
#[derive(Clone, Debug)]
pub enum InputGradient {
    /// Nothing: it is not wanted, or no gradient comes there.
    None,
    /// Its gradient.
    Dense(usize),
    /// Rows of its gradient.
    Sparse {
        /// The rows.
        values: usize,
        /// Which rows they are.
        indices: usize,
        /// The shape of the whole.
        dense_shape: Shape,
    },
}

/// Where something that the backward pass needs is after the forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedFrom {
    /// An input of the graph.
    Input(usize),
    /// An output of the forward pass.
    Output(usize),
}

/// A graph, and after its calls those that compute its gradient.
///
/// Inputs: the graph's, then one gradient for each output that is followed. Outputs: the graph's, then what [`InputGradient`]s
/// refer to.
#[derive(Clone, Debug)]
pub struct JointGraph {
    /// Both passes.
    pub graph: Graph,
    /// The node with which the backward pass begins.
    pub boundary: usize,
    /// How many inputs the original has.
    pub inputs: usize,
    /// How many outputs the original has.
    pub outputs: usize,
    /// Per input of the original, what the backward pass computes for it.
    pub answers: Vec<InputGradient>,
}

/// A [`JointGraph`] cut in two.
#[derive(Clone, Debug)]
pub struct SplitGraph {
    /// The original, with further outputs for what is kept.
    pub forward: Graph,
    /// From what is kept, in the order of `kept`, and the gradients of the outputs that are followed.
    pub backward: Graph,
    /// What is kept.
    pub kept: Vec<SavedFrom>,
}

impl JointGraph {
    /// The gradient of a graph for the `wanted` inputs, given gradients of the outputs at the positions `followed`. If
    /// `dense`, no gradient is left as rows.
    pub fn new(graph: &Graph, wanted: &[bool], followed: &[usize], dense: bool) -> Result<JointGraph> {
        let specs = |ids: &[ValueId]| ids.iter().map(|&id| graph.spec(id).clone()).collect::<Vec<Spec>>();
        let (count, results) = (graph.inputs.len(), specs(&graph.outputs));
        let mut inputs = specs(&graph.inputs);
        inputs.extend(followed.iter().map(|&output| results[output].clone()));

        let (mut boundary, mut answers) = (0, Vec::new());
        let traced = record::without_recording(|| {
            trace(&inputs, |arguments| {
                let (inputs, gradients) = arguments.split_at(count);
                let tape = GradientTape::new();
                let sources: Vec<Tensor> = inputs
                    .iter()
                    .zip(wanted)
                    .filter(|&(_, &wanted)| wanted)
                    .map(|(t, _)| t.clone())
                    .collect();
                tape.watch(&sources);
                let mut outputs = graph.run(inputs)?;
                boundary = calls_so_far().unwrap_or(0);
                let mut found = ask(&tape, &outputs, followed, gradients, sources)?.into_iter();
                let original = outputs.len();
                for i in 0..count {
                    let wanted = wanted.get(i) == Some(&true);
                    let gradient = if wanted { found.next().flatten() } else { None };
                    let gradient = match gradient {
                        Some(gradient) if dense => Some(Gradient::Dense(gradient.dense()?)),
                        gradient => gradient,
                    };
                    let at = outputs.len() - original;
                    answers.push(match gradient {
                        None => InputGradient::None,
                        Some(Gradient::Dense(gradient)) => {
                            outputs.push(gradient);
                            InputGradient::Dense(at)
                        }
                        Some(Gradient::Sparse(slices)) => {
                            let IndexedSlices { values, indices, dense_shape } = slices;
                            outputs.extend([values, indices]);
                            InputGradient::Sparse { values: at, indices: at + 1, dense_shape }
                        }
                    });
                }
                Ok(outputs)
            })
        })?;
        if !traced.captures.is_empty() {
            let message = "a gradient rule in the body uses a tensor of the function around it";
            return Err(
                Error::new(ErrorKind::Graph, message).help("give it to the rule as one of its inputs")
            );
        }
        Ok(JointGraph { graph: traced.graph, boundary, inputs: count, outputs: results.len(), answers })
    }

    /// Cuts it where the backward pass begins. Of the original's outputs, only the first `visible` are returned by the
    /// forward pass, so that others cannot be kept for being there already.
    pub fn split(&self, visible: usize) -> Result<SplitGraph> {
        let joint = &self.graph;
        let is_forward = |id: ValueId| match joint.values[id.index()].origin {
            Origin::Node { node, .. } => node < self.boundary,
            Origin::Input(input) => input < self.inputs,
            Origin::Constant(_) => false,
        };
        let (own, gradients) = joint.outputs.split_at(self.outputs);
        let mut needed = vec![false; joint.values.len()];
        gradients.iter().for_each(|id| needed[id.index()] = true);
        for node in joint.nodes[self.boundary..].iter().rev() {
            if node.outputs.iter().any(|id| needed[id.index()]) {
                node.inputs.iter().for_each(|id| needed[id.index()] = true);
            }
        }
        let crossing: Vec<ValueId> = (0..joint.values.len() as u32)
            .map(ValueId)
            .filter(|&id| needed[id.index()] && is_forward(id))
            .collect();

        let (mut saved, mut kept): (Vec<ValueId>, Vec<SavedFrom>) = (Vec::new(), Vec::new());
        for &id in &crossing {
            kept.push(match joint.values[id.index()].origin {
                Origin::Input(input) => SavedFrom::Input(input),
                _ => SavedFrom::Output(own[..visible].iter().position(|&other| other == id).unwrap_or_else(
                    || {
                        saved.push(id);
                        visible + saved.len() - 1
                    },
                )),
            });
        }
        let forward: Vec<ValueId> = own.iter().chain(&saved).copied().collect();
        let given: Vec<ValueId> = crossing.iter().chain(&joint.inputs[self.inputs..]).copied().collect();
        Ok(SplitGraph {
            forward: joint.part_with_checks(&joint.inputs[..self.inputs], &forward)?,
            backward: joint.part(&given, gradients)?,
            kept,
        })
    }
}

/// The gradients of the outputs that are followed, given theirs, with respect to `sources`.
pub fn ask(
    tape: &GradientTape,
    outputs: &[Tensor],
    followed: &[usize],
    gradients: &[Tensor],
    sources: Vec<Tensor>,
) -> Result<Vec<Option<Gradient>>> {
    let targets: Vec<Tensor> = followed.iter().map(|&output| outputs[output].clone()).collect();
    let given = gradients.iter().cloned().map(Some).collect();
    let question = GradientRequest { output_gradients: Some(given), ..GradientRequest::default() };
    let sources: Vec<GradientSource> = sources.into_iter().map(GradientSource::Tensor).collect();
    tape.ask_for(&targets, &sources, question)
}
