//! A call of a function as a recorded op.

use crate::forward_backward::ForwardBackward;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use taut_autodiff::GradientTape;
use taut_autodiff::joint::{self, InputGradient};
use taut_core::ops::creation::zeros;
use taut_core::{
    Differentiable, Effects, Gradients, Op, Result, Saves, Set, Spec, Specs, Tensor, VjpCall, is_tracing,
    record, source_location,
};
use taut_exec::RunInput;
use taut_memory::Location;

/// A call of a function as tapes record it.
#[derive(Clone)]
pub(crate) struct FunctionCall {
    pub(crate) executables: Arc<ForwardBackward>,
    /// Whether the inputs are saved, too, because the backward pass may be recorded itself.
    pub(crate) saves_inputs: bool,
}

impl fmt::Debug for FunctionCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FunctionCall({} nodes)", self.executables.whole.nodes.len())
    }
}

impl Op for FunctionCall {
    fn name(&self) -> &'static str {
        "function"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(self.executables.specs[..self.executables.results].iter().cloned().collect())
    }

    fn effects(&self) -> Effects {
        Effects::CAN_FAIL | Effects::NO_CSE
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for FunctionCall {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        let inputs = if self.saves_inputs { Set::ALL } else { Set::NONE };
        let results = self.executables.results;
        let residuals = results..results + self.executables.residuals.len();
        Some(Saves { inputs, outputs: residuals.fold(Set::NONE, Set::with), ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let mut given: Vec<Tensor> = Vec::new();
        for &result in &self.executables.active_results {
            let spec = &self.executables.specs[result];
            given.push(match call.take_gradient(result) {
                Some(gradient) => gradient,
                None => zeros(spec.shape.clone(), spec.dtype)?,
            });
        }
        match (record::is_recording() || is_tracing(), self.saves_inputs) {
            (true, true) => self.recompute(call, &given),
            (true, false) => self.run_op_by_op(call, given),
            (false, _) => self.run_backward(call, given),
        }
    }
}

impl FunctionCall {
    /// The backward pass by its executable.
    fn run_backward(&self, call: &mut VjpCall<'_>, mut given: Vec<Tensor>) -> Result<Gradients> {
        let executables = &*self.executables;
        for gradient in given.iter_mut().filter(|gradient| !gradient.is_contiguous()) {
            *gradient = gradient.copy()?;
        }
        let mut residuals: SmallVec<[Tensor; 16]> = SmallVec::new();
        for i in 0..executables.residuals.len() {
            residuals.push(call.take_output(executables.results + i)?);
        }
        let at = source_location(Location::caller());
        let is_donated = |i: usize| executables.request.inputs[i].donated;
        if (0..residuals.len()).any(|i| is_donated(i) && !residuals[i].is_uniquely_owned()) {
            let mut inputs: SmallVec<[RunInput<'_>; 16]> =
                residuals.iter().chain(&given).map(RunInput::Read).collect();
            let reading = executables.reading()?;
            let outputs = reading.run_at(&mut inputs, at)?.outputs;
            executables.after_run(reading);
            return Ok(executables.gradients(&outputs));
        }
        // A residual is either read or donated, and a donated one must not have another handle.
        let mut read: SmallVec<[Option<Tensor>; 16]> = SmallVec::new();
        let mut donated: SmallVec<[Option<Tensor>; 16]> = SmallVec::new();
        for (i, residual) in residuals.into_iter().enumerate() {
            let is_donated = is_donated(i);
            read.push((!is_donated).then(|| residual.clone()));
            donated.push(is_donated.then_some(residual));
        }
        let mut inputs: SmallVec<[RunInput<'_>; 16]> = (read.iter().zip(donated))
            .map(|(read, donated)| match (read, donated) {
                (Some(read), _) => RunInput::Read(read),
                (None, Some(donated)) => RunInput::Donated(donated),
                (None, None) => RunInput::Consumed,
            })
            .collect();
        inputs.extend(given.iter().map(RunInput::Read));
        let outputs = executables.consuming.run_at(&mut inputs, at)?.outputs;
        executables.after_run(&executables.consuming);
        Ok(executables.gradients(&outputs))
    }

    /// The backward pass op by op, so that a recorder or a trace sees its ops.
    fn run_op_by_op(&self, call: &VjpCall<'_>, given: Vec<Tensor>) -> Result<Gradients> {
        let executables = &*self.executables;
        let residuals =
            (0..executables.residuals.len()).map(|i| call.output(executables.results + i).cloned());
        let mut inputs: Vec<Tensor> = residuals.collect::<Result<_>>()?;
        inputs.extend(given);
        Ok(executables.gradients(&executables.backward.run(&inputs)?))
    }

    /// The whole function again and its gradient, op by op, so that a recorder sees how the residuals depend on the inputs.
    fn recompute(&self, call: &VjpCall<'_>, given: &[Tensor]) -> Result<Gradients> {
        let executables = &*self.executables;
        let inputs: Vec<Tensor> = (0..call.inputs.len())
            .map(|i| taut_autodiff::optimization_barrier(call.input(i)?, given))
            .collect::<Result<_>>()?;
        let tape = GradientTape::new();
        let is_wanted = |i: usize| !matches!(executables.input_gradients[i], InputGradient::None);
        let count = executables.input_gradients.len();
        let sources: Vec<Tensor> = (0..count).filter(|&i| is_wanted(i)).map(|i| inputs[i].clone()).collect();
        tape.watch(&sources);
        let outputs = executables.whole.run(&inputs)?;
        let found = joint::vjp(&tape, &outputs, &executables.active_results, given, sources)?;
        let mut found = found.into_iter();
        Ok((0..count).map(|i| if is_wanted(i) { found.next().flatten() } else { None }).collect())
    }
}
