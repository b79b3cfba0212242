//! Random permutations.

use crate::error::{Error, ErrorKind, Result};
use crate::op::Spec;
use crate::ops::draw::{Distribution, KEY, draw, invalid_keys, key};
use crate::ops::index::gather;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Tensor};
use taut_memory::Location;

/// A random permutation of the integers in `[0, n)` (`int64`). A function of the key.
///
/// ```
/// use taut_core::{Tensor, ops::random::stateless_permutation};
/// let key = Tensor::from_slice(&[7u64, 0], [2])?;
/// let mut order = stateless_permutation(&key, 4)?.to_vec::<i64>()?;
/// order.sort();
/// assert_eq!(order, [0, 1, 2, 3]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn stateless_permutation(key: impl Into<Tensor>, n: usize) -> Result<Tensor> {
    draw("stateless_permutation", key.into(), Spec::new(DType::I64, [n]), Distribution::Permutation)
}

/// Shuffles a tensor along its first axis. The order is a function of the key.
#[track_caller]
pub fn stateless_shuffle(key: impl Into<Tensor>, x: impl Into<Tensor>) -> Result<Tensor> {
    let (x, at) = (x.into(), Location::caller());
    let Some(&n) = x.shape().first() else {
        let error = Error::new(ErrorKind::Axis, "expected rank >= 1, got a scalar");
        return Err(error.in_op("stateless_shuffle", [x.spec()]).at(at));
    };
    gather(x, stateless_permutation(key, n)?, 0, 0)
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "stateless_permutation",
        &[KEY, Param::new("n", ParamKind::Int)],
        |a| {
            let n = a.int(1)?;
            let n = usize::try_from(n).map_err(|_| Error::shape(format!("n must be >= 0, got {n}")))?;
            one(stateless_permutation(a.tensor(0)?, n))
        },
        Reference::Property(
            "out.dtype == np.int64 and np.array_equal(np.sort(out), np.arange(n)) and \
             (n < 20 or not np.array_equal(out, np.arange(n)))",
        ),
        Samples::List(|| [0, 1, 2, 20, 1000].map(|n| vec![key(3.0), ArgValue::Int(n)]).to_vec()),
    )
    .refuses(|| {
        let mut list = invalid_keys(&[ArgValue::Int(3)]);
        let bad = |n, message| InvalidArgs::new(vec![key(1.0), ArgValue::Int(n)], ErrorKind::Shape, message);
        list.push(bad(-1, "n must be >= 0, got -1"));
        list.push(bad(i64::MAX, "more elements than memory has addresses"));
        list
    }),
    OpEntry::new(
        "stateless_shuffle",
        &[KEY, Param::tensor("x")],
        |a| one(stateless_shuffle(a.tensor(0)?, a.tensor(1)?)),
        Reference::Property(
            "out.shape == x.shape and sorted(row.tobytes() for row in out) == sorted(row.tobytes() for row in x)",
        ),
        Samples::List(|| {
            let with = |&dtype: &DType| {
                [&[0][..], &[1], &[7], &[3, 2], &[4, 0], &[2, 3, 2]]
                    .map(|shape| vec![key(5.0), ramp(dtype, shape, -9.0, 9.0)])
            };
            dtypes::EVERY.iter().flat_map(with).collect()
        }),
    )
    .refuses(|| {
        let mut list = invalid_keys(&[ramp(DType::F32, &[2], 0.0, 1.0)]);
        let scalar = vec![key(1.0), ramp(DType::F32, &[], 0.0, 1.0)];
        list.push(InvalidArgs::new(scalar, ErrorKind::Axis, "expected rank >= 1, got a scalar"));
        list
    }),
];
