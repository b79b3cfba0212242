//! Stacks of matrices: what solving and factoring share.

use crate::Outputs;
use crate::error::{Error, ErrorKind, Result};
use crate::gradient::{Differentiable, Gradients, Saves, Set, VjpCall};
use crate::op::{Cost, Op, Spec, Specs, VmapCall};
use crate::ops::binary::{add, mul};
use crate::ops::creation::tril;
use crate::ops::sample::{filled, ramp};
use crate::ops::shape::{expand_dims, swapaxes};
use crate::ops::unary::cast;
use crate::ops::{ArgValue, Bad};
use crate::shape::{Shape, Strides};
use crate::tensor::Tensor;
use taut_kernels::linalg::{self as kernels, LinalgError, SvdVectors};
use taut_kernels::{Arg, DType, View, ViewMut};

/// An op on every matrix of a stack. It is data: a new one needs no new type.
#[derive(Clone, Debug)]
pub(super) struct OnMatrix {
    pub(super) name: &'static str,
    pub(super) code: Code,
    pub(super) rule: Rule,
}

/// The gradient of an op on every matrix of a stack.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rule {
    /// What it keeps of a call.
    pub(super) saves: Saves,
    /// As [`Differentiable::vjp`].
    pub(super) gradient: fn(&mut VjpCall<'_>) -> Result<Gradients>,
}

/// What is computed of a matrix.
#[derive(Clone, Copy, Debug)]
pub(super) enum Code {
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
    /// Eigenvalues of a symmetric matrix.
    Eigen {
        vectors: bool,
    },
}

impl Op for OnMatrix {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, inputs: &[&Spec]) -> Result<Specs> {
        let Spec { dtype, shape } = inputs[0];
        check_dtype(*dtype)?;
        let (batch, m, n) = split(shape)?;
        if !matches!(self.code, Code::Qr { .. } | Code::Svd { .. }) {
            check_square(m, n)?;
        }
        let of = |dims: &[usize]| Spec::new(*dtype, batch.iter().chain(dims).copied().collect::<Shape>());
        let k = m.min(n);
        Ok(match self.code {
            Code::Inverse | Code::Cholesky => of(&[n, n]).into(),
            Code::Determinant => of(&[]).into(),
            Code::SignLog => Specs::from_iter([of(&[]), of(&[])]),
            Code::Qr { full: true } => Specs::from_iter([of(&[m, m]), of(&[m, n])]),
            Code::Qr { full: false } => Specs::from_iter([of(&[m, k]), of(&[k, n])]),
            Code::Svd { vectors: SvdVectors::None } => of(&[k]).into(),
            Code::Svd { vectors: SvdVectors::Thin } => Specs::from_iter([of(&[m, k]), of(&[k]), of(&[k, n])]),
            Code::Svd { vectors: SvdVectors::Full } => Specs::from_iter([of(&[m, m]), of(&[k]), of(&[n, n])]),
            Code::Eigen { vectors: false } => of(&[n]).into(),
            Code::Eigen { vectors: true } => Specs::from_iter([of(&[n]), of(&[n, n])]),
        })
    }

    fn scratch(&self, inputs: &[&Spec]) -> usize {
        let dtype = inputs[0].dtype;
        let [.., m, n] = inputs[0].shape[..] else { return 0 };
        match self.code {
            Code::Inverse => kernels::inv_scratch(dtype, n),
            Code::Determinant => kernels::det_scratch(dtype, n),
            Code::SignLog => kernels::slogdet_scratch(dtype, n),
            Code::Cholesky => kernels::cholesky_scratch(dtype, n),
            Code::Qr { full } => kernels::qr_scratch(dtype, m, n, full),
            Code::Svd { vectors } => kernels::svd_scratch(dtype, m, n, vectors),
            Code::Eigen { vectors } => kernels::eigh_scratch(dtype, n, vectors),
        }
    }

    fn run(&self, inputs: &[Arg<'_>], outputs: &mut [ViewMut<'_>], scratch: &mut [u8]) -> Result<()> {
        let a = inputs[0].view();
        let outcome = match (self.code, outputs) {
            (Code::Inverse, [out]) => kernels::inv(a, out.reborrow(), scratch),
            (Code::Determinant, [out]) => {
                kernels::det(a, out.reborrow(), scratch);
                Ok(())
            }
            (Code::SignLog, [sign, log]) => {
                kernels::slogdet(a, sign.reborrow(), log.reborrow(), scratch);
                Ok(())
            }
            (Code::Cholesky, [out]) => kernels::cholesky(a, out.reborrow(), scratch),
            (Code::Qr { full }, [q, r]) => {
                kernels::qr(a, full, q.reborrow(), r.reborrow(), scratch);
                Ok(())
            }
            (Code::Svd { .. }, [s]) => kernels::svd(a, s.reborrow(), None, scratch),
            (Code::Svd { .. }, [u, s, vh]) => {
                kernels::svd(a, s.reborrow(), Some((u.reborrow(), vh.reborrow())), scratch)
            }
            (Code::Eigen { .. }, [values]) => kernels::eigh(a, values.reborrow(), None, scratch),
            (Code::Eigen { .. }, [values, vectors]) => {
                kernels::eigh(a, values.reborrow(), Some(vectors.reborrow()), scratch)
            }
            _ => return Err(Error::new(ErrorKind::Graph, "another number of outputs than inferred")),
        };
        outcome.map_err(numeric)
    }

    fn gradient(&self) -> Option<&dyn Differentiable> {
        Some(self)
    }

    fn vmap(&self, call: &VmapCall<'_>) -> Result<Option<Outputs>> {
        call.plain(self)
    }

    fn cost(&self, inputs: &[&Spec], outputs: &[Spec]) -> Cost {
        let per_element = inputs[0].shape.last().copied().unwrap_or(0) as u64;
        // The constants of the textbook algorithms.
        let factor = match self.code {
            Code::Inverse | Code::Qr { .. } => 2,
            Code::Determinant | Code::SignLog | Code::Cholesky => 1,
            Code::Svd { .. } | Code::Eigen { .. } => 9,
        };
        let bytes = inputs[0].bytes() + outputs.iter().map(Spec::bytes).sum::<usize>();
        Cost { flops: factor * per_element * inputs[0].shape.len() as u64, bytes: bytes as u64 }
    }

    fn attributes(&self) -> String {
        match self.code {
            Code::Qr { full: true } => "full".into(),
            Code::Svd { vectors } => format!("vectors={vectors:?}"),
            _ => String::new(),
        }
    }
}

impl Differentiable for OnMatrix {
    fn saves(&self, _wanted: Set) -> Option<Saves> {
        Some(self.rule.saves)
    }

    fn vjp(&self, call: &mut VjpCall<'_>) -> Result<Gradients> {
        (self.rule.gradient)(call)
    }
}

/// The stack's shape, and rows and columns of its matrices.
pub(super) fn split(shape: &[usize]) -> Result<(&[usize], usize, usize)> {
    match shape {
        [batch @ .., m, n] => Ok((batch, *m, *n)),
        _ => Err(Error::shape(format!("a tensor of rank {} is not a matrix", shape.len()))
            .help("the last two axes are rows and columns")),
    }
}

pub(super) fn check_square(m: usize, n: usize) -> Result<()> {
    if m == n { Ok(()) } else { Err(Error::shape(format!("a {m}x{n} matrix is not square"))) }
}

pub(super) fn check_dtype(dtype: DType) -> Result<()> {
    if matches!(dtype, DType::F32 | DType::F64) {
        return Ok(());
    }
    Err(Error::dtype(format!("{dtype} is not supported")).help("cast to float32 or float64"))
}

/// A matrix whose data has no answer.
#[cold]
pub(super) fn numeric(error: LinalgError) -> Error {
    Error::new(ErrorKind::Numeric, error.to_string())
}

/// Matrices of integers as `float64`, as NumPy takes them.
#[track_caller]
pub(super) fn wide(a: Tensor) -> Result<Tensor> {
    if a.dtype().is_float() { Ok(a) } else { cast(a, DType::F64) }
}

/// Every matrix transposed.
#[track_caller]
pub(super) fn adjoint(x: impl Into<Tensor>) -> Result<Tensor> {
    swapaxes(x, -1, -2)
}

/// A number per matrix, as a stack of 1x1 matrices.
#[track_caller]
pub(super) fn per_matrix(x: impl Into<Tensor>) -> Result<Tensor> {
    expand_dims(expand_dims(x, -1)?, -1)
}

/// The lower triangles with half the diagonal. Where only the lower triangle of a symmetric matrix is read, that of
/// `p + adjoint(p)` is the gradient if `p` is the one that takes every element for itself.
#[track_caller]
pub(super) fn half_lower(x: &Tensor) -> Result<Tensor> {
    mul(add(tril(x, 0)?, tril(x, -1)?)?, 0.5)
}

/// The layout that repeats a stack of matrices to the stack `batch`.
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

/// A stack of matrices far from singular: irregular numbers and a heavy diagonal.
pub(super) fn regular(dtype: DType, shape: &[usize]) -> ArgValue {
    let (rows, columns) = (shape[shape.len() - 2], shape[shape.len() - 1]);
    ArgValue::Tensor(filled(dtype, shape, |i| {
        let fraction = ((i as f64 + 0.5) * 0.618033988749895).fract();
        let (row, column) = (i / columns % rows, i % columns);
        fraction + if row == column { 2.0 } else { 0.0 }
    }))
}

/// A stack of symmetric positive definite matrices.
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

/// Shapes of square matrices to try.
pub(super) const SQUARE: &[&[usize]] = &[&[1, 1], &[3, 3], &[2, 4, 4], &[2, 0, 3, 3], &[0, 0], &[2, 1, 2, 2]];

/// What an op of one square matrix must refuse.
pub(super) fn bad_square() -> Vec<Bad> {
    let with = |dtype, shape: &[usize]| vec![ramp(dtype, shape, 0.5, 1.0)];
    vec![
        Bad::new(with(DType::F32, &[2, 3]), ErrorKind::Shape, "a 2x3 matrix is not square"),
        Bad::new(with(DType::F32, &[3]), ErrorKind::Shape, "a tensor of rank 1 is not a matrix"),
        Bad::new(with(DType::F16, &[2, 2]), ErrorKind::DType, "float16 is not supported"),
    ]
}
