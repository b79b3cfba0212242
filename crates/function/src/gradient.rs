//! A function under a tape: one entry, with a compiled backward pass joined to the forward one by what it keeps.

use crate::compiled::Compiled;
use crate::concrete::Concrete;
use smallvec::SmallVec;
use std::fmt;
use std::panic::Location;
use std::sync::Arc;
use taut_autodiff::{GradientTape, Request as Question, Source};
use taut_core::graph::{Origin, ValueId, calls_so_far};
use taut_core::ops::creation::zeros;
use taut_core::{
    Call, Gradient, Gradients, Graph, IndexedSlices, Op, Result, Saves, Set, Shape, Spec, Specs, Tensor,
    behalf_of, record, trace,
};
use taut_exec::Input;
use taut_plan::{Given, Request};

/// Where something that the backward pass needs is after the forward pass.
#[derive(Clone, Copy)]
enum Kept {
    /// An input of the function.
    Input(usize),
    /// One of the tensors that the forward program returns: what it writes to variables is not among them.
    Output(usize),
}

/// What the backward program computes for an input.
enum Answer {
    None,
    Dense(usize),
    Sparse { values: usize, indices: usize, dense_shape: Shape },
}

/// The forward program that keeps what is needed, and the backward program that needs it.
pub(crate) struct Differentiated {
    forward: Compiled,
    /// How many results the forward program has before what it keeps.
    results: usize,
    kept: Vec<Kept>,
    /// From what is kept and the gradients of the results.
    backward: Graph,
    program: Compiled,
    /// Which results have gradients: the floats.
    followed: Vec<usize>,
    answers: Vec<Answer>,
    /// The whole function, for those who follow the backward pass, too.
    whole: Graph,
    specs: Vec<Spec>,
}

impl Differentiated {
    pub(crate) fn new(concrete: &Concrete, wanted: &[bool]) -> Result<Differentiated> {
        let whole = concrete.graph.clone();
        let specs: Vec<Spec> = whole.outputs.iter().map(|&id| whole.spec(id).clone()).collect();
        let followed: Vec<usize> =
            (0..concrete.results).filter(|&output| specs[output].dtype.is_float()).collect();
        let count = whole.inputs.len();
        let mut inputs: Vec<Spec> = whole.inputs.iter().map(|&id| whole.spec(id).clone()).collect();
        inputs.extend(followed.iter().map(|&output| specs[output].clone()));

        let (mut boundary, mut answers) = (0, Vec::new());
        let joint = record::unrecorded(|| {
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
                let mut outputs = whole.run(inputs)?;
                boundary = calls_so_far().unwrap_or(0);
                let found = ask(&tape, &outputs, &followed, gradients, sources)?;
                let mut found = found.into_iter();
                for &wanted in wanted {
                    let gradient = if wanted { found.next().flatten() } else { None };
                    answers.push(match gradient {
                        None => Answer::None,
                        Some(Gradient::Dense(gradient)) => {
                            outputs.push(gradient);
                            Answer::Dense(outputs.len() - 1)
                        }
                        Some(Gradient::Sparse(slices)) => {
                            let IndexedSlices { values, indices, dense_shape } = slices;
                            outputs.extend([values, indices]);
                            let (values, indices) = (outputs.len() - 2, outputs.len() - 1);
                            Answer::Sparse { values, indices, dense_shape }
                        }
                    });
                }
                Ok(outputs)
            })
        })?
        .graph;
        let total = specs.len();
        for answer in &mut answers {
            match answer {
                Answer::None => {}
                Answer::Dense(at) => *at -= total,
                Answer::Sparse { values, indices, .. } => {
                    *values -= total;
                    *indices -= total;
                }
            }
        }
        let results = concrete.results;
        let (forward, backward, kept) = split(&joint, boundary, count, results, total - results)?;
        let (settings, request) = (concrete.settings(), concrete.request());
        let forward = Compiled::new(&forward, settings, request)?;
        // What was kept is read where it lies.
        let layout = |kept: &Kept| match *kept {
            Kept::Input(i) => request.inputs.get(i).and_then(|given| given.strides.clone()),
            Kept::Output(i) => {
                let layout = &forward.program().results[i].layout;
                (!layout.is_contiguous()).then(|| layout.strides.clone())
            }
        };
        let given = kept.iter().map(|kept| Given { strides: layout(kept), donated: false }).collect();
        let program = Compiled::new(&backward, settings, &Request { inputs: given, ..Request::default() })?;
        Ok(Differentiated { forward, results, kept, backward, program, followed, answers, whole, specs })
    }

    pub(crate) fn bytes(&self) -> usize {
        self.forward.bytes() + self.program.bytes()
    }

    pub(crate) fn release(&self) {
        self.forward.release();
        self.program.release();
    }

    /// Runs the forward program, and tells those who follow the inputs.
    pub(crate) fn call(
        self: Arc<Self>,
        concrete: &Concrete,
        mut inputs: Vec<Tensor>,
        at: &'static Location<'static>,
    ) -> Result<(Vec<Tensor>, bool)> {
        // Read before the call writes to them: what it keeps of variables is what they were.
        let simple = record::is_simple();
        let arguments = inputs[..concrete.arguments].iter().map(record::detached).collect();
        let first_key = concrete.arguments + concrete.variables.len();
        let keys = inputs[first_key..].iter().cloned().collect();
        let (mut outputs, grew) = concrete.run(&self.forward, arguments, false, keys, at)?;
        let saved = self
            .kept
            .iter()
            .map(|kept| match *kept {
                Kept::Input(i) => record::detached(&inputs[i]),
                Kept::Output(i) => outputs[i].clone(),
            })
            .collect();
        outputs.truncate(self.results);
        let op = Called { form: self, saved, whole: !simple };
        Ok((record::done(&op, &mut inputs, outputs.into(), at)?.into_vec(), grew))
    }

    /// The gradients of the inputs as the backward program, or its graph, computed them.
    fn gradients(&self, found: Vec<Tensor>) -> Gradients {
        let answer = |answer: &Answer| match answer {
            Answer::None => None,
            Answer::Dense(at) => Some(Gradient::Dense(found[*at].clone())),
            Answer::Sparse { values, indices, dense_shape } => Some(Gradient::Sparse(IndexedSlices {
                values: found[*values].clone(),
                indices: found[*indices].clone(),
                dense_shape: dense_shape.clone(),
            })),
        };
        self.answers.iter().map(answer).collect()
    }
}

fn ask(
    tape: &GradientTape,
    outputs: &[Tensor],
    followed: &[usize],
    gradients: &[Tensor],
    sources: Vec<Tensor>,
) -> Result<Vec<Option<Gradient>>> {
    let targets: Vec<Tensor> = followed.iter().map(|&output| outputs[output].clone()).collect();
    let given = gradients.iter().cloned().map(Some).collect();
    let question = Question { output_gradients: Some(given), ..Question::default() };
    let sources: Vec<Source> = sources.into_iter().map(Source::Tensor).collect();
    tape.ask_for(&targets, &sources, question)
}

/// Cuts a graph of forward and backward calls in two. The forward part gets an output for each value that the backward
/// part needs and that is no input; the backward part gets an input for each of those, before its gradients.
///
/// The graph's outputs are `results` of the function, `updates` of variables, and the gradients; its inputs are `inputs` of
/// the function and gradients of results.
fn split(
    joint: &Graph,
    boundary: usize,
    inputs: usize,
    results: usize,
    updates: usize,
) -> Result<(Graph, Graph, Vec<Kept>)> {
    let is_forward = |id: ValueId| match joint.values[id.index()].origin {
        Origin::Node { node, .. } => node < boundary,
        Origin::Input(input) => input < inputs,
        Origin::Constant(_) => false,
    };
    let (own, gradients) = joint.outputs.split_at(results + updates);
    let mut needed = vec![false; joint.values.len()];
    gradients.iter().for_each(|id| needed[id.index()] = true);
    for node in joint.nodes[boundary..].iter().rev() {
        if node.outputs.iter().any(|id| needed[id.index()]) {
            node.inputs.iter().for_each(|id| needed[id.index()] = true);
        }
    }
    let crossing: Vec<ValueId> = (0..joint.values.len() as u32)
        .map(ValueId)
        .filter(|&id| needed[id.index()] && is_forward(id))
        .collect();

    let (mut saved, mut kept): (Vec<ValueId>, Vec<Kept>) = (Vec::new(), Vec::new());
    for &id in &crossing {
        kept.push(match joint.values[id.index()].origin {
            Origin::Input(input) => Kept::Input(input),
            _ => Kept::Output(own[..results].iter().position(|&other| other == id).unwrap_or_else(|| {
                saved.push(id);
                results + saved.len() - 1
            })),
        });
    }
    let forward: Vec<ValueId> = own.iter().chain(&saved).copied().collect();
    let given: Vec<ValueId> = crossing.iter().chain(&joint.inputs[inputs..]).copied().collect();
    Ok((joint.part(&joint.inputs[..inputs], &forward)?, joint.part(&given, gradients)?, kept))
}

/// A call of a function, as tapes know it.
#[derive(Clone)]
struct Called {
    form: Arc<Differentiated>,
    saved: Vec<Tensor>,
    /// Whether the inputs are kept, too: somebody may follow the backward pass.
    whole: bool,
}

impl fmt::Debug for Called {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Called({} nodes)", self.form.whole.nodes.len())
    }
}

impl Op for Called {
    fn name(&self) -> &'static str {
        "function"
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(self.form.specs[..self.form.results].iter().cloned().collect())
    }

    fn saves(&self, _wanted: Set) -> Option<Saves> {
        let inputs = if self.whole { Set::ALL } else { Set::NONE };
        Some(Saves { inputs, ..Saves::NOTHING })
    }

    fn holds(&self) -> &[Tensor] {
        &self.saved
    }

    fn vjp(&self, call: &mut Call<'_>) -> Result<Gradients> {
        let form = &*self.form;
        let mut given: Vec<Tensor> = Vec::new();
        for &output in &form.followed {
            let spec = &form.specs[output];
            given.push(match call.take_gradient(output) {
                Some(gradient) => gradient,
                None => zeros(spec.shape.clone(), spec.dtype)?,
            });
        }
        if record::is_recording() {
            return if self.whole { self.again(call, &given) } else { self.by_ops(given) };
        }
        for gradient in given.iter_mut().filter(|gradient| !gradient.is_contiguous()) {
            *gradient = gradient.copy()?;
        }
        let mut inputs: SmallVec<[Input<'_>; 16]> =
            self.saved.iter().chain(&given).map(Input::Read).collect();
        Ok(form.gradients(form.program.run(&mut inputs, behalf_of(Location::caller()))?.0))
    }
}

impl Called {
    /// The backward pass op by op, for those who follow it.
    fn by_ops(&self, given: Vec<Tensor>) -> Result<Gradients> {
        let inputs: Vec<Tensor> = self.saved.iter().cloned().chain(given).collect();
        Ok(self.form.gradients(self.form.backward.run(&inputs)?))
    }

    /// The whole function again and its gradient, op by op: for those who follow how it came about.
    fn again(&self, call: &Call<'_>, given: &[Tensor]) -> Result<Gradients> {
        let form = &*self.form;
        let inputs: Vec<Tensor> = (0..call.inputs.len())
            .map(|i| taut_autodiff::itself(call.input(i)?, given))
            .collect::<Result<_>>()?;
        let tape = GradientTape::new();
        let is_wanted = |i: usize| !matches!(form.answers[i], Answer::None);
        let sources: Vec<Tensor> =
            (0..form.answers.len()).filter(|&i| is_wanted(i)).map(|i| inputs[i].clone()).collect();
        tape.watch(&sources);
        let outputs = form.whole.run(&inputs)?;
        let mut found = ask(&tape, &outputs, &form.followed, given, sources)?.into_iter();
        let answer = |i: usize| if is_wanted(i) { found.next().flatten() } else { None };
        Ok((0..form.answers.len()).map(answer).collect())
    }
}
