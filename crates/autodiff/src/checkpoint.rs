//! Gradient checkpointing: save the inputs of a function and recompute it in the backward pass.

use crate::custom::with_gradient_rule;
use crate::structure::GradientSource;
use crate::tape::{GradientRequest, GradientTape};
use crate::uses::record_uses;
use crate::variable::Variable;
use smallvec::SmallVec;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use taut_core::graph::trace_body;
use taut_core::ops::PassThrough;
use taut_core::ops::random::{RecordedKeys, with_recorded_keys};
use taut_core::record;
use taut_core::{
    Differentiable, Effects, Gradients, Graph, Op, Result, Saves, Set, Spec, Specs, Tensor, VjpCall,
    apply_at, is_tracing, source_location,
};
use taut_memory::Location;

type Function = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync;

/// The same value as a distinct tensor, which recorders track like the first. In a graph, the compiler does not merge what is
/// computed from it with what is computed from the original, and computes it after `after`.
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

#[derive(Clone)]
struct Recompute {
    function: Arc<Function>,
    /// How many inputs are the function's arguments; then come captured tensors, then variables.
    arguments: usize,
    captured: usize,
    variables: Vec<Variable>,
    outputs: SmallVec<[Spec; 1]>,
    keys: RecordedKeys,
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

    fn accepts_complex(&self) -> bool {
        true
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
        let saved = (0..self.arguments + self.captured).fold(Set::NONE, Set::with);
        Some(Saves { inputs: saved, ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let input = |i: usize| call.input(i).cloned();
        let after: Vec<Tensor> = call.gradients.iter().flatten().cloned().collect();
        // Distinct tensors, even if an argument was passed twice or captured as well; other tapes still track them.
        let distinct = |i: usize| optimization_barrier(&input(i)?, &after);
        let arguments: Vec<Tensor> = (0..self.arguments).map(distinct).collect::<Result<_>>()?;
        let captured = self.arguments..self.arguments + self.captured;
        let captured: Vec<Tensor> = captured.map(input).collect::<Result<_>>()?;

        let tape = GradientTape::new();
        tape.watch(&(&arguments, &captured, &self.variables));
        let (outputs, _) = with_recorded_keys(&self.keys, || (self.function)(&arguments));
        let mut sources: Vec<GradientSource> = Vec::new();
        sources.extend(arguments.into_iter().chain(captured).map(GradientSource::Tensor));
        sources.extend(self.variables.iter().cloned().map(GradientSource::Variable));
        recomputed_gradients(&tape, outputs?, &sources, call)
    }
}

/// The gradients of a call's inputs, from outputs that were recomputed under this tape.
fn recomputed_gradients(
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
    tape.gradient_list(&targets, sources, request).map(Gradients::from_vec)
}

/// Calls a function so that a tape saves only its inputs; the backward pass recomputes the rest, with the same random numbers.
///
/// Variables that the function reads and tracked tensors that it captures have gradients as well. The function must compute
/// the same values again: variables that it reads must not change between the call and the gradient.
///
/// ```
/// use taut_autodiff::{DenseGradient, GradientTape, checkpoint};
/// use taut_core::{Tensor, ops::unary::square};
/// let x = Tensor::scalar(3.0f64)?;
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let y = checkpoint([&x], |inputs| Ok(vec![square(square(&inputs[0])?)?]))?;
/// assert_eq!(tape.bytes_held(), 8); // x only, no intermediate value
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

/// The function with each call checkpointed.
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
        return if is_tracing() { trace_checkpoint(function, inputs, at) } else { function(inputs) };
    }
    let plain: Vec<Tensor> = inputs.iter().map(record::detached).collect();
    let ((outputs, keys), uses) = record::without_recording(|| {
        record_uses(|recorder| {
            let (outputs, keys) = with_recorded_keys(&RecordedKeys::default(), || function(&plain));
            // A captured tensor may be returned unchanged, without a call.
            outputs.iter().flatten().for_each(|output| {
                let _ = record::slot_of(output, recorder);
            });
            (outputs, keys)
        })
    });
    let outputs = outputs?;
    drop(plain);

    let mut all: Vec<Tensor> = inputs.to_vec();
    all.extend(uses.tensors.iter().cloned());
    all.extend(uses.variables.iter().map(Variable::read));
    let op = Recompute {
        function: function.clone(),
        arguments: inputs.len(),
        captured: uses.tensors.len(),
        variables: uses.variables,
        outputs: outputs.iter().map(|output| output.spec().clone()).collect(),
        keys,
    };
    record::record_completed(&op, &mut all, outputs, Vec::new(), at)
}

/// A checkpoint in a graph that may be differentiated later: the graph of the function, whose gradient recomputes it.
fn trace_checkpoint(function: &Arc<Function>, inputs: &[Tensor], at: Location) -> Result<Vec<Tensor>> {
    let specs: Vec<Spec> = inputs.iter().map(|input| input.spec().clone()).collect();
    let (traced, ()) = trace_body(&specs, |arguments| Ok((function(arguments)?, ())))?;
    let mut all = inputs.to_vec();
    all.extend(traced.captures);
    let outputs = traced.graph.run(&all)?;
    with_gradient_rule(Arc::new(RecomputeGraph { graph: Arc::new(traced.graph) }), &all, outputs, at)
}

/// A graph whose gradient recomputes it from its inputs.
#[derive(Clone)]
struct RecomputeGraph {
    graph: Arc<Graph>,
}

impl fmt::Debug for RecomputeGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RecomputeGraph({} nodes)", self.graph.nodes.len())
    }
}

impl Op for RecomputeGraph {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn accepts_complex(&self) -> bool {
        true
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

impl Differentiable for RecomputeGraph {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves { inputs: Set::ALL, ..Saves::NOTHING })
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let after: Vec<Tensor> = call.gradients.iter().flatten().cloned().collect();
        let distinct = |i: usize| optimization_barrier(call.input(i)?, &after);
        let inputs: Vec<Tensor> = (0..call.inputs.len()).map(distinct).collect::<Result<_>>()?;
        let tape = GradientTape::new();
        tape.watch(&inputs);
        let outputs = self.graph.run(&inputs)?;
        let sources: Vec<GradientSource> = inputs.into_iter().map(GradientSource::Tensor).collect();
        recomputed_gradients(&tape, outputs, &sources, call)
    }
}
