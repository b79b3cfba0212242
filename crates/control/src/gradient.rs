//! The gradient of a loop is a loop.
//!
//! Its body's gradient needs some values of each step. Those that change from step to step are written down as further stacks of
//! the forward loop ([`Reverse::forward_with_residuals`]); captures and slices are there anyway. The backward loop reads those rows from the last
//! to the first, carries the gradients of the states, adds up those of the captures, and writes those of the slices. A loop
//! without states writes nothing down: each of its steps can be done again on its own.
//!
//! With a budget, the forward loop keeps some states instead, and the backward pass is a [`Rewind`].

use crate::body::Body;
use crate::hoist::hoisted;
use crate::looping::{Loop, Slots, Steps, body_of, index_spec};
use crate::rewind::Rewind;
use std::sync::Arc;
use taut_autodiff::joint::{InputGradient, JointGraph, SavedFrom, SplitGraph};
use taut_core::graph::ValueId;
use taut_core::ops::binary::add;
use taut_core::ops::creation::zeros;
use taut_core::{
    Error, ErrorKind, Gradient, Gradients, Graph, Outputs, Result, SavedValue, Saves, Set, Spec, Tensor,
    VjpCall, apply_many, record, trace,
};

/// How many states a loop of unknown length keeps if nobody said how much its gradient may keep.
pub(crate) const DEFAULT_SLOTS: usize = 64;

/// Where the backward pass finds something that it needs of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum From {
    Index,
    State(usize),
    Slice(usize),
    Capture(usize),
    Stack(usize),
}

/// How the gradient of a loop goes.
#[derive(Debug)]
pub(crate) struct Reverse {
    /// The states that have a gradient.
    pub(crate) active: Vec<usize>,
    /// The stacks that have one.
    pub(crate) followed: Vec<usize>,
    /// The slices whose gradient is wanted.
    pub(crate) slices: Vec<usize>,
    /// The captures whose gradient is wanted.
    pub(crate) captures: Vec<usize>,
    /// From what is kept of a step, the gradients of its active states and of its followed stacks, to what `answers` says.
    backward: Graph,
    answers: Vec<InputGradient>,
    kept: Vec<From>,
    /// Whether states are computed again from those in the slots.
    rewinds: bool,
}

/// What of a loop has to do with the gradients of the wanted inputs.
#[derive(Clone)]
struct Question {
    active: Vec<usize>,
    followed: Vec<usize>,
    slices: Vec<usize>,
    captures: Vec<usize>,
    joint: JointGraph,
}

impl Question {
    fn new(op: &Loop, wanted: Set) -> Result<Question> {
        let graph = op.body.graph();
        let (first, states) = (op.first(), op.states);
        let is_float = |id: ValueId| graph.spec(id).dtype.is_float();
        let count = graph.inputs.len();
        // Per input of the body; the index comes first.
        let mut from: Vec<bool> =
            (0..count).map(|i| i > 0 && is_float(graph.inputs[i]) && wanted.has(first + i - 1)).collect();
        let mut depends = dependent(graph, &from);
        loop {
            let mut grew = false;
            for k in 0..states {
                let output = graph.outputs[k];
                if !from[1 + k] && is_float(output) && depends[output.index()] {
                    from[1 + k] = true;
                    grew = true;
                }
            }
            if !grew {
                break;
            }
            depends = dependent(graph, &from);
        }
        let active: Vec<usize> = (0..states).filter(|&k| from[1 + k]).collect();
        let followed: Vec<usize> = (0..op.stacks)
            .filter(|&k| {
                let output = graph.outputs[states + k];
                is_float(output) && depends[output.index()]
            })
            .collect();
        let positions = |range: std::ops::Range<usize>| {
            let start = range.start;
            range.filter(|&i| from[i]).map(|i| i - start).collect::<Vec<usize>>()
        };
        let slices = positions(1 + states..1 + states + op.slices);
        let captures = positions(1 + states + op.slices..count);
        let outputs: Vec<usize> =
            active.iter().copied().chain(followed.iter().map(|&stack| states + stack)).collect();
        let joint = JointGraph::new(graph, &from, &outputs, true)?;
        Ok(Question { active, followed, slices, captures, joint })
    }

    fn reverse(self, backward: Graph, kept: Vec<From>, rewinds: bool) -> Reverse {
        let Question { active, followed, slices, captures, joint } = self;
        Reverse {
            active,
            followed,
            slices,
            captures,
            backward,
            answers: joint.input_gradients,
            kept,
            rewinds,
        }
    }

    /// The whole gradient of a step, from all that goes into the step.
    fn again(&self) -> Result<Graph> {
        let JointGraph { graph, outputs, .. } = &self.joint;
        graph.part(&graph.inputs, &graph.outputs[*outputs..])
    }
}

/// Per value, whether it depends on one of these inputs.
pub(crate) fn dependent(graph: &Graph, from: &[bool]) -> Vec<bool> {
    let mut depends = vec![false; graph.values.len()];
    graph.inputs.iter().zip(from).for_each(|(id, &from)| depends[id.index()] = from);
    for node in &graph.nodes {
        if node.inputs.iter().any(|id| depends[id.index()]) {
            node.outputs.iter().for_each(|id| depends[id.index()] = true);
        }
    }
    depends
}

/// Where an input of a loop's body comes from.
fn source(op: &Loop, input: usize) -> From {
    match input {
        0 => From::Index,
        i if i <= op.states => From::State(i - 1),
        i if i <= op.states + op.slices => From::Slice(i - 1 - op.states),
        i => From::Capture(i - 1 - op.states - op.slices),
    }
}

/// The bytes that a step of the way back needs, if a loop without states computes each step again; zero if nothing goes back.
pub(crate) fn step_back_bytes(op: &Loop) -> Result<usize> {
    let question = Question::new(op, Set::ALL)?;
    if question.followed.is_empty() {
        return Ok(0);
    }
    let graph = question.again()?;
    let results = graph.outputs.len();
    Ok(body_of(graph, 0, results).arena_bytes())
}

impl Reverse {
    /// The form of a loop that keeps what its gradient needs; `None` if it needs nothing but the inputs.
    pub(crate) fn forward_with_residuals(op: &Loop, wanted: Set) -> Result<Option<Loop>> {
        if op.states == 0 {
            return Ok(None);
        }
        let question = Question::new(op, wanted)?;
        let most = op.steps.most();
        if op.slots.is_some() {
            // Who sees the kept states as an output has a gradient of the gradient in mind.
            if most == usize::MAX {
                return Err(unbounded());
            }
            return Ok(Some(Reverse::stacked(op, question)?.0));
        }
        if most != usize::MAX {
            let (kept, stacks) = Reverse::stacked(op, question.clone())?;
            let Some(budget) = op.budget else { return Ok(Some(kept)) };
            let rows = (op.stacks..stacks).map(|k| kept.body.output(op.states + k).bytes());
            let all = rows.sum::<usize>().saturating_mul(most);
            // What is known to fit is kept: nothing is computed again.
            if all <= budget && matches!(op.steps, Steps::Known(_)) {
                if let Some(report) = &op.report {
                    report.keeps(most, all.checked_div(most).unwrap_or(0));
                    report.went_back(most, 0, 0);
                }
                return Ok(Some(kept));
            }
        }
        let one = op.state_bytes().max(1);
        let count = op.budget.map_or(DEFAULT_SLOTS, |budget| budget / one).clamp(1, most.max(1));
        if let Some(report) = &op.report {
            report.keeps(count, one);
        }
        let backward = question.again()?;
        let inputs = (0..op.body.graph().inputs.len()).map(|i| source(op, i)).collect();
        let mut kept = op.clone();
        kept.slots = Some(Slots { count, after: op.stacks });
        kept.reverse_pass = Some(Arc::new(question.reverse(backward, inputs, true)));
        Ok(Some(kept))
    }

    /// The form of a loop that writes down what its gradient needs of every step, and how many stacks it has.
    fn stacked(op: &Loop, question: Question) -> Result<(Loop, usize)> {
        let visible = op.states + op.stacks;
        let SplitGraph { mut forward, backward, saved: kept } = question.joint.split(visible)?;
        let mut sources = Vec::new();
        for kept in kept {
            sources.push(match kept {
                SavedFrom::Input(input) => match source(op, input) {
                    From::State(k) => {
                        forward.outputs.push(forward.inputs[1 + k]);
                        From::Stack(forward.outputs.len() - 1 - op.states)
                    }
                    source => source,
                },
                SavedFrom::Output(output) if output < op.states => {
                    forward.outputs.push(forward.outputs[output]);
                    From::Stack(forward.outputs.len() - 1 - op.states)
                }
                SavedFrom::Output(output) => From::Stack(output - op.states),
            });
        }
        let stacks = forward.outputs.len() - op.states;
        let mut kept = op.clone();
        kept.body = Arc::new(body_of(forward, op.states, stacks));
        kept.stacks = stacks;
        kept.reverse_pass = Some(Arc::new(question.reverse(backward, sources, false)));
        Ok((kept, stacks))
    }

    /// The stacks that the way back reads.
    pub(crate) fn stacks(&self) -> impl Iterator<Item = usize> {
        self.kept.iter().filter_map(|from| match *from {
            From::Stack(k) => Some(k),
            _ => None,
        })
    }

    /// What of a call has to be kept.
    pub(crate) fn saves(op: &Loop) -> Saves {
        let Some(pass) = &op.reverse_pass else {
            return Saves { inputs: Set::ALL, ..Saves::NOTHING };
        };
        let (first, captures) = (op.first(), op.first() + op.states + op.slices);
        let (mut inputs, mut outputs) = (Set::NONE, Set::NONE);
        for from in &pass.kept {
            match *from {
                From::Index => {}
                From::State(k) => inputs = inputs.with(first + k),
                From::Slice(i) => inputs = inputs.with(first + op.states + i),
                From::Capture(i) => inputs = inputs.with(captures + i),
                From::Stack(k) => outputs = outputs.with(op.stack(k)),
            }
        }
        if first == 1 {
            inputs = inputs.with(0);
        }
        if op.counts() {
            outputs = outputs.with(op.states);
        }
        if pass.rewinds {
            outputs = outputs.with(op.slab());
        }
        // Who follows the backward pass as well has to see how what is kept came about.
        if !record::has_single_use_recorder() {
            inputs = Set::ALL;
        }
        Saves { inputs, outputs, ..Saves::NOTHING }
    }

    pub(crate) fn vjp(op: &Loop, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let pass = op.reverse_pass.as_ref();
        if let Some(pass) = pass.filter(|pass| pass.rewinds) {
            return Rewind::of(op, pass, call);
        }
        if let Some(pass) = pass.filter(|_| !is_differentiable(call)) {
            let given = Given {
                count: match op.steps {
                    Steps::Known(_) => None,
                    Steps::Tested(_) => Some(call.output(op.states)?.clone()),
                    Steps::Counted(_) => Some(call.input(0)?.clone()),
                },
                gradients: take_gradients(call, op),
                sums: Vec::new(),
            };
            let input = |i: usize| call.input(i).cloned();
            let stack = |k: usize| call.output(op.stack(k)).cloned();
            return pass.backward(op, &input, &stack, given);
        }
        let count = call.outputs.get(op.states).and_then(|count| count.value.clone());
        let (op, wanted) = (bounded(op, count.as_ref())?, call.wanted);
        let inputs: Vec<Tensor> =
            (0..call.inputs.len()).map(|i| call.input(i).cloned()).collect::<Result<_>>()?;
        let gradients = take_gradients(call, &op);
        Reverse::by_loops(&op, wanted, inputs, gradients)
    }

    /// The gradients of a loop's inputs by a loop that writes down all that is needed, and one that goes back. Those who
    /// follow the inputs see both.
    pub(crate) fn by_loops(
        op: &Loop,
        wanted: Set,
        inputs: Vec<Tensor>,
        gradients: Vec<Option<Tensor>>,
    ) -> Result<Gradients> {
        let mut op = op.clone();
        (op.slots, op.reverse_pass) = (None, None);
        let input = |i: usize| Ok(inputs[i].clone());
        if op.states == 0 {
            let question = Question::new(&op, wanted)?;
            let backward = question.again()?;
            let kept = (0..op.body.graph().inputs.len()).map(|i| source(&op, i)).collect();
            let count = if op.first() == 1 { Some(inputs[0].clone()) } else { None };
            let none =
                |_: usize| Err(Error::new(ErrorKind::Graph, "a loop without states writes nothing down"));
            return question.reverse(backward, kept, false).backward(
                &op,
                &input,
                &none,
                Given { count, gradients, sums: Vec::new() },
            );
        }
        let (mut keeping, _) = Reverse::stacked(&op, Question::new(&op, wanted)?)?;
        let Some(pass) = keeping.reverse_pass.take() else { return Ok(Gradients::new()) };
        let outputs: Outputs = apply_many(&keeping, inputs.clone())?;
        let count = match op.steps {
            Steps::Known(_) => None,
            Steps::Tested(_) => Some(outputs[op.states].clone()),
            Steps::Counted(_) => Some(inputs[0].clone()),
        };
        let stack = |k: usize| Ok(outputs[keeping.stack(k)].clone());
        pass.backward(&keeping, &input, &stack, Given { count, gradients, ..Given::default() })
    }

    /// Applies the backward loop of a loop whose inputs and stacks are these.
    fn backward(
        &self,
        op: &Loop,
        input: &dyn Fn(usize) -> Result<Tensor>,
        stack: &dyn Fn(usize) -> Result<Tensor>,
        given: Given,
    ) -> Result<Gradients> {
        let found = self.back(op, input, stack, given)?;
        Ok(self.gradients(op, found.into_iter()))
    }

    /// The outputs of the backward loop: the gradients of the active states, the sums for the captures, the gradients of the
    /// slices.
    pub(crate) fn back(
        &self,
        op: &Loop,
        input: &dyn Fn(usize) -> Result<Tensor>,
        stack: &dyn Fn(usize) -> Result<Tensor>,
        given: Given,
    ) -> Result<Outputs> {
        let first = op.first();
        let captures = first + op.states + op.slices;
        let Given { count, mut gradients, sums } = given;
        let mut sums = sums.into_iter();
        let mut arguments: Vec<Tensor> = count.iter().cloned().collect();
        let counted = arguments.len();
        let mut specs = vec![index_spec()];
        for &k in &self.active {
            let spec = op.body.input(1 + k).clone();
            arguments.push(or_zeros(gradients[k].take(), &spec)?);
            specs.push(spec);
        }
        let capture_spec = |i: usize| op.body.input(1 + op.states + op.slices + i).clone();
        for &i in &self.captures {
            arguments.push(or_zeros(sums.next(), &capture_spec(i))?);
            specs.push(capture_spec(i));
        }
        // Where each of what is kept is among the inputs of the backward body: rows first, then what stays.
        let mut places = vec![0; self.kept.len()];
        let mut rows = 0;
        for (place, from) in places.iter_mut().zip(&self.kept) {
            let row = match *from {
                From::Slice(i) => (op.body.input(1 + op.states + i), input(first + op.states + i)?),
                From::Stack(k) => (op.body.output(op.states + k), stack(k)?),
                _ => continue,
            };
            *place = specs.len();
            rows += 1;
            specs.push(row.0.clone());
            arguments.push(row.1);
        }
        // A stack without a gradient needs no rows of zeros.
        let mut incoming: Vec<Option<usize>> = Vec::new();
        for &k in &self.followed {
            let gradient = gradients[op.states + k].take();
            incoming.push(gradient.is_some().then_some(specs.len()));
            if let Some(gradient) = gradient {
                arguments.push(gradient);
                specs.push(op.body.output(op.states + k).clone());
                rows += 1;
            }
        }
        for (place, from) in places.iter_mut().zip(&self.kept) {
            if let From::Capture(i) = *from {
                *place = specs.len();
                specs.push(capture_spec(i));
                arguments.push(input(captures + i)?);
            }
        }
        let graph = self.body(op, &specs, |body| {
            let mut inputs: Vec<Tensor> = places.iter().map(|&place| body[place].clone()).collect();
            inputs.extend_from_slice(&body[1..=self.active.len()]);
            for (&k, place) in self.followed.iter().zip(&incoming) {
                let given = place.map(|place| body[place].clone());
                inputs.push(or_zeros(given, op.body.output(op.states + k))?);
            }
            Ok((inputs, 1 + self.active.len()))
        })?;
        let carried = self.active.len() + self.captures.len();
        let back = match op.steps {
            Steps::Known(steps) => Steps::Known(steps),
            Steps::Tested(most) | Steps::Counted(most) => Steps::Counted(most),
        };
        let fixed = arguments.split_off(counted + carried + rows);
        let (graph, fixed) = hoisted(graph, 1 + carried + rows, fixed)?;
        arguments.extend(fixed);
        let stacks = self.slices.len();
        let mut back = Loop::new("loop_gradient", graph, None, (carried, rows, stacks), back, !op.reverse);
        back.start = op.start;
        apply_many(&back, arguments)
    }

    /// The body of a backward pass, from inputs of these specs to the gradients of the active states, the sums for the captures,
    /// and the gradients of the slices. `arrange` says what the gradient graph is given, and where the sums so far begin.
    pub(crate) fn body(
        &self,
        op: &Loop,
        specs: &[Spec],
        arrange: impl FnOnce(&[Tensor]) -> Result<(Vec<Tensor>, usize)>,
    ) -> Result<Graph> {
        let traced = record::without_recording(|| {
            trace(specs, |arguments| {
                let (inputs, sums) = arrange(arguments)?;
                let found = self.backward.run(&inputs)?;
                let answer = |input: usize| match self.answers[input] {
                    InputGradient::Dense(at) => Some(found[at].clone()),
                    _ => None,
                };
                let mut results = Vec::new();
                for &k in &self.active {
                    results.push(or_zeros(answer(1 + k), op.body.input(1 + k))?);
                }
                for (n, &i) in self.captures.iter().enumerate() {
                    let sum = arguments[sums + n].clone();
                    results.push(match answer(1 + op.states + op.slices + i) {
                        None => sum,
                        Some(part) => add(sum, part)?,
                    });
                }
                for &i in &self.slices {
                    let input = 1 + op.states + i;
                    results.push(or_zeros(answer(input), op.body.input(input))?);
                }
                Ok(results)
            })
        })?;
        Ok(traced.graph)
    }

    /// The inputs of the loop that have a gradient.
    pub(crate) fn wanted(&self, op: &Loop) -> Set {
        let first = op.first();
        let states = self.active.iter().map(|&k| first + k);
        let slices = self.slices.iter().map(|&i| first + op.states + i);
        let captures = self.captures.iter().map(|&i| first + op.states + op.slices + i);
        states.chain(slices).chain(captures).fold(Set::NONE, Set::with)
    }

    /// The gradients of a loop's inputs, from those of its active states, captures and slices in this order.
    pub(crate) fn gradients(&self, op: &Loop, mut found: impl Iterator<Item = Tensor>) -> Gradients {
        let first = op.first();
        let mut gradients: Gradients =
            (0..first + op.states + op.slices + op.captures()).map(|_| None).collect();
        let states = self.active.iter().map(|&k| first + k);
        let captures = self.captures.iter().map(|&i| first + op.states + op.slices + i);
        let slices = self.slices.iter().map(|&i| first + op.states + i);
        for position in states.chain(captures).chain(slices) {
            gradients[position] = found.next().map(Gradient::Dense);
        }
        gradients
    }
}

/// Whether somebody follows the backward pass of a call to its inputs, all of which were kept: then what was kept of the call does
/// not do, since nobody knows how it came about.
pub(crate) fn is_differentiable(call: &VjpCall<'_>) -> bool {
    let followed = |part: &SavedValue| part.value.as_ref().is_some_and(record::is_tracked);
    record::is_recording()
        && call.inputs.iter().all(|part| part.value.is_some())
        && call.inputs.iter().any(followed)
}

/// What a backward pass starts from.
#[derive(Default)]
pub(crate) struct Given {
    /// How many steps were made, if that was not known before.
    pub(crate) count: Option<Tensor>,
    /// The gradients of the states and of the stacks.
    pub(crate) gradients: Vec<Option<Tensor>>,
    /// The gradients of the captures so far; zeros if there are none.
    pub(crate) sums: Vec<Tensor>,
}

/// The gradients of the states and of the stacks of a call.
pub(crate) fn take_gradients(call: &mut VjpCall<'_>, op: &Loop) -> Vec<Option<Tensor>> {
    let stacks = (0..op.stacks).map(|k| op.stack(k));
    (0..op.states).chain(stacks).map(|output| call.take_gradient(output)).collect()
}

pub(crate) fn or_zeros(tensor: Option<Tensor>, spec: &Spec) -> Result<Tensor> {
    match tensor {
        Some(tensor) => Ok(tensor),
        None => zeros(spec.shape.clone(), spec.dtype),
    }
}

/// The body without its stacks: what takes the states one step further.
pub(crate) fn advance(op: &Loop) -> Result<Body> {
    let graph = op.body.graph();
    Ok(body_of(graph.part(&graph.inputs, &graph.outputs[..op.states])?, op.states, 0))
}

/// A loop with a limit to its steps, if need be the number that it made.
pub(crate) fn bounded(op: &Loop, count: Option<&Tensor>) -> Result<Loop> {
    let mut op = op.clone();
    if op.steps.most() == usize::MAX {
        let count = count.filter(|count| !count.is_traced()).ok_or_else(unbounded)?;
        op.steps = Steps::Tested(count.item::<i64>()?.max(0) as usize);
    }
    Ok(op)
}

#[cold]
pub(crate) fn unbounded() -> Error {
    let message =
        "the gradient of the gradient of a loop of unknown length would have to keep any number of states";
    Error::new(ErrorKind::Graph, message).help("say how many steps it makes at most: maximum_iterations")
}
