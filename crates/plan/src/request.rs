//! What a caller of the planner specifies: how inputs are passed, and which outputs update them.

use taut_core::{Strides, Tensor};

/// How an input will be passed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputRequest {
    /// The strides of an input that is not contiguous, in elements; `None` if it is contiguous.
    pub strides: Option<Strides>,
    /// Whether the input is donated: after its last read, its memory may hold other values, and results. An input with
    /// strides keeps its memory.
    pub donated: bool,
}

impl InputRequest {
    /// Read only, with the strides of this tensor.
    pub fn like(tensor: &Tensor) -> InputRequest {
        let strides = (!tensor.is_contiguous()).then(|| tensor.strides().iter().copied().collect());
        InputRequest { strides, donated: false }
    }

    /// Contiguous and donated.
    pub fn donated() -> InputRequest {
        InputRequest { strides: None, donated: true }
    }
}

/// The input of [`Program::plan`](crate::Program::plan). By default inputs are contiguous and only read, and outputs are
/// returned.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// How each input is passed; inputs beyond the list are contiguous and only read.
    pub inputs: Vec<InputRequest>,
    /// Pairs of an output and an input: the output is not returned but becomes the input's new value, in its memory. That
    /// memory only ever holds the old value or the new one.
    pub updates: Vec<(usize, usize)>,
    /// Whether calls keep the graph's order, even where another order needs less memory.
    pub keep_order: bool,
    /// Whether each updated input keeps either its old or its new value if a step fails. Without it, a failed step may leave
    /// an updated input with neither.
    pub atomic: bool,
}

impl Default for PlanRequest {
    fn default() -> PlanRequest {
        PlanRequest { inputs: Vec::new(), updates: Vec::new(), keep_order: false, atomic: true }
    }
}
