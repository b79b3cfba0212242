//! Constant folding: calls of constants are evaluated at compile time.

use super::Simplifier;
use crate::rewrite::scalar_bytes;
use crate::strided_view::{StridedView, expand_axes};
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::{DType, Kernel, Op, Result, Scalar, Shape, Spec, Strides, Tensor};
use taut_kernels::{Arg, elementwise};
use taut_memory::{Category, Location};

/// The most bytes of a folded result that is larger than its inputs.
const SMALL: usize = 4096;

impl Simplifier<'_> {
    /// A tensor as a constant: contiguous, and without axes that it repeats.
    pub(super) fn constant(&mut self, tensor: &Tensor) -> Result<StridedView> {
        let (shape, strides) = (tensor.shape(), tensor.strides());
        let bare = tensor.len() > 1 || tensor.rank() == 0;
        if shape.is_empty() || (bare && tensor.is_contiguous()) {
            let tensor = if tensor.is_contiguous() { tensor.clone() } else { tensor.copy()? };
            let spec = tensor.spec().clone();
            return Ok(StridedView::whole(self.new.constant(tensor), &spec));
        }
        let kept: Vec<usize> =
            (0..shape.rank()).filter(|&axis| shape[axis] != 1 && strides[axis] != 0).collect();
        let small: Shape = kept.iter().map(|&axis| shape[axis]).collect();
        let steps: Strides = kept.iter().map(|&axis| strides[axis]).collect();
        let spec = Spec::new(tensor.dtype(), small);
        let view = tensor.view()?;
        let copy = Tensor::build(spec.clone(), Category::Tensor, Location::caller(), |out| {
            elementwise::copy(view.with_layout(&spec.shape, &steps), out.reborrow());
        })?;
        let base = self.new.constant(copy);
        let layout = expand_axes(shape, &kept, &spec.shape.strides());
        Ok(StridedView { base, dtype: spec.dtype, layout })
    }

    /// A number as a constant scalar.
    pub(super) fn scalar_constant(&mut self, value: impl Into<Scalar>, dtype: DType) -> Result<StridedView> {
        self.constant(&Tensor::constant(value, dtype)?)
    }

    /// The bytes of the number that all elements of a constant are.
    fn uniform(&self, view: &StridedView) -> Option<[u8; 8]> {
        let tensor = self.new.tensor(view.base).filter(|tensor| tensor.dtype() == view.dtype)?;
        scalar_bytes(tensor)
    }

    /// Whether all elements of a value are this number, bit for bit.
    pub(super) fn is_uniformly(&self, view: &StridedView, value: impl Into<Scalar>) -> bool {
        let bytes = value.into().to_bytes(view.dtype);
        self.uniform(view).is_some_and(|found| found[..bytes.len()] == bytes[..])
    }

    /// The value of a boolean whose elements are all the same constant.
    pub(super) fn uniform_bool(&self, view: &StridedView) -> Option<bool> {
        self.uniform(view).filter(|_| view.dtype == DType::Bool).map(|bytes| bytes[0] != 0)
    }

    /// The result of an op of constants, unless it is large or the op fails: then the call stays, and fails at run time.
    ///
    /// The kernel is called directly, so that an active trace does not record the call.
    pub(super) fn fold_constants(
        &mut self,
        op: &Arc<dyn Op>,
        inputs: &[StridedView],
        spec: &Spec,
        at: Location,
    ) -> Option<StridedView> {
        // The length of a loop is unknown before the run, and side effects must happen in every run.
        if op.subgraphs().is_some() || op.effects().is_ordered() {
            return None;
        }
        let mut tensors: SmallVec<[Tensor; 3]> = SmallVec::new();
        let mut bytes = 0;
        for view in inputs {
            let base = self.new.tensor(view.base)?;
            bytes += base.spec().bytes();
            let is_broadcast = matches!(op.kernel(), Kernel::Elementwise) && view.layout.shape != spec.shape;
            let layout =
                if is_broadcast { view.layout.broadcast(&spec.shape).ok()? } else { view.layout.clone() };
            tensors.push(base.with_layout(view.dtype, &layout).ok()?);
        }
        if spec.shape.checked_len()? * spec.dtype.size() > bytes.max(SMALL) || op.kernel().is_view() {
            return None;
        }
        if !op.kernel().takes_strides() && !tensors.iter().all(Tensor::is_contiguous) {
            return None;
        }
        let specs: SmallVec<[&Spec; 3]> = tensors.iter().map(Tensor::spec).collect();
        let scratch = Spec::new(DType::U8, [op.scratch(&specs)]);
        let args: SmallVec<[Arg<'_>; 3]> =
            tensors.iter().map(|tensor| tensor.view().map(Arg::View)).collect::<Result<_>>().ok()?;
        let (mut outcome, mut result) = (Ok(()), None);
        Tensor::build(scratch, Category::Scratch, at, |scratch| {
            let made = Tensor::build(spec.clone(), Category::Tensor, at, |out| {
                outcome = op.run(&args, &mut [out.reborrow()], scratch.bytes());
            });
            result = made.ok();
        })
        .ok()?;
        outcome.ok()?;
        self.constant(&result?).ok()
    }
}
