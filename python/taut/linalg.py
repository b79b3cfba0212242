"""Matrices: products, factors, solutions, norms. Axes before the last two are those of a batch."""

from __future__ import annotations

from math import comb as _comb
from math import factorial as _factorial
from typing import Any, NamedTuple

import numpy as np

from . import _native, dtypes
from ._common import _ints, _refuse, _shape
from .control import while_loop as _while_loop
from .math import abs, ceil, l2_normalize, log, maximum, reduce_sum  # noqa: A004, F401

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

cholesky = op("cholesky", params=["input"])
det = op("det", params=["input"])
eigvalsh = op("eigvalsh", params=["tensor"])

_cast = op("cast")
_clip = op("clip_by_value")
_diag = op("diag")
_diag_part = op("diag_part")
_eigh = op("eigh")
_einsum = op("einsum")
_expand = op("expand_dims")
_eye = op("eye")
_full = op("full")
_global_norm = op("global_norm")
_inv = op("inv")
_lstsq = op("lstsq")
_matmul = op("matmul")
_max = op("max")
_norm = op("norm")
_pad = op("pad")
_qr = op("qr")
_reshape = op("reshape")
_roll = op("roll")
_slogdet = op("slogdet")
_solve = op("solve")
_squeeze = op("squeeze")
_stack = op("stack")
_svd = op("svd")
_svdvals = op("svdvals")
_swap = op("swapaxes")
_tensordot = op("tensordot")
_transpose = op("transpose")
_triangular_solve = op("triangular_solve")
_tril = op("tril")
_triu = op("triu")
_where = op("where")


def _matrix(name: str, x: Any) -> _Tensor:
    x = _tensor(x)
    if x.ndim < 2:
        _refuse(name, f"a matrix has two dimensions at least, not shape {x.shape}")
    return x


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The product of matrices; axes before the last two are those of a batch.

    Matrices that are said to be mostly zeros are multiplied like any other. `output_type` is the type of the
    product.
    """
    if (transpose_a and adjoint_a) or (transpose_b and adjoint_b):
        _refuse("matmul", "a matrix is transposed or adjoint, not both", ValueError)
    if output_type is not None:
        # Before, not after: the product of small integers does not fit among them.
        a, b = _cast(a, output_type), _cast(b, output_type)
    return _matmul(a, b, transpose_a or adjoint_a, transpose_b or adjoint_b)


def matvec(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> _Tensor:
    """The product of matrices and vectors."""
    return _squeeze(_matmul(a, _expand(b, -1), transpose_a or adjoint_a), -1)


def einsum(equation: str, *inputs: Any, optimize: str | None = None, name: str | None = None) -> _Tensor:
    """Sums of products by the names of axes: "ij,jk->ik" is a matrix product. The cheapest come first."""
    return _einsum(equation, list(inputs))


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> _Tensor:
    """Sums of products over pairs of axes: the last of `a` and the first of `b`, or two lists of them."""
    axes = axes.tolist() if isinstance(axes, (np.ndarray, _native.Array)) else axes
    if isinstance(axes, (int, np.integer)):
        return _tensordot(a, b, int(axes))
    first, second = ([part] if isinstance(part, (int, np.integer)) else list(part) for part in axes)
    return _tensordot(a, b, 0, first, second)


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> _Tensor:
    """The matrices with rows and columns exchanged."""
    return _swap(_matrix("matrix_transpose", a), -1, -2)


def adjoint(matrix: Any, name: str | None = None) -> _Tensor:
    """The matrices with rows and columns exchanged: real ones have no other adjoint."""
    return _swap(_matrix("adjoint", matrix), -1, -2)


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> _Tensor:
    """Matrices with ones on the diagonal and zeros elsewhere."""
    return _eye(num_rows, num_columns, [] if batch_shape is None else _shape(batch_shape), dtype)


def trace(x: Any, name: str | None = None) -> _Tensor:
    """The sum of each matrix's diagonal."""
    return reduce_sum(_diag_part(x), -1)


# Diagonals: one, or a band of them, which is a matrix with the highest diagonal in its first row.


def _diagonals(name: str, k: Any) -> tuple[int, int]:
    """The lowest and the highest diagonal that are meant."""
    given = _ints(k)
    if len(given) not in (1, 2) or given[0] > given[-1]:
        _refuse(name, f"k={k} is no diagonal, and no pair of the lowest and the highest")
    return given[0], given[-1]


def _longest(low: int, high: int, rows: int, columns: int) -> int:
    return min(rows + min(high, 0), columns - max(low, 0))


# Where diagonals above the main one stand in their rows of a band, and those below it.
_ALIGN = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


def _places(
    name: str, low: int, high: int, rows: int, columns: int, align: str
) -> list[tuple[int, int, int]]:
    """Each diagonal, the highest first, and how many places of its row in the band are free at each end."""
    if align not in _ALIGN:
        _refuse(name, f"align={align!r} is none of {', '.join(_ALIGN)}")
    for k in (low, high):
        if k and not -rows < k < columns:
            _refuse(name, f"a matrix of shape ({rows}, {columns}) has no diagonal {k}")
    above, below = align.split("_")
    found = []
    for k in range(high, low - 1, -1):
        free = _longest(low, high, rows, columns) - _longest(k, k, rows, columns)
        left = (k >= 0 and above == "LEFT") or (k <= 0 and below == "LEFT")
        found.append((k, 0, free) if left else (k, free, 0))
    return found


def _spread(diagonal: _Tensor, k: int, rows: int, columns: int) -> _Tensor:
    """Matrices of this size with `diagonal` on diagonal `k` and zeros elsewhere."""
    made = _diag(diagonal, k)
    below, right = rows - made.shape[-2], columns - made.shape[-1]
    if below < 0 or right < 0:
        made = made[..., : min(rows, made.shape[-2]), : min(columns, made.shape[-1])]
    if below > 0 or right > 0:
        made = _pad(made, [[0, 0]] * (made.ndim - 2) + [[0, max(below, 0)], [0, max(right, 0)]])
    return made


def _banded(
    name: str, band: _Tensor, low: int, high: int, rows: int, columns: int, align: str
) -> _Tensor:
    """Matrices of this size with these diagonals and zeros elsewhere."""
    if low == high:
        return _spread(band, low, rows, columns)
    made = None
    for i, (k, before, after) in enumerate(_places(name, low, high, rows, columns, align)):
        part = _spread(band[..., i, before : band.shape[-1] - after], k, rows, columns)
        made = part if made is None else _where(_inside(k, k, rows, columns), part, made)
    return made


def _inside(low: int, high: int, rows: int, columns: int) -> _Tensor:
    """Where these diagonals are."""
    return _triu(_tril(_full([rows, columns], True, dtypes.bool), high), low)


def diag(
    diagonal: Any,
    name: str = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> _Tensor:
    """Matrices with the last axis of `diagonal` on diagonal `k`, and `padding_value` elsewhere.

    With a pair `k`, the last two axes are a band of diagonals, whose shorter ones stand where `align` says.
    """
    (low, high), rows, columns = _diagonals("diag", k), int(num_rows), int(num_cols)
    diagonal = _tensor(diagonal)
    count = high - low + 1
    if diagonal.ndim < min(count, 2) or (count > 1 and diagonal.shape[-2] != count):
        _refuse("diag", f"a tensor of shape {diagonal.shape} does not hold {count} diagonals")
    length = diagonal.shape[-1]
    least_rows, least_columns = length - min(high, 0), length + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    if rows < least_rows or columns < least_columns or (rows > least_rows and columns > least_columns):
        _refuse("diag", f"{length} elements are not diagonal {k} of a {rows}x{columns} matrix")
    made = _banded("diag", diagonal, low, high, rows, columns, align)
    if not isinstance(padding_value, _native.Array) and padding_value == 0:
        return made
    return _where(_inside(low, high, rows, columns), made, _cast(padding_value, made.dtype))


def diag_part(
    input: Any,  # noqa: A002
    name: str = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> _Tensor:
    """Diagonal `k` of each matrix; with a pair `k`, a band, in which shorter diagonals are filled up."""
    (low, high), x = _diagonals("diag_part", k), _matrix("diag_part", input)
    places = _places("diag_part", low, high, *x.shape[-2:], align)
    if low == high:
        return _diag_part(x, low)
    batch = [[0, 0]] * (x.ndim - 2)
    rows = [
        _pad(_diag_part(x, one), [*batch, [before, after]], "CONSTANT", padding_value)
        for one, before, after in places
    ]
    return _stack(rows, -2)


def set_diag(
    input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT"  # noqa: A002
) -> _Tensor:
    """The matrices with diagonal `k` replaced, or with a pair `k`, a band of them."""
    (low, high), x, diagonal = _diagonals("set_diag", k), _matrix("set_diag", input), _tensor(diagonal)
    rows, columns = x.shape[-2:]
    band = [] if low == high else [high - low + 1]
    wanted = x.shape[:-2] + [*band, _longest(low, high, rows, columns)]
    if diagonal.shape != wanted:
        _refuse("set_diag", f"the diagonal has shape {diagonal.shape}, and is of shape {wanted} there")
    made = _banded("set_diag", _cast(diagonal, x.dtype), low, high, rows, columns, align)
    return _where(_inside(low, high, rows, columns), made, x)


def tensor_diag(diagonal: Any, name: str | None = None) -> _Tensor:
    """A tensor of twice the rank, zero but where both halves of its indices are equal."""
    diagonal = _tensor(diagonal)
    return _reshape(_diag(_reshape(diagonal, [-1])), [*diagonal.shape, *diagonal.shape])


def tensor_diag_part(input: Any, name: str | None = None) -> _Tensor:  # noqa: A002
    """The elements where both halves of a tensor's indices are equal."""
    x = _tensor(input)
    half = x.shape[: x.ndim // 2]
    if not x.ndim or x.shape != half + half:
        _refuse("tensor_diag_part", f"both halves of the shape are equal, and those of {x.shape} are not")
    count = half.num_elements()
    return _reshape(_diag_part(_reshape(x, [count, count])), half)


def band_part(input: Any, num_lower: Any, num_upper: Any, name: str | None = None) -> _Tensor:  # noqa: A002
    """The matrices with zeros outside a band around the diagonal; a negative number keeps a triangle."""
    x, lower, upper = _matrix("band_part", input), int(num_lower), int(num_upper)
    x = x if lower < 0 else _triu(x, -lower)
    return x if upper < 0 else _tril(x, upper)


# Factors and solutions.


class QR(NamedTuple):
    """`a = q @ r`."""

    q: _Tensor
    r: _Tensor


def qr(input: Any, full_matrices: bool = False, name: str | None = None) -> QR:  # noqa: A002
    """Orthonormal columns `q` and an upper triangular `r`, whose product is each matrix."""
    return QR(*_qr(input, full_matrices))


def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None) -> Any:
    """Singular values, largest first, and the vectors `u` and `v` with `a = u @ diag(s) @ transpose(v)`."""
    if not compute_uv:
        return _svdvals(tensor)
    u, s, vh = _svd(tensor, full_matrices)
    return s, u, _swap(vh, -1, -2)


def eigh(tensor: Any, name: str | None = None) -> tuple[_Tensor, _Tensor]:
    """Eigenvalues of symmetric matrices, smallest first, and eigenvectors as columns."""
    values, vectors = _eigh(tensor)
    return values, vectors


class SignAndLogarithm(NamedTuple):
    """A determinant as its sign and the logarithm of its absolute value."""

    sign: _Tensor
    log_abs_determinant: _Tensor


def slogdet(input: Any, name: str | None = None) -> SignAndLogarithm:  # noqa: A002
    """The sign of each determinant, and the logarithm of its absolute value."""
    return SignAndLogarithm(*_slogdet(input))


def logdet(matrix: Any, name: str | None = None) -> _Tensor:
    """The logarithm of the determinant of positive definite matrices."""
    return 2.0 * reduce_sum(log(_diag_part(cholesky(matrix))), -1)


def inv(input: Any, adjoint: bool = False, name: str | None = None) -> _Tensor:  # noqa: A002
    """The inverse of each matrix, or of its transpose."""
    return _inv(matrix_transpose(input) if adjoint else input)


def solve(matrix: Any, rhs: Any, adjoint: bool = False, name: str | None = None) -> _Tensor:
    """The `x` with `matrix @ x = rhs`, or with the transpose of the matrix."""
    return _solve(matrix_transpose(matrix) if adjoint else matrix, _matrix("solve", rhs))


def triangular_solve(
    matrix: Any, rhs: Any, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> _Tensor:
    """The `x` with `matrix @ x = rhs` for triangular matrices, of which one triangle is read."""
    return _triangular_solve(matrix, _matrix("triangular_solve", rhs), lower, adjoint)


def cholesky_solve(chol: Any, rhs: Any, name: str | None = None) -> _Tensor:
    """The `x` with `a @ x = rhs`, given the Cholesky factors of `a`."""
    return _triangular_solve(chol, _triangular_solve(chol, _matrix("cholesky_solve", rhs)), True, True)


def lstsq(
    matrix: Any, rhs: Any, l2_regularizer: float = 0.0, fast: bool = True, name: str | None = None
) -> _Tensor:
    """The `x` that makes `|matrix @ x - rhs|^2 + l2_regularizer * |x|^2` smallest.

    `fast` or not, the answer without a regularizer comes from singular values, and is the shortest of
    several.
    """
    matrix, rhs = _matrix("lstsq", matrix), _matrix("lstsq", rhs)
    if float(l2_regularizer) == 0.0:
        return _lstsq(matrix, rhs)[0]
    columns = matrix.shape[-1]
    gram = _matmul(matrix, matrix, True) + l2_regularizer * _eye(columns, None, [], matrix.dtype)
    return cholesky_solve(cholesky(gram), _matmul(matrix, rhs, True))


def matrix_rank(a: Any, tol: Any = None, validate_args: bool = False, name: str | None = None) -> _Tensor:
    """How many singular values of each matrix are above `tol`.

    That is its larger size times the type's precision, times the largest value, unless it is given.
    """
    a = _matrix("matrix_rank", a)
    values = _svdvals(a)
    if tol is None:
        tol = _max(values, -1, True) * (max(a.shape[-2:]) * _precision(a.dtype))
    elif isinstance(tol, _native.Array) and tol.ndim:
        tol = _expand(tol, -1)
    return reduce_sum(_cast(values > tol, dtypes.int32), -1)


def _precision(dtype: Any) -> float:
    return float(dtypes.info(dtype).eps)


def pinv(a: Any, rcond: Any = None, validate_args: bool = False, name: str | None = None) -> _Tensor:
    """The Moore-Penrose inverse. Singular values up to `rcond` times the largest count as zero."""
    a = _matrix("pinv", a)
    if rcond is None:
        rcond = 10.0 * max(a.shape[-2:]) * _precision(a.dtype)
    elif isinstance(rcond, _native.Array) and rcond.ndim:
        rcond = _expand(rcond, -1)
    u, s, vh = _svd(a)
    large = s > rcond * _max(s, -1, True)
    # Infinity in place of what counts as zero, so that its reciprocal is zero, and so is the gradient.
    inverse = 1.0 / _where(large, s, _cast(np.inf, s.dtype))
    return _matmul(_swap(vh, -1, -2) * _expand(inverse, -2), u, False, True)


def cross(a: Any, b: Any, name: str | None = None) -> _Tensor:
    """The vectors that stand on pairs of vectors of three elements, along the last axis."""
    a, b = _tensor(a), _tensor(b)
    for one in (a, b):
        if not one.ndim or one.shape[-1] != 3:
            _refuse("cross", f"vectors have three elements along the last axis, not shape {one.shape}")
    if a.shape != b.shape:
        _refuse("cross", f"vectors of shapes {a.shape} and {b.shape}, where both have one shape")
    return _roll(a, -1, -1) * _roll(b, -2, -1) - _roll(a, -2, -1) * _roll(b, -1, -1)


def expm(input: Any, name: str | None = None) -> _Tensor:  # noqa: A002
    """The exponential of square matrices: Padé's approximation of what is halved until it is small."""
    x = _matrix("expm", input)
    if x.shape[-1] != x.shape[-2]:
        _refuse("expm", f"a matrix of shape {x.shape[-2:]} is not square")
    if not x.size:
        return x
    # So often that the largest sum of a column's magnitudes is small. NaN counts as small.
    norm = _max(reduce_sum(abs(x), -2)) / 4.25
    halvings = _cast(_clip(ceil(log(maximum(norm, 1.0)) / float(np.log(2.0))), 0.0, 64.0), dtypes.int32)
    x = x / _cast(2.0, x.dtype) ** _cast(halvings, x.dtype)
    degree = 13
    # The coefficients of the approximation's numerator, scaled to integers.
    terms = (_comb(degree, i) * _factorial(2 * degree - i) // _factorial(degree) for i in range(degree + 1))
    b = [float(term) for term in terms]
    one = _eye(x.shape[-1], None, [], x.dtype)
    x2 = _matmul(x, x)
    x4 = _matmul(x2, x2)
    x6 = _matmul(x4, x2)
    odd = _matmul(x6, b[13] * x6 + b[11] * x4 + b[9] * x2) + b[7] * x6 + b[5] * x4 + b[3] * x2 + b[1] * one
    odd = _matmul(x, odd)
    even = _matmul(x6, b[12] * x6 + b[10] * x4 + b[8] * x2) + b[6] * x6 + b[4] * x4 + b[2] * x2 + b[0] * one
    made = _solve(even - odd, even + odd)
    if halvings.is_symbolic:
        return _while_loop(lambda i, _: i < halvings, lambda i, m: (i + 1, _matmul(m, m)), (0, made))[1]
    for _ in range(int(halvings)):
        made = _matmul(made, made)
    return made


# Norms.


def norm(
    tensor: Any,
    ord: Any = "euclidean",  # noqa: A002
    axis: Any = None,
    keepdims: bool | None = None,
    name: str | None = None,
) -> _Tensor:
    """The norm of vectors along an axis, of matrices in two axes, or of the whole tensor as one vector.

    `ord` is "euclidean", 1, 2, infinity or any positive number for vectors; "euclidean", "fro", 1, 2 or
    infinity for matrices.
    """
    x, keepdims = _tensor(tensor), bool(keepdims)
    if axis is not None:
        axis = [int(one) for one in np.asarray(axis).reshape(-1)]
    if axis is None or len(axis) == 1:
        if ord == "fro":
            _refuse("norm", "the Frobenius norm is that of matrices: give two axes")
        if ord != "euclidean" and not (isinstance(ord, (int, float, np.number)) and ord > 0):
            _refuse("norm", f"vectors have no norm {ord!r}")
        return _norm(x, 2.0 if ord == "euclidean" else ord, axis, keepdims)
    if len(axis) != 2 or axis[0] == axis[1]:
        _refuse("norm", f"axis is None, one axis or two different ones, not {axis}")
    if ord in ("euclidean", "fro"):
        return _norm(x, 2.0, axis, keepdims)
    rows, columns = (one % x.ndim for one in axis)
    if ord in (1, np.inf):
        # The sum of magnitudes of each column, or of each row; then the largest.
        first, second = (rows, columns) if ord == 1 else (columns, rows)
        made = _max(_norm(x, 1.0, first, True), second, True)
    elif ord == 2:
        rest = [one for one in range(x.ndim) if one not in (rows, columns)]
        values = _max(_svdvals(_transpose(x, [*rest, rows, columns])), -1)
        made = _reshape(values, [1 if one in (rows, columns) else size for one, size in enumerate(x.shape)])
    else:
        _refuse("norm", f"matrices have no norm {ord!r} here: 'fro', 1, 2 and infinity")
    return made if keepdims else _squeeze(made, sorted((rows, columns)))


def global_norm(t_list: Any, name: str | None = None) -> _Tensor:
    """The Euclidean norm of several tensors, or rows of tables, as one vector. None counts for nothing."""
    if not isinstance(t_list, (list, tuple)):
        _refuse("global_norm", f"a list of tensors is needed, not a {type(t_list).__name__}", TypeError)
    parts = [getattr(part, "values", part) for part in t_list if part is not None]
    if not parts:
        _refuse("global_norm", "no tensors in the list")
    return _global_norm(parts)


def normalize(
    tensor: Any, ord: Any = "euclidean", axis: Any = None, name: str | None = None  # noqa: A002
) -> tuple[_Tensor, _Tensor]:
    """The tensor divided by its norm, and that norm."""
    tensor = _tensor(tensor)
    size = norm(tensor, ord, axis, True)
    return tensor / size, size
