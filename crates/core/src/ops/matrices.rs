//! Batched matrix ops: parts shared by solvers and factorizations.

use crate::error::{Error, ErrorKind, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{add, complex, mul, sub};
use crate::ops::contract::matmul_with;
use crate::ops::creation::{diag, diag_part, tril, zeros_like};
use crate::ops::sample::{filled, ramp};
use crate::ops::shape::{expand_dims, swapaxes};
use crate::ops::unary::{cast, conj, imag};
use crate::ops::{ArgValue, InvalidArgs};
use crate::promote::float_of;
use crate::shape::{Shape, Strides};
use crate::tensor::Tensor;
use crate::{Outputs, apply, apply_many};
use taut_kernels::linalg::{self as kernels, LinalgError, SvdVectors};
use taut_kernels::{Arg, DType, View, ViewMut};

/// An op on each matrix of a batch.
#[derive(Clone, Debug)]
pub(super) struct MatrixOp {
    pub(super) name: &'static str,
    pub(super) function: MatrixFunction,
    pub(super) gradient: MatrixGradient,
}

/// The gradient of a [`MatrixOp`].
#[derive(Clone, Copy, Debug)]
pub(super) struct MatrixGradient {
    /// The values it saves for backward.
    pub(super) saves: Saves,
    /// As [`Differentiable::vjp`].
    pub(super) vjp: fn(&mut VjpCall<'_>) -> Result<Gradients>,
}

/// The function of a matrix.
#[derive(Clone, Copy, Debug)]
pub(super) enum MatrixFunction {
    Inverse,
    Determinant,
    /// Sign and logarithm of the determinant.
    SignLog,
    Cholesky,
    /// The principal logarithm of a complex matrix.
    Logarithm,
    Qr {
        full: bool,
    },
    Svd {
        vectors: SvdVectors,
    },
    /// Eigenvalues of a symmetric matrix, and its eigenvectors with `vectors`.
    Eigen {
        vectors: bool,
    },
}

impl Op for MatrixOp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn accepts_complex(&self) -> bool {
        true
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        check_dtype(*dtype)?;
        if matches!(self.function, MatrixFunction::Logarithm) && *dtype != DType::C128 {
            return Err(Error::dtype(format!("{dtype} is not supported")).help("cast to complex128"));
        }
        let (batch, m, n) = split(shape)?;
        if !matches!(self.function, MatrixFunction::Qr { .. } | MatrixFunction::Svd { .. }) {
            check_square(m, n)?;
        }
        let typed =
            |dtype, dims: &[usize]| Spec::new(dtype, batch.iter().chain(dims).copied().collect::<Shape>());
        let of = |dims: &[usize]| typed(*dtype, dims);
        // Logarithms of absolute values, singular values and eigenvalues of Hermitian matrices are real.
        let real = |dims: &[usize]| typed(dtype.part(), dims);
        let k = m.min(n);
        Ok(match self.function {
            MatrixFunction::Inverse | MatrixFunction::Cholesky | MatrixFunction::Logarithm => {
                of(&[n, n]).into()
            }
            MatrixFunction::Determinant => of(&[]).into(),
            MatrixFunction::SignLog => Specs::from_iter([of(&[]), real(&[])]),
            MatrixFunction::Qr { full: true } => Specs::from_iter([of(&[m, m]), of(&[m, n])]),
            MatrixFunction::Qr { full: false } => Specs::from_iter([of(&[m, k]), of(&[k, n])]),
            MatrixFunction::Svd { vectors: SvdVectors::None } => real(&[k]).into(),
            MatrixFunction::Svd { vectors: SvdVectors::Thin } => {
                Specs::from_iter([of(&[m, k]), real(&[k]), of(&[k, n])])
            }
            MatrixFunction::Svd { vectors: SvdVectors::Full } => {
                Specs::from_iter([of(&[m, m]), real(&[k]), of(&[n, n])])
            }
            MatrixFunction::Eigen { vectors: false } => real(&[n]).into(),
            MatrixFunction::Eigen { vectors: true } => Specs::from_iter([real(&[n]), of(&[n, n])]),
        })
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        let dtype = inputs[0].dtype;
        let [.., m, n] = inputs[0].shape[..] else { return 0 };
        match self.function {
            MatrixFunction::Inverse => kernels::inv_scratch(dtype, n),
            MatrixFunction::Determinant => kernels::det_scratch(dtype, n),
            MatrixFunction::SignLog => kernels::slogdet_scratch(dtype, n),
            MatrixFunction::Cholesky => kernels::cholesky_scratch(dtype, n),
            MatrixFunction::Logarithm => kernels::logm_scratch(n),
            MatrixFunction::Qr { full } => kernels::qr_scratch(dtype, m, n, full),
            MatrixFunction::Svd { vectors } => kernels::svd_scratch(dtype, m, n, vectors),
            MatrixFunction::Eigen { vectors } => kernels::eigh_scratch(dtype, n, vectors),
        }
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let a = inputs[0].view();
        let outcome = match (self.function, outputs) {
            (MatrixFunction::Inverse, [out]) => kernels::inv(a, out.reborrow(), scratch),
            (MatrixFunction::Determinant, [out]) => {
                kernels::det(a, out.reborrow(), scratch);
                Ok(())
            }
            (MatrixFunction::SignLog, [sign, log]) => {
                kernels::slogdet(a, sign.reborrow(), log.reborrow(), scratch);
                Ok(())
            }
            (MatrixFunction::Cholesky, [out]) => kernels::cholesky(a, out.reborrow(), scratch),
            (MatrixFunction::Logarithm, [out]) => kernels::logm(a, out.reborrow(), scratch),
            (MatrixFunction::Qr { full }, [q, r]) => {
                kernels::qr(a, full, q.reborrow(), r.reborrow(), scratch);
                Ok(())
            }
            (MatrixFunction::Svd { .. }, [s]) => kernels::svd(a, s.reborrow(), None, scratch),
            (MatrixFunction::Svd { .. }, [u, s, vh]) => {
                kernels::svd(a, s.reborrow(), Some((u.reborrow(), vh.reborrow())), scratch)
            }
            (MatrixFunction::Eigen { .. }, [values]) => kernels::eigh(a, values.reborrow(), None, scratch),
            (MatrixFunction::Eigen { .. }, [values, vectors]) => {
                kernels::eigh(a, values.reborrow(), Some(vectors.reborrow()), scratch)
            }
            (_, outputs) => {
                let message = format!("got {} outputs, which is not the inferred number", outputs.len());
                return Err(Error::new(ErrorKind::Graph, message));
            }
        };
        outcome.map_err(numeric)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.apply_as_is(self)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let per_element = inputs[0].shape.last().copied().unwrap_or(0) as u64;
        // The leading constants of the standard algorithms.
        let factor = match self.function {
            MatrixFunction::Inverse | MatrixFunction::Qr { .. } => 2,
            MatrixFunction::Determinant | MatrixFunction::SignLog | MatrixFunction::Cholesky => 1,
            MatrixFunction::Svd { .. } | MatrixFunction::Eigen { .. } => 9,
            MatrixFunction::Logarithm => 35,
        };
        let bytes = inputs[0].bytes() + outputs.iter().map(Spec::bytes).sum::<usize>();
        Cost { flops: factor * per_element * inputs[0].shape.len() as u64, bytes: bytes as u64 }
    }

    fn makes_long_calls(&self) -> bool {
        true
    }

    fn attributes(&self) -> String {
        match self.function {
            MatrixFunction::Qr { full: true } => "full".into(),
            MatrixFunction::Svd { vectors } => format!("vectors={vectors:?}"),
            _ => String::new(),
        }
    }
}

impl Differentiable for MatrixOp {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(self.gradient.saves)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        (self.gradient.vjp)(call)
    }
}

/// The batch shape, rows and columns.
pub(super) fn split(shape: &[usize]) -> Result<(&[usize], usize, usize)> {
    match shape {
        [batch @ .., m, n] => Ok((batch, *m, *n)),
        _ => Err(Error::shape(format!("expected rank >= 2, got rank {}", shape.len()))
            .help("the last two axes are rows and columns")),
    }
}

pub(super) fn check_square(m: usize, n: usize) -> Result<()> {
    if m == n { Ok(()) } else { Err(Error::shape(format!("expected square matrices, got {m}x{n}"))) }
}

pub(super) fn check_dtype(dtype: DType) -> Result<()> {
    if matches!(dtype, DType::F32 | DType::F64 | DType::C128) {
        return Ok(());
    }
    Err(Error::dtype(format!("{dtype} is not supported")).help("cast to float32 or float64"))
}

/// The error of a matrix whose values admit no result: singular, not positive definite, not finite.
#[cold]
pub(super) fn numeric(error: LinalgError) -> Error {
    Error::new(ErrorKind::Numeric, error.to_string())
}

/// Converts integers and bools to `float32`, and `complex64` to `complex128`: complex matrices have kernels in one precision.
#[track_caller]
pub(super) fn wide(a: Tensor) -> Result<Tensor> {
    let dtype = match a.dtype() {
        DType::C64 => DType::C128,
        dtype => float_of(dtype),
    };
    cast(a, dtype)
}

/// A result in the precision of the matrix that was given: back from `complex128` if that was `complex64`.
#[track_caller]
pub(super) fn narrow(result: Tensor, given: DType) -> Result<Tensor> {
    match (given, result.dtype()) {
        (DType::C64, DType::C128) => cast(result, DType::C64),
        (DType::C64, DType::F64) => cast(result, DType::F32),
        _ => Ok(result),
    }
}

impl MatrixOp {
    /// The outputs for a batch of matrices of any type, in its precision.
    #[track_caller]
    pub(super) fn outputs(&self, a: Tensor) -> Result<Outputs> {
        let given = a.dtype();
        let mut outputs = apply_many(self, vec![wide(a)?])?;
        for output in &mut outputs {
            *output = narrow(output.clone(), given)?;
        }
        Ok(outputs)
    }

    /// As [`MatrixOp::outputs`], of an op with one output.
    #[track_caller]
    pub(super) fn output(&self, a: Tensor) -> Result<Tensor> {
        let given = a.dtype();
        narrow(apply(self, [wide(a)?])?, given)
    }
}

/// The conjugate of the transposed matrices.
#[track_caller]
pub(super) fn adjoint(x: impl Into<Tensor>) -> Result<Tensor> {
    conj(swapaxes(x, -1, -2)?)
}

/// `adjoint(a) @ b`.
#[track_caller]
pub(super) fn adjoint_times(a: impl Into<Tensor>, b: impl Into<Tensor>) -> Result<Tensor> {
    matmul_with(conj(a)?, b, true, false)
}

/// `a @ adjoint(b)`.
#[track_caller]
pub(super) fn times_adjoint(a: impl Into<Tensor>, b: impl Into<Tensor>) -> Result<Tensor> {
    matmul_with(a, conj(b)?, false, true)
}

/// Without the imaginary part of the diagonal, which a variation that keeps it real does not have.
#[track_caller]
pub(super) fn with_real_diagonal(x: Tensor) -> Result<Tensor> {
    if !x.dtype().is_complex() {
        return Ok(x);
    }
    let imaginary = diag(imag(diag_part(&x, 0)?)?, 0)?;
    sub(x, complex(zeros_like(&imaginary, None)?, imaginary)?)
}

/// Appends two axes of size one: a scalar per matrix becomes a batch of 1x1 matrices.
#[track_caller]
pub(super) fn per_matrix(x: impl Into<Tensor>) -> Result<Tensor> {
    expand_dims(expand_dims(x, -1)?, -1)
}

/// The lower triangle with the diagonal halved. If only the lower triangle of a symmetric (Hermitian) matrix is read and `p` is the
/// gradient with all elements taken as independent, the gradient is the lower triangle of `p + adjoint(p)`.
#[track_caller]
pub(super) fn half_lower(x: &Tensor) -> Result<Tensor> {
    mul(add(tril(x, 0)?, tril(x, -1)?)?, 0.5)
}

/// The layout that broadcasts a batch of matrices to the batch shape `batch`.
pub(super) fn repeated(a: &View<'_>, batch: &[usize]) -> (Shape, Strides) {
    let own = a.shape().len() - 2;
    let added = batch.len() - own;
    let stride = |i: usize| match i.checked_sub(added) {
        Some(i) if a.shape()[i] == batch[added + i] => a.strides()[i],
        _ => 0,
    };
    (
        batch.iter().chain(&a.shape()[own..]).copied().collect(),
        (0..batch.len()).map(stride).chain(a.strides()[own..].iter().copied()).collect(),
    )
}

/// A batch of well-conditioned matrices: irregular values and a dominant diagonal.
pub(super) fn regular(dtype: DType, shape: &[usize]) -> ArgValue {
    let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    ArgValue::Tensor(filled(dtype, shape, |i| {
        let fraction = ((i as f64 + 0.5) * 0.618033988749895).fract();
        let (row, column) = (i / columns % rows, i % columns);
        fraction + if row == column { 2.0 } else { 0.0 }
    }))
}

/// A batch of symmetric (Hermitian) positive definite matrices.
pub(super) fn definite(dtype: DType, shape: &[usize]) -> ArgValue {
    let n = shape[shape.len() - 1];
    let place = |i: usize| (i / (n * n), i / n % n, i % n);
    let fraction = |seed: usize| ((seed as f64 + 0.5) * 0.618033988749895).fract();
    let real = filled(dtype.part(), shape, |i| {
        let (matrix, row, column) = place(i);
        fraction(matrix * 31 + row.min(column) * 7 + row.max(column))
            + if row == column { n as f64 } else { 0.0 }
    });
    if !dtype.is_complex() {
        return ArgValue::Tensor(real);
    }
    let imaginary = filled(dtype.part(), shape, |i| {
        let (matrix, row, column) = place(i);
        let sign = f64::from(u8::from(row > column)) - f64::from(u8::from(row < column));
        0.5 * sign * fraction(matrix * 17 + row.min(column) * 5 + row.max(column))
    });
    ArgValue::Tensor(complex(real, imaginary).expect("samples are small"))
}

/// Batch shapes of square matrices for tests.
pub(super) const SQUARE: &[&[usize]] = &[&[1, 1], &[3, 3], &[2, 4, 4], &[2, 0, 3, 3], &[0, 0], &[2, 1, 2, 2]];

/// Arguments that an op of one square matrix must reject.
pub(super) fn invalid_square() -> Vec<InvalidArgs> {
    let with = |dtype, shape: &[usize]| vec![ramp(dtype, shape, 0.5, 1.0)];
    vec![
        InvalidArgs::new(with(DType::F32, &[2, 3]), ErrorKind::Shape, "expected square matrices, got 2x3"),
        InvalidArgs::new(with(DType::F32, &[3]), ErrorKind::Shape, "expected rank >= 2, got rank 1"),
        InvalidArgs::new(with(DType::F16, &[2, 2]), ErrorKind::DType, "float16 is not supported"),
    ]
}
