//! The abstract problem: steps that read and write values, and what limits their repetition.

use smallvec::SmallVec;
use std::fmt;

/// No step: the value comes from outside.
pub(super) const NONE: u32 = u32::MAX;

/// Where the bytes of a value are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Residence {
    /// In the arena, from the step that writes it to its last read.
    Arena,
    /// Outside: an input, a constant or a variable. It takes no bytes of the budget and can always be read.
    External,
    /// In a buffer that is returned. It is allocated before the first step and stays. The new value of a variable is a
    /// result of 0 bytes: it lies in the variable.
    Result,
    /// In an input that the caller gave up. It takes no bytes of the budget; once no step reads it any more, an output
    /// may be computed over it.
    Donated,
}

/// A value of a [`Problem`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RematValue {
    /// Size in memory; of a value in the arena, rounded up as the arena rounds it.
    pub bytes: usize,
    /// Where the bytes are.
    pub residence: Residence,
}

/// A step of a [`Problem`]: one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RematStep {
    /// The values it reads.
    pub reads: Vec<u32>,
    /// The values it writes; each value is written by one step at most.
    pub writes: Vec<u32>,
    /// The time it takes, in picoseconds of the cost model.
    pub cost: u64,
    /// Bytes of the arena that it needs only while it runs.
    pub scratch: usize,
    /// Whether it may run more than once. A step that writes a result never does, whatever this says.
    pub repeatable: bool,
    /// Whether an output that is never read before it is written again can be left out.
    pub prunable: bool,
    /// Pairs (operand, output): the output may be computed over the operand if this is the operand's last read. The
    /// first pair whose operand and output are both free is taken. An operand that the call reads twice must not occur.
    pub in_place: Vec<(u32, u32)>,
}

/// Why steps and values are not a problem that can be solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemFlaw {
    /// A step or a pair names a value that is not in the list.
    NoSuchValue {
        /// The step.
        step: u32,
        /// The value.
        value: u32,
    },
    /// A pair of `before` names a step that is not in the list.
    NoSuchStep {
        /// The step.
        step: u32,
    },
    /// A value is written by two steps, or by a step although it comes from outside.
    WrittenTwice {
        /// The value.
        value: u32,
    },
    /// No step writes a value of the arena or a result.
    NeverWritten {
        /// The value.
        value: u32,
    },
    /// A pair of `in_place` is not an operand and an output, or both are in the arena with different sizes.
    BadAlias {
        /// The step.
        step: u32,
    },
    /// All bytes together, or all costs together, exceed 2^60.
    TooLarge,
}

impl fmt::Display for ProblemFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProblemFlaw::NoSuchValue { step, value } => {
                write!(f, "step {step} names value {value}, which does not exist")
            }
            ProblemFlaw::NoSuchStep { step } => {
                write!(f, "a precedence pair names step {step}, which does not exist")
            }
            ProblemFlaw::WrittenTwice { value } => write!(f, "value {value} has more than one source"),
            ProblemFlaw::NeverWritten { value } => write!(f, "no step writes value {value}"),
            ProblemFlaw::BadAlias { step } => {
                write!(f, "an in-place pair of step {step} must be an operand and an output of the same size")
            }
            ProblemFlaw::TooLarge => write!(f, "bytes and costs must each sum to less than 2^60"),
        }
    }
}

impl std::error::Error for ProblemFlaw {}

/// Steps, the values they exchange, and what limits their repetition.
///
/// A *sequence* lists steps by number, and a step may occur again. It reads what was written last; a value is live
/// from where it is written to its last read before it is written again.
#[derive(Clone, Debug)]
pub struct Problem {
    pub(super) steps: Vec<RematStep>,
    pub(super) values: Vec<RematValue>,
    /// Pairs of steps, sorted.
    pub(super) before: Vec<(u32, u32)>,
    /// Per value, the step that writes it, or [`NONE`].
    pub(super) makers: Vec<u32>,
    /// Per value, the bytes of the arena it takes while it is live.
    pub(super) bytes: Vec<i64>,
    /// Per value, the fewest bytes of the arena it can take: 0 if it may be computed over a donated input.
    pub(super) least: Vec<i64>,
    /// Per value, whether a step reads it.
    pub(super) is_read: Vec<bool>,
    /// The bytes of all results.
    pub(super) results: i64,
    /// The cost of every step once.
    pub(super) cost: u64,
}

impl Problem {
    /// Checks steps and values and indexes them. `before` lists pairs of steps: every run of the first precedes every
    /// run of the second. A step that reads a variable comes before the variable's update, which makes the update its
    /// deadline: later, the old value cannot be read again.
    pub fn new(
        values: Vec<RematValue>,
        mut steps: Vec<RematStep>,
        mut before: Vec<(u32, u32)>,
    ) -> Result<Problem, ProblemFlaw> {
        let makers = makers(&values, &steps)?;
        for (i, step) in steps.iter_mut().enumerate() {
            check_aliases(&values, step, i as u32)?;
            step.reads.sort_unstable();
            step.reads.dedup();
            step.repeatable &= step.writes.iter().all(|&v| values[v as usize].residence != Residence::Result);
        }
        before.sort_unstable();
        before.dedup();
        let mut ends = before.iter().flat_map(|&(a, b)| [a, b]);
        if let Some(step) = ends.find(|&step| step as usize >= steps.len()) {
            return Err(ProblemFlaw::NoSuchStep { step });
        }
        let sizes = values.iter().map(|v| v.bytes).chain(steps.iter().map(|s| s.scratch));
        sum_of(sizes.map(|bytes| bytes as u64))?;
        let cost = sum_of(steps.iter().map(|s| s.cost))?;
        let results =
            values.iter().filter(|v| v.residence == Residence::Result).map(|v| v.bytes as i64).sum();
        let bytes = arena_bytes(&values, &steps, &makers);
        drop_needless_aliases(&values, &mut steps, &bytes);
        let least = least_bytes(&values, &steps, &bytes);
        let mut is_read = vec![false; values.len()];
        steps.iter().flat_map(|step| &step.reads).for_each(|&v| is_read[v as usize] = true);
        Ok(Problem { steps, values, before, makers, bytes, least, is_read, results, cost })
    }

    /// The steps.
    pub fn steps(&self) -> &[RematStep] {
        &self.steps
    }

    /// The values.
    pub fn values(&self) -> &[RematValue] {
        &self.values
    }

    /// The cost of a sequence: of every occurrence of every step.
    pub fn cost(&self, sequence: &[u32]) -> u64 {
        sequence.iter().fold(0u64, |sum, &step| sum.saturating_add(self.steps[step as usize].cost))
    }

    /// A lower bound on the bytes that any sequence needs: the results, and the working set of the largest step.
    pub fn lower_bound(&self) -> usize {
        let working = self.largest_step().map_or(0, |step| self.working_set(step as usize));
        (self.results + working) as usize
    }

    /// The step with the largest working set: operands, outputs and scratch, less what is computed in place.
    pub fn largest_step(&self) -> Option<u32> {
        (0..self.steps.len() as u32).rev().max_by_key(|&step| self.working_set(step as usize))
    }

    /// The fewest bytes of the arena that are in use while a step runs.
    pub(super) fn working_set(&self, step: usize) -> i64 {
        let RematStep { reads, writes, scratch, repeatable, prunable, in_place, .. } = &self.steps[step];
        let read: i64 = reads.iter().map(|&v| self.least[v as usize]).sum();
        let own = |v: u32| if *prunable && !self.is_read[v as usize] { 0 } else { self.least[v as usize] };
        let written = if *prunable && *repeatable {
            // Each output can have an occurrence of its own.
            let alone = |&v: &u32| if in_place.iter().any(|pair| pair.1 == v) { 0 } else { own(v) };
            writes.iter().map(alone).max().unwrap_or(0)
        } else {
            let over: i64 = self.aliases(step, |_| true).iter().map(|pair| own(pair.1)).sum();
            writes.iter().map(|&v| own(v)).sum::<i64>() - over
        };
        read + written + *scratch as i64
    }

    /// The in-place pairs that are taken if these operands die at the step: the first whose operand and output are free.
    pub(super) fn aliases(&self, step: usize, mut dies: impl FnMut(u32) -> bool) -> Aliases {
        let mut taken = Aliases::new();
        for &(operand, output) in &self.steps[step].in_place {
            let is_free = taken.iter().all(|pair: &(u32, u32)| pair.0 != operand && pair.1 != output);
            if is_free && dies(operand) {
                taken.push((operand, output));
            }
        }
        taken
    }
}

/// Pairs of an operand and the output that is computed over it.
pub(super) type Aliases = SmallVec<[(u32, u32); 4]>;

/// Per value, the step that writes it.
fn makers(values: &[RematValue], steps: &[RematStep]) -> Result<Vec<u32>, ProblemFlaw> {
    let mut makers = vec![NONE; values.len()];
    for (i, step) in steps.iter().enumerate() {
        let named = step.reads.iter().chain(&step.writes);
        if let Some(&value) = named.into_iter().find(|&&v| v as usize >= values.len()) {
            return Err(ProblemFlaw::NoSuchValue { step: i as u32, value });
        }
        for &value in &step.writes {
            let is_made = matches!(values[value as usize].residence, Residence::Arena | Residence::Result);
            if !is_made || makers[value as usize] != NONE {
                return Err(ProblemFlaw::WrittenTwice { value });
            }
            makers[value as usize] = i as u32;
        }
    }
    for (value, maker) in makers.iter().enumerate() {
        if *maker == NONE && matches!(values[value].residence, Residence::Arena | Residence::Result) {
            return Err(ProblemFlaw::NeverWritten { value: value as u32 });
        }
    }
    Ok(makers)
}

fn sum_of(mut list: impl Iterator<Item = u64>) -> Result<u64, ProblemFlaw> {
    let sum = list.try_fold(0u64, u64::checked_add);
    sum.filter(|&sum| sum < 1 << 60).ok_or(ProblemFlaw::TooLarge)
}

fn check_aliases(values: &[RematValue], step: &RematStep, number: u32) -> Result<(), ProblemFlaw> {
    let is_sound = |&(operand, output): &(u32, u32)| {
        let has_both = step.reads.contains(&operand) && step.writes.contains(&output);
        let is_arena = |v: u32| values[v as usize].residence == Residence::Arena;
        let same_size = |a: u32, b: u32| values[a as usize].bytes == values[b as usize].bytes;
        // Results and donated inputs are not rounded as the arena rounds.
        has_both && (!is_arena(operand) || !is_arena(output) || same_size(operand, output))
    };
    if step.in_place.iter().all(is_sound) { Ok(()) } else { Err(ProblemFlaw::BadAlias { step: number }) }
}

/// Per value, the bytes of the arena it takes. A value that only one step reads, and that a result is computed over there,
/// lies in the result's buffer, which is counted already; and so does what that value is computed over in turn.
fn arena_bytes(values: &[RematValue], steps: &[RematStep], makers: &[u32]) -> Vec<i64> {
    let of_arena = |v: &RematValue| if v.residence == Residence::Arena { v.bytes as i64 } else { 0 };
    let mut bytes: Vec<i64> = values.iter().map(of_arena).collect();
    let mut readers = vec![0u32; values.len()];
    steps.iter().flat_map(|step| &step.reads).for_each(|&v| readers[v as usize] += 1);
    let results =
        (0..values.len()).filter(|&v| values[v].residence == Residence::Result && values[v].bytes > 0);
    let mut open: Vec<u32> = results.map(|v| v as u32).collect();
    while let Some(output) = open.pop() {
        let pairs = &steps[makers[output as usize] as usize].in_place;
        let Some(&(operand, _)) = pairs.iter().find(|pair| pair.1 == output) else { continue };
        let first = pairs.iter().find(|pair| pair.0 == operand);
        let is_sure = readers[operand as usize] == 1 && first.is_some_and(|pair| pair.1 == output);
        if is_sure && values[operand as usize].residence == Residence::Arena {
            bytes[operand as usize] = 0;
            open.push(operand);
        }
    }
    bytes
}

/// Keeps the in-place pairs that save bytes of the arena.
fn drop_needless_aliases(values: &[RematValue], steps: &mut [RematStep], bytes: &[i64]) {
    for step in steps {
        step.in_place.retain(|&(operand, output)| {
            let is_free =
                bytes[operand as usize] > 0 || values[operand as usize].residence == Residence::Donated;
            is_free && bytes[output as usize] > 0
        });
    }
}

/// Per value, the fewest bytes it can take: what is computed over a donated input lies there.
fn least_bytes(values: &[RematValue], steps: &[RematStep], bytes: &[i64]) -> Vec<i64> {
    let mut least = bytes.to_vec();
    let mut open: Vec<u32> =
        (0..values.len() as u32).filter(|&v| values[v as usize].residence == Residence::Donated).collect();
    if open.is_empty() {
        return least;
    }
    let mut over: Vec<Vec<u32>> = vec![Vec::new(); values.len()];
    for &(operand, output) in steps.iter().flat_map(|step| &step.in_place) {
        over[operand as usize].push(output);
    }
    while let Some(operand) = open.pop() {
        for &output in &over[operand as usize] {
            if std::mem::replace(&mut least[output as usize], 0) > 0 {
                open.push(output);
            }
        }
    }
    least
}
