//! What can be done with gradients, dense or sparse, without making the sparse ones dense.

use crate::error::{Error, Result};
use crate::gradient::{Gradient, IndexedSlices};
use crate::ops::binary::{add, clip_by_value, mul};
use crate::ops::creation::zeros;
use crate::ops::index::{tensor_scatter_add, unique, unsorted_segment_sum};
use crate::ops::reduce::{clip_by_global_norm, global_norm};
use crate::ops::shape::{concat, expand_dims};
use crate::ops::unary::cast;
use crate::promote::promote;
use crate::scalar::Operand;
use crate::shape::Shape;
use crate::tensor::Tensor;
use crate::{DType, Spec};
use taut_memory::Location;

impl IndexedSlices {
    /// These rows of a tensor of this shape.
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
            return Err(Error::dtype(format!("indices are {}, not integers", indices.dtype())).at(at));
        }
        let fits = values.rank() > 0
            && dense_shape.rank() == values.rank()
            && indices.shape()[..] == values.shape()[..1]
            && values.shape()[1..] == dense_shape[1..];
        if !fits {
            let (v, i) = (values.shape(), indices.shape());
            let message = format!("values {v} with indices {i} are not rows of a tensor {dense_shape}");
            return Err(Error::shape(message).help("give one index per row of values").at(at));
        }
        Ok(IndexedSlices { values, indices, dense_shape })
    }

    /// Type and shape of the whole tensor.
    pub fn spec(&self) -> Spec {
        Spec { dtype: self.values.dtype(), shape: self.dense_shape.clone() }
    }

    /// How many bytes the rows and their indices fill.
    pub fn bytes(&self) -> usize {
        self.values.spec().bytes() + self.indices.spec().bytes()
    }

    /// The whole tensor, mostly zeros.
    #[track_caller]
    pub fn to_dense(&self) -> Result<Tensor> {
        let whole = zeros(self.dense_shape.clone(), self.values.dtype())?;
        tensor_scatter_add(whole, expand_dims(&self.indices, -1)?, &self.values)
    }

    /// The same with every row named once, in ascending order.
    #[track_caller]
    pub fn coalesce(&self) -> Result<IndexedSlices> {
        let (indices, places, _) = unique(&self.indices)?;
        let values = unsorted_segment_sum(&self.values, places, indices.len())?;
        Ok(IndexedSlices { values, indices, dense_shape: self.dense_shape.clone() })
    }

    /// The sum of rows of tensors of one shape: all their rows.
    #[track_caller]
    pub fn join(mut parts: Vec<IndexedSlices>) -> Result<IndexedSlices> {
        let at = Location::caller();
        let Some(first) = parts.first() else {
            return Err(Error::value("there is nothing to join").at(at));
        };
        let spec = first.spec();
        if let Some(other) = parts.iter().map(IndexedSlices::spec).find(|other| *other != spec) {
            return Err(Error::shape(format!("rows of {spec} and of {other} do not add")).at(at));
        }
        if parts.len() == 1 {
            return Ok(parts.swap_remove(0));
        }
        let wide = parts.iter().map(|part| part.indices.dtype()).reduce(promote).unwrap_or(DType::I64);
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
    /// Type and shape of what it is the gradient of.
    pub fn spec(&self) -> Spec {
        match self {
            Gradient::Dense(tensor) => tensor.spec().clone(),
            Gradient::Sparse(slices) => slices.spec(),
        }
    }

    /// How many bytes it fills.
    pub fn bytes(&self) -> usize {
        match self {
            Gradient::Dense(tensor) => tensor.spec().bytes(),
            Gradient::Sparse(slices) => slices.bytes(),
        }
    }

    /// As a tensor.
    #[track_caller]
    pub fn dense(self) -> Result<Tensor> {
        match self {
            Gradient::Dense(tensor) => Ok(tensor),
            Gradient::Sparse(slices) => slices.to_dense(),
        }
    }

    /// The sum of two gradients of one thing. Rows stay rows unless a dense gradient is added to them.
    #[track_caller]
    pub fn plus(self, other: Gradient) -> Result<Gradient> {
        match (self, other) {
            (Gradient::Sparse(a), Gradient::Sparse(b)) => Ok(IndexedSlices::join(vec![a, b])?.into()),
            (a, b) => Ok(add(a.dense()?, b.dense()?)?.into()),
        }
    }

    /// Times a number, or a tensor of one number.
    #[track_caller]
    pub fn scale(self, factor: impl Into<Operand>) -> Result<Gradient> {
        Ok(match self {
            Gradient::Dense(tensor) => mul(tensor, factor)?.into(),
            Gradient::Sparse(slices) => {
                IndexedSlices { values: mul(slices.values, factor)?, ..slices }.into()
            }
        })
    }

    /// Each element kept between two bounds. The bounds of a sparse gradient must enclose zero, so that what is not
    /// there stays zero.
    #[track_caller]
    pub fn clip_by_value(self, low: f64, high: f64) -> Result<Gradient> {
        if matches!(self, Gradient::Sparse(_)) && !(low <= 0.0 && 0.0 <= high) {
            let message =
                format!("a sparse gradient cannot be kept between {low} and {high}: its zeros are outside");
            return Err(Error::value(message).at(Location::caller()));
        }
        Ok(match self {
            Gradient::Dense(tensor) => clip_by_value(tensor, low, high)?.into(),
            Gradient::Sparse(slices) => {
                // Rows that are named twice count as their sum.
                let slices = slices.coalesce()?;
                IndexedSlices { values: clip_by_value(slices.values, low, high)?, ..slices }.into()
            }
        })
    }

    /// Scaled down so that its norm is at most `limit`.
    #[track_caller]
    pub fn clip_by_norm(self, limit: f64) -> Result<Gradient> {
        let mut clipped = Gradient::clip_by_global_norm(vec![Some(self)], limit)?.0;
        clipped.swap_remove(0).ok_or_else(|| Error::value("there is no gradient"))
    }

    /// The norm of several gradients taken together; zero (`float32`) if there are none.
    #[track_caller]
    pub fn global_norm(gradients: &[Option<Gradient>]) -> Result<Tensor> {
        let mut elements = Vec::new();
        for gradient in gradients.iter().flatten() {
            elements.push(gradient.clone().coalesced()?.elements());
        }
        if elements.is_empty() { Tensor::scalar(0.0f32) } else { global_norm(&elements) }
    }

    /// Several gradients scaled down together so that their common norm is at most `limit`, and that norm before. All
    /// become NaN if the norm is not finite, so that it does not go unseen.
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

    /// The gradient with every row named once.
    #[track_caller]
    fn coalesced(self) -> Result<Gradient> {
        match self {
            Gradient::Sparse(slices) => Ok(slices.coalesce()?.into()),
            dense @ Gradient::Dense(_) => Ok(dense),
        }
    }

    /// The tensor, or the rows.
    fn elements(&self) -> Tensor {
        match self {
            Gradient::Dense(tensor) => tensor.clone(),
            Gradient::Sparse(slices) => slices.values.clone(),
        }
    }
}
