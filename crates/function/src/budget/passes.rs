//! A function under a tape within a budget: what the forward pass keeps for the backward pass.
//!
//! What is not kept is computed again by the backward pass, from what is kept and from the inputs. A ladder of kept sets, from
//! minimum cuts, gives the candidates; the backward pass of each has a frontier of its own.

use crate::MemoryBudget;
use crate::options::FunctionOptions;
use std::cmp::Reverse;
use taut_autodiff::joint::{JointGraph, SavedFrom, SplitGraph};
use taut_core::{Error, ErrorKind, Graph, Result};
use taut_exec::Executable;
use taut_memory::Bytes;
use taut_plan::{InputRequest, PlanFrontier, PlanRequest, Program, kept_values};

/// The passes of a function that a tape records.
pub(crate) struct Passes<'a> {
    pub(crate) joint: &'a JointGraph,
    /// How many outputs of the forward pass are results.
    pub(crate) results: usize,
    pub(crate) options: &'a FunctionOptions,
    pub(crate) forward_request: &'a PlanRequest,
}

/// Both passes, planned.
pub(crate) struct PlannedPasses {
    pub(crate) forward: Executable,
    pub(crate) backward: Graph,
    /// The backward executable that overwrites residuals which the forward one made for it alone.
    pub(crate) consuming: Executable,
    pub(crate) request: PlanRequest,
    pub(crate) residuals: Vec<SavedFrom>,
}

impl PlannedPasses {
    /// Whether both passes keep a budget.
    pub(crate) fn keep(&self, budget: MemoryBudget) -> bool {
        let backward = self.consuming.program().peak_bytes();
        budget.allows_bytes(counted_bytes(budget, self.forward.program(), backward))
    }
}

/// The most bytes that a budget counts at once: what the forward pass allocates, or the backward pass beside what the forward
/// pass returned.
fn counted_bytes(budget: MemoryBudget, forward: &Program, backward: usize) -> usize {
    let external = if budget.is_total() { forward.total_bytes() - forward.peak_bytes() } else { 0 };
    external + forward.peak_bytes().max(forward.output_bytes() + backward)
}

/// One choice of what is kept, and of a plan of the backward pass.
struct Candidate {
    set: usize,
    position: usize,
    bytes: usize,
    time: u64,
}

/// The forward pass for one kept set, and the plans of its backward pass.
struct KeptSetPlans {
    split: SplitGraph,
    forward: Executable,
    request: PlanRequest,
    frontier: PlanFrontier,
    /// The cost of the forward pass.
    time: u64,
}

impl Passes<'_> {
    /// Plans both passes of a split, without a budget.
    pub(crate) fn plan(&self, split: SplitGraph) -> Result<PlannedPasses> {
        let forward = Executable::compile(&split.forward, self.options.executable, self.forward_request)?;
        let request = self.backward_request(&split, &forward);
        let consuming = Executable::compile(&split.backward, self.options.executable, &request)?;
        let SplitGraph { backward, saved: residuals, .. } = split;
        Ok(PlannedPasses { forward, backward, consuming, request, residuals })
    }

    /// The fastest passes that keep a budget; an error with the smallest budget if there are none.
    pub(crate) fn plan_within(&self, budget: MemoryBudget) -> Result<PlannedPasses> {
        let mut sets = self.kept_sets()?;
        let mut candidates = Vec::new();
        for (number, set) in sets.iter().enumerate() {
            candidates.extend(set.frontier.points().iter().enumerate().map(|(position, point)| Candidate {
                set: number,
                position,
                bytes: counted_bytes(budget, set.forward.program(), point.bytes),
                time: set.time.saturating_add(point.time),
            }));
        }
        candidates.sort_by_key(|candidate| (candidate.time, candidate.bytes));
        let Some(chosen) = candidates.iter().find(|candidate| budget.allows_bytes(candidate.bytes)) else {
            let smallest = candidates.iter().map(|candidate| candidate.bytes).min().unwrap_or(0);
            return Err(self.out_of_budget(budget, smallest));
        };
        let position = chosen.position;
        let KeptSetPlans { split, forward, request, frontier, .. } = sets.swap_remove(chosen.set);
        let consuming = Executable::with_options(frontier.plan(position)?, self.options.executable)?;
        let SplitGraph { backward, saved: residuals, .. } = split;
        Ok(PlannedPasses { forward, backward, consuming, request, residuals })
    }

    /// The plans for a ladder of kept sets: everything first.
    fn kept_sets(&self) -> Result<Vec<KeptSetPlans>> {
        let mut ladder = kept_values(&self.joint.graph, self.joint.boundary)?;
        ladder.sort_by_key(|set| Reverse(set.len()));
        ladder.dedup();
        let mut plans = vec![self.plans_of(self.joint.split(self.results)?)?];
        for kept in &ladder {
            plans.push(self.plans_of(self.joint.split_keeping(self.results, kept)?)?);
        }
        Ok(plans)
    }

    fn plans_of(&self, split: SplitGraph) -> Result<KeptSetPlans> {
        let forward = Executable::compile(&split.forward, self.options.executable, self.forward_request)?;
        let request = self.backward_request(&split, &forward);
        let compiled = Executable::compile_graph(&split.backward, self.options.executable)?;
        let frontier = PlanFrontier::new(&compiled, &request)?;
        let time = forward.program().time();
        Ok(KeptSetPlans { split, forward, request, frontier, time })
    }

    /// How the backward pass gets its inputs: residuals are read in the layout they have.
    fn backward_request(&self, split: &SplitGraph, forward: &Executable) -> PlanRequest {
        let residual_request = |residual: &SavedFrom| match *residual {
            SavedFrom::Input(i) => {
                let input = self.forward_request.inputs.get(i);
                InputRequest { strides: input.and_then(|input| input.strides.clone()), donated: false }
            }
            SavedFrom::Output(i) => {
                let layout = &forward.program().results[i].layout;
                let strides = (!layout.is_contiguous()).then(|| layout.strides.clone());
                InputRequest { strides, donated: i >= self.results && forward.owns_output_buffer(i) }
            }
        };
        let inputs = split.saved.iter().map(residual_request).collect();
        PlanRequest { inputs, ..PlanRequest::default() }
    }

    fn out_of_budget(&self, budget: MemoryBudget, smallest: usize) -> Error {
        let message = format!(
            "the memory budget of {} under a tape must be at least {smallest} bytes ({}), got {} bytes ({budget})",
            self.options.name,
            Bytes(smallest),
            budget.bytes(),
        );
        let help = "trace the whole training step as one function: its gradients are freed at their updates";
        Error::new(ErrorKind::OutOfMemory, message).help(help)
    }
}
