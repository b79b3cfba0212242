//! Tensor contraction over pairs of axes.

use super::matmul;
use crate::error::{Error, ErrorKind, Result};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::{reshape, transpose};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Shape, Tensor};
use taut_memory::Location;

/// The axes contracted by [`tensordot`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContractedAxes {
    /// The last `n` axes of the first tensor with the first `n` of the second.
    Count(usize),
    /// These axes of the first tensor with these of the second, pairwise.
    Pairs(Vec<isize>, Vec<isize>),
}

impl From<usize> for ContractedAxes {
    fn from(count: usize) -> ContractedAxes {
        ContractedAxes::Count(count)
    }
}

impl From<(&[isize], &[isize])> for ContractedAxes {
    fn from((a, b): (&[isize], &[isize])) -> ContractedAxes {
        ContractedAxes::Pairs(a.to_vec(), b.to_vec())
    }
}

impl ContractedAxes {
    /// The contracted axes of both tensors, pairwise.
    fn resolve(&self, a: &Shape, b: &Shape) -> Result<(Vec<usize>, Vec<usize>)> {
        let (left, right) = match self {
            ContractedAxes::Count(count) => {
                if *count > a.rank().min(b.rank()) {
                    let message =
                        format!("axes must be <= {}, the smaller rank, got {count}", a.rank().min(b.rank()));
                    return Err(Error::new(ErrorKind::Axis, message));
                }
                ((a.rank() - count..a.rank()).collect::<Vec<_>>(), (0..*count).collect::<Vec<_>>())
            }
            ContractedAxes::Pairs(left, right) => {
                if left.len() != right.len() {
                    let message = format!(
                        "axes_a and axes_b must have the same length, got {} and {}",
                        left.len(),
                        right.len()
                    );
                    return Err(Error::new(ErrorKind::Axis, message));
                }
                a.axes(left)?;
                b.axes(right)?;
                let resolved = |shape: &Shape, axes: &[isize]| {
                    axes.iter().map(|&axis| shape.axis(axis)).collect::<Result<Vec<_>>>()
                };
                (resolved(a, left)?, resolved(b, right)?)
            }
        };
        for (&i, &j) in left.iter().zip(&right) {
            if a[i] != b[j] {
                let message = format!(
                    "axis {i} of a and axis {j} of b must have equal sizes, got {} and {}",
                    a[i], b[j]
                );
                return Err(Error::shape(message));
            }
        }
        Ok((left, right))
    }
}

/// Tensor contraction: sums products over pairs of axes. The result has the other axes of `a`, then those of `b`.
///
/// `axes` is a count `n` (the last `n` axes of `a` with the first `n` of `b`), or two lists of axes.
///
/// ```
/// use taut_core::{Tensor, ops::contract::tensordot};
/// let a = Tensor::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// assert_eq!(tensordot(&a, &a, 2)?.item::<i32>()?, 1 + 4 + 9 + 16);
/// assert_eq!(tensordot(&a, &a, (&[0][..], &[0][..]))?.to_vec::<i32>()?, [10, 14, 14, 20]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn tensordot(
    a: impl Into<Tensor>,
    b: impl Into<Tensor>,
    axes: impl Into<ContractedAxes>,
) -> Result<Tensor> {
    let (a, b, at) = (a.into(), b.into(), Location::caller());
    let (left, right) = (axes.into().resolve(a.shape(), b.shape()))
        .map_err(|e| e.in_op("tensordot", [a.spec(), b.spec()]).at(at))?;
    let rest = |rank, summed: &[usize]| (0..rank).filter(|axis| !summed.contains(axis)).collect::<Vec<_>>();
    let (a_rest, b_rest) = (rest(a.rank(), &left), rest(b.rank(), &right));
    let size = |t: &Tensor, axes: &[usize]| axes.iter().map(|&axis| t.shape()[axis] as isize).product();
    let order = |first: &[usize], last: &[usize]| -> Vec<isize> {
        first.iter().chain(last).map(|&axis| axis as isize).collect()
    };
    let (m, k, n): (isize, isize, isize) = (size(&a, &a_rest), size(&a, &left), size(&b, &b_rest));
    let of =
        |t: &Tensor, axes: &[usize]| axes.iter().map(|&axis| t.shape()[axis] as isize).collect::<Vec<_>>();
    let shape = [of(&a, &a_rest), of(&b, &b_rest)].concat();
    let a = reshape(transpose(a, &order(&a_rest, &left)[..])?, &[m, k])?;
    let b = reshape(transpose(b, &order(&right, &b_rest)[..])?, &[k, n])?;
    reshape(matmul(a, b)?, &shape)
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "tensordot",
    &[
        Param::tensor("a"),
        Param::tensor("b"),
        Param::optional("axes", ParamKind::Int, "2"),
        Param::optional("axes_a", ParamKind::Ints, "None"),
        Param::optional("axes_b", ParamKind::Ints, "None"),
    ],
    |a| {
        let axes = match (a.axes(3)?, a.axes(4)?) {
            (None, None) => {
                let count = a.int_or(2)?.unwrap_or(2);
                let negative = |_| Error::new(ErrorKind::Axis, format!("axes must be >= 0, got {count}"));
                ContractedAxes::Count(usize::try_from(count).map_err(negative)?)
            }
            (left, right) => ContractedAxes::Pairs(left.unwrap_or_default(), right.unwrap_or_default()),
        };
        one(tensordot(a.tensor(0)?, a.tensor(1)?, axes))
    },
    Reference::Numpy("np.tensordot(a, b, axes if axes_a is None else (axes_a, axes_b))"),
    Samples::List(|| {
        type Case<'a> = (&'a [usize], &'a [usize], i64, Option<(&'a [i64], &'a [i64])>);
        let cases: [Case<'_>; 7] = [
            (&[2, 3], &[3, 4], 1, None),
            (&[2, 3, 4], &[3, 4, 2], 2, None),
            (&[2], &[3], 0, None),
            (&[], &[2, 2], 0, None),
            (&[2, 3, 4], &[4, 5, 2], 0, Some((&[0, -1], &[2, 0]))),
            (&[2, 0], &[0, 3], 1, None),
            (&[3, 2], &[2, 3], 0, Some((&[1, 0], &[0, 1]))),
        ];
        let with = |dtype, (a, b, count, pairs): Case<'_>| {
            let list =
                |axes: Option<&[i64]>| axes.map_or(ArgValue::None, |axes| ArgValue::Ints(axes.to_vec()));
            let (left, right) = (list(pairs.map(|p| p.0)), list(pairs.map(|p| p.1)));
            vec![ramp(dtype, a, -3.0, 3.0), ramp(dtype, b, -2.0, 2.0), ArgValue::Int(count), left, right]
        };
        let dtypes = dtypes::WIDE_COMPLEX.iter().chain(&[DType::I32, DType::BF16]);
        dtypes.flat_map(|&dtype| cases.map(|case| with(dtype, case))).collect()
    }),
)
.refuses(|| {
    let args = |count, pairs: Option<(&[i64], &[i64])>| {
        let list = |axes: Option<&[i64]>| axes.map_or(ArgValue::None, |axes| ArgValue::Ints(axes.to_vec()));
        let (left, right) = (list(pairs.map(|p| p.0)), list(pairs.map(|p| p.1)));
        let x = |shape| ramp(DType::F32, shape, 0.0, 1.0);
        vec![x(&[2, 3]), x(&[4, 3]), ArgValue::Int(count), left, right]
    };
    vec![
        InvalidArgs::new(
            args(1, None),
            ErrorKind::Shape,
            "axis 1 of a and axis 0 of b must have equal sizes, got 3 and 4",
        ),
        InvalidArgs::new(args(3, None), ErrorKind::Axis, "axes must be <= 2, the smaller rank, got 3"),
        InvalidArgs::new(args(-1, None), ErrorKind::Axis, "axes must be >= 0, got -1"),
        InvalidArgs::new(
            args(0, Some((&[1], &[1, 0]))),
            ErrorKind::Axis,
            "axes_a and axes_b must have the same length, got 1 and 2",
        ),
        InvalidArgs::new(args(0, Some((&[2], &[1]))), ErrorKind::Axis, "got 2"),
        InvalidArgs::new(
            args(0, Some((&[1, 1], &[1, 1]))),
            ErrorKind::Axis,
            "axes must be distinct, got 1 twice",
        ),
    ]
})];
