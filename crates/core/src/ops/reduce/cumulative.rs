//! Cumulative sums, products, extrema and logsumexp.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::binary::{add, equal, minimum, mul, sub};
use crate::ops::elementwise::holomorphic;
use crate::ops::index::{keep_bits, pack_bits, unpack_bits};
use crate::ops::reduction::clamp_to_finite_min;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::{PadMode, pad, slice};
use crate::ops::unary::{cast, exp, logical_not};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowClass, RowRule, RowSplit};
use crate::{
    DType, Differentiable, Gradients, Index, Outputs, Saves, Set, Tensor, VjpCall, apply, normalize_axis,
};
use taut_kernels::scan::{Scan, scan};
use taut_kernels::{Arg, ViewMut};

#[derive(Clone, Debug)]
struct Cumulative {
    name: &'static str,
    code: Scan,
    axis: isize,
    exclusive: bool,
    reverse: bool,
}

impl Op for Cumulative {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        shape.axis(self.axis)?;
        let dtype =
            self.code.result(*dtype).ok_or_else(|| Error::dtype(format!("{dtype} is not supported")))?;
        Ok(Spec { dtype, shape: shape.clone() }.into())
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let x = inputs[0].view();
        let axis = normalize_axis(self.axis, x.shape().len())?;
        scan(self.code, x, axis, self.exclusive, self.reverse, outputs[0].reborrow());
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(&Cumulative { axis: call.axis(self.axis)?, ..self.clone() })
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        let mut text = format!("axis={}", self.axis);
        for (flag, word) in [(self.exclusive, ", exclusive"), (self.reverse, ", reverse")] {
            if flag {
                text.push_str(word);
            }
        }
        text
    }
}

impl RowRule for Cumulative {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        if call.classes[0] == RowClass::PartialSum {
            return (self.code == Scan::Sum).then(|| call.linear())?;
        }
        let own = call.inputs[0].shape.axis(self.axis).ok()?;
        call.independent_axis(|axis| axis != own)
    }
}

impl Differentiable for Cumulative {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(match self.code {
            Scan::Sum => Saves::NOTHING,
            Scan::Prod => Saves::INPUT,
            Scan::Max | Scan::Min => Saves::residual_of([0]),
            Scan::LogSumExp => Saves::INPUT.and(Saves::OUTPUT),
        })
    }

    fn residual(&self, call: &VjpCall<'_>) -> Result<Option<Tensor>> {
        pack_bits(equal(call.input(0)?, call.output(0)?)?).map(Some)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let rule = |call: &VjpCall<'_>, g: Tensor| match self.code {
            Scan::Sum => cumsum(g, self.axis, self.exclusive, !self.reverse),
            Scan::Prod => {
                // dy[j]/dx[i] for j >= i is the product of all elements up to j without x[i].
                let x = call.input(0)?;
                let g = if self.exclusive { self.shifted(g, 1)? } else { g };
                let after = self.linear_recurrence(g, self.shifted(x, 1)?)?;
                mul(after, cumprod(x, self.axis, true, self.reverse)?)
            }
            Scan::Max | Scan::Min => {
                // An extremum collects the gradients up to the next one; of equal elements the latest counts.
                let bits = call.residual()?;
                let stays = logical_not(unpack_bits(bits, call.input_shape(0).clone())?)?;
                let stays = self.shifted(cast(stays, g.dtype())?, 1)?;
                keep_bits(self.linear_recurrence(g, stays)?, bits, false)
            }
            Scan::LogSumExp => {
                // No exponent is above zero, so exp does not overflow.
                let y = clamp_to_finite_min(call.output(0)?)?;
                let share = exp(sub(call.input(0)?, &y)?)?;
                let shrinks = exp(minimum(sub(&y, self.shifted(&y, 1)?)?, 0)?)?;
                mul(self.linear_recurrence(g, shrinks)?, share)
            }
        };
        call.first(|call, g| holomorphic(g, |g| rule(call, g)))
    }
}

impl Cumulative {
    /// x shifted by `by` positions against the direction of the scan; zeros past the end.
    fn shifted(&self, x: impl Into<Tensor>, by: usize) -> Result<Tensor> {
        let x = x.into();
        let axis = x.shape().axis(self.axis)?;
        let by = by.min(x.shape()[axis]);
        let (mut indices, mut margins) = (vec![Index::from(..); axis], vec![[0, 0]; x.rank()]);
        indices.push(if self.reverse {
            Index::from(..(x.shape()[axis] - by) as isize)
        } else {
            Index::from(by as isize..)
        });
        margins[axis] = if self.reverse { [by, 0] } else { [0, by] };
        pad(slice(x, &indices)?, &margins, PadMode::Constant(0.into()))
    }

    /// The solution of the linear recurrence `sum[i] = terms[i] + factors[i] * sum[i + 1]`, in logarithmically many steps
    /// by recursive doubling.
    fn linear_recurrence(&self, terms: Tensor, factors: Tensor) -> Result<Tensor> {
        let length = terms.shape()[terms.shape().axis(self.axis)?];
        let (mut sum, mut factors, mut step) = (terms, factors, 1);
        while step < length {
            sum = add(mul(self.shifted(&sum, step)?, &factors)?, sum)?;
            if 2 * step < length {
                factors = mul(self.shifted(&factors, step)?, factors)?;
            }
            step *= 2;
        }
        Ok(sum)
    }
}

/// Cumulative sum along an axis. `exclusive` excludes each element from its own sum; `reverse` sums from the end.
/// Integers narrower than 64 bits are summed in 64 bits.
///
/// ```
/// use taut_core::{Tensor, ops::reduce::cumsum};
/// let x = Tensor::from_slice(&[1.0f32, 2.0, 3.0], [3])?;
/// assert_eq!(cumsum(&x, 0, false, false)?.to_vec::<f32>()?, [1.0, 3.0, 6.0]);
/// assert_eq!(cumsum(&x, 0, true, true)?.to_vec::<f32>()?, [5.0, 3.0, 0.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn cumsum(x: impl Into<Tensor>, axis: isize, exclusive: bool, reverse: bool) -> Result<Tensor> {
    apply(&Cumulative { name: "cumsum", code: Scan::Sum, axis, exclusive, reverse }, [x.into()])
}

/// Cumulative product along an axis. `exclusive` excludes each element from its own product; `reverse` multiplies from
/// the end. Integers narrower than 64 bits are multiplied in 64 bits.
#[track_caller]
pub fn cumprod(x: impl Into<Tensor>, axis: isize, exclusive: bool, reverse: bool) -> Result<Tensor> {
    apply(&Cumulative { name: "cumprod", code: Scan::Prod, axis, exclusive, reverse }, [x.into()])
}

/// Cumulative maximum along an axis; `reverse` starts from the end. NaN propagates.
#[track_caller]
pub fn cummax(x: impl Into<Tensor>, axis: isize, reverse: bool) -> Result<Tensor> {
    apply(&Cumulative { name: "cummax", code: Scan::Max, axis, exclusive: false, reverse }, [x.into()])
}

/// Cumulative minimum along an axis; `reverse` starts from the end. NaN propagates.
#[track_caller]
pub fn cummin(x: impl Into<Tensor>, axis: isize, reverse: bool) -> Result<Tensor> {
    apply(&Cumulative { name: "cummin", code: Scan::Min, axis, exclusive: false, reverse }, [x.into()])
}

/// Cumulative `log(sum(exp(x)))` along an axis, computed without overflow; `reverse` starts from the end.
#[track_caller]
pub fn cumulative_logsumexp(x: impl Into<Tensor>, axis: isize, reverse: bool) -> Result<Tensor> {
    let (name, code) = ("cumulative_logsumexp", Scan::LogSumExp);
    apply(&Cumulative { name, code, axis, exclusive: false, reverse }, [x.into()])
}

const SHAPES: [(&[usize], i64); 5] = [(&[7], 0), (&[3, 4], -1), (&[2, 3, 4], 1), (&[0, 3], 0), (&[3, 0], 0)];

fn with_exclusive_and_reverse(dtypes: &[DType], low: f64, high: f64) -> Vec<Vec<ArgValue>> {
    let mut samples = Vec::new();
    for &dtype in dtypes {
        for (i, (shape, axis)) in SHAPES.iter().enumerate() {
            let flags = [ArgValue::Bool(i % 2 == 1), ArgValue::Bool(i % 3 == 1)];
            samples.push([&[ramp(dtype, shape, low, high), ArgValue::Int(*axis)][..], &flags[..]].concat());
        }
    }
    samples
}

fn with_reverse(dtypes: &[DType]) -> Vec<Vec<ArgValue>> {
    let mut samples = with_exclusive_and_reverse(dtypes, -3.0, 3.0);
    samples.iter_mut().for_each(|args| args.truncate(3));
    samples
}

fn invalid_axis() -> Vec<InvalidArgs> {
    let args = |shape: &[usize]| vec![ramp(DType::F32, shape, 0.0, 1.0), ArgValue::Int(1)];
    vec![
        InvalidArgs::new(args(&[3]), ErrorKind::Axis, "axis must be in [-1, 1), got 1"),
        InvalidArgs::new(args(&[]), ErrorKind::Axis, "a scalar has no axes"),
    ]
}

const AXIS_EXCLUSIVE_REVERSE: &[Param] = &[
    Param::tensor("x"),
    Param::optional("axis", ParamKind::Int, "0"),
    Param::optional("exclusive", ParamKind::Bool, "False"),
    Param::optional("reverse", ParamKind::Bool, "False"),
];
const AXIS_REVERSE: &[Param] = &[
    Param::tensor("x"),
    Param::optional("axis", ParamKind::Int, "0"),
    Param::optional("reverse", ParamKind::Bool, "False"),
];

/// The NumPy reference: flip, accumulate (floats in float64, rounded once), shift by one if exclusive, flip back.
macro_rules! cumulative_reference {
    ($identity:literal, $accumulate:literal) => {
        concat!(
            "(lambda dtype, flip: flip((lambda a: np.concatenate([np.full_like(a.take([0], axis), ",
            $identity,
            "), a.take(range(a.shape[axis] - 1), axis)], axis) if exclusive and a.shape[axis] else a)(",
            $accumulate,
            "(flip(x), axis=axis, dtype=dtype))).astype(x.dtype if x.dtype.kind in 'fc' else dtype))(",
            "{'f': np.float64, 'c': np.complex128, 'u': np.uint64}.get(x.dtype.kind, np.int64), ",
            "lambda v: np.flip(v, axis) if reverse else v)"
        )
    };
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "cumsum",
        AXIS_EXCLUSIVE_REVERSE,
        |a| {
            let flag = |i| Ok::<_, Error>(a.bool_or(i)?.unwrap_or(false));
            one(cumsum(a.tensor(0)?, a.int_or(1)?.unwrap_or(0) as isize, flag(2)?, flag(3)?))
        },
        Reference::Numpy(cumulative_reference!("0", "np.cumsum")),
        Samples::List(|| with_exclusive_and_reverse(dtypes::EVERY, -3.0, 3.0)),
    )
    .refuses(invalid_axis),
    OpEntry::new(
        "cumprod",
        AXIS_EXCLUSIVE_REVERSE,
        |a| {
            let flag = |i| Ok::<_, Error>(a.bool_or(i)?.unwrap_or(false));
            one(cumprod(a.tensor(0)?, a.int_or(1)?.unwrap_or(0) as isize, flag(2)?, flag(3)?))
        },
        Reference::Numpy(cumulative_reference!("1", "np.cumprod")),
        Samples::List(|| with_exclusive_and_reverse(dtypes::EVERY, 0.6, 1.6)),
    )
    .refuses(invalid_axis),
    OpEntry::new(
        "cummax",
        AXIS_REVERSE,
        |a| one(cummax(a.tensor(0)?, a.int_or(1)?.unwrap_or(0) as isize, a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy(
            "(lambda flip: flip(np.maximum.accumulate(flip(x), axis=axis)))(lambda v: np.flip(v, axis) if reverse else v)",
        ),
        Samples::List(|| with_reverse(dtypes::ALL)),
    )
    .refuses(invalid_axis),
    OpEntry::new(
        "cummin",
        AXIS_REVERSE,
        |a| one(cummin(a.tensor(0)?, a.int_or(1)?.unwrap_or(0) as isize, a.bool_or(2)?.unwrap_or(false))),
        Reference::Numpy(
            "(lambda flip: flip(np.minimum.accumulate(flip(x), axis=axis)))(lambda v: np.flip(v, axis) if reverse else v)",
        ),
        Samples::List(|| with_reverse(dtypes::ALL)),
    )
    .refuses(invalid_axis),
    OpEntry::new(
        "cumulative_logsumexp",
        AXIS_REVERSE,
        |a| {
            let reverse = a.bool_or(2)?.unwrap_or(false);
            one(cumulative_logsumexp(a.tensor(0)?, a.int_or(1)?.unwrap_or(0) as isize, reverse))
        },
        Reference::Numpy(
            "(lambda flip: flip(np.logaddexp.accumulate(flip(x.astype(np.float64)), axis=axis)).astype(x.dtype))(\
             lambda v: np.flip(v, axis) if reverse else v)",
        ),
        Samples::List(|| with_reverse(dtypes::FLOATS)),
    )
    .refuses(|| {
        let mut bad = invalid_axis();
        let args = vec![ramp(DType::I32, &[3], 0.0, 1.0), ArgValue::Int(0)];
        bad.push(InvalidArgs::new(args, ErrorKind::DType, "int32 is not supported"));
        bad
    }),
];
