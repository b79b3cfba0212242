//! Calling a function for one signature.

use crate::call_op::FunctionCall;
use crate::concrete::ConcreteFunction;
use crate::forward_backward::ForwardBackward;
use smallvec::SmallVec;
use std::sync::Arc;
use taut_autodiff::joint::SavedFrom;
use taut_autodiff::{Variable, VariableGuard};
use taut_core::ops::random::{take_key, take_key_words};
use taut_core::{Error, ErrorKind, Result, Tensor, is_checking_numerics, is_tracing, record};
use taut_exec::{Executable, RunInput, RunOutputs};
use taut_memory::Location;

/// The tensors among the arguments of a call.
pub(crate) type Arguments = SmallVec<[Tensor; 8]>;

/// A key for random numbers.
pub(crate) enum RandomKey {
    Numbers([u64; 2]),
    Tensor(Tensor),
}

/// The inputs of a run.
pub(crate) struct CallInputs<'a> {
    pub(crate) arguments: Arguments,
    /// Whether the arguments are donated.
    pub(crate) donated: bool,
    /// The different variables among the arguments.
    pub(crate) given: &'a [Variable],
    /// The values of the variables; `None` reads them.
    pub(crate) variables: Option<&'a [Tensor]>,
    pub(crate) keys: SmallVec<[RandomKey; 4]>,
}

/// Where a call comes from.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(crate) at: Location,
    /// Frees memory if there is not enough; returns whether it could.
    pub(crate) free_memory: &'a dyn Fn() -> bool,
}

impl ConcreteFunction {
    /// Calls the function; `given` are the different variables among the arguments.
    pub(crate) fn call(
        &self,
        arguments: Arguments,
        given: &[Variable],
        donated: bool,
        caller: Caller<'_>,
    ) -> Result<RunOutputs> {
        // A variable that another call on this thread is updating has no value.
        self.variables.iter().try_for_each(|used| used.variable(given).check_unlocked())?;
        // Checks for NaN name the op and the line: then the ops are called one by one.
        if is_tracing() || is_checking_numerics() {
            return self.inline(&arguments, given, caller.at);
        }
        if record::is_recording()
            && let Some(outputs) = self.call_recorded(&arguments, given, donated, caller)?
        {
            return Ok(outputs);
        }
        let mut keys: SmallVec<[RandomKey; 4]> = SmallVec::new();
        if self.has_plain_keys {
            keys.extend(self.keys.iter().filter_map(take_key_words).map(RandomKey::Numbers));
        } else {
            for key in &self.keys {
                keys.push(RandomKey::Tensor(take_key(key)?));
            }
        }
        let inputs = CallInputs { arguments, donated, given, variables: None, keys };
        self.run(self.executable()?, inputs, caller)
    }

    /// Calls the function if a recorder tracks one of its inputs; `None` if none is tracked.
    fn call_recorded(
        &self,
        arguments: &Arguments,
        given: &[Variable],
        donated: bool,
        caller: Caller<'_>,
    ) -> Result<Option<RunOutputs>> {
        let is_tracked = |input: &Tensor| input.dtype().is_inexact() && record::is_tracked(input);
        if donated && arguments.iter().any(is_tracked) {
            let message = "a tensor that a tape tracks cannot be donated: the tape may save it";
            return Err(Error::value(message).help("use call() instead of call_donated()").at(caller.at));
        }
        // A tracked constant is not an input of the recorded call: then the ops are recorded one by one.
        if self.float_constants.iter().any(record::is_tracked) {
            return self.inline(arguments, given, caller.at).map(Some);
        }
        let mut inputs: Vec<Tensor> = arguments.to_vec();
        // A handle on a variable that is about to be updated would force a copy of it.
        inputs.extend(self.variables.iter().map(|used| {
            let variable = used.variable(given);
            if used.writes { variable.placeholder() } else { variable.read() }
        }));
        let wanted: Vec<bool> = inputs.iter().map(is_tracked).collect();
        if !wanted.contains(&true) {
            return Ok(None);
        }
        // Donated arguments cannot be saved for the backward pass.
        if donated {
            return self.inline(arguments, given, caller.at).map(Some);
        }
        // Before a key is taken: if there is no derivative, the call has changed nothing.
        let executables = self.forward_backward(&wanted)?;
        for key in &self.keys {
            inputs.push(take_key(key)?);
        }
        self.call_forward(executables, inputs, given, caller).map(Some)
    }

    /// Runs the forward executable, and records the call. `inputs` are arguments, variables and keys.
    fn call_forward(
        &self,
        executables: Arc<ForwardBackward>,
        mut inputs: Vec<Tensor>,
        given: &[Variable],
        caller: Caller<'_>,
    ) -> Result<RunOutputs> {
        let saves_inputs = !record::has_single_use_recorder();
        // If the backward pass reads a variable that the call updates, its old value is needed.
        for (i, used) in self.variables.iter().enumerate().filter(|(_, used)| used.writes) {
            let input = self.arguments + i;
            if saves_inputs || executables.residuals.contains(&SavedFrom::Input(input)) {
                inputs[input] = used.variable(given).read();
            }
        }
        let first_key = self.arguments + self.variables.len();
        let arguments: Arguments = inputs[..self.arguments].iter().map(record::detached).collect();
        let variables: SmallVec<[Tensor; 8]> =
            inputs[self.arguments..first_key].iter().map(record::detached).collect();
        let keys = inputs[first_key..].iter().cloned().map(RandomKey::Tensor).collect();
        let call_inputs = CallInputs { arguments, donated: false, given, variables: Some(&variables), keys };
        let RunOutputs { mut outputs, allocated_arena } =
            self.run(&executables.forward, call_inputs, caller)?;
        executables.after_run(&executables.forward);
        let saved = |residual: &SavedFrom| match *residual {
            SavedFrom::Input(i) => record::detached(&inputs[i]),
            SavedFrom::Output(i) => outputs[i].clone(),
        };
        let residuals = executables.residuals.iter().map(saved).collect();
        outputs.truncate(executables.results);
        let op = FunctionCall { executables, saves_inputs };
        let outputs = record::record_completed(&op, &mut inputs, outputs, residuals, caller.at)?;
        Ok(RunOutputs { outputs, allocated_arena })
    }

    /// Runs an executable that takes this function's inputs.
    pub(crate) fn run(
        &self,
        executable: &Executable,
        inputs: CallInputs<'_>,
        caller: Caller<'_>,
    ) -> Result<RunOutputs> {
        let CallInputs { mut arguments, donated, given, variables, keys } = inputs;
        // Variables are locked in the order of their ids, and nothing else is held meanwhile: so calls never deadlock.
        let values = self.variables.iter().enumerate().map(|(i, used)| match variables {
            _ if used.writes => None,
            Some(variables) => Some(variables[i].clone()),
            None => Some(used.variable(given).value()),
        });
        let values: SmallVec<[Option<Tensor>; 8]> = values.collect();
        let mut locked: SmallVec<[(usize, VariableGuard<'_>); 8]> = SmallVec::new();
        let mut written: SmallVec<[usize; 8]> = self.written.iter().copied().collect();
        if self.writes_arguments {
            written.sort_by_key(|&i| self.variables[i].variable(given).untraced_id());
        }
        for i in written {
            locked.push((i, self.variables[i].variable(given).lock(caller.at)?));
        }
        let read_arguments: Arguments;
        let mut inputs: SmallVec<[RunInput<'_>; 16]> = SmallVec::new();
        if donated {
            inputs.extend(arguments.drain(..).map(RunInput::Donated));
        } else {
            read_arguments = arguments;
            inputs.extend(read_arguments.iter().map(RunInput::Read));
        }
        inputs.extend(values.iter().map(|value| value.as_ref().map_or(RunInput::Consumed, RunInput::Read)));
        for (i, guard) in &mut locked {
            if let Some(tensor) = guard.tensor() {
                inputs[self.arguments + *i] = RunInput::Updated(tensor);
            }
        }
        inputs.extend(keys.iter().map(|key| match key {
            RandomKey::Numbers(numbers) => RunInput::Key(*numbers),
            RandomKey::Tensor(tensor) => RunInput::Read(tensor),
        }));
        match executable.run_at(&mut inputs, caller.at) {
            Err(error) if error.kind() == ErrorKind::OutOfMemory && (caller.free_memory)() => {
                executable.run_at(&mut inputs, caller.at)
            }
            outcome => outcome,
        }
    }

    /// Calls the ops one by one: so the function becomes part of the graph being traced, if one is.
    fn inline(&self, arguments: &Arguments, given: &[Variable], at: Location) -> Result<RunOutputs> {
        let mut inputs: Vec<Tensor> = arguments.to_vec();
        inputs.extend(self.variables.iter().map(|used| used.variable(given).read()));
        for key in &self.keys {
            inputs.push(take_key(key)?);
        }
        let mut outputs = self.graph.run(&inputs)?;
        let written = outputs.split_off(self.results);
        let variables = self.variables.iter().filter(|used| used.writes);
        for (used, value) in variables.zip(written) {
            used.variable(given).assign(value).map_err(|e| e.at(at))?;
        }
        Ok(RunOutputs { outputs, allocated_arena: false })
    }
}
