"""Functions that create tensors."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from .. import _native, _raw_ops as raw, dtypes
from .._common import as_shape, as_tuple, cast_to, refuse, refuse_fraction, value_range
from .._native import Tensor, as_tensor
from .indexing import where

if TYPE_CHECKING:
    from .._typing import DTypeLike, ShapeLike, TensorLike


def zeros(shape: ShapeLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Creates a tensor of zeros; empty strings are those of strings."""
    if dtypes.as_dtype(dtype) == dtypes.string:
        return raw.broadcast_to(as_tensor(""), as_shape(shape))
    return raw.zeros(as_shape(shape), dtype)


def ones(shape: ShapeLike, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Creates a tensor of ones."""
    return raw.ones(as_shape(shape), dtype)


def fill(dims: ShapeLike, value: TensorLike, name: str | None = None) -> Tensor:
    """Creates a tensor filled with one scalar value."""
    return raw.broadcast_to(raw.reshape(value, []), as_shape(dims))


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> Tensor:
    """Creates a sequence of numbers in [start, limit) with step `delta`."""
    if limit is None:
        start, limit = 0, start
    given = (start, limit, delta)
    first, last, step = [value.item() if hasattr(value, "item") else value for value in given]
    if dtype is None:
        typed = [dtypes.as_dtype(value.dtype) for value in given if hasattr(value, "dtype")]
        whole = builtins.all(isinstance(value, int) for value in given if not hasattr(value, "dtype"))
        # The widest of the given types, in TensorFlow's order.
        order = (dtypes.int32, dtypes.int64, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
        typed.append(dtypes.int32 if whole else dtypes.float32)
        dtype = builtins.max(typed, key=lambda one: order.index(one) if one in order else -1)
    if (step > 0 and first > last) or (step < 0 and first < last):
        relation = "<=" if step > 0 else ">="
        refuse("range", f"start must be {relation} limit for a delta of {step}, got start={first} and limit={last}")
    return raw.range(first, last, step, dtype)


def linspace(start: Any, stop: Any, num: Any, name: str | None = None, axis: int = 0) -> Tensor:
    """Creates `num` evenly spaced values from `start` to `stop`, both included, along a new axis."""
    numbers = not (isinstance(start, _native.Array) or isinstance(stop, _native.Array))
    start, num = as_tensor(start), int(num)
    stop = as_tensor(stop, start.dtype) if not isinstance(stop, _native.Array) else stop
    if start.dtype.is_integer:
        start = raw.cast(start, dtypes.float32)
    if stop.dtype.is_complex and not start.dtype.is_complex:
        start = raw.cast(start, stop.dtype)
    stop = cast_to(stop, start.dtype)
    if num < 0:
        refuse("linspace", f"num must be >= 0, got {num}")
    is_complex = start.dtype.is_complex
    if numbers and not (start.ndim or stop.ndim or is_complex):
        return raw.linspace(float(start), float(stop), num, True, start.dtype)
    shape = (start + stop).shape
    axis = axis % (len(shape) + 1)
    steps = [num if i == axis else 1 for i in builtins.range(len(shape) + 1)]
    of_parts = start.dtype.real_dtype if is_complex else start.dtype
    part = raw.reshape(raw.linspace(0.0, 1.0, num, True, of_parts), steps)
    start, stop = (raw.expand_dims(raw.broadcast_to(end, shape), axis) for end in (start, stop))
    # The last value is exactly `stop`, free of rounding error.
    between = start + (stop - start) * (raw.cast(part, start.dtype) if is_complex else part)
    return raw.where(raw.equal(part, 1.0), stop, between) if num != 1 else start


def one_hot(
    indices: Any,
    depth: Any,
    on_value: Any = None,
    off_value: Any = None,
    axis: int | None = None,
    dtype: Any = None,
    name: str | None = None,
) -> Tensor:
    """Creates a one-hot tensor: a new axis of size `depth` with `on_value` at each index and `off_value` elsewhere."""
    given = [value for value in (on_value, off_value) if value is not None]
    if dtype is None:
        dtype = as_tensor(given[0]).dtype if given else dtypes.float32
    if dtypes.as_dtype(dtype) == dtypes.string:
        if len(given) < 2:
            refuse("one_hot", "on_value and off_value must both be given for strings", TypeError)
        hot = raw.one_hot(indices, depth, True, False, -1 if axis is None else axis, dtypes.bool)
        return where(hot, on_value, off_value)
    on, off = (
        default if value is None else value.item() if hasattr(value, "item") else value
        for value, default in ((on_value, 1), (off_value, 0))
    )
    if dtypes.as_dtype(dtype).is_integer:
        for value in (on, off):
            refuse_fraction("one_hot", value)
    return raw.one_hot(indices, depth, on, off, -1 if axis is None else axis, dtype)


def sequence_mask(
    lengths: TensorLike, maxlen: Any = None, dtype: DTypeLike = dtypes.bool, name: str | None = None
) -> Tensor:
    """Creates masks whose first `lengths[i]` elements are true, of size `maxlen` (default: the largest length)."""
    if lengths is None:
        raise ValueError("sequence_mask: lengths must be a tensor of integers, got None")
    lengths = as_tensor(lengths)
    if maxlen is None:
        maxlen = max(value_range(lengths)[1], 0)
    made = raw.range(0, int(maxlen), 1, lengths.dtype) < raw.expand_dims(lengths, -1)
    return cast_to(made, dtypes.as_dtype(dtype))


def meshgrid(*args: Any, indexing: str = "xy", name: str | None = None) -> list[Tensor]:
    """Creates coordinate tensors of an n-dimensional grid, one per axis. The coordinates of an axis are flattened."""
    parts = [as_tensor(one) for one in args]
    return list(
        as_tuple(raw.meshgrid([flat if flat.ndim < 2 else raw.reshape(flat, [-1]) for flat in parts], indexing))
    )


def eye(
    num_rows: Any,
    num_columns: Any = None,
    batch_shape: ShapeLike | None = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Creates identity matrices: ones on the diagonal, zeros elsewhere."""
    return raw.eye(num_rows, num_columns, [] if batch_shape is None else as_shape(batch_shape), dtype)
