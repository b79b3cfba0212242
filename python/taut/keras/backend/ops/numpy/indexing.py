"""Selection by index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras.src.backend.common.backend_utils import vectorize_impl

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, promote, shape_of, size_of, slice_axis, type_of
from taut.keras.backend.ops.numpy.shapes import moveaxis


def take(x: Any, indices: Any, axis: int | None = None) -> tf.Tensor:
    """Takes slices of `x` at `indices` along an axis; negative indices count from the end."""
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    return tf.gather(x, from_start(indices, shape_of(x)[axis]), axis=axis)


def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> tf.Tensor:
    """Takes one element per index along an axis."""
    x = convert_to_tensor(x)
    if axis is None:
        x, indices, axis = tf.reshape(x, [-1]), tf.reshape(convert_to_tensor(indices), [-1]), 0
    rank = len(x.shape)
    axis = axis % rank
    indices = from_start(indices, shape_of(x)[axis])
    # All other axes are broadcast.
    shared = [
        1 if i == axis else max(a, b) if 1 in (a, b) else a
        for i, (a, b) in enumerate(zip(shape_of(x), shape_of(indices)))
    ]
    x = tf.broadcast_to(x, [d if i != axis else shape_of(x)[axis] for i, d in enumerate(shared)])
    indices = tf.broadcast_to(indices, [d if i != axis else shape_of(indices)[axis] for i, d in enumerate(shared)])
    return tf.take_along_axis(x, indices, axis)


def from_start(indices: Any, count: int) -> tf.Tensor:
    """Converts negative indices to indices from the start."""
    indices = convert_to_tensor(indices)
    indices = tf.cast(indices, "int64" if type_of(indices) == "int64" else "int32")
    return tf.where(tf.less(indices, 0), indices + convert_to_tensor(count, indices.dtype), indices)


def nonzero(x: Any) -> tuple[tf.Tensor, ...]:
    """Returns the indices of the nonzero elements, a tensor per axis."""
    x = convert_to_tensor(x, "bool")
    return tuple(tf.unstack(tf.cast(tf.where(x), "int32"), num=len(x.shape), axis=1))


def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[tf.Tensor, ...]:
    """Converts flat indices to coordinates in a tensor of `shape`."""
    indices = convert_to_tensor(indices)
    rest = from_start(indices, size_of(shape))
    coordinates = []
    for size in reversed(list(shape)):
        dim = convert_to_tensor(int(size), rest.dtype)
        coordinates.append(tf.cast(tf.math.floormod(rest, dim), indices.dtype))
        rest = tf.math.floordiv(rest, dim)
    return tuple(reversed(coordinates))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> tf.Tensor:
    """Selects from the first choice whose condition is true; `default` where none is."""
    if len(condlist) != len(choicelist):
        raise ValueError(
            f"`condlist` and `choicelist` must have one length. Received: {len(condlist)} and {len(choicelist)}"
        )
    *choices, result = promote(*choicelist, default)
    for condition, choice in reversed(list(zip(condlist, choices))):
        result = tf.where(convert_to_tensor(condition, "bool"), choice, result)
    return result


def diff(a: Any, n: int = 1, axis: int = -1) -> tf.Tensor:
    """Computes the n-th differences along an axis."""
    a = convert_to_tensor(a)
    for _ in range(n):
        count = shape_of(a)[axis]
        after, before = slice_axis(a, axis, 1, count), slice_axis(a, axis, 0, max(count - 1, 0))
        a = tf.not_equal(after, before) if type_of(a) == "bool" else after - before
    return a


def vectorize(pyfunc: Callable, *, excluded: Any = None, signature: str | None = None) -> Callable:
    """Vectorizes `pyfunc` over elements, or over the core dimensions of `signature`."""
    return vectorize_impl(pyfunc, batched, excluded=excluded, signature=signature)


def batched(function: Callable, in_axes: Any = 0) -> Callable:
    """`function` vectorized along the axes in `in_axes`; None for arguments that are shared."""

    def apply(*args):
        axes = list(in_axes) if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
        mapped = [moveaxis(x, axis, 0) for x, axis in zip(args, axes) if axis is not None]

        def one(parts):
            parts = iter(parts)
            return function(*[x if axis is None else next(parts) for x, axis in zip(args, axes)])

        return tf.vectorized_map(one, mapped)

    return apply
