//! How many bytes of which kind were there when.

use super::Timeline;
use std::fmt;
use std::time::Duration;
use taut_memory::Category;

/// What bytes are for, with an arena taken apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// What the ledger says; never [`Category::Arena`].
    Category(Category),
    /// Values in an arena, while a program runs in it.
    ArenaValues,
    /// The scratch memory of the step that runs in an arena.
    ArenaScratch,
    /// What alignment and packing leave unused in an arena while a program runs in it, and what its later steps will use.
    ArenaUnused,
    /// An arena that is kept for the next run.
    ArenaIdle,
}

impl Kind {
    /// Every kind, in the order in which a picture stacks them.
    pub const ALL: [Kind; 11] = [
        Kind::Category(Category::Variable),
        Kind::Category(Category::Optimizer),
        Kind::Category(Category::Dataset),
        Kind::Category(Category::Tensor),
        Kind::Category(Category::Gradient),
        Kind::Category(Category::Residual),
        Kind::Category(Category::Scratch),
        Kind::ArenaValues,
        Kind::ArenaScratch,
        Kind::ArenaUnused,
        Kind::ArenaIdle,
    ];

    /// Its place in [`Kind::ALL`].
    pub fn index(self) -> usize {
        Kind::ALL.iter().position(|kind| *kind == self).unwrap_or(Kind::ALL.len() - 1)
    }

    pub(crate) fn of(category: Category) -> Kind {
        if category == Category::Arena { Kind::ArenaIdle } else { Kind::Category(category) }
    }

    /// The name, as reports write it.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Category(category) => category.name(),
            Kind::ArenaValues => "arena: values",
            Kind::ArenaScratch => "arena: scratch",
            Kind::ArenaUnused => "arena: unused",
            Kind::ArenaIdle => "arena: idle",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Memory from a moment on, until the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// When.
    pub at: Duration,
    /// Bytes by kind, in the order of [`Kind::ALL`].
    pub by_kind: [usize; Kind::ALL.len()],
}

impl Sample {
    /// All bytes: what the ledger counted as live.
    pub fn live(&self) -> usize {
        self.by_kind.iter().sum()
    }
}

/// The most bytes at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// When it was reached first.
    pub at: Duration,
    /// How many.
    pub bytes: usize,
}

impl Timeline {
    /// Memory at every moment at which it changed, in order; the first is the start. It ends with
    /// [`Timeline::memory_until`].
    pub fn memory(&self) -> Vec<Sample> {
        let mut changes: Vec<(u64, usize, isize)> = Vec::new();
        for allocation in &self.allocations {
            let (kind, bytes) = (Kind::of(allocation.category).index(), allocation.bytes as isize);
            changes.push((allocation.born, kind, bytes));
            if allocation.died != u64::MAX {
                changes.push((allocation.died, kind, -bytes));
            }
        }
        self.arena_changes(&mut changes);
        changes.retain(|change| self.memory_until.is_none_or(|until| change.0 < until));
        changes.sort_by_key(|change| change.0);

        let mut now = [0isize; Kind::ALL.len()];
        let mut samples: Vec<Sample> = Vec::new();
        let sample = |time: u64, now: &[isize; Kind::ALL.len()]| Sample {
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

    /// What runs make of arenas that would otherwise be idle.
    fn arena_changes(&self, changes: &mut Vec<(u64, usize, isize)>) {
        let kinds = [Kind::ArenaValues, Kind::ArenaScratch, Kind::ArenaUnused, Kind::ArenaIdle];
        let used: Vec<Vec<(usize, usize)>> = (self.outlines.iter())
            .map(|outline| (0..outline.steps.len()).map(|step| outline.used(step)).collect())
            .collect();
        for (arena, runs) in &self.arenas {
            let bytes = self.allocations[*arena].bytes as isize;
            for run in runs.iter().map(|&run| &self.runs[run]) {
                let mut before = [0, 0, 0, bytes];
                let mut turn = |time: u64, after: [isize; 4]| {
                    for (kind, (before, after)) in kinds.iter().zip(before.iter().zip(after)) {
                        if *before != after {
                            changes.push((time, kind.index(), after - before));
                        }
                    }
                    before = after;
                };
                for (&time, &(values, scratch)) in run.steps.iter().zip(&used[run.outline]) {
                    let (values, scratch) = (values as isize, scratch as isize);
                    turn(time, [values, scratch, bytes - values - scratch, 0]);
                }
                if !run.steps.is_empty() && run.end < self.allocations[*arena].died {
                    turn(run.end, [0, 0, 0, bytes]);
                }
            }
        }
    }

    /// The peak of all bytes.
    pub fn peak(&self) -> Peak {
        self.most(Sample::live)
    }

    /// The peak of one kind of bytes.
    pub fn peak_of(&self, kind: Kind) -> Peak {
        self.most(|sample| sample.by_kind[kind.index()])
    }

    fn most(&self, bytes: impl Fn(&Sample) -> usize) -> Peak {
        let mut peak = Peak { at: Duration::ZERO, bytes: 0 };
        for sample in self.memory() {
            if bytes(&sample) > peak.bytes {
                peak = Peak { at: sample.at, bytes: bytes(&sample) };
            }
        }
        peak
    }
}
