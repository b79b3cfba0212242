"""Moments, batch normalization and one-hot encodings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras.src.backend.config import floatx

import taut as tf
from taut.keras.backend import distributed
from taut.keras.backend.convert import axes_of, broadcast_shape, convert_to_tensor, type_of


def moments(
    x: Any, axes: int | Sequence[int], keepdims: bool = False, synchronized: bool = False
) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes mean and variance along axes; in 32 bits for float16, clamped to its range.

    With `synchronized`, those of the rows of all processes that train together.
    """
    x = convert_to_tensor(x)
    axes = axes_of(axes, len(x.shape))
    narrow = type_of(x) == "float16"
    wide = tf.cast(x, "float32") if narrow else x
    of = _synchronized_moments if synchronized else tf.nn.moments
    mean, variance = of(wide, axes=axes, keepdims=keepdims)
    if narrow:
        most = x.dtype.max
        mean, variance = (tf.cast(tf.clip_by_value(each, -most, most), "float16") for each in (mean, variance))
    return mean, variance


def _synchronized_moments(x: tf.Tensor, axes: Sequence[int], keepdims: bool) -> tuple[tf.Tensor, tf.Tensor]:
    """Mean and variance over all processes: the sums of elements and their number first, then those of squared differences."""
    sums = tf.reduce_sum(x, axis=axes, keepdims=True)
    size = tf.cast(tf.size(x) // tf.maximum(tf.size(sums), 1), x.dtype)
    totals = distributed.sum_over_processes(tf.concat([tf.reshape(sums, [-1]), tf.reshape(size, [1])], axis=0))
    size = totals[-1]
    mean = tf.reshape(totals[:-1], sums.shape) / size
    variance = distributed.sum_over_processes(tf.reduce_sum(tf.square(x - mean), axis=axes, keepdims=True)) / size
    return (mean, variance) if keepdims else (tf.squeeze(mean, axes), tf.squeeze(variance, axes))


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    axis: int,
    offset: Any = None,
    scale: Any = None,
    epsilon: float = 1e-3,
) -> tf.Tensor:
    """Computes `(x - mean) / sqrt(variance + epsilon) * scale + offset` along one axis."""
    x = convert_to_tensor(x)
    places = broadcast_shape(axis, len(x.shape))
    mean, variance = (tf.reshape(convert_to_tensor(each), places) for each in (mean, variance))
    factor = tf.math.rsqrt(variance + epsilon)
    if scale is not None:
        factor = factor * tf.reshape(convert_to_tensor(scale, factor.dtype), places)
    moved = -mean * factor
    if offset is not None:
        moved = moved + tf.reshape(convert_to_tensor(offset, moved.dtype), places)
    return x * tf.cast(factor, x.dtype) + tf.cast(moved, x.dtype)


def one_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> tf.Tensor:
    """Encodes integers as one-hot vectors; all zeros for integers out of range."""
    if sparse:
        raise ValueError("Sparse tensors are not supported by the taut backend.")
    x = convert_to_tensor(x)
    x = tf.cast(x, "int64" if type_of(x) == "int64" else "int32")
    codes = tf.one_hot(x, num_classes, axis=axis, dtype="uint8" if dtype == "bool" else dtype or floatx())
    return tf.cast(codes, "bool") if dtype == "bool" else codes


def multi_hot(x: Any, num_classes: int, axis: int = -1, dtype: Any = None, sparse: bool = False) -> tf.Tensor:
    """Encodes rows of integers as multi-hot vectors."""
    x = convert_to_tensor(x)
    rows = 1 if len(x.shape) > 1 else 0
    codes = one_hot(tf.cast(x, "int32"), num_classes, axis, dtype, sparse)
    if type_of(codes) == "bool":
        return tf.reduce_any(codes, axis=rows)
    # A row without integers has no maximum.
    return tf.reduce_max(codes, axis=rows) if codes.shape[rows] != 0 else tf.reduce_sum(codes, axis=rows)
