//! The way back through a loop of which only some states were kept.

use crate::body::{Body, Runner, bytes_of, rounded, take};
use crate::gradient::{Reverse, advance, bounded, or_zeros, take_gradients};
use crate::looping::{Loop, Rows, Steps, count, index_spec, stacked};
use crate::schedule::{Back, Move, at_end, recomputed};
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use taut_autodiff::joint::vjp;
use taut_autodiff::{GradientTape, optimization_barrier};
use taut_core::ops::binary::add;
use taut_core::{
    DType, Differentiable, Effects, Error, Gradient, Gradients, Graph, Kernel, Op, Result, Saves, Set, Spec,
    Specs, Subgraphs, Tensor, VjpCall, apply_many,
};
use taut_kernels::{Arg, ViewMut};

/// Reverses a loop step by step, computing again the states that were not kept.
///
/// Inputs: the number of steps if it was not known before, the kept states, the first states, the gradients of the active
/// states, the sums for the captures, the slices, the gradients of the followed stacks, the captures. Outputs: the memory
/// of the kept states, the gradients of the active states, the sums, the gradients of the slices.
#[derive(Clone)]
pub(crate) struct Rewind {
    /// The loop, in the form that keeps nothing.
    op: Loop,
    pass: Arc<Reverse>,
    slots: usize,
    advance: Arc<Body>,
    /// From `(index, states, gradients, sums, slices, gradients of stacks, captures)`.
    reverse: Arc<Body>,
    /// Per output that is the new value of an input, that input.
    aliases: Vec<[usize; 1]>,
}

impl Rewind {
    /// The gradients of a loop that kept some of its states.
    pub(crate) fn of(op: &Loop, pass: &Arc<Reverse>, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let counted = if op.counts() { Some(call.output(op.states)?.clone()) } else { None };
        let counted = if op.first() == 1 { Some(call.input(0)?.clone()) } else { counted };
        let mut gradients = take_gradients(call, op);
        let mut arguments: Vec<Tensor> = counted.into_iter().collect();
        let counts = arguments.len();
        arguments.push(call.take_output(op.slab())?);
        let (first, slices) = (op.first(), op.first() + op.states);
        let captures = slices + op.slices;
        for k in 0..op.states {
            arguments.push(call.input(first + k)?.clone());
        }
        for &k in &pass.active {
            arguments.push(or_zeros(gradients[k].take(), op.body.input(1 + k))?);
        }
        for &i in &pass.captures {
            arguments.push(or_zeros(None, op.body.input(1 + op.states + op.slices + i))?);
        }
        for i in 0..op.slices {
            arguments.push(call.input(slices + i)?.clone());
        }
        for &k in &pass.followed {
            let spec = stacked(op.steps.most(), op.body.output(op.states + k));
            arguments.push(or_zeros(gradients[op.states + k].take(), &spec)?);
        }
        for i in 0..op.captures() {
            arguments.push(call.input(captures + i)?.clone());
        }
        let rewind = Rewind::new(op, pass)?;
        debug_assert_eq!(usize::from(rewind.counts()), counts);
        let found = apply_many(&rewind, arguments)?;
        Ok(pass.gradients(op, found.into_iter().skip(1)))
    }

    fn new(op: &Loop, pass: &Arc<Reverse>) -> Result<Rewind> {
        let graph = op.body.graph();
        let spec = |i: usize| op.body.input(i).clone();
        let (states, slices) = (op.states, op.slices);
        let mut specs: Vec<Spec> = (0..=states).map(spec).collect();
        specs.extend(pass.active.iter().map(|&k| spec(1 + k)));
        let sums = specs.len();
        specs.extend(pass.captures.iter().map(|&i| spec(1 + states + slices + i)));
        let carried = specs.len() - 1 - states;
        let first_slice = specs.len();
        specs.extend((0..slices).map(|i| spec(1 + states + i)));
        let incoming = specs.len();
        specs.extend(pass.followed.iter().map(|&k| op.body.output(states + k).clone()));
        let captures = specs.len();
        specs.extend((1 + states + slices..graph.inputs.len()).map(spec));
        let reverse = pass.body(op, &specs, |body| {
            let mut inputs = body[..=states].to_vec();
            inputs.extend_from_slice(&body[first_slice..incoming]);
            inputs.extend_from_slice(&body[captures..]);
            inputs.extend_from_slice(&body[1 + states..sums]);
            inputs.extend_from_slice(&body[incoming..captures]);
            Ok((inputs, sums))
        })?;
        let into =
            (0..carried).map(|n| Some(1 + states + n)).chain(pass.slices.iter().map(|_| None)).collect();
        let slots = op.slots.as_ref().map_or(1, |slots| slots.count);
        let counts = usize::from(!matches!(op.steps, Steps::Known(_)));
        let aliases = [counts].into_iter().chain((0..carried).map(|n| counts + 1 + states + n));
        let mut plain = op.clone();
        (plain.slots, plain.reverse_pass) = (None, None);
        Ok(Rewind {
            op: plain,
            pass: pass.clone(),
            slots,
            advance: Arc::new(advance(op)?),
            reverse: Arc::new(Body::new(reverse, into)),
            aliases: aliases.map(|input| [input]).collect(),
        })
    }

    /// Whether the first input says how many steps there were.
    fn counts(&self) -> bool {
        !matches!(self.op.steps, Steps::Known(_))
    }

    /// How many inputs there are of each kind, in order.
    fn parts(&self) -> [usize; 8] {
        let (op, pass) = (&self.op, &self.pass);
        let (gradients, sums, followed) = (pass.active.len(), pass.captures.len(), pass.followed.len());
        [usize::from(self.counts()), 1, op.states, gradients, sums, op.slices, followed, op.captures()]
    }
}

impl fmt::Debug for Rewind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Rewind({:?}, slots={})", self.op, self.slots)
    }
}

/// The memory of each state in a row of kept states.
fn states_in<'a>(row: &'a mut [u8], like: &[&[u8]]) -> SmallVec<[&'a mut [u8]; 8]> {
    let mut row = row;
    like.iter().map(|state| &mut take(&mut row, rounded(state.len()))[..state.len()]).collect()
}

/// Cuts a list into pieces of these lengths.
fn pieces<'a, T, const N: usize>(list: &'a [T], lengths: &[usize; N]) -> [&'a [T]; N] {
    let mut rest = list;
    lengths.map(|length| {
        let (piece, more) = rest.split_at(length);
        rest = more;
        piece
    })
}

impl Op for Rewind {
    fn name(&self) -> &'static str {
        "loop_rewind"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let parts = self.parts();
        let wanted: usize = parts.iter().sum();
        if inputs.len() != wanted {
            return Err(Error::value(format!("the way back takes {wanted} inputs, not {}", inputs.len())));
        }
        let [count, slab, states, gradients, sums, slices, incoming, captures] = pieces(inputs, &parts);
        let kept = Spec::new(DType::U8, [self.slots, self.op.state_bytes()]);
        let body = |range: &[&Spec], from: usize, rows: Option<usize>| {
            range.iter().enumerate().all(|(i, input)| match rows {
                None => *input == self.reverse.input(from + i),
                Some(rows) => **input == stacked(rows, self.reverse.input(from + i)),
            })
        };
        let most = self.op.steps.most();
        let carried = 1 + states.len();
        let rows = carried + gradients.len() + sums.len();
        let fixed = rows + slices.len() + incoming.len();
        let fits = count.iter().all(|count| **count == index_spec())
            && *slab[0] == kept
            && body(states, 1, None)
            && body(gradients, carried, None)
            && body(sums, carried + gradients.len(), None)
            && body(slices, rows, Some(most))
            && body(incoming, rows + slices.len(), Some(most))
            && body(captures, fixed, None);
        if !fits {
            return Err(Error::shape("the inputs are not those of the loop"));
        }
        let mut outputs: Specs = kept.into();
        outputs.extend(gradients.iter().chain(sums).map(|spec| (*spec).clone()));
        outputs.extend(
            (0..self.pass.slices.len())
                .map(|n| stacked(most, self.reverse.output(gradients.len() + sums.len() + n))),
        );
        Ok(outputs)
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::CustomContiguous
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let parts = self.parts();
        let [counted, slab, states, gradients, sums, slices, incoming, captures] = pieces(inputs, &parts);
        let carried: SmallVec<[&Arg<'_>; 8]> = slab.iter().chain(gradients).chain(sums).collect();
        for (input, output) in carried.iter().zip(outputs.iter_mut()) {
            if let Arg::View(_) = input {
                output.bytes().copy_from_slice(bytes_of(input));
            }
        }
        let most = self.op.steps.most();
        let steps = counted.first().map_or(most, |counted| count(counted).min(most));
        let first: SmallVec<[&[u8]; 8]> = states.iter().map(bytes_of).collect();
        let captures: SmallVec<[&[u8]; 16]> = captures.iter().map(bytes_of).collect();
        let from = 1 + states.len() + gradients.len() + sums.len();
        let rows: SmallVec<[Rows<'_>; 8]> = (slices.iter().chain(incoming).enumerate())
            .map(|(i, rows)| Rows { bytes: bytes_of(rows), row: self.reverse.input(from + i).bytes() })
            .collect();
        let mut outputs = outputs.iter_mut().map(ViewMut::bytes);
        let slab = outputs.next().unwrap_or_default();
        let mut carried: SmallVec<[&mut [u8]; 8]> =
            outputs.by_ref().take(gradients.len() + sums.len()).collect();
        let mut stacks: SmallVec<[&mut [u8]; 8]> = outputs.collect();

        let mut scratch = scratch;
        let mut advance = Runner::new(&self.advance, &mut scratch)?;
        let mut reverse = Runner::new(&self.reverse, &mut scratch)?;
        // The two bodies never run at the same time.
        let (arena, mut recomputing) = (scratch, 0u64);
        let row_bytes = self.op.state_bytes();
        let (slab, work) = slab.split_at_mut((self.slots - 1) * row_bytes);
        let mut work = states_in(work, &first);
        // A loop that knew which step was its last has kept the state before it, to begin with.
        let known = matches!(self.op.steps, Steps::Known(_));
        let kept = at_end(steps, self.slots, known);
        let mut back = if known {
            Back::new(&kept, steps, self.slots)
        } else {
            Back::overwritten(&kept, steps, self.slots)
        };
        let place = |step: usize| if self.op.reverse { steps - 1 - step } else { step };
        while let Some(next) = back.next() {
            match next {
                Move::Load { slot: 0, .. } => {
                    work.iter_mut().zip(&first).for_each(|(work, first)| work.copy_from_slice(first));
                }
                Move::Load { slot, .. } => {
                    let row = &mut slab[(slot - 1) * row_bytes..slot * row_bytes];
                    let row = states_in(row, &first);
                    work.iter_mut().zip(&row).for_each(|(work, row)| work.copy_from_slice(row));
                }
                Move::Store { slot, .. } => {
                    let row = &mut slab[(slot - 1) * row_bytes..slot * row_bytes];
                    let mut row = states_in(row, &first);
                    row.iter_mut().zip(&work).for_each(|(row, work)| row.copy_from_slice(work));
                }
                Move::Advance { from, steps } => {
                    recomputing += steps as u64;
                    for step in from..from + steps {
                        let place = place(step);
                        let index = (self.op.start + place) as i64;
                        let rest = rows[..slices.len()].iter().map(|rows| rows.row(place));
                        let rest = rest.chain(captures.iter().copied());
                        advance.run([bytemuck::bytes_of(&index)], &mut work, rest, [], arena)?;
                    }
                }
                Move::Reverse { step, slot } => {
                    let place = place(step);
                    let index = (self.op.start + place) as i64;
                    let mut before: SmallVec<[&[u8]; 8]> = SmallVec::new();
                    before.push(bytemuck::bytes_of(&index));
                    match slot {
                        None => before.extend(work.iter().map(|state| &**state)),
                        Some(0) => before.extend(first.iter().copied()),
                        Some(slot) => {
                            let mut row = &slab[(slot - 1) * row_bytes..slot * row_bytes];
                            for state in &first {
                                let (kept, rest) = row.split_at(rounded(state.len()));
                                before.push(&kept[..state.len()]);
                                row = rest;
                            }
                        }
                    }
                    let rest = rows.iter().map(|rows| rows.row(place)).chain(captures.iter().copied());
                    let made = stacks.iter_mut().enumerate().map(|(n, stack)| {
                        let row = self.reverse.output(gradients.len() + sums.len() + n).bytes();
                        &mut stack[place * row..(place + 1) * row]
                    });
                    reverse.run(before, &mut carried, rest, made, arena)?;
                }
            }
        }
        reverse.settle(&mut carried);
        for (n, stack) in stacks.iter_mut().enumerate() {
            stack[steps * self.reverse.output(gradients.len() + sums.len() + n).bytes()..].fill(0);
        }
        if let Some(report) = &self.op.report {
            let least = recomputed(steps + usize::from(!known), self.slots);
            report.went_back(steps, least, recomputing);
        }
        Ok(())
    }

    fn scratch(&self, _inputs: &[&Spec]) -> usize {
        let spare = self.advance.spare_bytes() + self.reverse.spare_bytes();
        spare + self.advance.arena_bytes().max(self.reverse.arena_bytes())
    }

    fn aliases(&self, output: usize) -> &[usize] {
        self.aliases.get(output).map_or(&[], |input| input)
    }

    /// A backward pass whose gradients are unused is dead code, even if its graphs hold checks: the forward loop makes those.
    fn effects(&self) -> Effects {
        Effects::of_subgraphs(self).without(Effects::CHECK)
    }

    fn subgraphs(&self) -> Option<&dyn Subgraphs> {
        Some(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("of={}, slots={}", self.op.name, self.slots)
    }
}

impl Subgraphs for Rewind {
    fn graphs(&self) -> Vec<(&'static str, &Graph)> {
        vec![("advance", self.advance.graph()), ("reverse", self.reverse.graph())]
    }

    fn map_graphs(&self, change: &mut dyn FnMut(&Graph) -> Result<Graph>) -> Result<Arc<dyn Op>> {
        let mut changed = self.clone();
        changed.advance = Arc::new(self.advance.compiled(change)?);
        changed.reverse = Arc::new(self.reverse.compiled(change)?);
        Ok(Arc::new(changed))
    }
}

impl Differentiable for Rewind {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves { inputs: Set::ALL, ..Saves::NOTHING })
    }

    /// Of what it computes, by loops that keep every state.
    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        // Each a tensor of its own: one that is a state and a capture has two gradients here.
        let all: Vec<Tensor> = (0..call.inputs.len())
            .map(|i| optimization_barrier(call.input(i)?, &[]))
            .collect::<Result<_>>()?;
        let parts = self.parts();
        // The kept states follow from the first, and nothing depends on them.
        let is_wanted = |i: usize| call.wants(i) && all[i].dtype().is_float();
        let sources: Vec<usize> = (0..all.len()).filter(|&i| is_wanted(i)).collect();
        let tape = GradientTape::new();
        let watched: Vec<Tensor> = sources.iter().map(|&i| all[i].clone()).collect();
        tape.watch(&watched);

        let [counted, _, states, gradients, sums, slices, incoming, captures] = pieces(&all, &parts);
        let op = &bounded(&self.op, counted.first())?;
        let inputs: Vec<Tensor> = (if op.first() == 1 { counted } else { &[] })
            .iter()
            .chain(states)
            .chain(slices)
            .chain(captures)
            .cloned()
            .collect();
        let mut given: Vec<Option<Tensor>> = vec![None; op.states + op.stacks];
        for (&k, gradient) in self.pass.active.iter().zip(gradients) {
            given[k] = Some(gradient.clone());
        }
        for (&k, gradient) in self.pass.followed.iter().zip(incoming) {
            given[op.states + k] = Some(gradient.clone());
        }
        let wanted = self.pass.wanted(op);
        let mut found = Reverse::by_loops(op, wanted, inputs, given)?;
        let mut take = |position: usize, spec: &Spec| match found.get_mut(position).and_then(Option::take) {
            Some(gradient) => gradient.dense(),
            None => or_zeros(None, spec),
        };
        let (first, mut outputs) = (op.first(), Vec::new());
        for &k in &self.pass.active {
            outputs.push(take(first + k, op.body.input(1 + k))?);
        }
        for (&i, sum) in self.pass.captures.iter().zip(sums) {
            let input = op.states + op.slices + i;
            outputs.push(add(sum, take(first + input, op.body.input(1 + input))?)?);
        }
        for &i in &self.pass.slices {
            let spec = stacked(op.steps.most(), op.body.input(1 + op.states + i));
            outputs.push(take(first + op.states + i, &spec)?);
        }
        let (mut followed, mut along) = (Vec::new(), Vec::new());
        for n in 0..outputs.len() {
            if let Some(gradient) = call.take_gradient(1 + n) {
                followed.push(n);
                along.push(gradient);
            }
        }
        let mut answers: Gradients = (0..all.len()).map(|_| None).collect();
        for (&i, gradient) in sources.iter().zip(vjp(&tape, &outputs, &followed, &along, watched)?) {
            answers[i] = gradient.map(Gradient::dense).transpose()?.map(Gradient::Dense);
        }
        Ok(answers)
    }
}
