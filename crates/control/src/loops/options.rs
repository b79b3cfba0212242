//! Options of loops and maps.

use super::report::LoopReport;
use std::sync::Arc;

/// How loops run, and what their gradients may keep.
///
/// ```
/// use taut_control::Loops;
/// use taut_core::{Tensor, ops::contract::matmul};
/// let a = Tensor::from_slice(&[0.0f32, 1.0, 1.0, 0.0], [2, 2])?;
/// let y = Loops::new().grad_budget(1 << 20).fori_loop(0..3, |_, x| matmul(x, &a), a.clone())?;
/// assert_eq!(y.to_vec::<f32>()?, [1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Loops {
    pub(crate) grad_budget: Option<usize>,
    pub(crate) maximum_iterations: Option<usize>,
    pub(crate) shape_invariants: Option<Vec<Vec<Option<usize>>>>,
    pub(crate) report: Option<Arc<LoopReport>>,
    pub(crate) parallel_iterations: Option<usize>,
    pub(crate) memory_budget: Option<usize>,
}

impl Loops {
    /// Loops without a budget or a limit.
    pub fn new() -> Loops {
        Loops::default()
    }

    /// The most bytes of states that the gradient of the loop may keep: the others are recomputed, in as few steps as
    /// possible. Loops inside the loop get a share of it.
    #[must_use]
    pub fn grad_budget(mut self, bytes: usize) -> Loops {
        self.grad_budget = Some(bytes);
        self
    }

    /// The most steps of a `while`, even if its condition still holds.
    #[must_use]
    pub fn maximum_iterations(mut self, steps: usize) -> Loops {
        self.maximum_iterations = Some(steps);
        self
    }

    /// The shape of each state, where it may change from step to step: `None` for a dimension that may. Such a loop runs
    /// op by op, and not in a traced function, where shapes are fixed.
    #[must_use]
    pub fn shape_invariants(mut self, shapes: Vec<Vec<Option<usize>>>) -> Loops {
        self.shape_invariants = Some(shapes);
        self
    }

    /// Fills in this report when the gradient is computed: what it kept and what it recomputed.
    #[must_use]
    pub fn report(mut self, report: &Arc<LoopReport>) -> Loops {
        self.report = Some(report.clone());
        self
    }

    /// How many elements a map works on at once.
    #[must_use]
    pub fn parallel_iterations(mut self, elements: usize) -> Loops {
        self.parallel_iterations = Some(elements);
        self
    }

    /// The most bytes that the body of a map may take, beside inputs and outputs. It determines how many elements are worked
    /// on at once.
    #[must_use]
    pub fn memory_budget(mut self, bytes: usize) -> Loops {
        self.memory_budget = Some(bytes);
        self
    }
}
