"""Parts of tensors by position: slices, gathered and scattered rows, sorted and distinct elements."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _native, dtypes
from ._common import _as, _ends, _ints, _refuse, _shape, _weak

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

take_along_axis = op("take_along_axis")

_argsort = op("argsort")
_boolean_mask = op("boolean_mask")
_cast = op("cast")
_clip = op("clip_by_value")
_concat = op("concat")
_expand = op("expand_dims")
_floor_div = op("floor_div")
_full = op("full")
_gather = op("gather")
_gather_nd = op("gather_nd")
_moveaxis = op("moveaxis")
_nonzero = op("nonzero")
_range = op("range")
_reshape = op("reshape")
_scatter_nd = op("scatter_nd")
_scatter_add = op("tensor_scatter_add")
_scatter_max = op("tensor_scatter_max")
_scatter_min = op("tensor_scatter_min")
_scatter_sub = op("tensor_scatter_sub")
_scatter_update = op("tensor_scatter_update")
_searchsorted = op("searchsorted")
_segment_min = op("unsorted_segment_min")
_sort = op("sort")
_stack = op("stack")
_strided_slice = op("strided_slice")
_unique = op("unique")
_where = op("where")
_zeros = op("zeros")


# Slices.


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> _Tensor:  # noqa: A001
    """The part that begins at `begin` and has this size; -1 stands for all that is left of an axis.

    A `begin` that is known only when a traced function runs may be given if all sizes are.
    """
    x, sizes = _tensor(input_), _ints(size)
    if isinstance(begin, _native.Array) and begin.is_symbolic:
        starts = [begin[i] for i in builtins.range(len(sizes))]
    else:
        starts = list(begin) if not hasattr(begin, "tolist") else begin.tolist()
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        _refuse("slice", f"begin {starts} and size {sizes} for a tensor of shape {x.shape}")
    plain = []
    for axis, (start, count) in enumerate(zip(starts, sizes)):
        if isinstance(start, _native.Array) and start.is_symbolic:
            if count < 0:
                _refuse("slice", f"the size along axis {axis} is needed, since its begin is not known yet")
            x = _gather(x, _range(0, count, 1, start.dtype) + start, axis)
            plain.append(builtins.slice(None))
            continue
        start = int(start)
        end = x.shape[axis] if count == -1 else start + count
        if start < 0 or end < start or end > x.shape[axis]:
            _refuse("slice", f"begin {starts} and size {sizes} for a tensor of shape {x.shape}")
        plain.append(builtins.slice(start, end))
    return x[tuple(plain)]


def strided_slice(
    input_: Any,
    begin: Any,
    end: Any,
    strides: Any = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
    var: Any = None,
    name: str | None = None,
) -> _Tensor:
    """`x[begin:end:strides]`, an entry per axis.

    Bit `i` of a mask says something of entry `i`: that its begin or end is left out, or that it is an
    ellipsis, a new axis, or one position.
    """
    begin, end = _ints(begin), _ints(end)
    strides = [1] * len(begin) if strides is None else _ints(strides)
    if not (begin_mask or end_mask or ellipsis_mask or new_axis_mask or shrink_axis_mask):
        return _strided_slice(input_, begin, end, strides)
    key: list[Any] = []
    for i, (low, high, step) in enumerate(zip(begin, end, strides)):
        bit = 1 << i
        if ellipsis_mask & bit:
            key.append(...)
        elif new_axis_mask & bit:
            key.append(None)
        elif shrink_axis_mask & bit:
            key.append(low)
        else:
            low, high = None if begin_mask & bit else low, None if end_mask & bit else high
            key.append(builtins.slice(low, high, step))
    return _tensor(input_)[tuple(key)]


# Gathering.


def gather(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> _Tensor:
    """The slices along an axis that `indices` name. An index outside the axis is always an error."""
    return _gather(params, indices, batch_dims if axis is None else axis, batch_dims)


def gather_nd(params: Any, indices: Any, batch_dims: int = 0, name: str | None = None) -> _Tensor:
    """The slices at the coordinates along the last axis of `indices`."""
    return _gather_nd(params, indices, batch_dims)


def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> _Tensor:
    """The slices where a mask of the dimensions from `axis` on is true. Those dimensions become one."""
    mask, axis = _tensor(mask), 0 if axis is None else int(axis)
    if not _is_known(mask) or not mask.ndim:
        return _boolean_mask(tensor, mask, axis)
    tensor = _tensor(tensor)
    axis = axis + tensor.ndim if axis < 0 else axis
    shape = list(tensor.shape)
    if shape[axis : axis + mask.ndim] != list(mask.shape) or mask.dtype != dtypes.bool:
        return _boolean_mask(tensor, mask, axis)
    flat = _reshape(tensor, [*shape[:axis], mask.size, *shape[axis + mask.ndim :]])
    return _gather(flat, _tensor(np.flatnonzero(np.asarray(mask))), axis)


def _is_known(x: _Tensor) -> bool:
    """Whether a function that is being traced knows this value: ops that make sizes of it have no trace."""
    return _native.is_tracing() and not x.is_symbolic


def where(condition: Any, x: Any = None, y: Any = None, name: str | None = None) -> _Tensor:
    """`x` where the condition is true, `y` elsewhere; without them, int64 coordinates of what is true."""
    if x is None and y is None:
        condition = _tensor(condition)
        return _tensor(np.argwhere(np.asarray(condition))) if _is_known(condition) else _nonzero(condition)
    if x is None or y is None:
        _refuse("where", "x and y are both given, or neither is", ValueError)
    return _where(condition, x, y)


def reverse_sequence(
    input: Any,  # noqa: A002
    seq_lengths: Any,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
) -> _Tensor:
    """The first `seq_lengths[i]` elements along `seq_axis` of entry `i` of the batch in reverse order."""
    x, lengths = _tensor(input), _tensor(seq_lengths)
    if seq_axis is None:
        _refuse("reverse_sequence", "seq_axis is needed", ValueError)
    batch_axis = 0 if batch_axis is None else batch_axis
    if seq_axis % x.ndim == batch_axis % x.ndim:
        _refuse("reverse_sequence", f"seq_axis and batch_axis are one axis, {seq_axis}")
    rows = _moveaxis(x, [batch_axis, seq_axis], [0, 1])
    if lengths.shape != rows.shape[:1]:
        _refuse("reverse_sequence", f"lengths of shape {lengths.shape} for a batch of {rows.shape[0]}")
    steps = _reshape(_range(0, rows.shape[1], 1, lengths.dtype), [1, -1])
    ends = _expand(lengths, -1)
    rows = _gather(rows, _where(steps < ends, ends - 1 - steps, steps), 1, 1)
    return _moveaxis(rows, [0, 1], [batch_axis, seq_axis])


# Scattering.


def scatter_nd(indices: Any, updates: Any, shape: Any, name: str | None = None) -> _Tensor:
    """Zeros of this shape with `updates` added at the coordinates along the last axis of `indices`."""
    return _scatter_nd(indices, updates, _shape(shape))


def _scattered(which: Any, tensor: Any, indices: Any, updates: Any) -> _Tensor:
    tensor = _tensor(tensor)
    return which(tensor, indices, _weak(updates, tensor.dtype))


def tensor_scatter_nd_update(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> _Tensor:
    """The tensor with the slices at these coordinates replaced."""
    return _scattered(_scatter_update, tensor, indices, updates)


def tensor_scatter_nd_add(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> _Tensor:
    """The tensor with `updates` added to the slices at these coordinates."""
    return _scattered(_scatter_add, tensor, indices, updates)


def tensor_scatter_nd_sub(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> _Tensor:
    """The tensor with `updates` subtracted from the slices at these coordinates."""
    return _scattered(_scatter_sub, tensor, indices, updates)


def tensor_scatter_nd_max(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> _Tensor:
    """The tensor with the slices at these coordinates raised to `updates` where those are larger."""
    return _scattered(_scatter_max, tensor, indices, updates)


def tensor_scatter_nd_min(tensor: Any, indices: Any, updates: Any, name: str | None = None) -> _Tensor:
    """The tensor with the slices at these coordinates lowered to `updates` where those are smaller."""
    return _scattered(_scatter_min, tensor, indices, updates)


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[_Tensor]:
    """The slices of `data` by the number of the part they belong to. Parts may be of any size."""
    data, partitions = _tensor(data), _tensor(partitions)
    if data.shape[: partitions.ndim] != partitions.shape:
        _refuse("dynamic_partition", f"partitions of shape {partitions.shape} for data of shape {data.shape}")
    if not partitions.is_symbolic and partitions.size:
        numbers = np.asarray(partitions)
        if numbers.min() < 0 or numbers.max() >= num_partitions:
            _refuse("dynamic_partition", f"a number outside the {num_partitions} partitions")
    known = np.asarray(partitions) if _is_known(partitions) else partitions
    return [boolean_mask(data, known == number) for number in builtins.range(num_partitions)]


def dynamic_stitch(indices: Sequence, data: Sequence, name: str | None = None) -> _Tensor:
    """Slices of several tensors, each where its index says; of several for one place, the last stays."""
    indices, data = [_tensor(one) for one in indices], [_tensor(one) for one in data]
    if not indices or len(indices) != len(data):
        _refuse("dynamic_stitch", f"{len(indices)} lists of indices and {len(data)} of slices")
    rest = data[0].shape[indices[0].ndim :]
    for places, rows in zip(indices, data):
        if rows.shape != places.shape + rest:
            _refuse("dynamic_stitch", f"slices of shape {rows.shape} for indices of shape {places.shape}")
    places = _concat([_reshape(one, [-1, 1]) for one in indices], 0)
    rows = _concat([_reshape(one, [-1, *rest]) for one in data], 0)
    count = max(_ends(one)[1] for one in indices) + 1
    return _scatter_update(_zeros([count, *rest], rows.dtype), places, rows)


# Order.


def _descending(name: str, direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        _refuse(name, f"direction is 'ASCENDING' or 'DESCENDING', not {direction!r}", ValueError)
    return direction == "DESCENDING"


def sort(values: Any, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> _Tensor:
    """The elements in order along an axis."""
    return _sort(values, axis, _descending("sort", direction))


def argsort(
    values: Any, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> _Tensor:
    """The indices, int32, that sort the elements along an axis. Equal elements always keep their order."""
    return _cast(_argsort(values, axis, _descending("argsort", direction)), dtypes.int32)


def searchsorted(
    sorted_sequence: Any,
    values: Any,
    side: str = "left",
    out_type: Any = dtypes.int32,
    name: str | None = None,
) -> _Tensor:
    """Where each value would go in ascending sequences: before what equals it, or after it ("right")."""
    if side not in ("left", "right"):
        _refuse("searchsorted", f"side is 'left' or 'right', not {side!r}", ValueError)
    return _as(_searchsorted(sorted_sequence, values, side == "right"), dtypes.as_dtype(out_type))


class Unique(NamedTuple):
    """Distinct values, and for each element which of them it is."""

    y: _Tensor
    idx: _Tensor


class UniqueWithCounts(NamedTuple):
    """Distinct values, for each element which of them it is, and how often each occurs."""

    y: _Tensor
    idx: _Tensor
    count: _Tensor


def unique(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Unique:
    """The distinct elements of a vector, as they first occur, and which of them each element is."""
    return Unique(*_distinct("unique", x, out_idx)[:2])


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> UniqueWithCounts:
    """As `unique`, and how often each element occurs."""
    return UniqueWithCounts(*_distinct("unique_with_counts", x, out_idx))


def _distinct(name: str, x: Any, out_idx: Any) -> tuple[_Tensor, _Tensor, _Tensor]:
    x, dtype = _tensor(x), dtypes.as_dtype(out_idx)
    if x.ndim != 1:
        _refuse(name, f"a vector is needed, not shape {x.shape}")
    values, which, counts = _unique(x)
    first = _segment_min(_range(0, len(x), 1, dtypes.int64), which, len(values))
    order = _argsort(first)
    place = _argsort(order)
    return _gather(values, order), _as(_gather(place, which), dtype), _as(_gather(counts, order), dtype)


def unravel_index(indices: Any, dims: Any, name: str | None = None) -> _Tensor:
    """Positions in row-major order as coordinates, along a new first axis."""
    indices, dims = _tensor(indices), _ints(dims)
    total = int(np.prod(dims))
    if not indices.is_symbolic and _ends(indices)[1] >= total:
        _refuse("unravel_index", f"index {_ends(indices)[1]} is outside a shape of {total} elements")
    made = []
    for dim in reversed(dims):
        made.append(indices % dim)
        indices = _floor_div(indices, dim)
    return _stack(made[::-1], 0)


def histogram_fixed_width_bins(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> _Tensor:
    """Which of `nbins` equal bins each value falls into; what lies outside is in the first or the last."""
    values, nbins = _tensor(values), int(nbins)
    low, high = (float(end) for end in value_range)
    if nbins < 1 or not low < high:
        _refuse("histogram_fixed_width", f"{nbins} bins from {low} to {high}")
    values = values if values.dtype.is_floating else _cast(values, dtypes.float64)
    place = _clip((values - low) / (high - low) * nbins, 0.0, float(nbins - 1))
    return _cast(place, dtypes.as_dtype(dtype))


def histogram_fixed_width(
    values: Any, value_range: Any, nbins: Any = 100, dtype: Any = dtypes.int32, name: str | None = None
) -> _Tensor:
    """How many values fall into each of `nbins` bins of equal width."""
    places = _reshape(histogram_fixed_width_bins(values, value_range, nbins), [-1, 1])
    return _scatter_nd(places, _full([places.shape[0]], 1, dtypes.as_dtype(dtype)), [int(nbins)])
