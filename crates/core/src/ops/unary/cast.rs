//! Conversion between dtypes.

use crate::error::Result;
use crate::op::{Form, Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::{ArgValue, OpEntry, Param, ParamKind, Reference, Samples, one, sample};
use crate::{Differentiable, Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply};
use taut_kernels::{Arg, DType, ViewMut, elementwise};

#[derive(Clone, Debug)]
struct Cast {
    to: DType,
}

impl Op for Cast {
    fn name(&self) -> &'static str {
        "cast"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        Ok(Spec { dtype: self.to, shape: inputs[0].shape.clone() }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::Elementwise
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        elementwise::cast(inputs[0].view(), outputs[0].reborrow());
        Ok(())
    }

    fn form(&self, inputs: &[&Spec]) -> Form<'_> {
        // Fused kernels have no complex numbers.
        if self.to.is_complex() || inputs[0].dtype.is_complex() {
            return Form::Opaque;
        }
        Form::Elementwise(elementwise::Code::Cast(self.to))
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(self)
    }

    fn attributes(&self) -> String {
        format!("to={}", self.to)
    }
}

impl Differentiable for Cast {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        self.to.is_inexact().then_some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| cast(g, call.inputs[0].spec.dtype))
    }
}

/// Converts the elements to another dtype; returns the tensor itself if it has that dtype already.
///
/// Floats to integers truncate and saturate, NaN becomes 0; integers to narrower integers wrap; to `bool`, every nonzero
/// value is true. Differentiable between float dtypes.
///
/// ```
/// use taut_core::{DType, Tensor, ops::unary::cast};
/// let x = Tensor::from_slice(&[1.9f32, -1.9], [2])?;
/// assert_eq!(cast(&x, DType::I32)?.to_vec::<i32>()?, [1, -1]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn cast(x: impl Into<Tensor>, dtype: DType) -> Result<Tensor> {
    let x = x.into();
    if x.dtype() == dtype { Ok(x) } else { apply(&Cast { to: dtype }, [x]) }
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "cast",
    &[Param::tensor("x"), Param::new("dtype", ParamKind::DType)],
    |a| one(cast(a.tensor(0)?, a.dtype(1)?)),
    Reference::Numpy("x.astype(dtype)"),
    Samples::List(|| {
        let pairs = DType::ALL.into_iter().flat_map(|from| DType::ALL.map(|to| (from, to)));
        let with = |shape: &'static [usize]| {
            pairs.clone().map(|(from, to)| vec![sample::ramp(from, shape, 0.0, 100.0), ArgValue::DType(to)])
        };
        with(&[2, 3]).chain(with(&[0])).chain(with(&[])).collect()
    }),
)];
