//! Tracing: the mode in which [`apply`](crate::apply()) appends ops to a graph instead of running them.

use super::state::{ExternalState, ExternalUses, KeySource, KeyUse, StateRead, StateUse, StateWrite};
use super::{Graph, GraphValue, Node, Origin, ValueId};
use crate::apply::{Outputs, infer, with_specs};
use crate::error::{Error, ErrorKind, Result};
use crate::mode;
use crate::op::{Op, Spec};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::any::Any;
use std::cell::RefCell;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use taut_kernels::DType;
use taut_memory::{Location, check_available, reserve};

/// A value of a trace in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueRef {
    trace: u64,
    value: ValueId,
}

impl ValueRef {
    /// A value of no trace.
    pub(crate) const NO_TRACE: ValueRef = ValueRef { trace: u64::MAX, value: ValueId(0) };
}

struct Tracer {
    trace: u64,
    /// The traces around this one.
    enclosing: SmallVec<[u64; 4]>,
    graph: Graph,
    captures: Vec<(ValueId, Tensor)>,
    /// The constants by [`Tensor::identity`]; the graph holds them, so no other tensor has that number.
    constants: HashMap<usize, ValueId>,
    /// The external state that each call reads; `None` if the enclosing trace has it.
    external: Option<ExternalUses>,
    /// Whether tensors with data are captured instead of becoming constants.
    captures_constants: bool,
    /// What the body of a loop or branch has written to states so far, or received as their values; `None` if it may not write.
    writes: Option<Vec<StateWrite>>,
    /// What the code that started the trace passes to the code that runs in it.
    context: Option<TraceContext>,
}

/// A value that belongs to a trace: the code that starts the trace attaches it, and code that runs in the trace finds it with
/// [`trace_context`].
pub type TraceContext = Rc<dyn Any>;

thread_local! {
    static TRACERS: RefCell<Vec<Tracer>> = const { RefCell::new(Vec::new()) };
}

/// The result of a trace.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The graph. Its inputs are the requested ones, then one per capture.
    pub graph: Graph,
    /// Values of an enclosing trace that the function used: the graph's further inputs.
    pub captures: Vec<Tensor>,
    /// The states that it received or writes, by [`trace_writing`]: the graph's last outputs are their new values.
    pub writes: Vec<Arc<dyn ExternalState>>,
}

impl Traced {
    /// The value of an external tensor in the graph, as a capture.
    pub fn capture(&mut self, tensor: &Tensor) -> ValueId {
        let given = self.graph.inputs.len() - self.captures.len();
        if let Some(i) = self.captures.iter().position(|other| other.same_value_and_links(tensor)) {
            return self.graph.inputs[given + i];
        }
        let id = ValueId(self.graph.values.len() as u32);
        self.graph.values.push(GraphValue { spec: tensor.spec().clone(), origin: Origin::Input(usize::MAX) });
        self.graph.add_input(id);
        self.captures.push(tensor.clone());
        id
    }
}

/// The result of [`trace_function`].
#[derive(Clone, Debug)]
pub struct TracedFunction {
    /// The graph. Its inputs are the requested ones, then one per capture, per state and per key; its outputs are the
    /// function's, then one per state that it writes, in the order of `states`.
    pub graph: Graph,
    /// Values of an enclosing trace that the function used.
    pub captures: Vec<Tensor>,
    /// What the function reads or writes by reference.
    pub states: Vec<StateUse>,
    /// The sources of each call's keys, in the order in which the function takes them.
    pub keys: Vec<Arc<dyn KeySource>>,
    /// State that was created during the trace.
    pub created: Vec<Arc<dyn ExternalState>>,
}

/// Calls `function` on tensors without data and records every op it applies.
///
/// Tensors that already have data become constants of the graph. Traces nest: what an inner one uses of an outer one
/// becomes an input of the inner graph.
///
/// ```
/// # use taut_core::{DType, Result, Spec, trace};
/// # fn main() -> Result<()> {
/// let traced = trace(&[Spec::new(DType::F32, [2])], |inputs| Ok(inputs.to_vec()))?;
/// assert_eq!(traced.graph.to_string(), "graph(%0: float32[2]) {\n  return %0\n}\n");
/// # Ok(()) }
/// ```
pub fn trace(inputs: &[Spec], function: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>) -> Result<Traced> {
    let (tracer, ()) = run_trace(inputs, TraceKind::Graph, None, |arguments| Ok((function(arguments)?, ())))?;
    Ok(tracer.traced())
}

/// As [`trace`], for a graph that an op will hold: tensors with data are captured as well, so that they are inputs of that op
/// and can be recorded. Scalars without another handle are constants. Returns the second result of `function` as well.
pub fn trace_body<R>(
    inputs: &[Spec],
    function: impl FnOnce(&[Tensor]) -> Result<(Vec<Tensor>, R)>,
) -> Result<(Traced, R)> {
    let (tracer, rest) = run_trace(inputs, TraceKind::Body(None), None, function)?;
    Ok((tracer.traced(), rest))
}

/// As [`trace_body`], for a function that may write to states. The writes take effect after the op that holds the graph has run:
/// the states' new values are its last outputs, in the order of [`Traced::writes`].
///
/// `given` are states whose values are among the inputs, each with the number of that input. They come first in
/// [`Traced::writes`], written or not. `context` belongs to the trace.
pub fn trace_writing<R>(
    inputs: &[Spec],
    given: &[(usize, Arc<dyn ExternalState>)],
    context: Option<TraceContext>,
    function: impl FnOnce(&[Tensor]) -> Result<(Vec<Tensor>, R)>,
) -> Result<(Traced, R)> {
    let (tracer, rest) = run_trace(inputs, TraceKind::Body(Some(given)), context, function)?;
    Ok((tracer.traced(), rest))
}

/// As [`trace`], for a function that is called many times: variables and keys for random numbers are inputs of the graph,
/// and the values it writes to variables are outputs. Returns the second result of `function` as well.
///
/// `may_create`: whether this trace may create state; `context` belongs to the trace.
pub fn trace_function<R>(
    inputs: &[Spec],
    may_create: bool,
    context: Option<TraceContext>,
    function: impl FnOnce(&[Tensor]) -> Result<(Vec<Tensor>, R)>,
) -> Result<(TracedFunction, R)> {
    let (mut tracer, rest) = run_trace(inputs, TraceKind::Function { may_create }, context, function)?;
    let captures = tracer.take_captures();
    let external = tracer.external.take().unwrap_or_else(|| ExternalUses::new(false));
    let graph = &mut tracer.graph;
    let mut states = Vec::new();
    for read in external.states {
        let writes = read.last_write.is_some();
        if let Some(value) = read.last_write {
            graph.outputs.push(value);
        }
        graph.add_input(read.input);
        states.push(StateUse { state: read.state, writes });
    }
    let mut keys = Vec::new();
    for key in external.keys {
        graph.add_input(key.input);
        keys.push(key.source);
    }
    let traced = TracedFunction { graph: tracer.graph, captures, states, keys, created: external.created };
    Ok((traced, rest))
}

/// What is being traced.
enum TraceKind<'a> {
    /// A graph.
    Graph,
    /// A graph that an op will hold. It may write to states if there is a list of the states among its inputs.
    Body(Option<&'a [(usize, Arc<dyn ExternalState>)]>),
    /// A function that is called many times.
    Function { may_create: bool },
}

fn run_trace<R>(
    inputs: &[Spec],
    kind: TraceKind<'_>,
    context: Option<TraceContext>,
    function: impl FnOnce(&[Tensor]) -> Result<(Vec<Tensor>, R)>,
) -> Result<(Tracer, R)> {
    static TRACES: AtomicU64 = AtomicU64::new(0);
    let trace = TRACES.fetch_add(1, Ordering::Relaxed);

    let enclosing = TRACERS.with_borrow(|tracers| tracers.iter().map(|tracer| tracer.trace).collect());
    if let Some(spec) = inputs.iter().find(|spec| spec.shape.checked_len().is_none()) {
        return Err(Error::shape(format!("{spec} has more elements than memory has addresses")));
    }
    let mut tracer = Tracer {
        trace,
        enclosing,
        graph: Graph::default(),
        captures: Vec::new(),
        constants: HashMap::new(),
        external: match kind {
            TraceKind::Function { may_create } => Some(ExternalUses::new(may_create)),
            _ => None,
        },
        captures_constants: matches!(kind, TraceKind::Body(_)),
        writes: None,
        context,
    };
    let mut arguments = Vec::new();
    for spec in inputs {
        let id = tracer.provided(spec.clone());
        tracer.graph.add_input(id);
        arguments.push(tracer.tensor(id));
    }
    if let TraceKind::Body(Some(given)) = kind {
        let write = |(input, state): &(usize, Arc<dyn ExternalState>)| StateWrite {
            state: state.clone(),
            value: tracer.graph.inputs[*input],
        };
        tracer.writes = Some(given.iter().map(write).collect());
    }
    let guard = TraceGuard::enter(tracer);
    let (results, rest) = function(&arguments)?;
    let mut tracer = guard.leave();
    for result in &results {
        let id = tracer.value_of(result)?;
        tracer.graph.outputs.push(id);
    }
    Ok((tracer, rest))
}

/// Runs `work` without tracing: its ops run and are not recorded in a graph.
pub fn suspend_tracing<R>(work: impl FnOnce() -> R) -> R {
    let _suspension = TracingSuspension::enter();
    work()
}

/// Suspends tracing on its thread until it is dropped. Nested suspensions end in reverse order.
pub struct TracingSuspension {
    tracers: Vec<Tracer>,
    /// Not `Send`: it belongs to its thread.
    of_this_thread: PhantomData<*const ()>,
}

impl TracingSuspension {
    /// Suspends the traces of this thread.
    #[must_use]
    pub fn enter() -> TracingSuspension {
        let tracers = TRACERS.take();
        mode::set(mode::TRACING, false);
        TracingSuspension { tracers, of_this_thread: PhantomData }
    }
}

impl Drop for TracingSuspension {
    fn drop(&mut self) {
        let tracers = std::mem::take(&mut self.tracers);
        mode::set(mode::TRACING, !tracers.is_empty());
        TRACERS.with_borrow_mut(|current| *current = tracers);
    }
}

/// Pops the tracer from the stack, even if the traced function panics.
struct TraceGuard;

impl TraceGuard {
    fn enter(tracer: Tracer) -> TraceGuard {
        TRACERS.with_borrow_mut(|tracers| tracers.push(tracer));
        mode::set(mode::TRACING, true);
        TraceGuard
    }

    fn leave(self) -> Tracer {
        std::mem::forget(self);
        TraceGuard::pop().expect("the guard put it there")
    }

    fn pop() -> Option<Tracer> {
        TRACERS.with_borrow_mut(|tracers| {
            let tracer = tracers.pop();
            mode::set(mode::TRACING, !tracers.is_empty());
            tracer
        })
    }
}

impl Drop for TraceGuard {
    fn drop(&mut self) {
        drop(TraceGuard::pop());
    }
}

/// Appends a node for a call of `op` to the innermost trace.
pub(crate) fn record(op: &dyn Op, inputs: &[Tensor], at: Location) -> Result<Outputs> {
    let specs = with_specs(inputs, |inputs| infer(op, inputs))?;
    TRACERS.with_borrow_mut(|tracers| {
        let tracer = tracers.last_mut().expect("is_tracing was checked");
        let inputs = inputs.iter().map(|t| tracer.value_of(t)).collect::<Result<SmallVec<[ValueId; 3]>>>()?;
        check_available(size_of::<Node>(), at)?;
        reserve(&mut tracer.graph.nodes, 1)?;
        reserve(&mut tracer.graph.values, 1)?;
        let node = tracer.graph.nodes.len();
        let mut outputs = SmallVec::new();
        let mut tensors = Outputs::new();
        for (output, spec) in specs.into_iter().enumerate() {
            let id = tracer.add_value(spec.clone(), Origin::Node { node, output });
            outputs.push(id);
            tensors.push(Tensor::traced(spec, ValueRef { trace: tracer.trace, value: id }));
        }
        tracer.graph.nodes.push(Node { op: op.shared(), inputs, outputs, at });
        Ok(tensors)
    })
}

/// The number of nodes in the trace of this thread; `None` if it is not tracing.
pub fn num_traced_calls() -> Option<usize> {
    TRACERS.with_borrow(|tracers| tracers.last().map(|tracer| tracer.graph.nodes.len()))
}

/// The graph that this thread is tracing, so far; `None` if it is not tracing.
pub fn current() -> Option<Graph> {
    TRACERS.with_borrow(|tracers| tracers.last().map(|tracer| tracer.graph.clone()))
}

/// The id of a tensor in the graph that this thread is tracing, if it is a value of it.
pub fn value_of(tensor: &Tensor) -> Option<ValueId> {
    let value = tensor.traced_value()?;
    TRACERS.with_borrow(|tracers| {
        tracers.last().filter(|tracer| tracer.trace == value.trace).map(|_| value.value)
    })
}

/// The tensor of a value of the graph that this thread is tracing.
pub fn tensor_of(value: ValueId) -> Option<Tensor> {
    TRACERS.with_borrow(|tracers| {
        let tracer = tracers.last()?;
        let GraphValue { spec, origin } = tracer.graph.values.get(value.index())?;
        Some(match origin {
            Origin::Constant(tensor) => tensor.clone(),
            _ => Tensor::traced(spec.clone(), ValueRef { trace: tracer.trace, value }),
        })
    })
}

/// Calls `act` with the innermost trace of a function, if there is one.
fn with_external_uses<R>(act: impl FnOnce(&mut Tracer) -> R) -> Option<R> {
    TRACERS
        .with_borrow_mut(|tracers| tracers.iter_mut().rev().find(|tracer| tracer.external.is_some()).map(act))
}

/// The value of a state in the current trace: the last write, or the value that a call will read. `None` if no function is being
/// traced and no body wrote to it.
pub fn read_state(state: &Arc<dyn ExternalState>) -> Option<Tensor> {
    TRACERS.with_borrow_mut(|tracers| tracers.iter_mut().rev().find_map(|tracer| tracer.read(state)))
}

/// Writes to a state in the current trace of a function, or of a body that may write. `None` if there is no such trace.
pub fn write_state(state: &Arc<dyn ExternalState>, value: &Tensor) -> Option<Result<()>> {
    TRACERS.with_borrow_mut(|tracers| {
        let in_function = tracers.iter().any(|tracer| tracer.external.is_some());
        match tracers.last_mut() {
            Some(tracer) if tracer.external.is_some() || tracer.writes.is_some() => {
                Some(tracer.write(state, value))
            }
            _ if in_function => {
                let message = "a body that is vectorised or recomputed must not write to state";
                let error = Error::new(ErrorKind::Graph, message);
                Some(Err(error.help("return the new value from the body, and assign it outside")))
            }
            _ => None,
        }
    })
}

/// Records in the current trace of a function that a state was created; fails if the trace may not create state. Does nothing
/// outside of a trace.
pub fn create_state(state: &Arc<dyn ExternalState>) -> Result<()> {
    let recorded = with_external_uses(|tracer| match &mut tracer.external {
        Some(external) if external.may_create => {
            external.created.push(state.clone());
            Ok(())
        }
        _ => Err(Error::new(
            ErrorKind::Graph,
            "a function must create its variables in its first trace, got a new one in a later trace",
        )
        .help("create it once, in the function's first trace or outside of it, and use it from there")),
    });
    recorded.unwrap_or(Ok(()))
}

/// How many nested bodies of loops and branches this thread is tracing.
pub fn body_depth() -> usize {
    TRACERS.with_borrow(|tracers| tracers.iter().filter(|tracer| tracer.captures_constants).count())
}

/// How many nested functions this thread is tracing.
pub fn function_depth() -> usize {
    TRACERS.with_borrow(|tracers| tracers.iter().filter(|tracer| tracer.external.is_some()).count())
}

/// The innermost value of this type that belongs to a trace of this thread. Traces around the function being traced do not count: a
/// function is traced independently of its callers.
pub fn trace_context<T: Any>() -> Option<Rc<T>> {
    TRACERS.with_borrow(|tracers| {
        let function = tracers.iter().rposition(|tracer| tracer.external.is_some()).unwrap_or(0);
        let mut contexts = tracers[function..].iter().rev().filter_map(|tracer| tracer.context.clone());
        contexts.find_map(|context| context.downcast::<T>().ok())
    })
}

/// A key that every call of the traced function takes from `source`. `None` if no function is being traced.
pub(crate) fn next_key(source: Arc<dyn KeySource>) -> Option<Tensor> {
    with_external_uses(|tracer| {
        let input = tracer.provided(Spec::new(DType::U64, [2]));
        let tensor = tracer.tensor(input);
        if let Some(external) = &mut tracer.external {
            external.keys.push(KeyUse { input, source });
        }
        tensor
    })
}

/// The value of a traced tensor, computed now from the current values of states. It must not depend on arguments. Keys that it
/// depends on are taken once, now, and become constants of the trace.
pub fn evaluate(tensor: &Tensor) -> Result<Tensor> {
    let Some(value) = tensor.traced_value() else { return Ok(tensor.clone()) };
    let (graph, states) = TRACERS.with_borrow_mut(|tracers| {
        let tracer =
            tracers.iter_mut().rev().find(|tracer| tracer.trace == value.trace).ok_or_else(leaked)?;
        tracer.known_part(value.value)
    })?;
    let results = suspend_tracing(|| {
        let states: Vec<Tensor> = states.iter().map(|state| state.value()).collect();
        crate::record::without_recording(|| graph.run(&states))
    })?;
    Ok(results[0].clone())
}

impl Tracer {
    fn add_value(&mut self, spec: Spec, origin: Origin) -> ValueId {
        let id = ValueId(self.graph.values.len() as u32);
        self.graph.values.push(GraphValue { spec, origin });
        id
    }

    /// A value that the caller provides; its position among the graph's inputs is set later.
    fn provided(&mut self, spec: Spec) -> ValueId {
        self.add_value(spec, Origin::Input(usize::MAX))
    }

    fn tensor(&self, value: ValueId) -> Tensor {
        Tensor::traced(self.graph.spec(value).clone(), ValueRef { trace: self.trace, value })
    }

    fn read(&mut self, state: &Arc<dyn ExternalState>) -> Option<Tensor> {
        let last_write = self.writes.iter().flatten().find(|write| write.state.id() == state.id());
        if let Some(write) = last_write {
            return Some(self.tensor(write.value));
        }
        self.external.as_ref()?;
        let i = self.state(state);
        let read = &self.external.as_ref()?.states[i];
        Some(self.tensor(read.last_write.unwrap_or(read.input)))
    }

    fn write(&mut self, state: &Arc<dyn ExternalState>, value: &Tensor) -> Result<()> {
        let value = self.value_of(value)?;
        if let Some(writes) = &mut self.writes {
            match writes.iter_mut().find(|write| write.state.id() == state.id()) {
                Some(write) => write.value = value,
                None => writes.push(StateWrite { state: state.clone(), value }),
            }
            return Ok(());
        }
        let i = self.state(state);
        if let Some(external) = &mut self.external {
            external.states[i].last_write = Some(value);
        }
        Ok(())
    }

    /// The result of a trace that is not a function's.
    fn traced(mut self) -> Traced {
        let captures = self.take_captures();
        let mut writes = Vec::new();
        for write in self.writes.into_iter().flatten() {
            self.graph.outputs.push(write.value);
            writes.push(write.state);
        }
        Traced { graph: self.graph, captures, writes }
    }

    fn take_captures(&mut self) -> Vec<Tensor> {
        let captures = std::mem::take(&mut self.captures);
        captures.iter().for_each(|&(id, _)| self.graph.add_input(id));
        captures.into_iter().map(|(_, tensor)| tensor).collect()
    }

    /// The position of a state among those used so far; it is added if it is new.
    fn state(&mut self, state: &Arc<dyn ExternalState>) -> usize {
        let known =
            |external: &ExternalUses| external.states.iter().position(|used| used.state.id() == state.id());
        if let Some(i) = self.external.as_ref().and_then(known) {
            return i;
        }
        let input = self.provided(state.spec().clone());
        let Some(external) = &mut self.external else { return 0 };
        external.states.push(StateRead { state: state.clone(), input, last_write: None });
        external.states.len() - 1
    }

    /// The subgraph that computes a value from what is known before any call: constants, and states, which are its inputs. Keys
    /// that it depends on are taken now and become constants.
    fn known_part(&mut self, value: ValueId) -> Result<(Graph, Vec<Arc<dyn ExternalState>>)> {
        let Some(external) = &mut self.external else {
            return Ok((self.graph.part(&[], &[value])?, Vec::new()));
        };
        let states: Vec<ValueId> = external.states.iter().map(|read| read.input).collect();
        let keys = external.keys.iter().map(|key| key.input);
        let part = self.graph.part(&states.iter().copied().chain(keys).collect::<Vec<_>>(), &[value])?;
        let is_read =
            |id: &ValueId| part.outputs.contains(id) || part.nodes.iter().any(|n| n.inputs.contains(id));
        let mut read = part.inputs[states.len()..].iter().map(is_read);
        let mut kept = Vec::new();
        for key in std::mem::take(&mut external.keys) {
            if read.next() == Some(true) {
                let numbers = Tensor::from_slice(&key.source.next(), [2])?;
                self.graph.values[key.input.index()].origin = Origin::Constant(numbers);
            } else {
                kept.push(key);
            }
        }
        external.keys = kept;
        let used = external.states.iter().map(|read| read.state.clone()).collect();
        Ok((self.graph.part(&states, &[value])?, used))
    }

    fn captured(&mut self, tensor: &Tensor) -> ValueId {
        if let Some((id, _)) = self.captures.iter().find(|(_, t)| t.same_value_and_links(tensor)) {
            return *id;
        }
        let id = self.provided(tensor.spec().clone());
        self.captures.push((id, tensor.clone()));
        id
    }

    /// The id of a tensor in this graph; an external tensor becomes a constant or a captured input.
    fn value_of(&mut self, tensor: &Tensor) -> Result<ValueId> {
        match tensor.traced_value() {
            Some(value) if value.trace == self.trace => Ok(value.value),
            Some(value) if !self.enclosing.contains(&value.trace) => Err(leaked()),
            Some(_) => Ok(self.captured(tensor)),
            None if self.captures_constants
                && (tensor.rank() > 0 || tensor.is_tracked() || tensor.is_shared()) =>
            {
                Ok(self.captured(tensor))
            }
            None => {
                let key = tensor.identity();
                if let Some(&id) = self.constants.get(&key) {
                    return Ok(id);
                }
                // Without links: a graph may outlive the tape that recorded the tensor.
                let id = self.add_value(tensor.spec().clone(), Origin::Constant(tensor.without_links()));
                self.constants.insert(key, id);
                Ok(id)
            }
        }
    }
}

#[cold]
fn leaked() -> Error {
    Error::new(
        ErrorKind::Graph,
        "a traced tensor must be used inside its trace, got one of a trace that has ended",
    )
    .help("return it from the traced function instead of storing it")
}
