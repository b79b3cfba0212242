//! From events to what they mean.

use super::{Allocation, Origin, Run, Timeline};
use crate::recording::{Change, MemoryEvent, Recording, RunEvent};
use std::collections::HashMap;
use std::time::Instant;
use taut_core::observe::CallStart;
use taut_memory::{Block, Category, Location, Owner, live_bytes};

/// What was there before, by category and line.
struct Before(HashMap<(Category, Option<Location>), usize>);

impl Before {
    fn new(owners: &[Owner]) -> Before {
        let mut before: HashMap<_, usize> = HashMap::new();
        for owner in owners {
            *before.entry((owner.category, owner.location)).or_default() += owner.bytes;
        }
        Before(before)
    }

    /// Takes a buffer out: it is heard of from now on, or goes.
    fn take(&mut self, block: Block) -> Allocation {
        let Block { category, bytes, .. } = block;
        let fits = |(_, left): &(_, &usize)| **left >= bytes;
        let own = (category, block.line);
        let found = self.0.get_key_value(&own).filter(fits).map(|(key, _)| *key);
        // The line of a buffer is not always known: any line that has as many bytes must do.
        let found = found.or_else(|| {
            let others = self.0.iter().filter(|((other, _), _)| *other == category);
            others.filter(fits).map(|(key, _)| *key).min_by_key(|key| key.1)
        });
        if let Some(left) = found.and_then(|key| self.0.get_mut(&key)) {
            *left -= bytes;
        }
        let line = found.and_then(|key| key.1).or(block.line);
        before(line, category, bytes)
    }

    fn rest(self) -> impl Iterator<Item = Allocation> {
        let rest = self.0.into_iter().filter(|(_, bytes)| *bytes > 0);
        rest.map(|((category, line), bytes)| before(line, category, bytes))
    }
}

fn before(line: Option<Location>, category: Category, bytes: usize) -> Allocation {
    let (born, died, made_by, origin) = (0, u64::MAX, None, Origin::Before);
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
            outlines: recording.outlines,
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
    let mut known = Before::new(&recording.before);
    let mut list: Vec<Allocation> = Vec::new();
    let mut open: HashMap<usize, usize> = HashMap::new();
    let mut by_address = ByAddress::new();
    for &MemoryEvent { time, change, block, doing, .. } in &recording.memory {
        let mut put = |list: &mut Vec<Allocation>, allocation| {
            list.push(allocation);
            by_address.entry(block.address).or_default().push(list.len() - 1);
            list.len() - 1
        };
        match change {
            Change::Entered => {
                let Block { bytes, category, line, .. } = block;
                let (born, died, origin) = (time, u64::MAX, Origin::Asked);
                let made = Allocation { born, died, bytes, category, line, made_by: doing, origin };
                open.insert(block.address, put(&mut list, made));
            }
            Change::Noticed => {
                let found = known.take(block);
                open.insert(block.address, put(&mut list, found));
            }
            Change::Left => {
                let gone = open.remove(&block.address);
                let gone = gone.unwrap_or_else(|| put(&mut list, known.take(block)));
                list[gone].died = time;
            }
            Change::Moved(category) => {
                let old = open.remove(&block.address);
                let old = old.unwrap_or_else(|| put(&mut list, known.take(block)));
                list[old].died = time;
                let new = Allocation { born: time, died: u64::MAX, category, ..list[old].clone() };
                open.insert(block.address, put(&mut list, new));
            }
        }
    }
    list.extend(known.rest());
    (list, by_address)
}

fn runs(recording: &Recording, by_address: &ByAddress, allocations: &mut [Allocation]) -> Vec<Run> {
    let find = |allocations: &[Allocation], address: usize, time: u64| {
        let there = by_address.get(&address)?;
        there.iter().copied().find(|&i| allocations[i].is_alive(time))
    };
    let mut runs = Vec::with_capacity(recording.runs.len());
    for run in &recording.runs {
        let outline = &recording.outlines[run.outline as usize];
        let arena = Some(run.arena).filter(|&arena| arena > 0);
        let arena = arena.and_then(|address| find(allocations, address, run.placed));
        for (output, &address) in run.outputs.iter().enumerate() {
            let maker = outline.outputs[output].and_then(|buffer| {
                let step = outline.buffers[buffer].writers.last()?;
                outline.steps.get(*step)
            });
            let Some(found) = find(allocations, address, run.placed) else { continue };
            let allocation = &mut allocations[found];
            allocation.origin = Origin::Returned(run.at);
            if let Some(maker) = maker {
                let made_by = CallStart { op: maker.op, gradient_of: None, at: maker.at };
                (allocation.line, allocation.made_by) = (Some(maker.at), Some(made_by));
            }
        }
        let measured = measured(recording, run, arena.map(|arena| &allocations[arena]));
        runs.push(Run {
            outline: run.outline as usize,
            at: run.at,
            start: run.start,
            end: run.end,
            arena,
            steps: Vec::new(),
            is_whole: run.end != u64::MAX && run.steps == outline.steps.len(),
            measured,
        });
    }
    runs
}

/// The most that a run's thread held at a time beyond what there was when the run began, which its arena may have been.
fn measured(recording: &Recording, run: &RunEvent, arena: Option<&Allocation>) -> usize {
    let first = recording.memory.partition_point(|event| event.time < run.start);
    let during = recording.memory[first..].iter().take_while(|event| event.time <= run.end);
    let mut held = arena.filter(|arena| arena.born < run.start).map_or(0, |arena| arena.bytes as isize);
    let mut most = held;
    for event in during.filter(|event| event.thread == run.thread) {
        held += match event.change {
            Change::Entered => event.block.bytes as isize,
            Change::Left => -(event.block.bytes as isize),
            Change::Moved(_) | Change::Noticed => 0,
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
        // Without all of its steps, nobody can say what lay in its arena when.
        let is_partial = |run: &&mut Run| run.steps.len() < recording.outlines[run.outline].steps.len();
        runs.iter_mut().filter(is_partial).for_each(|run| run.steps.clear());
    }
}
