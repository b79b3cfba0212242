//! Types and shapes of tensor arguments.

use std::fmt;
use taut_core::{DType, Shape, Spec};

/// The type and shape of a tensor argument; a dimension, or the whole shape, can be left open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorSpec {
    /// Element type.
    pub dtype: DType,
    /// Dimensions, in which `None` stands for any size; or `None` for any shape.
    pub dims: Option<Vec<Option<usize>>>,
}

impl TensorSpec {
    /// A tensor of this type and these dimensions.
    pub fn new(dtype: DType, dims: impl Into<Vec<Option<usize>>>) -> TensorSpec {
        TensorSpec { dtype, dims: Some(dims.into()) }
    }

    /// A tensor of this type and any shape.
    pub fn any_shape(dtype: DType) -> TensorSpec {
        TensorSpec { dtype, dims: None }
    }

    /// Whether a tensor of this type and shape matches.
    pub fn covers(&self, spec: &Spec) -> bool {
        let fits =
            |(expected, dim): (&Option<usize>, &usize)| expected.is_none_or(|expected| expected == *dim);
        let covers = |dims: &Vec<Option<usize>>| {
            dims.len() == spec.shape.rank() && dims.iter().zip(spec.shape.iter()).all(fits)
        };
        self.dtype == spec.dtype && self.dims.as_ref().is_none_or(covers)
    }

    /// Leaves the dimensions open in which a shape differs; all of them if it has another rank.
    pub(crate) fn open_differences(&mut self, shape: &Shape) {
        if self.dims.as_ref().is_some_and(|dims| dims.len() != shape.rank()) {
            self.dims = None;
        }
        for (expected, dim) in self.dims.iter_mut().flatten().zip(shape.iter()) {
            if *expected != Some(*dim) {
                *expected = None;
            }
        }
    }
}

impl From<&Spec> for TensorSpec {
    fn from(spec: &Spec) -> TensorSpec {
        TensorSpec::new(spec.dtype, spec.shape.iter().map(|&dim| Some(dim)).collect::<Vec<_>>())
    }
}

impl fmt::Display for TensorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dims) = &self.dims else { return write!(f, "{} of any shape", self.dtype) };
        let dims: Vec<String> =
            dims.iter().map(|dim| dim.map_or_else(|| "?".into(), |dim| dim.to_string())).collect();
        write!(f, "{}[{}]", self.dtype, dims.join(", "))
    }
}
