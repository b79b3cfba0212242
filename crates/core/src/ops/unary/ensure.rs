//! Assertions on tensor values.

use crate::error::{Error, ErrorKind, Result};
use crate::ops::pass_through::{PassCheck, PassGradient, PassThrough};
use crate::ops::sample::ramp;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Tensor, apply};

static ALL_TRUE: PassCheck = PassCheck {
    accepts: |dtype| match dtype {
        DType::Bool => Ok(()),
        _ => Err(Error::dtype(format!("condition must be bool, got {dtype}")).help("use a comparison")),
    },
    holds: |out, message| if out.bytes().contains(&0) { Err(Error::value(message)) } else { Ok(()) },
};

/// Returns the condition, or an error with this message if an element is false. In a traced function the check runs in
/// every call, even if its result is unused.
///
/// ```
/// use taut_core::{Tensor, ops::unary::ensure};
/// let holds = Tensor::from_slice(&[true, false], [2])?;
/// assert_eq!(ensure(&holds, "sizes are positive").unwrap_err().message(), "sizes are positive");
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn ensure(condition: impl Into<Tensor>, message: &str) -> Result<Tensor> {
    apply(&PassThrough::check("ensure", &ALL_TRUE, message, PassGradient::Stop), [condition.into()])
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
        shapes.map(|shape| vec![holds(shape), ArgValue::Str("it holds".into())]).into()
    }),
)
.refuses(|| {
    let bad = |x, kind, message| InvalidArgs::new(vec![x, ArgValue::Str("it holds".into())], kind, message);
    vec![
        bad(ramp(DType::Bool, &[3], 0.0, 1.0), ErrorKind::Value, "it holds"),
        bad(ramp(DType::F32, &[2], 0.0, 1.0), ErrorKind::DType, "condition must be bool, got float32"),
    ]
})];
