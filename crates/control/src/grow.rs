//! A `while` whose gradient is wanted here and now: it runs in pieces, and keeps as much as it turns out to need.

use crate::gradient::{Given, Reverse, is_differentiable};
use crate::looping::{Loop, Steps};
use std::fmt;
use std::sync::Arc;
use taut_core::{
    Differentiable, Effects, Error, Gradients, Op, Result, Saves, Set, Spec, Specs, Tensor, VjpCall,
    apply_at, record,
};
use taut_memory::Location;

/// How many steps the first piece has room for, unless that takes more than [`FIRST_BYTES`]; each further one has room for
/// twice as many.
const FIRST: usize = 16;
const FIRST_BYTES: usize = 1 << 20;
/// The most bytes that a piece has room for.
const MOST_BYTES: usize = 32 << 20;

/// A loop that was run in pieces, as tapes know it. Hidden outputs: of each piece, how many steps it made, and its stacks.
#[derive(Clone)]
struct Grown {
    /// The loop as a whole, with as many steps as it made.
    whole: Loop,
    /// The pieces, in the form that keeps what the gradient needs.
    pieces: Vec<Loop>,
    pass: Arc<Reverse>,
}

/// Runs a `while` for those who follow the wanted inputs: its states, then its captures.
pub(crate) fn grow(op: &Loop, mut inputs: Vec<Tensor>, wanted: Set, at: Location) -> Result<Vec<Tensor>> {
    let mut piece = op.clone();
    piece.steps = Steps::Tested(FIRST);
    let Some(keeping) = Reverse::forward_with_residuals(&piece, wanted)? else { return Err(stateless()) };
    let Some(pass) = keeping.reverse_pass.clone() else { return Err(stateless()) };
    let row = (op.states..op.states + keeping.stacks).map(|k| keeping.body.output(k).bytes());
    let row = row.sum::<usize>().max(1);
    let (mut pieces, mut kept, mut made) = (Vec::new(), Vec::new(), 0);
    let mut room = (FIRST_BYTES / row).clamp(1, FIRST);
    let states = record::without_recording(|| {
        let mut arguments = inputs.clone();
        loop {
            let mut piece = keeping.clone();
            let steps = room.min(op.steps.most() - made);
            (piece.steps, piece.start) = (Steps::Tested(steps), made);
            let (full, next) = (steps, (2 * room).min((MOST_BYTES / row).max(room)));
            room = next;
            let outputs = apply_at(&piece, &mut arguments, at)?;
            let steps = outputs[op.states].item::<i64>()?.max(0) as usize;
            kept.push(outputs[op.states].clone());
            kept.extend(pass.stacks().map(|k| outputs[piece.stack(k)].clone()));
            pieces.push(piece);
            made += steps;
            let states = outputs.into_iter().take(op.states);
            if steps < full || made == op.steps.most() {
                return Ok::<Vec<Tensor>, Error>(states.collect());
            }
            arguments = states.chain(inputs[op.states..].iter().cloned()).collect();
            if !goes_on(op, made, &arguments)? {
                arguments.truncate(op.states);
                return Ok(arguments);
            }
        }
    })?;
    let mut whole = op.clone();
    whole.steps = Steps::Tested(made);
    record::record_completed(&Grown { whole, pieces, pass }, &mut inputs, states, kept, at)
}

/// What the test says of these states and captures.
fn goes_on(op: &Loop, made: usize, inputs: &[Tensor]) -> Result<bool> {
    let Some(test) = &op.test else { return Ok(false) };
    let index = Tensor::scalar(made as i64)?;
    let all: Vec<Tensor> = std::iter::once(index).chain(inputs.iter().cloned()).collect();
    test.graph().run(&all)?[0].item::<bool>()
}

#[cold]
fn stateless() -> Error {
    Error::value("a loop without states would never end")
}

impl fmt::Debug for Grown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Grown({:?}, {} pieces)", self.whole, self.pieces.len())
    }
}

impl Op for Grown {
    fn name(&self) -> &'static str {
        self.whole.name
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok((0..self.whole.states).map(|k| self.whole.body.output(k).clone()).collect())
    }

    fn effects(&self) -> Effects {
        Effects::CAN_FAIL | Effects::NO_CSE
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for Grown {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        let saves = Reverse::saves(&self.pieces[0]);
        let hidden = self.pieces.len() * (1 + self.pass.stacks().count());
        let outputs = (self.whole.states..self.whole.states + hidden).fold(Set::NONE, Set::with);
        Some(Saves { inputs: saves.inputs, outputs, ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let (whole, pass) = (&self.whole, &self.pass);
        let mut gradients: Vec<Option<Tensor>> = (0..whole.states).map(|k| call.take_gradient(k)).collect();
        if is_differentiable(call) {
            let inputs = (0..call.inputs.len()).map(|i| call.input(i).cloned()).collect::<Result<_>>()?;
            return Reverse::by_loops(whole, call.wanted, inputs, gradients);
        }
        let stacks: Vec<usize> = pass.stacks().collect();
        let mut sums: Vec<Tensor> = Vec::new();
        for (n, piece) in self.pieces.iter().enumerate().rev() {
            let first = whole.states + n * (1 + stacks.len());
            let count = Some(call.take_output(first)?);
            let mut rows: Vec<Option<Tensor>> = Vec::new();
            for i in 0..stacks.len() {
                rows.push(Some(call.take_output(first + 1 + i)?));
            }
            gradients.resize(whole.states + piece.stacks, None);
            let given = Given { count, gradients, sums };
            let input = |i: usize| call.input(i).cloned();
            let stack = |k: usize| {
                let row = stacks.iter().position(|&other| other == k).and_then(|i| rows[i].clone());
                row.ok_or_else(stateless)
            };
            let mut found = pass.back(piece, &input, &stack, given)?.into_vec();
            sums = found.split_off(pass.active.len());
            gradients = vec![None; whole.states];
            for (&k, gradient) in pass.active.iter().zip(found) {
                gradients[k] = Some(gradient);
            }
        }
        let states = pass.active.iter().filter_map(|&k| gradients[k].take());
        Ok(pass.gradients(whole, states.chain(sums)))
    }
}
