//! Following calls: who wants to know of the ops that a thread applies, and the links they leave on tensors.
//!
//! A [`Recorder`] (a tape, a forward accumulator) is pushed onto the thread's stack. From then on the choke point tells
//! it of every call that has an input it follows, and links the results to it. A thread without recorders, and a call
//! whose inputs nobody follows, pay nothing.

use crate::apply::{Outputs, with_specs};
use crate::error::Result;
use crate::gradient::{Differentiable, SavedValue, Saves, Set, VjpCall};
use crate::graph;
use crate::mode::{self, with_source_location};
use crate::op::Op;
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::any::Any;
use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use taut_memory::Location;

/// A value that a recorder follows: an output of one of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot {
    /// The entry's number.
    pub entry: u32,
    /// Which of its outputs.
    pub output: u32,
}

/// Follows the calls of the thread that pushed it.
///
/// Links count as uses of an entry: [`Recorder::retain`] and [`Recorder::release`] are called as tensors come and go,
/// on whatever thread that happens.
pub trait Recorder: Send + Sync {
    /// The slot of a watched tensor: one that was there before anybody recorded how it came about.
    fn leaf(&self, mark: u64) -> Option<Slot>;

    /// The slot of a tensor that others follow and this one does not yet. Asked once nothing else is known of it.
    fn track(&self, _tensor: &Tensor) -> Option<Slot> {
        None
    }

    /// Whether it can be asked only once, so that nothing of its own walk back needs to be followed by itself.
    fn is_single_use(&self) -> bool {
        false
    }

    /// Takes note of a call. Returns the number of a new entry, whose outputs the call's results will be linked to; the
    /// entry starts with one use per floating-point output.
    fn record_op(&self, call: &RecordedCall<'_>) -> Result<Option<u32>>;

    /// Takes note that a followed value went into an op that has no gradient.
    fn blocked(&self, call: &RecordedCall<'_>);

    /// Says how the results of an entry look to the other recorders, when there are several.
    fn link_outputs(&self, entry: u32, outputs: &[Tensor]);

    /// Takes note that a variable is read. Returns its slot, used once more, if it is followed.
    fn access(&self, variable: &dyn Any) -> Option<Slot>;

    /// One more use of an entry.
    fn retain(&self, entry: u32);

    /// One use less.
    fn release(&self, entry: u32);
}

/// A call that a recorder is told of.
pub struct RecordedCall<'a> {
    /// The op.
    pub op: &'a dyn Op,
    /// The line that called it.
    pub at: Location,
    /// The inputs. Those that are not in `kept` may have lost their memory to the output.
    pub inputs: &'a [Tensor],
    /// The inputs that have to be kept, for this recorder or another.
    pub kept: &'a [Option<Tensor>],
    /// The outputs, without a link to this recorder.
    pub outputs: &'a [Tensor],
    /// What [`Differentiable::residual`] made.
    pub residual: Option<&'a Tensor>,
    /// The slots of the inputs on this recorder, where it follows them.
    pub slots: &'a [Option<Slot>],
    /// The inputs that the recorder follows.
    pub wanted: Set,
    /// What of the call is kept for its gradient.
    pub saves: Saves,
}

/// A tensor's place on a recorder.
pub(crate) struct Link {
    recorder: Arc<dyn Recorder>,
    slot: Slot,
}

pub(crate) type Links = SmallVec<[Link; 1]>;

impl Link {
    /// Whether it is the same place with the same recorder.
    pub(crate) fn is_same(&self, other: &Link) -> bool {
        self.slot == other.slot && self.is_of(&*other.recorder)
    }

    fn is_of(&self, recorder: &dyn Recorder) -> bool {
        same(&*self.recorder, recorder)
    }
}

impl Clone for Link {
    fn clone(&self) -> Link {
        self.recorder.retain(self.slot.entry);
        Link { recorder: self.recorder.clone(), slot: self.slot }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.recorder.release(self.slot.entry);
    }
}

fn same(a: &dyn Recorder, b: &dyn Recorder) -> bool {
    std::ptr::addr_eq(a, b)
}

/// A recorder on the stack.
struct Active {
    recorder: Arc<dyn Recorder>,
    /// How many pieces of work, one in the other, it is not told of.
    muted: u32,
    /// How many bodies were being traced when it was pushed. It is told of the op that holds a body, not of the body.
    bodies: usize,
}

thread_local! {
    static STACK: RefCell<Vec<Active>> = const { RefCell::new(Vec::new()) };
}

/// Changes the stack of recorders. A thread that is ending has none.
fn change<R: Default>(act: impl FnOnce(&mut Vec<Active>) -> R) -> R {
    let changed = STACK.try_with(|stack| {
        let mut stack = stack.borrow_mut();
        let result = act(&mut stack);
        mode::set(mode::RECORDING, stack.iter().any(|active| active.muted == 0));
        result
    });
    changed.unwrap_or_default()
}

/// The recorders that are told, outermost first.
fn active_recorders() -> SmallVec<[Arc<dyn Recorder>; 2]> {
    STACK.with_borrow(|stack| {
        stack.iter().filter(|active| active.muted == 0).map(|active| active.recorder.clone()).collect()
    })
}

/// Tells a recorder of every call on this thread from now on.
pub fn push(recorder: Arc<dyn Recorder>) {
    let bodies = graph::body_depth();
    change(|stack| stack.push(Active { recorder, muted: 0, bodies }));
}

/// Tells it no longer. Returns whether it was told.
pub fn pop(recorder: &dyn Recorder) -> bool {
    change(|stack| {
        let found = stack.iter().rposition(|active| same(&*active.recorder, recorder));
        found.map(|i| stack.remove(i)).is_some()
    })
}

/// Tells a recorder of what `work` does.
pub fn with<R>(recorder: &Arc<dyn Recorder>, work: impl FnOnce() -> R) -> R {
    struct Pop<'a>(&'a dyn Recorder);
    impl Drop for Pop<'_> {
        fn drop(&mut self) {
            pop(self.0);
        }
    }
    push(recorder.clone());
    let _pop = Pop(&**recorder);
    work()
}

/// Whether a recorder is told of this thread's calls.
pub fn is_active(recorder: &dyn Recorder) -> bool {
    STACK.with_borrow(|stack| {
        stack.iter().any(|active| active.muted == 0 && same(&*active.recorder, recorder))
    })
}

/// Whether anybody is told of this thread's calls.
pub fn is_recording() -> bool {
    mode::is(mode::RECORDING)
}

/// Runs `work` without telling the recorders for which `silent` holds; they are given with their place from the
/// innermost, which is 0. One that ends meanwhile has ended.
fn without<R>(silent: impl Fn(usize, &dyn Recorder) -> bool, work: impl FnOnce() -> R) -> R {
    struct Unmute(SmallVec<[Arc<dyn Recorder>; 2]>);
    impl Unmute {
        fn change(&self, change_muted: impl Fn(&mut u32)) {
            change(|stack| {
                for active in stack.iter_mut() {
                    if self.0.iter().any(|muted| same(&**muted, &*active.recorder)) {
                        change_muted(&mut active.muted);
                    }
                }
            });
        }
    }
    impl Drop for Unmute {
        fn drop(&mut self) {
            self.change(|muted| *muted = muted.saturating_sub(1));
        }
    }
    let muted = STACK.with_borrow(|stack| {
        let places =
            stack.iter().rev().enumerate().filter(|(place, active)| silent(*place, &*active.recorder));
        Unmute(places.map(|(_, active)| active.recorder.clone()).collect())
    });
    muted.change(|muted| *muted += 1);
    let result = work();
    drop(muted);
    result
}

/// Runs `work` without telling this recorder.
pub fn paused<R>(recorder: &dyn Recorder, work: impl FnOnce() -> R) -> R {
    without(|_, other| same(other, recorder), work)
}

/// Runs `work` without telling this recorder, nor those that were pushed after it.
pub fn pause_from<R>(recorder: &dyn Recorder, work: impl FnOnce() -> R) -> R {
    let place = STACK.with_borrow(|stack| stack.iter().rev().position(|a| same(&*a.recorder, recorder)));
    without(|i, _| place.is_some_and(|place| i <= place), work)
}

/// Whether the only one that is told can be asked only once.
pub fn has_single_use_recorder() -> bool {
    let told = active_recorders();
    told.len() == 1 && told[0].is_single_use()
}

/// Tells those who follow the inputs of a call that it was made, with these results. How they were really made is
/// nobody's business: they are linked to this call alone. What is `kept` counts as outputs after those, which nobody sees
/// but [`Differentiable::saves`].
pub fn record_completed(
    op: &dyn Op,
    inputs: &mut [Tensor],
    outputs: Vec<Tensor>,
    kept: Vec<Tensor>,
    at: Location,
) -> Result<Vec<Tensor>> {
    let at = mode::source_location(at);
    let visible = outputs.len();
    let all: Outputs = outputs.into_iter().chain(kept).map(|output| detached(&output)).collect();
    let followed = is_recording() && inputs.iter().any(Tensor::is_tracked);
    let all = if followed { record_op(op, inputs, at, |_, _| Ok(all))? } else { all };
    let mut outputs = all.into_vec();
    outputs.truncate(visible);
    Ok(outputs)
}

/// Runs `work` without telling anybody.
pub fn without_recording<R>(work: impl FnOnce() -> R) -> R {
    if is_recording() { without(|_, _| true, work) } else { work() }
}

/// A tensor's slot on a recorder, if the recorder follows it.
pub fn slot_of(tensor: &Tensor, recorder: &dyn Recorder) -> Option<Slot> {
    match tensor.links().iter().find(|link| link.is_of(recorder)) {
        Some(link) => Some(link.slot),
        None if tensor.is_tracked() => {
            let mark = tensor.mark();
            let leaf = if mark == 0 { None } else { recorder.leaf(mark) };
            leaf.or_else(|| recorder.track(tensor))
        }
        None => None,
    }
}

/// Whether somebody who is told of this thread's calls follows a tensor.
pub fn is_tracked(tensor: &Tensor) -> bool {
    tensor.is_tracked() && active_recorders().iter().any(|recorder| slot_of(tensor, &**recorder).is_some())
}

/// A tensor's own number, for recorders that watch it.
pub fn mark(tensor: &Tensor) -> u64 {
    static MARKS: AtomicU64 = AtomicU64::new(1);
    match tensor.mark() {
        0 => tensor.set_mark(MARKS.fetch_add(1, Ordering::Relaxed)),
        mark => mark,
    }
}

/// The value of a variable, as it was just read: followed by the recorders that follow the variable.
pub fn accessed(variable: &dyn Any, value: &Tensor) -> Tensor {
    if !is_recording() {
        return value.clone();
    }
    let link = |recorder: Arc<dyn Recorder>| Some(Link { slot: recorder.access(variable)?, recorder });
    let links: Links = active_recorders().into_iter().filter_map(link).collect();
    if links.is_empty() { value.clone() } else { value.with_links(links) }
}

/// The tensor with a link to this slot, which counts as a use that the recorder has been told of.
pub fn linked(tensor: Tensor, recorder: Arc<dyn Recorder>, slot: Slot) -> Tensor {
    tensor.linked(Link { recorder, slot })
}

/// The same value, not followed by anybody.
pub fn detached(tensor: &Tensor) -> Tensor {
    tensor.unlinked()
}

/// The same value, not followed by this recorder.
pub fn detached_from(tensor: &Tensor, recorder: &dyn Recorder) -> Tensor {
    if !tensor.links().iter().any(|link| link.is_of(recorder)) {
        return tensor.clone();
    }
    tensor.with_links(tensor.links().iter().filter(|link| !link.is_of(recorder)).cloned().collect())
}

struct ActiveRecorder {
    recorder: Arc<dyn Recorder>,
    slots: SmallVec<[Option<Slot>; 3]>,
    wanted: Set,
    saves: Option<Saves>,
}

/// Runs a call and tells those who follow its inputs.
pub(crate) fn record_op(
    op: &dyn Op,
    inputs: &mut [Tensor],
    at: Location,
    run: impl FnOnce(&dyn Op, &mut [Tensor]) -> Result<Outputs>,
) -> Result<Outputs> {
    let mut active: SmallVec<[ActiveRecorder; 2]> = SmallVec::new();
    let bodies = if mode::is(mode::TRACING) { graph::body_depth() } else { 0 };
    STACK.with_borrow(|stack| {
        let told = stack.iter().filter(|active| active.muted == 0 && active.bodies >= bodies);
        for recorder in told.map(|active| &active.recorder) {
            let (mut slots, mut wanted) = (SmallVec::new(), Set::NONE);
            for (i, input) in inputs.iter().enumerate() {
                let slot = if input.dtype().is_float() { slot_of(input, &**recorder) } else { None };
                if slot.is_some() {
                    wanted = wanted.with(i);
                }
                slots.push(slot);
            }
            if !wanted.is_empty() {
                active.push(ActiveRecorder { recorder: recorder.clone(), slots, wanted, saves: None });
            }
        }
    });
    if active.is_empty() {
        return run(op, inputs);
    }
    let wanted = active.iter().fold(Set::NONE, |set, active| set.union(active.wanted));
    let keeping = match op.gradient() {
        None => None,
        Some(rule) => with_specs(inputs, |specs| rule.forward_with_residuals(wanted, specs))?,
    };
    let visible = match &keeping {
        None => usize::MAX,
        Some(_) => with_specs(inputs, |specs| op.infer(specs))?.len(),
    };
    let op = keeping.as_ref().map_or(op, |keeping| &**keeping);
    let rule = op.gradient();
    active.iter_mut().for_each(|active| active.saves = rule.and_then(|rule| rule.saves(active.wanted)));

    let all = active.iter().filter_map(|f| f.saves).fold(Saves::NOTHING, Saves::and);
    let survive = all.inputs.union(all.reads);
    let kept: SmallVec<[Option<Tensor>; 3]> =
        inputs.iter().enumerate().map(|(i, input)| survive.has(i).then(|| input.clone())).collect();
    let mut outputs = run(op, inputs)?;
    let residual = if all.residual { residual(rule, inputs, &kept, &outputs, wanted, at)? } else { None };

    let several = active.len() > 1;
    let mut entries: SmallVec<[(Arc<dyn Recorder>, u32); 2]> = SmallVec::new();
    for ActiveRecorder { recorder, slots, wanted, saves } in active {
        let call = RecordedCall {
            op,
            at,
            inputs,
            kept: &kept,
            outputs: &outputs,
            residual: residual.as_ref(),
            slots: &slots,
            wanted,
            saves: saves.unwrap_or_default(),
        };
        if saves.is_none() {
            recorder.blocked(&call);
            continue;
        }
        let Some(entry) = recorder.record_op(&call)? else { continue };
        let link = |(output, result): (usize, Tensor)| {
            let slot = Slot { entry, output: output as u32 };
            let follow = result.dtype().is_float();
            if follow { result.linked(Link { recorder: recorder.clone(), slot }) } else { result }
        };
        outputs = outputs.into_iter().enumerate().map(link).collect();
        if several && saves.is_some_and(|saves| !saves.outputs.is_empty()) {
            entries.push((recorder, entry));
        }
    }
    for (recorder, entry) in entries {
        recorder.link_outputs(entry, &outputs);
    }
    outputs.truncate(visible);
    Ok(outputs)
}

/// What an op makes of its call for the gradient; nobody follows how.
fn residual(
    rule: Option<&dyn Differentiable>,
    inputs: &[Tensor],
    kept: &[Option<Tensor>],
    outputs: &[Tensor],
    wanted: Set,
    at: Location,
) -> Result<Option<Tensor>> {
    let Some(rule) = rule else { return Ok(None) };
    let inputs: SmallVec<[SavedValue; 3]> = inputs
        .iter()
        .zip(kept)
        .map(|(t, kept)| SavedValue { spec: t.spec().clone(), kept: kept.clone() })
        .collect();
    let mut outputs: SmallVec<[SavedValue; 1]> =
        outputs.iter().map(|t| SavedValue { spec: t.spec().clone(), kept: Some(t.clone()) }).collect();
    let call = VjpCall {
        inputs: &inputs,
        outputs: &mut outputs,
        residual: None,
        wanted,
        gradients: SmallVec::new(),
    };
    without_recording(|| with_source_location(None, at, || rule.residual(&call)))
}
