//! Forward mode: derivatives along a direction, computed with the values.

use crate::checkpoint::optimization_barrier;
use crate::custom::zeros;
use crate::record::ById;
use crate::structure::{DenseGradient, GradientSource, Structure};
use crate::tape::{GradientRequest, GradientTape};
use crate::variable::Variable;
use smallvec::SmallVec;
use std::any::Any;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use taut_core::record::{self, RecordSlot, RecordedCall, Recorder, slot_of};
use taut_core::{Error, Result, SavedValue, Tensor, VjpCall, with_source_location};
use taut_memory::Location;

type Ids = HashMap<u64, RecordSlot, BuildHasherDefault<ById>>;

/// The tangents of tracked values: their derivatives along the tangents of the primals.
#[derive(Default)]
struct Tangents(Mutex<TangentState>);

#[derive(Default)]
struct TangentState {
    /// A tangent per output; `None` once no tensor links to the entry.
    entries: Vec<Option<SmallVec<[Option<Tensor>; 1]>>>,
    uses: Vec<u32>,
    tensors: Ids,
    variables: Ids,
}

impl Tangents {
    fn state(&self) -> MutexGuard<'_, TangentState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, tangents: SmallVec<[Option<Tensor>; 1]>, uses: u32) -> u32 {
        let mut state = self.state();
        state.entries.push(Some(tangents));
        state.uses.push(uses);
        (state.entries.len() - 1) as u32
    }

    fn get(&self, slot: RecordSlot) -> Option<Tensor> {
        let state = self.state();
        state.entries.get(slot.entry as usize)?.as_ref()?.get(slot.output as usize)?.clone()
    }
}

impl Recorder for Tangents {
    fn leaf(&self, watch_id: u64) -> Option<RecordSlot> {
        self.state().tensors.get(&watch_id).copied()
    }

    /// A vjp rule is linear in the cotangents; its own gradient maps tangents forward.
    fn record_op(&self, call: &RecordedCall<'_>) -> Result<Option<u32>> {
        let tangents: SmallVec<[Option<Tensor>; 2]> =
            call.slots.iter().map(|slot| self.get((*slot)?)).collect();
        let work = || -> Result<SmallVec<[Option<Tensor>; 1]>> {
            let tape = GradientTape::new();
            let mut seeds: SmallVec<[Option<Tensor>; 1]> = SmallVec::new();
            for output in call.outputs {
                // Each needs a tensor of its own: the tape distinguishes them by identity.
                let float = output.dtype().is_inexact();
                seeds.push(float.then(|| zeros(output.spec())).transpose()?);
            }
            tape.watch(&seeds[..]);
            let inputs: SmallVec<[SavedValue; 3]> = (call.inputs.iter().enumerate())
                .map(|(i, t)| SavedValue {
                    spec: t.spec().clone(),
                    value: call.saved_inputs[i].clone().filter(|_| call.saves.inputs.has(i)),
                })
                .collect();
            let mut outputs: SmallVec<[SavedValue; 1]> = (call.outputs.iter().enumerate())
                .map(|(i, t)| SavedValue {
                    spec: t.spec().clone(),
                    value: call.saves.outputs.has(i).then(|| t.clone()),
                })
                .collect();
            let mut backward = VjpCall {
                inputs: &inputs,
                outputs: &mut outputs,
                residual: call.residual,
                wanted: call.wanted,
                gradients: seeds.clone(),
                sums: SmallVec::new(),
            };
            let Some(rule) = call.op.gradient() else { return Ok(SmallVec::new()) };
            let gradients = rule.vjp(&mut backward)?;
            let (mut targets, mut along) = (Vec::new(), Vec::new());
            for (gradient, tangent) in gradients.into_iter().zip(tangents) {
                if let (Some(gradient), Some(tangent)) = (gradient, tangent) {
                    targets.push(gradient.dense()?);
                    along.push(Some(tangent));
                }
            }
            let request = GradientRequest { output_gradients: Some(along), ..GradientRequest::default() };
            let sources: Vec<GradientSource> =
                seeds.iter().flatten().cloned().map(GradientSource::Tensor).collect();
            let mut found = tape.gradient_list(&targets, &sources, request)?.into_iter();
            seeds
                .iter()
                .map(|seed| match seed {
                    None => Ok(None),
                    Some(_) => found.next().flatten().map(taut_core::Gradient::dense).transpose(),
                })
                .collect()
        };
        let outputs = record::pause_from(self, || with_source_location(Some(call.op.name()), call.at, work))?;
        if outputs.iter().all(Option::is_none) {
            return Ok(None);
        }
        let uses = call.outputs.iter().filter(|output| output.dtype().is_inexact()).count() as u32;
        Ok(Some(self.push(outputs, uses)))
    }

    fn blocked(&self, _call: &RecordedCall<'_>) {}

    fn link_outputs(&self, _entry: u32, _outputs: &[Tensor]) {}

    fn access(&self, variable: &dyn Any) -> Option<RecordSlot> {
        let variable = variable.downcast_ref::<Variable>()?;
        let slot = self.state().variables.get(&variable.key()).copied()?;
        self.retain(slot.entry);
        Some(slot)
    }

    fn retain(&self, entry: u32) {
        if let Some(uses) = self.state().uses.get_mut(entry as usize) {
            *uses += 1;
        }
    }

    fn release(&self, entry: u32) {
        let mut state = self.state();
        let i = entry as usize;
        let Some(Some(_)) = state.entries.get(i) else { return };
        state.uses[i] -= 1;
        if state.uses[i] == 0 {
            let dead = state.entries[i].take();
            while let Some(None) = state.entries.last() {
                state.entries.pop();
                state.uses.pop();
            }
            drop(state);
            drop(dead);
        }
    }
}

/// Forward-mode derivatives: Jacobian-vector products, computed together with the values. Cheaper than a [`GradientTape`] for
/// functions of few inputs and many outputs.
///
/// ```
/// use taut_autodiff::ForwardAccumulator;
/// use taut_core::{Tensor, ops::binary::mul};
/// let x = Tensor::from_slice(&[1.0f64, 2.0], [2])?;
/// let along = Tensor::from_slice(&[1.0f64, 0.5], [2])?;
/// let forward = ForwardAccumulator::new(&x, &along)?;
/// let y = mul(&x, &x)?;
/// assert_eq!(forward.jvp(&y).unwrap().to_vec::<f64>()?, [2.0, 2.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
pub struct ForwardAccumulator {
    tangents: Arc<Tangents>,
    /// Not `Send`: it records its own thread.
    of_this_thread: PhantomData<*const ()>,
}

impl ForwardAccumulator {
    /// Tracks the primals from now on. There is one tangent per primal, of its type and shape.
    #[track_caller]
    pub fn new<P: Structure + ?Sized, T: Structure + ?Sized>(primals: &P, tangents: &T) -> Result<Self> {
        let (mut at, mut along) = (Vec::new(), Vec::new());
        primals.leaves(&mut at);
        tangents.leaves(&mut along);
        let line = Location::caller();
        if at.len() != along.len() {
            return Err(Error::value(format!(
                "expected a tangent per primal, {}, got {}",
                at.len(),
                along.len()
            ))
            .at(line));
        }
        let tracked = Tangents::default();
        for (primal, tangent) in at.iter().zip(&along) {
            if primal.spec() != tangent.spec() {
                let message =
                    format!("a tangent must be {}, like its primal, got {}", primal.spec(), tangent.spec());
                return Err(Error::shape(message).at(line));
            }
            let tangent = match tangent {
                GradientSource::Tensor(tensor) => tensor.clone(),
                GradientSource::Variable(variable) => variable.read(),
            };
            let slot = RecordSlot { entry: tracked.push(SmallVec::from_iter([Some(tangent)]), 1), output: 0 };
            let before = match primal {
                GradientSource::Tensor(tensor) => {
                    tracked.state().tensors.insert(record::watch_id(tensor), slot)
                }
                GradientSource::Variable(variable) => tracked.state().variables.insert(variable.key(), slot),
            };
            if before.is_some() {
                return Err(Error::value("primals must be distinct, got one twice").at(line));
            }
        }
        let tangents = Arc::new(tracked);
        record::push(tangents.clone());
        Ok(ForwardAccumulator { tangents, of_this_thread: PhantomData })
    }

    /// The derivative of a value along the tangents; `None` if it does not depend on the primals.
    pub fn jvp(&self, value: &Tensor) -> Option<Tensor> {
        self.tangents.get(slot_of(value, &*self.tangents)?)
    }
}

impl ForwardAccumulator {
    /// Tracks again after [`stop`](Self::stop), with the derivatives of what was computed before.
    #[track_caller]
    pub fn resume(&self) -> Result<()> {
        let was_tracking = record::pop(&*self.tangents);
        record::push(self.tangents.clone());
        if was_tracking {
            return Err(Error::value("the accumulator is already tracking").at(Location::caller()));
        }
        Ok(())
    }

    /// Stops tracking. The derivatives of what was computed stay available.
    pub fn stop(&self) {
        record::pop(&*self.tangents);
    }
}

impl Drop for ForwardAccumulator {
    fn drop(&mut self) {
        record::pop(&*self.tangents);
        let state = std::mem::take(&mut *self.tangents.state());
        drop(state);
    }
}

/// A function's value, and its derivative along the tangents (zeros where it does not depend on the primals).
#[track_caller]
pub fn jvp(
    function: impl FnOnce(&[Tensor]) -> Result<Vec<Tensor>>,
    primals: impl IntoIterator<Item = impl Into<Tensor>>,
    tangents: impl IntoIterator<Item = impl Into<Tensor>>,
) -> Result<(Vec<Tensor>, Vec<Tensor>)> {
    // Distinct tensors, even if one primal is passed twice.
    let primals = primals
        .into_iter()
        .map(|primal| optimization_barrier(&primal.into(), &[]))
        .collect::<Result<Vec<Tensor>>>()?;
    let tangents: Vec<Tensor> = tangents.into_iter().map(Into::into).collect();
    let forward = ForwardAccumulator::new(&primals, &tangents)?;
    let values = function(&primals)?;
    let along = values.iter().map(|value| forward.jvp(value).map_or_else(|| zeros(value.spec()), Ok));
    let along = along.collect::<Result<_>>()?;
    drop(forward);
    Ok((values.iter().map(record::detached).collect(), along))
}

/// The Hessian-vector product of a function: the derivative of its gradient along the vector, computed without the Hessian. A
/// result that is not a scalar is summed.
///
/// ```
/// use taut_autodiff::hvp;
/// use taut_core::{Tensor, ops::binary::mul};
/// let x = Tensor::from_slice(&[1.0f64, 2.0], [2])?;
/// let v = Tensor::from_slice(&[1.0f64, 1.0], [2])?;
/// let cube = |x: &Tensor| mul(mul(x, x)?, x);
/// assert_eq!(hvp(cube, &x, &v)?.to_vec::<f64>()?, [6.0, 12.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn hvp(function: impl FnOnce(&Tensor) -> Result<Tensor>, at: &Tensor, vector: &Tensor) -> Result<Tensor> {
    let forward = ForwardAccumulator::new(at, vector)?;
    let tape = GradientTape::new();
    tape.watch(at);
    let value = function(at)?;
    let gradient = tape.gradient(&value, at)?;
    let product = match gradient {
        Some(gradient) => forward.jvp(&Some(gradient).dense()?),
        None => None,
    };
    product.map_or_else(|| zeros(at.spec()), Ok)
}
