//! Binary search in sorted sequences.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::shape::reshape;
use crate::ops::unary::cast;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::promote::common_dtype;
use crate::{DType, Outputs, Tensor, apply};
use taut_kernels::{Arg, ViewMut, sort};

#[derive(Clone, Debug)]
struct SearchSorted {
    right: bool,
}

impl Op for SearchSorted {
    fn name(&self) -> &'static str {
        "searchsorted"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (sorted, values) = (inputs[0], inputs[1]);
        if sorted.dtype != values.dtype {
            let message = format!(
                "sequence and values must have the same dtype, got {} and {}",
                sorted.dtype, values.dtype
            );
            return Err(Error::dtype(message).help("cast one of them"));
        }
        let (Some((_, a)), Some((_, b))) = (sorted.shape.split_last(), values.shape.split_last()) else {
            let message = "sorted_sequence and values must have rank >= 1, got a scalar";
            return Err(Error::new(ErrorKind::Axis, message));
        };
        if a != b {
            let message = format!(
                "sequence and values must have equal shapes except on the last axis, got {} and {}",
                sorted.shape, values.shape
            );
            return Err(
                Error::shape(message).help("row i of the values is searched in row i of the sequence")
            );
        }
        Ok(Spec { dtype: DType::I64, shape: values.shape.clone() }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        sort::searchsorted(inputs[0].view(), inputs[1].view(), self.right, outputs[0].reborrow());
        Ok(())
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_batched(self)
    }

    fn attributes(&self) -> String {
        if self.right { "right".into() } else { String::new() }
    }
}

/// The insertion index (`int64`) of each value in an ascending sequence: before elements equal to it, or after them with
/// `right`.
///
/// A one-dimensional sequence takes values of any shape; a batch of sequences takes a batch of values, row by row. Not
/// differentiable.
///
/// ```
/// use taut_core::{Tensor, ops::index::searchsorted};
/// let sorted = Tensor::from_slice(&[1, 3, 3, 5], [4])?;
/// let values = Tensor::from_slice(&[0, 3, 9], [3])?;
/// assert_eq!(searchsorted(&sorted, &values, false)?.to_vec::<i64>()?, [0, 1, 4]);
/// assert_eq!(searchsorted(&sorted, &values, true)?.to_vec::<i64>()?, [0, 3, 4]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn searchsorted(
    sorted_sequence: impl Into<Tensor>,
    values: impl Into<Tensor>,
    right: bool,
) -> Result<Tensor> {
    let (sorted, values) = (sorted_sequence.into(), values.into());
    let dtype = common_dtype("searchsorted", [&sorted, &values])?;
    let (sorted, values) = (cast(sorted, dtype)?, cast(values, dtype)?);
    if sorted.rank() != 1 || values.rank() == 1 {
        return apply(&SearchSorted { right }, [sorted, values]);
    }
    let shape: Vec<isize> = values.shape().iter().map(|&dim| dim as isize).collect();
    let flat = reshape(&values, &[values.len() as isize])?;
    reshape(apply(&SearchSorted { right }, [sorted, flat])?, &shape)
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "searchsorted",
    &[
        Param::tensor("sorted_sequence"),
        Param::tensor("values"),
        Param::optional("right", ParamKind::Bool, "False"),
    ],
    |a| one(searchsorted(a.tensor(0)?, a.tensor(1)?, a.bool_or(2)?.unwrap_or(false))),
    Reference::Numpy(
        "(lambda side: np.searchsorted(sorted_sequence, values, side).astype(np.int64) if sorted_sequence.ndim == 1 \
         else np.array([np.searchsorted(s, v, side) for s, v in zip(sorted_sequence.reshape(-1, \
         sorted_sequence.shape[-1]), values.reshape(-1, values.shape[-1]))]).reshape(values.shape).astype(np.int64))\
         ('right' if right else 'left')",
    ),
    Samples::List(|| {
        let sequence = [0.0, 1.0, 1.0, 3.0, 7.0, 7.0];
        let mut list = Vec::new();
        for &dtype in dtypes::NUMBERS {
            for right in [false, true] {
                for shape in [&[][..], &[0], &[9], &[2, 2, 3]] {
                    let args = [of(dtype, &[6], &sequence), ramp(dtype, shape, 0.0, 9.0), ArgValue::Bool(right)];
                    list.push(args.to_vec());
                }
                let rows = of(dtype, &[2, 3], &sequence);
                list.push(vec![rows, ramp(dtype, &[2, 4], 0.0, 9.0), ArgValue::Bool(right)]);
            }
        }
        let nan = of(DType::F32, &[3], &[-1.0, 2.0, f64::NAN]);
        let special = of(DType::F64, &[4], &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.0]);
        list.push(vec![nan, special, ArgValue::Bool(false)]);
        list.push(vec![of(DType::I32, &[0], &[]), ramp(DType::F32, &[3], 0.0, 1.0), ArgValue::Bool(false)]);
        list
    }),
)
.refuses(|| {
    let bad = |sorted: &[usize], values: &[usize], kind, message| {
        let args = vec![ramp(DType::F32, sorted, 0.0, 1.0), ramp(DType::F32, values, 0.0, 1.0)];
        InvalidArgs::new(args, kind, message)
    };
    vec![
        bad(&[], &[2], ErrorKind::Axis, "must have rank >= 1, got a scalar"),
        bad(&[2, 3], &[], ErrorKind::Axis, "must have rank >= 1, got a scalar"),
        bad(&[2, 3], &[3, 1], ErrorKind::Shape, "equal shapes except on the last axis, got [2, 3] and [3, 1]"),
        bad(&[2, 3], &[2], ErrorKind::Shape, "equal shapes except on the last axis, got [2, 3] and [2]"),
    ]
})];
