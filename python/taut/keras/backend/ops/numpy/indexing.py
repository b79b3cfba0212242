"""Elements by their places."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from keras.src.backend.common.backend_utils import vectorize_impl

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, cut, shape_of, size_of, together, type_of
from taut.keras.backend.ops.numpy.shapes import moveaxis

__all__ = ["diff", "nonzero", "select", "take", "take_along_axis", "unravel_index", "vectorize"]


def take(x: Any, indices: Any, axis: int | None = None) -> tf.Tensor:
    """The parts of `x` at `indices` along an axis; negative places count from the end."""
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    return tf.gather(x, from_start(indices, shape_of(x)[axis]), axis=axis)


def take_along_axis(x: Any, indices: Any, axis: int | None = None) -> tf.Tensor:
    """For every place of `indices`, the element of `x` that it names along the axis."""
    x = convert_to_tensor(x)
    if axis is None:
        x, indices, axis = tf.reshape(x, [-1]), tf.reshape(convert_to_tensor(indices), [-1]), 0
    rank = len(x.shape)
    axis = axis % rank
    indices = from_start(indices, shape_of(x)[axis])
    # All other axes are shared, with sizes broadcast.
    shared = [
        1 if i == axis else max(a, b) if 1 in (a, b) else a
        for i, (a, b) in enumerate(zip(shape_of(x), shape_of(indices)))
    ]
    x = tf.broadcast_to(x, [d if i != axis else shape_of(x)[axis] for i, d in enumerate(shared)])
    indices = tf.broadcast_to(
        indices, [d if i != axis else shape_of(indices)[axis] for i, d in enumerate(shared)]
    )
    return tf.take_along_axis(x, indices, axis)


def from_start(indices: Any, count: int) -> tf.Tensor:
    """Places counted from the start, where negative ones were counted from the end."""
    indices = convert_to_tensor(indices)
    indices = tf.cast(indices, "int64" if type_of(indices) == "int64" else "int32")
    return tf.where(tf.less(indices, 0), indices + convert_to_tensor(count, indices.dtype), indices)


def nonzero(x: Any) -> tuple[tf.Tensor, ...]:
    """The places of the elements that are not zero, one tensor per axis."""
    x = convert_to_tensor(x, "bool")
    return tuple(tf.unstack(tf.cast(tf.where(x), "int32"), num=len(x.shape), axis=1))


def unravel_index(indices: Any, shape: Sequence[int]) -> tuple[tf.Tensor, ...]:
    """The coordinates, in a tensor of `shape`, of places counted through all its elements."""
    indices = convert_to_tensor(indices)
    rest = from_start(indices, size_of(shape))
    coordinates = []
    for dim in reversed(list(shape)):
        dim = convert_to_tensor(int(dim), rest.dtype)
        coordinates.append(tf.cast(tf.math.floormod(rest, dim), indices.dtype))
        rest = tf.math.floordiv(rest, dim)
    return tuple(reversed(coordinates))


def select(condlist: Sequence[Any], choicelist: Sequence[Any], default: Any = 0) -> tf.Tensor:
    """The elements of the first choice whose condition holds; `default` where none does."""
    if len(condlist) != len(choicelist):
        raise ValueError(f"There are {len(condlist)} conditions, but {len(choicelist)} choices.")
    *choices, result = together(*choicelist, default)
    for condition, choice in reversed(list(zip(condlist, choices))):
        result = tf.where(convert_to_tensor(condition, "bool"), choice, result)
    return result


def diff(a: Any, n: int = 1, axis: int = -1) -> tf.Tensor:
    """The differences of neighbours along an axis, `n` times over."""
    a = convert_to_tensor(a)
    for _ in range(n):
        count = shape_of(a)[axis]
        after, before = cut(a, axis, 1, count), cut(a, axis, 0, max(count - 1, 0))
        a = tf.not_equal(after, before) if type_of(a) == "bool" else after - before
    return a


def vectorize(pyfunc: Callable, *, excluded: Any = None, signature: str | None = None) -> Callable:
    """`pyfunc`, applied to every element, or to every part that `signature` names."""
    return vectorize_impl(pyfunc, batched, excluded=excluded, signature=signature)


def batched(function: Callable, in_axes: Any = 0) -> Callable:
    """`function` for many arguments at once, along the axes of `in_axes`; `None` is for those shared by
    all."""

    def apply(*args):
        axes = list(in_axes) if isinstance(in_axes, (list, tuple)) else [in_axes] * len(args)
        mapped = [moveaxis(x, axis, 0) for x, axis in zip(args, axes) if axis is not None]

        def one(parts):
            parts = iter(parts)
            return function(*[x if axis is None else next(parts) for x, axis in zip(args, axes)])

        return tf.vectorized_map(one, mapped)

    return apply
