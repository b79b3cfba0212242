//! The tape.

use crate::backward::{backward, reached};
use crate::explain::{self, SavedReason, TapeExplanation};
use crate::record::{Block, Entry, Record};
use crate::structure::{GradientSource, Structure};
use crate::variable::Variable;
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::Arc;
use taut_core::ops::creation::zeros;
use taut_core::ops::shape::broadcast_to;
use taut_core::record::{self, Slot, is_active, slot_of};
use taut_core::{Error, ErrorKind, Gradient, Result, Spec, Tensor, with_source_location};
use taut_memory::Location;

/// How a tape records.
#[derive(Clone, Copy, Debug)]
pub struct TapeOptions {
    /// Whether gradients can be asked for several times. What was kept for them then stays until the tape is dropped.
    pub persistent: bool,
    /// Whether trainable variables are followed as soon as they are read.
    pub watch_accessed_variables: bool,
}

impl Default for TapeOptions {
    fn default() -> TapeOptions {
        TapeOptions { persistent: false, watch_accessed_variables: true }
    }
}

/// What a gradient is where target and source are not connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unconnected {
    /// None.
    #[default]
    None,
    /// Zeros of the source's type and shape.
    Zero,
}

/// The details of a question for gradients.
#[derive(Clone, Debug, Default)]
pub struct GradientRequest {
    /// A gradient per target to begin with, in the order of the targets; ones if it is `None`.
    pub output_gradients: Option<Vec<Option<Tensor>>>,
    /// What comes back for a source that the targets do not depend on.
    pub unconnected: Unconnected,
}

/// Follows the ops that its thread applies to what it watches, so that gradients can be asked for.
///
/// It records from when it is made until it is dropped or told to [`stop`](Self::stop); one that can be asked only once
/// stops when it is.
/// Trainable variables are watched as soon as they are read; tensors are watched when asked. It keeps of each call only
/// what the call's gradient needs, and of calls that nothing depends on any more nothing at all.
///
/// ```
/// use taut_autodiff::{Dense, GradientTape};
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
    /// It records what its own thread does.
    of_this_thread: PhantomData<*const ()>,
}

struct Inner {
    record: Arc<Record>,
    /// The line that asked for the gradient that used the tape up.
    used: Option<Location>,
    /// Why sources had no gradient, for those who ask afterwards.
    reasons: Vec<(Identity, SavedReason)>,
}

impl Default for GradientTape {
    fn default() -> GradientTape {
        GradientTape::new()
    }
}

impl GradientTape {
    /// A tape that gives one answer, and gives memory back while it does.
    pub fn new() -> GradientTape {
        GradientTape::with(TapeOptions::default())
    }

    /// A tape that can be asked several times.
    pub fn persistent() -> GradientTape {
        GradientTape::with(TapeOptions { persistent: true, ..TapeOptions::default() })
    }

    /// A tape that records as the options say.
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

    /// Follows these tensors and variables from now on. What is no float has no gradient and is not followed.
    #[track_caller]
    pub fn watch<S: Structure + ?Sized>(&self, sources: &S) {
        let (mut leaves, at, record) = (Vec::new(), Location::caller(), self.record());
        sources.leaves(&mut leaves);
        for leaf in leaves {
            match leaf {
                GradientSource::Tensor(tensor) if tensor.dtype().is_float() => record.watch(&tensor, at),
                GradientSource::Variable(variable) if variable.dtype().is_float() => {
                    let _ = record.watch_variable(&variable, at);
                }
                _ => {}
            }
        }
    }

    /// The variables that are followed, in the order in which they came.
    pub fn watched_variables(&self) -> Vec<Variable> {
        self.record().watched_variables()
    }

    /// Whether it is recording.
    pub fn is_recording(&self) -> bool {
        is_active(&*self.record())
    }

    /// Does `work` without recording it.
    pub fn stop_recording<R>(&self, work: impl FnOnce() -> R) -> R {
        record::paused(&*self.record(), work)
    }

    /// Records no longer. What is there can be asked for.
    pub fn stop(&self) {
        record::pop(&*self.record());
    }

    /// Records again after [`GradientTape::stop`]. A tape that gave its one answer does not.
    pub fn resume(&self) {
        let record = self.record();
        if self.inner.borrow().used.is_none() && !is_active(&*record) {
            record::push(record);
        }
    }

    /// Forgets everything, what is watched too, and goes on recording.
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

    /// How many calls are written down.
    pub fn num_entries(&self) -> usize {
        self.record().calls()
    }

    /// How many bytes the values fill that are kept for gradients, each buffer counted once.
    pub fn bytes_held(&self) -> usize {
        explain::bytes_held(&self.record().entries())
    }

    /// What is kept, by which op and line, and why.
    pub fn explain(&self) -> TapeExplanation {
        explain::explanation(&self.record().entries())
    }

    /// The gradients of the targets (summed, all of them and each over its elements) with respect to the sources, in
    /// the sources' structure. `None` where there is none: [`GradientTape::explain_none`] says why.
    #[track_caller]
    pub fn gradient<T, S>(&self, targets: &T, sources: &S) -> Result<S::Of<Option<Gradient>>>
    where
        T: Structure + ?Sized,
        S: Structure + ?Sized,
    {
        self.gradient_with(targets, sources, GradientRequest::default())
    }

    /// As [`GradientTape::gradient`], with the details said.
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
        let gradients = self.ask(&ts, &ss, request, at).map_err(|error| error.at(at))?;
        Ok(sources.with(&mut gradients.into_iter()))
    }

    fn ask(
        &self,
        targets: &[GradientSource],
        sources: &[GradientSource],
        request: GradientRequest,
        at: Location,
    ) -> Result<Vec<Option<Gradient>>> {
        with_source_location(None, at, || self.ask_on_behalf(targets, sources, request, at))
    }

    fn ask_on_behalf(
        &self,
        targets: &[GradientSource],
        sources: &[GradientSource],
        request: GradientRequest,
        at: Location,
    ) -> Result<Vec<Option<Gradient>>> {
        self.check_unused()?;
        let seeds = self.seeds(targets, request.output_gradients)?;
        let walk = self.prepare_at(targets, sources, at)?;
        let connected = walk.connected();
        let found = walk.finish(seeds)?;
        for ((source, connected), gradient) in sources.iter().zip(connected).zip(&found) {
            if connected && gradient.is_none() {
                self.inner.borrow_mut().reasons.push((Identity::of(source), SavedReason::NoRule));
            }
        }
        found
            .into_iter()
            .zip(sources)
            .map(|(gradient, source)| fill(gradient, source, request.unconnected))
            .collect()
    }

    /// The gradients of plain lists.
    pub fn ask_for(
        &self,
        targets: &[Tensor],
        sources: &[GradientSource],
        request: GradientRequest,
    ) -> Result<Vec<Option<Gradient>>> {
        let targets: Vec<GradientSource> = targets.iter().cloned().map(GradientSource::Tensor).collect();
        self.ask(&targets, sources, request, Location::caller())
    }

    /// Gets ready to walk back. A tape that can be asked once stops recording, and has nothing any more.
    #[track_caller]
    pub(crate) fn prepare(&self, targets: &[GradientSource], sources: &[GradientSource]) -> Result<Walk> {
        self.prepare_at(targets, sources, Location::caller())
    }

    fn prepare_at(
        &self,
        targets: &[GradientSource],
        sources: &[GradientSource],
        at: Location,
    ) -> Result<Walk> {
        self.check_unused()?;
        let record = self.record();
        let slots = |list: &[GradientSource]| -> Vec<Option<Slot>> {
            list.iter().map(|leaf| self.slot(leaf)).collect()
        };
        let (targets_at, sources_at, blocks) = (slots(targets), slots(sources), record.blocks());
        let entries = if self.options.persistent {
            record.entries()
        } else {
            self.stop();
            self.inner.borrow_mut().used = Some(at);
            // What is taken is the walk's alone, to be dropped as it goes.
            record.take()
        };
        let walk = Walk { record, entries, sources: sources_at, targets: targets_at };
        self.inner.borrow_mut().reasons = walk.reasons(targets, sources, &blocks);
        Ok(walk)
    }

    /// Whether it can be asked once, and was.
    pub fn is_used(&self) -> bool {
        self.inner.borrow().used.is_some()
    }

    /// Refuses a tape that has given its one answer.
    pub(crate) fn check_unused(&self) -> Result<()> {
        match self.inner.borrow().used {
            None => Ok(()),
            Some(at) => {
                let message = format!("this tape gave its gradients already, at {at}");
                Err(Error::new(ErrorKind::Value, message).help("make it persistent to ask several times"))
            }
        }
    }

    /// The gradients of the targets to begin with.
    fn seeds(
        &self,
        targets: &[GradientSource],
        given: Option<Vec<Option<Tensor>>>,
    ) -> Result<Vec<(Slot, Tensor)>> {
        if let Some(given) = &given
            && given.len() != targets.len()
        {
            let message = format!("{} output gradients for {} targets", given.len(), targets.len());
            return Err(Error::value(message));
        }
        let mut seeds = Vec::new();
        for (i, target) in targets.iter().enumerate() {
            let seed = given.as_ref().and_then(|given| given[i].clone());
            if let Some(seed) = &seed
                && seed.spec() != spec(target)
            {
                let message =
                    format!("output gradient {i} is {}, and target {i} is {}", seed.spec(), spec(target));
                return Err(Error::shape(message));
            }
            if let Some(slot) = self.slot(target) {
                seeds.push((slot, seed.map_or_else(|| ones(spec(target)), Ok)?));
            }
        }
        Ok(seeds)
    }

    /// Where a target or source stands on this tape, if it is followed.
    pub(crate) fn slot(&self, source: &GradientSource) -> Option<Slot> {
        let record = self.record();
        match source {
            GradientSource::Tensor(tensor) if tensor.dtype().is_float() => slot_of(tensor, &*record),
            GradientSource::Tensor(_) => None,
            GradientSource::Variable(variable) => record.variable(variable),
        }
    }

    /// Why the gradient of a target with respect to a source is `None`; `None` if it is not. A tape that gave its
    /// answer explains that answer.
    pub fn explain_none<T, S>(&self, target: &T, source: &S) -> Option<SavedReason>
    where
        T: Structure + ?Sized,
        S: Structure + ?Sized,
    {
        let (mut targets, mut sources) = (Vec::new(), Vec::new());
        target.leaves(&mut targets);
        source.leaves(&mut sources);
        let inner = self.inner.borrow();
        if inner.used.is_some() {
            let asked =
                |(of, _): &&(Identity, SavedReason)| sources.iter().any(|source| *of == Identity::of(source));
            return inner.reasons.iter().find(asked).map(|(_, why)| why.clone());
        }
        let record = inner.record.clone();
        drop(inner);
        let (entries, blocks) = (record.entries(), record.blocks());
        let slots: Vec<Option<Slot>> = targets.iter().map(|target| self.slot(target)).collect();
        sources
            .iter()
            .find_map(|source| explain::why(&entries, &blocks, &targets, &slots, source, self.slot(source)))
    }
}

/// Which tensor or variable it was, without holding it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Identity {
    Tensor(usize),
    Variable(u64),
}

impl Identity {
    fn of(source: &GradientSource) -> Identity {
        match source {
            GradientSource::Tensor(tensor) => Identity::Tensor(tensor.identity()),
            GradientSource::Variable(variable) => Identity::Variable(variable.id()),
        }
    }
}

pub(crate) fn spec(source: &GradientSource) -> &Spec {
    match source {
        GradientSource::Tensor(tensor) => tensor.spec(),
        GradientSource::Variable(variable) => variable.spec(),
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
            let spec = spec(source);
            Ok(Some(zeros(spec.shape.clone(), spec.dtype)?.into()))
        }
        (gradient, _) => Ok(gradient),
    }
}

/// A walk that can begin.
pub(crate) struct Walk {
    record: Arc<Record>,
    entries: Vec<Option<Arc<Entry>>>,
    sources: Vec<Option<Slot>>,
    pub(crate) targets: Vec<Option<Slot>>,
}

impl Walk {
    /// Why sources have no gradient, where they have none.
    fn reasons(
        &self,
        targets: &[GradientSource],
        sources: &[GradientSource],
        blocks: &[Block],
    ) -> Vec<(Identity, SavedReason)> {
        let unconnected = sources.iter().zip(self.connected()).zip(&self.sources).filter(|((_, c), _)| !c);
        let why = |((source, _), slot): ((&GradientSource, bool), &Option<Slot>)| {
            let why = explain::why(&self.entries, blocks, targets, &self.targets, source, *slot)?;
            Some((Identity::of(source), why))
        };
        unconnected.filter_map(why).collect()
    }

    /// For each source, whether a target depends on it.
    pub(crate) fn connected(&self) -> Vec<bool> {
        let reached = reached(&self.entries, &self.targets);
        self.sources.iter().map(|source| source.is_some_and(|slot| reached[slot.entry as usize])).collect()
    }

    /// Walks, and keeps everything for another walk.
    pub(crate) fn run(&self, seeds: Vec<(Slot, Tensor)>) -> Result<Vec<Option<Gradient>>> {
        backward(&self.record, self.entries.clone(), seeds, &self.sources)
    }

    /// Walks, and drops everything on the way.
    fn finish(self, seeds: Vec<(Slot, Tensor)>) -> Result<Vec<Option<Gradient>>> {
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
