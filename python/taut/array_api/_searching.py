"""Searching, sorting and set functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from .. import _native, _raw_ops as raw, dtypes
from .._common import as_tuple, refuse

if TYPE_CHECKING:
    from .._typing import TensorLike

Array = _native.Tensor


def _extreme(which: Any, x: Any, axis: int | None, keepdims: bool) -> Array:
    made = which(x, axis)
    if not keepdims:
        return made
    shape = [1] * x.ndim
    if axis is not None:
        shape = list(x.shape)
        shape[axis] = 1
    return raw.reshape(made, shape)


def argmax(x: TensorLike, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Returns the index of the maximum along an axis, the lowest index on ties; of the flattened array if `axis` is
    None.
    """
    return _extreme(raw.argmax, x, axis, keepdims)


def argmin(x: TensorLike, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Returns the index of the minimum along an axis, the lowest index on ties; of the flattened array if `axis` is
    None.
    """
    return _extreme(raw.argmin, x, axis, keepdims)


def nonzero(x: Any, /) -> tuple[Array, ...]:
    """Returns the indices of the nonzero elements, an array per axis."""
    if not x.ndim:
        refuse("nonzero", "expected rank >= 1, got a scalar", ValueError)
    return as_tuple(raw.unstack(raw.nonzero(x), 1))


def searchsorted(x1: TensorLike, x2: TensorLike, /, *, side: str = "left", sorter: TensorLike | None = None) -> Array:
    """Finds where values would be inserted into a sorted array: before equal elements ("left") or after them ("right")."""
    if side not in ("left", "right"):
        refuse("searchsorted", f"side must be 'left' or 'right', got {side!r}", ValueError)
    x1 = x1 if sorter is None else raw.gather(x1, sorter)
    return raw.searchsorted(x1, x2, side == "right")


def sort(x: TensorLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Sorts along an axis. The sort is stable."""
    return raw.sort(x, axis, descending)


def argsort(x: TensorLike, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """Returns the indices that sort along an axis. The sort is stable."""
    return raw.argsort(x, axis, descending)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Array:
    """Takes slices along an axis by index; negative indices count from the end."""
    if axis is None:
        if x.ndim != 1:
            refuse("take", f"axis must be given for rank {x.ndim}, got None", ValueError)
        axis = 0
    return raw.gather(x, _from_end(indices, x.shape[axis]), axis)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Array:
    """Takes one element per index along an axis; negative indices count from the end."""
    return raw.take_along_axis(x, _from_end(indices, x.shape[axis]), axis)


def _from_end(indices: TensorLike, count: int) -> Array:
    indices = _native.as_tensor(indices)
    indices = indices if indices.dtype in (dtypes.int32, dtypes.int64) else raw.cast(indices, dtypes.int64)
    return raw.where(indices < 0, indices + count, indices)


class UniqueAll(NamedTuple):
    """Unique values, the index of the first occurrence of each, the index of each element among them, and counts."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Unique values and their counts."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Unique values and the index of each element among them."""

    values: Array
    inverse_indices: Array


def _first(x: Any, inverse: Array, count: int) -> Array:
    """The index of the first occurrence of each unique value."""
    places = raw.range(0, x.size, 1, dtypes.int64)
    return raw.unsorted_segment_min(places, raw.reshape(inverse, [-1]), count)


def _unique(x: Any) -> tuple[Array, Array, Array]:
    """Unique values, inverse indices and counts. Complex numbers have NumPy's order: by real part, then by imaginary part."""
    if not x.dtype.is_complex:
        return raw.unique(x)
    _, row, _ = raw.unique(raw.real(x))
    columns, column, _ = raw.unique(raw.imag(x))
    pairs, inverse, counts = raw.unique(raw.cast(row, dtypes.int64) * len(columns) + raw.cast(column, dtypes.int64))
    return raw.gather(raw.reshape(x, [-1]), _first(x, inverse, len(pairs))), inverse, counts


def unique_all(x: Any, /) -> UniqueAll:
    """Finds the unique elements in ascending order, with first occurrences, inverse indices and counts."""
    values, inverse, counts = _unique(x)
    return UniqueAll(values, _first(x, inverse, len(values)), inverse, counts)


def unique_counts(x: TensorLike, /) -> UniqueCounts:
    """Finds the unique elements in ascending order and their counts."""
    values, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: TensorLike, /) -> UniqueInverse:
    """Finds the unique elements in ascending order and the index of each element among them."""
    values, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x: TensorLike, /) -> Array:
    """Finds the unique elements in ascending order."""
    return _unique(x)[0]
