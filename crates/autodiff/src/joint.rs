//! The joint graph of a graph and its gradient, and its split into a forward and a backward graph.

use crate::structure::GradientSource;
use crate::tape::{GradientRequest, GradientTape};
use taut_core::graph::{Origin, ValueId, num_traced_calls};
use taut_core::{
    Error, ErrorKind, Gradient, Graph, IndexedSlices, Result, Shape, Spec, Tensor, record, trace,
};

/// What the backward pass computes for an input of the graph: positions among its outputs.
#[derive(Clone, Debug)]
pub enum InputGradient {
    /// No gradient: it is not wanted, or none flows there.
    None,
    /// Its gradient.
    Dense(usize),
    /// Rows of its gradient.
    Sparse {
        /// The rows.
        values: usize,
        /// Their indices.
        indices: usize,
        /// The shape of the dense gradient.
        dense_shape: Shape,
    },
}

/// The place of a value that the backward graph needs, after the forward graph ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavedFrom {
    /// An input of the graph.
    Input(usize),
    /// An output of the forward pass.
    Output(usize),
}

/// Which gradients of a graph a [`JointGraph`] computes.
pub struct JointRequest<'a> {
    /// Per input, whether its gradient is wanted.
    pub wanted: &'a [bool],
    /// The outputs whose gradients are given.
    pub differentiated: &'a [usize],
    /// Wanted inputs whose gradient is added to a sum that is given, in place where that is possible.
    pub summed: &'a [usize],
    /// Whether sparse gradients are converted to dense ones.
    pub dense: bool,
}

/// A graph, followed by the nodes of its gradient.
///
/// Inputs: the graph's, then the gradient of each differentiated output, then the sum of each summed input. Outputs: the graph's,
/// then those that [`InputGradient`]s refer to.
#[derive(Clone, Debug)]
pub struct JointGraph {
    /// Both passes.
    pub graph: Graph,
    /// The first node of the backward pass.
    pub boundary: usize,
    /// How many inputs the original has.
    pub inputs: usize,
    /// How many outputs the original has.
    pub outputs: usize,
    /// Per input of the original, its gradient.
    pub input_gradients: Vec<InputGradient>,
}

/// A [`JointGraph`] split into two graphs.
#[derive(Clone, Debug)]
pub struct SplitGraph {
    /// The original, with the saved values as further outputs.
    pub forward: Graph,
    /// The backward pass. Inputs: the saved values, in the order of `saved`, then the gradients of the differentiated outputs and the
    /// sums of the summed inputs.
    pub backward: Graph,
    /// The saved values.
    pub saved: Vec<SavedFrom>,
}

impl JointGraph {
    /// A graph and its gradient.
    pub fn new(graph: &Graph, request: &JointRequest<'_>) -> Result<JointGraph> {
        let &JointRequest { wanted, differentiated, summed, dense } = request;
        let specs = |ids: &[ValueId]| ids.iter().map(|&id| graph.spec(id).clone()).collect::<Vec<Spec>>();
        let (count, results) = (graph.inputs.len(), specs(&graph.outputs));
        let mut inputs = specs(&graph.inputs);
        inputs.extend(differentiated.iter().map(|&output| results[output].clone()));
        inputs.extend(summed.iter().map(|&input| graph.spec(graph.inputs[input]).clone()));

        let (mut boundary, mut input_gradients) = (0, Vec::new());
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
                boundary = num_traced_calls().unwrap_or(0);
                let original = outputs.len();
                // An input is a target, too: its gradient starts with the sum.
                let mut targets = outputs.clone();
                targets.extend(summed.iter().map(|&input| inputs[input].clone()));
                let given: Vec<usize> =
                    differentiated.iter().copied().chain(original..targets.len()).collect();
                let mut found = vjp(&tape, &targets, &given, gradients, sources)?.into_iter();
                drop(targets);
                for i in 0..count {
                    let wanted = wanted.get(i) == Some(&true);
                    let gradient = if wanted { found.next().flatten() } else { None };
                    let gradient = match gradient {
                        Some(gradient) if dense => Some(Gradient::Dense(gradient.dense()?)),
                        gradient => gradient,
                    };
                    let at = outputs.len() - original;
                    input_gradients.push(match gradient {
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
            let message = "a gradient rule in a body must not capture a tensor of the enclosing function";
            return Err(
                Error::new(ErrorKind::Graph, message).help("pass it to the rule as one of its inputs")
            );
        }
        Ok(JointGraph {
            graph: traced.graph,
            boundary,
            inputs: count,
            outputs: results.len(),
            input_gradients,
        })
    }

    /// Splits it where the backward pass begins. Of the original's outputs, the caller has only the first `visible`: others that
    /// the backward pass needs are saved.
    pub fn split(&self, visible: usize) -> Result<SplitGraph> {
        self.split_where(visible, |_| true)
    }

    /// As [`JointGraph::split`], with only these values of the forward pass saved: the backward pass computes the others again, from
    /// those and the inputs.
    pub fn split_keeping(&self, visible: usize, kept: &[ValueId]) -> Result<SplitGraph> {
        let mut is_kept = vec![false; self.graph.values.len()];
        kept.iter().for_each(|id| is_kept[id.index()] = true);
        // What the caller has anyway need not be computed again.
        self.graph.outputs[..visible].iter().for_each(|id| is_kept[id.index()] = true);
        self.split_where(visible, |id| is_kept[id.index()])
    }

    /// The values of the forward pass that the backward pass reads, if nothing is computed again. Inputs come first.
    pub fn saved_values(&self) -> Vec<ValueId> {
        self.crossing(|_| true)
    }

    /// The kept values of the forward pass, and its inputs, that the backward pass reads.
    fn crossing(&self, is_kept: impl Fn(ValueId) -> bool) -> Vec<ValueId> {
        let joint = &self.graph;
        let is_saved = |id: ValueId| match joint.values[id.index()].origin {
            Origin::Node { node, .. } => node < self.boundary && is_kept(id),
            Origin::Input(input) => input < self.inputs,
            Origin::Constant(_) => false,
        };
        let gradients = &joint.outputs[self.outputs..];
        let mut needed = vec![false; joint.values.len()];
        gradients.iter().for_each(|id| needed[id.index()] = true);
        for node in joint.nodes.iter().rev() {
            if node.outputs.iter().any(|&id| needed[id.index()] && !is_saved(id)) {
                node.inputs.iter().for_each(|id| needed[id.index()] = true);
            }
        }
        let ids = (0..joint.values.len() as u32).map(ValueId);
        ids.filter(|&id| needed[id.index()] && is_saved(id)).collect()
    }

    fn split_where(&self, visible: usize, is_kept: impl Fn(ValueId) -> bool) -> Result<SplitGraph> {
        let joint = &self.graph;
        let (own, gradients) = joint.outputs.split_at(self.outputs);
        let crossing = self.crossing(is_kept);
        let (mut residuals, mut saved): (Vec<ValueId>, Vec<SavedFrom>) = (Vec::new(), Vec::new());
        for &id in &crossing {
            saved.push(match joint.values[id.index()].origin {
                Origin::Input(input) => SavedFrom::Input(input),
                _ => SavedFrom::Output(own[..visible].iter().position(|&other| other == id).unwrap_or_else(
                    || {
                        residuals.push(id);
                        visible + residuals.len() - 1
                    },
                )),
            });
        }
        let forward: Vec<ValueId> = own.iter().chain(&residuals).copied().collect();
        let given: Vec<ValueId> = crossing.iter().chain(&joint.inputs[self.inputs..]).copied().collect();
        Ok(SplitGraph {
            forward: joint.part_with_checks(&joint.inputs[..self.inputs], &forward)?,
            backward: joint.part(&given, gradients)?,
            saved,
        })
    }
}

/// The gradients with respect to `sources`, from those of the outputs at the positions `differentiated`.
pub fn vjp(
    tape: &GradientTape,
    outputs: &[Tensor],
    differentiated: &[usize],
    gradients: &[Tensor],
    sources: Vec<Tensor>,
) -> Result<Vec<Option<Gradient>>> {
    let targets: Vec<Tensor> = differentiated.iter().map(|&output| outputs[output].clone()).collect();
    let given = gradients.iter().cloned().map(Some).collect();
    let request = GradientRequest { output_gradients: Some(given), ..GradientRequest::default() };
    let sources: Vec<GradientSource> = sources.into_iter().map(GradientSource::Tensor).collect();
    tape.gradient_list(&targets, &sources, request)
}
