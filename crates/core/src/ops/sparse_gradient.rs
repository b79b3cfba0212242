//! Arithmetic on gradients, dense or sparse, that keeps sparse gradients sparse.

use crate::Spec;
use crate::error::{Error, Result};
use crate::gradient::{Gradient, IndexedSlices};
use crate::ops::binary::{add, clip_by_value, mul};
use crate::ops::creation::zeros;
use crate::ops::index::{tensor_scatter_add, unique, unsorted_segment_sum};
use crate::ops::reduce::{clip_by_global_norm, global_norm};
use crate::ops::shape::{concat, expand_dims};
use crate::ops::unary::cast;
use crate::promote::common_dtype;
use crate::scalar::Operand;
use crate::shape::Shape;
use crate::tensor::Tensor;
use taut_memory::Location;

impl IndexedSlices {
    /// Rows `values[i]` at positions `indices[i]` along the first axis of a tensor of shape `dense_shape`.
    ///
    /// ```
    /// use taut_core::{IndexedSlices, Tensor};
    /// let rows = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
    /// let slices = IndexedSlices::new(rows, Tensor::from_slice(&[2, 0], [2])?, [3, 2])?;
    /// assert_eq!(slices.to_dense()?.to_vec::<f32>()?, [3.0, 4.0, 0.0, 0.0, 1.0, 2.0]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn new(values: Tensor, indices: Tensor, dense_shape: impl Into<Shape>) -> Result<IndexedSlices> {
        let (dense_shape, at) = (dense_shape.into(), Location::caller());
        if !indices.dtype().is_integer() {
            return Err(Error::dtype(format!("indices must be integers, got {}", indices.dtype())).at(at));
        }
        let fits = values.rank() > 0
            && dense_shape.rank() == values.rank()
            && indices.shape()[..] == values.shape()[..1]
            && values.shape()[1..] == dense_shape[1..];
        if !fits {
            let (v, i) = (values.shape(), indices.shape());
            let message = format!("values {v} and indices {i} do not match the dense shape {dense_shape}");
            let help = "values must have shape [n, ...] with the dense shape's trailing dimensions, indices shape [n]";
            return Err(Error::shape(message).help(help).at(at));
        }
        Ok(IndexedSlices { values, indices, dense_shape })
    }

    /// The spec of the dense tensor.
    pub fn spec(&self) -> Spec {
        Spec { dtype: self.values.dtype(), shape: self.dense_shape.clone() }
    }

    /// The bytes of the rows and their indices.
    pub fn bytes(&self) -> usize {
        self.values.spec().bytes() + self.indices.spec().bytes()
    }

    /// The dense tensor: zeros, with the rows added at their indices.
    #[track_caller]
    pub fn to_dense(&self) -> Result<Tensor> {
        self.add_to(zeros(self.dense_shape.clone(), self.values.dtype())?)
    }

    /// The sum with a dense tensor: its rows are added in place, if the tensor is donated.
    #[track_caller]
    pub fn add_to(&self, sum: Tensor) -> Result<Tensor> {
        tensor_scatter_add(sum, expand_dims(&self.indices, -1)?, &self.values)
    }

    /// The same gradient with unique, sorted indices; rows with equal indices are summed.
    #[track_caller]
    pub fn coalesce(&self) -> Result<IndexedSlices> {
        let (indices, places, _) = unique(&self.indices)?;
        let values = unsorted_segment_sum(&self.values, places, indices.len())?;
        Ok(IndexedSlices { values, indices, dense_shape: self.dense_shape.clone() })
    }

    /// The sum of sparse tensors of one shape, as the concatenation of their rows.
    #[track_caller]
    pub fn join(mut parts: Vec<IndexedSlices>) -> Result<IndexedSlices> {
        let at = Location::caller();
        let Some(first) = parts.first() else {
            return Err(Error::value("expected at least one part, got none").at(at));
        };
        let spec = first.spec();
        if let Some(other) = parts.iter().map(IndexedSlices::spec).find(|other| *other != spec) {
            return Err(
                Error::shape(format!("parts must have the same dense spec, got {spec} and {other}")).at(at)
            );
        }
        if parts.len() == 1 {
            return Ok(parts.swap_remove(0));
        }
        let wide = common_dtype("join", parts.iter().map(|part| &part.indices))?;
        let (mut values, mut indices) = (Vec::with_capacity(parts.len()), Vec::with_capacity(parts.len()));
        for part in parts {
            indices.push(cast(part.indices, wide)?);
            values.push(part.values);
        }
        let (values, indices) = (concat(&values, 0)?, concat(&indices, 0)?);
        Ok(IndexedSlices { values, indices, dense_shape: spec.shape })
    }
}

impl Gradient {
    /// The spec of the tensor it is the gradient of.
    pub fn spec(&self) -> Spec {
        match self {
            Gradient::Dense(tensor) => tensor.spec().clone(),
            Gradient::Sparse(slices) => slices.spec(),
        }
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        match self {
            Gradient::Dense(tensor) => tensor.spec().bytes(),
            Gradient::Sparse(slices) => slices.bytes(),
        }
    }

    /// Converts it to a dense tensor.
    #[track_caller]
    pub fn dense(self) -> Result<Tensor> {
        match self {
            Gradient::Dense(tensor) => Ok(tensor),
            Gradient::Sparse(slices) => slices.to_dense(),
        }
    }

    /// The sum of two gradients; sparse only if both are.
    #[track_caller]
    pub fn plus(self, other: Gradient) -> Result<Gradient> {
        match (self, other) {
            (Gradient::Sparse(a), Gradient::Sparse(b)) => Ok(IndexedSlices::join(vec![a, b])?.into()),
            (Gradient::Sparse(rows), Gradient::Dense(sum))
            | (Gradient::Dense(sum), Gradient::Sparse(rows)) => Ok(rows.add_to(sum)?.into()),
            (Gradient::Dense(a), Gradient::Dense(b)) => Ok(add(a, b)?.into()),
        }
    }

    /// The gradient times a scalar, or a tensor with one element.
    #[track_caller]
    pub fn scale(self, factor: impl Into<Operand>) -> Result<Gradient> {
        Ok(match self {
            Gradient::Dense(tensor) => mul(tensor, factor)?.into(),
            Gradient::Sparse(slices) => {
                IndexedSlices { values: mul(slices.values, factor)?, ..slices }.into()
            }
        })
    }

    /// Clips each element to `[low, high]`. For a sparse gradient the interval must contain zero, since the absent rows are
    /// zeros.
    #[track_caller]
    pub fn clip_by_value(self, low: f64, high: f64) -> Result<Gradient> {
        if matches!(self, Gradient::Sparse(_)) && !(low <= 0.0 && 0.0 <= high) {
            let message = format!("bounds of a sparse gradient must contain 0, got [{low}, {high}]");
            return Err(Error::value(message).help("make it dense first").at(Location::caller()));
        }
        Ok(match self {
            Gradient::Dense(tensor) => clip_by_value(tensor, low, high)?.into(),
            Gradient::Sparse(slices) => {
                // Rows with equal indices are clipped as their sum.
                let slices = slices.coalesce()?;
                IndexedSlices { values: clip_by_value(slices.values, low, high)?, ..slices }.into()
            }
        })
    }

    /// Scales the gradient down so that its L2 norm is at most `limit`.
    #[track_caller]
    pub fn clip_by_norm(self, limit: f64) -> Result<Gradient> {
        let mut clipped = Gradient::clip_by_global_norm(vec![Some(self)], limit)?.0;
        clipped.swap_remove(0).ok_or_else(|| Error::value("expected one clipped gradient, got none"))
    }

    /// The L2 norm of all gradients taken together; zero (`float32`) if there are none.
    #[track_caller]
    pub fn global_norm(gradients: &[Option<Gradient>]) -> Result<Tensor> {
        let mut elements = Vec::new();
        for gradient in gradients.iter().flatten() {
            elements.push(gradient.clone().coalesced()?.elements());
        }
        if elements.is_empty() { Tensor::scalar(0.0f32) } else { global_norm(&elements) }
    }

    /// Scales all gradients by one factor so that their global norm is at most `limit`; also returns the norm before. All
    /// gradients become NaN if the norm is not finite, as in TensorFlow.
    #[track_caller]
    pub fn clip_by_global_norm(
        gradients: Vec<Option<Gradient>>,
        limit: f64,
    ) -> Result<(Vec<Option<Gradient>>, Tensor)> {
        let mut once = Vec::with_capacity(gradients.len());
        for gradient in gradients {
            once.push(match gradient {
                Some(gradient) => Some(gradient.coalesced()?),
                None => None,
            });
        }
        let elements: Vec<Tensor> = once.iter().flatten().map(Gradient::elements).collect();
        let (clipped, norm) = if elements.is_empty() {
            clip_by_global_norm(&[Tensor::scalar(0.0f32)?], limit)?
        } else {
            clip_by_global_norm(&elements, limit)?
        };
        for (gradient, elements) in once.iter_mut().flatten().zip(clipped) {
            match gradient {
                Gradient::Dense(tensor) => *tensor = elements,
                Gradient::Sparse(slices) => slices.values = elements,
            }
        }
        Ok((once, norm))
    }

    /// The gradient with unique indices.
    #[track_caller]
    fn coalesced(self) -> Result<Gradient> {
        match self {
            Gradient::Sparse(slices) => Ok(slices.coalesce()?.into()),
            dense @ Gradient::Dense(_) => Ok(dense),
        }
    }

    /// The dense tensor, or the sparse rows.
    fn elements(&self) -> Tensor {
        match self {
            Gradient::Dense(tensor) => tensor.clone(),
            Gradient::Sparse(slices) => slices.values.clone(),
        }
    }
}
