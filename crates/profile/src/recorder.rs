//! The hooks: what the other rooms tell, and where it is written down.

use crate::outline::Outline;
use crate::recording::{CallEvent, Change, NONE, Recording, RunEvent};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use taut_core::observe::{self, CallEnd, CallStart};
use taut_memory::{Block, Buffer, Category, Location, Watcher};
use taut_plan::Program;

static RECORDING: Mutex<Option<Recording>> = Mutex::new(None);

/// The recording that is under way.
pub(crate) fn current() -> MutexGuard<'static, Option<Recording>> {
    RECORDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Has all hooks call, or none.
pub(crate) fn listen(on: bool) {
    taut_memory::watch(on.then_some(&Hooks));
    taut_exec::observe(on.then_some(&Hooks));
    observe::set_observer(on.then_some(&Hooks));
}

/// What is under way on a thread.
#[derive(Clone, Copy)]
enum Doing {
    Call(CallStart),
    /// A run, with the number of its outline and its own.
    Run {
        outline: u32,
        run: u32,
        at: Location,
    },
    /// A run inside an op, with the number of its outline.
    Body(u32),
    /// A step, with its number, of the innermost run.
    Step {
        step: usize,
        begun: Option<CallStart>,
    },
}

#[derive(Clone, Copy)]
struct Frame {
    doing: Doing,
    /// The recording that it began in.
    generation: u64,
    start: Instant,
    /// Nanoseconds in what is inside of it.
    inside: u64,
}

thread_local! {
    static FRAMES: RefCell<Vec<Frame>> = const { RefCell::new(Vec::new()) };
    static NUMBER: Cell<u32> = const { Cell::new(0) };
    /// The recording that has heard of this thread.
    static HEARD: Cell<u64> = const { Cell::new(0) };
}

/// The number of this thread, from 1 on, in the order in which threads were first heard of.
fn thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Relaxed));
        }
        number.get()
    })
}

/// The call under way on this thread.
fn doing() -> Option<CallStart> {
    match innermost()?.doing {
        Doing::Call(begun) => Some(begun),
        Doing::Step { begun, .. } => begun,
        _ => None,
    }
}

fn push(doing: Doing, generation: u64) {
    let frame = Frame { doing, generation, start: Instant::now(), inside: 0 };
    let _ = FRAMES.try_with(|frames| frames.borrow_mut().push(frame));
}

/// What ends, when it ended, and how deep it was.
fn pop(is_wanted: impl Fn(&Doing) -> bool) -> Option<(Frame, Instant, u32)> {
    let end = Instant::now();
    FRAMES
        .try_with(|frames| {
            let mut frames = frames.borrow_mut();
            // A step that panicked is still open when its run ends.
            while let Some(frame) = frames.pop() {
                let took = end.saturating_duration_since(frame.start).as_nanos() as u64;
                if let Some(outer) = frames.last_mut() {
                    outer.inside += if matches!(frame.doing, Doing::Body(_)) { frame.inside } else { took };
                }
                if is_wanted(&frame.doing) {
                    return Some((frame, end, frames.len() as u32));
                }
            }
            None
        })
        .ok()
        .flatten()
}

/// Says who this thread is, once per recording.
fn introduce(recording: &mut Recording, thread: u32) {
    if HEARD.replace(recording.generation) != recording.generation {
        recording.thread(thread);
    }
}

/// What is under way on this thread. A thread that is ending does nothing any more.
fn innermost() -> Option<Frame> {
    FRAMES.try_with(|frames| frames.borrow().last().copied()).ok().flatten()
}

/// Calls `write` with the recording, if it is the one that a frame began in.
fn write_of<R>(generation: u64, write: impl FnOnce(&mut Recording) -> R) -> Option<R> {
    current().as_mut().filter(|recording| recording.generation == generation).map(write)
}

/// Writes down what ended: a step of a run (by number, or [`NONE`]) or something else, at a site.
fn write_call(
    (frame, end, depth): (Frame, Instant, u32),
    run: u32,
    is_inner: bool,
    site: impl FnOnce(&mut Recording) -> u32,
) {
    let thread = thread();
    write_of(frame.generation, |recording| {
        introduce(recording, thread);
        if !recording.has_room(is_inner) {
            return;
        }
        let site = site(recording);
        let (start, end) = (recording.nanos(frame.start), recording.nanos(end));
        let own = (end - start).saturating_sub(frame.inside);
        recording.calls.push(CallEvent { site, run, thread, depth, start, end, own });
    });
}

struct Hooks;

fn note(change: Change, block: Block) {
    let (thread, doing) = (thread(), doing());
    if let Some(recording) = current().as_mut() {
        introduce(recording, thread);
        recording.memory(change, block, thread, doing);
    }
}

impl Watcher for Hooks {
    fn entered(&self, block: Block) {
        note(Change::Entered, block);
    }

    fn left(&self, block: Block) {
        note(Change::Left, block);
    }

    fn moved(&self, block: Block, to: Category) {
        note(Change::Moved(to), block);
    }
}

fn generation() -> u64 {
    current().as_ref().map_or(0, |recording| recording.generation)
}

impl observe::Observer for Hooks {
    fn call_started(&self, call: CallStart) {
        push(Doing::Call(call), generation());
    }

    fn call_finished(&self, done: Option<CallEnd>) {
        let Some(ended) = pop(|doing| matches!(doing, Doing::Call(_))) else { return };
        if let Doing::Call(begun) = ended.0.doing {
            write_call(ended, NONE, false, |recording| recording.site(begun, done));
        }
    }
}

impl taut_exec::StepObserver for Hooks {
    fn run_begins(&self, program: &Program, at: Option<Location>) {
        let thread = thread();
        let known = current().as_mut().map(|recording| recording.known(program));
        // Not under the lock: ops are asked, and what they do is their own business.
        let new = if known == Some(None) { Some(Outline::new(program)) } else { None };
        let begun = current().as_mut().and_then(|recording| {
            let known = match new {
                Some(new) => recording.outline(program, new),
                None => recording.known(program),
            };
            let Some(outline) = known else {
                recording.dropped.calls += 1;
                return None;
            };
            let Some(at) = at else { return Some((Doing::Body(outline), recording.generation)) };
            let start = recording.nanos(Instant::now());
            let (end, placed, arena, outputs, steps) = (u64::MAX, u64::MAX, 0, SmallVec::new(), 0);
            let run = RunEvent { outline, at, thread, start, end, placed, arena, steps, outputs };
            let run = recording.run_begins(run);
            Some((Doing::Run { outline, run, at }, recording.generation))
        });
        // What begins must have something to end, recorded or not.
        let (doing, generation) = begun.unwrap_or((Doing::Body(NONE), 0));
        push(doing, generation);
    }

    fn run_placed(&self, arena: &Buffer, outputs: &[Buffer]) {
        let thread = thread();
        let Some(Frame { doing: Doing::Run { run, .. }, generation, .. }) = innermost() else { return };
        write_of(generation, |recording| {
            let address = arena.as_ptr().addr();
            let block = Block { address, bytes: arena.len(), category: arena.category(), line: None };
            let outputs = outputs.iter().map(|output| output.as_ptr().addr()).collect();
            recording.run_placed(run, block, outputs, thread);
        });
    }

    fn step_begins(&self, step: usize) {
        let Some(frame) = innermost() else { return };
        let (Doing::Run { outline, .. } | Doing::Body(outline)) = frame.doing else { return };
        let begun = write_of(frame.generation, |recording| {
            let step = recording.outlines.get(outline as usize)?.steps.get(step)?;
            Some(CallStart { op: step.op, gradient_of: None, at: step.at })
        });
        let begun = begun.flatten();
        push(Doing::Step { step, begun }, frame.generation);
    }

    fn step_ends(&self) {
        let Some(ended) = pop(|doing| matches!(doing, Doing::Step { .. })) else { return };
        let Doing::Step { step, .. } = ended.0.doing else { return };
        let (outline, run, is_inner) = match innermost().map(|frame| frame.doing) {
            Some(Doing::Run { outline, run, .. }) => (outline, run, false),
            Some(Doing::Body(outline)) => (outline, NONE, true),
            _ => return,
        };
        if !is_inner {
            write_of(ended.0.generation, |recording| {
                if let Some(run) = recording.runs.get_mut(run as usize) {
                    run.steps += 1;
                }
            });
        }
        let site = |recording: &mut Recording| recording.first_sites[outline as usize] + step as u32;
        write_call(ended, run, is_inner, site);
    }

    fn run_ends(&self) {
        let Some(ended) = pop(|doing| matches!(doing, Doing::Run { .. } | Doing::Body(_))) else { return };
        let Doing::Run { outline, run, at } = ended.0.doing else { return };
        write_of(ended.0.generation, |recording| {
            let end = recording.nanos(ended.1);
            if let Some(run) = recording.runs.get_mut(run as usize) {
                run.end = end;
            }
        });
        write_call(ended, NONE, false, |recording| recording.run_site(outline, at));
    }
}
