//! Specs of indices and of stacked values.

use taut_core::{DType, Shape, Spec};

/// The spec of step indices and step counts.
pub(crate) fn index_spec() -> Spec {
    Spec::new(DType::I64, Shape::scalar())
}

/// The spec of `rows` values of this spec, stacked along a new first axis.
pub(crate) fn stacked_spec(rows: usize, row: &Spec) -> Spec {
    Spec { dtype: row.dtype, shape: row.shape.clone().with_inserted(0, rows) }
}

/// The spec of one element along the first axis.
pub(crate) fn row_spec(stacked: &Spec) -> Spec {
    Spec { dtype: stacked.dtype, shape: stacked.shape.clone().without(0) }
}
