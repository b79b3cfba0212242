"""`keras.ops`: segment reductions, top-k, distances and special functions."""

from __future__ import annotations

from typing import Any

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, floating, known_value, shape_of


def segments(kind: str, data: Any, segment_ids: Any, num_segments: int | None, sorted: bool) -> tf.Tensor:
    """Applies a segment reduction. Without `num_segments`, a traced function runs op by op if it computes the ids. Empty
    segments are those of TensorFlow: 0 for ids that are sorted, else the value that the reduction starts from.
    """
    data = convert_to_tensor(data)
    segment_ids = convert_to_tensor(segment_ids, "int32")
    if num_segments is None:
        if sorted:
            return getattr(tf.math, f"segment_{kind}")(data, segment_ids)
        num_segments = int(known_value(segment_ids, "num_segments").max(initial=-1)) + 1
    return getattr(tf.math, f"unsorted_segment_{kind}")(data, segment_ids, int(num_segments))


def segment_sum(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> tf.Tensor:
    """Computes the sum of the rows with equal ids."""
    return segments("sum", data, segment_ids, num_segments, sorted)


def segment_max(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> tf.Tensor:
    """Computes the maximum of the rows with equal ids."""
    return segments("max", data, segment_ids, num_segments, sorted)


def segment_min(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> tf.Tensor:
    """Computes the minimum of the rows with equal ids."""
    return segments("min", data, segment_ids, num_segments, sorted)


def segment_prod(data: Any, segment_ids: Any, num_segments: int | None = None, sorted: bool = False) -> tf.Tensor:
    """Computes the product of the rows with equal ids."""
    return segments("prod", data, segment_ids, num_segments, sorted)


def top_k(x: Any, k: int, sorted: bool = True) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the `k` largest elements along the last axis in descending order, and their indices."""
    values, places = tf.math.top_k(convert_to_tensor(x), k, sorted=sorted)
    return values, tf.cast(places, "int32")


def in_top_k(targets: Any, predictions: Any, k: int) -> tf.Tensor:
    """Tests whether each target is among the `k` largest predictions of its row; ties count."""
    return tf.math.in_top_k(convert_to_tensor(targets, "int32"), convert_to_tensor(predictions), k)


def logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> tf.Tensor:
    """Computes log(sum(exp(x))) along axes without overflow."""
    return tf.math.reduce_logsumexp(floating(x), axis=axis, keepdims=keepdims)


def cdist(x: Any, y: Any) -> tf.Tensor:
    """Computes the Euclidean distances between all rows of `x` and `y`."""
    x, y = floating(x), floating(y)
    if len(x.shape) < 2 or len(y.shape) < 2:
        raise ValueError("`cdist` inputs must have rank >= 2")
    if shape_of(x)[-1] != shape_of(y)[-1]:
        raise ValueError("Last dimension of inputs to `cdist` must match")
    return tf.sqrt(tf.reduce_sum(tf.square(tf.expand_dims(x, -2) - tf.expand_dims(y, -3)), axis=-1))


def rsqrt(x: Any) -> tf.Tensor:
    """Computes the reciprocal square root."""
    return tf.math.rsqrt(floating(x))


def erf(x: Any) -> tf.Tensor:
    """Computes the error function."""
    return tf.math.erf(floating(x))


def erfc(x: Any) -> tf.Tensor:
    """Computes the complementary error function."""
    return tf.math.erfc(floating(x))


def erfinv(x: Any) -> tf.Tensor:
    """Computes the inverse error function."""
    return tf.math.erfinv(floating(x))


def logdet(x: Any) -> tf.Tensor:
    """Computes the logarithm of the determinant of positive definite matrices; others are an error."""
    return tf.linalg.logdet(floating(x))
