//! From steps to calls of tile functions, with a place for every result.

use super::Function;
use crate::program::{Program, Source};
use smallvec::{SmallVec, smallvec};
use taut_kernels::elementwise::{Binary, Code, binary_tile, cast_tile, select_tile, unary_tile};

/// What a call reads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    Input(usize),
    Constant(usize),
    /// What the n-th call computes.
    Call(usize),
}

/// A call of a tile function.
pub(super) struct Call {
    pub(super) function: Function,
    /// What it reads, and the bytes of an element of it.
    pub(super) operands: SmallVec<[(Value, usize); 3]>,
    /// Bytes of an element of the result.
    pub(super) size: usize,
    /// The output that the result is, if it is one.
    pub(super) output: Option<usize>,
}

/// The calls that compute the outputs, each of which is one call's result: only what an output needs, and nothing for a
/// copy between steps.
pub(super) fn calls(program: &Program) -> Vec<Call> {
    let steps = program.steps();
    let needed = needed(program);
    let mut calls: Vec<Call> = Vec::with_capacity(steps.len());
    // Where nobody asks, what stands for a step does not matter.
    let mut values = vec![Value::Input(0); steps.len()];
    for (i, step) in steps.iter().enumerate().filter(|(i, _)| needed[*i]) {
        let dtype = |n: usize| program.dtype(step.sources[n]).expect("a program's sources are there");
        let operand = |n: usize| {
            let value = match step.sources[n] {
                Source::Input(input) => Value::Input(input),
                Source::Constant(constant) => Value::Constant(constant),
                Source::Step(before) => values[before],
            };
            (value, dtype(n).size())
        };
        let size = program.step_type(i).size();
        let mut outputs = (0..program.outputs().len()).filter(|&k| program.outputs()[k] == i);
        let output = outputs.next();
        let mut operands: SmallVec<_> = (0..step.sources.len()).map(operand).collect();
        let function = match step.code {
            Code::Unary(code) => Function::Unary(unary_tile(code, dtype(0))),
            Code::Binary(code) => Function::Binary(binary_tile(code, dtype(0))),
            Code::Select => Function::Select(select_tile(dtype(1))),
            Code::Clip => {
                let function = Function::Binary(binary_tile(Binary::Maximum, dtype(0)));
                let high = operands.pop().expect("clip has three operands");
                calls.push(Call { function, operands, size, output: None });
                operands = smallvec![(Value::Call(calls.len() - 1), size), high];
                Function::Binary(binary_tile(Binary::Minimum, dtype(0)))
            }
            Code::Cast(to) if to != dtype(0) => Function::Cast(cast_tile(dtype(0), to)),
            Code::Cast(_) | Code::Copy if output.is_none() => {
                values[i] = operands[0].0;
                continue;
            }
            Code::Cast(_) | Code::Copy => Function::Copy,
        };
        calls.push(Call { function, operands, size, output });
        values[i] = Value::Call(calls.len() - 1);
        for another in outputs {
            let operands = smallvec![(values[i], size)];
            calls.push(Call { function: Function::Copy, operands, size, output: Some(another) });
        }
    }
    calls
}

/// Which steps an output needs.
fn needed(program: &Program) -> Vec<bool> {
    let mut needed = vec![false; program.steps().len()];
    for &output in program.outputs() {
        needed[output] = true;
    }
    for (i, step) in program.steps().iter().enumerate().rev() {
        for source in &step.sources {
            if let Source::Step(before) = *source {
                needed[before] |= needed[i];
            }
        }
    }
    needed
}

/// Which registers the calls' results are in.
pub(super) struct Assignment {
    /// The register of each call's result. Outputs have one only if they may have to wait.
    pub(super) registers: Vec<Option<usize>>,
    /// The widest element that each register has to hold.
    pub(super) sizes: Vec<usize>,
}

/// Gives results registers, as few as there are results alive at once. An output goes where it belongs, unless it
/// `may_wait`: then its register is its own to the end.
pub(super) fn assign(calls: &[Call], may_wait: impl Fn(usize) -> bool) -> Assignment {
    let mut last_uses = vec![0; calls.len()];
    for (i, call) in calls.iter().enumerate() {
        for &(value, _) in &call.operands {
            if let Value::Call(operand) = value {
                last_uses[operand] = i;
            }
        }
    }
    let mut assignment = Assignment { registers: Vec::with_capacity(calls.len()), sizes: Vec::new() };
    let mut free: SmallVec<[usize; 16]> = SmallVec::new();
    for (i, call) in calls.iter().enumerate() {
        let needs_one = call.output.is_none() || may_wait(i);
        let register = needs_one.then(|| assignment.take(&mut free, call.size));
        assignment.registers.push(register);
        // Operands are given back after the result has its place: a tile function does not work in place.
        for (n, &operand) in call.operands.iter().enumerate() {
            let Value::Call(from) = operand.0 else { continue };
            let dies = last_uses[from] == i && !call.operands[..n].contains(&operand);
            if let (Some(register), true) = (assignment.registers[from], dies && calls[from].output.is_none())
            {
                free.push(register);
            }
        }
    }
    assignment
}

impl Assignment {
    /// A register for elements of this size: the widest that is free, or a new one.
    fn take(&mut self, free: &mut SmallVec<[usize; 16]>, size: usize) -> usize {
        let widest = (0..free.len()).max_by_key(|&at| self.sizes[free[at]]);
        let register = widest.map_or(self.sizes.len(), |at| free.swap_remove(at));
        if register == self.sizes.len() {
            self.sizes.push(0);
        }
        self.sizes[register] = self.sizes[register].max(size);
        register
    }
}
