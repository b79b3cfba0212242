//! A function under a tape: a forward and a backward executable, joined by what the forward one saves.

use crate::budget::{Passes, PlannedPasses};
use crate::options::FunctionOptions;
use std::sync::{Arc, OnceLock};
use taut_autodiff::joint::{InputGradient, JointGraph, JointRequest, SavedFrom};
use taut_core::{Gradient, Gradients, Graph, IndexedSlices, Result, Spec, Tensor};
use taut_exec::{Executable, ExecutableOptions};
use taut_plan::{PlanRequest, Program};

/// The forward executable, which returns residuals after the results, and the backward executable, which reads them.
pub(crate) struct ForwardBackward {
    pub(crate) forward: Executable,
    /// How many results come before the residuals.
    pub(crate) results: usize,
    pub(crate) residuals: Vec<SavedFrom>,
    /// From the residuals and the gradients of the float results.
    pub(crate) backward: Graph,
    /// The backward executable that overwrites residuals which the forward one made for it alone.
    pub(crate) consuming: Executable,
    /// The backward executable that leaves them intact, for tapes that are used more than once.
    reading: OnceLock<Executable>,
    pub(crate) request: PlanRequest,
    options: ExecutableOptions,
    /// Whether arenas are kept between runs. Under a memory budget they are not: the arena of one pass would be live during the
    /// other.
    keeps_arenas: bool,
    /// The results that have gradients: the floats.
    pub(crate) active_results: Vec<usize>,
    pub(crate) input_gradients: Vec<InputGradient>,
    /// The whole function, for backward passes that are recorded themselves.
    pub(crate) whole: Graph,
    pub(crate) specs: Vec<Spec>,
}

impl ForwardBackward {
    /// The gradient of a function for the `wanted` inputs: of its graph, the first outputs of which are its results.
    pub(crate) fn new(
        whole: &Graph,
        results: usize,
        wanted: &[bool],
        options: &FunctionOptions,
        forward_request: &PlanRequest,
    ) -> Result<ForwardBackward> {
        let specs: Vec<Spec> = whole.outputs.iter().map(|&id| whole.spec(id).clone()).collect();
        let active_results: Vec<usize> = (0..results).filter(|&i| specs[i].dtype.is_inexact()).collect();
        let request = JointRequest { wanted, differentiated: &active_results, summed: &[], dense: false };
        let joint = JointGraph::new(whole, &request)?;
        let passes = Passes { joint: &joint, results, options, forward_request };
        let plain = passes.plan(joint.split(results)?)?;
        let PlannedPasses { forward, backward, consuming, request, residuals } = match options.budget {
            Some(budget) if !plain.keep(budget) => passes.plan_within(budget)?,
            _ => plain,
        };
        Ok(ForwardBackward {
            forward,
            results,
            residuals,
            backward,
            consuming,
            reading: OnceLock::new(),
            request,
            options: options.executable,
            keeps_arenas: options.budget.is_none(),
            active_results,
            input_gradients: joint.input_gradients,
            whole: whole.clone(),
            specs,
        })
    }

    /// The backward executable that leaves residuals intact. It needs more memory than the one that overwrites them; a budget is
    /// for that one.
    pub(crate) fn reading(&self) -> Result<&Executable> {
        if let Some(executable) = self.reading.get() {
            return Ok(executable);
        }
        let mut request = self.request.clone();
        request.inputs.iter_mut().for_each(|input| input.donated = false);
        let executable = Executable::compile(&self.backward, self.options, &request)?;
        Ok(self.reading.get_or_init(|| executable))
    }

    /// Frees the arena of a pass that has run, unless it is kept for the next run.
    pub(crate) fn after_run(&self, executable: &Executable) {
        if !self.keeps_arenas {
            executable.release_arenas();
        }
    }

    /// The plans of the forward and of the backward pass.
    pub(crate) fn plans(&self) -> (Arc<Program>, Arc<Program>) {
        (self.forward.program().clone(), self.consuming.program().clone())
    }

    /// The bytes held between calls.
    pub(crate) fn bytes(&self) -> usize {
        let reading = self.reading.get().map_or(0, Executable::bytes);
        let executables = self.forward.bytes() + self.consuming.bytes() + reading;
        executables + self.whole.footprint() + self.backward.footprint()
    }

    pub(crate) fn release_arenas(&self) {
        self.forward.release_arenas();
        self.consuming.release_arenas();
        self.reading.get().into_iter().for_each(Executable::release_arenas);
    }

    /// The gradients of the inputs, from the outputs of the backward graph.
    pub(crate) fn gradients(&self, outputs: &[Tensor]) -> Gradients {
        let gradient = |gradient: &InputGradient| match gradient {
            InputGradient::None => None,
            InputGradient::Dense(output) => Some(Gradient::Dense(outputs[*output].clone())),
            InputGradient::Sparse { values, indices, dense_shape } => Some(Gradient::Sparse(IndexedSlices {
                values: outputs[*values].clone(),
                indices: outputs[*indices].clone(),
                dense_shape: dense_shape.clone(),
            })),
        };
        self.input_gradients.iter().map(gradient).collect()
    }
}
