//! Diagonal matrices, and diagonals of matrices.

use crate::error::{Error, ErrorKind, Result};
use crate::op::{Kernel, Op, Spec, Specs, ViewOp, VmapCall};
use crate::ops::creation::zeros;
use crate::ops::sample::{dtypes, ramp};
use crate::ops::shape::{PadMode, pad, slice};
use crate::ops::{ArgValue, Args, InvalidArgs, OpEntry, Param, ParamKind, Reference, Samples, one};
use crate::{
    DType, Differentiable, Ellipsis, Gradients, Layout, Outputs, Saves, Set, Tensor, VjpCall, apply, s,
};
use taut_kernels::{Arg, ViewMut, index};

#[derive(Clone, Debug)]
struct Diag {
    k: isize,
}

impl Op for Diag {
    fn name(&self) -> &'static str {
        "diag"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        let Some(&last) = shape.last() else {
            return Err(Error::shape("expected rank >= 1, got a scalar").help("add an axis with expand_dims"));
        };
        let side = last.checked_add(self.k.unsigned_abs()).ok_or_else(|| {
            Error::shape(format!("the size of a matrix with diagonal k={} overflows", self.k))
        })?;
        let rank = shape.rank();
        let shape = shape.clone().with(rank - 1, side).with_inserted(rank, side);
        Ok(Spec { dtype: *dtype, shape }.into())
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], _scratch: &mut [u8]) -> Result<()> {
        index::diagonal(inputs[0].view(), self.k, outputs[0].reborrow());
        Ok(())
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(self)
    }

    fn attributes(&self) -> String {
        format!("k={}", self.k)
    }
}

impl Differentiable for Diag {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|_, g| diag_part(g, self.k))
    }
}

/// Square matrices with the last axis of `diagonal` on diagonal `k` and zeros elsewhere. `k` is 0 for the main diagonal,
/// positive above it, negative below.
///
/// ```
/// use taut_core::{Tensor, ops::creation::{diag, diag_part}};
/// let matrix = diag(Tensor::from_slice(&[1, 2], [2])?, 0)?;
/// assert_eq!(matrix.to_vec::<i32>()?, [1, 0, 0, 2]);
/// assert_eq!(diag_part(&matrix, 0)?.to_vec::<i32>()?, [1, 2]);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn diag(diagonal: impl Into<Tensor>, k: isize) -> Result<Tensor> {
    apply(&Diag { k }, [diagonal.into()])
}

#[derive(Clone, Debug)]
struct DiagPart {
    k: isize,
}

impl Op for DiagPart {
    fn name(&self) -> &'static str {
        "diag_part"
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        if shape.rank() < 2 {
            return Err(Error::shape(format!("expected rank >= 2, got rank {}", shape.rank())));
        }
        Ok(Spec { dtype: *dtype, shape: Layout::contiguous(shape.clone()).diagonal(self.k).shape }.into())
    }

    fn kernel(&self) -> Kernel<'_> {
        Kernel::View(self)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(self)
    }

    fn attributes(&self) -> String {
        format!("k={}", self.k)
    }
}

impl ViewOp for DiagPart {
    fn view(&self, _dtype: DType, input: &Layout) -> Option<Layout> {
        Some(input.diagonal(self.k))
    }
}

impl Differentiable for DiagPart {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(Saves::NOTHING)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        call.first(|call, g| {
            let shape = call.input_shape(0);
            if g.is_empty() {
                return zeros(shape.clone(), g.dtype());
            }
            // The square matrix with this diagonal, sliced and padded to the input's shape.
            let square = diag(g, self.k)?;
            let (side, rank) = (square.shape()[shape.rank() - 1], shape.rank());
            let mut margins = vec![[0, 0]; rank];
            let [rows, columns] = [rank - 2, rank - 1].map(|axis| {
                margins[axis][1] = shape[axis].saturating_sub(side);
                shape[axis].min(side) as isize
            });
            pad(slice(square, &s![Ellipsis, ..rows, ..columns])?, &margins, PadMode::Constant(0.into()))
        })
    }
}

/// Diagonal `k` of the matrices in the last two axes, as a view. `k` is 0 for the main diagonal, positive above it,
/// negative below; a diagonal outside the matrix is empty.
#[track_caller]
pub fn diag_part(input: impl Into<Tensor>, k: isize) -> Result<Tensor> {
    apply(&DiagPart { k }, [input.into()])
}

fn k(a: &Args<'_>) -> Result<isize> {
    Ok(a.int_or(1)?.unwrap_or(0) as isize)
}

fn samples(cases: &[(&[usize], i64)]) -> Vec<Vec<ArgValue>> {
    let with =
        |dtype| cases.iter().map(move |(shape, k)| vec![ramp(dtype, shape, -5.0, 5.0), ArgValue::Int(*k)]);
    dtypes::EVERY.iter().flat_map(|&dtype| with(dtype)).collect()
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "diag",
        &[Param::tensor("diagonal"), Param::optional("k", ParamKind::Int, "0")],
        |a| one(diag(a.tensor(0)?, k(a)?)),
        Reference::Numpy(
            "np.array([np.diag(diagonal[i], k) for i in np.ndindex(diagonal.shape[:-1])], diagonal.dtype)\
             .reshape(diagonal.shape[:-1] + (diagonal.shape[-1] + abs(k),) * 2)",
        ),
        Samples::List(|| {
            samples(&[
                (&[3], 0),
                (&[1], 0),
                (&[0], 0),
                (&[0], 2),
                (&[2, 3], 1),
                (&[2, 1, 3], -2),
                (&[0, 3], 1),
            ])
        }),
    )
    .refuses(|| {
        let bad = |shape: &[usize], k, message| {
            InvalidArgs::new(
                vec![ramp(DType::F32, shape, 0.0, 1.0), ArgValue::Int(k)],
                ErrorKind::Shape,
                message,
            )
        };
        vec![
            bad(&[], 0, "expected rank >= 1, got a scalar"),
            bad(&[2], i64::MIN, "more elements than memory has addresses"),
            bad(&[2], 1 << 40, "more elements than memory has addresses"),
        ]
    }),
    OpEntry::new(
        "diag_part",
        &[Param::tensor("input"), Param::optional("k", ParamKind::Int, "0")],
        |a| one(diag_part(a.tensor(0)?, k(a)?)),
        Reference::Numpy("np.diagonal(input, max(min(k, 100), -100), -2, -1)"),
        Samples::List(|| {
            samples(&[
                (&[3, 3], 0),
                (&[2, 4], 1),
                (&[4, 2], -2),
                (&[1, 1], 0),
                (&[2, 3, 3], -1),
                (&[0, 3], 0),
                (&[2, 2], 5),
                (&[2, 2], i64::MIN),
                (&[2, 2], i64::MAX),
            ])
        }),
    )
    .refuses(|| {
        let bad = |shape: &[usize], message| {
            InvalidArgs::new(vec![ramp(DType::F32, shape, 0.0, 1.0)], ErrorKind::Shape, message)
        };
        vec![bad(&[], "expected rank >= 2, got rank 0"), bad(&[3], "expected rank >= 2, got rank 1")]
    }),
];
