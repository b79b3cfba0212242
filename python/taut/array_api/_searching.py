"""Functions that search, sort and find what is distinct."""

from __future__ import annotations

from typing import Any, NamedTuple

from .. import _native, dtypes
from .._common import _refuse, _several

op = _native.Op
Array = _native.Tensor

where = op("where", params=["condition", "x1", "x2"])

_argmax = op("argmax")
_argmin = op("argmin")
_argsort = op("argsort")
_cast = op("cast")
_gather = op("gather")
_nonzero = op("nonzero")
_range = op("range")
_reshape = op("reshape")
_searchsorted = op("searchsorted")
_segment_min = op("unsorted_segment_min")
_sort = op("sort")
_take = op("take_along_axis")
_unique = op("unique")
_unstack = op("unstack")


def _extreme(which: Any, x: Any, axis: int | None, keepdims: bool) -> Array:
    made = which(x, axis)
    if not keepdims:
        return made
    shape = [1] * x.ndim
    if axis is not None:
        shape = list(x.shape)
        shape[axis] = 1
    return _reshape(made, shape)


def argmax(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the largest element is, the first of several; in row-major order, without an axis."""
    return _extreme(_argmax, x, axis, keepdims)


def argmin(x: Any, /, *, axis: int | None = None, keepdims: bool = False) -> Array:
    """Where the smallest element is, the first of several; in row-major order, without an axis."""
    return _extreme(_argmin, x, axis, keepdims)


def nonzero(x: Any, /) -> tuple[Array, ...]:
    """The positions of the elements that are not zero, an array per axis."""
    if not x.ndim:
        _refuse("nonzero", "an array without dimensions has no positions", ValueError)
    return _several(_unstack(_nonzero(x), 1))


def searchsorted(x1: Any, x2: Any, /, *, side: str = "left", sorter: Any = None) -> Array:
    """Where each value would go in an ascending array: before what equals it, or after it ("right")."""
    if side not in ("left", "right"):
        _refuse("searchsorted", f"side is 'left' or 'right', not {side!r}", ValueError)
    x1 = x1 if sorter is None else _gather(x1, sorter)
    return _searchsorted(x1, x2, side == "right")


def sort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The elements in order along an axis."""
    return _sort(x, axis, descending)


def argsort(x: Any, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Array:
    """The positions that put the elements in order along an axis. Equal elements always keep their order."""
    return _argsort(x, axis, descending)


def take(x: Any, indices: Any, /, *, axis: int | None = None) -> Array:
    """The slices along an axis that a list of positions names; negative ones count from the end."""
    if axis is None:
        if x.ndim != 1:
            _refuse("take", f"an axis is needed for an array of shape {x.shape}", ValueError)
        axis = 0
    return _gather(x, _from_end(indices, x.shape[axis]), axis)


def take_along_axis(x: Any, indices: Any, /, *, axis: int = -1) -> Array:
    """One element per position along an axis; negative ones count from the end."""
    return _take(x, _from_end(indices, x.shape[axis]), axis)


def _from_end(indices: Any, count: int) -> Array:
    indices = _native.as_tensor(indices)
    indices = indices if indices.dtype in (dtypes.int32, dtypes.int64) else _cast(indices, dtypes.int64)
    return where(indices < 0, indices + count, indices)


class UniqueAll(NamedTuple):
    """Distinct values, where each first occurs, which each element is, and how often each occurs."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """Distinct values, and how often each occurs."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """Distinct values, and which each element is."""

    values: Array
    inverse_indices: Array


def unique_all(x: Any, /) -> UniqueAll:
    """The distinct elements in ascending order, and everything about them."""
    values, inverse, counts = _unique(x)
    places = _range(0, x.size, 1, dtypes.int64)
    first = _segment_min(places, _reshape(inverse, [-1]), len(values))
    return UniqueAll(values, first, inverse, counts)


def unique_counts(x: Any, /) -> UniqueCounts:
    """The distinct elements in ascending order, and how often each occurs."""
    values, _, counts = _unique(x)
    return UniqueCounts(values, counts)


def unique_inverse(x: Any, /) -> UniqueInverse:
    """The distinct elements in ascending order, and which each element is."""
    values, inverse, _ = _unique(x)
    return UniqueInverse(values, inverse)


def unique_values(x: Any, /) -> Array:
    """The distinct elements in ascending order."""
    return _unique(x)[0]
