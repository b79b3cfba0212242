//! What is known before the graph runs: constants, and what is computed of nothing else.

use super::Simplifier;
use crate::rewrite::scalar_bytes;
use crate::seen::{Seen, spread_over};
use smallvec::SmallVec;
use std::sync::Arc;
use taut_core::{DType, Op, Result, Scalar, Shape, Spec, Strides, Tensor};
use taut_kernels::{Arg, elementwise};
use taut_memory::{Category, Location};

/// The most bytes of a result that is made ahead of time although its inputs have fewer.
const SMALL: usize = 4096;

impl Simplifier<'_> {
    /// A tensor as a constant: contiguous, without what it repeats.
    pub(super) fn constant(&mut self, tensor: &Tensor) -> Result<Seen> {
        let (shape, strides) = (tensor.shape(), tensor.strides());
        let bare = tensor.len() > 1 || tensor.rank() == 0;
        if shape.is_empty() || (bare && tensor.is_contiguous()) {
            let tensor = if tensor.is_contiguous() { tensor.clone() } else { tensor.copy()? };
            let spec = tensor.spec().clone();
            return Ok(Seen::whole(self.new.constant(tensor), &spec));
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
        let layout = spread_over(shape, &kept, &spec.shape.strides());
        Ok(Seen { base, dtype: spec.dtype, layout })
    }

    /// A number as a constant without dimensions.
    pub(super) fn number(&mut self, value: impl Into<Scalar>, dtype: DType) -> Result<Seen> {
        self.constant(&Tensor::constant(value, dtype)?)
    }

    /// The number that a value is at every place.
    fn uniform(&self, seen: &Seen) -> Option<[u8; 8]> {
        let tensor = self.new.tensor(seen.base).filter(|tensor| tensor.dtype() == seen.dtype)?;
        scalar_bytes(tensor)
    }

    /// Whether a value is this number at every place, to the bit.
    pub(super) fn is(&self, seen: &Seen, value: impl Into<Scalar>) -> bool {
        let bytes = value.into().to_bytes(seen.dtype);
        self.uniform(seen).is_some_and(|found| found[..bytes.len()] == bytes[..])
    }

    /// The truth value that a boolean is at every place.
    pub(super) fn truth(&self, seen: &Seen) -> Option<bool> {
        self.uniform(seen).filter(|_| seen.dtype == DType::Bool).map(|bytes| bytes[0] != 0)
    }

    /// The result of an op of constants, unless it is large or the op refuses: then it is left to refuse at run time.
    ///
    /// The kernel is called directly: somebody may be tracing, and would write the call down.
    pub(super) fn evaluated(
        &mut self,
        op: &Arc<dyn Op>,
        inputs: &[Seen],
        spec: &Spec,
        at: Location,
    ) -> Option<Seen> {
        // How long a loop runs, only the run knows; and what people see happens in every run.
        if op.subgraphs().is_some() || op.effects().is_ordered() {
            return None;
        }
        let mut tensors: SmallVec<[Tensor; 3]> = SmallVec::new();
        let mut bytes = 0;
        for seen in inputs {
            let base = self.new.tensor(seen.base)?;
            bytes += base.spec().bytes();
            tensors.push(base.with_layout(seen.dtype, &seen.layout).ok()?);
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
