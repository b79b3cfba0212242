//! Embedding lookup.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::index::{gather, row_gradient};
use crate::ops::sample::{dtypes, of, ramp};
use crate::ops::vmap::single_output;
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, Reference, Samples, one};
use crate::rows::{RowCall, RowRule, RowSplit};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply};
use taut_kernels::{Arg, ViewMut, index as kernel};

#[derive(Clone, Debug)]
struct EmbeddingLookup;

impl Op for EmbeddingLookup {
    fn name(&self) -> &'static str {
        "embedding_lookup"
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let (params, ids) = (inputs[0], inputs[1]);
        let Some((_, row)) = params.shape.split_first() else {
            return Err(Error::shape("params must have rank >= 1 ([rows, ..]), got a scalar"));
        };
        if !ids.dtype.is_integer() {
            return Err(Error::dtype(format!("ids must be integers, got {}", ids.dtype)));
        }
        Ok(Spec { dtype: params.dtype, shape: ids.shape.iter().chain(row).copied().collect() }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        let (params, ids) = (inputs[0].view(), inputs[1].view());
        kernel::gather(params, ids, 0, 0, outputs[0].reborrow()).map_err(|bad| {
            Error::index(format!(
                "ids must be in [0, {}), got {} at position {}",
                bad.limit, bad.value, bad.position
            ))
        })
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        if !call.mapped[0] {
            return call.apply_as_is(self);
        }
        single_output(gather(&call.inputs[0], &call.inputs[1], 1, isize::from(call.mapped[1])))
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }
}

impl RowRule for EmbeddingLookup {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        let axis = Some(call.classes[1].axis()?.axis);
        call.independent(&[None, axis], &[axis])
    }
}

impl Differentiable for EmbeddingLookup {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::inputs([1]))
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        row_gradient(call)
    }
}

/// Looks up rows of an embedding table: `params[ids]`, of shape `ids.shape + params.shape[1:]`. Ids must be in
/// `[0, rows)`. The gradient of the table is sparse.
///
/// ```
/// use taut_core::{Tensor, ops::nn::embedding_lookup};
/// let table = Tensor::from_slice(&[1.0f32, 2.0, 3.0, 4.0], [2, 2])?;
/// let ids = Tensor::from_slice(&[1, 0, 1], [3])?;
/// assert_eq!(embedding_lookup(&table, &ids)?.to_vec::<f32>()?, [3.0, 4.0, 1.0, 2.0, 3.0, 4.0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn embedding_lookup(params: impl Into<Tensor>, ids: impl Into<Tensor>) -> Result<Tensor> {
    apply(&EmbeddingLookup, [params.into(), ids.into()])
}

pub(crate) const ENTRIES: &[OpEntry] = &[OpEntry::new(
    "embedding_lookup",
    &[Param::tensor("params"), Param::tensor("ids")],
    |a| one(embedding_lookup(a.tensor(0)?, a.tensor(1)?)),
    Reference::Numpy("params[ids.astype(np.int64)]"),
    Samples::List(|| {
        let cases: [(&[usize], &[usize]); 5] =
            [(&[5, 3], &[4]), (&[5], &[2, 2]), (&[5, 2, 2], &[]), (&[5, 3], &[0]), (&[5, 0], &[2])];
        let with = |dtype, ids, (table, shape): (&[usize], &[usize])| {
            vec![ramp(dtype, table, -4.0, 4.0), ramp(ids, shape, 0.0, 4.9)]
        };
        let mut samples: Vec<Vec<ArgValue>> =
            dtypes::ALL.iter().flat_map(|&dtype| cases.map(|case| with(dtype, DType::I32, case))).collect();
        samples.extend(dtypes::INTEGERS.iter().map(|&ids| with(DType::F32, ids, (&[5, 3], &[2, 3]))));
        samples
    }),
)
.refuses(|| {
    let args = |table: &[usize], ids: ArgValue| vec![ramp(DType::F32, table, 0.0, 1.0), ids];
    let ids = |dtype, value| of(dtype, &[2], &[0.0, value]);
    vec![
        InvalidArgs::new(
            args(&[3, 2], ids(DType::I32, 3.0)),
            ErrorKind::Index,
            "ids must be in [0, 3), got 3 at position 1",
        ),
        InvalidArgs::new(
            args(&[3, 2], ids(DType::I64, -1.0)),
            ErrorKind::Index,
            "ids must be in [0, 3), got -1 at position 1",
        ),
        InvalidArgs::new(
            args(&[3, 2], ids(DType::F32, 1.0)),
            ErrorKind::DType,
            "ids must be integers, got float32",
        ),
        InvalidArgs::new(
            args(&[], ids(DType::I32, 0.0)),
            ErrorKind::Shape,
            "params must have rank >= 1 ([rows, ..]), got a scalar",
        ),
    ]
})];
