//! What is written down while a profiler is at work.

use crate::outline::Outline;
use smallvec::SmallVec;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Instant;
use taut_core::observe::{CallEnd, CallStart};
use taut_core::{Cost, Specs};
use taut_memory::{Block, Category, Location, Owner, live_bytes};
use taut_plan::Program;

/// What happened to a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// It came.
    Entered,
    /// It went.
    Left,
    /// It is for something else from now on.
    Moved(Category),
    /// It was there before the recording, and this is the first that is heard of it.
    Noticed,
}

/// Something happened to a buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryEvent {
    pub(crate) time: u64,
    pub(crate) thread: u32,
    pub(crate) change: Change,
    pub(crate) block: Block,
    /// The call that was under way.
    pub(crate) doing: Option<CallStart>,
}

/// What calls that look the same have in common.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    pub(crate) op: &'static str,
    pub(crate) gradient_of: Option<&'static str>,
    pub(crate) at: Option<Location>,
    pub(crate) outputs: Specs,
    pub(crate) cost: Cost,
    /// Whether it is the run of a program: what it consists of are its steps.
    pub(crate) is_run: bool,
}

/// A call, a step or a run that is over.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallEvent {
    pub(crate) site: u32,
    /// The run that it is a step of, or [`NONE`].
    pub(crate) run: u32,
    pub(crate) thread: u32,
    pub(crate) depth: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The part of it that is not in calls inside of it.
    pub(crate) own: u64,
}

/// Programs that a recording knows. What is traced anew at every call would make any number of them.
const MOST_OUTLINES: usize = 10_000;

/// No run, or one that was not recorded.
pub(crate) const NONE: u32 = u32::MAX;

/// The run of a program.
#[derive(Clone, Debug)]
pub(crate) struct RunEvent {
    pub(crate) outline: u32,
    pub(crate) at: Location,
    pub(crate) thread: u32,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// When it had its memory.
    pub(crate) placed: u64,
    /// The address of its arena; 0 if it has none.
    pub(crate) arena: usize,
    /// How many of its steps ended.
    pub(crate) steps: usize,
    /// The addresses of what is made for the caller.
    pub(crate) outputs: SmallVec<[usize; 4]>,
}

/// A moment that somebody named.
#[derive(Clone, Debug)]
pub(crate) struct MarkEvent {
    pub(crate) time: u64,
    pub(crate) name: String,
    /// What the ledger said then.
    pub(crate) live: usize,
}

/// What did not fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Buffers that came or went. From the first of these on, nothing is known of memory.
    pub memory: u64,
    /// Calls, steps and runs.
    pub calls: u64,
    /// Of these, steps inside loops and branches, which have a share of the room of their own.
    pub inner: u64,
    /// Marks.
    pub marks: u64,
}

impl Dropped {
    /// Whether anything was dropped.
    pub fn any(&self) -> bool {
        *self != Dropped::default()
    }
}

/// Everything that was written down.
#[derive(Debug)]
pub(crate) struct Recording {
    pub(crate) generation: u64,
    pub(crate) started: Instant,
    capacity: usize,
    last: u64,
    inner: usize,
    /// What was there before.
    pub(crate) before: Vec<Owner>,
    pub(crate) memory: Vec<MemoryEvent>,
    pub(crate) memory_until: Option<u64>,
    pub(crate) calls: Vec<CallEvent>,
    pub(crate) sites: Vec<Site>,
    known: HashMap<(&'static str, Option<&'static str>, Location, Specs), u32>,
    pub(crate) outlines: Vec<Arc<Outline>>,
    /// Per outline, the number of its first step's site.
    pub(crate) first_sites: Vec<u32>,
    by_address: HashMap<usize, u32>,
    arenas: HashSet<usize>,
    pub(crate) runs: Vec<RunEvent>,
    run_sites: HashMap<(u32, Location), u32>,
    pub(crate) marks: Vec<MarkEvent>,
    pub(crate) threads: Vec<(u32, String)>,
    pub(crate) dropped: Dropped,
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
            outlines: Vec::new(),
            first_sites: Vec::new(),
            by_address: HashMap::new(),
            arenas: HashSet::new(),
            runs: Vec::new(),
            run_sites: HashMap::new(),
            marks: Vec::new(),
            threads: Vec::new(),
            dropped: Dropped::default(),
        }
    }

    /// Nanoseconds since the start.
    pub(crate) fn nanos(&self, time: Instant) -> u64 {
        time.saturating_duration_since(self.started).as_nanos() as u64
    }

    /// A moment of its own: what happens to memory has one order.
    pub(crate) fn tick(&mut self) -> u64 {
        self.last = self.nanos(Instant::now()).max(self.last + 1);
        self.last
    }

    /// A thread that is heard of for the first time.
    pub(crate) fn thread(&mut self, thread: u32) {
        let current = std::thread::current();
        let name = current.name().map_or_else(|| format!("thread {thread}"), str::to_owned);
        self.threads.push((thread, name));
    }

    pub(crate) fn memory(&mut self, change: Change, block: Block, thread: u32, doing: Option<CallStart>) {
        let time = self.tick();
        if block.category == Category::Arena {
            match change {
                Change::Entered | Change::Noticed => _ = self.arenas.insert(block.address),
                Change::Left => _ = self.arenas.remove(&block.address),
                Change::Moved(_) => {}
            }
        }
        if self.memory.len() >= self.capacity {
            self.memory_until.get_or_insert(time);
            self.dropped.memory += 1;
            return;
        }
        self.memory.push(MemoryEvent { time, thread, change, block, doing });
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
            sites.push(Site { op, gradient_of, at: Some(at), outputs, cost, is_run: false });
            sites.len() as u32 - 1
        })
    }

    /// Whether there is room for another call. If not, it counts as dropped.
    pub(crate) fn has_room(&mut self, is_inner: bool) -> bool {
        // A long loop must not take the room of all that comes after it.
        let full = self.calls.len() >= self.capacity || (is_inner && self.inner >= self.capacity / 4);
        if full {
            self.dropped.calls += 1;
            self.dropped.inner += u64::from(is_inner);
        } else {
            self.inner += usize::from(is_inner);
        }
        !full
    }

    /// The number of the outline of a program, if it has one here.
    pub(crate) fn known(&mut self, program: &Program) -> Option<u32> {
        let address = std::ptr::from_ref(program).addr();
        if let Some(&known) = self.by_address.get(&address)
            && self.outlines[known as usize].is_of(program)
        {
            return Some(known);
        }
        // The same program at another address, as a clone of an op would have it.
        let known = self.outlines.iter().position(|outline| outline.is_of(program))? as u32;
        self.by_address.insert(address, known);
        Some(known)
    }

    /// The number of a new outline; none if there are too many.
    pub(crate) fn outline(&mut self, program: &Program, outline: Outline) -> Option<u32> {
        if let Some(known) = self.known(program) {
            return Some(known);
        }
        if self.outlines.len() >= MOST_OUTLINES {
            return None;
        }
        self.first_sites.push(self.sites.len() as u32);
        self.sites.extend(outline.steps.iter().map(|step| Site {
            op: step.op,
            gradient_of: None,
            at: Some(step.at),
            outputs: step.outputs.clone(),
            cost: step.cost,
            is_run: false,
        }));
        self.outlines.push(Arc::new(outline));
        let number = self.outlines.len() as u32 - 1;
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

    pub(crate) fn run_placed(&mut self, run: u32, arena: Block, outputs: SmallVec<[usize; 4]>, thread: u32) {
        if arena.bytes > 0 && !self.arenas.contains(&arena.address) {
            self.memory(Change::Noticed, arena, thread, None);
        }
        let time = self.nanos(Instant::now());
        if let Some(run) = self.runs.get_mut(run as usize) {
            run.placed = time;
            run.arena = if arena.bytes > 0 { arena.address } else { 0 };
            run.outputs = outputs;
        }
    }

    /// The site of the runs of a program that are called from one line.
    pub(crate) fn run_site(&mut self, outline: u32, at: Location) -> u32 {
        let Recording { run_sites, sites, .. } = self;
        *run_sites.entry((outline, at)).or_insert_with(|| {
            let (outputs, cost) = (Specs::new(), Cost::default());
            sites.push(Site { op: "function", gradient_of: None, at: Some(at), outputs, cost, is_run: true });
            sites.len() as u32 - 1
        })
    }
}
