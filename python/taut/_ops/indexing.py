"""Slicing, gathering and scattering."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import as_ints, as_shape, cast_to, check_choice, check_count, refuse, refuse_option, value_range
from .._native import Tensor, as_tensor, tensor_beside
from ..errors import DynamicShapeError

if TYPE_CHECKING:
    from .._typing import ShapeLike, TensorLike


def slice(input_: Any, begin: Any, size: Any, name: str | None = None) -> Tensor:
    """Extracts the slice that begins at `begin` and has this size; -1 stands for the rest of an axis."""
    x, sizes = as_tensor(input_), as_ints(size)
    if isinstance(begin, _native.Array) and begin.is_symbolic:
        starts: list[Any] = [begin[i] for i in builtins.range(len(sizes))]
    else:
        starts = list(begin) if not hasattr(begin, "tolist") else begin.tolist()
    if len(starts) != x.ndim or len(sizes) != x.ndim:
        refuse("slice", f"begin {starts} and size {sizes} are out of range for shape {x.shape}")
    plain = []
    for axis, (start, count) in enumerate(zip(starts, sizes)):
        if isinstance(start, _native.Array) and start.is_symbolic:
            if count < 0:
                text = f"the size of axis {axis} depends on the value of a traced begin, where size is {count}"
                refuse("slice", text, DynamicShapeError)
            x = raw.gather(x, raw.range(0, count, 1, start.dtype) + start, axis)
            plain.append(builtins.slice(None))
            continue
        start = int(start)
        end = x.shape[axis] if count == -1 else start + count
        if start < 0 or end < start or end > x.shape[axis]:
            refuse("slice", f"begin {starts} and size {sizes} are out of range for shape {x.shape}")
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
) -> Tensor:
    """Extracts `x[begin:end:strides]`, with one entry per axis.

    Bit `i` of a mask concerns entry `i`: its begin or end is left out, or it is an ellipsis, a new axis, or a single
    position.
    """
    refuse_option("strided_slice", "var", var, "assign to `variable[begin:end]` instead")
    begin, end = as_ints(begin), as_ints(end)
    strides = [1] * len(begin) if strides is None else as_ints(strides)
    if not (begin_mask or end_mask or ellipsis_mask or new_axis_mask or shrink_axis_mask):
        return raw.strided_slice(input_, begin, end, strides)
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
    return as_tensor(input_)[tuple(key)]


def gather(
    params: Any,
    indices: Any,
    validate_indices: bool | None = None,
    axis: Any = None,
    batch_dims: int = 0,
    name: str | None = None,
) -> Tensor:
    """Gathers slices along an axis by index. An index out of range is an error."""
    return raw.gather(params, indices, batch_dims if axis is None else axis, batch_dims)


def _ignores(function: str, policy: str) -> bool:
    """Whether coordinates out of range are left out; they are an error otherwise."""
    if policy == "":
        return False
    check_choice(function, "bad_indices_policy", policy, ("", "DEFAULT", "ERROR", "IGNORE"))
    return policy == "IGNORE"


def _are_inside(indices: Tensor, shape: Any, batch_dims: int = 0) -> Tensor:
    """Which coordinates, along the last axis, are in range."""
    sizes = as_tensor(np.array(shape[batch_dims : batch_dims + indices.shape[-1]], np.int64))
    places = cast_to(indices, dtypes.int64)
    return raw.all(raw.logical_and(places >= 0, places < sizes), -1)


def gather_nd(
    params: TensorLike,
    indices: TensorLike,
    batch_dims: int = 0,
    name: str | None = None,
    bad_indices_policy: str = "",
) -> Tensor:
    """Gathers slices at the coordinates along the last axis of `indices`.

    With the policy "IGNORE", the slice of coordinates out of range is zeros; they are an error otherwise.
    """
    if not _ignores("gather_nd", bad_indices_policy):
        return raw.gather_nd(params, indices, batch_dims)
    params, indices = as_tensor(params), as_tensor(indices)
    inside = _are_inside(indices, params.shape, batch_dims)
    slices = raw.gather_nd(params, raw.where(raw.expand_dims(inside, -1), indices, raw.zeros_like(indices)), batch_dims)
    inside = raw.reshape(inside, [*inside.shape, *[1] * (slices.ndim - inside.ndim)])
    return raw.where(inside, slices, raw.zeros_like(slices))


def boolean_mask(tensor: Any, mask: Any, axis: Any = None, name: str = "boolean_mask") -> Tensor:
    """Selects the slices where a mask, over the dimensions from `axis` on, is true. Those dimensions become one."""
    mask, axis = as_tensor(mask), 0 if axis is None else int(axis)
    if mask.dtype != dtypes.bool:
        mask = raw.cast(mask, dtypes.bool)
    if not is_static(mask) or not mask.ndim:
        return raw.boolean_mask(tensor, mask, axis)
    tensor = as_tensor(tensor)
    axis = axis + tensor.ndim if axis < 0 else axis
    shape = list(tensor.shape)
    if shape[axis : axis + mask.ndim] != list(mask.shape):
        return raw.boolean_mask(tensor, mask, axis)
    flat = raw.reshape(tensor, [*shape[:axis], mask.size, *shape[axis + mask.ndim :]])
    return raw.gather(flat, as_tensor(np.flatnonzero(np.asarray(mask))), axis)


def is_static(x: Tensor) -> bool:
    """Whether the value is known while a function is traced: ops whose result shape depends on values need that."""
    return _native.is_tracing() and not x.is_symbolic


def _truth(values: np.ndarray) -> np.ndarray:
    """Which elements are not zero; denormal numbers are zeros, as in ops."""
    if values.dtype not in (np.float32, np.float64):
        return values
    return ~(np.abs(values) < np.finfo(values.dtype).tiny)


def where(
    condition: TensorLike, x: TensorLike | None = None, y: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """Selects from `x` where the condition is true, else from `y`; without them, returns the int64 coordinates of true
    elements.
    """
    if x is None and y is None:
        condition = as_tensor(condition)
        return as_tensor(np.argwhere(_truth(np.asarray(condition)))) if is_static(condition) else raw.nonzero(condition)
    if x is None or y is None:
        refuse("where", "x and y must both be given, or neither", ValueError)
    return raw.where(condition, x, y)


def reverse_sequence(
    input: TensorLike,
    seq_lengths: TensorLike,
    seq_axis: int | None = None,
    batch_axis: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Reverses the first `seq_lengths[i]` elements along `seq_axis` of batch entry `i`."""
    x, lengths = as_tensor(input), as_tensor(seq_lengths)
    if seq_axis is None:
        refuse("reverse_sequence", "seq_axis must be given, got None", ValueError)
    batch_axis = 0 if batch_axis is None else batch_axis
    if x.ndim < 2:
        refuse("reverse_sequence", f"expected rank >= 2, got shape {x.shape}")
    if seq_axis % x.ndim == batch_axis % x.ndim:
        refuse("reverse_sequence", f"seq_axis and batch_axis must differ, got {seq_axis} for both")
    rows = raw.moveaxis(x, [batch_axis, seq_axis], [0, 1])
    if lengths.shape != rows.shape[:1]:
        refuse("reverse_sequence", f"seq_lengths must have shape ({rows.shape[0]},), got {lengths.shape}")
    steps = raw.reshape(raw.range(0, rows.shape[1], 1, lengths.dtype), [1, -1])
    ends = raw.expand_dims(lengths, -1)
    rows = raw.gather(rows, raw.where(steps < ends, ends - 1 - steps, steps), 1, 1)
    return raw.moveaxis(rows, [0, 1], [batch_axis, seq_axis])


def _inside_only(indices: TensorLike, updates: TensorLike, shape: Any) -> tuple[Tensor, Tensor]:
    """The coordinates in range, and their updates."""
    indices, updates = as_tensor(indices), as_tensor(updates)
    inside = _are_inside(indices, shape)
    return boolean_mask(indices, inside), boolean_mask(updates, inside)


def scatter_nd(
    indices: TensorLike,
    updates: TensorLike,
    shape: ShapeLike,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Scatters `updates` into a tensor of zeros; updates at equal coordinates add up. Of booleans, any of them.

    With the policy "IGNORE", updates at coordinates out of range are left out; they are an error otherwise.
    """
    updates = as_tensor(updates)
    if _ignores("scatter_nd", bad_indices_policy):
        indices, updates = _inside_only(indices, updates, as_shape(shape))
    if updates.dtype == dtypes.bool:
        return raw.not_equal(raw.scatter_nd(indices, raw.cast(updates, dtypes.int32), as_shape(shape)), 0)
    return raw.scatter_nd(indices, updates, as_shape(shape))


def _scatter(which: Any, tensor: TensorLike, indices: TensorLike, updates: TensorLike, policy: str = "") -> Tensor:
    tensor = as_tensor(tensor)
    updates = tensor_beside(updates, tensor.dtype)
    if _ignores("tensor_scatter_nd", policy):
        indices, updates = _inside_only(indices, updates, tensor.shape)
    return which(tensor, indices, updates)


def tensor_scatter_nd_update(
    tensor: TensorLike, indices: TensorLike, updates: TensorLike, name: str | None = None
) -> Tensor:
    """Replaces slices of a tensor at coordinates."""
    return _scatter(raw.tensor_scatter_update, tensor, indices, updates)


def tensor_scatter_nd_add(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Adds to slices of a tensor at coordinates; with the policy "IGNORE", of those in range."""
    return _scatter(raw.tensor_scatter_add, tensor, indices, updates, bad_indices_policy)


def tensor_scatter_nd_sub(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Subtracts from slices of a tensor at coordinates; with the policy "IGNORE", of those in range."""
    return _scatter(raw.tensor_scatter_sub, tensor, indices, updates, bad_indices_policy)


def tensor_scatter_nd_max(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Takes the maximum with slices of a tensor at coordinates; with the policy "IGNORE", of those in range."""
    return _scatter(raw.tensor_scatter_max, tensor, indices, updates, bad_indices_policy)


def tensor_scatter_nd_min(
    tensor: TensorLike,
    indices: TensorLike,
    updates: TensorLike,
    bad_indices_policy: str = "",
    name: str | None = None,
) -> Tensor:
    """Takes the minimum with slices of a tensor at coordinates; with the policy "IGNORE", of those in range."""
    return _scatter(raw.tensor_scatter_min, tensor, indices, updates, bad_indices_policy)


def dynamic_partition(
    data: TensorLike, partitions: TensorLike, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """Partitions the slices of `data` by partition number."""
    num_partitions = check_count("dynamic_partition", "num_partitions", int(num_partitions))
    data, partitions = as_tensor(data), as_tensor(partitions)
    if data.shape[: partitions.ndim] != partitions.shape:
        refuse(
            "dynamic_partition",
            f"the shape of partitions, {partitions.shape}, must be a prefix of that of data, {data.shape}",
        )
    if not partitions.is_symbolic and partitions.size:
        numbers = np.asarray(partitions)
        if numbers.min() < 0 or numbers.max() >= num_partitions:
            refuse(
                "dynamic_partition",
                f"partitions must be in [0, {num_partitions}), got values from {numbers.min()} to {numbers.max()}",
            )
    if partitions.is_symbolic:
        return [boolean_mask(data, partitions == number) for number in builtins.range(num_partitions)]
    # Sorted once: many partitions cost no more than one.
    known = np.asarray(partitions).reshape(-1)
    order, counts = np.argsort(known, kind="stable"), np.bincount(known, minlength=num_partitions)
    rows = raw.reshape(data, [known.size, *data.shape[partitions.ndim :]])
    return [raw.gather(rows, places, 0) for places in np.split(order, np.cumsum(counts)[:-1])][:num_partitions]


def dynamic_stitch(indices: Sequence, data: Sequence, name: str | None = None) -> Tensor:
    """Merges slices of several tensors by index; the last one wins on equal indices."""
    indices, data = [as_tensor(one) for one in indices], [as_tensor(one) for one in data]
    if not indices or len(indices) != len(data):
        refuse("dynamic_stitch", f"expected as many index tensors as data tensors, got {len(indices)} and {len(data)}")
    rest = data[0].shape[indices[0].ndim :]
    for places, rows in zip(indices, data):
        if rows.shape != places.shape + rest:
            refuse(
                "dynamic_stitch",
                f"data must have the shape of its indices, {places.shape}, followed by {rest}, got {rows.shape}",
            )
    places = raw.concat([raw.reshape(one, [-1, 1]) for one in indices], 0)
    rows = raw.concat([raw.reshape(one, [-1, *rest]) for one in data], 0)
    count = max(value_range(one)[1] for one in indices) + 1
    from .creation import zeros

    return raw.tensor_scatter_update(zeros([count, *rest], rows.dtype), places, rows)


def unravel_index(indices: TensorLike, dims: ShapeLike, name: str | None = None) -> Tensor:
    """Converts row-major flat indices to coordinates, along a new first axis."""
    indices, dims = as_tensor(indices), as_ints(dims)
    total = int(np.prod(dims))
    if not indices.is_symbolic and value_range(indices)[1] >= total:
        refuse("unravel_index", f"indices must be < {total}, got {value_range(indices)[1]}")
    made = []
    for dim in reversed(dims):
        made.append(indices % dim)
        indices = raw.floor_div(indices, dim)
    return raw.stack(made[::-1], 0)


def invert_permutation(x: TensorLike, name: str | None = None) -> Tensor:
    """Computes the inverse of a permutation."""
    x = as_tensor(x)
    if x.ndim != 1:
        refuse("invert_permutation", f"expected rank 1, got shape {x.shape}")
    if not x.is_symbolic and not np.array_equal(np.sort(np.asarray(x)), np.arange(len(x))):
        refuse("invert_permutation", f"expected each of 0 to {len(x) - 1} exactly once")
    places = raw.range(0, len(x), 1, x.dtype)
    return raw.scatter_nd(raw.reshape(x, [-1, 1]), places, [len(x)])
