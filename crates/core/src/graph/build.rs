//! Tracing: the mode in which [`apply`](crate::apply()) writes ops down instead of running them.

use super::{Graph, Node, Origin, Value, ValueId};
use crate::apply::{Outputs, infer, with_specs};
use crate::error::{Error, ErrorKind, Result};
use crate::mode;
use crate::op::{Op, Spec};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::cell::RefCell;
use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

/// Names a value of a trace in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueRef {
    trace: u64,
    value: ValueId,
}

struct Tracer {
    trace: u64,
    /// The traces around this one.
    enclosing: SmallVec<[u64; 4]>,
    graph: Graph,
    captures: Vec<Tensor>,
}

thread_local! {
    static TRACERS: RefCell<Vec<Tracer>> = const { RefCell::new(Vec::new()) };
}

/// What a trace found.
#[derive(Clone, Debug)]
pub struct Traced {
    /// The graph. Its inputs are the ones asked for, then one per capture.
    pub graph: Graph,
    /// Values of an enclosing trace that the function used: the graph's further inputs.
    pub captures: Vec<Tensor>,
}

/// Calls `function` on tensors without data and writes down every op it applies.
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
    static TRACES: AtomicU64 = AtomicU64::new(0);
    let trace = TRACES.fetch_add(1, Ordering::Relaxed);

    let enclosing = TRACERS.with_borrow(|tracers| tracers.iter().map(|tracer| tracer.trace).collect());
    if let Some(spec) = inputs.iter().find(|spec| spec.shape.checked_len().is_none()) {
        return Err(Error::shape(format!("{spec} has more elements than memory has addresses")));
    }
    let mut tracer = Tracer { trace, enclosing, graph: Graph::default(), captures: Vec::new() };
    let arguments: Vec<Tensor> = inputs.iter().map(|spec| tracer.add_input(spec.clone())).collect();
    let guard = TraceGuard::enter(tracer);
    let results = function(&arguments)?;
    let mut tracer = guard.leave();
    for result in &results {
        let id = tracer.value_of(result)?;
        tracer.graph.outputs.push(id);
    }
    Ok(Traced { graph: tracer.graph, captures: tracer.captures })
}

/// Takes the tracer off the stack even if the traced function panics.
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
pub(crate) fn record(op: &dyn Op, inputs: &[Tensor], at: &'static Location<'static>) -> Result<Outputs> {
    let specs = with_specs(inputs, |inputs| infer(op, inputs))?;
    TRACERS.with_borrow_mut(|tracers| {
        let tracer = tracers.last_mut().expect("is_tracing was checked");
        let inputs = inputs.iter().map(|t| tracer.value_of(t)).collect::<Result<SmallVec<[ValueId; 3]>>>()?;
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

/// The graph that this thread is tracing, as far as it is known; `None` if it is not tracing.
pub fn current() -> Option<Graph> {
    TRACERS.with_borrow(|tracers| tracers.last().map(|tracer| tracer.graph.clone()))
}

/// The number of a tensor in the graph that this thread is tracing, if it is a value of it.
pub fn value_of(tensor: &Tensor) -> Option<ValueId> {
    let value = tensor.traced_value()?;
    TRACERS.with_borrow(|tracers| {
        tracers.last().filter(|tracer| tracer.trace == value.trace).map(|_| value.value)
    })
}

/// A value of the graph that this thread is tracing.
pub fn tensor_of(value: ValueId) -> Option<Tensor> {
    TRACERS.with_borrow(|tracers| {
        let tracer = tracers.last()?;
        let Value { spec, origin } = tracer.graph.values.get(value.index())?;
        Some(match origin {
            Origin::Constant(tensor) => tensor.clone(),
            _ => Tensor::traced(spec.clone(), ValueRef { trace: tracer.trace, value }),
        })
    })
}

impl Tracer {
    fn add_value(&mut self, spec: Spec, origin: Origin) -> ValueId {
        let id = ValueId(self.graph.values.len() as u32);
        self.graph.values.push(Value { spec, origin });
        id
    }

    fn add_input(&mut self, spec: Spec) -> Tensor {
        let id = self.add_value(spec.clone(), Origin::Input(self.graph.inputs.len()));
        self.graph.inputs.push(id);
        Tensor::traced(spec, ValueRef { trace: self.trace, value: id })
    }

    /// The number of a tensor in this graph; a tensor from outside becomes a constant or a captured input.
    fn value_of(&mut self, tensor: &Tensor) -> Result<ValueId> {
        match tensor.traced_value() {
            Some(value) if value.trace == self.trace => Ok(value.value),
            Some(value) if !self.enclosing.contains(&value.trace) => Err(leaked()),
            Some(_) => {
                let first = self.graph.inputs.len() - self.captures.len();
                if let Some(i) = self.captures.iter().position(|t| t.is_same(tensor)) {
                    return Ok(self.graph.inputs[first + i]);
                }
                self.add_input(tensor.spec().clone());
                self.captures.push(tensor.clone());
                Ok(*self.graph.inputs.last().expect("just added"))
            }
            None => {
                let known = self.graph.values.iter().position(
                    |v| matches!(&v.origin, Origin::Constant(constant) if constant.is_same(tensor)),
                );
                Ok(match known {
                    Some(i) => ValueId(i as u32),
                    None => self.add_value(tensor.spec().clone(), Origin::Constant(tensor.clone())),
                })
            }
        }
    }
}

#[cold]
fn leaked() -> Error {
    Error::new(ErrorKind::Graph, "a tensor was used outside the trace that made it")
        .help("return it from the traced function instead of storing it")
}
