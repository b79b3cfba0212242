//! Live ranges of a sequence: the verifier, the peak, and the load over time.

use super::problem::{NONE, Problem, Residence};
use smallvec::SmallVec;
use std::fmt;

/// The most bytes that a sequence needs at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peak {
    /// Results, live values and scratch together.
    pub bytes: usize,
    /// The first place in the sequence where so many are needed.
    pub at: usize,
}

/// What is wrong with a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SequenceFlaw {
    /// It names a step that the problem does not have.
    NoSuchStep {
        /// The place in the sequence.
        at: usize,
    },
    /// It lacks a step.
    Missing {
        /// The step.
        step: u32,
    },
    /// A step that must not be repeated occurs again.
    Repeated {
        /// The step.
        step: u32,
        /// The place of the second occurrence.
        at: usize,
    },
    /// A step reads a value before it is written.
    ReadTooEarly {
        /// The step.
        step: u32,
        /// The value.
        value: u32,
        /// The place in the sequence.
        at: usize,
    },
    /// A step runs after another that it must precede: for one that reads a variable, after the variable's update.
    AfterDeadline {
        /// The step.
        step: u32,
        /// The one that it must precede.
        deadline: u32,
        /// The place in the sequence.
        at: usize,
    },
}

impl fmt::Display for SequenceFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SequenceFlaw::NoSuchStep { at } => write!(f, "place {at} names a step that does not exist"),
            SequenceFlaw::Missing { step } => write!(f, "step {step} does not occur"),
            SequenceFlaw::Repeated { step, at } => {
                write!(f, "step {step} must run once, but occurs again at {at}")
            }
            SequenceFlaw::ReadTooEarly { step, value, at } => {
                write!(f, "step {step} at {at} reads value {value} before it is written")
            }
            SequenceFlaw::AfterDeadline { step, deadline, at } => {
                write!(f, "step {step} at {at} must precede step {deadline}")
            }
        }
    }
}

impl std::error::Error for SequenceFlaw {}

/// Checks a sequence without trusting how it was found, and measures it: every step occurs, reads follow writes, pairs of
/// `before` are kept, and steps that must run once do.
pub fn verify(problem: &Problem, sequence: &[u32]) -> Result<Peak, SequenceFlaw> {
    let mut last = vec![NONE; problem.steps.len()];
    let mut first = last.clone();
    let is_external =
        |v: usize| matches!(problem.values[v].residence, Residence::External | Residence::Donated);
    let mut written: Vec<bool> = (0..problem.values.len()).map(is_external).collect();
    for (at, &number) in sequence.iter().enumerate() {
        let step = problem.steps.get(number as usize).ok_or(SequenceFlaw::NoSuchStep { at })?;
        if first[number as usize] == NONE {
            first[number as usize] = at as u32;
        } else if !step.repeatable {
            return Err(SequenceFlaw::Repeated { step: number, at });
        }
        last[number as usize] = at as u32;
        if let Some(&value) = step.reads.iter().find(|&&v| !written[v as usize]) {
            return Err(SequenceFlaw::ReadTooEarly { step: number, value, at });
        }
        step.writes.iter().for_each(|&v| written[v as usize] = true);
    }
    if let Some(step) = first.iter().position(|&at| at == NONE) {
        return Err(SequenceFlaw::Missing { step: step as u32 });
    }
    for &(step, deadline) in &problem.before {
        let at = last[step as usize];
        if at >= first[deadline as usize] {
            return Err(SequenceFlaw::AfterDeadline { step, deadline, at: at as usize });
        }
    }
    Ok(peak(problem, sequence))
}

/// The peak of a sequence that verifies. Scratch and values computed in place are counted as the planner places them. It
/// is an upper estimate: the planner may put further values into donated inputs and into buffers of results.
pub fn peak(problem: &Problem, sequence: &[u32]) -> Peak {
    Liveness::new(problem, sequence).peak(problem)
}

/// The bytes of the arena in use, summed over the time of a sequence that verifies.
pub fn total_load(problem: &Problem, sequence: &[u32]) -> u128 {
    let load = Liveness::new(problem, sequence).load;
    let steps = sequence.iter().zip(&load);
    steps.fold(0, |sum, (&step, &load)| {
        let cost = problem.steps[step as usize].cost;
        sum + u128::from(cost) * u128::from(load.unsigned_abs())
    })
}

/// The time from a write of a value to its last read before the next write.
#[derive(Clone, Copy, Debug)]
pub(super) struct LiveRange {
    pub(super) value: u32,
    /// The place of the last read; of the write, if there is none.
    pub(super) end: u32,
    /// The bytes of the arena it takes.
    pub(super) bytes: i64,
    /// Whether an output is computed over it at its end.
    pub(super) is_overwritten: bool,
}

/// All live ranges of a sequence, and the bytes of the arena in use at each place.
pub(super) struct Liveness {
    /// In the order of their starts, donated inputs first.
    pub(super) ranges: Vec<LiveRange>,
    pub(super) load: Vec<i64>,
}

impl Liveness {
    /// The sequence must verify.
    pub(super) fn new(problem: &Problem, sequence: &[u32]) -> Liveness {
        let mut current = vec![NONE; problem.values.len()];
        let mut ranges = Vec::with_capacity(sequence.len() + sequence.len() / 4);
        for (v, value) in problem.values.iter().enumerate() {
            if value.residence == Residence::Donated {
                current[v] = ranges.len() as u32;
                ranges.push(LiveRange { value: v as u32, end: 0, bytes: 0, is_overwritten: false });
            }
        }
        let donated = ranges.len();
        for (at, &number) in sequence.iter().enumerate() {
            let step = &problem.steps[number as usize];
            for &v in &step.reads {
                if let Some(range) = ranges.get_mut(current[v as usize] as usize) {
                    range.end = at as u32;
                }
            }
            for &v in &step.writes {
                current[v as usize] = ranges.len() as u32;
                let bytes = problem.bytes[v as usize];
                ranges.push(LiveRange { value: v, end: at as u32, bytes, is_overwritten: false });
            }
        }
        let mut liveness = Liveness { ranges, load: vec![0; sequence.len() + 1] };
        liveness.add_up(problem, sequence, donated);
        liveness
    }

    fn add_up(&mut self, problem: &Problem, sequence: &[u32], donated: usize) {
        let Liveness { ranges, load } = self;
        let mut current = vec![NONE; problem.values.len()];
        ranges[..donated].iter().enumerate().for_each(|(i, range)| current[range.value as usize] = i as u32);
        let mut next = donated;
        for (at, &number) in sequence.iter().enumerate() {
            let step = &problem.steps[number as usize];
            let dies = |v: u32| {
                let range: &LiveRange = &ranges[current[v as usize] as usize];
                range.end == at as u32
            };
            let aliases = if step.in_place.is_empty() {
                SmallVec::new()
            } else {
                problem.aliases(number as usize, dies)
            };
            load[at] += step.scratch as i64;
            load[at + 1] -= step.scratch as i64;
            for &v in &step.writes {
                let over = aliases.iter().find(|pair| pair.1 == v);
                if let Some(&(operand, _)) = over {
                    let operand = &mut ranges[current[operand as usize] as usize];
                    operand.is_overwritten = true;
                    let bytes = operand.bytes;
                    ranges[next].bytes = bytes;
                    // The operand is still counted here.
                    load[at] -= bytes;
                    load[at + 1] += bytes;
                } else if step.prunable && ranges[next].end == at as u32 {
                    ranges[next].bytes = 0;
                }
                let range = &ranges[next];
                load[at] += range.bytes;
                load[range.end as usize + 1] -= range.bytes;
                current[v as usize] = next as u32;
                next += 1;
            }
        }
        for at in 1..load.len() {
            load[at] += load[at - 1];
        }
        load.pop();
    }

    /// The most bytes of the arena in use at once.
    pub(super) fn peak_load(&self) -> i64 {
        self.load.iter().copied().max().unwrap_or(0)
    }

    pub(super) fn peak(&self, problem: &Problem) -> Peak {
        let (mut bytes, mut first) = (0, 0);
        for (at, &load) in self.load.iter().enumerate() {
            if load > bytes {
                (bytes, first) = (load, at);
            }
        }
        Peak { bytes: (problem.results + bytes) as usize, at: first }
    }
}
