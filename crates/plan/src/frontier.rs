//! The plans of one graph for every memory budget.

use crate::cost::picoseconds;
use crate::lower::{AliasSet, AliasSetKind, LoweredGraph};
use crate::order::CandidateOrders;
use crate::placement::{self, PackedOrder, rounded};
use crate::program::ProgramStep;
use crate::remat::{self, Problem, RematEffort, RematStep, RematValue, Residence};
use crate::{Effort, PlanRequest, Program};
use std::fmt;
use taut_core::graph::{Origin, ValueId};
use taut_core::{Error, ErrorKind, Graph, Op, Result};
use taut_memory::{Bytes, Location};

/// A quarter of the search that a single plan gets: a frontier packs some fifty sequences.
const PACKING_EFFORT: Effort = Effort { steps: 100_000 };

/// One plan of a [`PlanFrontier`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlanPoint {
    /// The bytes that a run allocates: the arena and the output buffers.
    pub bytes: usize,
    /// The time of a run, in picoseconds of the planner's cost model.
    pub time: u64,
    /// A lower bound on the time of any plan with so few bytes and the same order of first occurrences.
    pub time_bound: u64,
    /// How many steps run again.
    pub repeated_steps: usize,
}

/// The plans of a graph among which a memory budget chooses: with more bytes, fewer steps are repeated.
///
/// The plans depend on the graph alone, not on a budget, a machine or a number of threads. A budget takes the fastest plan that
/// fits: so a larger budget never takes longer, and never gets a plan with fewer bytes.
///
/// ```
/// use taut_core::{DType, Spec, Tensor, ops, trace};
/// use taut_plan::{PlanFrontier, PlanRequest};
/// // Eight values, all read again in reverse, as by a backward pass.
/// let graph = trace(&[Spec::new(DType::F32, [1000, 8])], |x| {
///     let mut values: Vec<Tensor> = vec![x[0].clone()];
///     for _ in 0..8 {
///         let last = values.last().unwrap();
///         values.push(ops::nn::softmax(last, 0)?);
///     }
///     let mut sum = values.pop().unwrap();
///     while let Some(value) = values.pop() {
///         sum = ops::nn::softmax((&sum * &value)?, 0)?;
///     }
///     Ok(vec![sum])
/// })?
/// .graph;
/// let frontier = PlanFrontier::new(&graph, &PlanRequest::default())?;
/// let (smallest, fastest) = (frontier.smallest(), frontier.fastest());
/// assert!(smallest.bytes < fastest.bytes / 2 && smallest.time < 2 * fastest.time);
/// let plan = frontier.plan_within(smallest.bytes)?.ok_or("no plan")?;
/// assert_eq!(plan.peak_bytes(), smallest.bytes);
/// assert_eq!(plan.repeated_steps().count(), smallest.repeated_steps);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct PlanFrontier {
    graph: Graph,
    request: PlanRequest,
    at: Location,
    sequences: remat::Frontier,
    /// From the fewest bytes to the least time.
    points: Vec<PlanPoint>,
    largest_step: Option<(&'static str, Location)>,
}

impl PlanFrontier {
    /// Finds the plans of a graph that the compiler is done with: a pass that runs later could merge repeated calls.
    #[track_caller]
    pub fn new(graph: &Graph, request: &PlanRequest) -> Result<PlanFrontier> {
        let at = Location::caller();
        graph.verify()?;
        let lowered = LoweredGraph::new(graph, request, at)?;
        let orders = CandidateOrders::new(&lowered, request.keep_order);
        let problem = problem(&lowered)?;
        // The lowest peak is not all that counts: an order that holds few bytes at all times, such as one that updates a variable as
        // soon as its gradient exists, leaves a budget more choices.
        let lightest = orders.list.iter().min_by_key(|order| remat::total_load(&problem, order)).cloned();
        let own = orders.list[0].clone();
        let mut orders = vec![placement::best(&lowered, orders)?.order];
        for order in lightest.into_iter().chain([own]) {
            if !orders.contains(&order) {
                orders.push(order);
            }
        }
        let mut pack = |sequence: &[u32]| {
            packed(&lowered.repeated(sequence)).map_or(usize::MAX, |packed| packed.bytes())
        };
        let effort = RematEffort::for_problem(&problem);
        let sequences = remat::frontier(&problem, &orders, effort, &mut pack)
            .map_err(|flaw| Error::new(ErrorKind::Graph, flaw.to_string()).at(at))?;
        let steps = lowered.steps.len();
        let points = sequences.points().iter().map(|point| PlanPoint {
            bytes: point.bytes,
            time: point.cost,
            time_bound: point.cost_bound,
            repeated_steps: point.sequence.len() - steps,
        });
        let points: Vec<PlanPoint> = points.collect();
        if points.is_empty() {
            return Err(Error::new(ErrorKind::Graph, "no order of the steps can be packed").at(at));
        }
        let largest_step = problem.largest_step().map(|step| &lowered.steps[step as usize]);
        let largest_step = largest_step.map(|step| (step.name(), step.at));
        Ok(PlanFrontier {
            graph: graph.clone(),
            request: request.clone(),
            at,
            sequences,
            points,
            largest_step,
        })
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The plans, from the fewest bytes to the least time: bytes rise and times fall from each to the next.
    pub fn points(&self) -> &[PlanPoint] {
        &self.points
    }

    /// The plan with the fewest bytes.
    pub fn smallest(&self) -> PlanPoint {
        self.points[0]
    }

    /// The plan with the least time.
    pub fn fastest(&self) -> PlanPoint {
        self.points[self.points.len() - 1]
    }

    /// The fastest plan that allocates at most this many bytes, as a position in [`PlanFrontier::points`]; `None` if there is
    /// none.
    pub fn position_within(&self, bytes: usize) -> Option<usize> {
        self.points.iter().rposition(|point| point.bytes <= bytes)
    }

    /// The fastest plan that allocates at most this many bytes; `None` if there is none.
    pub fn plan_within(&self, bytes: usize) -> Result<Option<Program>> {
        self.position_within(bytes).map(|position| self.plan(position)).transpose()
    }

    /// The plan at a position in [`PlanFrontier::points`].
    pub fn plan(&self, position: usize) -> Result<Program> {
        let Some(point) = self.sequences.points().get(position) else {
            let count = self.points.len();
            return Err(Error::value(format!("position must be in [0, {count}), got {position}")));
        };
        let lowered = LoweredGraph::new(&self.graph, &self.request, self.at)?;
        let repeated = lowered.repeated(&point.sequence);
        Ok(packed(&repeated)?.program(repeated))
    }

    /// No plan of any order allocates fewer bytes than this.
    pub fn bytes_bound(&self) -> usize {
        self.sequences.bytes_bound()
    }

    /// Whether an exhaustive search showed that no sequence of the orders tried has fewer live bytes than the smallest plan.
    pub fn is_smallest_proven(&self) -> bool {
        self.sequences.is_smallest_proven()
    }

    /// The op with the largest working set, which no plan can do without, and its source location.
    pub fn largest_step(&self) -> Option<(&'static str, Location)> {
        self.largest_step
    }

    /// The units of work that the search took.
    pub fn work(&self) -> u64 {
        self.sequences.work()
    }

    /// The bytes that the frontier itself takes, without tensors.
    pub fn footprint(&self) -> usize {
        let sequences = self.sequences.points().iter().map(|point| size_of_val(&point.sequence[..]));
        self.graph.footprint() + size_of_val(&self.points[..]) + sequences.sum::<usize>()
    }
}

impl fmt::Display for PlanFrontier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = self.fastest().time;
        for point in self.points.iter().rev() {
            let factor = |time: u64| time as f64 / least.max(1) as f64;
            writeln!(
                f,
                "{:>10}  {:.3} times the work (at least {:.3}), {} steps repeated",
                Bytes(point.bytes),
                factor(point.time),
                factor(point.time_bound),
                point.repeated_steps
            )?;
        }
        write!(f, "no order needs less than {}", Bytes(self.bytes_bound()))
    }
}

/// What is best kept for the nodes of a graph from `boundary` on, for a ladder of prices of a byte: values that earlier nodes
/// compute, from the most bytes to the fewest. What is not kept can be computed again from what is, and from the inputs.
///
/// The graph is the one that was traced: later passes may fuse nodes on either side of the boundary.
#[track_caller]
pub fn kept_values(graph: &Graph, boundary: usize) -> Result<Vec<Vec<ValueId>>> {
    let lowered = LoweredGraph::new(graph, &PlanRequest::default(), Location::caller())?;
    let is_later = |step: &ProgramStep| {
        let mut values = step.targets.iter().map(|target| lowered.alias_sets[target.storage].value);
        values.any(
            |id| matches!(graph.values[id.index()].origin, Origin::Node { node, .. } if node >= boundary),
        )
    };
    let Some(place) = lowered.steps.iter().position(is_later) else { return Ok(Vec::new()) };
    let order: Vec<u32> = (0..lowered.steps.len() as u32).collect();
    let sets = remat::kept_sets(&problem(&lowered)?, &order, place);
    let value = |&set: &u32| lowered.alias_sets[set as usize].value;
    Ok(sets.iter().map(|set| set.iter().map(value).collect()).collect())
}

/// The steps in their own order, with the memory of every value. Without repeated steps, packed as well as a single plan.
fn packed(repeated: &LoweredGraph<'_>) -> Result<PackedOrder> {
    let is_plain = repeated.steps.iter().all(|step| !step.is_repeat);
    let effort = if is_plain { placement::EFFORT } else { PACKING_EFFORT };
    PackedOrder::new(repeated, (0..repeated.steps.len() as u32).collect(), effort)
}

/// The steps and values of a graph as the search sees them.
fn problem(lowered: &LoweredGraph<'_>) -> Result<Problem> {
    let values = lowered.alias_sets.iter().map(value).collect();
    let steps = (0..lowered.steps.len()).map(|number| step(lowered, number)).collect();
    Problem::new(values, steps, lowered.ordering_edges.clone())
        .map_err(|flaw| Error::new(ErrorKind::Graph, flaw.to_string()))
}

fn value(set: &AliasSet) -> RematValue {
    let (bytes, residence) = match set.kind {
        AliasSetKind::Computed if set.is_output => (set.bytes, Residence::Result),
        AliasSetKind::Computed => (rounded(set.bytes), Residence::Arena),
        AliasSetKind::Update(_) => (0, Residence::Result),
        AliasSetKind::Donated(_) if !set.is_output => (set.bytes, Residence::Donated),
        AliasSetKind::Donated(_) | AliasSetKind::Input(_) | AliasSetKind::Constant(_) => {
            (0, Residence::External)
        }
    };
    RematValue { bytes, residence }
}

fn step(lowered: &LoweredGraph<'_>, number: usize) -> RematStep {
    let step = &lowered.steps[number];
    RematStep {
        reads: step.operands.iter().map(|operand| operand.storage as u32).collect(),
        writes: step.targets.iter().map(|target| target.storage as u32).collect(),
        cost: picoseconds(step),
        scratch: rounded(step.scratch.1),
        repeatable: step.op.as_ref().is_none_or(|op| is_repeatable(&**op)),
        prunable: false,
        in_place: in_place_pairs(lowered, number),
    }
}

/// Whether a second call computes the same, and is not observed.
fn is_repeatable(op: &dyn Op) -> bool {
    let effects = op.effects();
    !effects.is_ordered() && !effects.is_check()
}

/// What a step may overwrite, as pairs of alias sets: an operand that it reads once.
fn in_place_pairs(lowered: &LoweredGraph<'_>, number: usize) -> Vec<(u32, u32)> {
    let step: &ProgramStep = &lowered.steps[number];
    let reads = |set: usize| step.operands.iter().filter(|operand| operand.storage == set).count();
    let pair = |operand: usize, output: usize| (step.operands[operand].storage, step.targets[output].storage);
    let pairs = lowered.choices[number].iter().filter(|choice| !choice.forced);
    pairs
        .map(|choice| pair(choice.operand, choice.output))
        .filter(|&(from, to)| {
            let (source, target) = (&lowered.alias_sets[from], &lowered.alias_sets[to]);
            let is_free =
                matches!(source.kind, AliasSetKind::Computed | AliasSetKind::Donated(_)) && !source.is_output;
            is_free && target.kind == AliasSetKind::Computed && reads(from) == 1
        })
        .map(|(from, to)| (from as u32, to as u32))
        .collect()
}
