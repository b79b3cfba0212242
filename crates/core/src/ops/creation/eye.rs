//! Identity matrices.

use crate::error::{ErrorKind, Result};
use crate::op::{Op, Spec, Specs};
use crate::ops::sample::dtypes;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{DType, Shape, Tensor, apply};
use taut_kernels::{Arg, ViewMut, index};

#[derive(Clone, Debug)]
struct Eye {
    spec: Spec,
    k: isize,
}

impl Op for Eye {
    fn name(&self) -> &'static str {
        "eye"
    }

    fn infer(&self, _inputs: &[&Spec]) -> Result<Specs> {
        Ok(self.spec.clone().into())
    }

    fn run(&self, _inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        index::eye(self.k, outputs[0].reborrow());
        Ok(())
    }

    fn attributes(&self) -> String {
        format!("k={}", self.k)
    }
}

/// Identity matrices: ones on diagonal `k` and zeros elsewhere, in shape `batch_shape + [num_rows, num_columns]`.
///
/// `num_columns` defaults to `num_rows`. `k` is 0 for the main diagonal, positive above it, negative below.
///
/// ```
/// use taut_core::{DType, ops::creation::eye};
/// assert_eq!(eye(2, None, (), DType::U8, 0)?.to_vec::<u8>()?, [1, 0, 0, 1]);
/// assert_eq!(eye(2, 3, (), DType::U8, 1)?.to_vec::<u8>()?, [0, 1, 0, 0, 0, 1]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn eye(
    num_rows: usize,
    num_columns: impl Into<Option<usize>>,
    batch_shape: impl Into<Shape>,
    dtype: DType,
    k: isize,
) -> Result<Tensor> {
    let matrix = [num_rows, num_columns.into().unwrap_or(num_rows)];
    let shape: Shape = batch_shape.into().iter().copied().chain(matrix).collect();
    apply(&Eye { spec: Spec { dtype, shape }, k }, [])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "eye",
    &[
        Param::new("num_rows", ParamKind::Int),
        Param::optional("num_columns", ParamKind::Int, "None"),
        Param::optional("batch_shape", ParamKind::Ints, "[]"),
        Param::optional("dtype", ParamKind::DType, "float32"),
        Param::optional("k", ParamKind::Int, "0"),
    ],
    |a| {
        let columns = a.int_or(1)?.map(|_| a.size(1)).transpose()?;
        let batch = a.ints_or(2)?.map(|_| a.shape(2)).transpose()?.unwrap_or_default();
        let k = a.int_or(4)?.unwrap_or(0) as isize;
        one(eye(a.size(0)?, columns, batch, a.dtype_or(3)?.unwrap_or(DType::F32), k))
    },
    Reference::Numpy(
        "np.broadcast_to(np.eye(num_rows, num_columns, k, dtype), \
         batch_shape + (num_rows, num_rows if num_columns is None else num_columns))",
    ),
    Samples::List(|| {
        let cases: [(i64, Option<i64>, &[i64], i64); 9] = [
            (3, None, &[], 0),
            (1, None, &[], 0),
            (0, None, &[2], 0),
            (2, Some(4), &[], 1),
            (4, Some(2), &[3], -2),
            (2, Some(0), &[], 0),
            (2, Some(2), &[2, 0], 0),
            (3, Some(3), &[2, 1], 7),
            (3, Some(3), &[], -7),
        ];
        let with = |dtype| {
            cases.map(|(rows, columns, batch, k)| {
                let columns = columns.map_or(ArgValue::None, ArgValue::Int);
                vec![
                    ArgValue::Int(rows),
                    columns,
                    ArgValue::Ints(batch.to_vec()),
                    ArgValue::DType(dtype),
                    ArgValue::Int(k),
                ]
            })
        };
        dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
    }),
)
.refuses(|| {
    vec![
        InvalidArgs::new(vec![ArgValue::Int(-1)], ErrorKind::Shape, "dimension must be >= 0, got -1"),
        InvalidArgs::new(
            vec![ArgValue::Int(2), ArgValue::Int(-3)],
            ErrorKind::Shape,
            "dimension must be >= 0, got -3",
        ),
        InvalidArgs::new(
            vec![ArgValue::Int(i64::MAX)],
            ErrorKind::Shape,
            "more elements than memory has addresses",
        ),
        InvalidArgs::new(
            vec![ArgValue::Int(2), ArgValue::Int(2), ArgValue::Ints(vec![i64::MAX, 2])],
            ErrorKind::Shape,
            "more elements than memory has addresses",
        ),
    ]
})];
