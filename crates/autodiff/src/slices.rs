//! Sparse gradients: rows and where they belong.

use taut_core::ops::creation::zeros;
use taut_core::ops::index::{tensor_scatter_add, unsorted_segment_sum};
use taut_core::ops::shape::{concat, expand_dims};
use taut_core::{DType, Error, IndexedSlices, Result, Shape, Tensor};

/// What can be done with rows alone, without the tensor they are rows of.
pub trait Sparse: Sized {
    /// These rows of a tensor of this shape.
    fn new(values: Tensor, indices: Tensor, dense_shape: impl Into<Shape>) -> Result<Self>;

    /// The whole tensor, mostly zeros.
    fn to_dense(&self) -> Result<Tensor>;

    /// The same with every row named once, in ascending order.
    fn coalesce(&self) -> Result<Self>;

    /// How many bytes the rows and their indices fill.
    fn bytes(&self) -> usize;
}

impl Sparse for IndexedSlices {
    #[track_caller]
    fn new(values: Tensor, indices: Tensor, dense_shape: impl Into<Shape>) -> Result<IndexedSlices> {
        let dense_shape = dense_shape.into();
        if !indices.dtype().is_integer() {
            return Err(Error::dtype(format!("indices are {}, not integers", indices.dtype())));
        }
        let rows_fit = values.rank() > 0
            && indices.shape()[..] == values.shape()[..1]
            && values.shape()[1..] == *dense_shape.get(1..).unwrap_or(&[usize::MAX]);
        if !rows_fit {
            let (v, i) = (values.shape(), indices.shape());
            let message = format!("values {v} with indices {i} are not rows of a tensor {dense_shape}");
            return Err(Error::shape(message).help("indices has one dimension, and a row of values per index"));
        }
        Ok(IndexedSlices { values, indices, dense_shape })
    }

    #[track_caller]
    fn to_dense(&self) -> Result<Tensor> {
        to_dense(self)
    }

    #[track_caller]
    fn coalesce(&self) -> Result<IndexedSlices> {
        let (rows, places, _) = taut_core::ops::index::unique(&self.indices)?;
        let values = unsorted_segment_sum(&self.values, places, rows.len())?;
        Ok(IndexedSlices { values, indices: rows, dense_shape: self.dense_shape.clone() })
    }

    fn bytes(&self) -> usize {
        self.values.spec().bytes() + self.indices.spec().bytes()
    }
}

/// The whole tensor, mostly zeros.
#[track_caller]
pub(crate) fn to_dense(slices: &IndexedSlices) -> Result<Tensor> {
    let whole = zeros(slices.dense_shape.clone(), slices.values.dtype())?;
    tensor_scatter_add(whole, expand_dims(&slices.indices, -1)?, &slices.values)
}

/// Rows of both.
pub(crate) fn join(parts: Vec<IndexedSlices>) -> Result<IndexedSlices> {
    let mut parts = parts;
    if parts.len() == 1
        && let Some(only) = parts.pop()
    {
        return Ok(only);
    }
    let dense_shape = parts[0].dense_shape.clone();
    let wide = parts.iter().map(|part| part.indices.dtype()).reduce(taut_core::promote).unwrap_or(DType::I64);
    let indices = parts.iter().map(|part| taut_core::ops::unary::cast(&part.indices, wide));
    let indices: Vec<Tensor> = indices.collect::<Result<_>>()?;
    let values: Vec<Tensor> = parts.into_iter().map(|part| part.values).collect();
    Ok(IndexedSlices { values: concat(&values, 0)?, indices: concat(&indices, 0)?, dense_shape })
}
