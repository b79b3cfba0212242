"""Max and average pooling."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras.src.backend.config import standardize_data_format

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, floating, matmul_axis, shape_of, slice_axis
from taut.keras.backend.ops.nn.conv import Sizes, layout, per_axis


def pool(function, inputs: Any, pool_size: Sizes, strides: Sizes | None, padding: str, data_format: str | None):
    """Applies a pooling `function` over one to three dimensions."""
    x = convert_to_tensor(inputs)
    rank = len(x.shape) - 2
    size = per_axis(pool_size, rank)
    steps = size if strides is None else per_axis(strides, rank)
    return function(x, size, steps, padding.upper(), layout(data_format, rank))


def max_pool(
    inputs: Any,
    pool_size: Sizes,
    strides: Sizes | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> tf.Tensor:
    """Max pooling."""
    return pool(tf.nn.max_pool, inputs, pool_size, strides, padding, data_format)


def average_pool(
    inputs: Any,
    pool_size: Sizes,
    strides: Sizes | None = None,
    padding: str = "valid",
    data_format: str | None = None,
) -> tf.Tensor:
    """Average pooling; padding is not counted."""
    return pool(tf.nn.avg_pool, floating(inputs), pool_size, strides, padding, data_format)


def windows(count: int, parts: int) -> list[tuple[int, int]]:
    """The ranges of `parts` windows over `count` elements; they overlap if the sizes do not divide."""
    return [(i * count // parts, math.ceil((i + 1) * count / parts)) for i in range(parts)]


def adaptive_average_pool(inputs: Any, output_size: Sizes, data_format: str | None = None) -> tf.Tensor:
    """Average pooling with windows chosen for a given output size."""

    def along(x, axis, parts):
        ranges = windows(shape_of(x)[axis], parts)
        shares = np.zeros((shape_of(x)[axis], parts))
        for i, (start, stop) in enumerate(ranges):
            shares[start:stop, i] = 1.0 / (stop - start)
        return matmul_axis(x, shares, axis)

    return adaptive(along, floating(inputs), output_size, data_format)


def adaptive_max_pool(inputs: Any, output_size: Sizes, data_format: str | None = None) -> tf.Tensor:
    """Max pooling with windows chosen for a given output size."""

    def along(x, axis, parts):
        ranges = windows(shape_of(x)[axis], parts)
        found = [tf.reduce_max(slice_axis(x, axis, *each), axis=axis) for each in ranges]
        return tf.stack(found, axis=axis)

    return adaptive(along, convert_to_tensor(inputs), output_size, data_format)


def adaptive(along, x: tf.Tensor, output_size: Sizes, data_format: str | None) -> tf.Tensor:
    """Pools one dimension after the other: windows are products of ranges."""
    data_format = standardize_data_format(data_format)
    rank = len(x.shape) - 2
    first = 1 if data_format == "channels_last" else 2
    for i, parts in enumerate(per_axis(output_size, rank)):
        x = along(x, first + i, parts)
    return x
