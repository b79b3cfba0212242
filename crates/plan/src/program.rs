//! A planned graph: the order of its calls, and the memory of every value.

use crate::cost::{cost, picoseconds};
use crate::lower::LoweredGraph;
use crate::order::CandidateOrders;
use crate::{Packing, PlanRequest, placement};
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::graph::ValueId;
use taut_core::{Cost, DType, Error, ErrorKind, Graph, Layout, Op, Result, Spec, Strides, Tensor, Traffic};
use taut_memory::Location;

/// The memory of a storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Home {
    /// The memory of the n-th input of the graph.
    Input(usize),
    /// The memory of the n-th captured constant.
    Constant(usize),
    /// The arena, from this byte on.
    Arena(usize),
    /// The n-th output buffer, allocated for the caller.
    Output(usize),
}

/// A range of memory shared by values that alias: a value, its views, and values computed in place of it.
#[derive(Clone, Debug)]
pub struct Storage {
    /// Where it is. Two storages with disjoint live ranges may have the same home.
    pub home: Home,
    /// Its bytes.
    pub bytes: usize,
    /// The first step of its live range: the step that first writes it, or 0 if it exists before the run.
    pub start: usize,
    /// The step after the last of its live range; one more than the number of steps if it is used after the run.
    pub end: usize,
    /// The first of its values.
    pub value: ValueId,
}

/// A value as a step reads it.
#[derive(Clone, Debug)]
pub struct StepInput {
    /// The index of its storage.
    pub storage: usize,
    /// Its type.
    pub dtype: DType,
    /// Its layout in the storage.
    pub layout: Layout,
    /// The output that is computed in place of it, if one is.
    pub in_place: Option<usize>,
}

/// A value as a step writes it: a whole storage, in row-major order.
#[derive(Clone, Debug)]
pub struct StepOutput {
    /// The index of its storage.
    pub storage: usize,
    /// Its type and shape.
    pub spec: Spec,
}

/// One call of a program.
#[derive(Clone, Debug)]
pub struct ProgramStep {
    /// The op; `None` copies the operand into row-major order.
    pub op: Option<Arc<dyn Op>>,
    /// The values it reads.
    pub operands: SmallVec<[StepInput; 3]>,
    /// The values it writes.
    pub targets: SmallVec<[StepOutput; 1]>,
    /// Scratch memory: its offset in the arena, and its length, in bytes.
    pub scratch: (usize, usize),
    /// The source location of the call.
    pub at: Location,
    /// Whether it computes again what an earlier step computed, to keep a memory budget.
    pub is_repeat: bool,
}

impl ProgramStep {
    /// The op's name; `copy` for a copy.
    pub fn name(&self) -> &'static str {
        self.op.as_ref().map_or("copy", |op| op.name())
    }
}

/// How a program uses the memory of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It only reads it.
    Read,
    /// It may overwrite it with other values, or return it.
    Donated,
    /// It leaves a new value in it.
    Updated,
}

/// An input as a program expects it.
#[derive(Clone, Debug)]
pub struct ProgramInput {
    /// Its type and shape.
    pub spec: Spec,
    /// Its strides, in elements; `None` if it is contiguous.
    pub strides: Option<Strides>,
    /// How its memory is used.
    pub access: Access,
}

/// A planned graph: calls in order, and the memory of every value.
#[derive(Clone, Debug)]
pub struct Program {
    /// The calls, in the order in which they run.
    pub steps: Vec<ProgramStep>,
    /// The memory of all values.
    pub storages: Vec<Storage>,
    /// The graph's outputs that are returned, as they are read after the last step.
    pub results: Vec<StepInput>,
    /// The lengths of the output buffers, in bytes.
    pub buffers: Vec<usize>,
    /// The captured constants.
    pub constants: Vec<Tensor>,
    /// The inputs that the caller passes.
    pub inputs: Vec<ProgramInput>,
    /// How the arena is packed.
    pub packing: Packing,
}

impl Program {
    /// Plans a graph whose inputs are contiguous and only read. Dead code is left out.
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
    /// // The second output updates the first input, and the gradient is donated.
    /// let inputs = vec![InputRequest::default(), InputRequest::donated()];
    /// let request = PlanRequest { inputs, updates: vec![(1, 0)], ..PlanRequest::default() };
    /// assert_eq!(Program::plan(&graph, &request)?.peak_bytes(), 0);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn plan(graph: &Graph, request: &PlanRequest) -> Result<Program> {
        graph.verify()?;
        let lowered = LoweredGraph::new(graph, request, Location::caller())?;
        let orders = CandidateOrders::new(&lowered, request.keep_order);
        let best = placement::best(&lowered, orders)?;
        Ok(best.program(lowered))
    }

    /// The length of the arena, in bytes.
    pub fn arena_bytes(&self) -> usize {
        self.packing.bytes
    }

    /// Bytes of the output buffers.
    pub fn output_bytes(&self) -> usize {
        self.buffers.iter().sum()
    }

    /// Bytes that a run allocates: the arena and the output buffers. Inputs and constants are not included.
    pub fn peak_bytes(&self) -> usize {
        self.arena_bytes() + self.output_bytes()
    }

    /// A lower bound of the peak for these live ranges: no packing needs fewer bytes.
    pub fn lower_bound(&self) -> usize {
        self.packing.lower_bound + self.output_bytes()
    }

    /// Bytes of the inputs that are read or donated.
    pub fn input_bytes(&self) -> usize {
        let inputs = self.inputs.iter().filter(|input| input.access != Access::Updated);
        inputs.map(|input| input.spec.bytes()).sum()
    }

    /// Bytes of the inputs that are updated.
    pub fn variable_bytes(&self) -> usize {
        let inputs = self.inputs.iter().filter(|input| input.access == Access::Updated);
        inputs.map(|input| input.spec.bytes()).sum()
    }

    /// Bytes of the captured constants.
    pub fn constant_bytes(&self) -> usize {
        self.constants.iter().map(|constant| constant.spec().bytes()).sum()
    }

    /// The time of a run, in picoseconds of the planner's cost model.
    pub fn time(&self) -> u64 {
        self.steps.iter().map(picoseconds).fold(0, u64::saturating_add)
    }

    /// Whether a run allocates at most this many bytes.
    pub fn fits(&self, bytes: usize) -> bool {
        self.peak_bytes() <= bytes
    }

    /// The steps that compute again what an earlier step computed, to keep a memory budget.
    pub fn repeated_steps(&self) -> impl Iterator<Item = &ProgramStep> {
        self.steps.iter().filter(|step| step.is_repeat)
    }

    /// The work of the steps that run again.
    pub fn repeated_cost(&self) -> Cost {
        self.repeated_steps().map(cost).fold(Cost::default(), Cost::plus)
    }

    /// The steps that exchange with other processes, in order, with what each sends. A step that holds graphs counts one run of
    /// each.
    pub fn collectives(&self) -> Vec<(&ProgramStep, Traffic)> {
        let traffic = |step: &ProgramStep| {
            let specs: SmallVec<[Spec; 3]> =
                step.operands.iter().map(|o| Spec::new(o.dtype, o.layout.shape.clone())).collect();
            traffic_of(&**step.op.as_ref()?, &specs.iter().collect::<SmallVec<[&Spec; 3]>>())
        };
        self.steps.iter().filter_map(|step| Some((step, traffic(step)?))).collect()
    }

    /// All bytes in use at the peak: inputs, constants, output buffers and the arena.
    pub fn total_bytes(&self) -> usize {
        self.input_bytes() + self.variable_bytes() + self.constant_bytes() + self.peak_bytes()
    }

    /// How much larger than its lower bound the arena is, as a fraction of the lower bound.
    pub fn packing_gap(&self) -> f64 {
        self.packing.gap()
    }

    /// Checks, independently of how the plan was made, that no step reads a value that is not live or overwrites one that
    /// is.
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
                    return broken(i, "reads a storage that is not live");
                }
            }
            for (output, target) in step.targets.iter().enumerate() {
                let storage = &self.storages[target.storage];
                let over = |o: &StepInput| o.storage == target.storage && o.in_place != Some(output);
                if i < storage.start || i >= storage.end || step.operands.iter().any(over) {
                    return broken(
                        i,
                        "writes a storage that is not live, or that it reads and does not overwrite in place",
                    );
                }
                written[target.storage] = true;
            }
        }
        if self
            .results
            .iter()
            .any(|r| !written[r.storage] || self.storages[r.storage].end <= self.steps.len())
        {
            return Err(Error::new(ErrorKind::Graph, "a returned value is not live after the run"));
        }
        self.verify_homes()
    }

    /// Whether storages with overlapping live ranges share no memory.
    fn verify_homes(&self) -> Result<()> {
        let shared = |a: usize, b: usize| {
            let message = format!("storages {a} and {b} are live at the same time and share memory");
            Err(Error::new(ErrorKind::Graph, message))
        };
        let (mut packed, mut numbers, mut owners) = (Vec::new(), Vec::new(), Vec::<(Home, usize)>::new());
        let mut packing = Packing { offsets: Vec::new(), ..self.packing.clone() };
        for (i, storage) in self.storages.iter().enumerate() {
            match storage.home {
                Home::Arena(offset) => {
                    packed.push(placement::buffer(storage.bytes, storage.start, storage.end));
                    packing.offsets.push(offset);
                    numbers.push(i);
                }
                // A constant is only read, and several storages may share it.
                Home::Constant(_) => {}
                home => owners.push((home, i)),
            }
        }
        for (i, step) in self.steps.iter().enumerate().filter(|(_, step)| step.scratch.1 > 0) {
            packed.push(placement::buffer(step.scratch.1, i, i + 1));
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

/// What an op and the graphs that it holds exchange with other processes.
fn traffic_of(op: &dyn Op, inputs: &[&Spec]) -> Option<Traffic> {
    if let Some(traffic) = op.traffic(inputs) {
        return Some(traffic);
    }
    let graphs = op.subgraphs()?.graphs();
    let nodes = graphs.iter().flat_map(|(_, graph)| graph.nodes.iter().map(move |node| (graph, node)));
    let each = nodes.filter_map(|(graph, node)| {
        let specs: SmallVec<[&Spec; 3]> = node.inputs.iter().map(|&id| graph.spec(id)).collect();
        traffic_of(&*node.op, &specs)
    });
    each.reduce(|a, b| Traffic {
        ranks: a.ranks.max(b.ranks),
        messages: a.messages.saturating_add(b.messages),
        bytes: a.bytes.saturating_add(b.bytes),
    })
}
