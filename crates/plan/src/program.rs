//! A graph made ready to run: which calls run in which order, and where every value lies.

use crate::lower::Draft;
use crate::order::Orders;
use crate::{Packing, PlanRequest, place};
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::graph::ValueId;
use taut_core::{DType, Error, ErrorKind, Graph, Layout, Op, Result, Spec, Strides, Tensor};
use taut_memory::Location;

/// Where a storage is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The memory of the n-th input of the graph.
    Input(usize),
    /// The n-th of the tensors that were there before the trace.
    Constant(usize),
    /// In the arena, from this byte on.
    Arena(usize),
    /// The n-th buffer that is made for the caller.
    Output(usize),
}

/// A piece of memory that values share: one value, its views, and what is computed over it in place.
#[derive(Clone, Debug)]
pub struct Storage {
    /// Where it is. Two storages may have the same home, one after the other.
    pub home: Home,
    /// Its bytes.
    pub bytes: usize,
    /// The first step that writes it; 0 if it is there before the first step.
    pub start: usize,
    /// The step after the last one that needs it; one more than there are steps if it is needed after the run.
    pub end: usize,
    /// The value that it was made for.
    pub value: ValueId,
}

/// A value as a step reads it.
#[derive(Clone, Debug)]
pub struct StepInput {
    /// Its storage, by number.
    pub storage: usize,
    /// Its type.
    pub dtype: DType,
    /// Where its elements lie in the storage.
    pub layout: Layout,
    /// The output that overwrites it, if one does.
    pub in_place: Option<usize>,
}

/// A value as a step writes it: a whole storage, in row-major order.
#[derive(Clone, Debug)]
pub struct StepOutput {
    /// Its storage, by number.
    pub storage: usize,
    /// Its type and shape.
    pub spec: Spec,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Step {
    /// The op; `None` copies its operand into row-major order.
    pub op: Option<Arc<dyn Op>>,
    /// What it reads.
    pub operands: SmallVec<[StepInput; 3]>,
    /// What it writes.
    pub targets: SmallVec<[StepOutput; 1]>,
    /// Scratch memory: its first byte in the arena, and its length.
    pub scratch: (usize, usize),
    /// The line that called it.
    pub at: Location,
}

impl Step {
    /// The op's name; a copy is one too.
    pub fn name(&self) -> &'static str {
        self.op.as_ref().map_or("copy", |op| op.name())
    }
}

/// What a program does to an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It only reads it.
    Read,
    /// It may put other values into its memory, or return it.
    Donated,
    /// It leaves a new value in its memory.
    Updated,
}

/// An input as a program expects it.
#[derive(Clone, Debug)]
pub struct ProgramInput {
    /// Its type and shape.
    pub spec: Spec,
    /// Its strides, in elements; `None` if it is contiguous.
    pub strides: Option<Strides>,
    /// What happens to it.
    pub access: Access,
}

/// A graph made ready to run: calls in order, every value at its place, every byte known.
#[derive(Clone, Debug)]
pub struct Program {
    /// The calls.
    pub steps: Vec<Step>,
    /// The pieces of memory that values live in.
    pub storages: Vec<Storage>,
    /// The graph's outputs that are returned, as they are read once all steps are done.
    pub results: Vec<StepInput>,
    /// The lengths of the buffers that are made for the caller.
    pub buffers: Vec<usize>,
    /// The tensors that were there before the trace.
    pub constants: Vec<Tensor>,
    /// What the caller provides.
    pub inputs: Vec<ProgramInput>,
    /// How the arena is packed.
    pub packing: Packing,
}

impl Program {
    /// Plans a graph whose inputs are contiguous and only read. Calls that lead to no output are left out.
    #[track_caller]
    pub fn new(graph: &Graph) -> Result<Program> {
        Program::plan(graph, &PlanRequest::default())
    }

    /// Plans a graph.
    ///
    /// ```
    /// use taut_core::{DType, Spec, trace};
    /// use taut_plan::{InputRequest, PlanRequest, Program};
    /// let specs = [Spec::new(DType::F32, [256]), Spec::new(DType::F32, [256])];
    /// // A step of gradient descent, and the square of the new value.
    /// let graph = trace(&specs, |x| {
    ///     let new = (&x[0] - (&x[1] * 0.1)?)?;
    ///     Ok(vec![(&new * &new)?, new])
    /// })?
    /// .graph;
    /// assert_eq!(Program::new(&graph)?.peak_bytes(), 2048);
    ///
    /// // The second output goes where the first input was, and the gradient's memory is there to be used.
    /// let request = PlanRequest { inputs: vec![InputRequest::default(), InputRequest::donated()], updates: vec![(1, 0)], ..PlanRequest::default() };
    /// assert_eq!(Program::plan(&graph, &request)?.peak_bytes(), 0);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn plan(graph: &Graph, request: &PlanRequest) -> Result<Program> {
        graph.verify()?;
        let draft = Draft::new(graph, request, Location::caller())?;
        let orders = Orders::new(&draft, request.as_written);
        place::best(draft, orders)
    }

    /// The length of the arena.
    pub fn arena_bytes(&self) -> usize {
        self.packing.bytes
    }

    /// Bytes of the buffers that are made for the caller.
    pub fn output_bytes(&self) -> usize {
        self.buffers.iter().sum()
    }

    /// What a run holds at its peak beyond its inputs and constants: the arena, and the buffers made for the caller.
    pub fn peak_bytes(&self) -> usize {
        self.arena_bytes() + self.output_bytes()
    }

    /// The least that any packing of these lifetimes would need.
    pub fn lower_bound(&self) -> usize {
        self.packing.lower_bound + self.output_bytes()
    }

    /// Bytes of the inputs that are read or given.
    pub fn input_bytes(&self) -> usize {
        let inputs = self.inputs.iter().filter(|input| input.access != Access::Updated);
        inputs.map(|input| input.spec.bytes()).sum()
    }

    /// Bytes of the inputs that are updated.
    pub fn variable_bytes(&self) -> usize {
        let inputs = self.inputs.iter().filter(|input| input.access == Access::Updated);
        inputs.map(|input| input.spec.bytes()).sum()
    }

    /// Bytes of the tensors that were there before the trace.
    pub fn constant_bytes(&self) -> usize {
        self.constants.iter().map(|constant| constant.spec().bytes()).sum()
    }

    /// All bytes that are there at the peak: what the caller provides, constants, outputs and the arena.
    pub fn total_bytes(&self) -> usize {
        self.input_bytes() + self.variable_bytes() + self.constant_bytes() + self.peak_bytes()
    }

    /// How much larger than its lower bound the arena is, as a fraction of it.
    pub fn packing_gap(&self) -> f64 {
        self.packing.gap()
    }

    /// Checks that no step reads what is not there or writes over what is still needed, without trusting how the plan
    /// was made.
    pub fn verify(&self) -> Result<()> {
        let broken = |i: usize, what: &str| {
            let step = &self.steps[i];
            let message = format!("step {i} ({}) {what}", step.name());
            Err(Error::new(ErrorKind::Graph, message).at(step.at))
        };
        let mut written: Vec<bool> = (self.storages.iter())
            .map(|storage| matches!(storage.home, Home::Input(_) | Home::Constant(_)) && storage.start == 0)
            .collect();
        for (i, step) in self.steps.iter().enumerate() {
            for operand in &step.operands {
                let storage = &self.storages[operand.storage];
                if !written[operand.storage] || i < storage.start || i >= storage.end {
                    return broken(i, "reads what is not there");
                }
            }
            for (output, target) in step.targets.iter().enumerate() {
                let storage = &self.storages[target.storage];
                let over = |o: &StepInput| o.storage == target.storage && o.in_place != Some(output);
                if i < storage.start || i >= storage.end || step.operands.iter().any(over) {
                    return broken(i, "writes what is not its own");
                }
                written[target.storage] = true;
            }
        }
        if self
            .results
            .iter()
            .any(|r| !written[r.storage] || self.storages[r.storage].end <= self.steps.len())
        {
            return Err(Error::new(ErrorKind::Graph, "what is returned is not there after the run"));
        }
        self.verify_places()
    }

    /// Whether storages that are alive together lie apart.
    fn verify_places(&self) -> Result<()> {
        let shared = |a: usize, b: usize| {
            Err(Error::new(ErrorKind::Graph, format!("storages {a} and {b} are alive together in one place")))
        };
        let (mut packed, mut numbers, mut owners) = (Vec::new(), Vec::new(), Vec::<(Home, usize)>::new());
        let mut packing = Packing { offsets: Vec::new(), ..self.packing.clone() };
        for (i, storage) in self.storages.iter().enumerate() {
            match storage.home {
                Home::Arena(offset) => {
                    packed.push(place::buffer(storage.bytes, storage.start, storage.end));
                    packing.offsets.push(offset);
                    numbers.push(i);
                }
                // A constant is only read, and may be there twice.
                Home::Constant(_) => {}
                home => owners.push((home, i)),
            }
        }
        for (i, step) in self.steps.iter().enumerate().filter(|(_, step)| step.scratch.1 > 0) {
            packed.push(place::buffer(step.scratch.1, i, i + 1));
            packing.offsets.push(step.scratch.0);
        }
        if let Err(flaw) = crate::verify(&packed, &packing) {
            return Err(Error::new(ErrorKind::Graph, flaw.to_string()));
        }
        for (i, &(home, a)) in owners.iter().enumerate() {
            let other = owners[..i].iter().find(|&&(other, b)| {
                let (a, b) = (&self.storages[a], &self.storages[b]);
                home == other && a.start < b.end && b.start < a.end && a.bytes > 0
            });
            if let Some(&(_, b)) = other {
                return shared(b, a);
            }
        }
        Ok(())
    }
}
