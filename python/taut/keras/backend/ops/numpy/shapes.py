"""The same elements in other places: shapes, axes, joins, splits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import taut as tf
from taut.keras.backend.convert import axes_of, convert_to_tensor, cut, shape_of, size_of, together

__all__ = [
    "append",
    "array_split",
    "broadcast_to",
    "concatenate",
    "diag",
    "diagflat",
    "diagonal",
    "dsplit",
    "dstack",
    "expand_dims",
    "flip",
    "fliplr",
    "flipud",
    "hsplit",
    "hstack",
    "meshgrid",
    "moveaxis",
    "ndim",
    "pad",
    "ravel",
    "repeat",
    "reshape",
    "roll",
    "rot90",
    "size",
    "split",
    "squeeze",
    "stack",
    "swapaxes",
    "tile",
    "transpose",
    "tril",
    "triu",
    "vsplit",
    "vstack",
]


def ndim(x: Any) -> int:
    """The number of axes."""
    return len(convert_to_tensor(x).shape)


def size(x: Any) -> int:
    """The number of elements."""
    return size_of(shape_of(convert_to_tensor(x)))


def reshape(x: Any, newshape: Any) -> tf.Tensor:
    """The elements in another shape; one size may be -1, for all that is left."""
    x = convert_to_tensor(x)
    if isinstance(newshape, (int, np.integer)):
        newshape = [newshape]
    return tf.reshape(x, newshape if tf.is_tensor(newshape) else [int(dim) for dim in newshape])


def ravel(x: Any) -> tf.Tensor:
    """The elements along one axis."""
    return tf.reshape(convert_to_tensor(x), [-1])


def broadcast_to(x: Any, shape: Sequence[int]) -> tf.Tensor:
    """`x`, repeated along axes of size 1 and new ones until it has `shape`."""
    return tf.broadcast_to(convert_to_tensor(x), [int(dim) for dim in shape])


def expand_dims(x: Any, axis: int | Sequence[int]) -> tf.Tensor:
    """`x` with further axes of size 1, at the given places of the result."""
    x = convert_to_tensor(x)
    axes = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    for one in axes_of(axes, len(x.shape) + len(axes)):
        x = tf.expand_dims(x, one)
    return x


def squeeze(x: Any, axis: int | Sequence[int] | None = None) -> tf.Tensor:
    """`x` without the given axes, which have size 1; by default without all of those."""
    x = convert_to_tensor(x)
    shape = shape_of(x)
    axes = [i for i, dim in enumerate(shape) if dim == 1] if axis is None else axes_of(axis, len(shape))
    for one in axes:
        if shape[one] != 1:
            raise ValueError(f"Cannot squeeze axis {one} of a tensor of shape {shape}: its size is not 1.")
    return tf.reshape(x, [dim for i, dim in enumerate(shape) if i not in axes])


def transpose(x: Any, axes: Sequence[int] | None = None) -> tf.Tensor:
    """`x` with its axes in another order, by default the other way round."""
    x = convert_to_tensor(x)
    rank = len(x.shape)
    return tf.transpose(x, list(range(rank))[::-1] if axes is None else [int(axis) % rank for axis in axes])


def moveaxis(x: Any, source: int | Sequence[int], destination: int | Sequence[int]) -> tf.Tensor:
    """`x` with the `source` axes moved to `destination`; the others keep their order."""
    x = convert_to_tensor(x)
    rank = len(x.shape)
    sources = [s % rank for s in ([source] if isinstance(source, int) else source)]
    places = [d % rank for d in ([destination] if isinstance(destination, int) else destination)]
    if len(sources) != len(places):
        raise ValueError(f"`source` and `destination` differ in length: {source} and {destination}")
    order = [axis for axis in range(rank) if axis not in sources]
    for place, axis in sorted(zip(places, sources)):
        order.insert(place, axis)
    return tf.transpose(x, order)


def swapaxes(x: Any, axis1: int, axis2: int) -> tf.Tensor:
    """`x` with two axes exchanged."""
    x = convert_to_tensor(x)
    order = list(range(len(x.shape)))
    order[axis1], order[axis2] = order[axis2], order[axis1]
    return tf.transpose(x, order)


def flip(x: Any, axis: int | Sequence[int] | None = None) -> tf.Tensor:
    """`x`, backwards along the given axes, by default along all."""
    x = convert_to_tensor(x)
    return tf.reverse(x, axes_of(axis, len(x.shape)))


def fliplr(x: Any) -> tf.Tensor:
    """`x`, backwards along its second axis."""
    return flip(x, 1)


def flipud(x: Any) -> tf.Tensor:
    """`x`, backwards along its first axis."""
    return flip(x, 0)


def rot90(array: Any, k: int = 1, axes: Sequence[int] = (0, 1)) -> tf.Tensor:
    """`array`, turned by `k` right angles, from the first of two axes towards the second."""
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
    """`x`, moved by `shift` along its axes; what leaves at one end enters at the other."""
    x = convert_to_tensor(x)
    if axis is None:
        return tf.reshape(tf.roll(tf.reshape(x, [-1]), shift, 0), x.shape)
    return tf.roll(x, shift, axis)


def tile(x: Any, repeats: int | Sequence[int]) -> tf.Tensor:
    """`x`, repeated as a whole along its axes."""
    x = convert_to_tensor(x)
    repeats = [repeats] if isinstance(repeats, (int, np.integer)) else [int(r) for r in repeats]
    shape = shape_of(x)
    rank = max(len(shape), len(repeats))
    x = tf.reshape(x, [1] * (rank - len(shape)) + list(shape))
    return tf.tile(x, [1] * (rank - len(repeats)) + repeats)


def repeat(x: Any, repeats: Any, axis: int | None = None) -> tf.Tensor:
    """`x` with every part along an axis repeated."""
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    return tf.repeat(x, repeats, axis=axis)


def pad(x: Any, pad_width: Any, mode: str = "constant", constant_values: Any = None) -> tf.Tensor:
    """`x` with elements added before and after it along every axis."""
    x = convert_to_tensor(x)
    if mode != "constant" and constant_values is not None:
        raise ValueError(
            "Argument `constant_values` can only be provided when `mode == 'constant'`. "
            f"Received: mode={mode}"
        )
    widths = np.broadcast_to(np.asarray(pad_width, dtype="int64"), (len(x.shape), 2)).tolist()
    if mode == "constant":
        if constant_values is None or isinstance(constant_values, (bool, int, float)):
            return tf.pad(x, widths, constant_values=constant_values or 0)
        inside = tf.pad(tf.ones(x.shape, "bool"), widths)
        return tf.where(inside, tf.pad(x, widths), convert_to_tensor(constant_values, x.dtype))
    if mode in ("reflect", "symmetric"):
        return tf.pad(x, widths, mode=mode.upper())
    if mode not in ("edge", "wrap"):
        raise NotImplementedError(f"keras.ops.pad with mode={mode!r} is not there yet on the taut backend")
    for axis, (before, after) in enumerate(widths):
        if before or after:
            count = shape_of(x)[axis]
            places = np.arange(-before, count + after)
            places = np.clip(places, 0, count - 1) if mode == "edge" else places % count
            x = tf.gather(x, places.astype("int32"), axis=axis)
    return x


# Joining and splitting.


def concatenate(xs: Sequence[Any], axis: int | None = 0) -> tf.Tensor:
    """Tensors, one after the other along an axis; without an axis, all their elements."""
    xs = together(*xs)
    if axis is None:
        return tf.concat([tf.reshape(x, [-1]) for x in xs], axis=0)
    return tf.concat(xs, axis=axis)


def append(x1: Any, x2: Any, axis: int | None = None) -> tf.Tensor:
    """`x2` after `x1`."""
    return concatenate([x1, x2], axis=axis)


def stack(x: Any, axis: int = 0) -> tf.Tensor:
    """Tensors of one shape along a new axis."""
    if tf.is_tensor(x):
        x = tf.unstack(x)
    return tf.stack(together(*x), axis=axis)


def at_least(x: tf.Tensor, rank: int) -> tf.Tensor:
    """`x` with axes of size 1, as NumPy adds them: in front, and for the third axis at the end."""
    shape = list(shape_of(x))
    if len(shape) == 0:
        shape = [1]
    if len(shape) == 1 and rank > 1:
        shape = [1, *shape]
    if len(shape) == 2 and rank > 2:
        shape = [*shape, 1]
    return tf.reshape(x, shape)


def hstack(xs: Sequence[Any]) -> tf.Tensor:
    """Tensors side by side: along the second axis, or the only one."""
    xs = [at_least(x, 1) for x in together(*xs)]
    return tf.concat(xs, axis=0 if len(xs[0].shape) == 1 else 1)


def vstack(xs: Sequence[Any]) -> tf.Tensor:
    """Tensors below each other: along the first axis."""
    return tf.concat([at_least(x, 2) for x in together(*xs)], axis=0)


def dstack(xs: Sequence[Any]) -> tf.Tensor:
    """Tensors behind each other: along the third axis."""
    return tf.concat([at_least(x, 3) for x in together(*xs)], axis=2)


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[tf.Tensor]:
    """Parts of `x` along an axis: so many of equal size, or those between the given places."""
    x = convert_to_tensor(x)
    whole = shape_of(x)[axis]
    if isinstance(indices_or_sections, (int, np.integer)):
        if whole % indices_or_sections:
            raise ValueError(f"An axis of size {whole} has no {indices_or_sections} parts of equal size.")
        return list(tf.split(x, int(indices_or_sections), axis=axis))
    places = [min(max(int(i) + whole if int(i) < 0 else int(i), 0), whole) for i in indices_or_sections]
    sizes = [max(b - a, 0) for a, b in zip([0, *places], [*places, whole])]
    if sum(sizes) == whole:
        return list(tf.split(x, sizes, axis=axis))
    return [cut(x, axis, start, start + length) for start, length in zip([0, *places], sizes)]


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[tf.Tensor]:
    """Parts of `x` along an axis, which may differ in size by one."""
    x = convert_to_tensor(x)
    if not isinstance(indices_or_sections, (int, np.integer)):
        return split(x, indices_or_sections, axis)
    each, more = divmod(shape_of(x)[axis], int(indices_or_sections))
    sizes = [each + 1] * more + [each] * (int(indices_or_sections) - more)
    return list(tf.split(x, sizes, axis=axis))


def hsplit(x: Any, indices_or_sections: Any) -> list[tf.Tensor]:
    """Parts of `x` along its second axis, or its only one."""
    x = convert_to_tensor(x)
    return split(x, indices_or_sections, axis=0 if len(x.shape) == 1 else 1)


def vsplit(x: Any, indices_or_sections: Any) -> list[tf.Tensor]:
    """Parts of `x` along its first axis."""
    return split(x, indices_or_sections, axis=0)


def dsplit(x: Any, indices_or_sections: Any) -> list[tf.Tensor]:
    """Parts of `x` along its third axis."""
    return split(x, indices_or_sections, axis=2)


def meshgrid(*x: Any, indexing: str = "xy") -> list[tf.Tensor]:
    """The coordinates of a grid, as tensors of its shape."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"`indexing` must be 'xy' or 'ij'. Received: indexing={indexing}")
    axes = [tf.reshape(convert_to_tensor(each), [-1]) for each in x]
    return list(tf.meshgrid(*axes, indexing=indexing))


# Diagonals and triangles.


def offsets(x: tf.Tensor) -> np.ndarray:
    """The column less the row, for every place of the last two axes."""
    *_, rows, columns = shape_of(x)
    return np.arange(columns)[None, :] - np.arange(rows)[:, None]


def tril(x: Any, k: int = 0) -> tf.Tensor:
    """`x` with zeros above the `k`-th diagonal."""
    x = convert_to_tensor(x)
    return tf.where(offsets(x) <= int(k), x, tf.zeros_like(x))


def triu(x: Any, k: int = 0) -> tf.Tensor:
    """`x` with zeros below the `k`-th diagonal."""
    x = convert_to_tensor(x)
    return tf.where(offsets(x) >= int(k), x, tf.zeros_like(x))


def diagonal(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> tf.Tensor:
    """The elements on a diagonal of two axes, along a new last axis."""
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    *front, rows, columns = shape_of(x)
    count = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = offset if offset >= 0 else -offset * columns
    places = [start + i * (columns + 1) for i in range(count)]
    flat = tf.reshape(x, [*front, rows * columns])
    return tf.gather(flat, np.asarray(places, dtype="int32"), axis=-1)


def diag(x: Any, k: int = 0) -> tf.Tensor:
    """The `k`-th diagonal of a matrix; of a vector, the matrix with that diagonal."""
    x = convert_to_tensor(x)
    if len(x.shape) == 2:
        return diagonal(x, offset=k)
    if len(x.shape) != 1:
        raise ValueError(f"`x` must be 1-D or 2-D. Received: x.shape={shape_of(x)}")
    return diagflat(x, k)


def diagflat(x: Any, k: int = 0) -> tf.Tensor:
    """A matrix with the elements of `x` on its `k`-th diagonal."""
    return tf.linalg.diag(ravel(x), k=k)
