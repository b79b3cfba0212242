//! Builds the timeline from the recorded events.

use super::{Allocation, AllocationOrigin, Run, Timeline};
use crate::recording::{BufferChange, MemoryEvent, Recording, RunEvent};
use std::collections::HashMap;
use std::time::Instant;
use taut_core::observe::CallStart;
use taut_memory::{Category, Location, ObservedBuffer, Owner, live_bytes};

/// The bytes that were live before the recording, by category and source line.
struct PriorMemory(HashMap<(Category, Option<Location>), usize>);

impl PriorMemory {
    fn new(owners: &[Owner]) -> PriorMemory {
        let mut before: HashMap<_, usize> = HashMap::new();
        for owner in owners {
            *before.entry((owner.category, owner.location)).or_default() += owner.bytes;
        }
        PriorMemory(before)
    }

    /// Removes a buffer at its first event, and returns it as an allocation.
    fn take(&mut self, buffer: ObservedBuffer) -> Allocation {
        let ObservedBuffer { category, bytes, .. } = buffer;
        let fits = |(_, left): &(_, &usize)| **left >= bytes;
        let own = (category, buffer.location);
        let found = self.0.get_key_value(&own).filter(fits).map(|(key, _)| *key);
        // If the line of the buffer is unknown, any line of its category with enough bytes is used.
        let found = found.or_else(|| {
            let others = self.0.iter().filter(|((other, _), _)| *other == category);
            others.filter(fits).map(|(key, _)| *key).min_by_key(|key| key.1)
        });
        if let Some(left) = found.and_then(|key| self.0.get_mut(&key)) {
            *left -= bytes;
        }
        let line = found.and_then(|key| key.1).or(buffer.location);
        before(line, category, bytes)
    }

    fn rest(self) -> impl Iterator<Item = Allocation> {
        let rest = self.0.into_iter().filter(|(_, bytes)| *bytes > 0);
        rest.map(|((category, line), bytes)| before(line, category, bytes))
    }
}

fn before(line: Option<Location>, category: Category, bytes: usize) -> Allocation {
    let (born, died, made_by, origin) = (0, u64::MAX, None, AllocationOrigin::Before);
    Allocation { born, died, bytes, category, line, made_by, origin }
}

impl Timeline {
    pub(crate) fn new(mut recording: Recording) -> Timeline {
        let duration = recording.nanos(Instant::now());
        let live_at_end = live_bytes();
        let live_at_start = recording.before.iter().map(|owner| owner.bytes).sum();
        recording.calls.sort_by_key(|call| (call.start, call.depth));
        let (mut allocations, by_address) = allocations(&recording);
        let mut runs = runs(&recording, &by_address, &mut allocations);
        steps(&recording, &mut runs);

        let mut arenas: HashMap<usize, Vec<usize>> = HashMap::new();
        for (number, run) in runs.iter().enumerate() {
            if let Some(arena) = run.arena {
                arenas.entry(arena).or_default().push(number);
            }
        }
        let mut arenas: Vec<_> = arenas.into_iter().collect();
        arenas.sort_unstable();
        let mut threads = recording.threads;
        threads.sort();
        Timeline {
            duration: duration.max(recording.memory.last().map_or(1, |event| event.time)),
            allocations,
            runs,
            arenas,
            summaries: recording.summaries,
            calls: recording.calls,
            sites: recording.sites,
            marks: recording.marks,
            threads,
            dropped: recording.dropped,
            memory_until: recording.memory_until,
            live_at_start,
            live_at_end,
        }
    }
}

/// The allocations at an address, in order.
type ByAddress = HashMap<usize, Vec<usize>>;

fn allocations(recording: &Recording) -> (Vec<Allocation>, ByAddress) {
    let mut known = PriorMemory::new(&recording.before);
    let mut list: Vec<Allocation> = Vec::new();
    let mut open: HashMap<usize, usize> = HashMap::new();
    let mut by_address = ByAddress::new();
    for &MemoryEvent { time, change, buffer, call, .. } in &recording.memory {
        let mut put = |list: &mut Vec<Allocation>, allocation| {
            list.push(allocation);
            by_address.entry(buffer.address).or_default().push(list.len() - 1);
            list.len() - 1
        };
        match change {
            BufferChange::Allocated => {
                let ObservedBuffer { bytes, category, location: line, .. } = buffer;
                let (born, died, origin) = (time, u64::MAX, AllocationOrigin::Allocated);
                let made = Allocation { born, died, bytes, category, line, made_by: call, origin };
                open.insert(buffer.address, put(&mut list, made));
            }
            BufferChange::Discovered => {
                let found = known.take(buffer);
                open.insert(buffer.address, put(&mut list, found));
            }
            BufferChange::Freed => {
                let gone = open.remove(&buffer.address);
                let gone = gone.unwrap_or_else(|| put(&mut list, known.take(buffer)));
                list[gone].died = time;
            }
            BufferChange::Recategorized(category) => {
                let old = open.remove(&buffer.address);
                let old = old.unwrap_or_else(|| put(&mut list, known.take(buffer)));
                list[old].died = time;
                let new = Allocation { born: time, died: u64::MAX, category, ..list[old].clone() };
                open.insert(buffer.address, put(&mut list, new));
            }
        }
    }
    list.extend(known.rest());
    (list, by_address)
}

fn runs(recording: &Recording, by_address: &ByAddress, allocations: &mut [Allocation]) -> Vec<Run> {
    let find = |allocations: &[Allocation], address: usize, time: u64| {
        let there = by_address.get(&address)?;
        there.iter().copied().find(|&i| allocations[i].is_live(time))
    };
    let mut runs = Vec::with_capacity(recording.runs.len());
    for run in &recording.runs {
        let summary = &recording.summaries[run.summary as usize];
        let arena = Some(run.arena).filter(|&arena| arena > 0);
        let arena = arena.and_then(|address| find(allocations, address, run.placed));
        for (output, &address) in run.outputs.iter().enumerate() {
            let maker = summary.outputs[output].and_then(|buffer| {
                let step = summary.buffers[buffer].writers.last()?;
                summary.steps.get(*step)
            });
            let Some(found) = find(allocations, address, run.placed) else { continue };
            let allocation = &mut allocations[found];
            allocation.origin = AllocationOrigin::Returned(run.at);
            if let Some(maker) = maker {
                let made_by = CallStart { op: maker.op, gradient_of: None, at: maker.at };
                (allocation.line, allocation.made_by) = (Some(maker.at), Some(made_by));
            }
        }
        let measured = measured(recording, run, arena.map(|arena| &allocations[arena]));
        runs.push(Run {
            summary: run.summary as usize,
            at: run.at,
            start: run.start,
            end: run.end,
            arena,
            steps: Vec::new(),
            is_whole: run.end != u64::MAX && run.steps == summary.steps.len(),
            measured,
        });
    }
    runs
}

/// The most bytes that a run's thread had live beyond those at the start of the run, plus the arena if it existed before.
fn measured(recording: &Recording, run: &RunEvent, arena: Option<&Allocation>) -> usize {
    let first = recording.memory.partition_point(|event| event.time < run.start);
    let during = recording.memory[first..].iter().take_while(|event| event.time <= run.end);
    let mut held = arena.filter(|arena| arena.born < run.start).map_or(0, |arena| arena.bytes as isize);
    let mut most = held;
    for event in during.filter(|event| event.thread == run.thread) {
        held += match event.change {
            BufferChange::Allocated => event.buffer.bytes as isize,
            BufferChange::Freed => -(event.buffer.bytes as isize),
            BufferChange::Recategorized(_) | BufferChange::Discovered => 0,
        };
        most = most.max(held);
    }
    most.max(0) as usize
}

fn steps(recording: &Recording, runs: &mut [Run]) {
    for call in &recording.calls {
        if let Some(run) = runs.get_mut(call.run as usize) {
            run.steps.push(call.start);
        }
    }
    if recording.dropped.calls > 0 {
        // Without all of its steps, the contents of its arena over time are unknown.
        let is_partial = |run: &&mut Run| run.steps.len() < recording.summaries[run.summary].steps.len();
        runs.iter_mut().filter(is_partial).for_each(|run| run.steps.clear());
    }
}
