"""Functions of matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _native, dtypes
from .. import linalg as _tf
from .._common import _refuse
from ._reductions import sum as _total

op = _native.Op
Array = _native.Tensor

det = op("det", params=["x"])
inv = op("inv", params=["x"])
matmul = op("matmul", params=["x1", "x2"])
solve = op("solve", params=["x1", "x2"])
svdvals = op("svdvals", params=["x"])
eigvalsh = op("eigvalsh", params=["x"])

_broadcast = op("broadcast_to")
_cholesky = op("cholesky")
_diag_part = op("diag_part")
_eigh = op("eigh")
_expand = op("expand_dims")
_eye = op("eye")
_max = op("max")
_min = op("min")
_moveaxis = op("moveaxis")
_norm = op("norm")
_slogdet = op("slogdet")
_sum = op("sum")
_svd = op("svd")
_swap = op("swapaxes")


class Eigh(NamedTuple):
    """Eigenvalues, smallest first, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QR(NamedTuple):
    """`x = Q @ R`."""

    Q: Array
    R: Array


class Slogdet(NamedTuple):
    """The sign of a determinant, and the logarithm of its absolute value."""

    sign: Array
    logabsdet: Array


class SVD(NamedTuple):
    """`x = U @ diag(S) @ Vh`."""

    U: Array
    S: Array
    Vh: Array


def cholesky(x: Any, /, *, upper: bool = False) -> Array:
    """The triangular factor of positive definite matrices."""
    made = _cholesky(x)
    return _swap(made, -1, -2) if upper else made


def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The vectors that stand on pairs of vectors of three elements."""
    x1, x2 = (_moveaxis(one, axis, -1) for one in (x1, x2))
    shape = np.broadcast_shapes(tuple(x1.shape), tuple(x2.shape))
    return _moveaxis(_tf.cross(_broadcast(x1, shape), _broadcast(x2, shape)), -1, axis)


def diagonal(x: Any, /, *, offset: int = 0) -> Array:
    """A diagonal of each matrix; positive ones lie above the main one."""
    return _diag_part(x, offset)


def eigh(x: Any, /) -> Eigh:
    """Eigenvalues and eigenvectors of symmetric matrices."""
    return Eigh(*_eigh(x))


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Array:  # noqa: A002
    """The norm of each matrix: "fro", 1, 2 or infinity; "nuc", -1, -2 or minus infinity."""
    if ord in ("fro", 1, 2, math.inf):
        return _tf.norm(x, ord, [-2, -1], keepdims)
    if ord == "nuc" or ord == -2:
        values = svdvals(x)
        made = _sum(values, -1) if ord == "nuc" else _min(values, -1)
    elif ord in (-1, -math.inf):
        first = -2 if ord == -1 else -1
        made = _min(_norm(x, 1.0, first), -1)
    else:
        _refuse("matrix_norm", f"matrices have no norm {ord!r}", ValueError)
    return _expand(_expand(made, -1), -1) if keepdims else made


def matrix_power(x: Any, n: int, /) -> Array:
    """Each square matrix times itself, `n` times in all; its inverse, for a negative number."""
    if n < 0:
        x, n = inv(x), -n
    made = None
    while n:
        if n & 1:
            made = x if made is None else matmul(made, x)
        n >>= 1
        x = matmul(x, x) if n else x
    return _broadcast(_eye(x.shape[-1], None, [], x.dtype), x.shape) if made is None else made


def matrix_rank(x: Any, /, *, rtol: Any = None) -> Array:
    """How many singular values of each matrix are above `rtol` times its largest."""
    if rtol is None:
        return _tf.matrix_rank(x)
    largest = _max(svdvals(x), -1)
    return _tf.matrix_rank(x, largest * rtol)


def matrix_transpose(x: Any, /) -> Array:
    """The matrices with rows and columns exchanged."""
    return _tf.matrix_transpose(x)


def outer(x1: Any, x2: Any, /) -> Array:
    """The products of all pairs of elements of two vectors."""
    if x1.ndim != 1 or x2.ndim != 1:
        _refuse("outer", f"two vectors are needed, not shapes {x1.shape} and {x2.shape}", ValueError)
    return _expand(x1, 1) * _expand(x2, 0)


def pinv(x: Any, /, *, rtol: Any = None) -> Array:
    """The Moore-Penrose inverse. Singular values up to `rtol` times the largest count as zero."""
    default = max(x.shape[-2:]) * float(dtypes.info(x.dtype).eps)
    return _tf.pinv(x, default if rtol is None else rtol)


def qr(x: Any, /, *, mode: str = "reduced") -> QR:
    """Orthonormal columns and an upper triangular matrix, whose product is each matrix."""
    if mode not in ("reduced", "complete"):
        _refuse("qr", f"mode is 'reduced' or 'complete', not {mode!r}", ValueError)
    return QR(*_tf.qr(x, mode == "complete"))


def slogdet(x: Any, /) -> Slogdet:
    """The sign of each determinant, and the logarithm of its absolute value."""
    return Slogdet(*_slogdet(x))


def svd(x: Any, /, *, full_matrices: bool = True) -> SVD:
    """Singular values, largest first, and singular vectors."""
    return SVD(*_svd(x, full_matrices))


def tensordot(x1: Any, x2: Any, /, *, axes: int | Sequence = 2) -> Array:
    """Sums of products over pairs of axes: that many, or those in two lists."""
    return _tf.tensordot(x1, x2, axes)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Array:
    """The sum of a diagonal of each matrix."""
    return _total(_diag_part(x, offset), axis=-1, dtype=dtype)


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Array:
    """The sums of products of two arrays' elements along an axis, in the type they meet in."""
    if x1.shape[axis] != x2.shape[axis]:
        _refuse("vecdot", f"vectors of {x1.shape[axis]} and of {x2.shape[axis]} elements", ValueError)
    product = x1 * x2
    return _total(product, axis=axis, dtype=product.dtype)


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Array:  # noqa: A002
    """The norm of vectors along some axes, or of all elements as one vector."""
    return _norm(x, ord, axis, keepdims)
