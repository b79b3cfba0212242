"""Shapes, axes, joining and splitting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import taut as tf
from taut.keras.backend.convert import (
    axes_of,
    broadcast_shape,
    convert_to_tensor,
    floating,
    is_float,
    promote,
    shape_of,
    slice_axis,
)


def ndim(x: Any) -> int:
    """The number of axes."""
    return len(convert_to_tensor(x).shape)


def size(x: Any) -> tf.Tensor:
    """The number of elements."""
    return tf.size(convert_to_tensor(x))


def reshape(x: Any, newshape: Any) -> tf.Tensor:
    """Reshapes a tensor; one size may be -1."""
    x = convert_to_tensor(x)
    if isinstance(newshape, (int, np.integer)):
        newshape = [newshape]
    return tf.reshape(x, newshape if tf.is_tensor(newshape) else [int(dim) for dim in newshape])


def ravel(x: Any) -> tf.Tensor:
    """Flattens a tensor."""
    return tf.reshape(convert_to_tensor(x), [-1])


def broadcast_to(x: Any, shape: Sequence[int]) -> tf.Tensor:
    """Broadcasts to `shape`."""
    return tf.broadcast_to(convert_to_tensor(x), [int(dim) for dim in shape])


def expand_dims(x: Any, axis: int | Sequence[int]) -> tf.Tensor:
    """Inserts axes of size 1."""
    x = convert_to_tensor(x)
    axes = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    for one in axes_of(axes, len(x.shape) + len(axes)):
        x = tf.expand_dims(x, one)
    return x


def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> tf.Tensor:
    """Removes axes of size 1."""
    x = convert_to_tensor(x)
    shape = shape_of(x)
    axes = [i for i, dim in enumerate(shape) if dim == 1] if axis is None else axes_of(axis, len(shape))
    for one in axes:
        if shape[one] != 1:
            raise ValueError(f"`squeeze` needs size 1 along axis {one}. Received: shape {shape}")
    return tf.reshape(x, [dim for i, dim in enumerate(shape) if i not in axes])


def transpose(x: Any, axes: Sequence[int] | None = None) -> tf.Tensor:
    """Permutes the axes; reverses them by default."""
    x = convert_to_tensor(x)
    rank = len(x.shape)
    return tf.transpose(x, list(range(rank))[::-1] if axes is None else [int(axis) % rank for axis in axes])


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> tf.Tensor:
    """Moves axes to new positions; the others keep their order."""
    x = convert_to_tensor(x)
    rank = len(x.shape)
    sources = [s % rank for s in ([source] if isinstance(source, int) else source)]
    places = [d % rank for d in ([destination] if isinstance(destination, int) else destination)]
    if len(sources) != len(places):
        raise ValueError(f"`source` and `destination` must have one length. Received: {source} and {destination}")
    order = [axis for axis in range(rank) if axis not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return tf.transpose(x, order)


def swapaxes(x: Any, axis1: int, axis2: int) -> tf.Tensor:
    """Swaps two axes."""
    x = convert_to_tensor(x)
    order = list(range(len(x.shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return tf.transpose(x, order)


def flip(x: Any, axis: int | Sequence[int] | None = None) -> tf.Tensor:
    """Reverses the order of elements along axes, by default along all."""
    x = convert_to_tensor(x)
    return tf.reverse(x, axes_of(axis, len(x.shape)))


def fliplr(x: Any) -> tf.Tensor:
    """Reverses the second axis."""
    return flip(x, 1)


def flipud(x: Any) -> tf.Tensor:
    """Reverses the first axis."""
    return flip(x, 0)


def rot90(array: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> tf.Tensor:
    """Rotates by `k` times 90 degrees in the plane of two axes."""
    array = convert_to_tensor(array)
    rank = len(array.shape)
    if rank < 2:
        raise ValueError(f"Input array must have at least 2 dimensions. Received: array.ndim={rank}")
    first, second = (axis % rank for axis in axes) if len(axes) == 2 else (0, 0)
    if first == second:
        raise ValueError(f"Invalid axes: {axes}. Axes must be a tuple of two different dimensions.")
    turns = k % 4
    if turns in (1, 2):
        array = tf.reverse(array, [second])
    if turns in (2, 3):
        array = tf.reverse(array, [first])
    return swapaxes(array, first, second) if turns % 2 else array


def roll(x: Any, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> tf.Tensor:
    """Rolls elements along axes."""
    x = convert_to_tensor(x)
    if axis is None:
        return tf.reshape(tf.roll(tf.reshape(x, [-1]), shift, 0), x.shape)
    return tf.roll(x, shift, axis)


def tile(x: Any, repeats: int | Sequence[int]) -> tf.Tensor:
    """Repeats the tensor along its axes."""
    x = convert_to_tensor(x)
    repeats = [repeats] if isinstance(repeats, (int, np.integer)) else [int(r) for r in repeats]
    shape = shape_of(x)
    rank = max(len(shape), len(repeats))
    x = tf.reshape(x, [1] * (rank - len(shape)) + list(shape))
    return tf.tile(x, [1] * (rank - len(repeats)) + repeats)


def repeat(x: Any, repeats: Any, axis: int | None = None) -> tf.Tensor:
    """Repeats elements along an axis."""
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    return tf.repeat(x, repeats, axis=axis)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> tf.Tensor:
    """Pads a tensor along every axis."""
    x = convert_to_tensor(x)
    if mode != "constant" and constant_values is not None:
        raise ValueError(
            f"Argument `constant_values` can only be provided when `mode == 'constant'`. Received: mode={mode}"
        )
    widths = np.broadcast_to(np.asarray(pad_width, dtype="int64"), (len(x.shape), 2)).tolist()
    if mode == "constant":
        if constant_values is None or isinstance(constant_values, (bool, int, float)):
            return tf.pad(x, widths, constant_values=constant_values or 0)
        inside = tf.pad(tf.ones(x.shape, "bool"), widths)
        return tf.where(inside, tf.pad(x, widths), convert_to_tensor(constant_values, x.dtype))
    if mode in ("reflect", "symmetric"):
        return tf.pad(x, widths, mode=mode.upper())
    if mode not in PAD_MODES:
        raise ValueError(f"`mode` must be one of {', '.join(PAD_MODES)}. Received: mode={mode!r}")
    for axis, (before, after) in enumerate(widths):
        if before or after:
            x = pad_axis(x, axis, before, after, mode)
    return x


PAD_MODES = (
    "circular",
    "constant",
    "edge",
    "empty",
    "linear_ramp",
    "maximum",
    "mean",
    "minimum",
    "reflect",
    "symmetric",
    "wrap",
)


def pad_axis(x: tf.Tensor, axis: int, before: int, after: int, mode: str) -> tf.Tensor:
    """Pads one axis as NumPy does; "empty" pads with zeros, and "circular" is "wrap"."""
    count = shape_of(x)[axis]
    places = np.arange(-before, count + after)
    if mode in ("edge", "wrap", "circular"):
        places = np.clip(places, 0, count - 1) if mode == "edge" else places % count
        return tf.gather(x, places.astype("int32"), axis=axis)
    widths = [[before, after] if i == axis else [0, 0] for i in range(len(x.shape))]
    if mode == "empty":
        return tf.pad(x, widths)
    inside = tf.reshape(tf.constant((places >= 0) & (places < count)), broadcast_shape(axis, len(x.shape)))
    if mode == "linear_ramp":
        # From 0 at the ends to the edge.
        parts = [np.arange(before) / max(before, 1), np.ones(count), np.arange(after)[::-1] / max(after, 1)]
        edge = floating(pad_axis(x, axis, before, after, "edge"))
        around = edge * tf.reshape(tf.constant(np.concatenate(parts), edge.dtype), broadcast_shape(axis, len(x.shape)))
        around = around if is_float(x) else tf.floor(around)
    elif mode == "mean":
        mean = tf.reduce_mean(floating(x), axis, keepdims=True)
        around = mean if is_float(x) else tf.round(mean)
    else:
        around = (tf.reduce_max if mode == "maximum" else tf.reduce_min)(x, axis, keepdims=True)
    return tf.where(inside, tf.pad(x, widths), tf.cast(around, x.dtype))


# Joining and splitting.


def concatenate(xs: Sequence[Any], axis: int | None = 0) -> tf.Tensor:
    """Concatenates tensors along an axis; flattens them without one."""
    xs = promote(*xs)
    if axis is None:
        return tf.concat([tf.reshape(x, [-1]) for x in xs], axis=0)
    return tf.concat(xs, axis=axis)


def append(x1: Any, x2: Any, axis: int | None = None) -> tf.Tensor:
    """Appends `x2` to `x1`."""
    return concatenate([x1, x2], axis=axis)


def stack(x: Any, axis: int = 0) -> tf.Tensor:
    """Stacks tensors along a new axis."""
    if tf.is_tensor(x):
        x = tf.unstack(x)
    return tf.stack(promote(*x), axis=axis)


def at_least(x: tf.Tensor, rank: int) -> tf.Tensor:
    """Adds axes of size 1 as NumPy's `atleast_nd` does."""
    shape = list(shape_of(x))
    if len(shape) == 0:
        shape = [1]
    if len(shape) == 1 and rank > 1:
        shape = [1, *shape]
    if len(shape) == 2 and rank > 2:
        shape = [*shape, 1]
    return tf.reshape(x, shape)


def hstack(xs: Sequence[Any]) -> tf.Tensor:
    """Concatenates along the second axis, or the only one."""
    xs = [at_least(x, 1) for x in promote(*xs)]
    return tf.concat(xs, axis=0 if len(xs[0].shape) == 1 else 1)


def vstack(xs: Sequence[Any]) -> tf.Tensor:
    """Concatenates along the first axis; vectors to a vector, as with TensorFlow."""
    return tf.concat(promote(*xs), axis=0)


def dstack(xs: Sequence[Any]) -> tf.Tensor:
    """Concatenates along the third axis."""
    return tf.concat([at_least(x, 3) for x in promote(*xs)], axis=2)


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[tf.Tensor]:
    """Splits along an axis into equal parts, or at the given indices."""
    x = convert_to_tensor(x)
    whole = shape_of(x)[axis]
    if isinstance(indices_or_sections, (int, np.integer)):
        if whole % indices_or_sections:
            raise ValueError(
                f"The size of the axis, {whole}, must be a multiple of the number of sections. Received: {indices_or_sections}"
            )
        return list(tf.split(x, int(indices_or_sections), axis=axis))
    places = [min(max(int(i) + whole if int(i) < 0 else int(i), 0), whole) for i in indices_or_sections]
    sizes = [max(b - a, 0) for a, b in zip([0, *places], [*places, whole])]
    if sum(sizes) == whole:
        return list(tf.split(x, sizes, axis=axis))
    return [slice_axis(x, axis, start, start + length) for start, length in zip([0, *places], sizes)]


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[tf.Tensor]:
    """Splits along an axis into parts whose sizes differ by at most one."""
    x = convert_to_tensor(x)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return split(x, indices_or_sections, axis)
    each, more = divmod(shape_of(x)[axis], int(indices_or_sections))
    sizes = [each + 1] * more + [each] * (int(indices_or_sections) - more)
    return list(tf.split(x, sizes, axis=axis))


def hsplit(x: Any, indices_or_sections: Any) -> list[tf.Tensor]:
    """Splits along the second axis, or the only one."""
    x = convert_to_tensor(x)
    return split(x, indices_or_sections, axis=0 if len(x.shape) == 1 else 1)


def vsplit(x: Any, indices_or_sections: Any) -> list[tf.Tensor]:
    """Splits along the first axis."""
    return split(x, indices_or_sections, axis=0)


def dsplit(x: Any, indices_or_sections: Any) -> list[tf.Tensor]:
    """Splits along the third axis."""
    return split(x, indices_or_sections, axis=2)


def meshgrid(*x: Any, indexing: str = "xy") -> list[tf.Tensor]:
    """Creates coordinate tensors of a grid."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"`indexing` must be 'xy' or 'ij'. Received: indexing={indexing}")
    axes = [tf.reshape(convert_to_tensor(each), [-1]) for each in x]
    return list(tf.meshgrid(*axes, indexing=indexing))


# Diagonals and triangles.


def offsets(x: tf.Tensor) -> np.ndarray:
    """Column minus row, for every position of the last two axes."""
    *_, rows, columns = shape_of(x)
    return np.arange(columns)[None, :] - np.arange(rows)[:, None]


def tril(x: Any, k: int = 0) -> tf.Tensor:
    """Sets elements above diagonal `k` to zero."""
    x = convert_to_tensor(x)
    return tf.where(offsets(x) <= int(k), x, tf.zeros_like(x))


def triu(x: Any, k: int = 0) -> tf.Tensor:
    """Sets elements below diagonal `k` to zero."""
    x = convert_to_tensor(x)
    return tf.where(offsets(x) >= int(k), x, tf.zeros_like(x))


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> tf.Tensor:
    """Returns a diagonal of two axes, along a new last axis."""
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    *front, rows, columns = shape_of(x)
    count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = offset if offset >= 0 else -offset * columns
    places = [start + i * (columns + 1) for i in range(count)]
    flat = tf.reshape(x, [*front, rows * columns])
    return tf.gather(flat, np.asarray(places, dtype="int32"), axis=-1)


def diag(x: Any, k: int = 0) -> tf.Tensor:
    """Returns diagonal `k` of a matrix, or creates a matrix from a diagonal."""
    x = convert_to_tensor(x)
    if len(x.shape) == 2:
        return diagonal(x, offset=k)
    if len(x.shape) != 1:
        raise ValueError(f"`x` must be 1-D or 2-D. Received: x.shape={shape_of(x)}")
    return diagflat(x, k)


def diagflat(x: Any, k: int = 0) -> tf.Tensor:
    """Creates a matrix with the flattened `x` on diagonal `k`."""
    return tf.linalg.diag(ravel(x), k=k)
