//! Powers.

use crate::error::{ErrorKind, Result};
use crate::ops::binary::{equal, greater, logical_and, mul, mul_no_nan, not_equal, sub, where_};
use crate::ops::elementwise::binary;
use crate::ops::sample::{binary as pairs, dtypes, ramp};
use crate::ops::unary::{log, square};
use crate::ops::{ArgValue, ComputeDType, Elementwise, InvalidArgs, OpEntry, Param, Reference, Samples, one};
use crate::{DType, Operand, Saves, Scalar, Tensor};
use taut_kernels::elementwise::Binary;

static POW: Elementwise = Elementwise::binary("pow", Binary::Pow, ComputeDType::Same).grad(
    |wanted| {
        let base = if wanted.has(0) { Saves::inputs([0, 1]) } else { Saves::NOTHING };
        let power = if wanted.has(1) { Saves::INPUT.and(Saves::OUTPUT) } else { Saves::NOTHING };
        base.and(power)
    },
    |call, g, i| {
        let x = call.input(0)?;
        if i == 0 {
            // x^0 has derivative 0 everywhere, also at 0, where 0 * x^-1 would be NaN.
            let y = call.input(1)?;
            let lower = sub(y, 1)?;
            let slope = if x.dtype().is_complex() {
                let is_pole = logical_and(equal(x, 0)?, equal(y, 0)?)?;
                mul(pow(x, where_(is_pole, 0, lower)?)?, y)?
            } else {
                mul_no_nan(pow(x, lower)?, y)?
            };
            return mul(g, slope);
        }
        // For x <= 0 (for complex numbers, 0) the derivative with respect to the exponent does not exist: it is 0.
        let usable = if x.dtype().is_complex() { not_equal(x, 0)? } else { greater(x, 0)? };
        let safe = where_(usable, x, 1)?;
        mul(mul(g, call.output(0)?)?, log(safe)?)
    },
);

/// `x` to the power of `y`. Integers wrap; a negative power of an integer is the truncated reciprocal.
///
/// ```
/// use taut_core::{Tensor, ops::binary::pow};
/// let x = Tensor::from_slice(&[2.0f32, 3.0], [2])?;
/// assert_eq!(pow(&x, 2)?.to_vec::<f32>()?, [4.0, 9.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[inline]
#[track_caller]
pub fn pow(x: impl Into<Operand>, y: impl Into<Operand>) -> Result<Tensor> {
    match (x.into(), y.into()) {
        // The common case of a square: one multiplication.
        (Operand::Tensor(x), Operand::Scalar(y)) if is_two(y) && keeps_dtype(x.dtype(), y) => square(x),
        (x, y) => binary(&POW, x, y),
    }
}

fn is_two(scalar: Scalar) -> bool {
    scalar.to_f64() == 2.0 && !matches!(scalar, Scalar::Complex(_))
}

/// Whether the result has the tensor's dtype.
fn keeps_dtype(dtype: DType, power: Scalar) -> bool {
    dtype.is_inexact() || (dtype.is_integer() && !matches!(power, Scalar::Float(_)))
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "pow",
    Param::XY,
    |a| one(pow(a.operand(0)?, a.operand(1)?)),
    Reference::Numpy("np.power(x, y)"),
    Samples::List(|| {
        // NumPy raises for negative powers of integers.
        let mut list = pairs(dtypes::INTEGERS, (-3.0, 3.0), (0.0, 5.0));
        list.extend(pairs(dtypes::INEXACT, (-3.0, 3.0), (-2.0, 2.0)));
        for power in [ArgValue::Int(2), ArgValue::Int(3), ArgValue::Float(2.0), ArgValue::Float(0.5)] {
            list.extend(
                [DType::U8, DType::I32, DType::F32].map(|d| vec![ramp(d, &[4], -3.0, 3.0), power.clone()]),
            );
        }
        list
    }),
)
.refuses(|| {
    let bad = |dtype, y: &[usize], kind, message| {
        InvalidArgs::new(vec![ramp(dtype, &[2, 3], 0.0, 1.0), ramp(dtype, y, 0.0, 1.0)], kind, message)
    };
    vec![
        bad(DType::F32, &[2], ErrorKind::Shape, "shapes [2, 3] and [2] do not broadcast"),
        bad(DType::Bool, &[3], ErrorKind::DType, "bool is not supported"),
        InvalidArgs::new(
            vec![ramp(DType::U8, &[2], 0.0, 1.0), ArgValue::Int(300)],
            ErrorKind::Value,
            "300 does not fit uint8",
        ),
    ]
})];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_powers_of_integers_are_truncated_reciprocals() {
        let _ledger = taut_memory::testing::ledger_check();
        let x = Tensor::from_slice(&[1, -1, 2, -3], [4]).unwrap();
        assert_eq!(pow(&x, -1).unwrap().to_vec::<i32>().unwrap(), [1, -1, 0, 0]);
        assert_eq!(pow(&x, -2).unwrap().to_vec::<i32>().unwrap(), [1, 1, 0, 0]);
    }
}
