"""Extraction and reassembly of image patches."""

from __future__ import annotations

from typing import Any

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, shape_of
from taut.keras.backend.ops.nn.conv import Sizes, per_axis


def unfold(input: Any, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1) -> tf.Tensor:
    """Extracts patches of images (batch, channels, height, width) as columns (batch, channels * taps, positions)."""
    x = convert_to_tensor(input)
    size, apart, around, step = (per_axis(each, 2) for each in (kernel_size, dilation, padding, stride))
    x = tf.pad(x, [[0, 0], [0, 0], [around[0]] * 2, [around[1]] * 2])
    batch, channels, *image = shape_of(x)
    count = [(n - d * (k - 1) - 1) // s + 1 for n, k, d, s in zip(image, size, apart, step)]
    taps = []
    for i in range(size[0]):
        for j in range(size[1]):
            top, left = i * apart[0], j * apart[1]
            bottom, right = top + (count[0] - 1) * step[0] + 1, left + (count[1] - 1) * step[1] + 1
            taps.append(x[:, :, top : bottom : step[0], left : right : step[1]])
    return tf.reshape(tf.stack(taps, axis=2), [batch, channels * len(taps), count[0] * count[1]])


def fold(
    x: Any, output_size: Sizes, kernel_size: Sizes, dilation: Sizes = 1, padding: Sizes = 0, stride: Sizes = 1
) -> tf.Tensor:
    """Sums patches at their positions: the adjoint of `unfold`."""
    x = convert_to_tensor(x)
    image, size, apart, around, step = (
        per_axis(each, 2) for each in (output_size, kernel_size, dilation, padding, stride)
    )
    whole = [n + 2 * p for n, p in zip(image, around)]
    count = [(n - d * (k - 1) - 1) // s + 1 for n, k, d, s in zip(whole, size, apart, step)]
    batch, columns, _ = shape_of(x)
    taps = size[0] * size[1]
    x = tf.reshape(x, [batch, columns // taps, taps, *count])
    total: Any = None
    for tap in range(taps):
        top, left = (tap // size[1]) * apart[0], (tap % size[1]) * apart[1]
        spread = with_gaps(with_gaps(x[:, :, tap], 2, step[0]), 3, step[1])
        rows, places = shape_of(spread)[2:]
        part = tf.pad(spread, [[0, 0], [0, 0], [top, whole[0] - rows - top], [left, whole[1] - places - left]])
        total = part if total is None else total + part
    return total[:, :, around[0] : around[0] + image[0], around[1] : around[1] + image[1]]


def with_gaps(x: tf.Tensor, axis: int, step: int) -> tf.Tensor:
    """Inserts `step - 1` zeros between neighbours along an axis."""
    if step == 1:
        return x
    shape = list(shape_of(x))
    spread = tf.pad(tf.expand_dims(x, axis + 1), [[0, step - 1 if i == axis + 1 else 0] for i in range(len(shape) + 1)])
    spread = tf.reshape(spread, [*shape[:axis], shape[axis] * step, *shape[axis + 1 :]])
    index = [slice(None)] * axis + [slice(0, (shape[axis] - 1) * step + 1)]
    return spread[tuple(index)]


def depth_to_space(x: Any, block_size: int, data_format: str = "channels_last") -> tf.Tensor:
    """Moves channels into blocks of pixels."""
    x = convert_to_tensor(x)
    b = block_size
    if data_format == "channels_last":
        return tf.nn.depth_to_space(x, b)
    n, c, h, w = shape_of(x)
    x = tf.transpose(tf.reshape(x, [n, c // b**2, b, b, h, w]), [0, 1, 4, 2, 5, 3])
    return tf.reshape(x, [n, c // b**2, h * b, w * b])


def space_to_depth(x: Any, block_size: int, data_format: str = "channels_last") -> tf.Tensor:
    """Moves blocks of pixels into channels: the inverse of `depth_to_space`."""
    x = convert_to_tensor(x)
    b = block_size
    if data_format == "channels_last":
        return tf.nn.space_to_depth(x, b)
    n, c, h, w = shape_of(x)
    x = tf.transpose(tf.reshape(x, [n, c, h // b, b, w // b, b]), [0, 1, 3, 5, 2, 4])
    return tf.reshape(x, [n, c * b**2, h // b, w // b])
