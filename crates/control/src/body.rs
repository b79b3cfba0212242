//! A graph that an op runs again and again, in memory that the op was given.
//!
//! **Invariant.** A body is prepared before it is asked for its memory or run: [`Body::prepare`] compiles and plans it, and
//! is where errors come out. Ops prepare their bodies in [`Subgraphs::prepare`](taut_core::Subgraphs::prepare), which eager
//! calls and the planner call before [`Op::scratch`](taut_core::Op::scratch).

use crate::scratch::aligned;
use std::fmt;
use std::sync::OnceLock;
use taut_compile::{CompileOptions, compile};
use taut_core::graph::{GraphValue, Origin, ValueId, suspend_tracing};
use taut_core::{Cost, Error, ErrorKind, Graph, Result, Spec, record};
use taut_exec::Executable;
use taut_plan::{Home, PlanFrontier, PlanRequest, Program, with_smaller_subgraphs};

/// A graph, and the executable that it becomes.
pub(crate) struct Body {
    graph: Graph,
    /// Per output, the input whose new value it is: those come first. Other outputs are written to memory that is passed as
    /// further inputs.
    updates: Vec<Option<usize>>,
    /// Whether the graph is the compiler's output.
    is_compiled: bool,
    prepared: OnceLock<PreparedBody>,
    /// Its plans for less memory, once they are asked for.
    smaller: OnceLock<PlanFrontier>,
}

/// A body ready to run.
pub(crate) struct PreparedBody {
    /// Its inputs are the graph's, then one for each output that is not written over an input.
    pub(crate) executable: Executable,
    /// Per updated input, whether it is double-buffered: the new value is written to a second buffer, and the two are swapped after
    /// the run. Where a value cannot be computed in place, that saves a copy.
    pub(crate) double_buffered: Vec<bool>,
    /// The bytes of the second buffers.
    second_buffer_bytes: usize,
}

impl Body {
    pub(crate) fn new(graph: Graph, updates: Vec<Option<usize>>) -> Body {
        debug_assert_eq!(graph.outputs.len(), updates.len());
        Body { graph, updates, is_compiled: false, prepared: OnceLock::new(), smaller: OnceLock::new() }
    }

    /// A body none of whose outputs is the new value of an input.
    pub(crate) fn without_updates(graph: Graph) -> Body {
        let updates = vec![None; graph.outputs.len()];
        Body::new(graph, updates)
    }

    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The same body with a graph that the compiler made.
    pub(crate) fn compiled(&self, compile: &mut dyn FnMut(&Graph) -> Result<Graph>) -> Result<Body> {
        let graph = if self.is_compiled { self.graph.clone() } else { compile(&self.graph)? };
        Ok(Body { is_compiled: true, ..Body::new(graph, self.updates.clone()) })
    }

    pub(crate) fn input(&self, input: usize) -> &Spec {
        self.graph.spec(self.graph.inputs[input])
    }

    pub(crate) fn output(&self, output: usize) -> &Spec {
        self.graph.spec(self.graph.outputs[output])
    }

    /// The specs of all inputs.
    pub(crate) fn inputs(&self) -> impl Iterator<Item = &Spec> {
        self.graph.inputs.iter().map(|&id| self.graph.spec(id))
    }

    /// Compiles the graph, unless that was done, and plans its memory. Once: a second call does nothing.
    pub(crate) fn prepare(&self, options: CompileOptions) -> Result<()> {
        if self.prepared.get().is_none() {
            let prepared = suspend_tracing(|| record::without_recording(|| self.compile_and_plan(options)))?;
            self.prepared.get_or_init(|| prepared);
        }
        Ok(())
    }

    fn compile_and_plan(&self, options: CompileOptions) -> Result<PreparedBody> {
        let compiled = if self.is_compiled { None } else { Some(compile(&self.graph, &options)?) };
        let graph = compiled.as_ref().unwrap_or(&self.graph);
        let updated = self.updates.iter().flatten().count();
        let in_place = plan(graph, &self.updates)?;
        let double_buffered: Vec<bool> =
            self.updates[..updated].iter().map(|input| is_copied(in_place.program(), *input)).collect();
        if double_buffered.contains(&true) {
            let swapped = plan(graph, &without_double_buffered(&self.updates, &double_buffered))?;
            let second_buffers = (0..updated).filter(|&k| double_buffered[k]);
            let second_buffer_bytes = second_buffers.map(|k| aligned(self.output(k).bytes())).sum();
            let arena_bytes = |executable: &Executable| aligned(executable.program().arena_bytes());
            if arena_bytes(&swapped) + second_buffer_bytes <= arena_bytes(&in_place) {
                return Ok(PreparedBody { executable: swapped, double_buffered, second_buffer_bytes });
            }
        }
        let double_buffered = vec![false; updated];
        Ok(PreparedBody { executable: in_place, double_buffered, second_buffer_bytes: 0 })
    }

    /// The same body, planned for at most the `divisor`-th part of its arena, or for as little as was found; `None` if that is not
    /// less. The body is prepared and compiled.
    pub(crate) fn with_smaller_plan(&self, divisor: usize) -> Result<Option<Body>> {
        let prepared = self.prepared()?;
        let bytes = prepared.executable.program().arena_bytes();
        if !self.is_compiled || bytes == 0 {
            return Ok(None);
        }
        let frontier = |graph: &Graph| {
            let updates = without_double_buffered(&self.updates, &prepared.double_buffered);
            let (graph, request) = with_written_outputs(graph, &updates);
            PlanFrontier::new(&graph, &request)
        };
        // The ops of the body that hold graphs come first.
        let inner = with_smaller_subgraphs(&self.graph, bytes, divisor)?;
        let own;
        let plans = match (&inner, self.smaller.get()) {
            (Some(inner), _) => {
                own = frontier(inner)?;
                &own
            }
            (None, Some(plans)) => plans,
            (None, None) => {
                let plans = frontier(&self.graph)?;
                self.smaller.get_or_init(|| plans)
            }
        };
        let position = plans.position_within(bytes / divisor.max(1)).unwrap_or(0);
        if plans.points()[position].bytes >= bytes {
            return Ok(None);
        }
        let executable = Executable::new(plans.plan(position)?);
        let smaller = PreparedBody {
            executable,
            double_buffered: prepared.double_buffered.clone(),
            second_buffer_bytes: prepared.second_buffer_bytes,
        };
        let graph = inner.unwrap_or_else(|| self.graph.clone());
        let body = Body { is_compiled: true, ..Body::new(graph, self.updates.clone()) };
        body.prepared.get_or_init(|| smaller);
        Ok(Some(body))
    }

    /// The work of a run: the graph's, and that of the steps that its plan repeats.
    pub(crate) fn cost(&self) -> Cost {
        let repeated = self.prepared.get().map(|prepared| prepared.executable.program().repeated_cost());
        self.graph.cost().plus(repeated.unwrap_or_default())
    }

    /// The body ready to run; an error if [`Body::prepare`] was not called.
    pub(crate) fn prepared(&self) -> Result<&PreparedBody> {
        let missing = || Error::new(ErrorKind::Graph, "the op must be prepared before it runs");
        self.prepared.get().ok_or_else(missing)
    }

    /// The bytes that a run needs beside its inputs and outputs, of a prepared body.
    pub(crate) fn arena_bytes(&self) -> usize {
        self.prepared.get().map_or(0, |prepared| aligned(prepared.executable.program().arena_bytes()))
    }

    /// The bytes that must stay untouched between runs, of a prepared body.
    pub(crate) fn second_buffer_bytes(&self) -> usize {
        self.prepared.get().map_or(0, |prepared| prepared.second_buffer_bytes)
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Body({} nodes)", self.graph.nodes.len())
    }
}

/// What outputs update if some of the first ones are written to second buffers instead.
fn without_double_buffered(updates: &[Option<usize>], double_buffered: &[bool]) -> Vec<Option<usize>> {
    let is_swapped = |k: usize| double_buffered.get(k).copied().unwrap_or(false);
    updates.iter().enumerate().map(|(k, input)| if is_swapped(k) { None } else { *input }).collect()
}

/// Plans a compiled graph whose outputs all update an input: the one that `updates` names, or a further one.
fn plan(graph: &Graph, updates: &[Option<usize>]) -> Result<Executable> {
    let (graph, request) = with_written_outputs(graph, updates);
    Executable::plan(&graph, &request)
}

/// The graph with an input for each output that updates none, and how it is planned: every output updates an input.
fn with_written_outputs(graph: &Graph, updates: &[Option<usize>]) -> (Graph, PlanRequest) {
    let mut graph = graph.clone();
    let mut all_updates = Vec::new();
    for (output, input) in updates.iter().enumerate() {
        let input = input.unwrap_or_else(|| {
            let spec = graph.spec(graph.outputs[output]).clone();
            let position = graph.inputs.len();
            graph.inputs.push(ValueId(graph.values.len() as u32));
            graph.values.push(GraphValue { spec, origin: Origin::Input(position) });
            position
        });
        all_updates.push((output, input));
    }
    let request = PlanRequest { updates: all_updates, atomic: false, ..PlanRequest::default() };
    (graph, request)
}

/// Whether the new value of an input is computed in the arena and then copied over the old one.
fn is_copied(program: &Program, input: Option<usize>) -> bool {
    let home = |storage: usize| program.storages[storage].home;
    program.steps.iter().any(|step| {
        step.op.is_none()
            && step.targets.iter().any(|target| input.is_some_and(|i| home(target.storage) == Home::Input(i)))
            && step.operands.iter().any(|operand| matches!(home(operand.storage), Home::Arena(_)))
    })
}
