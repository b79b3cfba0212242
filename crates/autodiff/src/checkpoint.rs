//! Trading time for memory: keep the inputs, and do the work again when its gradient is asked for.

use crate::custom::with_gradient_rule;
use crate::structure::GradientSource;
use crate::tape::{GradientRequest, GradientTape};
use crate::variable::Variable;
use smallvec::SmallVec;
use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use taut_core::graph::trace_body;
use taut_core::ops::PassThrough;
use taut_core::ops::random::{Keys, with_keys};
use taut_core::record::{self, RecordedCall, Recorder, Slot};
use taut_core::{
    Differentiable, Effects, Gradients, Graph, Op, Result, Saves, Set, Spec, Specs, Tensor, VjpCall,
    apply_at, is_tracing, source_location,
};
use taut_memory::Location;

type Function = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync;

/// Finds out what a function uses besides its arguments: followed tensors that it captured, and variables it reads.
#[derive(Default)]
struct Spy(Mutex<Found>);

#[derive(Default)]
pub(crate) struct Found {
    tensors: Vec<Tensor>,
    pub(crate) variables: Vec<Variable>,
}

/// Does `work`, and says what it used that is followed, or that tapes would follow.
pub(crate) fn watched<R>(work: impl FnOnce(&dyn Recorder) -> R) -> (R, Found) {
    let spy = Arc::new(Spy::default());
    let result = record::with(&(spy.clone() as Arc<dyn Recorder>), || work(&*spy));
    let found = std::mem::take(&mut *spy.0.lock().unwrap_or_else(PoisonError::into_inner));
    (result, found)
}

/// The same value as a tensor of its own, which other tapes follow as they do the first. In a graph, what is computed of
/// it is computed anew, once `after` is there.
pub fn optimization_barrier(tensor: &Tensor, after: &[Tensor]) -> Result<Tensor> {
    if is_tracing() {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let barrier = PassThrough::barrier("optimization_barrier", NUMBERS.fetch_add(1, Ordering::Relaxed));
        let mut inputs: Vec<Tensor> =
            std::iter::once(tensor.clone()).chain(after.iter().map(record::detached)).collect();
        return Ok(apply_at(&barrier, &mut inputs, source_location(Location::caller()))?.swap_remove(0));
    }
    let shape: SmallVec<[isize; 4]> = tensor.shape().iter().map(|&dim| dim as isize).collect();
    taut_core::ops::shape::reshape(tensor, &shape)
}

impl Recorder for Spy {
    fn leaf(&self, _mark: u64) -> Option<Slot> {
        None
    }

    fn track(&self, tensor: &Tensor) -> Option<Slot> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if tensor.dtype().is_float() && !found.tensors.iter().any(|other| other.is_same(tensor)) {
            found.tensors.push(tensor.clone());
        }
        None
    }

    fn access(&self, variable: &dyn Any) -> Option<Slot> {
        let variable = variable.downcast_ref::<Variable>()?;
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !found.variables.iter().any(|other| other.id() == variable.id()) {
            found.variables.push(variable.clone());
        }
        None
    }

    fn record_op(&self, _call: &RecordedCall<'_>) -> Result<Option<u32>> {
        Ok(None)
    }

    fn blocked(&self, _call: &RecordedCall<'_>) {}

    fn link_outputs(&self, _entry: u32, _outputs: &[Tensor]) {}

    fn retain(&self, _entry: u32) {}

    fn release(&self, _entry: u32) {}
}

#[derive(Clone)]
struct Recompute {
    function: Arc<Function>,
    /// How many inputs are the function's own; then come what it captured, then the variables it read.
    arguments: usize,
    captured: usize,
    variables: Vec<Variable>,
    outputs: SmallVec<[Spec; 1]>,
    keys: Keys,
}

impl fmt::Debug for Recompute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Recompute({} arguments, {} variables)", self.arguments, self.variables.len())
    }
}

impl Op for Recompute {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(self.outputs.clone())
    }

    fn effects(&self) -> Effects {
        Effects::CAN_FAIL | Effects::NO_CSE
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for Recompute {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        let kept = (0..self.arguments + self.captured).fold(Set::NONE, Set::with);
        Some(Saves { inputs: kept, ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let input = |i: usize| call.input(i).cloned();
        let after: Vec<Tensor> = call.gradients.iter().flatten().cloned().collect();
        // Each argument by itself, even if one was given twice or captured too; other tapes follow it all the same.
        let alone = |i: usize| optimization_barrier(&input(i)?, &after);
        let arguments: Vec<Tensor> = (0..self.arguments).map(alone).collect::<Result<_>>()?;
        let captured = self.arguments..self.arguments + self.captured;
        let captured: Vec<Tensor> = captured.map(input).collect::<Result<_>>()?;

        let tape = GradientTape::new();
        tape.watch(&(&arguments, &captured, &self.variables));
        let (outputs, _) = with_keys(&self.keys, || (self.function)(&arguments));
        let mut sources: Vec<GradientSource> = Vec::new();
        sources.extend(arguments.into_iter().chain(captured).map(GradientSource::Tensor));
        sources.extend(self.variables.iter().cloned().map(GradientSource::Variable));
        walked(&tape, outputs?, &sources, call)
    }
}

/// The gradients of a call's inputs, from outputs that were computed again before this tape.
fn walked(
    tape: &GradientTape,
    outputs: Vec<Tensor>,
    sources: &[GradientSource],
    call: &mut VjpCall<'_>,
) -> Result<Gradients> {
    let (mut targets, mut given) = (Vec::new(), Vec::new());
    for (i, output) in outputs.into_iter().enumerate() {
        if let Some(gradient) = call.take_gradient(i) {
            targets.push(output);
            given.push(Some(gradient));
        }
    }
    let request = GradientRequest { output_gradients: Some(given), ..GradientRequest::default() };
    tape.ask_for(&targets, sources, request).map(Gradients::from_vec)
}

/// Calls a function so that a tape keeps only its inputs; the rest is computed again when the gradient is asked for,
/// with the same random numbers.
///
/// Variables that the function reads and followed tensors that it captures get their gradients too. The function must
/// compute the same again: variables that it reads must not change between the call and the gradient.
///
/// ```
/// use taut_autodiff::{Dense, GradientTape, checkpoint};
/// use taut_core::{Tensor, ops::unary::square};
/// let x = Tensor::scalar(3.0f64)?;
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let y = checkpoint([&x], |inputs| Ok(vec![square(square(&inputs[0])?)?]))?;
/// assert_eq!(tape.bytes_held(), 8); // x, and nothing from inside
/// assert_eq!(tape.gradient(&y, &x)?.dense()?.item::<f64>()?, 108.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn checkpoint(
    inputs: impl IntoIterator<Item = impl Into<Tensor>>,
    function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
) -> Result<Vec<Tensor>> {
    recompute_grad(function).call(inputs)
}

/// A function whose every call is a [`checkpoint`]: made by [`recompute_grad`].
#[derive(Clone)]
pub struct Recomputed(Arc<Function>);

/// The function with its gradient recomputed.
pub fn recompute_grad(
    function: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
) -> Recomputed {
    Recomputed(Arc::new(function))
}

impl Recomputed {
    /// Calls the function.
    #[track_caller]
    pub fn call(&self, inputs: impl IntoIterator<Item = impl Into<Tensor>>) -> Result<Vec<Tensor>> {
        let inputs: Vec<Tensor> = inputs.into_iter().map(Into::into).collect();
        call(&self.0, &inputs, Location::caller())
    }
}

fn call(function: &Arc<Function>, inputs: &[Tensor], at: Location) -> Result<Vec<Tensor>> {
    if !record::is_recording() {
        return if is_tracing() { written(function, inputs, at) } else { function(inputs) };
    }
    let plain: Vec<Tensor> = inputs.iter().map(record::detached).collect();
    let ((outputs, keys), found) = record::without_recording(|| {
        watched(|spy| {
            let (outputs, keys) = with_keys(&Keys::default(), || function(&plain));
            // What was captured may also be returned as it is.
            outputs.iter().flatten().for_each(|output| {
                let _ = record::slot_of(output, spy);
            });
            (outputs, keys)
        })
    });
    let outputs = outputs?;
    drop(plain);

    let mut all: Vec<Tensor> = inputs.to_vec();
    all.extend(found.tensors.iter().cloned());
    all.extend(found.variables.iter().map(Variable::read));
    let op = Recompute {
        function: function.clone(),
        arguments: inputs.len(),
        captured: found.tensors.len(),
        variables: found.variables,
        outputs: outputs.iter().map(|output| output.spec().clone()).collect(),
        keys,
    };
    record::record_completed(&op, &mut all, outputs, Vec::new(), at)
}

/// In a graph that somebody may differentiate later: the function's own graph is computed now, and again by the gradient.
fn written(function: &Arc<Function>, inputs: &[Tensor], at: Location) -> Result<Vec<Tensor>> {
    let specs: Vec<Spec> = inputs.iter().map(|input| input.spec().clone()).collect();
    let (traced, ()) = trace_body(&specs, |arguments| Ok((function(arguments)?, ())))?;
    let mut all = inputs.to_vec();
    all.extend(traced.captures);
    let outputs = traced.graph.run(&all)?;
    with_gradient_rule(Arc::new(Again { graph: Arc::new(traced.graph) }), &all, outputs, at)
}

/// A graph whose gradient computes it again from its inputs.
#[derive(Clone)]
struct Again {
    graph: Arc<Graph>,
}

impl fmt::Debug for Again {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Again({} nodes)", self.graph.nodes.len())
    }
}

impl Op for Again {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(self.graph.outputs.iter().map(|&output| self.graph.spec(output).clone()).collect())
    }

    fn effects(&self) -> Effects {
        Effects::CAN_FAIL | Effects::NO_CSE
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }
}

impl Differentiable for Again {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves { inputs: Set::ALL, ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let after: Vec<Tensor> = call.gradients.iter().flatten().cloned().collect();
        let alone = |i: usize| optimization_barrier(call.input(i)?, &after);
        let inputs: Vec<Tensor> = (0..call.inputs.len()).map(alone).collect::<Result<_>>()?;
        let tape = GradientTape::new();
        tape.watch(&inputs);
        let outputs = self.graph.run(&inputs)?;
        let sources: Vec<GradientSource> = inputs.into_iter().map(GradientSource::Tensor).collect();
        walked(&tape, outputs, &sources, call)
    }
}
