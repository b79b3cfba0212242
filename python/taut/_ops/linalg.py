"""Matrix products, factorizations and linear systems."""

from __future__ import annotations

from math import comb as _comb, factorial as _factorial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, overload

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import as_ints, refuse
from .._native import Tensor, as_tensor
from ..control import while_loop as _while_loop
from .reduction import reduce_sum

if TYPE_CHECKING:
    from .._typing import DTypeLike, TensorLike


def check_matrix(name: str, x: TensorLike) -> Tensor:
    """Converts to a tensor of rank >= 2."""
    x = as_tensor(x)
    if x.ndim < 2:
        refuse(name, f"expected rank >= 2, got shape {x.shape}")
    return x


def matmul(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: DTypeLike = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiplies matrices; leading axes are batch axes.

    `output_type` is the element type of the product.
    """
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        refuse(
            "matmul",
            "at most one of transpose_a and adjoint_a, and of transpose_b and adjoint_b, may be set",
            ValueError,
        )
    if output_type is not None:
        # The operands are cast, not the product: products of small integers would overflow.
        a, b = raw.cast(a, output_type), raw.cast(b, output_type)
    a, b = (raw.conj(a) if adjoint_a else a), (raw.conj(b) if adjoint_b else b)
    return raw.matmul(a, b, transpose_a or adjoint_a, transpose_b or adjoint_b)


def matvec(
    a: TensorLike,
    b: TensorLike,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiplies matrices by vectors."""
    a = raw.conj(a) if adjoint_a else a
    return raw.squeeze(raw.matmul(a, raw.expand_dims(b, -1), transpose_a or adjoint_a), -1)


def einsum(equation: str, *inputs: Any, optimize: str | None = None, name: str | None = None) -> Tensor:
    """Contracts tensors by an index equation such as "ij,jk->ik". The cheapest order of contractions is used."""
    return raw.einsum(equation, list(inputs))


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """Contracts tensors over pairs of axes: the last `axes` of `a` with the first of `b`, or two lists of axes."""
    axes = axes.tolist() if isinstance(axes, (np.ndarray, _native.Array)) else axes
    if isinstance(axes, (int, np.integer)):
        return raw.tensordot(a, b, int(axes))
    first, second = (as_ints(part) for part in axes)
    return raw.tensordot(a, b, 0, first, second)


def matrix_transpose(a: TensorLike, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Transposes the last two axes, and conjugates the elements if `conjugate` is set."""
    turned = raw.swapaxes(check_matrix("matrix_transpose", a), -1, -2)
    return raw.conj(turned) if conjugate else turned


def adjoint(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Transposes the last two axes and conjugates the elements."""
    return raw.conj(raw.swapaxes(check_matrix("adjoint", matrix), -1, -2))


_adjoint = adjoint


def trace(x: TensorLike, name: str | None = None) -> Tensor:
    """Computes the trace of each matrix."""
    return reduce_sum(raw.diag_part(x), -1)


class QR(NamedTuple):
    """Factors of a QR decomposition, `a = q @ r`."""

    q: Tensor
    r: Tensor


def qr(input: TensorLike, full_matrices: bool = False, name: str | None = None) -> QR:
    """Computes the QR decomposition: orthonormal columns `q` and an upper triangular `r`."""
    return QR(*raw.qr(input, full_matrices))


@overload
def svd(
    tensor: TensorLike, full_matrices: bool = False, compute_uv: Literal[True] = True, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor]: ...
@overload
def svd(
    tensor: TensorLike, full_matrices: bool = False, *, compute_uv: Literal[False], name: str | None = None
) -> Tensor: ...
def svd(tensor: TensorLike, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Computes the singular value decomposition `a = u @ diag(s) @ adjoint(v)`; real singular values in descending order."""
    if not compute_uv:
        return raw.svdvals(tensor)
    u, s, vh = raw.svd(tensor, full_matrices)
    return s, u, _adjoint(vh)


def eigh(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Computes eigenvalues, in ascending order, and eigenvectors (columns) of symmetric (Hermitian) matrices.

    Both have the type of the matrix; the imaginary parts of the eigenvalues are zero.
    """
    values, vectors = raw.eigh(tensor)
    return raw.cast(values, vectors.dtype), vectors


def eigvalsh(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Computes the eigenvalues of symmetric (Hermitian) matrices, in ascending order and in the type of the matrix."""
    values, given = raw.eigvalsh(tensor), as_tensor(tensor).dtype
    return raw.cast(values, given) if given.is_complex else values


def eig(tensor: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Computes eigenvalues, in no particular order, and eigenvectors (columns) of general matrices. They are complex."""
    values, vectors = raw.eig(tensor)
    return values, vectors


def eigvals(tensor: TensorLike, name: str | None = None) -> Tensor:
    """Computes the eigenvalues of general matrices, in no particular order. They are complex."""
    return raw.eigvals(tensor)


class SlogdetResult(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: Tensor
    log_abs_determinant: Tensor


def slogdet(input: TensorLike, name: str | None = None) -> SlogdetResult:
    """Computes the sign and the logarithm of the absolute value of each determinant, both in the type of the matrix.

    The sign of a complex determinant is the number of absolute value 1 with its phase.
    """
    sign, logarithm = raw.slogdet(input)
    return SlogdetResult(sign, raw.cast(logarithm, sign.dtype))


def logdet(matrix: TensorLike, name: str | None = None) -> Tensor:
    """Computes the logarithm of the determinant of positive definite matrices."""
    return 2.0 * reduce_sum(raw.log(raw.real(raw.diag_part(cholesky(matrix)))), -1)


def inv(input: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Computes the inverse of each matrix, or of its adjoint."""
    return raw.inv(_adjoint(input) if adjoint else input)


def solve(matrix: TensorLike, rhs: TensorLike, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solves `matrix @ x = rhs`, or the system of the adjoint matrix."""
    return raw.solve(_adjoint(matrix) if adjoint else matrix, check_matrix("solve", rhs))


def triangular_solve(
    matrix: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solves `matrix @ x = rhs` for lower or upper triangular matrices; the other triangle is not read."""
    return raw.triangular_solve(matrix, check_matrix("triangular_solve", rhs), lower, adjoint)


def cholesky(input: TensorLike, name: str | None = None) -> Tensor:
    """Computes the Cholesky factor of symmetric (Hermitian) positive definite matrices, of which it reads the lower triangle.

    The gradient is symmetric, as TensorFlow's: half of it is that of the upper triangle.
    """
    x = check_matrix("cholesky", input)
    if x.shape[-2] != x.shape[-1]:
        return raw.cholesky(x)  # refuses it
    mean = 0.5 * (x + adjoint(x))
    # The value is x to the last bit; the gradient goes through the mean of both triangles.
    return raw.cholesky(raw.stop_gradient(x) + (mean - raw.stop_gradient(mean)))


def cholesky_solve(chol: TensorLike, rhs: TensorLike, name: str | None = None) -> Tensor:
    """Solves `a @ x = rhs` given the Cholesky factor of `a`."""
    return raw.triangular_solve(chol, raw.triangular_solve(chol, check_matrix("cholesky_solve", rhs)), True, True)


def lstsq(
    matrix: TensorLike, rhs: TensorLike, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> Tensor:
    """Solves the least-squares problem `min |matrix @ x - rhs|^2 + l2_regularizer * |x|^2`.

    Without a regularizer the solution is computed by singular values, and is the one of minimal norm if there are
    several.
    """
    matrix, rhs = check_matrix("lstsq", matrix), check_matrix("lstsq", rhs)
    if float(l2_regularizer) == 0.0:
        return raw.lstsq(matrix, rhs)[0]
    columns = matrix.shape[-1]
    conjugate = raw.conj(matrix)
    gram = raw.matmul(conjugate, matrix, True) + l2_regularizer * raw.eye(columns, None, [], matrix.dtype)
    return cholesky_solve(raw.cholesky(gram), raw.matmul(conjugate, rhs, True))


def matrix_rank(a: TensorLike, tol: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Computes the rank: the number of singular values above `tol`.

    The default is the larger dimension times the type's machine epsilon times the largest singular value.
    """
    a = check_matrix("matrix_rank", a)
    values = raw.svdvals(a)
    if tol is None:
        tol = raw.max(values, -1, True) * (max(a.shape[-2:]) * _precision(values.dtype))
    elif isinstance(tol, _native.Array) and tol.ndim:
        tol = raw.expand_dims(tol, -1)
    return reduce_sum(raw.cast(values > tol, dtypes.int32), -1)


def _precision(dtype: Any) -> float:
    return float(dtypes.info(dtype).eps)


def pinv(a: TensorLike, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> Tensor:
    """Computes the Moore-Penrose pseudo-inverse. Singular values up to `rcond` times the largest are taken as zero."""
    a = check_matrix("pinv", a)
    if not (a.dtype.is_floating or a.dtype.is_complex):
        refuse("pinv", f"expected a matrix of floats or complex numbers, got {a.dtype.name}", TypeError)
    u, s, vh = raw.svd(a)
    if rcond is None:
        rcond = 10.0 * max(a.shape[-2:]) * _precision(s.dtype)
    elif np.ndim(rcond):
        rcond = raw.expand_dims(as_tensor(rcond, s.dtype), -1)
    large = s > rcond * raw.max(s, -1, True)
    # Infinity in place of the small singular values: their reciprocals, and the gradients, are zero.
    inverse = 1.0 / raw.where(large, s, raw.cast(np.inf, s.dtype))
    return raw.matmul(_adjoint(vh) * raw.expand_dims(inverse, -2), raw.conj(u), False, True)


def cross(a: TensorLike, b: TensorLike, name: str | None = None) -> Tensor:
    """Computes the cross product of vectors of three elements along the last axis."""
    a, b = as_tensor(a), as_tensor(b)
    for one in (a, b):
        if not one.ndim or one.shape[-1] != 3:
            refuse("cross", f"the last axis must have size 3, got shape {one.shape}")
    if a.shape != b.shape:
        refuse("cross", f"both operands must have one shape, got {a.shape} and {b.shape}")
    return raw.roll(a, -1, -1) * raw.roll(b, -2, -1) - raw.roll(a, -2, -1) * raw.roll(b, -1, -1)


def logm(input: TensorLike, name: str | None = None) -> Tensor:
    """Computes the principal logarithm of square matrices, which is complex, also that of a real matrix.

    A singular matrix is an error.
    """
    return raw.logm(input)


def expm(input: TensorLike, name: str | None = None) -> Tensor:
    """Computes the matrix exponential by scaling and squaring with a Padé approximant of degree 13."""
    x = check_matrix("expm", input)
    if x.shape[-1] != x.shape[-2]:
        refuse("expm", f"expected square matrices, got shape {x.shape}")
    if not x.size:
        return x
    # The number of halvings until the 1-norm is below 4.25. A NaN norm gives none.
    norm = raw.max(reduce_sum(raw.abs(x), -2)) / 4.25
    halvings = raw.cast(
        raw.clip_by_value(raw.ceil(raw.log(raw.maximum(norm, 1.0)) / float(np.log(2.0))), 0.0, 64.0), dtypes.int32
    )
    x = x / raw.cast(2.0, x.dtype) ** raw.cast(halvings, x.dtype)
    degree = 13
    # The coefficients of the approximant's numerator, scaled to integers.
    terms = (_comb(degree, i) * _factorial(2 * degree - i) // _factorial(degree) for i in range(degree + 1))
    b = [float(term) for term in terms]
    one = raw.eye(x.shape[-1], None, [], x.dtype)
    x2 = raw.matmul(x, x)
    x4 = raw.matmul(x2, x2)
    x6 = raw.matmul(x4, x2)
    odd = raw.matmul(x6, b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one
    odd = raw.matmul(x, odd)
    even = raw.matmul(x6, b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    made = raw.solve(even - odd, even + odd)
    if halvings.is_symbolic:
        return _while_loop(lambda i, _: i < halvings, lambda i, m: (i + 1, raw.matmul(m, m)), (0, made))[1]
    for _ in range(int(halvings)):
        made = raw.matmul(made, made)
    return made
