//! Types and shapes of tensor arguments.

use std::fmt;
use taut_core::{DType, Shape, Spec};

/// The type and shape of a tensor argument; a dimension can be left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Element type.
    pub dtype: DType,
    /// Dimensions; `None` stands for any size.
    pub dims: Vec<Option<usize>>,
}

impl TensorSpec {
    /// A tensor of this type and these dimensions.
    pub fn new(dtype: DType, dims: impl Into<Vec<Option<usize>>>) -> TensorSpec {
        TensorSpec { dtype, dims: dims.into() }
    }

    /// Whether a tensor of this type and shape matches.
    pub fn covers(&self, spec: &Spec) -> bool {
        let fits =
            |(expected, dim): (&Option<usize>, &usize)| expected.is_none_or(|expected| expected == *dim);
        self.dtype == spec.dtype
            && self.dims.len() == spec.shape.rank()
            && self.dims.iter().zip(spec.shape.iter()).all(fits)
    }

    /// Leaves the dimensions open in which a shape of the same rank differs.
    pub(crate) fn open_differences(&mut self, shape: &Shape) {
        for (expected, dim) in self.dims.iter_mut().zip(shape.iter()) {
            if *expected != Some(*dim) {
                *expected = None;
            }
        }
    }
}

impl From<&Spec> for TensorSpec {
    fn from(spec: &Spec) -> TensorSpec {
        TensorSpec { dtype: spec.dtype, dims: spec.shape.iter().map(|&dim| Some(dim)).collect() }
    }
}

impl fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims: Vec<String> =
            self.dims.iter().map(|dim| dim.map_or_else(|| "?".into(), |dim| dim.to_string())).collect();
        write!(f, "{}[{}]", self.dtype, dims.join(", "))
    }
}
