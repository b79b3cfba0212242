//! The recording: the events of an active profiler.

use crate::plan_summary::PlanSummary;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use taut_core::observe::{CallEnd, CallStart};
use taut_core::{Cost, Specs};
use taut_memory::{Category, Location, ObservedBuffer, Owner, live_bytes};
use taut_plan::Program;

/// How a buffer changed.
#[derive(Clone, Copy, Debug)]
pub(crate) enum BufferChange {
    /// It was allocated.
    Allocated,
    /// It was freed.
    Freed,
    /// It changed its category.
    Recategorized(Category),
    /// It was live before the recording, and this is its first event.
    Discovered,
}

/// A change of a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryEvent {
    pub(crate) time: u64,
    pub(crate) thread: u32,
    pub(crate) change: BufferChange,
    pub(crate) buffer: ObservedBuffer,
    /// The innermost call of the thread.
    pub(crate) call: Option<CallStart>,
}

/// The op, source location and output specs that several calls share.
#[derive(Clone, Debug)]
pub(crate) struct CallSite {
    pub(crate) op: &'static str,
    pub(crate) gradient_of: Option<&'static str>,
    pub(crate) at: Option<Location>,
    pub(crate) outputs: Specs,
    pub(crate) cost: Cost,
    /// Whether it is the run of a program, whose steps are calls of their own.
    pub(crate) is_run: bool,
}

/// A call, a step or a run that has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallEvent {
    pub(crate) site: u32,
    /// The run whose step it is, or [`NONE`].
    pub(crate) run: u32,
    pub(crate) thread: u32,
    pub(crate) depth: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Its time without nested calls.
    pub(crate) own: u64,
}

/// The most programs in a recording: a function that is retraced at every call would make any number of them.
const MAX_SUMMARIES: usize = 10_000;

/// No run, or one that was not recorded.
pub(crate) const NONE: u32 = u32::MAX;

/// The run of a program.
#[derive(Clone, Debug)]
pub(crate) struct RunEvent {
    pub(crate) summary: u32,
    pub(crate) at: Location,
    pub(crate) thread: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When its memory was allocated.
    pub(crate) placed: u64,
    /// The address of its arena; 0 if it has none.
    pub(crate) arena: usize,
    /// How many of its steps ended.
    pub(crate) steps: usize,
    /// The addresses of its output buffers.
    pub(crate) outputs: SmallVec<[usize; 4]>,
}

/// A moment marked with a name.
#[derive(Clone, Debug)]
pub(crate) struct MarkEvent {
    pub(crate) time: u64,
    pub(crate) name: String,
    /// The ledger's live bytes.
    pub(crate) live: usize,
}

/// The events that exceeded the capacity of the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DroppedEvents {
    /// Allocations and releases. From the first of these on, memory is unknown.
    pub memory: u64,
    /// Calls, steps and runs.
    pub calls: u64,
    /// Of these, steps inside loops and branches, which have a share of the capacity of their own.
    pub inner: u64,
    /// Marks.
    pub marks: u64,
}

impl DroppedEvents {
    /// Whether any event was dropped.
    pub fn any(&self) -> bool {
        *self != DroppedEvents::default()
    }
}

/// All recorded events.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) generation: u64,
    pub(crate) started: Instant,
    capacity: usize,
    last: u64,
    inner: usize,
    /// The memory that was live at the start.
    pub(crate) before: Vec<Owner>,
    pub(crate) memory: Vec<MemoryEvent>,
    pub(crate) memory_until: Option<u64>,
    pub(crate) calls: Vec<CallEvent>,
    pub(crate) sites: Vec<CallSite>,
    known: HashMap<(&'static str, Option<&'static str>, Location, Specs), u32>,
    pub(crate) summaries: Vec<Arc<PlanSummary>>,
    /// Per summary, the index of its first step's call site.
    pub(crate) first_sites: Vec<u32>,
    by_address: HashMap<usize, u32>,
    arenas: HashSet<usize>,
    pub(crate) runs: Vec<RunEvent>,
    run_sites: HashMap<(u32, Location), u32>,
    pub(crate) marks: Vec<MarkEvent>,
    pub(crate) threads: Vec<(u32, String)>,
    pub(crate) dropped: DroppedEvents,
}

impl Recording {
    pub(crate) fn new(generation: u64, capacity: usize, before: Vec<Owner>) -> Recording {
        Recording {
            generation,
            started: Instant::now(),
            capacity,
            last: 0,
            inner: 0,
            before,
            memory: Vec::new(),
            memory_until: None,
            calls: Vec::new(),
            sites: Vec::new(),
            known: HashMap::new(),
            summaries: Vec::new(),
            first_sites: Vec::new(),
            by_address: HashMap::new(),
            arenas: HashSet::new(),
            runs: Vec::new(),
            run_sites: HashMap::new(),
            marks: Vec::new(),
            threads: Vec::new(),
            dropped: DroppedEvents::default(),
        }
    }

    /// Nanoseconds since the start.
    pub(crate) fn nanos(&self, time: Instant) -> u64 {
        time.saturating_duration_since(self.started).as_nanos() as u64
    }

    /// A time later than all before: memory events are totally ordered.
    pub(crate) fn tick(&mut self) -> u64 {
        self.last = self.nanos(Instant::now()).max(self.last + 1);
        self.last
    }

    /// Adds the current thread, under this number.
    pub(crate) fn thread(&mut self, thread: u32) {
        let current = std::thread::current();
        let name = current.name().map_or_else(|| format!("thread {thread}"), str::to_owned);
        self.threads.push((thread, name));
    }

    pub(crate) fn memory(
        &mut self,
        change: BufferChange,
        buffer: ObservedBuffer,
        thread: u32,
        call: Option<CallStart>,
    ) {
        let time = self.tick();
        if buffer.category == Category::Arena {
            match change {
                BufferChange::Allocated | BufferChange::Discovered => _ = self.arenas.insert(buffer.address),
                BufferChange::Freed => _ = self.arenas.remove(&buffer.address),
                BufferChange::Recategorized(_) => {}
            }
        }
        if self.memory.len() >= self.capacity {
            self.memory_until.get_or_insert(time);
            self.dropped.memory += 1;
            return;
        }
        self.memory.push(MemoryEvent { time, thread, change, buffer, call });
    }

    pub(crate) fn mark(&mut self, name: String) {
        let time = self.tick();
        if self.marks.len() >= self.capacity {
            self.dropped.marks += 1;
            return;
        }
        self.marks.push(MarkEvent { time, name, live: live_bytes() });
    }

    pub(crate) fn site(&mut self, begun: CallStart, done: Option<CallEnd>) -> u32 {
        let (outputs, cost) = done.map_or((Specs::new(), Cost::default()), |done| (done.outputs, done.cost));
        let CallStart { op, gradient_of, at } = begun;
        let Recording { known, sites, .. } = self;
        *known.entry((op, gradient_of, at, outputs)).or_insert_with_key(|(.., outputs)| {
            let outputs = outputs.clone();
            sites.push(CallSite { op, gradient_of, at: Some(at), outputs, cost, is_run: false });
            sites.len() as u32 - 1
        })
    }

    /// Whether another call fits into the capacity. If not, it is counted as dropped.
    pub(crate) fn reserve_call(&mut self, is_inner: bool) -> bool {
        // The steps of a long loop must not use up the capacity for all later calls.
        let full = self.calls.len() >= self.capacity || (is_inner && self.inner >= self.capacity / 4);
        if full {
            self.dropped.calls += 1;
            self.dropped.inner += u64::from(is_inner);
        } else {
            self.inner += usize::from(is_inner);
        }
        !full
    }

    /// The index of the summary of a program, if the recording has one.
    pub(crate) fn known(&mut self, program: &Program) -> Option<u32> {
        let address = std::ptr::from_ref(program).addr();
        if let Some(&known) = self.by_address.get(&address)
            && self.summaries[known as usize].is_of(program)
        {
            return Some(known);
        }
        // The same program at another address, as in a clone of an op.
        let known = self.summaries.iter().position(|summary| summary.is_of(program))? as u32;
        self.by_address.insert(address, known);
        Some(known)
    }

    /// The index of a new summary; `None` if there are too many.
    pub(crate) fn summary(&mut self, program: &Program, summary: PlanSummary) -> Option<u32> {
        if let Some(known) = self.known(program) {
            return Some(known);
        }
        if self.summaries.len() >= MAX_SUMMARIES {
            return None;
        }
        self.first_sites.push(self.sites.len() as u32);
        self.sites.extend(summary.steps.iter().map(|step| CallSite {
            op: step.op,
            gradient_of: None,
            at: Some(step.at),
            outputs: step.outputs.clone(),
            cost: step.cost,
            is_run: false,
        }));
        self.summaries.push(Arc::new(summary));
        let number = self.summaries.len() as u32 - 1;
        self.by_address.insert(std::ptr::from_ref(program).addr(), number);
        Some(number)
    }

    pub(crate) fn run_begins(&mut self, run: RunEvent) -> u32 {
        if self.runs.len() >= self.capacity {
            return NONE;
        }
        self.runs.push(run);
        self.runs.len() as u32 - 1
    }

    pub(crate) fn run_placed(
        &mut self,
        run: u32,
        arena: ObservedBuffer,
        outputs: SmallVec<[usize; 4]>,
        thread: u32,
    ) {
        if arena.bytes > 0 && !self.arenas.contains(&arena.address) {
            self.memory(BufferChange::Discovered, arena, thread, None);
        }
        let time = self.nanos(Instant::now());
        if let Some(run) = self.runs.get_mut(run as usize) {
            run.placed = time;
            run.arena = if arena.bytes > 0 { arena.address } else { 0 };
            run.outputs = outputs;
        }
    }

    /// The call site of the runs of a program from one source line.
    pub(crate) fn run_site(&mut self, summary: u32, at: Location) -> u32 {
        let Recording { run_sites, sites, .. } = self;
        *run_sites.entry((summary, at)).or_insert_with(|| {
            let (outputs, cost) = (Specs::new(), Cost::default());
            sites.push(CallSite {
                op: "function",
                gradient_of: None,
                at: Some(at),
                outputs,
                cost,
                is_run: true,
            });
            sites.len() as u32 - 1
        })
    }
}
