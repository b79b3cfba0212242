//! What a program is asked to be, beyond what its graph computes.

use taut_core::{Strides, Tensor};

/// How an input is going to be given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InputRequest {
    /// The strides of an input that is not contiguous, in elements; `None` for one that is.
    pub strides: Option<Strides>,
    /// Whether its memory belongs to the call: once nobody reads the input any more, other values may lie there, and
    /// what is returned may be in it. An input with strides keeps its memory.
    pub donated: bool,
}

impl InputRequest {
    /// To be read, with the strides of this tensor.
    pub fn like(tensor: &Tensor) -> InputRequest {
        let strides = (!tensor.is_contiguous()).then(|| tensor.strides().iter().copied().collect());
        InputRequest { strides, donated: false }
    }

    /// Contiguous, and its memory with it.
    pub fn donated() -> InputRequest {
        InputRequest { strides: None, donated: true }
    }
}

/// What is asked of [`Program::plan`](crate::Program::plan). The default: inputs are contiguous and only read, outputs
/// are returned.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// How each input is given; those beyond the list are contiguous and only read.
    pub inputs: Vec<InputRequest>,
    /// Pairs of an output and an input: the output is not returned, but is the input's new value, in its memory. That
    /// memory only ever holds the old value or the new one.
    pub updates: Vec<(usize, usize)>,
    /// Whether calls keep the graph's order, even where another one needs less memory.
    pub as_written: bool,
    /// Whether each updated input keeps either its old or its new value if a step fails. Without it, a failed step may leave
    /// an updated input with neither.
    pub atomic: bool,
}

impl Default for PlanRequest {
    fn default() -> PlanRequest {
        PlanRequest { inputs: Vec::new(), updates: Vec::new(), as_written: false, atomic: true }
    }
}
