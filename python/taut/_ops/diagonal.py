"""Diagonals and bands of matrices. A band is a matrix with the highest diagonal in its first row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _native, _raw_ops as raw, dtypes
from .._common import as_ints, refuse
from .._native import Tensor, as_tensor
from .linalg import check_matrix

if TYPE_CHECKING:
    from .._typing import TensorLike


def _diagonal_range(name: str, k: Any) -> tuple[int, int]:
    """The lowest and the highest diagonal that `k` means."""
    given = as_ints(k)
    if len(given) not in (1, 2) or given[0] > given[-1]:
        refuse(name, f"k must be one diagonal, or a pair of the lowest and the highest, got {k}")
    return given[0], given[-1]


def _diagonal_length(low: int, high: int, rows: int, columns: int) -> int:
    return min(rows + min(high, 0), columns - max(low, 0))


# The alignment of the diagonals above the main one in their rows of a band, and of those below it.
_ALIGN = ("LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT")


def _band_layout(name: str, low: int, high: int, rows: int, columns: int, align: str) -> list[tuple[int, int, int]]:
    """Each diagonal, the highest first, with the free positions before and after it in its row of the band."""
    if align not in _ALIGN:
        refuse(name, f"align must be one of {', '.join(_ALIGN)}, got {align!r}")
    for k in (low, high):
        if k and not -rows < k < columns:
            refuse(name, f"k must be in ({-rows}, {columns}) for a matrix of shape ({rows}, {columns}), got {k}")
    above, below = align.split("_")
    found = []
    for k in range(high, low - 1, -1):
        free = _diagonal_length(low, high, rows, columns) - _diagonal_length(k, k, rows, columns)
        left = (k >= 0 and above == "LEFT") or (k <= 0 and below == "LEFT")
        found.append((k, 0, free) if left else (k, free, 0))
    return found


def _place_diagonal(diagonal: Tensor, k: int, rows: int, columns: int) -> Tensor:
    """Matrices of this size with `diagonal` on diagonal `k` and zeros elsewhere."""
    made = raw.diag(diagonal, k)
    below, right = rows - made.shape[-2], columns - made.shape[-1]
    if below < 0 or right < 0:
        made = made[..., : min(rows, made.shape[-2]), : min(columns, made.shape[-1])]
    if below > 0 or right > 0:
        made = raw.pad(made, [[0, 0]] * (made.ndim - 2) + [[0, max(below, 0)], [0, max(right, 0)]])
    return made


def _place_band(name: str, band: Tensor, low: int, high: int, rows: int, columns: int, align: str) -> Tensor:
    """Matrices of this size with these diagonals and zeros elsewhere."""
    if low == high:
        return _place_diagonal(band, low, rows, columns)
    made: Any = None
    for i, (k, before, after) in enumerate(_band_layout(name, low, high, rows, columns, align)):
        part = _place_diagonal(band[..., i, before : band.shape[-1] - after], k, rows, columns)
        made = part if made is None else raw.where(_band_mask(k, k, rows, columns), part, made)
    return made


def _band_mask(low: int, high: int, rows: int, columns: int) -> Tensor:
    """A mask that is true on these diagonals."""
    return raw.triu(raw.tril(raw.full([rows, columns], True, dtypes.bool), high), low)


def diag(
    diagonal: TensorLike,
    name: str = "diag",
    k: Any = 0,
    num_rows: Any = -1,
    num_cols: Any = -1,
    padding_value: TensorLike = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Creates matrices with the last axis of `diagonal` on diagonal `k` and `padding_value` elsewhere.

    With a pair `k`, the last two axes are a band of diagonals; `align` says where its shorter ones start.
    """
    (low, high), rows, columns = _diagonal_range("diag", k), int(num_rows), int(num_cols)
    diagonal = as_tensor(diagonal)
    count = high - low + 1
    if diagonal.ndim < min(count, 2) or (count > 1 and diagonal.shape[-2] != count):
        refuse("diag", f"expected {count} diagonals along the axis before the last, got shape {diagonal.shape}")
    length = diagonal.shape[-1]
    least_rows, least_columns = length - min(high, 0), length + max(low, 0)
    if rows == -1 and columns == -1:
        rows = columns = max(least_rows, least_columns)
    rows = least_rows if rows == -1 else rows
    columns = least_columns if columns == -1 else columns
    if rows < least_rows or columns < least_columns or (rows > least_rows and columns > least_columns):
        refuse("diag", f"a {rows}x{columns} matrix does not match diagonal {k} of {length} elements")
    made = _place_band("diag", diagonal, low, high, rows, columns, align)
    if not isinstance(padding_value, _native.Array) and padding_value == 0:
        return made
    return raw.where(_band_mask(low, high, rows, columns), made, raw.cast(padding_value, made.dtype))


def diag_part(
    input: Any,
    name: str = "diag_part",
    k: Any = 0,
    padding_value: Any = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Returns diagonal `k` of each matrix; with a pair `k`, a band whose shorter diagonals are padded."""
    (low, high), x = _diagonal_range("diag_part", k), check_matrix("diag_part", input)
    places = _band_layout("diag_part", low, high, x.shape[-2], x.shape[-1], align)
    if low == high:
        return raw.diag_part(x, low)
    batch = [[0, 0]] * (x.ndim - 2)
    rows = [
        raw.pad(raw.diag_part(x, one), [*batch, [before, after]], "CONSTANT", padding_value)
        for one, before, after in places
    ]
    return raw.stack(rows, -2)


def set_diag(
    input: TensorLike, diagonal: TensorLike, name: str = "set_diag", k: Any = 0, align: str = "RIGHT_LEFT"
) -> Tensor:
    """Replaces diagonal `k` of each matrix, or with a pair `k`, a band."""
    (low, high), x, diagonal = _diagonal_range("set_diag", k), check_matrix("set_diag", input), as_tensor(diagonal)
    rows, columns = x.shape[-2:]
    band = [] if low == high else [high - low + 1]
    wanted = [*x.shape[:-2], *band, _diagonal_length(low, high, rows, columns)]
    if diagonal.shape != wanted:
        refuse("set_diag", f"diagonal must have shape {wanted}, got {diagonal.shape}")
    made = _place_band("set_diag", raw.cast(diagonal, x.dtype), low, high, rows, columns, align)
    return raw.where(_band_mask(low, high, rows, columns), made, x)


def tensor_diag(diagonal: TensorLike, name: str | None = None) -> Tensor:
    """Creates a tensor of twice the rank that is nonzero only where both halves of the index are equal."""
    diagonal = as_tensor(diagonal)
    return raw.reshape(raw.diag(raw.reshape(diagonal, [-1])), [*diagonal.shape, *diagonal.shape])


def tensor_diag_part(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns the elements whose index has two equal halves."""
    x = as_tensor(input)
    half = x.shape[: x.ndim // 2]
    if not x.ndim or x.shape != half + half:
        refuse("tensor_diag_part", f"expected a shape with two equal halves, got {x.shape}")
    count = half.num_elements()
    return raw.reshape(raw.diag_part(raw.reshape(x, [count, count])), half)


def band_part(input: TensorLike, num_lower: Any, num_upper: Any, name: str | None = None) -> Tensor:
    """Sets everything outside a central band to zero; a negative count keeps a whole triangle."""
    x, lower, upper = check_matrix("band_part", input), int(num_lower), int(num_upper)
    x = x if lower < 0 else raw.triu(x, -lower)
    return x if upper < 0 else raw.tril(x, upper)
