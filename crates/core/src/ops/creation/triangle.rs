//! Lower and upper triangles of matrices.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{ArgValue, Args, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::rows::{RowCall, RowClass, RowRule, RowSplit};
use crate::{DType, Differentiable, Gradients, Outputs, Saves, Set, Tensor, VjpCall, apply};
use taut_kernels::{Arg, ViewMut, index};

#[derive(Clone, Debug)]
struct Triangle {
    k: isize,
    upper: bool,
}

impl Op for Triangle {
    fn name(&self) -> &'static str {
        if self.upper { "triu" } else { "tril" }
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let rank = inputs[0].shape.rank();
        if rank < 2 {
            return Err(Error::shape(format!("expected rank >= 2, got rank {rank}")));
        }
        Ok(inputs[0].clone().into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        index::triangle(inputs[0].view(), self.k, self.upper, outputs[0].reborrow());
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(self)
    }

    fn rows(&self) -> Option<&dyn RowRule> {
        Some(self)
    }

    fn attributes(&self) -> String {
        format!("k={}", self.k)
    }
}

impl RowRule for Triangle {
    fn split(&self, call: &RowCall<'_>) -> Option<RowSplit> {
        if call.classes[0] == RowClass::PartialSum {
            return call.linear();
        }
        call.independent_axis(|axis| axis + 2 < call.inputs[0].shape.rank())
    }
}

impl Differentiable for Triangle {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, g| apply(self, [g]))
    }
}

/// The lower triangle of the matrices in the last two axes: zeros above diagonal `k`. `k` is 0 for the main diagonal,
/// positive above it, negative below.
///
/// ```
/// use taut_core::{Tensor, ops::creation::{tril, triu}};
/// let x = Tensor::from_slice(&[1, 2, 3, 4], [2, 2])?;
/// assert_eq!(tril(&x, 0)?.to_vec::<i32>()?, [1, 0, 3, 4]);
/// assert_eq!(triu(&x, 1)?.to_vec::<i32>()?, [0, 2, 0, 0]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn tril(x: impl Into<Tensor>, k: isize) -> Result<Tensor> {
    apply(&Triangle { k, upper: false }, [x.into()])
}

/// The upper triangle of the matrices in the last two axes: zeros below diagonal `k`. `k` is 0 for the main diagonal,
/// positive above it, negative below.
#[track_caller]
pub fn triu(x: impl Into<Tensor>, k: isize) -> Result<Tensor> {
    apply(&Triangle { k, upper: true }, [x.into()])
}

fn k(a: &Args<'_>) -> Result<isize> {
    Ok(a.int_or(1)?.unwrap_or(0) as isize)
}

fn samples() -> Vec<Vec<ArgValue>> {
    let cases: [(&[usize], i64); 9] = [
        (&[3, 3], 0),
        (&[3, 4], 1),
        (&[4, 2], -2),
        (&[1, 1], 0),
        (&[2, 3, 3], -1),
        (&[2, 0, 3], 0),
        (&[3, 3], 9),
        (&[3, 3], -9),
        (&[2, 2], i64::MAX >> 1),
    ];
    let with = |dtype| cases.map(|(shape, k)| vec![ramp(dtype, shape, 1.0, 5.0), ArgValue::Int(k)]);
    dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
}

fn bad() -> Vec<InvalidArgs> {
    let bad = |shape: &[usize], message| {
        InvalidArgs::new(vec![ramp(DType::F32, shape, 0.0, 1.0)], ErrorKind::Shape, message)
    };
    vec![bad(&[], "expected rank >= 2, got rank 0"), bad(&[3], "expected rank >= 2, got rank 1")]
}

const PARAMS: &[Param] = &[Param::tensor("x"), Param::optional("k", ParamKind::Int, "0")];

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "tril",
        PARAMS,
        |a| one(tril(a.tensor(0)?, k(a)?)),
        Reference::Numpy("np.tril(x, max(min(k, 100), -100))"),
        Samples::List(samples),
    )
    .refuses(bad),
    OpEntry::new(
        "triu",
        PARAMS,
        |a| one(triu(a.tensor(0)?, k(a)?)),
        Reference::Numpy("np.triu(x, max(min(k, 100), -100))"),
        Samples::List(samples),
    )
    .refuses(bad),
];
