//! A value as a constant.

use crate::error::Result;
use crate::op::{Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::sample::dtypes;
use crate::ops::{OpEntry, Param, Reference, Samples, one};
use crate::{DType, Layout, Outputs, Tensor, apply};

/// It keeps nothing and has no gradient: tapes end here.
#[derive(Clone, Debug)]
struct StopGradient;

impl Op for StopGradient {
    fn name(&self) -> &'static str {
        "stop_gradient"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(inputs[0].clone().into())
    }

    fn kernel(&self) -> Kernel {
        Kernel::View
    }

    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        Some(input.clone())
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.plain(self)
    }
}

/// The same value as a constant: no gradient goes through it, and tapes write nothing down. Without copying.
///
/// ```
/// use taut_core::{Tensor, ops::shape::stop_gradient};
/// let x = Tensor::from_slice(&[1.0f32, 2.0], [2])?;
/// assert!(stop_gradient(&x)?.shares_memory(&x));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn stop_gradient(input: impl Into<Tensor>) -> Result<Tensor> {
    apply(&StopGradient, [input.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "stop_gradient",
    &[Param::tensor("input")],
    |a| one(stop_gradient(a.tensor(0)?)),
    Reference::Numpy("input"),
    Samples::Unary(dtypes::ALL, -4.0, 4.0),
)];
