//! Jacobians.

use crate::structure::{GradientSource, Structure};
use crate::tape::GradientTape;
use taut_core::ops::creation::{one_hot, zeros};
use taut_core::ops::index::TensorScatter;
use taut_core::ops::shape::{broadcast_to, reshape};
use taut_core::{DType, Error, Result, Shape, Tensor, with_source_location};
use taut_kernels::index::Scatter;
use taut_memory::Location;

impl GradientTape {
    /// The derivative of every element of the target with respect to every element of the sources: for each source a
    /// tensor whose shape is the target's followed by the source's. `None` where there is none.
    ///
    /// ```
    /// use taut_autodiff::GradientTape;
    /// use taut_core::{Tensor, ops::binary::mul};
    /// let x = Tensor::from_slice(&[1.0f64, 2.0], [2])?;
    /// let tape = GradientTape::new();
    /// tape.watch(&x);
    /// let y = mul(&x, &x)?;
    /// assert_eq!(tape.jacobian(&y, &x)?.unwrap().to_vec::<f64>()?, [2.0, 0.0, 0.0, 4.0]);
    /// # Ok::<(), taut_core::Error>(())
    /// ```
    #[track_caller]
    pub fn jacobian<S: Structure + ?Sized>(
        &self,
        target: &Tensor,
        sources: &S,
    ) -> Result<S::Of<Option<Tensor>>> {
        let (at, len, shape, dtype) = (Location::caller(), target.len(), target.shape(), target.dtype());
        let seed = |i| hot(i, len, shape, dtype);
        with_source_location(None, at, || self.rows(target, sources, None, len, seed, shape))
            .map_err(|error| error.at(at))
    }

    /// As [`GradientTape::jacobian`], where rows of the target depend only on the same rows of the sources: one table per
    /// row of the batch. The shape is `[batch, target's rest.., source's rest..]`.
    #[track_caller]
    pub fn batch_jacobian<S: Structure + ?Sized>(
        &self,
        target: &Tensor,
        sources: &S,
    ) -> Result<S::Of<Option<Tensor>>> {
        let at = Location::caller();
        let scalar = || Error::shape("target and source must have a batch axis, got a scalar").at(at);
        let (&batch, rest) = target.shape().split_first().ok_or_else(scalar)?;
        let mut leaves = Vec::new();
        sources.leaves(&mut leaves);
        for leaf in leaves {
            let (target, source) = (target.shape(), &leaf.spec().shape);
            if *source.first().ok_or_else(scalar)? != batch {
                let message =
                    format!("target and source must have one batch size, got shapes {target} and {source}");
                return Err(Error::shape(message).at(at));
            }
        }
        let (len, rest, dtype) = (rest.iter().product(), Shape::from(rest), target.dtype());
        let seed = |i| broadcast_to(hot(i, len, &rest, dtype)?, target.shape().clone());
        with_source_location(None, at, || self.rows(target, sources, Some(batch), len, seed, &rest))
            .map_err(|error| error.at(at))
    }

    /// Runs a backward pass per seed, and stacks the gradients along the first axis, or along the second if the first is the
    /// batch axis.
    fn rows<S: Structure + ?Sized>(
        &self,
        target: &Tensor,
        sources: &S,
        batch: Option<usize>,
        len: usize,
        seed: impl Fn(usize) -> Result<Tensor>,
        rows: &Shape,
    ) -> Result<S::Of<Option<Tensor>>> {
        let mut leaves = Vec::new();
        sources.leaves(&mut leaves);
        let pass = self.prepare(&[GradientSource::Tensor(target.clone())], &leaves)?;
        let own = |leaf: &GradientSource| leaf.spec().shape[usize::from(batch.is_some())..].to_vec();
        let mut tables: Vec<Option<Tensor>> = Vec::new();
        tables.resize_with(leaves.len(), || None);
        for i in 0..len {
            let Some(slot) = pass.targets[0] else { break };
            let found = pass.run(vec![(slot, seed(i)?)])?;
            for ((table, leaf), gradient) in tables.iter_mut().zip(&leaves).zip(found) {
                let Some(gradient) = gradient else { continue };
                if table.is_none() {
                    let shape: Shape = batch.into_iter().chain([len]).chain(own(leaf)).collect();
                    *table = Some(zeros(shape, leaf.spec().dtype)?);
                }
                put(table, batch, i, gradient.dense()?)?;
            }
        }
        let mut done = Vec::new();
        for (table, leaf) in tables.into_iter().zip(&leaves) {
            let shape = batch.into_iter().chain(rows.iter().copied()).chain(own(leaf));
            let shape: Vec<isize> = shape.map(|dim| dim as isize).collect();
            done.push(table.map(|table| reshape(table, &shape)).transpose()?);
        }
        Ok(sources.with(&mut done.into_iter()))
    }
}

/// Zeros with a one at position `i` of `len`.
fn hot(i: usize, len: usize, shape: &Shape, dtype: DType) -> Result<Tensor> {
    let flat = one_hot(Tensor::scalar(i as i64)?, len, 1, 0, -1, dtype)?;
    let shape: Vec<isize> = shape.iter().map(|&dim| dim as isize).collect();
    reshape(flat, &shape)
}

/// Writes a gradient into row `i` of a table, in the table's own memory.
fn put(table: &mut Option<Tensor>, batch: Option<usize>, i: usize, gradient: Tensor) -> Result<()> {
    let row = i as i64;
    let indices = match batch {
        None => Tensor::from_slice(&[row], [1])?,
        Some(batch) => {
            let pairs: Vec<i64> = (0..batch as i64).flat_map(|sample| [sample, row]).collect();
            Tensor::from_slice(&pairs, [batch, 2])?
        }
    };
    let update = TensorScatter { code: Scatter::Update };
    taut_core::update(&update, table, &[indices, gradient], Location::caller())
}
