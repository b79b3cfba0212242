//! The loops that people call.

use crate::build::{Spans, align, bodies, carrying, inherited, nested};
use crate::grow::grow;
use crate::hoist::hoisted;
use crate::looping::{Loop, Steps, index_spec};
use crate::report::LoopReport;
use crate::structure::{names, same_specs, same_structure, tensors};
use std::ops::Range;
use std::sync::Arc;
use taut_autodiff::Variable;
use taut_autodiff::nest::{Nest, strip_values};
use taut_core::graph::{ExternalState, Traced, trace_writing};
use taut_core::ops::binary::add;
use taut_core::ops::random::with_index;
use taut_core::{DType, Error, ErrorKind, Result, Set, Shape, Spec, Tensor, apply_at, is_tracing, record};
use taut_memory::Location;

/// How loops run, and what their gradients may keep.
///
/// ```
/// use taut_control::Loops;
/// use taut_core::{Tensor, ops::contract::matmul};
/// let a = Tensor::from_slice(&[0.0f32, 1.0, 1.0, 0.0], [2, 2])?;
/// let y = Loops::new().grad_budget(1 << 20).fori_loop(0..3, |_, x| matmul(x, &a), a.clone())?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Loops {
    budget: Option<usize>,
    most: Option<usize>,
    invariants: Option<Vec<Vec<Option<usize>>>>,
    report: Option<Arc<LoopReport>>,
    pub(crate) parallel: Option<usize>,
    pub(crate) memory: Option<usize>,
}

impl Loops {
    /// Loops without a budget or a limit.
    pub fn new() -> Loops {
        Loops::default()
    }

    /// The most bytes of states that the gradient of the loop may keep: the others are computed again, as few times as
    /// possible. Loops inside the loop get their share of it.
    #[must_use]
    pub fn grad_budget(mut self, bytes: usize) -> Loops {
        self.budget = Some(bytes);
        self
    }

    /// A `while` ends after this many steps, whatever its test says.
    #[must_use]
    pub fn maximum_iterations(mut self, steps: usize) -> Loops {
        self.most = Some(steps);
        self
    }

    /// The shape of each state, where it may change from step to step: `None` for a dimension that may. Such a loop runs
    /// op by op, and not in a traced function, where shapes do not change.
    #[must_use]
    pub fn shape_invariants(mut self, shapes: Vec<Vec<Option<usize>>>) -> Loops {
        self.invariants = Some(shapes);
        self
    }

    /// Tells here what the gradient kept, and what it computed again.
    #[must_use]
    pub fn report(mut self, report: &Arc<LoopReport>) -> Loops {
        self.report = Some(report.clone());
        self
    }

    /// How many elements a map works on at once.
    #[must_use]
    pub fn parallel_iterations(mut self, elements: usize) -> Loops {
        self.parallel = Some(elements);
        self
    }

    /// The most bytes that a map's bodies may take at once, beside what goes in and comes out.
    #[must_use]
    pub fn memory_budget(mut self, bytes: usize) -> Loops {
        self.memory = Some(bytes);
        self
    }

    pub(crate) fn has_budget(&self) -> bool {
        self.budget.is_some()
    }

    /// Calls `body` on the states again and again, as long as `test` holds; returns the last states. See [`while_loop`].
    #[track_caller]
    pub fn while_loop<S: Nest<Owned = S>>(
        &self,
        test: impl Fn(&S) -> Result<Tensor>,
        body: impl Fn(S) -> Result<S>,
        states: S,
    ) -> Result<S> {
        let at = Location::caller();
        self.tested(&test, &body, states, at).map_err(|error| error.in_op("while_loop", []).at(at))
    }

    /// Calls `body` with each number of the range and the states; returns the last states. See [`fori_loop`].
    #[track_caller]
    pub fn fori_loop<S: Nest<Owned = S>>(
        &self,
        range: Range<i64>,
        body: impl Fn(Tensor, S) -> Result<S>,
        states: S,
    ) -> Result<S> {
        let at = Location::caller();
        let steps = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(0);
        let numbered = |index: Tensor, state: S, (): ()| {
            let index = if range.start == 0 { index } else { add(index, range.start)? };
            Ok((body(index, state)?, ()))
        };
        let done = self.stepped("fori_loop", &numbered, states, (), Steps::Known(steps), false, at);
        done.map(|(states, ())| states).map_err(|error| error.in_op("fori_loop", []).at(at))
    }

    /// Goes through the elements, carrying a state; returns the last state, and what `body` made of each element, stacked.
    /// See [`scan`].
    #[track_caller]
    pub fn scan<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        body: impl Fn(S, X) -> Result<(S, Y)>,
        state: S,
        elements: X,
    ) -> Result<(S, Y)> {
        self.through("scan", &body, state, elements, false, Location::caller())
    }

    /// As [`Loops::scan`], from the last element to the first; what is made of them keeps their order.
    #[track_caller]
    pub fn scan_reversed<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        body: impl Fn(S, X) -> Result<(S, Y)>,
        state: S,
        elements: X,
    ) -> Result<(S, Y)> {
        self.through("scan", &body, state, elements, true, Location::caller())
    }

    /// Goes through the elements, carrying a state; returns the last one. See [`foldl`].
    #[track_caller]
    pub fn foldl<S: Nest<Owned = S>, X: Nest<Owned = X>>(
        &self,
        body: impl Fn(S, X) -> Result<S>,
        elements: X,
        state: S,
    ) -> Result<S> {
        let body = |state: S, element: X| Ok((body(state, element)?, ()));
        Ok(self.through("foldl", &body, state, elements, false, Location::caller())?.0)
    }

    /// As [`Loops::foldl`], from the last element to the first.
    #[track_caller]
    pub fn foldr<S: Nest<Owned = S>, X: Nest<Owned = X>>(
        &self,
        body: impl Fn(S, X) -> Result<S>,
        elements: X,
        state: S,
    ) -> Result<S> {
        let body = |state: S, element: X| Ok((body(state, element)?, ()));
        Ok(self.through("foldr", &body, state, elements, true, Location::caller())?.0)
    }

    fn through<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        name: &'static str,
        body: &dyn Fn(S, X) -> Result<(S, Y)>,
        state: S,
        elements: X,
        reverse: bool,
        at: Location,
    ) -> Result<(S, Y)> {
        let body = |_: Tensor, state: S, element: X| body(state, element);
        let run = || {
            let steps = Steps::Known(rows(&elements)?);
            self.stepped(name, &body, state, elements, steps, reverse, at)
        };
        run().map_err(|error: Error| error.in_op(name, []).at(at))
    }

    /// A loop of a known number of steps.
    pub(crate) fn stepped<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
        &self,
        name: &'static str,
        body: &dyn Fn(Tensor, S, X) -> Result<(S, Y)>,
        states: S,
        elements: X,
        steps: Steps,
        reverse: bool,
        at: Location,
    ) -> Result<(S, Y)> {
        let (mut inputs, slices) = (tensors(&states), tensors(&elements));
        let (states, elements) = (strip_values(states), strip_values(elements));
        let names = names(&states);
        let before: Vec<Spec> = inputs.iter().map(|t| t.spec().clone()).collect();
        let budget = self.budget.or_else(inherited);
        let ((traced, made, budget), carried) = carrying(|carried| {
            let (mut specs, given) = carried_specs(&before, carried);
            let first_slice = specs.len();
            specs.extend(slices.iter().map(|t| Spec::new(t.dtype(), t.shape().clone().without(0))));
            let ((traced, made), budget) = nested(budget, || {
                trace_writing(&specs, &given, |arguments| {
                    let index = &arguments[0];
                    let state = states.rebuild(&mut arguments[1..].iter().cloned());
                    let element = elements.rebuild(&mut arguments[first_slice..].iter().cloned());
                    let (after, made) = with_index(index, || body(index.clone(), state, element))?;
                    same_structure("its states are", &states, "the body", &after)?;
                    let mut results = tensors(&after);
                    same_specs(&names, &before, &results)?;
                    results.extend(tensors(&made));
                    Ok((results, made))
                })
            })?;
            let written = traced.writes.clone();
            Ok(((traced, made, budget), written))
        })?;
        let mut traced = traced;
        // What is carried comes before what is stacked.
        let stacks = traced.graph.outputs.len() - before.len() - carried.len();
        traced.graph.outputs[before.len()..].rotate_left(stacks);
        inputs.extend(carried.iter().map(Variable::read));
        let spans = Spans { states: inputs.len(), slices: slices.len() };
        let (op, captures) = self.prepare(name, traced, None, (spans, stacks), steps, reverse, budget)?;
        inputs.extend(slices);
        inputs.extend(captures);
        let mut outputs = apply_at(&op, &mut inputs, at)?.into_iter();
        let states = states.rebuild(&mut outputs);
        assign(&carried, &mut outputs)?;
        Ok((states, made.rebuild(&mut outputs)))
    }

    fn tested<S: Nest<Owned = S>>(
        &self,
        test: &dyn Fn(&S) -> Result<Tensor>,
        body: &dyn Fn(S) -> Result<S>,
        states: S,
        at: Location,
    ) -> Result<S> {
        if let Some(shapes) = &self.invariants
            && shapes.iter().any(|shape| shape.contains(&None))
        {
            return self.op_by_op(shapes, test, body, states);
        }
        let mut inputs = tensors(&states);
        let states = strip_values(states);
        let names = names(&states);
        let before: Vec<Spec> = inputs.iter().map(|t| t.spec().clone()).collect();
        self.check_invariants(&names, &inputs)?;
        let budget = self.budget.or_else(inherited);
        let ((tests, traced, budget), carried) = carrying(|carried| {
            let (specs, given) = carried_specs(&before, carried);
            let ((tests, traced), budget) = nested(budget, || {
                let (mut tests, ()) = trace_writing(&specs, &given, |arguments| {
                    let state = states.rebuild(&mut arguments[1..].iter().cloned());
                    let answer = with_index(&arguments[0], || test(&state))?;
                    if *answer.spec() != Spec::new(DType::Bool, Shape::scalar()) {
                        return Err(not_a_condition(answer.spec()));
                    }
                    Ok((vec![answer], ()))
                })?;
                if !tests.graph.outputs[1..].iter().eq(&tests.graph.inputs[1 + before.len()..specs.len()]) {
                    let error = Error::new(ErrorKind::Graph, "the test of a loop cannot write to state");
                    return Err(error.help("write to it in the body"));
                }
                tests.graph.outputs.truncate(1);
                let (traced, ()) = trace_writing(&specs, &given, |arguments| {
                    let state = states.rebuild(&mut arguments[1..].iter().cloned());
                    let after = with_index(&arguments[0], || body(state))?;
                    same_structure("its states are", &states, "the body", &after)?;
                    let results = tensors(&after);
                    same_specs(&names, &before, &results)?;
                    Ok((results, ()))
                })?;
                Ok((tests, traced))
            })?;
            let written = traced.writes.clone();
            Ok(((tests, traced, budget), written))
        })?;
        inputs.extend(carried.iter().map(Variable::read));
        let steps = Steps::Tested(self.most.unwrap_or(usize::MAX));
        let spans = Spans { states: inputs.len(), slices: 0 };
        let (op, captures) =
            self.prepare("while_loop", traced, Some(tests), (spans, 0), steps, false, budget)?;
        inputs.extend(captures);
        let wanted = growing(&op, &inputs);
        let outputs = if wanted.is_empty() {
            apply_at(&op, &mut inputs, at)?.into_vec()
        } else {
            grow(&op, inputs, wanted, at)?
        };
        let mut outputs = outputs.into_iter();
        let states = states.rebuild(&mut outputs);
        assign(&carried, &mut outputs)?;
        Ok(states)
    }

    /// A loop over these graphs, and the captures that are its last inputs.
    fn prepare(
        &self,
        name: &'static str,
        body: Traced,
        test: Option<Traced>,
        (spans, stacks): (Spans, usize),
        steps: Steps,
        reverse: bool,
        budget: Option<usize>,
    ) -> Result<(Loop, Vec<Tensor>)> {
        let varying = 1 + spans.states + spans.slices;
        let (mut body, mut captures) = hoisted(body.graph, varying, body.captures)?;
        let test = match test {
            None => None,
            Some(test) => {
                let (test, own) = hoisted(test.graph, varying, test.captures)?;
                let all = bodies(&[&captures, &own]);
                body = align(body, varying, &captures, &all);
                let test = align(test, varying, &own, &all);
                captures = all;
                Some(test)
            }
        };
        let mut op = Loop::new(name, body, test, (spans.states, spans.slices, stacks), steps, reverse);
        op.budget = budget;
        op.report.clone_from(&self.report);
        op.check_budget().map_err(|error| match self.budget {
            Some(_) => error,
            None => {
                error.help("that is this loop's share of the budget of the loop around it: allow more there")
            }
        })?;
        Ok((op, captures))
    }

    fn check_invariants(&self, names: &[String], states: &[Tensor]) -> Result<()> {
        let Some(shapes) = &self.invariants else { return Ok(()) };
        if shapes.len() != states.len() {
            let (got, wanted) = (shapes.len(), states.len());
            return Err(Error::value(format!("{got} shape invariants for {wanted} loop variables")));
        }
        for ((shape, state), name) in shapes.iter().zip(states).zip(names) {
            let fits = shape.len() == state.rank()
                && shape
                    .iter()
                    .zip(state.shape().iter())
                    .all(|(open, dim)| open.is_none_or(|open| open == *dim));
            if !fits {
                let shape: Vec<String> =
                    shape.iter().map(|dim| dim.map_or("?".into(), |dim| dim.to_string())).collect();
                let message = format!(
                    "loop variable {name} is {}, and its shape invariant is [{}]",
                    state.spec(),
                    shape.join(", ")
                );
                return Err(Error::shape(message).help("leave the dimensions that change open"));
            }
        }
        Ok(())
    }

    /// A loop whose states change their shapes: it is a loop of the host's.
    fn op_by_op<S: Nest<Owned = S>>(
        &self,
        shapes: &[Vec<Option<usize>>],
        test: &dyn Fn(&S) -> Result<Tensor>,
        body: &dyn Fn(S) -> Result<S>,
        states: S,
    ) -> Result<S> {
        if is_tracing() {
            let message = "in a traced function, the shapes of loop variables do not change";
            return Err(Error::shape(message).help("give them their largest shape, and count what is filled"));
        }
        debug_assert!(self.invariants.as_deref() == Some(shapes));
        let names = names(&states);
        let types: Vec<DType> = tensors(&states).iter().map(Tensor::dtype).collect();
        self.check_invariants(&names, &tensors(&states))?;
        let (mut states, mut step) = (states, 0);
        while step < self.most.unwrap_or(usize::MAX) {
            let answer = test(&states)?;
            if *answer.spec() != Spec::new(DType::Bool, Shape::scalar()) {
                return Err(not_a_condition(answer.spec()));
            }
            if !answer.item::<bool>()? {
                break;
            }
            let after = body(states.rebuild(&mut tensors(&states).into_iter()))?;
            same_structure("its states are", &states, "the body", &after)?;
            let list = tensors(&after);
            if let Some(i) = (0..list.len()).find(|&i| list[i].dtype() != types[i]) {
                let before = tensors(&states)[i].spec().clone();
                same_specs(&names[i..=i], &[before], &list[i..=i])?;
            }
            self.check_invariants(&names, &list)?;
            (states, step) = (after, step + 1);
        }
        Ok(states)
    }
}

/// The specs of a body's index and states, and of the variables that it carries after those, with their places.
fn carried_specs(states: &[Spec], carried: &[Variable]) -> (Vec<Spec>, Vec<(usize, Arc<dyn ExternalState>)>) {
    let mut specs = vec![index_spec()];
    specs.extend(states.iter().cloned());
    let given = (specs.len()..).zip(carried.iter().map(Variable::state)).collect();
    specs.extend(carried.iter().map(|variable| variable.spec().clone()));
    (specs, given)
}

/// Gives variables the values that an op made of them.
pub(crate) fn assign(variables: &[Variable], values: &mut dyn Iterator<Item = Tensor>) -> Result<()> {
    variables.iter().zip(values).try_for_each(|(variable, value)| variable.assign(value))
}

/// The inputs of a `while` whose gradients may be asked for, here and now: then it can keep as much as it turns out to need.
fn growing(op: &Loop, inputs: &[Tensor]) -> Set {
    let unknown = op.budget.is_none() && op.steps.most() > 0 && op.states > 0;
    if !unknown || !record::is_recording() || is_tracing() {
        return Set::NONE;
    }
    let followed = |i: &usize| inputs[*i].dtype().is_float() && record::is_tracked(&inputs[*i]);
    (0..inputs.len()).filter(followed).fold(Set::NONE, Set::with)
}

#[cold]
fn not_a_condition(spec: &Spec) -> Error {
    let message = format!("the test returned {spec}, not a single boolean");
    let error = if spec.dtype == DType::Bool { Error::shape(message) } else { Error::dtype(message) };
    error.help("compare something, and reduce the answers to one with all() or any()")
}

/// How many rows the elements have.
pub(crate) fn rows(elements: &impl Nest) -> Result<usize> {
    let (list, names) = (tensors(elements), names(elements));
    let Some(first) = list.first() else {
        return Err(Error::value("there are no elements to go through"));
    };
    for (tensor, name) in list.iter().zip(&names) {
        let which = if name.is_empty() { "the input".into() } else { format!("input {name}") };
        if tensor.rank() == 0 {
            let message = format!("{which} is {}, a single number, and has no elements", tensor.spec());
            return Err(Error::shape(message));
        }
        if tensor.shape()[0] != first.shape()[0] {
            let (one, other) = (first.spec(), tensor.spec());
            let message =
                format!("{which} is {other}, and the first is {one}: as many elements each are needed");
            return Err(Error::shape(message));
        }
    }
    Ok(first.shape()[0])
}

/// Calls `body` on the states again and again, as long as `test` holds; returns the last states.
///
/// Both are traced when it is called. However many steps it makes, the loop needs the memory of its states and of one body, and its states are
/// updated in place. What `body` uses from outside stays what it is. Its gradient keeps of each step only what the gradient of
/// the body needs; see [`Loops`] for one that keeps less.
///
/// ```
/// use taut_control::while_loop;
/// use taut_core::{Tensor, ops::binary::less};
/// let start = (Tensor::scalar(0i64)?, Tensor::scalar(1.0f32)?);
/// let (_, x) = while_loop(|(i, _)| less(i, 10i64), |(i, x)| Ok(((i + 1i64)?, (x * 2.0)?)), start)?;
/// assert_eq!(x.item::<f32>()?, 1024.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn while_loop<S: Nest<Owned = S>>(
    test: impl Fn(&S) -> Result<Tensor>,
    body: impl Fn(S) -> Result<S>,
    states: S,
) -> Result<S> {
    Loops::new().while_loop(test, body, states)
}

/// Calls `body` with each number of the range (an int64) and the states; returns the last states.
///
/// As [`while_loop`], with a number of steps that is known.
///
/// ```
/// use taut_control::fori_loop;
/// use taut_core::Tensor;
/// let sum = fori_loop(0..5, |i, sum| sum + i, Tensor::scalar(0i64)?)?;
/// assert_eq!(sum.item::<i64>()?, 10);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn fori_loop<S: Nest<Owned = S>>(
    range: Range<i64>,
    body: impl Fn(Tensor, S) -> Result<S>,
    states: S,
) -> Result<S> {
    Loops::new().fori_loop(range, body, states)
}

/// Goes through the elements (slices along the first axis), carrying a state; returns the last state, and what `body` made of each
/// element, stacked.
///
/// ```
/// use taut_control::scan;
/// use taut_core::Tensor;
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
/// let step = |sum: Tensor, x: Tensor| {
///     let sum = (sum + x)?;
///     Ok((sum.clone(), sum))
/// };
/// let (total, sums) = scan(step, Tensor::scalar(0.0f32)?, x)?;
/// assert_eq!((total.item::<f32>()?, sums.to_vec::<f32>()?), (6.0, vec![1.0, 3.0, 6.0]));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn scan<S: Nest<Owned = S>, X: Nest<Owned = X>, Y: Nest<Owned = Y>>(
    body: impl Fn(S, X) -> Result<(S, Y)>,
    state: S,
    elements: X,
) -> Result<(S, Y)> {
    Loops::new().scan(body, state, elements)
}

/// Goes through the elements (slices along the first axis) from the first to the last, carrying a state; returns the last one.
#[track_caller]
pub fn foldl<S: Nest<Owned = S>, X: Nest<Owned = X>>(
    body: impl Fn(S, X) -> Result<S>,
    elements: X,
    state: S,
) -> Result<S> {
    Loops::new().foldl(body, elements, state)
}

/// Goes through the elements (slices along the first axis) from the last to the first, carrying a state; returns the last one.
#[track_caller]
pub fn foldr<S: Nest<Owned = S>, X: Nest<Owned = X>>(
    body: impl Fn(S, X) -> Result<S>,
    elements: X,
    state: S,
) -> Result<S> {
    Loops::new().foldr(body, elements, state)
}
