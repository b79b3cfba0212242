//! One trace of a function: its graph, what it uses from outside, and the programs made of it.

use crate::compiled::{Compiled, Settings};
use crate::gradient::Differentiated;
use crate::signature::Signature;
use smallvec::SmallVec;
use std::panic::Location;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use taut_autodiff::{Held, Variable};
use taut_core::graph::{KeySource, TracedFunction, outside_traces};
use taut_core::ops::random::take_key;
use taut_core::{Error, ErrorKind, Graph, Result, Tensor, record};
use taut_exec::Input;
use taut_plan::{Given, Program, Request};

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
    request: Request,
    settings: Settings,
    /// Made when it is first asked for: a function that is only called by others never needs it.
    program: OnceLock<Compiled>,
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
            let variable = Variable::of_state(&used.state).ok_or_else(unknown)?;
            variables.push(Used { variable, writes: used.writes });
        }
        let arguments = signature.specs().count();
        let count = variables.iter().filter(|used| used.writes).count();
        let results = traced.graph.outputs.len() - count;
        let mut written: Vec<usize> = (0..variables.len()).filter(|&i| variables[i].writes).collect();
        let updates = written.iter().enumerate().map(|(k, &i)| (results + k, arguments + i)).collect();
        written.sort_by_key(|&i| variables[i].variable.id());
        let given = |(_, strides): (_, Option<&taut_core::Strides>)| Given {
            strides: strides.cloned(),
            donated: signature.given() && strides.is_none(),
        };
        let request =
            Request { inputs: signature.tensors().map(given).collect(), updates, ..Request::default() };
        Ok(Concrete {
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
        let made = outside_traces(|| Compiled::new(&self.graph, self.settings, &self.request))?;
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

    pub(crate) fn request(&self) -> &Request {
        &self.request
    }

    pub(crate) fn settings(&self) -> Settings {
        self.settings
    }

    /// What it takes beside what a running call takes.
    pub(crate) fn bytes(&self) -> usize {
        let graph = self.graph.nodes.len() * size_of::<taut_core::graph::Node>()
            + self.graph.values.len() * size_of::<taut_core::graph::Value>();
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
    pub(crate) fn call(
        &self,
        arguments: SmallVec<[Tensor; 8]>,
        given: bool,
        at: &'static Location<'static>,
    ) -> Result<(Vec<Tensor>, bool)> {
        // Who checks every op for NaN wants to know which op and line it was: op by op, then.
        if taut_core::is_tracing() || taut_core::is_checking_numerics() {
            return Ok((self.inline(arguments, at)?, false));
        }
        if record::is_recording() {
            let mut inputs: Vec<Tensor> = arguments.iter().cloned().collect();
            inputs.extend(self.variables.iter().map(|used| used.variable.read()));
            if inputs.iter().any(|input| input.dtype().is_float() && record::is_followed(input)) {
                if given {
                    let message = "what a tape follows cannot be given to a function: the tape may need it";
                    return Err(Error::value(message).help("use call() instead of give()").at(at));
                }
                for key in &self.keys {
                    inputs.push(take_key(key)?);
                }
                return self.differentiated(&inputs)?.call(self, inputs, at);
            }
        }
        let mut keys: SmallVec<[Tensor; 4]> = SmallVec::new();
        for key in &self.keys {
            keys.push(take_key(key)?);
        }
        self.run(self.program()?, arguments, given, keys, at)
    }

    /// Runs a program that takes this function's inputs.
    pub(crate) fn run(
        &self,
        program: &Compiled,
        arguments: SmallVec<[Tensor; 8]>,
        given: bool,
        keys: SmallVec<[Tensor; 4]>,
        at: &'static Location<'static>,
    ) -> Result<(Vec<Tensor>, bool)> {
        let mut held: SmallVec<[(usize, Held<'_>); 8]> = SmallVec::new();
        for &i in &self.written {
            held.push((i, self.variables[i].variable.hold(at)?));
        }
        let read = self.variables.iter().map(|used| (!used.writes).then(|| used.variable.value()));
        let read: SmallVec<[Option<Tensor>; 8]> = read.collect();
        let lent: SmallVec<[Tensor; 8]>;
        let mut inputs: SmallVec<[Input<'_>; 16]> = SmallVec::new();
        if given {
            inputs.extend(arguments.into_iter().map(Input::Given));
        } else {
            lent = arguments;
            inputs.extend(lent.iter().map(Input::Read));
        }
        let first = inputs.len();
        inputs.extend(read.iter().map(|value| value.as_ref().map_or(Input::Taken, Input::Read)));
        for (i, held) in &mut held {
            if let Some(tensor) = held.tensor() {
                inputs[first + *i] = Input::Updated(tensor);
            }
        }
        inputs.extend(keys.iter().map(Input::Read));
        program.run(&mut inputs, at)
    }

    /// Calls it op by op: so it becomes part of the function being traced, if one is.
    fn inline(
        &self,
        arguments: SmallVec<[Tensor; 8]>,
        at: &'static Location<'static>,
    ) -> Result<Vec<Tensor>> {
        let mut inputs = arguments.into_vec();
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

    /// The form with a gradient for the inputs that are followed.
    fn differentiated(&self, inputs: &[Tensor]) -> Result<Arc<Differentiated>> {
        let is_wanted = |input: &Tensor| input.dtype().is_float() && record::is_followed(input);
        let wanted: Vec<bool> = inputs.iter().map(is_wanted).collect();
        let mut forms = self.differentiated.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, form)) = forms.iter().find(|(of, _)| *of == wanted) {
            return Ok(form.clone());
        }
        let form = Arc::new(Differentiated::new(self, &wanted)?);
        forms.push((wanted, form.clone()));
        Ok(form)
    }
}
