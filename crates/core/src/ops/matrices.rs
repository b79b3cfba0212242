//! Batched matrix ops: parts shared by solvers and factorizations.

use crate::Outputs;
use crate::error::{Error, ErrorKind, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{add, complex, mul};
use crate::ops::creation::tril;
use crate::ops::sample::{filled, ramp};
use crate::ops::shape::{concat, expand_dims, split as split_axis, swapaxes};
use crate::ops::unary::{cast, imag, neg, real};
use crate::ops::{ArgValue, InvalidArgs};
use crate::promote::float_of;
use crate::shape::{Shape, Strides};
use crate::tensor::Tensor;
use taut_kernels::linalg::{self as kernels, LinalgError, SvdVectors};
use taut_kernels::{Arg, DType, View, ViewMut};
use taut_memory::Location;

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

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        check_dtype(*dtype)?;
        let (batch, m, n) = split(shape)?;
        if !matches!(self.function, MatrixFunction::Qr { .. } | MatrixFunction::Svd { .. }) {
            check_square(m, n)?;
        }
        let of = |dims: &[usize]| Spec::new(*dtype, batch.iter().chain(dims).copied().collect::<Shape>());
        let k = m.min(n);
        Ok(match self.function {
            MatrixFunction::Inverse | MatrixFunction::Cholesky => of(&[n, n]).into(),
            MatrixFunction::Determinant => of(&[]).into(),
            MatrixFunction::SignLog => Specs::from_iter([of(&[]), of(&[])]),
            MatrixFunction::Qr { full: true } => Specs::from_iter([of(&[m, m]), of(&[m, n])]),
            MatrixFunction::Qr { full: false } => Specs::from_iter([of(&[m, k]), of(&[k, n])]),
            MatrixFunction::Svd { vectors: SvdVectors::None } => of(&[k]).into(),
            MatrixFunction::Svd { vectors: SvdVectors::Thin } => {
                Specs::from_iter([of(&[m, k]), of(&[k]), of(&[k, n])])
            }
            MatrixFunction::Svd { vectors: SvdVectors::Full } => {
                Specs::from_iter([of(&[m, m]), of(&[k]), of(&[n, n])])
            }
            MatrixFunction::Eigen { vectors: false } => of(&[n]).into(),
            MatrixFunction::Eigen { vectors: true } => Specs::from_iter([of(&[n]), of(&[n, n])]),
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
        };
        let bytes = inputs[0].bytes() + outputs.iter().map(Spec::bytes).sum::<usize>();
        Cost { flops: factor * per_element * inputs[0].shape.len() as u64, bytes: bytes as u64 }
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
    if matches!(dtype, DType::F32 | DType::F64) {
        return Ok(());
    }
    Err(Error::dtype(format!("{dtype} is not supported")).help("cast to float32 or float64"))
}

/// The error of a matrix whose values admit no result: singular, not positive definite, not finite.
#[cold]
pub(super) fn numeric(error: LinalgError) -> Error {
    Error::new(ErrorKind::Numeric, error.to_string())
}

/// Converts integers and bools to `float32`.
#[track_caller]
pub(super) fn wide(a: Tensor) -> Result<Tensor> {
    let dtype = float_of(a.dtype());
    cast(a, dtype)
}

/// Rejects what is not a batch of square matrices.
#[track_caller]
pub(super) fn check_squares(op: &'static str, a: &Tensor) -> Result<()> {
    let at = Location::caller();
    let outcome = split(a.shape()).and_then(|(_, m, n)| check_square(m, n));
    outcome.map_err(|error| error.in_op(op, [a.spec()]).at(at))
}

/// The real matrices `[[re, -im], [im, re]]`, which multiply stacked real and imaginary parts as the complex matrices multiply numbers.
#[track_caller]
pub(super) fn on_parts(a: &Tensor, dtype: DType) -> Result<Tensor> {
    let (re, im) = (cast(real(a)?, dtype)?, cast(imag(a)?, dtype)?);
    let top = concat(&[re.clone(), neg(&im)?], -1)?;
    concat(&[top, concat(&[im, re], -1)?], -2)
}

/// The complex numbers whose real parts are the first half of an axis, and whose imaginary parts are the second.
#[track_caller]
pub(super) fn joined(parts: Tensor, axis: isize) -> Result<Tensor> {
    let mut halves = split_axis(parts, 2, axis)?;
    let im = halves.swap_remove(1);
    complex(halves.swap_remove(0), im)
}

/// Transposes the last two axes.
#[track_caller]
pub(super) fn adjoint(x: impl Into<Tensor>) -> Result<Tensor> {
    swapaxes(x, -1, -2)
}

/// Appends two axes of size one: a scalar per matrix becomes a batch of 1x1 matrices.
#[track_caller]
pub(super) fn per_matrix(x: impl Into<Tensor>) -> Result<Tensor> {
    expand_dims(expand_dims(x, -1)?, -1)
}

/// The lower triangle with the diagonal halved. If only the lower triangle of a symmetric matrix is read and `p` is the
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

/// A batch of symmetric positive definite matrices.
pub(super) fn definite(dtype: DType, shape: &[usize]) -> ArgValue {
    let n = shape[shape.len() - 1];
    ArgValue::Tensor(filled(dtype, shape, |i| {
        let (matrix, row, column) = (i / (n * n), i / n % n, i % n);
        let fraction = (((matrix * 31 + row.min(column) * 7 + row.max(column)) as f64 + 0.5)
            * 0.618033988749895)
            .fract();
        fraction + if row == column { n as f64 } else { 0.0 }
    }))
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
