//! Segment reductions with unsorted ids.

use super::segment::Segments;
use crate::error::{Error, ErrorKind, Result};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::{ArgValue, Args, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Tensor, apply};
use taut_kernels::index::{Empty, Segment};

#[track_caller]
fn segment(
    name: &'static str,
    code: Segment,
    data: impl Into<Tensor>,
    ids: impl Into<Tensor>,
    count: usize,
) -> Result<Tensor> {
    let op = Segments { name, code, count, sorted: false, empty: Empty::Identity };
    apply(&op, [data.into(), ids.into()])
}

/// Sums the rows of `data` with equal ids, in any order; the shape of the ids is a prefix of that of `data`. An id that
/// does not occur gives zero; ids must be in `[0, num_segments)`.
///
/// ```
/// use taut_core::{Tensor, ops::index::unsorted_segment_sum};
/// let x = Tensor::from_slice(&[1, 2, 3, 4], [4])?;
/// let ids = Tensor::from_slice(&[2, 0, 2, 0], [4])?;
/// assert_eq!(unsorted_segment_sum(&x, &ids, 4)?.to_vec::<i32>()?, [6, 0, 4, 0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn unsorted_segment_sum(
    data: impl Into<Tensor>,
    segment_ids: impl Into<Tensor>,
    num_segments: usize,
) -> Result<Tensor> {
    segment("unsorted_segment_sum", Segment::Sum, data, segment_ids, num_segments)
}

/// The mean of the rows of `data` with equal ids, in any order; the shape of the ids is a prefix of that of `data`. An id
/// that does not occur gives zero; ids must be in `[0, num_segments)`.
#[track_caller]
pub fn unsorted_segment_mean(
    data: impl Into<Tensor>,
    segment_ids: impl Into<Tensor>,
    num_segments: usize,
) -> Result<Tensor> {
    segment("unsorted_segment_mean", Segment::Mean, data, segment_ids, num_segments)
}

/// The product of the rows of `data` with equal ids, in any order; the shape of the ids is a prefix of that of `data`. An
/// id that does not occur gives one; ids must be in `[0, num_segments)`.
#[track_caller]
pub fn unsorted_segment_prod(
    data: impl Into<Tensor>,
    segment_ids: impl Into<Tensor>,
    num_segments: usize,
) -> Result<Tensor> {
    segment("unsorted_segment_prod", Segment::Prod, data, segment_ids, num_segments)
}

/// The maximum of the rows of `data` with equal ids, in any order; the shape of the ids is a prefix of that of `data`. An
/// id that does not occur gives the lowest finite value; ids must be in `[0, num_segments)`.
#[track_caller]
pub fn unsorted_segment_max(
    data: impl Into<Tensor>,
    segment_ids: impl Into<Tensor>,
    num_segments: usize,
) -> Result<Tensor> {
    segment("unsorted_segment_max", Segment::Max, data, segment_ids, num_segments)
}

/// The minimum of the rows of `data` with equal ids, in any order; the shape of the ids is a prefix of that of `data`. An
/// id that does not occur gives the highest finite value; ids must be in `[0, num_segments)`.
#[track_caller]
pub fn unsorted_segment_min(
    data: impl Into<Tensor>,
    segment_ids: impl Into<Tensor>,
    num_segments: usize,
) -> Result<Tensor> {
    segment("unsorted_segment_min", Segment::Min, data, segment_ids, num_segments)
}

const PARAMS: &[Param] =
    &[Param::tensor("data"), Param::tensor("segment_ids"), Param::new("num_segments", ParamKind::Int)];

fn count(a: &Args<'_>) -> Result<usize> {
    let count = a.int(2)?;
    usize::try_from(count).map_err(|_| Error::value(format!("num_segments must be >= 0, got {count}")))
}

fn samples() -> Vec<Vec<ArgValue>> {
    let cases: [(&[usize], &[usize], f64, i64); 6] = [
        (&[0], &[0], 1.0, 2),
        (&[], &[], 1.0, 2),
        (&[5], &[5], 3.0, 4),
        (&[4, 3], &[4], 2.0, 2),
        (&[2, 3, 2], &[2, 3], 4.0, 5),
        (&[2, 0], &[2], 2.0, 3),
    ];
    let with = |dtype, id| {
        cases.map(|(x, ids, limit, n)| {
            vec![ramp(dtype, x, -4.0, 4.0), ramp(id, ids, 0.0, limit), ArgValue::Int(n)]
        })
    };
    let mut list: Vec<_> = dtypes::NUMBERS.iter().flat_map(|&dtype| with(dtype, DType::I64)).collect();
    list.extend(with(DType::F32, DType::U16));
    list.push(vec![ramp(DType::F32, &[0, 3], 0.0, 1.0), ramp(DType::I32, &[0], 0.0, 1.0), ArgValue::Int(0)]);
    list
}

/// An id that does not occur gives a value so large that a sum with it loses all precision. The gradient checks sum
/// float64 results, so all ids occur in float64 samples.
fn extremum_samples() -> Vec<Vec<ArgValue>> {
    let mut list = samples();
    list.retain(|args| !matches!(&args[0], ArgValue::Tensor(data) if data.dtype() == DType::F64));
    let cases: [(&[usize], &[usize], &[f64]); 4] = [
        (&[], &[], &[0.0]),
        (&[5], &[5], &[1.0, 2.0, 0.0, 2.0, 1.0]),
        (&[4, 3], &[4], &[1.0, 0.0, 1.0, 1.0]),
        (&[2, 3, 2], &[2, 3], &[0.0, 3.0, 2.0, 1.0, 0.0, 3.0]),
    ];
    list.extend(cases.map(|(x, shape, ids)| {
        let count = ids.iter().fold(0.0, |most: f64, &id| most.max(id)) as i64 + 1;
        vec![ramp(DType::F64, x, -4.0, 4.0), of(DType::I64, shape, ids), ArgValue::Int(count)]
    }));
    list
}

fn invalid() -> Vec<InvalidArgs> {
    let data = |shape: &[usize]| ramp(DType::F32, shape, 0.0, 1.0);
    let ids = |values: &[f64]| of(DType::I64, &[values.len()], values);
    let bad = |data, ids, count, kind, message| {
        InvalidArgs::new(vec![data, ids, ArgValue::Int(count)], kind, message)
    };
    let bools = ramp(DType::Bool, &[2], 0.0, 1.0);
    vec![
        bad(data(&[2]), data(&[2]), 1, ErrorKind::DType, "segment ids must be integers, got float32"),
        bad(bools, ids(&[0.0, 1.0]), 2, ErrorKind::DType, "bool is not supported"),
        bad(
            data(&[2]),
            ids(&[0.0, 3.0]),
            3,
            ErrorKind::Index,
            "segment ids must be in [0, 3), got 3 at position 1",
        ),
        bad(data(&[2]), ids(&[0.0, -1.0]), 3, ErrorKind::Index, "got -1 at position 1"),
        bad(
            data(&[3]),
            ids(&[0.0, 1.0]),
            2,
            ErrorKind::Shape,
            "must be a prefix of the shape of data, got [2] and [3]",
        ),
        bad(data(&[2]), ids(&[0.0, 1.0]), -2, ErrorKind::Value, "num_segments must be >= 0, got -2"),
        bad(data(&[1]), ids(&[0.0]), i64::MAX, ErrorKind::Shape, "segments exceed the address space"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "unsorted_segment_sum",
        PARAMS,
        |a| one(unsorted_segment_sum(a.tensor(0)?, a.tensor(1)?, count(a)?)),
        Reference::Numpy(
            "np.array([data[segment_ids == i].sum(0, dtype=data.dtype) for i in \
             range(num_segments)]).reshape((num_segments,) + data.shape[segment_ids.ndim:]).astype(data.dtype)",
        ),
        Samples::List(samples),
    )
    .refuses(invalid),
    OpEntry::new(
        "unsorted_segment_mean",
        PARAMS,
        |a| one(unsorted_segment_mean(a.tensor(0)?, a.tensor(1)?, count(a)?)),
        Reference::Numpy(
            "np.array([data[segment_ids == i].sum(0, dtype=np.float64) / max((segment_ids == i).sum(), 1) for \
             i in range(num_segments)]).reshape((num_segments,) + \
             data.shape[segment_ids.ndim:]).astype(data.dtype)",
        ),
        Samples::List(samples),
    )
    .refuses(invalid),
    OpEntry::new(
        "unsorted_segment_prod",
        PARAMS,
        |a| one(unsorted_segment_prod(a.tensor(0)?, a.tensor(1)?, count(a)?)),
        Reference::Numpy(
            "np.array([data[segment_ids == i].prod(0, dtype=data.dtype) for i in \
             range(num_segments)]).reshape((num_segments,) + data.shape[segment_ids.ndim:]).astype(data.dtype)",
        ),
        Samples::List(samples),
    )
    .refuses(invalid),
    OpEntry::new(
        "unsorted_segment_max",
        PARAMS,
        |a| one(unsorted_segment_max(a.tensor(0)?, a.tensor(1)?, count(a)?)),
        Reference::Numpy(
            "np.array([data[segment_ids == i].max(0) if (segment_ids == i).any() else \
             np.full(data.shape[segment_ids.ndim:], (np.finfo if data.dtype.kind == 'f' else \
             np.iinfo)(data.dtype).min, data.dtype) for i in range(num_segments)]).reshape((num_segments,) + \
             data.shape[segment_ids.ndim:]).astype(data.dtype)",
        ),
        Samples::List(extremum_samples),
    )
    .refuses(invalid),
    OpEntry::new(
        "unsorted_segment_min",
        PARAMS,
        |a| one(unsorted_segment_min(a.tensor(0)?, a.tensor(1)?, count(a)?)),
        Reference::Numpy(
            "np.array([data[segment_ids == i].min(0) if (segment_ids == i).any() else \
             np.full(data.shape[segment_ids.ndim:], (np.finfo if data.dtype.kind == 'f' else \
             np.iinfo)(data.dtype).max, data.dtype) for i in range(num_segments)]).reshape((num_segments,) + \
             data.shape[segment_ids.ndim:]).astype(data.dtype)",
        ),
        Samples::List(extremum_samples),
    )
    .refuses(invalid),
];
