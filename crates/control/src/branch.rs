//! The choice between graphs: only the one that is taken runs, and the op needs the memory of the one that needs most.

use crate::body::{Body, Runner, bytes_of};
use crate::gradient::{is_differentiable, or_zeros};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use taut_autodiff::joint::{InputGradient, JointGraph, SavedFrom, SplitGraph};
use taut_core::graph::{Origin, ValueId};
use taut_core::{
    Cost, DType, Differentiable, Error, Gradient, Gradients, Graph, Kernel, Op, Outputs, PrunedOp, Result,
    Saves, Set, Spec, Specs, Subgraphs, Tensor, VjpCall, VmapCall, apply_many, is_checking_numerics, record,
    trace,
};
use taut_kernels::{Arg, ViewMut};

/// One of several graphs. The first input says which: a boolean (the first graph if it holds), or a number; the last graph
/// if there is none of that number.
#[derive(Clone)]
pub(crate) struct Branch {
    pub(crate) name: &'static str,
    /// From the captures to what `places` says.
    pub(crate) branches: Vec<Arc<Body>>,
    /// Per branch, which output of the op each of its results is. An output that the branch does not have is left as it is.
    places: Vec<Vec<usize>>,
    outputs: Vec<Spec>,
    /// How the gradient goes, if this is the form that keeps what it needs.
    reverse: Option<Arc<Reverse>>,
}

struct Reverse {
    /// How many outputs there are before what is kept.
    visible: usize,
    /// The outputs that have a gradient.
    followed: Vec<usize>,
    /// The captures whose gradient is wanted.
    wanted: Vec<usize>,
    /// The captures that some branch's gradient reads.
    read: Vec<usize>,
    /// The outputs that some branch's gradient reads.
    kept: Vec<usize>,
    parts: Vec<Half>,
}

/// The gradient of one branch.
struct Half {
    /// From what is kept and the gradients of the outputs that it has, to what `answers` says.
    backward: Graph,
    answers: Vec<InputGradient>,
    kept: Vec<SavedFrom>,
    /// Of the op's outputs that have a gradient, those that it has.
    followed: Vec<usize>,
}

impl Branch {
    /// A choice between graphs that take the same inputs and return the same specs.
    pub(crate) fn new(name: &'static str, branches: Vec<Graph>) -> Branch {
        let specs = |graph: &Graph| graph.outputs.iter().map(|&id| graph.spec(id).clone()).collect();
        let outputs: Vec<Spec> = branches.first().map_or(Vec::new(), specs);
        let places = vec![(0..outputs.len()).collect(); branches.len()];
        let branches = branches.into_iter().map(body).collect();
        Branch { name, branches, places, outputs, reverse: None }
    }

    /// Whether it has outputs that only some branches make.
    pub(crate) fn keeps(&self) -> bool {
        self.places.iter().any(|places| !places.iter().copied().eq(0..self.outputs.len()))
    }

    pub(crate) fn captures(&self) -> usize {
        self.branches[0].graph().inputs.len()
    }

    /// The form that keeps what the gradients of these captures need.
    fn stacked(&self, wanted: Set) -> Result<Branch> {
        let visible = self.outputs.len();
        let followed: Vec<usize> = (0..visible).filter(|&i| self.outputs[i].dtype.is_float()).collect();
        let wants: Vec<bool> = (0..self.captures())
            .map(|i| wanted.has(1 + i) && self.branches[0].input(i).dtype.is_float())
            .collect();
        let mut changed = self.clone();
        let mut parts = Vec::new();
        let mut read = vec![false; self.captures()];
        for (branch, places) in changed.branches.iter_mut().zip(&mut changed.places) {
            let own: Vec<usize> = (0..places.len()).filter(|&i| followed.contains(&places[i])).collect();
            let joint = JointGraph::new(branch.graph(), &wants, &own, true)?;
            let SplitGraph { forward, backward, saved: mut kept } = joint.split(places.len())?;
            let before = places.len();
            // Branches share what they keep of one spec, since only one of them runs.
            for &id in &forward.outputs[before..] {
                let spec = forward.spec(id);
                let free = (visible..changed.outputs.len())
                    .find(|place| changed.outputs[*place] == *spec && !places.contains(place));
                places.push(free.unwrap_or_else(|| {
                    changed.outputs.push(spec.clone());
                    changed.outputs.len() - 1
                }));
            }
            for kept in &mut kept {
                match kept {
                    SavedFrom::Input(i) => read[*i] = true,
                    SavedFrom::Output(i) => *i = places[*i],
                }
            }
            let followed = own.iter().map(|&i| places[i]).collect();
            parts.push(Half { backward, answers: joint.input_gradients, kept, followed });
            *branch = body(forward);
        }
        let positions = |marks: &[bool]| (0..marks.len()).filter(|&i| marks[i]).collect();
        let mut kept: Vec<usize> = Vec::new();
        for i in parts.iter().flat_map(|half: &Half| &half.kept).filter_map(|kept| match kept {
            SavedFrom::Output(i) => Some(*i),
            SavedFrom::Input(_) => None,
        }) {
            if !kept.contains(&i) {
                kept.push(i);
            }
        }
        let (wanted, read) = (positions(&wants), positions(&read));
        changed.reverse = Some(Arc::new(Reverse { visible, followed, wanted, read, kept, parts }));
        Ok(changed)
    }

    /// Which branch an input says.
    fn taken(&self, input: &Arg<'_>) -> usize {
        let last = self.branches.len() - 1;
        match bytes_of(input) {
            [flag] => usize::from(*flag == 0),
            bytes => {
                let number = bytes.try_into().map_or(-1, i64::from_ne_bytes);
                usize::try_from(number).map_or(last, |number| number.min(last))
            }
        }
    }
}

impl fmt::Debug for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Branch({}, {:?})", self.name, self.branches)
    }
}

impl Op for Branch {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let captures = self.captures();
        if inputs.len() != 1 + captures {
            return Err(Error::value(format!(
                "{} inputs for a choice and {captures} captures",
                inputs.len()
            )));
        }
        let choice = inputs[0];
        if choice.shape.rank() != 0 || !matches!(choice.dtype, DType::Bool | DType::I64) {
            return Err(Error::value(format!("the choice is a single boolean or int64, not {choice}")));
        }
        for (branch, places) in self.branches.iter().zip(&self.places) {
            for (i, input) in inputs[1..].iter().enumerate() {
                if branch.input(i) != *input {
                    let own = branch.input(i);
                    return Err(Error::shape(format!("capture {i} is {input}, and a branch takes {own}")));
                }
            }
            if let Some(i) = (0..places.len()).find(|&i| *branch.output(i) != self.outputs[places[i]]) {
                let (one, other) = (&self.outputs[places[i]], branch.output(i));
                return Err(Error::shape(format!("a branch returns {other} where another returns {one}")));
            }
        }
        Ok(self.outputs.iter().cloned().collect())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let taken = self.taken(&inputs[0]);
        let (branch, places) = (&self.branches[taken], &self.places[taken]);
        let mut scratch = scratch;
        let mut outputs: SmallVec<[Option<&mut [u8]>; 8]> =
            outputs.iter_mut().map(|output| Some(output.bytes())).collect();
        let captures = inputs[1..].iter().map(bytes_of);
        if is_checking_numerics() {
            // What this branch does not make is nobody's, and nothing to complain of.
            let others =
                (0..outputs.len()).filter(|place| !places.contains(place)).collect::<SmallVec<[usize; 8]>>();
            others.iter().for_each(|&place| outputs[place].iter_mut().for_each(|bytes| bytes.fill(0)));
        }
        let made: SmallVec<[&mut [u8]; 8]> =
            places.iter().map(|&place| outputs[place].take().unwrap_or_default()).collect();
        Runner::new(branch, &mut scratch)?.run(captures, &mut [], [], made, scratch)
    }

    fn scratch(&self, _inputs: &[&Spec]) -> usize {
        self.branches.iter().map(|branch| branch.arena_bytes()).max().unwrap_or(0)
    }

    fn subgraphs(&self) -> Option<&dyn Subgraphs> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        crate::many::batch_branch(self, call)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        Cost { flops: 0, bytes: Cost::traffic(inputs, outputs) }
    }
}

impl Subgraphs for Branch {
    fn graphs(&self) -> Vec<(&'static str, &Graph)> {
        self.branches.iter().map(|branch| ("branch", branch.graph())).collect()
    }

    fn map_graphs(&self, change: &mut dyn FnMut(&Graph) -> Result<Graph>) -> Result<Arc<dyn Op>> {
        let mut changed = self.clone();
        for branch in &mut changed.branches {
            *branch = Arc::new(branch.compiled(change)?);
        }
        Ok(Arc::new(changed))
    }

    fn prune_outputs(&self, used: &[bool]) -> Option<PrunedOp> {
        let outputs: Vec<usize> = (0..self.outputs.len()).filter(|&i| used.get(i) == Some(&true)).collect();
        if outputs.len() == self.outputs.len() || self.effects().is_check() {
            return None;
        }
        let (mut read, mut places) = (vec![false; self.captures()], Vec::new());
        for (branch, own) in self.branches.iter().zip(&self.places) {
            let graph = branch.graph();
            let kept: Vec<usize> = (0..own.len()).filter(|&i| outputs.contains(&own[i])).collect();
            let part = graph.part(&graph.inputs, &ids(&graph.outputs, &kept)).ok()?;
            let uses = part.nodes.iter().flat_map(|node| &node.inputs).chain(&part.outputs);
            for id in uses {
                if let Origin::Input(i) = part.values[id.index()].origin {
                    read[i] = true;
                }
            }
            places.push(kept);
        }
        let inputs: Vec<usize> = (0..read.len()).filter(|&i| read[i]).collect();
        let mut smaller = self.clone();
        smaller.reverse = None;
        smaller.outputs = outputs.iter().map(|&i| self.outputs[i].clone()).collect();
        for (n, (branch, kept)) in smaller.branches.iter_mut().zip(&places).enumerate() {
            let graph = branch.graph();
            let part = graph.part(&ids(&graph.inputs, &inputs), &ids(&graph.outputs, kept)).ok()?;
            let place = |&i: &usize| outputs.iter().position(|&output| output == self.places[n][i]);
            smaller.places[n] = kept.iter().filter_map(place).collect();
            *branch = body(part);
        }
        let inputs = std::iter::once(0).chain(inputs.into_iter().map(|i| 1 + i)).collect();
        Some(PrunedOp { op: Arc::new(smaller), inputs, outputs })
    }
}

impl Differentiable for Branch {
    fn forward_with_residuals(&self, wanted: Set, _inputs: &[&Spec]) -> Result<Option<Arc<dyn Op>>> {
        Ok(Some(Arc::new(self.stacked(wanted)?)))
    }

    fn saves(&self, _wanted: Set) -> Option<Saves> {
        let Some(reverse) = &self.reverse else {
            return Some(Saves { inputs: Set::ALL, ..Saves::NOTHING });
        };
        let outputs = reverse.kept.iter().fold(Set::NONE, |set, &i| set.with(i));
        let inputs = reverse.read.iter().fold(Set::of([0]), |set, &i| set.with(1 + i));
        // Who follows the backward pass as well has to see how what is kept came about.
        let inputs = if record::has_single_use_recorder() { inputs } else { Set::ALL };
        Some(Saves { inputs, outputs, ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let choice = call.input(0)?.clone();
        if let Some(reverse) = self.reverse.as_ref().filter(|_| !is_differentiable(call)) {
            let gradients = take_gradients(call, reverse.visible);
            let input = |i: usize| call.input(1 + i).cloned();
            let output = |i: usize| call.output(i).cloned();
            return reverse.backward(self, choice, &input, &output, gradients);
        }
        let mut keeping = self.stacked(call.wanted)?;
        let Some(reverse) = keeping.reverse.take() else { return Ok(Gradients::new()) };
        let inputs: Vec<Tensor> =
            (0..call.inputs.len()).map(|i| call.input(i).cloned()).collect::<Result<_>>()?;
        let outputs = apply_many(&keeping, inputs.clone())?;
        let gradients = take_gradients(call, reverse.visible);
        let input = |i: usize| Ok(inputs[1 + i].clone());
        let output = |i: usize| Ok(outputs[i].clone());
        reverse.backward(&keeping, choice, &input, &output, gradients)
    }
}

fn take_gradients(call: &mut VjpCall<'_>, count: usize) -> Vec<Option<Tensor>> {
    (0..count).map(|output| call.take_gradient(output)).collect()
}

impl Reverse {
    fn backward(
        &self,
        op: &Branch,
        choice: Tensor,
        input: &dyn Fn(usize) -> Result<Tensor>,
        output: &dyn Fn(usize) -> Result<Tensor>,
        mut given: Vec<Option<Tensor>>,
    ) -> Result<Gradients> {
        // The captures that are read, the outputs that are kept, the gradients of the followed ones.
        let mut arguments = vec![choice];
        for &i in &self.read {
            arguments.push(input(i)?);
        }
        for &i in &self.kept {
            arguments.push(output(i)?);
        }
        for &i in &self.followed {
            arguments.push(or_zeros(given[i].take(), &op.outputs[i])?);
        }
        let specs: Vec<Spec> = arguments[1..].iter().map(|t| t.spec().clone()).collect();
        let (first_output, first_gradient) = (self.read.len(), self.read.len() + self.kept.len());
        let at = |list: &[usize], i: usize| list.iter().position(|&other| other == i).unwrap_or(0);
        let place = |kept: &SavedFrom| match *kept {
            SavedFrom::Input(i) => at(&self.read, i),
            SavedFrom::Output(i) => first_output + at(&self.kept, i),
        };
        let mut graphs = Vec::new();
        for half in &self.parts {
            let traced = record::without_recording(|| {
                trace(&specs, |body| {
                    let kept = half.kept.iter().map(|kept| body[place(kept)].clone());
                    let gradients =
                        half.followed.iter().map(|&i| body[first_gradient + at(&self.followed, i)].clone());
                    let found = half.backward.run(&kept.chain(gradients).collect::<Vec<Tensor>>())?;
                    let answer = |&i: &usize| match half.answers[i] {
                        InputGradient::Dense(at) => Ok(found[at].clone()),
                        _ => or_zeros(None, op.branches[0].input(i)),
                    };
                    self.wanted.iter().map(answer).collect()
                })
            })?;
            graphs.push(traced.graph);
        }
        let found = apply_many(&Branch::new("branch_gradient", graphs), arguments)?;
        let mut gradients: Gradients = (0..=op.captures()).map(|_| None).collect();
        for (&i, gradient) in self.wanted.iter().zip(found) {
            gradients[1 + i] = Some(Gradient::Dense(gradient));
        }
        Ok(gradients)
    }
}

fn body(graph: Graph) -> Arc<Body> {
    let into = vec![None; graph.outputs.len()];
    Arc::new(Body::new(graph, into))
}

fn ids(all: &[ValueId], positions: &[usize]) -> Vec<ValueId> {
    positions.iter().map(|&i| all[i]).collect()
}
