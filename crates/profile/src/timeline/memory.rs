//! Live bytes by kind, over time.

use super::Timeline;
use std::fmt;
use std::time::Duration;
use taut_memory::Category;

/// What memory is used for: a category, or a part of an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryKind {
    /// A category of the ledger other than [`Category::Arena`].
    Category(Category),
    /// Values in an arena, while a program runs in it.
    ArenaValues,
    /// The scratch memory of the step that runs in an arena.
    ArenaScratch,
    /// Bytes of an arena that the current step of its program does not use.
    ArenaUnused,
    /// An arena that is kept for the next run.
    ArenaIdle,
}

impl MemoryKind {
    /// Every kind, in the order in which a plot stacks them.
    pub const ALL: [MemoryKind; 11] = [
        MemoryKind::Category(Category::Variable),
        MemoryKind::Category(Category::Optimizer),
        MemoryKind::Category(Category::Dataset),
        MemoryKind::Category(Category::Tensor),
        MemoryKind::Category(Category::Gradient),
        MemoryKind::Category(Category::Residual),
        MemoryKind::Category(Category::Scratch),
        MemoryKind::ArenaValues,
        MemoryKind::ArenaScratch,
        MemoryKind::ArenaUnused,
        MemoryKind::ArenaIdle,
    ];

    /// Its index in [`MemoryKind::ALL`].
    pub fn index(self) -> usize {
        MemoryKind::ALL.iter().position(|kind| *kind == self).unwrap_or(MemoryKind::ALL.len() - 1)
    }

    pub(crate) fn of(category: Category) -> MemoryKind {
        if category == Category::Arena { MemoryKind::ArenaIdle } else { MemoryKind::Category(category) }
    }

    /// The name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            MemoryKind::Category(category) => category.name(),
            MemoryKind::ArenaValues => "arena: values",
            MemoryKind::ArenaScratch => "arena: scratch",
            MemoryKind::ArenaUnused => "arena: unused",
            MemoryKind::ArenaIdle => "arena: idle",
        }
    }
}

impl fmt::Display for MemoryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Live bytes from a moment on, until the next sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySample {
    /// The time since the start of the recording.
    pub at: Duration,
    /// Bytes by kind, in the order of [`MemoryKind::ALL`].
    pub by_kind: [usize; MemoryKind::ALL.len()],
}

impl MemorySample {
    /// The sum: the ledger's live bytes.
    pub fn live(&self) -> usize {
        self.by_kind.iter().sum()
    }
}

/// The most bytes that were live at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryPeak {
    /// When they were reached first.
    pub at: Duration,
    /// The number of bytes.
    pub bytes: usize,
}

impl Timeline {
    /// A sample for every moment at which memory changed, in order; the first is the start. The last is at most
    /// [`Timeline::memory_until`].
    pub fn memory(&self) -> Vec<MemorySample> {
        let mut changes: Vec<(u64, usize, isize)> = Vec::new();
        for allocation in &self.allocations {
            let (kind, bytes) = (MemoryKind::of(allocation.category).index(), allocation.bytes as isize);
            changes.push((allocation.born, kind, bytes));
            if allocation.died != u64::MAX {
                changes.push((allocation.died, kind, -bytes));
            }
        }
        self.arena_changes(&mut changes);
        changes.retain(|change| self.memory_until.is_none_or(|until| change.0 < until));
        changes.sort_by_key(|change| change.0);

        let mut now = [0isize; MemoryKind::ALL.len()];
        let mut samples: Vec<MemorySample> = Vec::new();
        let sample = |time: u64, now: &[isize; MemoryKind::ALL.len()]| MemorySample {
            at: Duration::from_nanos(time),
            by_kind: now.map(|bytes| bytes.max(0) as usize),
        };
        let mut time = 0;
        for (at, kind, bytes) in changes {
            if at != time {
                samples.push(sample(time, &now));
                time = at;
            }
            now[kind] += bytes;
        }
        samples.push(sample(time, &now));
        samples
    }

    /// The changes inside arenas while programs run in them; at other times they are idle.
    fn arena_changes(&self, changes: &mut Vec<(u64, usize, isize)>) {
        let kinds = [
            MemoryKind::ArenaValues,
            MemoryKind::ArenaScratch,
            MemoryKind::ArenaUnused,
            MemoryKind::ArenaIdle,
        ];
        let used: Vec<Vec<(usize, usize)>> = (self.summaries.iter())
            .map(|summary| (0..summary.steps.len()).map(|step| summary.used(step)).collect())
            .collect();
        for (arena, runs) in &self.arenas {
            let bytes = self.allocations[*arena].bytes as isize;
            for run in runs.iter().map(|&run| &self.runs[run]) {
                let mut before = [0, 0, 0, bytes];
                let mut change_to = |time: u64, after: [isize; 4]| {
                    for (kind, (before, after)) in kinds.iter().zip(before.iter().zip(after)) {
                        if *before != after {
                            changes.push((time, kind.index(), after - before));
                        }
                    }
                    before = after;
                };
                for (&time, &(values, scratch)) in run.steps.iter().zip(&used[run.summary]) {
                    let (values, scratch) = (values as isize, scratch as isize);
                    change_to(time, [values, scratch, bytes - values - scratch, 0]);
                }
                if !run.steps.is_empty() && run.end < self.allocations[*arena].died {
                    change_to(run.end, [0, 0, 0, bytes]);
                }
            }
        }
    }

    /// The peak of all live bytes.
    pub fn peak(&self) -> MemoryPeak {
        self.most(MemorySample::live)
    }

    /// The peak of one kind of memory.
    pub fn peak_of(&self, kind: MemoryKind) -> MemoryPeak {
        self.most(|sample| sample.by_kind[kind.index()])
    }

    fn most(&self, bytes: impl Fn(&MemorySample) -> usize) -> MemoryPeak {
        let mut peak = MemoryPeak { at: Duration::ZERO, bytes: 0 };
        for sample in self.memory() {
            if bytes(&sample) > peak.bytes {
                peak = MemoryPeak { at: sample.at, bytes: bytes(&sample) };
            }
        }
        peak
    }
}
