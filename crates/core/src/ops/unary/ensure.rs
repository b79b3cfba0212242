//! Conditions that have to hold.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::sample::ramp;
use crate::ops::{ArgValue, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Outputs, Tensor, apply};
use std::sync::Arc;
use taut_kernels::{Arg, ViewMut, elementwise};

#[derive(Clone, Debug)]
struct Ensure {
    message: Arc<str>,
}

impl Op for Ensure {
    fn name(&self) -> &'static str {
        "ensure"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        if inputs[0].dtype != DType::Bool {
            let message = format!("a condition is a bool, not {}", inputs[0].dtype);
            return Err(Error::dtype(message).help("compare something"));
        }
        Ok(inputs[0].clone().into())
    }

    fn kernel(&self) -> Kernel {
        Kernel::Custom
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        if let Arg::View(x) = inputs[0] {
            elementwise::copy(x, outputs[0].reborrow());
        }
        if outputs[0].bytes().contains(&0) { Err(Error::value(&*self.message)) } else { Ok(()) }
    }

    fn is_check(&self) -> bool {
        true
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.plain(self)
    }

    fn attributes(&self) -> String {
        format!("message={:?}", self.message)
    }
}

/// The conditions themselves, or an error with this message if one does not hold. In a traced function it is checked by every
/// call, whether anybody uses the result or not.
///
/// ```
/// use taut_core::{Tensor, ops::unary::ensure};
/// let holds = Tensor::from_slice(&[true, false], [2])?;
/// assert_eq!(ensure(&holds, "sizes are positive").unwrap_err().message(), "sizes are positive");
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn ensure(condition: impl Into<Tensor>, message: &str) -> Result<Tensor> {
    apply(&Ensure { message: message.into() }, [condition.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "ensure",
    &[Param::tensor("condition"), Param::new("message", ParamKind::Str)],
    |a| one(ensure(a.tensor(0)?, a.str(1)?)),
    Reference::Numpy("condition"),
    Samples::List(|| {
        let shapes: [&[usize]; 4] = [&[], &[0], &[7], &[2, 3, 4]];
        let holds = |shape: &[usize]| {
            let all = Tensor::from_vec(vec![true; shape.iter().product()], shape);
            ArgValue::Tensor(all.expect("samples are small"))
        };
        shapes.map(|shape| vec![holds(shape), ArgValue::Str("it holds")]).into()
    }),
)
.refuses(|| {
    let bad = |x, kind, message| Bad::new(vec![x, ArgValue::Str("it holds")], kind, message);
    vec![
        bad(ramp(DType::Bool, &[3], 0.0, 1.0), ErrorKind::Value, "it holds"),
        bad(ramp(DType::F32, &[2], 0.0, 1.0), ErrorKind::DType, "a condition is a bool, not float32"),
    ]
})];
