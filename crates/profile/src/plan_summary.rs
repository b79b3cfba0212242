//! The summary of a plan: its steps and buffers, without the program, which holds tensors that a recording must not keep
//! alive.

use taut_core::{Cost, Spec, Specs};
use taut_memory::Location;
use taut_plan::{Home, Program};

/// What a planned buffer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlannedRole {
    /// A value in the arena.
    Value,
    /// A kernel's scratch memory, in the arena.
    Scratch,
    /// An output buffer, allocated for the caller.
    Output,
}

/// A buffer of a plan.
#[derive(Clone, Debug)]
pub(crate) struct PlannedBuffer {
    pub(crate) role: PlannedRole,
    /// Its offset in the arena, or above the arena if it is an output buffer.
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
    /// The first step of its live range.
    pub(crate) start: usize,
    /// The step after the last of its live range.
    pub(crate) end: usize,
    pub(crate) writers: Vec<usize>,
    pub(crate) readers: Vec<usize>,
}

impl PlannedBuffer {
    pub(crate) fn is_live(&self, step: usize) -> bool {
        self.start <= step && step < self.end
    }

    /// The last step up to this one that writes it, or else the first one after.
    pub(crate) fn writer(&self, step: usize) -> Option<usize> {
        let written = self.writers.iter().rev().find(|&&writer| writer <= step);
        written.or(self.writers.first()).copied()
    }
}

/// A step of a plan.
#[derive(Clone, Debug)]
pub(crate) struct PlannedStep {
    pub(crate) op: &'static str,
    pub(crate) at: Location,
    pub(crate) outputs: Specs,
    pub(crate) cost: Cost,
    /// The op's attributes, as graphs print them.
    pub(crate) attributes: String,
}

/// A program's steps and buffers.
#[derive(Clone, Debug)]
pub(crate) struct PlanSummary {
    pub(crate) steps: Vec<PlannedStep>,
    /// Buffers of the arena, and output buffers.
    pub(crate) buffers: Vec<PlannedBuffer>,
    /// Per output buffer, the one of `buffers` that is returned in it.
    pub(crate) outputs: Vec<Option<usize>>,
    pub(crate) arena: usize,
    pub(crate) peak: usize,
    pub(crate) lower_bound: usize,
    keys: Vec<StorageKey>,
}

/// A storage's home, bytes, and live range: start and end.
type StorageKey = (Home, usize, usize, usize);

fn keys(program: &Program) -> impl Iterator<Item = StorageKey> {
    program.storages.iter().map(|storage| (storage.home, storage.bytes, storage.start, storage.end))
}

impl PlanSummary {
    pub(crate) fn new(program: &Program) -> PlanSummary {
        let arena = program.arena_bytes();
        let above = |output: usize| arena + program.buffers[..output].iter().sum::<usize>();
        let mut buffers = Vec::new();
        let mut outputs = vec![None; program.buffers.len()];
        for (i, storage) in program.storages.iter().enumerate() {
            let (role, offset) = match storage.home {
                Home::Arena(offset) => (PlannedRole::Value, offset),
                Home::Output(output) => (PlannedRole::Output, above(output)),
                _ => continue,
            };
            let steps = || program.steps.iter().enumerate();
            let writes =
                |step: &taut_plan::ProgramStep| step.targets.iter().any(|target| target.storage == i);
            let reads =
                |step: &taut_plan::ProgramStep| step.operands.iter().any(|operand| operand.storage == i);
            let writers: Vec<usize> = steps().filter(|(_, step)| writes(step)).map(|(s, _)| s).collect();
            if storage.bytes == 0 || writers.is_empty() {
                continue;
            }
            if let Home::Output(output) = storage.home
                && storage.end > program.steps.len()
            {
                outputs[output] = Some(buffers.len());
            }
            let readers = steps().filter(|(_, step)| reads(step)).map(|(s, _)| s).collect();
            let (bytes, start, end) = (storage.bytes, storage.start, storage.end);
            buffers.push(PlannedBuffer { role, offset, bytes, start, end, writers, readers });
        }
        for (i, step) in program.steps.iter().enumerate().filter(|(_, step)| step.scratch.1 > 0) {
            let (offset, bytes) = step.scratch;
            let (writers, readers) = (vec![i], Vec::new());
            buffers.push(PlannedBuffer {
                role: PlannedRole::Scratch,
                offset,
                bytes,
                start: i,
                end: i + 1,
                writers,
                readers,
            });
        }
        PlanSummary {
            steps: program.steps.iter().map(step_summary).collect(),
            buffers,
            outputs,
            arena,
            peak: program.peak_bytes(),
            lower_bound: program.lower_bound(),
            keys: keys(program).collect(),
        }
    }

    /// Whether it is the summary of this program: all that a summary shows is equal.
    pub(crate) fn is_of(&self, program: &Program) -> bool {
        let steps = program.steps.iter().map(|step| (step.name(), step.at));
        self.matches(program.arena_bytes(), keys(program), steps)
    }

    /// Whether two summaries are those of the same program.
    pub(crate) fn is_same(&self, other: &PlanSummary) -> bool {
        let steps = other.steps.iter().map(|step| (step.op, step.at));
        self.matches(other.arena, other.keys.iter().copied(), steps)
    }

    fn matches(
        &self,
        arena: usize,
        keys: impl Iterator<Item = StorageKey>,
        steps: impl Iterator<Item = (&'static str, Location)>,
    ) -> bool {
        self.arena == arena
            && self.keys.iter().copied().eq(keys)
            && self.steps.iter().map(|step| (step.op, step.at)).eq(steps)
    }

    /// Bytes of the arena that are live at a step: values, and scratch memory.
    pub(crate) fn used(&self, step: usize) -> (usize, usize) {
        let sum = |role: PlannedRole| {
            let alive = self.buffers.iter().filter(|buffer| buffer.role == role && buffer.is_live(step));
            alive.map(|buffer| buffer.bytes).sum()
        };
        (sum(PlannedRole::Value), sum(PlannedRole::Scratch))
    }

    /// The first step at which the most bytes of the arena are live.
    pub(crate) fn peak_step(&self) -> Option<usize> {
        let used = |step: usize| {
            let (values, scratch) = self.used(step);
            values + scratch
        };
        (0..self.steps.len()).rev().max_by_key(|&step| used(step))
    }

    /// Why a buffer of the arena is live at a step.
    pub(crate) fn why(&self, buffer: &PlannedBuffer, step: usize) -> String {
        let named = |i: usize| format!("{} at {}", self.steps[i].op, self.steps[i].at.short());
        let next = buffer.readers.iter().find(|&&reader| reader > step).copied();
        if buffer.role == PlannedRole::Scratch {
            return String::from("scratch memory of this step");
        }
        if buffer.writers.contains(&step) {
            return String::from("written by this step");
        }
        match (buffer.readers.contains(&step), next) {
            (true, None) => String::from("read by this step"),
            (true, Some(next)) => format!("read by this step, and by {}", named(next)),
            (false, Some(next)) => format!("kept for {}", named(next)),
            (false, None) => String::from("written and never read"),
        }
    }
}

fn step_summary(step: &taut_plan::ProgramStep) -> PlannedStep {
    let outputs: Vec<Spec> = step.targets.iter().map(|target| target.spec.clone()).collect();
    let inputs: Vec<Spec> =
        step.operands.iter().map(|operand| Spec::new(operand.dtype, operand.layout.shape.clone())).collect();
    let inputs: Vec<&Spec> = inputs.iter().collect();
    let cost = match &step.op {
        Some(op) => op.cost(&inputs, &outputs),
        None => Cost { flops: 0, bytes: Cost::traffic(&inputs, &outputs) },
    };
    let attributes = step.op.as_ref().map(|op| op.attributes()).unwrap_or_default();
    PlannedStep { op: step.name(), at: step.at, outputs: outputs.into(), cost, attributes }
}
