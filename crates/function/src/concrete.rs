//! One trace of a function: its graph, what it uses from outside, and the programs made of it.

use crate::compiled::{Compiled, Settings};
use crate::gradient::Differentiated;
use crate::signature::Signature;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use taut_autodiff::{Variable, VariableGuard};
use taut_core::graph::{KeySource, Node, Origin, TracedFunction, ValueId, suspend_tracing};
use taut_core::ops::random::{take_key, take_numbers};
use taut_core::{Error, ErrorKind, Graph, Result, Tensor, is_checking_numerics, is_tracing, record};
use taut_exec::RunInput;
use taut_memory::Location;
use taut_plan::{InputRequest, PlanRequest, Program};

/// What a function does for one signature.
pub(crate) struct Concrete {
    /// What was traced, before any pass. Its inputs are the arguments, then the variables, then the keys.
    pub(crate) graph: Graph,
    pub(crate) arguments: usize,
    pub(crate) variables: Vec<Used>,
    pub(crate) keys: Vec<Arc<dyn KeySource>>,
    /// How many of the graph's outputs are the function's; the others are written to variables.
    pub(crate) results: usize,
    /// The variables that are written, in the order of their ids: their places among `variables`.
    written: Vec<usize>,
    request: PlanRequest,
    settings: Settings,
    /// Made when it is first asked for: a function that is only called by others never needs it.
    program: OnceLock<Compiled>,
    /// Whether keys are only read by ops, so that their numbers will do.
    plain_keys: bool,
    /// Constants of the graph that are floats: a tape may watch them.
    constants: Vec<Tensor>,
    /// The forms with a gradient that were asked for, by the inputs that are followed.
    differentiated: Mutex<Vec<(Vec<bool>, Arc<Differentiated>)>>,
}

/// A variable that the function uses.
pub(crate) struct Used {
    pub(crate) variable: Variable,
    pub(crate) writes: bool,
}

impl Concrete {
    pub(crate) fn new(traced: TracedFunction, signature: &Signature, settings: Settings) -> Result<Concrete> {
        let unknown = || Error::new(ErrorKind::Graph, "the function uses a state that is not a variable");
        let mut variables = Vec::new();
        for used in &traced.states {
            let variable = Variable::from_state(&used.state).ok_or_else(unknown)?;
            variables.push(Used { variable, writes: used.writes });
        }
        let arguments = signature.specs().count();
        let count = variables.iter().filter(|used| used.writes).count();
        let results = traced.graph.outputs.len() - count;
        let mut written: Vec<usize> = (0..variables.len()).filter(|&i| variables[i].writes).collect();
        let updates = written.iter().enumerate().map(|(k, &i)| (results + k, arguments + i)).collect();
        written.sort_by_key(|&i| variables[i].variable.id());
        let given = |(_, strides): (_, Option<&taut_core::Strides>)| InputRequest {
            strides: strides.cloned(),
            donated: signature.given() && strides.is_none(),
        };
        let request = PlanRequest {
            inputs: signature.tensors().map(given).collect(),
            updates,
            ..PlanRequest::default()
        };
        let graph = &traced.graph;
        let first_key = arguments + variables.len();
        let is_key = |id: &ValueId| graph.inputs[first_key..].contains(id);
        let shows_key = |node: &Node| node.op.kernel().is_view() && node.inputs.iter().any(is_key);
        let plain_keys = !graph.outputs.iter().any(is_key) && !graph.nodes.iter().any(shows_key);
        let constants = graph.values.iter().filter_map(|value| match &value.origin {
            Origin::Constant(tensor) if tensor.dtype().is_float() => Some(tensor.clone()),
            _ => None,
        });
        let constants = constants.collect();
        Ok(Concrete {
            plain_keys,
            constants,
            graph: traced.graph,
            arguments,
            variables,
            keys: traced.keys,
            results,
            written,
            request,
            settings,
            program: OnceLock::new(),
            differentiated: Mutex::new(Vec::new()),
        })
    }

    fn program(&self) -> Result<&Compiled> {
        if let Some(program) = self.program.get() {
            return Ok(program);
        }
        let made = suspend_tracing(|| Compiled::new(&self.graph, self.settings, &self.request))?;
        Ok(self.program.get_or_init(|| made))
    }

    /// What a call does and needs.
    pub(crate) fn plan(&self) -> Result<Arc<Program>> {
        Ok(self.program()?.program().clone())
    }

    /// What a call holds at its peak beyond arguments and variables; 0 if it was not planned yet.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.program.get().map_or(0, |program| program.program().peak_bytes())
    }

    pub(crate) fn request(&self) -> &PlanRequest {
        &self.request
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings
    }

    /// The arena of a call.
    pub(crate) fn arena_bytes(&self) -> usize {
        self.program.get().map_or(0, |program| program.program().arena_bytes())
    }

    /// What it takes beside what a running call takes.
    pub(crate) fn bytes(&self) -> usize {
        let graph = self.graph.footprint();
        let more = self.differentiated.lock().unwrap_or_else(PoisonError::into_inner);
        graph
            + self.program.get().map_or(0, Compiled::bytes)
            + more.iter().map(|(_, form)| form.bytes()).sum::<usize>()
    }

    /// Gives the arenas back that no call is using.
    pub(crate) fn release(&self) {
        self.program.get().into_iter().for_each(Compiled::release);
        let more = self.differentiated.lock().unwrap_or_else(PoisonError::into_inner);
        more.iter().for_each(|(_, form)| form.release());
    }

    /// Calls it; says, too, whether it holds more than before. The arguments are lent or given, as the signature says.
    /// `relieve` is asked to give memory back if there is not enough.
    pub(crate) fn call(
        &self,
        arguments: &mut Arguments,
        given: bool,
        relieve: &dyn Fn() -> bool,
        at: Location,
    ) -> Result<(Vec<Tensor>, bool)> {
        // One call inside of another: what that one is updating has no value for this one.
        self.variables.iter().try_for_each(|used| used.variable.check_unlocked())?;
        // Who checks every op for NaN wants to know which op and line it was: op by op, then.
        if is_tracing() || is_checking_numerics() {
            return Ok((self.inline(arguments, at)?, false));
        }
        if record::is_recording() {
            if given
                && arguments
                    .iter()
                    .any(|argument| argument.dtype().is_float() && record::is_tracked(argument))
            {
                let message = "what a tape follows cannot be given to a function: the tape may need it";
                return Err(Error::value(message).help("use call() instead of give()").at(at));
            }
            // A tape watches what the function captured as a constant.
            if self.constants.iter().any(record::is_tracked) {
                return Ok((self.inline(arguments, at)?, false));
            }
            let mut inputs: Vec<Tensor> = arguments.iter().cloned().collect();
            // A handle on what is about to be written would force a copy of it.
            inputs.extend(
                self.variables
                    .iter()
                    .map(|used| if used.writes { used.variable.placeholder() } else { used.variable.read() }),
            );
            let wanted: Vec<bool> =
                inputs.iter().map(|input| input.dtype().is_float() && record::is_tracked(input)).collect();
            if wanted.contains(&true) && !given {
                for key in &self.keys {
                    inputs.push(take_key(key)?);
                }
                return self.differentiated(&wanted)?.call(self, inputs, relieve, at);
            }
            if wanted.contains(&true) {
                return Ok((self.inline(arguments, at)?, false));
            }
        }
        let mut keys: SmallVec<[Key; 4]> = SmallVec::new();
        if self.plain_keys {
            keys.extend(self.keys.iter().filter_map(take_numbers).map(Key::Numbers));
        } else {
            for key in &self.keys {
                keys.push(Key::Tensor(take_key(key)?));
            }
        }
        self.run(self.program()?, arguments, With { given, variables: None, keys, relieve }, at)
    }

    /// Runs a program that takes this function's inputs.
    pub(crate) fn run(
        &self,
        program: &Compiled,
        arguments: &mut Arguments,
        with: With<'_>,
        at: Location,
    ) -> Result<(Vec<Tensor>, bool)> {
        let With { given, variables, keys, relieve } = with;
        // Nothing is held while others are waited for, but in the order of ids: so calls never wait for each other in a
        // circle.
        let read = self.variables.iter().enumerate().map(|(i, used)| match variables {
            _ if used.writes => None,
            Some(variables) => Some(variables[i].clone()),
            None => Some(used.variable.value()),
        });
        let read: SmallVec<[Option<Tensor>; 8]> = read.collect();
        let mut held: SmallVec<[(usize, VariableGuard<'_>); 8]> = SmallVec::new();
        for &i in &self.written {
            held.push((i, self.variables[i].variable.lock(at)?));
        }
        let lent: Arguments;
        let mut inputs: SmallVec<[RunInput<'_>; 16]> = SmallVec::new();
        if given {
            inputs.extend(arguments.drain(..).map(RunInput::Donated));
        } else {
            lent = std::mem::take(arguments);
            inputs.extend(lent.iter().map(RunInput::Read));
        }
        let first = inputs.len();
        inputs.extend(read.iter().map(|value| value.as_ref().map_or(RunInput::Consumed, RunInput::Read)));
        for (i, held) in &mut held {
            if let Some(tensor) = held.tensor() {
                inputs[first + *i] = RunInput::Updated(tensor);
            }
        }
        inputs.extend(keys.iter().map(|key| match key {
            Key::Numbers(numbers) => RunInput::Key(*numbers),
            Key::Tensor(tensor) => RunInput::Read(tensor),
        }));
        match program.run(&mut inputs, at) {
            Err(error) if error.kind() == ErrorKind::OutOfMemory && relieve() => program.run(&mut inputs, at),
            outcome => outcome,
        }
    }

    /// Calls it op by op: so it becomes part of the function being traced, if one is.
    fn inline(&self, arguments: &Arguments, at: Location) -> Result<Vec<Tensor>> {
        let mut inputs: Vec<Tensor> = arguments.to_vec();
        inputs.extend(self.variables.iter().map(|used| used.variable.read()));
        for key in &self.keys {
            inputs.push(take_key(key)?);
        }
        let mut outputs = self.graph.run(&inputs)?;
        let written = outputs.split_off(self.results);
        for (used, value) in self.variables.iter().filter(|used| used.writes).zip(written) {
            used.variable.assign(value).map_err(|e| e.at(at))?;
        }
        Ok(outputs)
    }

    /// The form with a gradient for these inputs.
    pub(crate) fn differentiated(&self, wanted: &[bool]) -> Result<Arc<Differentiated>> {
        let forms = || self.differentiated.lock().unwrap_or_else(PoisonError::into_inner);
        let find = |forms: &[(Vec<bool>, Arc<Differentiated>)]| {
            forms.iter().find(|(of, _)| *of == wanted).map(|(_, form)| form.clone())
        };
        if let Some(form) = find(&forms()) {
            return Ok(form);
        }
        // Not under the lock: it takes a while.
        let form = Arc::new(Differentiated::new(self, wanted)?);
        let mut forms = forms();
        Ok(find(&forms).unwrap_or_else(|| {
            forms.push((wanted.to_vec(), form.clone()));
            form
        }))
    }

    /// Whether it uses a variable that nobody holds any more: then nobody can call it.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.variables.iter().any(|used| !used.variable.is_shared())
    }

    /// The inputs that a tape around the call would follow, if it watched every argument.
    pub(crate) fn trainable(&self) -> Vec<bool> {
        let is_float = |i: usize| self.graph.spec(self.graph.inputs[i]).dtype.is_float();
        let arguments = (0..self.arguments).map(is_float);
        let variables = self
            .variables
            .iter()
            .map(|used| used.variable.is_trainable() && used.variable.dtype().is_float());
        arguments.chain(variables).collect()
    }
}

/// The tensors among the arguments of a call.
pub(crate) type Arguments = SmallVec<[Tensor; 8]>;

/// A key for random numbers.
pub(crate) enum Key {
    Numbers([u64; 2]),
    Tensor(Tensor),
}

/// The rest of what a call needs.
pub(crate) struct With<'a> {
    pub(crate) given: bool,
    /// The variables as they were read; `None` reads them.
    pub(crate) variables: Option<&'a [Tensor]>,
    pub(crate) keys: SmallVec<[Key; 4]>,
    /// Gives memory back; says whether it could.
    pub(crate) relieve: &'a dyn Fn() -> bool,
}
