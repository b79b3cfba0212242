"""Linear algebra."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import refuse
from .._ops import linalg as _linalg, norm as _norms
from ._reductions import sum as _total

if TYPE_CHECKING:
    from .._typing import AxisLike, DTypeLike, TensorLike

Array = _native.Tensor


class Eigh(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QR(NamedTuple):
    """Factors of a QR decomposition, `x = Q @ R`."""

    Q: Array
    R: Array


class Slogdet(NamedTuple):
    """The sign of a determinant and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


class SVD(NamedTuple):
    """Factors of a singular value decomposition, `x = U @ diag(S) @ Vh`."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: TensorLike, /, *, upper: bool = False) -> Array:
    """Computes the Cholesky factor of positive definite matrices."""
    made = raw.cholesky(x)
    return _linalg.adjoint(made) if upper else made


def cross(x1: TensorLike, x2: TensorLike, /, *, axis: int = -1) -> Array:
    """Computes the cross product of vectors of three elements."""
    x1, x2 = (raw.moveaxis(one, axis, -1) for one in (x1, x2))
    shape = np.broadcast_shapes(tuple(x1.shape), tuple(x2.shape))
    return raw.moveaxis(_linalg.cross(raw.broadcast_to(x1, shape), raw.broadcast_to(x2, shape)), -1, axis)


def diagonal(x: TensorLike, /, *, offset: int = 0) -> Array:
    """Returns a diagonal of each matrix; positive offsets are above the main diagonal."""
    return raw.diag_part(x, offset)


def eigh(x: TensorLike, /) -> Eigh:
    """Computes eigenvalues and eigenvectors of symmetric matrices."""
    return Eigh(*raw.eigh(x))


def matrix_norm(x: TensorLike, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """Computes a matrix norm: "fro", "nuc", 1, 2, infinity, -1, -2 or minus infinity."""
    if ord in ("fro", 1, 2, math.inf):
        # TensorFlow's norm of complex numbers is complex, with an imaginary part of zero.
        return raw.real(_norms.norm(x, ord, [-2, -1], keepdims))
    if ord == "nuc" or ord == -2:
        values = raw.svdvals(x)
        made = raw.sum(values, -1) if ord == "nuc" else raw.min(values, -1)
    elif ord in (-1, -math.inf):
        first = -2 if ord == -1 else -1
        made = raw.min(raw.norm(x, 1.0, first), -1)
    else:
        refuse("matrix_norm", f"ord must be 'fro', 'nuc', 1, 2, infinity or their negatives, got {ord!r}", ValueError)
    return raw.expand_dims(raw.expand_dims(made, -1), -1) if keepdims else made


def matrix_power(x: Any, n: int, /) -> Array:
    """Raises square matrices to an integer power; negative powers use the inverse."""
    if n < 0:
        x, n = raw.inv(x), -n
    made = None
    while n:
        if n & 1:
            made = x if made is None else raw.matmul(made, x)
        n >>= 1
        x = raw.matmul(x, x) if n else x
    return raw.broadcast_to(raw.eye(x.shape[-1], None, [], x.dtype), x.shape) if made is None else made


def matrix_rank(x: TensorLike, /, *, rtol: Any = None) -> Array:
    """Computes the rank: the number of singular values above `rtol` times the largest."""
    if rtol is None:
        return _linalg.matrix_rank(x)
    largest = raw.max(raw.svdvals(x), -1)
    return _linalg.matrix_rank(x, largest * rtol)


def matrix_transpose(x: TensorLike, /) -> Array:
    """Transposes the last two axes."""
    return _linalg.matrix_transpose(x)


def outer(x1: Any, x2: Any, /) -> Array:
    """Computes the outer product of two vectors."""
    if x1.ndim != 1 or x2.ndim != 1:
        refuse("outer", f"expected rank 1 and 1, got shapes {x1.shape} and {x2.shape}", ValueError)
    return raw.expand_dims(x1, 1) * raw.expand_dims(x2, 0)


def pinv(x: Any, /, *, rtol: Any = None) -> Array:
    """Computes the Moore-Penrose pseudo-inverse. Singular values up to `rtol` times the largest are taken as zero."""
    default = max(x.shape[-2:]) * float(dtypes.info(raw.real(x).dtype).eps)
    return _linalg.pinv(x, default if rtol is None else rtol)


def qr(x: TensorLike, /, *, mode: str = "reduced") -> QR:
    """Computes the QR decomposition."""
    if mode not in ("reduced", "complete"):
        refuse("qr", f"mode must be 'reduced' or 'complete', got {mode!r}", ValueError)
    return QR(*_linalg.qr(x, mode == "complete"))


def slogdet(x: TensorLike, /) -> Slogdet:
    """Computes the sign and the logarithm of the absolute value of each determinant."""
    return Slogdet(*raw.slogdet(x))


def svd(x: TensorLike, /, *, full_matrices: bool = True) -> SVD:
    """Computes the singular value decomposition; singular values in descending order."""
    return SVD(*raw.svd(x, full_matrices))


def tensordot(x1: TensorLike, x2: TensorLike, /, *, axes: int | Sequence = 2) -> Array:
    """Contracts arrays over pairs of axes: a number of them, or two lists."""
    return _linalg.tensordot(x1, x2, axes)


def trace(x: TensorLike, /, *, offset: int = 0, dtype: DTypeLike = None) -> Array:
    """Computes the sum of a diagonal of each matrix."""
    return _total(raw.diag_part(x, offset), axis=-1, dtype=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """Computes the dot product along an axis, in the promoted type; of complex vectors, with the conjugate of the first."""
    if x1.shape[axis] != x2.shape[axis]:
        refuse(
            "vecdot", f"sizes along axis {axis} must be equal, got {x1.shape[axis]} and {x2.shape[axis]}", ValueError
        )
    product = raw.conj(x1) * x2
    return _total(product, axis=axis, dtype=product.dtype)


def vector_norm(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """Computes the norm of vectors along axes, or of all elements as one vector."""
    return raw.norm(x, ord, axis, keepdims)
