//! A copy.

use crate::error::Result;
use crate::op::{Form, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::sample::dtypes;
use crate::ops::{OpEntry, Param, Reference, Samples, one};
use crate::{Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply};
use taut_kernels::{Arg, ViewMut, elementwise};

#[derive(Clone, Debug)]
struct Identity;

impl Op for Identity {
    fn name(&self) -> &'static str {
        "identity"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(inputs[0].clone().into())
    }

    fn kernel(&self) -> Kernel {
        Kernel::Elementwise
    }

    fn form(&self, _inputs: &[&Spec]) -> Form {
        Form::Elements(elementwise::Code::Copy)
    }

    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, g| Ok(g))
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.plain(self)
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        elementwise::copy(inputs[0].view(), outputs[0].reborrow());
        Ok(())
    }
}

/// A copy in row-major order, with memory of its own: what makes a view independent of the tensor it looks at.
///
/// ```
/// use taut_core::{Tensor, ops::shape::{identity, transpose}};
/// let x = Tensor::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// let copy = identity(transpose(&x, None)?)?;
/// assert!(copy.is_contiguous() && !copy.shares_memory(&x));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn identity(input: impl Into<Tensor>) -> Result<Tensor> {
    apply(&Identity, [input.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "identity",
    &[Param::tensor("input")],
    |a| one(identity(a.tensor(0)?)),
    Reference::Numpy("np.copy(input)"),
    Samples::Unary(dtypes::ALL, -4.0, 4.0),
)];
