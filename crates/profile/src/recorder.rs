//! The observers of memory, calls and programs, which write events into the recording.

use crate::plan_summary::PlanSummary;
use crate::recording::{BufferChange, CallEvent, NONE, Recording, RunEvent};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use taut_core::observe::{self, CallEnd, CallStart};
use taut_memory::{Buffer, BufferObserver, Category, Location, ObservedBuffer};
use taut_plan::Program;

static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);

/// The active recording.
pub(crate) fn current() -> MutexGuard<'static, Option<Recording>> {
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sets or removes all observers.
pub(crate) fn set_observers(on: bool) {
    taut_memory::set_buffer_observer(on.then_some(&Hooks));
    taut_exec::observe(on.then_some(&Hooks));
    observe::set_observer(on.then_some(&Hooks));
}

/// What a thread is executing.
#[derive(Clone, Copy)]
enum Activity {
    Call(CallStart),
    /// The run of a program: the index of its summary, and its own.
    Run {
        summary: u32,
        run: u32,
        at: Location,
    },
    /// The run of a subgraph inside an op: the index of its summary.
    Body(u32),
    /// A step of the innermost run, by index.
    Step {
        step: usize,
        begun: Option<CallStart>,
    },
}

#[derive(Clone, Copy)]
struct Frame {
    activity: Activity,
    /// The recording in which it began.
    generation: u64,
    start: Instant,
    /// Nanoseconds spent in nested frames.
    inside: u64,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
    static NUMBER: Cell<u32> = const { Cell::new(0) };
    /// The recording that already has the name of this thread.
    static ANNOUNCED_IN: Cell<u64> = const { Cell::new(0) };
}

/// The number of this thread, from 1 on, in the order of their first events.
fn thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Relaxed));
        }
        number.get()
    })
}

/// The innermost call of this thread.
fn current_call() -> Option<CallStart> {
    match innermost()?.activity {
        Activity::Call(begun) => Some(begun),
        Activity::Step { begun, .. } => begun,
        _ => None,
    }
}

fn push(activity: Activity, generation: u64) {
    let frame = Frame { activity, generation, start: Instant::now(), inside: 0 };
    let _ = FRAMES.try_with(|frames| frames.borrow_mut().push(frame));
}

/// Pops frames up to one that matches: the frame, when it ended, and its depth.
fn pop(matches: impl Fn(&Activity) -> bool) -> Option<(Frame, Instant, u32)> {
    let end = Instant::now();
    FRAMES
        .try_with(|frames| {
            let mut frames = frames.borrow_mut();
            // A step that panicked is still open when its run ends.
            while let Some(frame) = frames.pop() {
                let took = end.saturating_duration_since(frame.start).as_nanos() as u64;
                if let Some(outer) = frames.last_mut() {
                    outer.inside +=
                        if matches!(frame.activity, Activity::Body(_)) { frame.inside } else { took };
                }
                if matches(&frame.activity) {
                    return Some((frame, end, frames.len() as u32));
                }
            }
            None
        })
        .ok()
        .flatten()
}

/// Records the name of this thread, once per recording.
fn announce(recording: &mut Recording, thread: u32) {
    if ANNOUNCED_IN.replace(recording.generation) != recording.generation {
        recording.thread(thread);
    }
}

/// The innermost frame of this thread; `None` if the thread is exiting.
fn innermost() -> Option<Frame> {
    FRAMES.try_with(|frames| frames.borrow().last().copied()).ok().flatten()
}

/// Calls `write` with the recording, if it is the one in which a frame began.
fn write_of<R>(generation: u64, write: impl FnOnce(&mut Recording) -> R) -> Option<R> {
    current().as_mut().filter(|recording| recording.generation == generation).map(write)
}

/// Records a frame that ended: a step of a run (by index), or a call or run (`run` is [`NONE`]).
fn write_call(
    (frame, end, depth): (Frame, Instant, u32),
    run: u32,
    is_inner: bool,
    site: impl FnOnce(&mut Recording) -> u32,
) {
    let thread = thread();
    write_of(frame.generation, |recording| {
        announce(recording, thread);
        if !recording.reserve_call(is_inner) {
            return;
        }
        let site = site(recording);
        let (start, end) = (recording.nanos(frame.start), recording.nanos(end));
        let own = (end - start).saturating_sub(frame.inside);
        recording.calls.push(CallEvent { site, run, thread, depth, start, end, own });
    });
}

struct Hooks;

fn note(change: BufferChange, buffer: ObservedBuffer) {
    let (thread, call) = (thread(), current_call());
    if let Some(recording) = current().as_mut() {
        announce(recording, thread);
        recording.memory(change, buffer, thread, call);
    }
}

impl BufferObserver for Hooks {
    fn allocated(&self, buffer: ObservedBuffer) {
        note(BufferChange::Allocated, buffer);
    }

    fn freed(&self, buffer: ObservedBuffer) {
        note(BufferChange::Freed, buffer);
    }

    fn recategorized(&self, buffer: ObservedBuffer, to: Category) {
        note(BufferChange::Recategorized(to), buffer);
    }
}

fn generation() -> u64 {
    current().as_ref().map_or(0, |recording| recording.generation)
}

impl observe::Observer for Hooks {
    fn call_started(&self, call: CallStart) {
        push(Activity::Call(call), generation());
    }

    fn call_finished(&self, done: Option<CallEnd>) {
        let Some(ended) = pop(|activity| matches!(activity, Activity::Call(_))) else { return };
        if let Activity::Call(begun) = ended.0.activity {
            write_call(ended, NONE, false, |recording| recording.site(begun, done));
        }
    }
}

impl taut_exec::StepObserver for Hooks {
    fn run_begins(&self, program: &Program, at: Option<Location>) {
        let thread = thread();
        let known = current().as_mut().map(|recording| recording.known(program));
        // Outside the lock, because methods of ops are called.
        let new = if known == Some(None) { Some(PlanSummary::new(program)) } else { None };
        let begun = current().as_mut().and_then(|recording| {
            let known = match new {
                Some(new) => recording.summary(program, new),
                None => recording.known(program),
            };
            let Some(summary) = known else {
                recording.dropped.calls += 1;
                return None;
            };
            let Some(at) = at else { return Some((Activity::Body(summary), recording.generation)) };
            let start = recording.nanos(Instant::now());
            let (end, placed, arena, outputs, steps) = (u64::MAX, u64::MAX, 0, SmallVec::new(), 0);
            let run = RunEvent { summary, at, thread, start, end, placed, arena, steps, outputs };
            let run = recording.run_begins(run);
            Some((Activity::Run { summary, run, at }, recording.generation))
        });
        // Every begin pushes a frame for its end to pop, recorded or not.
        let (activity, generation) = begun.unwrap_or((Activity::Body(NONE), 0));
        push(activity, generation);
    }

    fn run_placed(&self, arena: &Buffer, outputs: &[Buffer]) {
        let thread = thread();
        let Some(Frame { activity: Activity::Run { run, .. }, generation, .. }) = innermost() else { return };
        write_of(generation, |recording| {
            let address = arena.as_ptr().addr();
            let buffer =
                ObservedBuffer { address, bytes: arena.len(), category: arena.category(), location: None };
            let outputs = outputs.iter().map(|output| output.as_ptr().addr()).collect();
            recording.run_placed(run, buffer, outputs, thread);
        });
    }

    fn step_begins(&self, step: usize) {
        let Some(frame) = innermost() else { return };
        let (Activity::Run { summary, .. } | Activity::Body(summary)) = frame.activity else { return };
        let begun = write_of(frame.generation, |recording| {
            let step = recording.summaries.get(summary as usize)?.steps.get(step)?;
            Some(CallStart { op: step.op, gradient_of: None, at: step.at })
        });
        let begun = begun.flatten();
        push(Activity::Step { step, begun }, frame.generation);
    }

    fn step_ends(&self) {
        let Some(ended) = pop(|activity| matches!(activity, Activity::Step { .. })) else { return };
        let Activity::Step { step, .. } = ended.0.activity else { return };
        let (summary, run, is_inner) = match innermost().map(|frame| frame.activity) {
            Some(Activity::Run { summary, run, .. }) => (summary, run, false),
            Some(Activity::Body(summary)) => (summary, NONE, true),
            _ => return,
        };
        if !is_inner {
            write_of(ended.0.generation, |recording| {
                if let Some(run) = recording.runs.get_mut(run as usize) {
                    run.steps += 1;
                }
            });
        }
        let site = |recording: &mut Recording| recording.first_sites[summary as usize] + step as u32;
        write_call(ended, run, is_inner, site);
    }

    fn run_ends(&self) {
        let Some(ended) = pop(|activity| matches!(activity, Activity::Run { .. } | Activity::Body(_))) else {
            return;
        };
        let Activity::Run { summary, run, at } = ended.0.activity else { return };
        write_of(ended.0.generation, |recording| {
            let end = recording.nanos(ended.1);
            if let Some(run) = recording.runs.get_mut(run as usize) {
                run.end = end;
            }
        });
        write_call(ended, NONE, false, |recording| recording.run_site(summary, at));
    }
}
