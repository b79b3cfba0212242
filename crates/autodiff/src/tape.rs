//! The gradient tape.

use crate::backward::{backward, reached};
use crate::explain::{self, NoGradientReason, TapeExplanation};
use crate::record::{BlockedValue, Record, TapeEntry};
use crate::structure::{GradientSource, Structure};
use crate::variable::Variable;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use taut_core::ops::binary::add;
use taut_core::ops::creation::zeros;
use taut_core::ops::shape::broadcast_to;
use taut_core::record::{self, RecordSlot, is_active, slot_of};
use taut_core::{Error, ErrorKind, Gradient, Result, Spec, Tensor, with_source_location};
use taut_memory::Location;

/// How a tape records.
#[derive(Clone, Copy, Debug)]
pub struct TapeOptions {
    /// Whether gradients can be computed several times. The saved values then stay until the tape is dropped.
    pub persistent: bool,
    /// Whether trainable variables are watched as soon as they are read.
    pub watch_accessed_variables: bool,
}

impl Default for TapeOptions {
    fn default() -> TapeOptions {
        TapeOptions { persistent: false, watch_accessed_variables: true }
    }
}

/// The gradient of a source that the targets do not depend on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unconnected {
    /// None.
    #[default]
    None,
    /// Zeros of the source's type and shape.
    Zero,
}

/// Options of [`GradientTape::gradient_with`].
#[derive(Clone, Debug, Default)]
pub struct GradientRequest {
    /// The gradient of each target, in the order of the targets; ones if it is `None`.
    pub output_gradients: Option<Vec<Option<Tensor>>>,
    /// The gradient of a source that the targets do not depend on.
    pub unconnected: Unconnected,
}

/// Records the ops that its thread applies to watched tensors and variables, so that gradients can be computed.
///
/// It records until it is dropped or [stopped](Self::stop); a tape that is not persistent stops when a gradient is computed.
/// Trainable variables are watched as soon as they are read, tensors by [`watch`](Self::watch). Of each call it saves only
/// what the call's gradient needs, and nothing of calls that no live tensor depends on.
///
/// ```
/// use taut_autodiff::{DenseGradient, GradientTape};
/// use taut_core::Tensor;
/// let x = Tensor::scalar(3.0f32)?;
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let y = (&x * &x)?;
/// assert_eq!(tape.gradient(&y, &x)?.dense()?.item::<f32>()?, 6.0);
/// # Ok::<(), taut_core::Error>(())
/// ```
pub struct GradientTape {
    options: TapeOptions,
    inner: RefCell<Inner>,
    /// Not `Send`: it records its own thread.
    of_this_thread: PhantomData<*const ()>,
}

struct Inner {
    record: Arc<Record>,
    /// The line that computed the one gradient of a tape that is not persistent.
    used: Option<Location>,
    /// Why sources had no gradient, for `explain_none`.
    reasons: Vec<(SourceId, NoGradientReason)>,
}

impl Default for GradientTape {
    fn default() -> GradientTape {
        GradientTape::new()
    }
}

impl GradientTape {
    /// A tape that computes gradients once, and releases memory while it does.
    pub fn new() -> GradientTape {
        GradientTape::with(TapeOptions::default())
    }

    /// A tape that computes gradients any number of times.
    pub fn persistent() -> GradientTape {
        GradientTape::with(TapeOptions { persistent: true, ..TapeOptions::default() })
    }

    /// A tape with these options.
    pub fn with(options: TapeOptions) -> GradientTape {
        let record = Arc::new(Record::new(options.watch_accessed_variables, !options.persistent));
        record::push(record.clone());
        GradientTape {
            options,
            inner: RefCell::new(Inner { record, used: None, reasons: Vec::new() }),
            of_this_thread: PhantomData,
        }
    }

    pub(crate) fn record(&self) -> Arc<Record> {
        self.inner.borrow().record.clone()
    }

    /// Watches these tensors and variables from now on. Only floats have gradients; others are ignored.
    #[track_caller]
    pub fn watch<S: Structure + ?Sized>(&self, sources: &S) {
        let (mut leaves, at, record) = (Vec::new(), Location::caller(), self.record());
        sources.leaves(&mut leaves);
        for leaf in leaves {
            match leaf {
                GradientSource::Tensor(tensor) if tensor.dtype().is_inexact() => record.watch(&tensor, at),
                GradientSource::Variable(variable) if variable.dtype().is_inexact() => {
                    let _ = record.watch_variable(&variable, at);
                }
                _ => {}
            }
        }
    }

    /// The watched variables, in the order in which they were watched.
    pub fn watched_variables(&self) -> Vec<Variable> {
        self.record().watched_variables()
    }

    /// Whether it is recording.
    pub fn is_recording(&self) -> bool {
        is_active(&*self.record())
    }

    /// Runs `work` without recording it.
    pub fn stop_recording<R>(&self, work: impl FnOnce() -> R) -> R {
        record::paused(&*self.record(), work)
    }

    /// Stops recording. Gradients of what was recorded can still be computed.
    pub fn stop(&self) {
        record::pop(&*self.record());
    }

    /// Records again after [`GradientTape::stop`]. Does nothing if the tape is used up.
    pub fn resume(&self) {
        let record = self.record();
        if self.inner.borrow().used.is_none() && !is_active(&*record) {
            record::push(record);
        }
    }

    /// Drops everything recorded and watched, and continues recording.
    pub fn reset(&self) {
        let mut inner = self.inner.borrow_mut();
        let fresh = Arc::new(Record::new(self.options.watch_accessed_variables, !self.options.persistent));
        let old = std::mem::replace(&mut inner.record, fresh.clone());
        (inner.used, inner.reasons) = (None, Vec::new());
        drop(inner);
        record::pop(&*old);
        record::push(fresh);
        drop(old.take());
    }

    /// How many calls are recorded.
    pub fn num_entries(&self) -> usize {
        self.record().calls()
    }

    /// The bytes of the values saved for gradients, each buffer counted once.
    pub fn bytes_held(&self) -> usize {
        explain::bytes_held(&self.record().entries())
    }

    /// What is saved, by which op and line, and why.
    pub fn explain(&self) -> TapeExplanation {
        explain::explanation(&self.record().entries())
    }

    /// The gradients of the targets (summed, all of them and each over its elements) with respect to the sources, in
    /// the sources' structure. `None` where there is none: see [`GradientTape::explain_none`].
    #[track_caller]
    pub fn gradient<T, S>(&self, targets: &T, sources: &S) -> Result<S::Of<Option<Gradient>>>
    where
        T: Structure + ?Sized,
        S: Structure + ?Sized,
    {
        self.gradient_with(targets, sources, GradientRequest::default())
    }

    /// As [`GradientTape::gradient`], with options.
    #[track_caller]
    pub fn gradient_with<T, S>(
        &self,
        targets: &T,
        sources: &S,
        request: GradientRequest,
    ) -> Result<S::Of<Option<Gradient>>>
    where
        T: Structure + ?Sized,
        S: Structure + ?Sized,
    {
        let (mut ts, mut ss, at) = (Vec::new(), Vec::new(), Location::caller());
        targets.leaves(&mut ts);
        sources.leaves(&mut ss);
        let gradients = self.compute_at(&ts, &ss, request, at).map_err(|error| error.at(at))?;
        Ok(sources.with(&mut gradients.into_iter()))
    }

    fn compute_at(
        &self,
        targets: &[GradientSource],
        sources: &[GradientSource],
        request: GradientRequest,
        at: Location,
    ) -> Result<Vec<Option<Gradient>>> {
        with_source_location(None, at, || self.compute(targets, sources, request, at))
    }

    fn compute(
        &self,
        targets: &[GradientSource],
        sources: &[GradientSource],
        request: GradientRequest,
        at: Location,
    ) -> Result<Vec<Option<Gradient>>> {
        self.check_unused()?;
        let own = self.untracked_targets(targets, sources, request.output_gradients.as_deref())?;
        let seeds = self.seeds(targets, request.output_gradients)?;
        let pass = self.prepare_at(targets, sources, at)?;
        let connected = pass.connected();
        let found = pass.finish(seeds)?;
        for ((source, connected), gradient) in sources.iter().zip(connected).zip(&found) {
            if connected && gradient.is_none() {
                self.inner.borrow_mut().reasons.push((SourceId::of(source), NoGradientReason::NoRule));
            }
        }
        found
            .into_iter()
            .zip(own)
            .zip(sources)
            .map(|((gradient, own), source)| {
                fill(gradient.or(own.map(Gradient::from)), source, request.unconnected)
            })
            .collect()
    }

    /// The gradients of sources that are targets themselves and that the tape does not track: the sum of their output
    /// gradients.
    fn untracked_targets(
        &self,
        targets: &[GradientSource],
        sources: &[GradientSource],
        given: Option<&[Option<Tensor>]>,
    ) -> Result<Vec<Option<Tensor>>> {
        let one = |source: &GradientSource| -> Result<Option<Tensor>> {
            if self.slot(source).is_some() || !source.spec().dtype.is_inexact() {
                return Ok(None);
            }
            let mut sum = None;
            for (i, _) in targets.iter().enumerate().filter(|(_, target)| is_same(target, source)) {
                let seed = given.and_then(|given| given.get(i).cloned().flatten());
                let seed = seed.map_or_else(|| ones(source.spec()), Ok)?;
                sum = Some(match sum {
                    None => seed,
                    Some(sum) => add(sum, seed)?,
                });
            }
            Ok(sum)
        };
        sources.iter().map(one).collect()
    }

    /// The gradients of a list of targets with respect to a list of sources.
    pub fn gradient_list(
        &self,
        targets: &[Tensor],
        sources: &[GradientSource],
        request: GradientRequest,
    ) -> Result<Vec<Option<Gradient>>> {
        let targets: Vec<GradientSource> = targets.iter().cloned().map(GradientSource::Tensor).collect();
        self.compute_at(&targets, sources, request, Location::caller())
    }

    /// Prepares a backward pass. A tape that is not persistent stops recording and passes on its entries.
    #[track_caller]
    pub(crate) fn prepare(
        &self,
        targets: &[GradientSource],
        sources: &[GradientSource],
    ) -> Result<BackwardPass> {
        self.prepare_at(targets, sources, Location::caller())
    }

    fn prepare_at(
        &self,
        targets: &[GradientSource],
        sources: &[GradientSource],
        at: Location,
    ) -> Result<BackwardPass> {
        self.check_unused()?;
        let record = self.record();
        let slots = |list: &[GradientSource]| -> Vec<Option<RecordSlot>> {
            list.iter().map(|leaf| self.slot(leaf)).collect()
        };
        let (targets_at, sources_at, blocks) = (slots(targets), slots(sources), record.blocks());
        let entries = if self.options.persistent {
            record.entries()
        } else {
            self.stop();
            self.inner.borrow_mut().used = Some(at);
            // The backward pass is the only owner of the entries, and drops them as it goes.
            record.take()
        };
        let pass = BackwardPass { record, entries, sources: sources_at, targets: targets_at };
        self.inner.borrow_mut().reasons = pass.reasons(targets, sources, &blocks);
        Ok(pass)
    }

    /// Whether it is not persistent and has computed its gradient.
    pub fn is_used(&self) -> bool {
        self.inner.borrow().used.is_some()
    }

    /// Fails if the tape is used up.
    pub(crate) fn check_unused(&self) -> Result<()> {
        match self.inner.borrow().used {
            None => Ok(()),
            Some(at) => {
                let message =
                    format!("a tape that is not persistent computes gradients once, and did at {at}");
                Err(Error::new(ErrorKind::Value, message).help("make the tape persistent"))
            }
        }
    }

    /// The gradients of the targets with which the backward pass starts.
    fn seeds(
        &self,
        targets: &[GradientSource],
        given: Option<Vec<Option<Tensor>>>,
    ) -> Result<Vec<(RecordSlot, Tensor)>> {
        if let Some(given) = &given
            && given.len() != targets.len()
        {
            let message =
                format!("expected an output gradient per target, {}, got {}", targets.len(), given.len());
            return Err(Error::value(message));
        }
        let mut seeds = Vec::new();
        for (i, target) in targets.iter().enumerate() {
            let seed = given.as_ref().and_then(|given| given[i].clone());
            if let Some(seed) = &seed
                && seed.spec() != target.spec()
            {
                let message = format!(
                    "output gradient {i} must be {}, like its target, got {}",
                    target.spec(),
                    seed.spec()
                );
                return Err(Error::shape(message));
            }
            if let Some(slot) = self.slot(target) {
                seeds.push((slot, seed.map_or_else(|| ones(target.spec()), Ok)?));
            }
        }
        Ok(seeds)
    }

    /// The slot of a target or source, if the tape tracks it.
    pub(crate) fn slot(&self, source: &GradientSource) -> Option<RecordSlot> {
        let record = self.record();
        match source {
            GradientSource::Tensor(tensor) if tensor.dtype().is_inexact() => slot_of(tensor, &*record),
            GradientSource::Tensor(_) => None,
            GradientSource::Variable(variable) => record.variable(variable),
        }
    }

    /// Why the gradient of a target with respect to a source is `None`; `None` if it is not. A tape that is used up explains the
    /// gradients it computed.
    pub fn explain_none<T, S>(&self, target: &T, source: &S) -> Option<NoGradientReason>
    where
        T: Structure + ?Sized,
        S: Structure + ?Sized,
    {
        let (mut targets, mut sources) = (Vec::new(), Vec::new());
        target.leaves(&mut targets);
        source.leaves(&mut sources);
        let inner = self.inner.borrow();
        if inner.used.is_some() {
            let is_source = |(of, _): &&(SourceId, NoGradientReason)| {
                sources.iter().any(|source| *of == SourceId::of(source))
            };
            return inner.reasons.iter().find(is_source).map(|(_, why)| why.clone());
        }
        let record = inner.record.clone();
        drop(inner);
        let (entries, blocks) = (record.entries(), record.blocks());
        let slots: Vec<Option<RecordSlot>> = targets.iter().map(|target| self.slot(target)).collect();
        sources
            .iter()
            .find_map(|source| explain::why(&entries, &blocks, &targets, &slots, source, self.slot(source)))
    }
}

/// The identity of a tensor or variable, without a handle on it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SourceId {
    Tensor(usize),
    Variable(u64),
}

impl SourceId {
    fn of(source: &GradientSource) -> SourceId {
        match source {
            GradientSource::Tensor(tensor) => SourceId::Tensor(tensor.identity()),
            GradientSource::Variable(variable) => SourceId::Variable(variable.key()),
        }
    }
}

/// Whether two are the same variable, or handles of the same tensor.
fn is_same(a: &GradientSource, b: &GradientSource) -> bool {
    match (a, b) {
        (GradientSource::Tensor(a), GradientSource::Tensor(b)) => a.same_value_and_links(b),
        (GradientSource::Variable(a), GradientSource::Variable(b)) => a.key() == b.key(),
        _ => false,
    }
}

pub(crate) fn ones(spec: &Spec) -> Result<Tensor> {
    let one = Tensor::constant(1, spec.dtype)?;
    if spec.shape.rank() == 0 { Ok(one) } else { broadcast_to(one, spec.shape.clone()) }
}

fn fill(
    gradient: Option<Gradient>,
    source: &GradientSource,
    unconnected: Unconnected,
) -> Result<Option<Gradient>> {
    match (gradient, unconnected) {
        (None, Unconnected::Zero) => {
            let spec = source.spec();
            Ok(Some(zeros(spec.shape.clone(), spec.dtype)?.into()))
        }
        (gradient, _) => Ok(gradient),
    }
}

/// A backward pass that is ready to run.
pub(crate) struct BackwardPass {
    record: Arc<Record>,
    entries: Vec<Option<Arc<TapeEntry>>>,
    sources: Vec<Option<RecordSlot>>,
    pub(crate) targets: Vec<Option<RecordSlot>>,
}

impl BackwardPass {
    /// Why sources have no gradient, where they have none.
    fn reasons(
        &self,
        targets: &[GradientSource],
        sources: &[GradientSource],
        blocks: &[BlockedValue],
    ) -> Vec<(SourceId, NoGradientReason)> {
        let unconnected = sources.iter().zip(self.connected()).zip(&self.sources).filter(|((_, c), _)| !c);
        let why = |((source, _), slot): ((&GradientSource, bool), &Option<RecordSlot>)| {
            let why = explain::why(&self.entries, blocks, targets, &self.targets, source, *slot)?;
            Some((SourceId::of(source), why))
        };
        unconnected.filter_map(why).collect()
    }

    /// For each source, whether a target depends on it.
    pub(crate) fn connected(&self) -> Vec<bool> {
        let reached = reached(&self.entries, &self.targets);
        self.sources.iter().map(|source| source.is_some_and(|slot| reached[slot.entry as usize])).collect()
    }

    /// Runs, and keeps the entries for another run.
    pub(crate) fn run(&self, seeds: Vec<(RecordSlot, Tensor)>) -> Result<Vec<Option<Gradient>>> {
        backward(&self.record, self.entries.clone(), seeds, &self.sources)
    }

    /// Runs, and drops entries as it goes.
    fn finish(self, seeds: Vec<(RecordSlot, Tensor)>) -> Result<Vec<Option<Gradient>>> {
        backward(&self.record, self.entries, seeds, &self.sources)
    }
}

impl Drop for GradientTape {
    fn drop(&mut self) {
        let record = self.inner.get_mut().record.clone();
        record::pop(&*record);
        drop(record.take());
    }
}
