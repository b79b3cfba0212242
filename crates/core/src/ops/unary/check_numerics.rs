//! A check for NaN and infinity.

use crate::error::{Error, ErrorKind, Result};
use crate::ops::pass_through::{PassCheck, PassGradient, PassThrough};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Tensor, apply};
use taut_kernels::{View, bits};

static ALL_FINITE: PassCheck = PassCheck {
    accepts: |dtype| {
        if dtype.is_inexact() {
            return Ok(());
        }
        Err(Error::dtype(format!("{dtype} is not supported")).help("only floats can be NaN or infinite"))
    },
    holds: |out, message| {
        let (dtype, shape) = (out.dtype(), [out.len()]);
        let (nans, infinities) = bits::count_non_finite(View::new(dtype, out.bytes(), 0, &shape, &[1]));
        if nans + infinities == 0 {
            return Ok(());
        }
        let message = format!("{message}: {nans} NaN and {infinities} infinite elements");
        Err(Error::new(ErrorKind::Numeric, message))
    },
};

/// Returns the tensor, or an error with this message if an element is NaN or infinite. The gradient is checked too.
///
/// ```
/// use taut_core::{Tensor, ops::unary::check_numerics};
/// let x = Tensor::from_slice(&[1.0f32, f32::NAN], [2])?;
/// assert!(check_numerics(&x, "the input").unwrap_err().message().starts_with("the input: 1 NaN"));
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn check_numerics(tensor: impl Into<Tensor>, message: &str) -> Result<Tensor> {
    let op = PassThrough::check("check_numerics", &ALL_FINITE, message, PassGradient::PassThroughOp);
    apply(&op, [tensor.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "check_numerics",
    &[Param::tensor("tensor"), Param::new("message", ParamKind::Str)],
    |a| one(check_numerics(a.tensor(0)?, a.str(1)?)),
    Reference::Numpy("tensor"),
    Samples::List(|| {
        let shapes: [&[usize]; 4] = [&[], &[0], &[7], &[2, 3, 4]];
        let with = |dtype| {
            shapes.map(|shape| vec![ramp(dtype, shape, -9.0, 9.0), ArgValue::Str("the input".into())])
        };
        dtypes::FLOATS.iter().flat_map(|&dtype| with(dtype)).collect()
    }),
)
.refuses(|| {
    let bad = |x, kind, message| InvalidArgs::new(vec![x, ArgValue::Str("the input".into())], kind, message);
    let special = of(DType::F32, &[3], &[f64::NAN, 1.0, f64::INFINITY]);
    vec![
        bad(special, ErrorKind::Numeric, "the input: 1 NaN and 1 infinite elements"),
        bad(ramp(DType::I32, &[2], 0.0, 1.0), ErrorKind::DType, "int32 is not supported"),
    ]
})];
