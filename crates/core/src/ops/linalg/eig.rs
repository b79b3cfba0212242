//! Eigenvalues and eigenvectors of general matrices.

use crate::error::{ErrorKind, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{add, div, div_no_nan, mul, sub};
use crate::ops::contract::matmul;
use crate::ops::creation::{diag, diag_part, zeros_like};
use crate::ops::index::take_along_axis;
use crate::ops::linalg::solve;
use crate::ops::matrices::{adjoint, check_square, numeric, split};
use crate::ops::reduce::argmax;
use crate::ops::sample::{of, ramp};
use crate::ops::shape::expand_dims;
use crate::ops::unary::{abs, cast, conj, real};
use crate::ops::{ArgValue, InvalidArgs, OpEntry, Param, Reference, Samples, one};
use crate::promote::float_of;
use crate::{DType, Error, Outputs, Shape, Tensor, apply, apply_many};
use taut_kernels::linalg as kernels;
use taut_kernels::{Arg, ViewMut};

#[derive(Clone, Debug)]
struct Eig {
    vectors: bool,
}

impl Op for Eig {
    fn name(&self) -> &'static str {
        if self.vectors { "eig" } else { "eigvals" }
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        if *dtype != DType::C128 {
            return Err(Error::dtype(format!("{dtype} is not supported")).help("cast to complex128"));
        }
        let (batch, m, n) = split(shape)?;
        check_square(m, n)?;
        let values = Spec::new(*dtype, batch.iter().copied().chain([n]).collect::<Shape>());
        Ok(if self.vectors { Specs::from_iter([values, inputs[0].clone()]) } else { values.into() })
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        inputs[0].shape.last().map_or(0, |&n| kernels::eig_scratch(n, self.vectors))
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let (values, rest) = match outputs {
            [values, rest @ ..] => (values.reborrow(), rest),
            [] => {
                return Err(Error::new(ErrorKind::Graph, "got no outputs, which is not the inferred number"));
            }
        };
        kernels::eig(inputs[0].view(), values, rest.first_mut().map(ViewMut::reborrow), scratch)
            .map_err(numeric)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(self)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let n = inputs[0].shape.last().copied().unwrap_or(0) as u64;
        Cost { flops: 25 * n * inputs[0].shape.len() as u64, bytes: Cost::traffic(inputs, outputs) }
    }

    fn makes_long_calls(&self) -> bool {
        true
    }
}

impl Differentiable for Eig {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        // The gradient of the values needs the vectors, which are computed then.
        Some(if self.vectors { Saves::outputs([0, 1]) } else { Saves::INPUT })
    }

    /// The gradient for vectors of length 1 whose phases do not matter.
    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        let (by_values, by_vectors) = (call.take_gradient(0), call.take_gradient(1));
        let mut gradients = Gradients::new();
        if !call.wants(0) || by_values.is_none() && by_vectors.is_none() {
            return Ok(gradients);
        }
        let (values, vectors) = if self.vectors {
            (call.output(0)?.clone(), call.output(1)?.clone())
        } else {
            decomposed(call.input(0)?.clone())?
        };
        let turned = adjoint(&vectors)?;
        let mut inner = match by_values {
            Some(g) => diag(g, 0)?,
            None => zeros_like(&vectors, None)?,
        };
        if let Some(g) = by_vectors {
            let gaps = sub(expand_dims(&values, -2)?, expand_dims(&values, -1)?)?;
            let inverse = conj(div_no_nan(1.0, gaps)?)?;
            let along = matmul(&turned, g)?;
            let lengths = cast(diag(real(diag_part(&along, 0)?)?, 0)?, DType::C128)?;
            let across = sub(along, matmul(matmul(&turned, &vectors)?, lengths)?)?;
            inner = add(inner, mul(inverse, across)?)?;
        }
        gradients.push(Some(solve(&turned, matmul(inner, &turned)?)?.into()));
        Ok(gradients)
    }
}

/// Values and vectors of `complex128` matrices; the phases of vectors are arbitrary.
#[track_caller]
fn decomposed(a: Tensor) -> Result<(Tensor, Tensor)> {
    let mut outputs = apply_many(&Eig { vectors: true }, vec![a])?;
    let vectors = outputs.swap_remove(1);
    Ok((outputs.swap_remove(0), vectors))
}

/// The results in the precision of the input.
#[track_caller]
fn narrowed(result: Tensor, input: DType) -> Result<Tensor> {
    cast(result, float_of(input).complex())
}

/// The eigenvalues of general matrices, in no particular order, and eigenvectors as the columns of a matrix. They are complex; a
/// vector has length 1 and a positive real number as its largest element.
///
/// ```
/// use taut_core::{Complex, Tensor, ops::linalg::eig};
/// let (values, _) = eig(Tensor::new([[0.0f64, 1.0], [-1.0, 0.0]])?)?;
/// let values = values.to_vec::<Complex<f64>>()?;
/// assert!((values[0].im.abs() - 1.0).abs() < 1e-12);
/// # Ok::<(), taut_core::Error>(())
/// ```
#[track_caller]
pub fn eig(a: impl Into<Tensor>) -> Result<(Tensor, Tensor)> {
    let a = a.into();
    let dtype = a.dtype();
    let (values, vectors) = decomposed(cast(a, DType::C128)?)?;
    if vectors.is_empty() {
        return Ok((narrowed(values, dtype)?, narrowed(vectors, dtype)?));
    }
    // The phase of a vector is that of its largest element.
    let largest = expand_dims(argmax(abs(&vectors)?, -2)?, -2)?;
    let pivot = take_along_axis(&vectors, largest, -2)?;
    let phase = div(conj(&pivot)?, abs(&pivot)?)?;
    Ok((narrowed(values, dtype)?, narrowed(mul(vectors, phase)?, dtype)?))
}

/// The eigenvalues of general matrices, in no particular order. They are complex.
#[track_caller]
pub fn eigvals(a: impl Into<Tensor>) -> Result<Tensor> {
    let a = a.into();
    let dtype = a.dtype();
    narrowed(apply(&Eig { vectors: false }, [cast(a, DType::C128)?])?, dtype)
}

fn samples() -> Vec<Vec<ArgValue>> {
    // Well-separated eigenvalues: equal ones have no definite vectors.
    let matrices: [(&[usize], &[f64]); 5] = [
        (&[1, 1], &[2.5]),
        (&[2, 2], &[0.5, 2.0, -1.5, 1.0]),
        (&[3, 3], &[4.0, 0.3, -0.2, 0.5, 1.5, 0.4, -0.3, 0.2, -2.0]),
        (&[2, 2, 2], &[1.0, 0.25, 0.5, 3.0, 0.0, 1.0, -1.0, 0.5]),
        (&[0, 0], &[]),
    ];
    let dtypes = [DType::F64, DType::C128, DType::F32, DType::C64];
    dtypes.iter().flat_map(|&dtype| matrices.map(|(shape, values)| vec![of(dtype, shape, values)])).collect()
}

fn invalid() -> Vec<InvalidArgs> {
    let with = |shape: &[usize]| vec![ramp(DType::F32, shape, 0.5, 1.0)];
    vec![
        InvalidArgs::new(with(&[2, 3]), ErrorKind::Shape, "expected square matrices, got 2x3"),
        InvalidArgs::new(with(&[3]), ErrorKind::Shape, "expected rank >= 2, got rank 1"),
        InvalidArgs::new(vec![of(DType::F64, &[1, 1], &[f64::NAN])], ErrorKind::Numeric, "did not converge"),
    ]
}

pub(crate) const ENTRIES: &[OpEntry] = &[
    OpEntry::new(
        "eig",
        &[Param::tensor("a")],
        |a| eig(a.tensor(0)?).map(|(values, vectors)| vec![values, vectors]),
        Reference::Property(
            "np.allclose(a @ out[1], out[1] * out[0][..., None, :], atol=1e-4 if a.dtype.itemsize < 8 or a.dtype == np.complex64 else 1e-10)",
        ),
        Samples::List(samples),
    )
    .refuses(invalid),
    OpEntry::new(
        "eigvals",
        &[Param::tensor("a")],
        |a| one(eigvals(a.tensor(0)?)),
        Reference::Property(
            "np.allclose(np.sort_complex(out.round(3)), np.sort_complex(np.linalg.eigvals(a).astype(out.dtype).round(3)), atol=2e-3) if a.size else out.size == 0",
        ),
        Samples::List(samples),
    )
    .refuses(invalid),
];
