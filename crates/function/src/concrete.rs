//! One trace of a function: its graph, the variables and keys that it uses, and the executables made of it.

use crate::budget::{MemoryBudget, MemoryFrontier};
use crate::forward_backward::ForwardBackward;
use crate::options::FunctionOptions;
use crate::signature::Signature;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use taut_autodiff::Variable;
use taut_core::graph::{KeySource, Node, Origin, StateUse, TracedFunction, ValueId};
use taut_core::{Error, ErrorKind, Graph, Result, Strides, Tensor};
use taut_exec::Executable;
use taut_plan::{InputRequest, PlanRequest, Program};

/// The parts of their residuals that loops keep in variants of a function, as divisors.
const RESIDUAL_DIVISORS: [usize; 3] = [4, 16, 64];

/// A function for one signature.
pub(crate) struct ConcreteFunction {
    /// The traced graph, before any pass. Its inputs are the arguments, then the variables, then the keys.
    pub(crate) graph: Graph,
    pub(crate) arguments: usize,
    pub(crate) variables: Vec<VariableUse>,
    pub(crate) keys: Vec<Arc<dyn KeySource>>,
    /// How many of the graph's outputs are results; the others are the new values of variables.
    pub(crate) results: usize,
    /// The variables that are written, as positions among `variables`; in the order of their ids, if all of them are captured.
    pub(crate) written: Vec<usize>,
    /// Whether some are arguments, so that their order depends on the call.
    pub(crate) writes_arguments: bool,
    /// Whether variables are taken from the arguments of the call.
    pub(crate) takes_variables: bool,
    pub(crate) request: PlanRequest,
    pub(crate) options: FunctionOptions,
    /// The same function with loops whose gradients keep less: made when a memory budget needs them.
    variants: OnceLock<Vec<Graph>>,
    /// The plans for all budgets, made when they are first needed.
    frontier: OnceLock<Arc<MemoryFrontier>>,
    /// The fastest executable. Compiled when it is first needed: a function that is only inlined into others does not need it.
    fastest: OnceLock<Executable>,
    /// The executable that keeps the memory budget, if the fastest one does not.
    budgeted: OnceLock<Executable>,
    /// Whether keys are only read by ops, so that they can be passed without tensors.
    pub(crate) has_plain_keys: bool,
    /// The float constants of the graph: a tape may watch them.
    pub(crate) float_constants: Vec<Tensor>,
    /// The forms with a gradient, by the inputs that are tracked.
    differentiated: Mutex<Vec<(Vec<bool>, Arc<ForwardBackward>)>>,
}

/// A variable that the function uses.
pub(crate) struct VariableUse {
    pub(crate) source: VariableSource,
    pub(crate) writes: bool,
}

/// Where a call finds a variable.
pub(crate) enum VariableSource {
    /// It is the same in every call.
    Captured(Variable),
    /// It is this one of the different variables among the arguments of the call.
    Argument(usize),
}

/// The different variables among the arguments of a call, in order.
pub(crate) type VariableArguments = SmallVec<[Variable; 4]>;

impl VariableUse {
    /// The variable in a call with these variables among its arguments.
    pub(crate) fn variable<'a>(&'a self, given: &'a [Variable]) -> &'a Variable {
        match &self.source {
            VariableSource::Captured(variable) => variable,
            VariableSource::Argument(number) => &given[*number],
        }
    }

    /// The variable, if it is the same in every call.
    pub(crate) fn captured(&self) -> Option<&Variable> {
        match &self.source {
            VariableSource::Captured(variable) => Some(variable),
            VariableSource::Argument(_) => None,
        }
    }
}

impl ConcreteFunction {
    /// The function of a trace. `given` are the different variables among its arguments, if other variables may take their places.
    pub(crate) fn new(
        traced: TracedFunction,
        signature: &Signature,
        given: &[Variable],
        options: FunctionOptions,
    ) -> Result<ConcreteFunction> {
        let mut variables = Vec::new();
        for used in &traced.states {
            let missing = || Error::new(ErrorKind::Graph, "the function uses a state that is not a variable");
            let variable = Variable::from_state(&used.state).ok_or_else(missing)?;
            let source = match given.iter().position(|other| other.untraced_id() == used.state.id()) {
                Some(number) => VariableSource::Argument(number),
                None => VariableSource::Captured(variable),
            };
            variables.push(VariableUse { source, writes: used.writes });
        }
        let arguments = signature.specs().count();
        let mut written: Vec<usize> = (0..variables.len()).filter(|&i| variables[i].writes).collect();
        let results = traced.graph.outputs.len() - written.len();
        let updates = written.iter().enumerate().map(|(k, &i)| (results + k, arguments + i)).collect();
        let takes_variables = variables.iter().any(|used| used.captured().is_none());
        let writes_arguments = written.iter().any(|&i| variables[i].captured().is_none());
        written.sort_by_key(|&i| variables[i].captured().map(Variable::untraced_id));
        let input_request = |(_, strides): (_, Option<&Strides>)| InputRequest {
            strides: strides.cloned(),
            donated: signature.is_donated() && strides.is_none(),
        };
        let inputs = signature.tensors().map(input_request).collect();
        let graph = traced.graph;
        let float_constants = graph.values.iter().filter_map(|value| match &value.origin {
            Origin::Constant(tensor) if tensor.dtype().is_inexact() => Some(tensor.clone()),
            _ => None,
        });
        Ok(ConcreteFunction {
            has_plain_keys: has_plain_keys(&graph, &graph.inputs[arguments + variables.len()..]),
            float_constants: float_constants.collect(),
            graph,
            arguments,
            variables,
            keys: traced.keys,
            results,
            written,
            writes_arguments,
            takes_variables,
            request: PlanRequest { inputs, updates, ..PlanRequest::default() },
            options,
            variants: OnceLock::new(),
            frontier: OnceLock::new(),
            fastest: OnceLock::new(),
            budgeted: OnceLock::new(),
            differentiated: Mutex::new(Vec::new()),
        })
    }

    /// The executable of a call.
    pub(crate) fn executable(&self) -> Result<&Executable> {
        let fastest = self.fastest()?;
        match self.options.budget {
            Some(budget) if !budget.allows(fastest.program()) => self.budgeted(budget),
            _ => Ok(fastest),
        }
    }

    fn fastest(&self) -> Result<&Executable> {
        if let Some(executable) = self.fastest.get() {
            return Ok(executable);
        }
        let executable = Executable::compile(&self.graph, self.options.executable, &self.request)?;
        Ok(self.fastest.get_or_init(|| executable))
    }

    #[cold]
    fn budgeted(&self, budget: MemoryBudget) -> Result<&Executable> {
        if let Some(executable) = self.budgeted.get() {
            return Ok(executable);
        }
        let program = self.frontier()?.plan_within(budget)?;
        let executable = Executable::with_options(program, self.options.executable)?;
        Ok(self.budgeted.get_or_init(|| executable))
    }

    /// Whether the fastest executable needs more than the memory budget.
    pub(crate) fn exceeds_budget(&self) -> Result<bool> {
        let Some(budget) = self.options.budget else { return Ok(false) };
        Ok(!budget.allows(self.fastest()?.program()))
    }

    /// The plans among which a budget chooses.
    pub(crate) fn frontier(&self) -> Result<Arc<MemoryFrontier>> {
        if let Some(frontier) = self.frontier.get() {
            return Ok(frontier.clone());
        }
        let FunctionOptions { name, executable, budget } = &self.options;
        let variants = self.variants.get().map_or(&[][..], Vec::as_slice);
        let graphs = std::iter::once(&self.graph).chain(variants);
        let frontier = MemoryFrontier::new(
            name,
            graphs,
            self.arguments,
            *executable,
            &self.request,
            budget.and_then(MemoryBudget::spill_folder),
        )?;
        Ok(self.frontier.get_or_init(|| Arc::new(frontier)).clone())
    }

    /// Adds variants of the function whose loops keep only a part of their residuals for their gradients, if it has loops.
    /// `trace` returns `None` if no loop keeps less.
    pub(crate) fn add_variants(
        &self,
        given: &[Variable],
        trace: impl Fn(usize) -> Result<Option<TracedFunction>>,
    ) -> Result<()> {
        let has_subgraphs = self.graph.nodes.iter().any(|node| node.op.subgraphs().is_some());
        if !has_subgraphs || self.variants.get().is_some() {
            return Ok(());
        }
        let mut variants = Vec::new();
        for divisor in RESIDUAL_DIVISORS {
            let Some(traced) = trace(divisor)? else { break };
            if self.has_same_inputs(given, &traced) {
                variants.push(traced.graph);
            }
        }
        self.variants.get_or_init(|| variants);
        Ok(())
    }

    /// Whether another trace takes the same variables and as many keys, so that it can be called in place of this one.
    fn has_same_inputs(&self, given: &[Variable], traced: &TracedFunction) -> bool {
        let is_same = |(used, other): (&VariableUse, &StateUse)| {
            other.state.id() == used.variable(given).untraced_id() && used.writes == other.writes
        };
        traced.captures.is_empty()
            && traced.states.len() == self.variables.len()
            && self.variables.iter().zip(&traced.states).all(is_same)
            && traced.keys.len() == self.keys.len()
            && traced.graph.outputs.len() == self.graph.outputs.len()
    }

    /// The plan of a call.
    pub(crate) fn plan(&self) -> Result<Arc<Program>> {
        Ok(self.executable()?.program().clone())
    }

    /// The executable of a call, if there is one yet.
    fn planned(&self) -> Option<&Executable> {
        self.budgeted.get().or(self.fastest.get())
    }

    /// The peak of a call beyond arguments and variables; 0 if it is not planned yet.
    pub(crate) fn peak_bytes(&self) -> usize {
        self.planned().map_or(0, |executable| executable.program().peak_bytes())
    }

    /// The arena of a call; 0 if it is not planned yet.
    pub(crate) fn arena_bytes(&self) -> usize {
        self.planned().map_or(0, |executable| executable.program().arena_bytes())
    }

    /// The bytes held between calls.
    pub(crate) fn bytes(&self) -> usize {
        self.graph.footprint()
            + self.variants.get().into_iter().flatten().map(Graph::footprint).sum::<usize>()
            + self.fastest.get().map_or(0, Executable::bytes)
            + self.budgeted.get().map_or(0, Executable::bytes)
            + self.frontier.get().map_or(0, |frontier| frontier.footprint())
            + self.differentiated().iter().map(|(_, form)| form.bytes()).sum::<usize>()
    }

    /// Frees the arenas that no call is using.
    pub(crate) fn release_arenas(&self) {
        self.planned().into_iter().for_each(Executable::release_arenas);
        self.differentiated().iter().for_each(|(_, form)| form.release_arenas());
    }

    /// The form with a gradient for these inputs.
    pub(crate) fn forward_backward(&self, wanted: &[bool]) -> Result<Arc<ForwardBackward>> {
        let find = |forms: &[(Vec<bool>, Arc<ForwardBackward>)]| {
            forms.iter().find(|(of, _)| *of == wanted).map(|(_, form)| form.clone())
        };
        if let Some(form) = find(&self.differentiated()) {
            return Ok(form);
        }
        // Compiled without the lock: another thread may do the same meanwhile, and the first one stays.
        let form = ForwardBackward::new(&self.graph, self.results, wanted, &self.options, &self.request)?;
        let form = Arc::new(form);
        let mut forms = self.differentiated();
        Ok(find(&forms).unwrap_or_else(|| {
            forms.push((wanted.to_vec(), form.clone()));
            form
        }))
    }

    fn differentiated(&self) -> MutexGuard<'_, Vec<(Vec<bool>, Arc<ForwardBackward>)>> {
        self.differentiated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether it uses a variable whose last other handle was dropped: then it cannot be called any more.
    pub(crate) fn is_orphaned(&self) -> bool {
        self.variables.iter().filter_map(VariableUse::captured).any(|variable| !variable.is_shared())
    }

    /// The inputs that a tape around the call would track, if it watched every argument.
    pub(crate) fn trainable_inputs(&self, given: &[Variable]) -> Vec<bool> {
        let is_float = |i: usize| self.graph.spec(self.graph.inputs[i]).dtype.is_inexact();
        let arguments = (0..self.arguments).map(is_float);
        let is_trainable = |used: &VariableUse| {
            let variable = used.variable(given);
            variable.is_trainable() && variable.dtype().is_inexact()
        };
        arguments.chain(self.variables.iter().map(is_trainable)).collect()
    }
}

/// Whether keys are read by ops alone: neither returned, nor viewed.
fn has_plain_keys(graph: &Graph, keys: &[ValueId]) -> bool {
    let is_key = |id: &ValueId| keys.contains(id);
    let views_key = |node: &Node| node.op.kernel().is_view() && node.inputs.iter().any(is_key);
    !graph.outputs.iter().any(is_key) && !graph.nodes.iter().any(views_key)
}
