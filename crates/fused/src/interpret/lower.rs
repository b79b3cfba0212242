//! From steps to calls of tile functions, with a register for every intermediate result.

use super::Function;
use crate::program::{TileOperand, TileProgram};
use smallvec::{SmallVec, smallvec};
use taut_kernels::elementwise::{Binary, Code, binary_tile, cast_tile, select_tile, unary_tile};

/// An operand of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CallOperand {
    Input(usize),
    Constant(usize),
    /// The result of the n-th call.
    Call(usize),
}

/// A call of a tile function whose operands have no locations yet.
pub(super) struct UnplacedCall {
    pub(super) function: Function,
    /// The operands, and the bytes of an element of each.
    pub(super) operands: SmallVec<[(CallOperand, usize); 3]>,
    /// Bytes of an element of the result.
    pub(super) size: usize,
    /// The index of the output, if the result is one.
    pub(super) output: Option<usize>,
}

/// The calls that compute the outputs: dead steps are dropped, and copies between steps need no call. Each output is the
/// result of one call.
pub(super) fn calls(program: &TileProgram) -> Vec<UnplacedCall> {
    let steps = program.steps();
    let needed = needed(program);
    let mut calls: Vec<UnplacedCall> = Vec::with_capacity(steps.len());
    // The value of a dead step is never read.
    let mut values = vec![CallOperand::Input(0); steps.len()];
    for (i, step) in steps.iter().enumerate().filter(|(i, _)| needed[*i]) {
        let dtype = |n: usize| program.dtype(step.operands[n]).expect("operands of a valid program exist");
        let operand = |n: usize| {
            let value = match step.operands[n] {
                TileOperand::Input(input) => CallOperand::Input(input),
                TileOperand::Constant(constant) => CallOperand::Constant(constant),
                TileOperand::Step(before) => values[before],
            };
            (value, dtype(n).size())
        };
        let size = program.step_type(i).size();
        let mut outputs = (0..program.outputs().len()).filter(|&k| program.outputs()[k] == i);
        let output = outputs.next();
        let mut operands: SmallVec<_> = (0..step.operands.len()).map(operand).collect();
        let function = match step.code {
            Code::Unary(code) => Function::Unary(unary_tile(code, dtype(0))),
            Code::Binary(code) => Function::Binary(binary_tile(code, dtype(0))),
            Code::Select => Function::Select(select_tile(dtype(1))),
            Code::Clip => {
                let function = Function::Binary(binary_tile(Binary::Maximum, dtype(0)));
                let high = operands.pop().expect("clip has three operands");
                calls.push(UnplacedCall { function, operands, size, output: None });
                operands = smallvec![(CallOperand::Call(calls.len() - 1), size), high];
                Function::Binary(binary_tile(Binary::Minimum, dtype(0)))
            }
            Code::Cast(to) if to != dtype(0) => Function::Cast(cast_tile(dtype(0), to)),
            Code::Cast(_) | Code::Copy if output.is_none() => {
                values[i] = operands[0].0;
                continue;
            }
            Code::Cast(_) | Code::Copy => Function::Copy,
        };
        calls.push(UnplacedCall { function, operands, size, output });
        values[i] = CallOperand::Call(calls.len() - 1);
        for another in outputs {
            let operands = smallvec![(values[i], size)];
            calls.push(UnplacedCall { function: Function::Copy, operands, size, output: Some(another) });
        }
    }
    calls
}

/// Per step, whether an output depends on it.
fn needed(program: &TileProgram) -> Vec<bool> {
    let mut needed = vec![false; program.steps().len()];
    for &output in program.outputs() {
        needed[output] = true;
    }
    for (i, step) in program.steps().iter().enumerate().rev() {
        for source in &step.operands {
            if let TileOperand::Step(before) = *source {
                needed[before] |= needed[i];
            }
        }
    }
    needed
}

/// The registers of the calls' results.
pub(super) struct RegisterAssignment {
    /// The register of each call's result. An output has one only if it may be deferred.
    pub(super) registers: Vec<Option<usize>>,
    /// The bytes of the widest element that each register holds.
    pub(super) sizes: Vec<usize>,
}

/// Assigns registers, as few as there are live results. An output needs none, unless it `may_be_deferred`: then its
/// register is live to the end.
pub(super) fn assign(calls: &[UnplacedCall], may_be_deferred: impl Fn(usize) -> bool) -> RegisterAssignment {
    let mut last_uses = vec![0; calls.len()];
    for (i, call) in calls.iter().enumerate() {
        for &(value, _) in &call.operands {
            if let CallOperand::Call(operand) = value {
                last_uses[operand] = i;
            }
        }
    }
    let mut assignment = RegisterAssignment { registers: Vec::with_capacity(calls.len()), sizes: Vec::new() };
    let mut free: SmallVec<[usize; 16]> = SmallVec::new();
    for (i, call) in calls.iter().enumerate() {
        let needs_one = call.output.is_none() || may_be_deferred(i);
        let register = needs_one.then(|| assignment.take(&mut free, call.size));
        assignment.registers.push(register);
        // Registers of operands are freed after the result has its own: a tile function does not work in place.
        for (n, &operand) in call.operands.iter().enumerate() {
            let CallOperand::Call(from) = operand.0 else { continue };
            let dies = last_uses[from] == i && !call.operands[..n].contains(&operand);
            if let (Some(register), true) = (assignment.registers[from], dies && calls[from].output.is_none())
            {
                free.push(register);
            }
        }
    }
    assignment
}

impl RegisterAssignment {
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
