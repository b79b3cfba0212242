"""LU decompositions, and matrices with few diagonals."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import cast_to, check_choice, refuse
from .._native import Tensor, as_tensor
from ..control import while_loop

if TYPE_CHECKING:
    from .._typing import DTypeLike, TensorLike


class Lu(NamedTuple):
    """An LU decomposition: both factors in one matrix, and the rows of the input in their order."""

    lu: Tensor
    p: Tensor


def _square(name: str, matrix: TensorLike) -> Tensor:
    matrix = as_tensor(matrix)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or not matrix.dtype.is_floating:
        refuse(name, f"expected square matrices of floats, got {matrix.dtype.name}{list(matrix.shape)}")
    return matrix


def lu(input: TensorLike, output_idx_type: DTypeLike = dtypes.int32, name: str | None = None) -> Lu:
    """Computes LU decompositions with row exchanges: `gather(input, p, axis=-2)` is L @ U for each matrix.

    The unit lower triangle L and the upper triangle U are in one matrix.
    """
    matrix = _square("lu", input)
    size, batch = matrix.shape[-1], list(matrix.shape[:-2])
    if not size or not math.prod(batch):
        return Lu(matrix, raw.zeros([*batch, size], output_idx_type))
    flat = raw.reshape(matrix, [-1, size, size])
    places = raw.range(0, size, 1, dtypes.int64)

    def step(k: Tensor, made: Tensor, order: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        at = raw.broadcast_to(raw.reshape(k, [1]), [flat.shape[0]])
        column = raw.take_along_axis(made, raw.reshape(raw.broadcast_to(k, made.shape[:2]), [*made.shape[:2], 1]), 2)[
            ..., 0
        ]
        candidates = raw.where(places < k, raw.full([], -1.0, made.dtype), raw.abs(column))
        pivot = raw.expand_dims(cast_to(raw.argmax(candidates, -1), dtypes.int64), -1)
        here = raw.expand_dims(at, -1)
        # Exchanges row k and the pivot's.
        swap = raw.where(raw.equal(places, here), pivot, raw.where(raw.equal(places, pivot), here, places))
        rows = raw.broadcast_to(raw.expand_dims(swap, -1), made.shape)
        made, order = raw.take_along_axis(made, rows, 1), raw.take_along_axis(order, swap, 1)
        row = raw.take_along_axis(
            made, raw.reshape(raw.broadcast_to(k, [flat.shape[0], size]), [flat.shape[0], 1, size]), 1
        )
        column = raw.take_along_axis(made, raw.reshape(raw.broadcast_to(k, made.shape[:2]), [*made.shape[:2], 1]), 2)
        diagonal = raw.take_along_axis(row, raw.reshape(here, [flat.shape[0], 1, 1]), 2)
        later = places > k
        # A column of zeros below the pivot stays as it is: the matrix is singular.
        divisor = raw.where(raw.equal(diagonal, 0.0), raw.full([], 1.0, made.dtype), diagonal)
        factors = raw.where(raw.expand_dims(later, -1), column / divisor, raw.full([], 0.0, made.dtype))
        rest = raw.where(later, row, raw.full([], 0.0, made.dtype))
        is_column = raw.equal(places, k)
        made = raw.where(raw.logical_and(raw.expand_dims(later, -1), is_column), factors, made - factors * rest)
        return k + 1, made, order

    start = raw.broadcast_to(places, [flat.shape[0], size])
    states = (raw.full([], 0, dtypes.int64), flat, start)
    _, made, order = while_loop(lambda k, *_: k < size, step, states)
    return Lu(raw.reshape(made, [*batch, size, size]), raw.cast(raw.reshape(order, [*batch, size]), output_idx_type))


def _factors(lower_upper: TensorLike) -> tuple[Tensor, Tensor]:
    packed = _square("lu", lower_upper)
    identity = raw.cast(as_tensor(np.eye(packed.shape[-1])), packed.dtype)
    return raw.tril(packed, -1) + identity, raw.triu(packed, 0)


def _permuted(matrix: Tensor, perm: Tensor) -> Tensor:
    rows = raw.expand_dims(cast_to(as_tensor(perm), dtypes.int64), -1)
    return raw.take_along_axis(matrix, raw.broadcast_to(rows, [*rows.shape[:-1], matrix.shape[-1]]), -2)


def lu_solve(
    lower_upper: TensorLike, perm: TensorLike, rhs: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Solves `matrix @ x = rhs`, given the LU decomposition of the matrix."""
    from .linalg import triangular_solve

    lower, upper = _factors(lower_upper)
    return triangular_solve(upper, triangular_solve(lower, _permuted(as_tensor(rhs), as_tensor(perm))), lower=False)


def lu_reconstruct(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The matrix of an LU decomposition."""
    lower, upper = _factors(lower_upper)
    inverse = raw.argsort(cast_to(as_tensor(perm), dtypes.int64), -1)
    return _permuted(raw.matmul(lower, upper), inverse)


def lu_matrix_inverse(
    lower_upper: TensorLike, perm: TensorLike, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """The inverse of a matrix, given its LU decomposition."""
    packed = _square("lu_matrix_inverse", lower_upper)
    identity = raw.cast(as_tensor(np.eye(packed.shape[-1])), packed.dtype)
    return lu_solve(packed, perm, raw.broadcast_to(identity, packed.shape))


def _diagonals(name: str, diagonals: Any, form: str) -> tuple[Tensor, Tensor, Tensor]:
    """The diagonals above, on and below the main one, all of its length; the unused elements are zero."""
    check_choice(name, "diagonals_format", form, ("compact", "sequence", "matrix"))
    if form == "matrix":
        matrix = _square(name, diagonals)
        parts = [raw.diag_part(matrix, k) for k in (1, 0, -1)]
    elif form == "sequence":
        if len(diagonals) != 3:
            refuse(name, f"expected three diagonals, got {len(diagonals)}", ValueError)
        parts = [as_tensor(part) for part in diagonals]
    else:
        compact = as_tensor(diagonals)
        if compact.ndim < 2 or compact.shape[-2] != 3:
            refuse(name, f"diagonals must have shape [..., 3, size], got {compact.shape}", ValueError)
        parts = [compact[..., i, :] for i in range(3)]
    size = parts[1].shape[-1]
    zero = [[0, 0]] * (parts[1].ndim - 1)
    above, main, below = parts
    above = above[..., : size - 1] if above.shape[-1] == size else above
    below = below[..., 1:] if below.shape[-1] == size else below
    return raw.pad(above, [*zero, [0, 1]]), main, raw.pad(below, [*zero, [1, 0]])


def tridiagonal_matmul(
    diagonals: Any, rhs: TensorLike, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """Multiplies matrices that have three diagonals with matrices, without making them dense."""
    above, main, below = _diagonals("tridiagonal_matmul", diagonals, diagonals_format)
    rhs = as_tensor(rhs)
    zero = [[0, 0]] * (rhs.ndim - 2)
    up = raw.pad(rhs[..., 1:, :], [*zero, [0, 1], [0, 0]])
    down = raw.pad(rhs[..., :-1, :], [*zero, [1, 0], [0, 0]])
    return raw.expand_dims(above, -1) * up + raw.expand_dims(main, -1) * rhs + raw.expand_dims(below, -1) * down


def _dense(above: Tensor, main: Tensor, below: Tensor) -> Tensor:
    """The matrix of three diagonals."""
    from .diagonal import diag

    if main.shape[-1] == 1:
        return diag(main)
    return diag(main) + diag(above[..., :-1], k=1) + diag(below[..., 1:], k=-1)


def tridiagonal_solve(
    diagonals: Any,
    rhs: TensorLike,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """Solves systems whose matrices have three diagonals. They are made dense, and rows are exchanged.

    `conjugate_rhs` replaces the right-hand side by its complex conjugate.
    """
    if perturb_singular:
        refuse("tridiagonal_solve", "perturb_singular must be False: a singular matrix is an error", ValueError)
    matrix = _dense(*_diagonals("tridiagonal_solve", diagonals, diagonals_format))
    rhs = raw.conj(rhs) if conjugate_rhs else as_tensor(rhs)
    is_vector = rhs.ndim == matrix.ndim - 1
    rhs = raw.expand_dims(rhs, -1) if is_vector else raw.swapaxes(rhs, -1, -2) if transpose_rhs else rhs
    found = raw.solve(matrix, rhs)
    return found[..., 0] if is_vector else found


def banded_triangular_solve(
    bands: TensorLike, rhs: TensorLike, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solves systems with triangular matrices of a few diagonals: rows of `bands`, the main one first if `lower`, else last."""
    from .diagonal import diag
    from .linalg import triangular_solve

    bands = as_tensor(bands)
    count, size = bands.shape[-2:]
    matrix: Any = 0.0
    for i in range(count):
        if lower:
            matrix = matrix + diag(bands[..., i, i:], k=-i)
        else:
            k = count - 1 - i
            matrix = matrix + diag(bands[..., i, : size - k], k=k)
    return triangular_solve(matrix, rhs, lower=lower, adjoint=adjoint)


def eigh_tridiagonal(
    alpha: TensorLike,
    beta: TensorLike,
    eigvals_only: bool = True,
    select: str = "a",
    select_range: Any = None,
    tol: float | None = None,
    name: str | None = None,
) -> Any:
    """Eigenvalues, and eigenvectors unless `eigvals_only`, of symmetric matrices with the diagonals `alpha` and `beta`.

    `select` is "a" for all, "i" for those with indices in `select_range`, or "v" for those with values in it.
    """
    check_choice("eigh_tridiagonal", "select", select, ("a", "i", "v"))
    if select != "a" and select_range is None:
        refuse("eigh_tridiagonal", f"select={select!r} needs select_range", ValueError)
    main, off = as_tensor(alpha), as_tensor(beta)
    if main.ndim != 1 or off.shape != [max(main.shape[0] - 1, 0)]:
        refuse("eigh_tridiagonal", f"expected alpha [n] and beta [n - 1], got {main.shape} and {off.shape}", ValueError)
    matrix = _dense(raw.pad(off, [[0, 1]]), main, raw.pad(off, [[1, 0]]))
    values, vectors = raw.eigh(matrix)
    if select == "i":
        first, last = (int(number) for number in select_range)
        if not 0 <= first <= last < main.shape[0]:
            refuse("eigh_tridiagonal", f"select_range must be in [0, {main.shape[0]}), got {select_range}", ValueError)
        values, vectors = values[first : last + 1], vectors[:, first : last + 1]
    elif select == "v":
        low, high = (float(number) for number in select_range)
        # As exact as the values are: an end that is one of them selects it.
        slack = 4 * main.shape[0] * float(dtypes.info(values.dtype).eps) * max(abs(low), abs(high))
        kept = np.flatnonzero((values.numpy() >= low - slack) & (values.numpy() <= high + slack))
        values, vectors = raw.gather(values, as_tensor(kept)), raw.gather(vectors, as_tensor(kept), 1)
    return values if eigvals_only else (values, vectors)


def sqrtm(input: TensorLike, name: str | None = None) -> Tensor:
    """Square roots of matrices without negative eigenvalues: `sqrtm(a) @ sqrtm(a)` is `a`."""
    matrix = _square("sqrtm", input)
    wide = cast_to(matrix, dtypes.float64)
    # The product form of Denman and Beavers' iteration, which converges quadratically.
    identity = raw.broadcast_to(raw.cast(as_tensor(np.eye(matrix.shape[-1])), dtypes.float64), matrix.shape)
    root, inverse = wide, identity
    for _ in range(30):
        root, inverse = 0.5 * (root + raw.inv(inverse)), 0.5 * (inverse + raw.inv(root))
    return cast_to(root, matrix.dtype)
