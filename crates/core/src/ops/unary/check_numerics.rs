//! Refusing NaN and infinity.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Kernel, Op, Spec, Specs, VmapCall};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{ArgValue, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply};
use std::sync::Arc;
use taut_kernels::{Arg, View, ViewMut, bits, elementwise};

#[derive(Clone, Debug)]
struct CheckNumerics {
    message: Arc<str>,
}

impl Op for CheckNumerics {
    fn name(&self) -> &'static str {
        "check_numerics"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        if !inputs[0].dtype.is_float() {
            return Err(
                Error::dtype(format!("{} is not supported", inputs[0].dtype)).help("every integer is finite")
            );
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
        let out = &mut outputs[0];
        let (dtype, shape) = (out.dtype(), [out.len()]);
        let (nans, infinities) = bits::count_non_finite(View::new(dtype, out.bytes(), 0, &shape, &[1]));
        if nans + infinities == 0 {
            return Ok(());
        }
        let message = format!("{}: {nans} NaN and {infinities} infinite elements", self.message);
        Err(Error::new(ErrorKind::Numeric, message))
    }

    fn is_check(&self) -> bool {
        true
    }

    fn aliases(&self, _output: usize) -> &[usize] {
        &[0]
    }

    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, g| check_numerics(g, &self.message))
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.plain(self)
    }

    fn attributes(&self) -> String {
        format!("message={:?}", self.message)
    }
}

/// The tensor itself, or an error with this message if an element is NaN or infinite. Its gradient is checked likewise.
///
/// ```
/// use taut_core::{Tensor, ops::unary::check_numerics};
/// let x = Tensor::from_slice(&[1.0f32, f32::NAN], [2])?;
/// assert!(check_numerics(&x, "the input").unwrap_err().message().starts_with("the input: 1 NaN"));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn check_numerics(tensor: impl Into<Tensor>, message: &str) -> Result<Tensor> {
    apply(&CheckNumerics { message: message.into() }, [tensor.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "check_numerics",
    &[Param::tensor("tensor"), Param::new("message", ParamKind::Str)],
    |a| one(check_numerics(a.tensor(0)?, a.str(1)?)),
    Reference::Numpy("tensor"),
    Samples::List(|| {
        let shapes: [&[usize]; 4] = [&[], &[0], &[7], &[2, 3, 4]];
        let with =
            |dtype| shapes.map(|shape| vec![ramp(dtype, shape, -9.0, 9.0), ArgValue::Str("the input")]);
        dtypes::FLOATS.iter().flat_map(|&dtype| with(dtype)).collect()
    }),
)
.refuses(|| {
    let bad = |x, kind, message| Bad::new(vec![x, ArgValue::Str("the input")], kind, message);
    let special = of(DType::F32, &[3], &[f64::NAN, 1.0, f64::INFINITY]);
    vec![
        bad(special, ErrorKind::Numeric, "the input: 1 NaN and 1 infinite elements"),
        bad(ramp(DType::I32, &[2], 0.0, 1.0), ErrorKind::DType, "int32 is not supported"),
    ]
})];
