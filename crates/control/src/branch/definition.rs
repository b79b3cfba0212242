//! The branch op: its graphs, and which of its outputs each computes.

use crate::body::Body;
use crate::scratch::input_bytes;
use std::fmt;
use std::sync::Arc;
use taut_autodiff::joint::{InputGradient, SavedFrom};
use taut_compile::CompileOptions;
use taut_core::{Graph, Spec};
use taut_kernels::Arg;

/// One of several graphs. The first input selects it: a boolean (the first graph if it is true), or an index; the last graph if
/// the index is out of range. Only that one runs, and the op needs the memory of the one that needs most.
#[derive(Clone)]
pub(crate) struct BranchOp {
    pub(crate) name: &'static str,
    /// From the captures to the outputs that `positions` names.
    pub(crate) branches: Vec<Arc<Body>>,
    /// Per branch, which output of the op each of its results is. Outputs that a branch does not have are not written.
    pub(super) positions: Vec<Vec<usize>>,
    pub(super) outputs: Vec<Spec>,
    /// How the gradient is computed, if this is the form that saves residuals.
    pub(super) gradient: Option<Arc<BranchGradient>>,
    /// How the graphs are compiled, unless the compiler has been through them.
    pub(super) options: CompileOptions,
    /// The first outputs are the new values of as many of the last captures, which they may overwrite: per such output, its input.
    pub(super) aliases: Vec<[usize; 1]>,
}

/// The gradient of a branch op.
pub(super) struct BranchGradient {
    /// How many outputs there are before the residuals.
    pub(super) visible: usize,
    /// The outputs that have a gradient.
    pub(super) active_outputs: Vec<usize>,
    /// The captures whose gradient is wanted.
    pub(super) active_captures: Vec<usize>,
    /// The captures that the gradient of some branch reads.
    pub(super) saved_captures: Vec<usize>,
    /// The outputs that the gradient of some branch reads.
    pub(super) saved_outputs: Vec<usize>,
    pub(super) branches: Vec<BackwardBranch>,
}

/// The gradient of one branch.
pub(super) struct BackwardBranch {
    /// The branch, without residuals.
    pub(super) branch: Arc<Body>,
    /// The results of the branch that have a gradient.
    pub(super) differentiated: Vec<usize>,
    /// From the residuals and the gradients of the active outputs that the branch has.
    pub(super) backward: Graph,
    /// Per capture, which output of `backward` is its gradient.
    pub(super) input_gradients: Vec<InputGradient>,
    /// What the forward pass of the branch alone saves.
    pub(super) saved: Vec<SavedFrom>,
    /// The same, as inputs and outputs of the op.
    pub(super) residuals: Vec<SavedFrom>,
    /// The active outputs that the branch has.
    pub(super) active_outputs: Vec<usize>,
}

impl BranchOp {
    /// A choice between graphs that take the same inputs and return the same specs.
    pub(crate) fn new(name: &'static str, branches: Vec<Graph>, options: CompileOptions) -> BranchOp {
        let specs = |graph: &Graph| graph.outputs.iter().map(|&id| graph.spec(id).clone()).collect();
        let outputs: Vec<Spec> = branches.first().map_or(Vec::new(), specs);
        let positions = vec![(0..outputs.len()).collect(); branches.len()];
        let branches = branches.into_iter().map(|graph| Arc::new(Body::without_updates(graph))).collect();
        BranchOp { name, branches, positions, outputs, gradient: None, options, aliases: Vec::new() }
    }

    /// The same op, whose first `updated` outputs may overwrite as many of the last captures.
    pub(super) fn with_updates(mut self, updated: usize) -> BranchOp {
        let first = self.captures() - updated;
        self.aliases = (first..self.captures()).map(|i| [BranchOp::capture_input(i)]).collect();
        for branch in &mut self.branches {
            *branch = Arc::new(branch_body(branch.graph().clone(), updated));
        }
        self
    }

    /// How many of the last captures are updated by the first outputs.
    pub(super) fn updated(&self) -> usize {
        self.aliases.len()
    }

    /// Whether some outputs are computed by some branches only: residuals.
    pub(super) fn has_residuals(&self) -> bool {
        self.positions.iter().any(|positions| !positions.iter().copied().eq(0..self.outputs.len()))
    }

    /// How many captures there are.
    pub(super) fn captures(&self) -> usize {
        self.branches[0].graph().inputs.len()
    }

    /// The input of the op that a capture is; the first one is the choice.
    pub(super) fn capture_input(i: usize) -> usize {
        1 + i
    }

    /// The spec of a capture.
    pub(super) fn capture_spec(&self, i: usize) -> &Spec {
        self.branches[0].input(i)
    }

    /// The branch that the value of the first input selects.
    pub(super) fn selected(&self, input: &Arg<'_>) -> usize {
        let last = self.branches.len() - 1;
        match input_bytes(input) {
            [flag] => usize::from(*flag == 0),
            bytes => {
                let index = bytes.try_into().map_or(-1, i64::from_ne_bytes);
                usize::try_from(index).map_or(last, |index| index.min(last))
            }
        }
    }
}

/// The body of a branch whose first outputs are the new values of its last inputs.
pub(super) fn branch_body(graph: Graph, updated: usize) -> Body {
    let first = graph.inputs.len() - updated;
    let update = |output: usize| (output < updated).then_some(first + output);
    let updates = (0..graph.outputs.len()).map(update).collect();
    Body::new(graph, updates)
}

impl fmt::Debug for BranchOp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BranchOp({}, {:?})", self.name, self.branches)
    }
}
