//! Recorders, and the links from tensors to what they recorded.
//!
//! A [`Recorder`] (a tape, a forward accumulator) is pushed onto the thread's stack. From then on [`apply`](crate::apply())
//! passes it every call that has an input it tracks, and links the results to it. A thread without recorders, and a call
//! without tracked inputs, pay nothing.

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

/// A value that a recorder tracks: an output of one of its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RecordSlot {
    /// The entry's number.
    pub entry: u32,
    /// Which of its outputs.
    pub output: u32,
}

/// Records the calls of the thread that pushed it.
///
/// Links count as uses of an entry: [`Recorder::retain`] and [`Recorder::release`] are called as linked tensors are cloned and
/// dropped, on any thread.
pub trait Recorder: Send + Sync {
    /// The slot of a watched tensor, by its [`watch_id`].
    fn leaf(&self, watch_id: u64) -> Option<RecordSlot>;

    /// The slot of a tensor that other recorders track and this one does not yet. Called after `leaf` found none.
    fn track(&self, _tensor: &Tensor) -> Option<RecordSlot> {
        None
    }

    /// Whether it computes gradients only once, so that it does not record its own backward pass.
    fn is_single_use(&self) -> bool {
        false
    }

    /// Records a call. Returns the number of a new entry, to which the call's results are then linked; the entry starts with one
    /// use per floating-point output.
    fn record_op(&self, call: &RecordedCall<'_>) -> Result<Option<u32>>;

    /// Records that a tracked value is an input of an op without a gradient.
    fn blocked(&self, call: &RecordedCall<'_>);

    /// Passes the results of an entry with the links of all recorders, if there are several.
    fn link_outputs(&self, entry: u32, outputs: &[Tensor]);

    /// Records that a variable is read. Returns its slot, with one more use, if the recorder tracks it.
    fn access(&self, variable: &dyn Any) -> Option<RecordSlot>;

    /// One more use of an entry.
    fn retain(&self, entry: u32);

    /// One use fewer.
    fn release(&self, entry: u32);
}

/// A call, as a recorder receives it.
pub struct RecordedCall<'a> {
    /// The op.
    pub op: &'a dyn Op,
    /// The line that called it.
    pub at: Location,
    /// The inputs. The output may have reused the memory of those that are not in `saved_inputs`.
    pub inputs: &'a [Tensor],
    /// The inputs that have to be saved, for this recorder or another.
    pub saved_inputs: &'a [Option<Tensor>],
    /// The outputs, without a link to this recorder.
    pub outputs: &'a [Tensor],
    /// The result of [`Differentiable::residual`].
    pub residual: Option<&'a Tensor>,
    /// The slots of the inputs that this recorder tracks.
    pub slots: &'a [Option<RecordSlot>],
    /// The inputs that this recorder tracks.
    pub wanted: Set,
    /// What of the call is saved for its gradient.
    pub saves: Saves,
}

/// A tensor's slot on a recorder.
pub(crate) struct Link {
    recorder: Arc<dyn Recorder>,
    slot: RecordSlot,
}

pub(crate) type Links = SmallVec<[Link; 1]>;

impl Link {
    /// Whether it is the same slot of the same recorder.
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
struct StackEntry {
    recorder: Arc<dyn Recorder>,
    /// How many nested calls of [`without`] mute it.
    muted: u32,
    /// How many bodies were being traced when it was pushed. It records the op that holds a body, not the ops in the body.
    bodies: usize,
}

thread_local! {
    static STACK: RefCell<Vec<StackEntry>> = const { RefCell::new(Vec::new()) };
}

/// Changes the stack of recorders. A thread that is ending has none.
fn change<R: Default>(act: impl FnOnce(&mut Vec<StackEntry>) -> R) -> R {
    let changed = STACK.try_with(|stack| {
        let mut stack = stack.borrow_mut();
        let result = act(&mut stack);
        mode::set(mode::RECORDING, stack.iter().any(|active| active.muted == 0));
        result
    });
    changed.unwrap_or_default()
}

/// The recorders that are not muted, outermost first.
fn active_recorders() -> SmallVec<[Arc<dyn Recorder>; 2]> {
    STACK.with_borrow(|stack| {
        stack.iter().filter(|active| active.muted == 0).map(|active| active.recorder.clone()).collect()
    })
}

/// Starts recording this thread's calls.
pub fn push(recorder: Arc<dyn Recorder>) {
    let bodies = graph::body_depth();
    change(|stack| stack.push(StackEntry { recorder, muted: 0, bodies }));
}

/// Stops recording. Returns whether the recorder was recording.
pub fn pop(recorder: &dyn Recorder) -> bool {
    change(|stack| {
        let found = stack.iter().rposition(|active| same(&*active.recorder, recorder));
        found.map(|i| stack.remove(i)).is_some()
    })
}

/// Runs `work` with a recorder that records its calls.
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

/// Whether a recorder records this thread's calls.
pub fn is_active(recorder: &dyn Recorder) -> bool {
    STACK.with_borrow(|stack| {
        stack.iter().any(|active| active.muted == 0 && same(&*active.recorder, recorder))
    })
}

/// Whether any recorder records this thread's calls.
pub fn is_recording() -> bool {
    mode::is(mode::RECORDING)
}

/// Runs `work` with the recorders for which `silent` holds muted; its first argument is the recorder's position from the
/// innermost, which is 0. A recorder that `work` pops stays popped.
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

/// Runs `work` with this recorder muted.
pub fn paused<R>(recorder: &dyn Recorder, work: impl FnOnce() -> R) -> R {
    without(|_, other| same(other, recorder), work)
}

/// Runs `work` with this recorder and those pushed after it muted.
pub fn pause_from<R>(recorder: &dyn Recorder, work: impl FnOnce() -> R) -> R {
    let place = STACK.with_borrow(|stack| stack.iter().rev().position(|a| same(&*a.recorder, recorder)));
    without(|i, _| place.is_some_and(|place| i <= place), work)
}

/// Whether exactly one recorder is active and it computes gradients only once.
pub fn has_single_use_recorder() -> bool {
    let active = active_recorders();
    active.len() == 1 && active[0].is_single_use()
}

/// Records a call whose results were computed by other means: the results are linked to this call alone. `residuals` count as
/// further outputs, which only [`Differentiable::saves`] names.
pub fn record_completed(
    op: &dyn Op,
    inputs: &mut [Tensor],
    outputs: Vec<Tensor>,
    residuals: Vec<Tensor>,
    at: Location,
) -> Result<Vec<Tensor>> {
    let at = mode::source_location(at);
    let visible = outputs.len();
    let all: Outputs = outputs.into_iter().chain(residuals).map(|output| detached(&output)).collect();
    let tracked = is_recording() && inputs.iter().any(Tensor::is_tracked);
    let all = if tracked { record_op(op, inputs, at, |_, _| Ok(all))? } else { all };
    let mut outputs = all.into_vec();
    outputs.truncate(visible);
    Ok(outputs)
}

/// Runs `work` with all recorders muted.
pub fn without_recording<R>(work: impl FnOnce() -> R) -> R {
    if is_recording() { without(|_, _| true, work) } else { work() }
}

/// A tensor's slot on a recorder, if the recorder tracks it.
pub fn slot_of(tensor: &Tensor, recorder: &dyn Recorder) -> Option<RecordSlot> {
    match tensor.links().iter().find(|link| link.is_of(recorder)) {
        Some(link) => Some(link.slot),
        None if tensor.is_tracked() => {
            let id = tensor.watch_id();
            let leaf = if id == 0 { None } else { recorder.leaf(id) };
            leaf.or_else(|| recorder.track(tensor))
        }
        None => None,
    }
}

/// Whether an active recorder tracks a tensor.
pub fn is_tracked(tensor: &Tensor) -> bool {
    tensor.is_tracked() && active_recorders().iter().any(|recorder| slot_of(tensor, &**recorder).is_some())
}

/// A tensor's id for recorders that watch it, assigned by the first call.
pub fn watch_id(tensor: &Tensor) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    match tensor.watch_id() {
        0 => tensor.set_watch_id(NEXT.fetch_add(1, Ordering::Relaxed)),
        id => id,
    }
}

/// The value of a variable that was just read, linked to the recorders that track the variable.
pub fn accessed(variable: &dyn Any, value: &Tensor) -> Tensor {
    if !is_recording() {
        return value.clone();
    }
    let link = |recorder: Arc<dyn Recorder>| Some(Link { slot: recorder.access(variable)?, recorder });
    let links: Links = active_recorders().into_iter().filter_map(link).collect();
    if links.is_empty() { value.clone() } else { value.with_links(links) }
}

/// The tensor with a link to this slot. The recorder has counted the use already.
pub fn linked(tensor: Tensor, recorder: Arc<dyn Recorder>, slot: RecordSlot) -> Tensor {
    tensor.linked(Link { recorder, slot })
}

/// The same value without links.
pub fn detached(tensor: &Tensor) -> Tensor {
    tensor.unlinked()
}

/// The same value without a link to this recorder.
pub fn detached_from(tensor: &Tensor, recorder: &dyn Recorder) -> Tensor {
    if !tensor.links().iter().any(|link| link.is_of(recorder)) {
        return tensor.clone();
    }
    tensor.with_links(tensor.links().iter().filter(|link| !link.is_of(recorder)).cloned().collect())
}

struct ActiveRecorder {
    recorder: Arc<dyn Recorder>,
    slots: SmallVec<[Option<RecordSlot>; 3]>,
    wanted: Set,
    saves: Option<Saves>,
}

/// Runs a call and records it with the recorders that track its inputs.
pub(crate) fn record_op(
    op: &dyn Op,
    inputs: &mut [Tensor],
    at: Location,
    run: impl FnOnce(&dyn Op, &mut [Tensor]) -> Result<Outputs>,
) -> Result<Outputs> {
    let mut active: SmallVec<[ActiveRecorder; 2]> = SmallVec::new();
    let bodies = if mode::is(mode::TRACING) { graph::body_depth() } else { 0 };
    STACK.with_borrow(|stack| {
        let unmuted = stack.iter().filter(|active| active.muted == 0 && active.bodies >= bodies);
        for recorder in unmuted.map(|active| &active.recorder) {
            let (mut slots, mut wanted) = (SmallVec::new(), Set::NONE);
            for (i, input) in inputs.iter().enumerate() {
                let slot = if input.dtype().is_inexact() { slot_of(input, &**recorder) } else { None };
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
    let with_residuals = match op.gradient() {
        None => None,
        Some(rule) => with_specs(inputs, |specs| rule.forward_with_residuals(wanted, specs))?,
    };
    let visible = match &with_residuals {
        None => usize::MAX,
        Some(_) => with_specs(inputs, |specs| op.infer(specs))?.len(),
    };
    let op = with_residuals.as_ref().map_or(op, |op| &**op);
    let rule = op.gradient();
    active.iter_mut().for_each(|active| active.saves = rule.and_then(|rule| rule.saves(active.wanted)));

    let all = active.iter().filter_map(|f| f.saves).fold(Saves::NOTHING, Saves::and);
    let survive = all.inputs.union(all.reads);
    let saved: SmallVec<[Option<Tensor>; 3]> =
        inputs.iter().enumerate().map(|(i, input)| survive.has(i).then(|| input.clone())).collect();
    let mut outputs = run(op, inputs)?;
    let residual = if all.residual { residual(rule, inputs, &saved, &outputs, wanted, at)? } else { None };

    let several = active.len() > 1;
    let mut entries: SmallVec<[(Arc<dyn Recorder>, u32); 2]> = SmallVec::new();
    for ActiveRecorder { recorder, slots, wanted, saves } in active {
        let call = RecordedCall {
            op,
            at,
            inputs,
            saved_inputs: &saved,
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
            let slot = RecordSlot { entry, output: output as u32 };
            let tracked = result.dtype().is_inexact();
            if tracked { result.linked(Link { recorder: recorder.clone(), slot }) } else { result }
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

/// The residual that an op computes after its call, with all recorders muted.
fn residual(
    rule: Option<&dyn Differentiable>,
    inputs: &[Tensor],
    saved: &[Option<Tensor>],
    outputs: &[Tensor],
    wanted: Set,
    at: Location,
) -> Result<Option<Tensor>> {
    let Some(rule) = rule else { return Ok(None) };
    let inputs: SmallVec<[SavedValue; 3]> = inputs
        .iter()
        .zip(saved)
        .map(|(t, value)| SavedValue { spec: t.spec().clone(), value: value.clone() })
        .collect();
    let mut outputs: SmallVec<[SavedValue; 1]> =
        outputs.iter().map(|t| SavedValue { spec: t.spec().clone(), value: Some(t.clone()) }).collect();
    let call = VjpCall {
        inputs: &inputs,
        outputs: &mut outputs,
        residual: None,
        wanted,
        gradients: SmallVec::new(),
        sums: SmallVec::new(),
    };
    without_recording(|| with_source_location(None, at, || rule.residual(&call)))
}
