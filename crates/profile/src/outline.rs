//! What a plan says of memory, without the plan: a program holds tensors, and a recording must not keep any alive.

use taut_core::{Cost, Spec, Specs};
use taut_memory::Location;
use taut_plan::{Home, Program};

/// What a buffer of a plan is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// A value in the arena.
    Value,
    /// A kernel's scratch memory, in the arena.
    Scratch,
    /// Made for the caller.
    Output,
}

/// A buffer of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub(crate) role: Role,
    /// Where it begins: in the arena, or above it if it is made for the caller.
    pub(crate) offset: usize,
    pub(crate) bytes: usize,
    /// The first step that needs it.
    pub(crate) start: usize,
    /// The step after the last one that needs it.
    pub(crate) end: usize,
    pub(crate) writers: Vec<usize>,
    pub(crate) readers: Vec<usize>,
}

impl Planned {
    pub(crate) fn is_alive(&self, step: usize) -> bool {
        self.start <= step && step < self.end
    }

    /// The step whose result it holds at this step, or will hold.
    pub(crate) fn writer(&self, step: usize) -> Option<usize> {
        let written = self.writers.iter().rev().find(|&&writer| writer <= step);
        written.or(self.writers.first()).copied()
    }
}

/// A step of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) op: &'static str,
    pub(crate) at: Location,
    pub(crate) outputs: Specs,
    pub(crate) cost: Cost,
    /// What the op was asked for, as graphs print it.
    pub(crate) attributes: String,
}

/// A program's steps and buffers.
#[derive(Clone, Debug)]
pub(crate) struct Outline {
    pub(crate) steps: Vec<Step>,
    /// What lies in the arena and what is made for the caller.
    pub(crate) buffers: Vec<Planned>,
    /// Per buffer made for the caller, the one of `buffers` that is returned in it.
    pub(crate) outputs: Vec<Option<usize>>,
    pub(crate) arena: usize,
    pub(crate) peak: usize,
    pub(crate) lower_bound: usize,
    places: Vec<Place>,
}

/// Where a storage lies, its bytes, its first step and its end.
type Place = (Home, usize, usize, usize);

fn places(program: &Program) -> impl Iterator<Item = Place> {
    program.storages.iter().map(|storage| (storage.home, storage.bytes, storage.start, storage.end))
}

impl Outline {
    pub(crate) fn new(program: &Program) -> Outline {
        let arena = program.arena_bytes();
        let above = |output: usize| arena + program.buffers[..output].iter().sum::<usize>();
        let mut buffers = Vec::new();
        let mut outputs = vec![None; program.buffers.len()];
        for (i, storage) in program.storages.iter().enumerate() {
            let (role, offset) = match storage.home {
                Home::Arena(offset) => (Role::Value, offset),
                Home::Output(output) => (Role::Output, above(output)),
                _ => continue,
            };
            let steps = || program.steps.iter().enumerate();
            let writes = |step: &taut_plan::ProgramStep| step.targets.iter().any(|target| target.storage == i);
            let reads = |step: &taut_plan::ProgramStep| step.operands.iter().any(|operand| operand.storage == i);
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
            buffers.push(Planned { role, offset, bytes, start, end, writers, readers });
        }
        for (i, step) in program.steps.iter().enumerate().filter(|(_, step)| step.scratch.1 > 0) {
            let (offset, bytes) = step.scratch;
            let (writers, readers) = (vec![i], Vec::new());
            buffers.push(Planned {
                role: Role::Scratch,
                offset,
                bytes,
                start: i,
                end: i + 1,
                writers,
                readers,
            });
        }
        Outline {
            steps: program.steps.iter().map(outline).collect(),
            buffers,
            outputs,
            arena,
            peak: program.peak_bytes(),
            lower_bound: program.lower_bound(),
            places: places(program).collect(),
        }
    }

    /// Whether it is the outline of this program, as far as anybody could tell them apart.
    pub(crate) fn is_of(&self, program: &Program) -> bool {
        let steps = program.steps.iter().map(|step| (step.name(), step.at));
        self.matches(program.arena_bytes(), places(program), steps)
    }

    /// Whether two outlines are those of the same program.
    pub(crate) fn is_same(&self, other: &Outline) -> bool {
        let steps = other.steps.iter().map(|step| (step.op, step.at));
        self.matches(other.arena, other.places.iter().copied(), steps)
    }

    fn matches(
        &self,
        arena: usize,
        places: impl Iterator<Item = Place>,
        steps: impl Iterator<Item = (&'static str, Location)>,
    ) -> bool {
        self.arena == arena
            && self.places.iter().copied().eq(places)
            && self.steps.iter().map(|step| (step.op, step.at)).eq(steps)
    }

    /// Bytes of the arena in use at a step: values, scratch memory.
    pub(crate) fn used(&self, step: usize) -> (usize, usize) {
        let sum = |role: Role| {
            let alive = self.buffers.iter().filter(|buffer| buffer.role == role && buffer.is_alive(step));
            alive.map(|buffer| buffer.bytes).sum()
        };
        (sum(Role::Value), sum(Role::Scratch))
    }

    /// The first step at which most bytes of the arena are in use.
    pub(crate) fn peak_step(&self) -> Option<usize> {
        let used = |step: usize| {
            let (values, scratch) = self.used(step);
            values + scratch
        };
        (0..self.steps.len()).rev().max_by_key(|&step| used(step))
    }

    /// Why a buffer of the arena is there at a step.
    pub(crate) fn why(&self, buffer: &Planned, step: usize) -> String {
        let named = |i: usize| format!("{} at {}", self.steps[i].op, self.steps[i].at.short());
        let next = buffer.readers.iter().find(|&&reader| reader > step).copied();
        if buffer.role == Role::Scratch {
            return String::from("scratch memory of this step");
        }
        if buffer.writers.contains(&step) {
            return String::from("made by this step");
        }
        match (buffer.readers.contains(&step), next) {
            (true, None) => String::from("read by this step"),
            (true, Some(next)) => format!("read by this step, and by {}", named(next)),
            (false, Some(next)) => format!("kept for {}", named(next)),
            (false, None) => String::from("made, and not read"),
        }
    }
}

fn outline(step: &taut_plan::ProgramStep) -> Step {
    let outputs: Vec<Spec> = step.targets.iter().map(|target| target.spec.clone()).collect();
    let inputs: Vec<Spec> =
        step.operands.iter().map(|operand| Spec::new(operand.dtype, operand.layout.shape.clone())).collect();
    let inputs: Vec<&Spec> = inputs.iter().collect();
    let cost = match &step.op {
        Some(op) => op.cost(&inputs, &outputs),
        None => Cost { flops: 0, bytes: Cost::traffic(&inputs, &outputs) },
    };
    let attributes = step.op.as_ref().map(|op| op.attributes()).unwrap_or_default();
    Step { op: step.name(), at: step.at, outputs: outputs.into(), cost, attributes }
}
