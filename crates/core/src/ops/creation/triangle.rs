//! Triangles of matrices.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Op, Spec, Specs, VmapCall};
use crate::ops::sample::{dtypes, ramp};
use crate::ops::{ArgValue, Args, Bad, OpEntry, Param, ParamKind, Reference, Samples, one};
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

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let rank = inputs[0].shape.rank();
        if rank < 2 {
            return Err(Error::shape(format!("a matrix has 2 dimensions or more, not {rank}")));
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
        call.plain(self)
    }

    fn attributes(&self) -> String {
        format!("k={}", self.k)
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

/// The matrices in the last two axes with zeros above diagonal `k`; 0 is the main one, positive ones lie above it.
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

/// The matrices in the last two axes with zeros below diagonal `k`; 0 is the main one, positive ones lie above it.
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
    dtypes::ALL.iter().flat_map(|&dtype| with(dtype)).collect()
}

fn bad() -> Vec<Bad> {
    let bad = |shape: &[usize], message| {
        Bad::new(vec![ramp(DType::F32, shape, 0.0, 1.0)], ErrorKind::Shape, message)
    };
    vec![bad(&[], "2 dimensions or more, not 0"), bad(&[3], "2 dimensions or more, not 1")]
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
