"""`keras.ops`: segments, the largest elements, distances, special functions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, floating, is_float, shape_of
from taut.keras.backend.missing import missing
from taut.keras.backend.ops.fourier import *  # noqa: F403
from taut.keras.backend.ops.linalg import slogdet

_get_complex_tensor_from_tuple = missing("view_as_complex")


def segments(reduce, data: Any, segment_ids: Any, num_segments: int | None) -> tf.Tensor:
    """`reduce` the parts of `data` that share an id; without `num_segments`, the ids have to be there to be
    read."""
    data = convert_to_tensor(data)
    segment_ids = convert_to_tensor(segment_ids, "int32")
    if num_segments is None:
        if not tf.executing_eagerly():
            raise ValueError(
                "Inside a function, segments need `num_segments`: shapes must not depend on data."
            )
        num_segments = int(tf.reduce_max(segment_ids)) + 1
    return reduce(data, segment_ids, int(num_segments))


def segment_sum(
    data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
) -> tf.Tensor:
    """The sum of the parts that share an id."""
    return segments(tf.math.unsorted_segment_sum, data, segment_ids, num_segments)


def segment_max(
    data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
) -> tf.Tensor:
    """The largest elements of the parts that share an id; for ids that nothing has, minus infinity."""
    return segments(or_infinite(tf.math.unsorted_segment_max, -math.inf), data, segment_ids, num_segments)


def segment_min(
    data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
) -> tf.Tensor:
    """The smallest elements of the parts that share an id; for ids that nothing has, infinity."""
    return segments(or_infinite(tf.math.unsorted_segment_min, math.inf), data, segment_ids, num_segments)


def or_infinite(reduce: Callable, value: float) -> Callable:
    """`reduce`, with an infinity for floating-point segments that are empty, where it has the type's last
    number."""

    def apply(data, segment_ids, count):
        found = reduce(data, segment_ids, count)
        if not is_float(data):
            return found
        sizes = tf.math.unsorted_segment_sum(tf.ones_like(segment_ids), segment_ids, count)
        empty = tf.reshape(tf.equal(sizes, 0), [count] + [1] * (len(found.shape) - 1))
        return tf.where(empty, value, found)

    return apply


def segment_prod(
    data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False
) -> tf.Tensor:
    """The product of the parts that share an id."""
    return segments(tf.math.unsorted_segment_prod, data, segment_ids, num_segments)


def top_k(x: Any, k: int, sorted: bool = True) -> tuple[tf.Tensor, tf.Tensor]:
    """The `k` largest elements of the last axis, the largest first, and their places."""
    values, places = tf.math.top_k(convert_to_tensor(x), k, sorted=sorted)
    return values, tf.cast(places, "int32")


def in_top_k(targets: Any, predictions: Any, k: int) -> tf.Tensor:
    """Whether the prediction of the target is among the `k` largest of its row; ties are in favour."""
    return tf.math.in_top_k(convert_to_tensor(targets, "int32"), convert_to_tensor(predictions), k)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> tf.Tensor:
    """log(sum(exp(x))) along axes, without overflow on the way."""
    return tf.math.reduce_logsumexp(floating(x), axis=axis, keepdims=keepdims)


def cdist(x: Any, y: Any) -> tf.Tensor:
    """The distances between all rows of `x` and all rows of `y`."""
    x, y = floating(x), floating(y)
    if len(x.shape) < 2 or len(y.shape) < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if shape_of(x)[-1] != shape_of(y)[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    return tf.sqrt(tf.reduce_sum(tf.square(tf.expand_dims(x, -2) - tf.expand_dims(y, -3)), axis=-1))


def rsqrt(x: Any) -> tf.Tensor:
    """One over the square root."""
    return tf.math.rsqrt(floating(x))


def erf(x: Any) -> tf.Tensor:
    """The error function."""
    return tf.math.erf(floating(x))


def erfc(x: Any) -> tf.Tensor:
    """One less the error function, exact for large x as well."""
    return tf.math.erfc(floating(x))


def erfinv(x: Any) -> tf.Tensor:
    """The inverse of the error function."""
    return tf.math.erfinv(floating(x))


def logdet(x: Any) -> tf.Tensor:
    """The logarithm of the determinant's size."""
    return slogdet(x)[1]
