"""Convolutions over one to three dimensions.

All are computed with the channels last; tensors that have them first are turned round on the way in and out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras.src.backend.common.backend_utils import (
    check_conv_transpose_input_channels,
    compute_conv_transpose_output_shape,
)
from keras.src.backend.config import standardize_data_format

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, shape_of, size_of, together

__all__ = ["conv", "conv_transpose", "depthwise_conv", "separable_conv"]

Sizes = int | Sequence[int]


def per_axis(value: Sizes, count: int) -> list[int]:
    """One number for each of `count` dimensions."""
    return [value] * count if isinstance(value, int) else [int(each) for each in value]


def channels_last(x: tf.Tensor, data_format: str) -> tf.Tensor:
    """`x` with its channels moved from second to last place, if they are there."""
    return x if data_format == "channels_last" else tf.transpose(x, [0, *range(2, len(x.shape)), 1])


def as_given(x: tf.Tensor, data_format: str) -> tf.Tensor:
    """`x` with its channels moved from last to second place, if they belong there."""
    return x if data_format == "channels_last" else tf.transpose(x, [0, len(x.shape) - 1, *range(1, len(x.shape) - 1)])


def conv(
    inputs: Any,
    kernel: Any,
    strides: Sizes = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Sizes = 1,
) -> tf.Tensor:
    """The convolution. Kernels for fewer channels than the inputs have are for as many groups as it takes."""
    data_format = standardize_data_format(data_format)
    inputs, kernel = together(inputs, kernel)
    x = channels_last(inputs, data_format)
    rank = len(x.shape) - 2
    strides, dilations = per_axis(strides, rank), per_axis(dilation_rate, rank)
    groups, rest = divmod(shape_of(x)[-1], shape_of(kernel)[-2])
    if rest or shape_of(kernel)[-1] % max(groups, 1):
        raise ValueError(
            "The number of input channels must be a multiple of the kernel's, and that of its filters a multiple of "
            f"the groups. Received: input channels={shape_of(x)[-1]}, kernel shape={shape_of(kernel)}"
        )
    if groups == 1:
        result = plain(x, kernel, strides, padding, dilations)
    else:
        pairs = zip(tf.split(x, groups, axis=-1), tf.split(kernel, groups, axis=-1))
        result = tf.concat([plain(part, own, strides, padding, dilations) for part, own in pairs], axis=-1)
    if size_of(shape_of(result)) == 0 and size_of(shape_of(x)) != 0:
        raise ValueError(
            "The convolution operation resulted in an empty output. "
            f"Output shape: {shape_of(result)}. The input of shape {shape_of(inputs)} is too small for the "
            "kernel size, strides, dilation rate and padding."
        )
    return as_given(result, data_format)


def plain(x: tf.Tensor, kernel: tf.Tensor, strides: list[int], padding: str, dilations: list[int]) -> tf.Tensor:
    """The convolution of one group, channels last."""
    padding = padding.upper()
    if len(strides) == 1:
        return tf.nn.conv1d(x, kernel, strides[0], padding, dilations=dilations[0])
    if len(strides) == 2:
        return tf.nn.conv2d(x, kernel, strides, padding, dilations=dilations)
    return tf.nn.conv3d(x, kernel, [1, *strides, 1], padding, dilations=[1, *dilations, 1])


def depthwise_conv(
    inputs: Any,
    kernel: Any,
    strides: Sizes = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Sizes = 1,
) -> tf.Tensor:
    """The convolution of every channel with kernels of its own, over one or two dimensions."""
    data_format = standardize_data_format(data_format)
    inputs, kernel = together(inputs, kernel)
    x = channels_last(inputs, data_format)
    rank = len(x.shape) - 2
    strides, dilations = per_axis(strides, rank), per_axis(dilation_rate, rank)
    if rank > 2:
        raise ValueError(f"`depthwise_conv` takes inputs of one or two dimensions. Received: {rank}")
    if rank == 1:
        # A line is an image of height one. Along it both strides may be the same.
        x, kernel = tf.expand_dims(x, 1), tf.expand_dims(kernel, 0)
        strides, dilations = strides * 2, [1, *dilations]
    result = tf.nn.depthwise_conv2d(x, kernel, [1, *strides, 1], padding.upper(), dilations=dilations)
    return as_given(tf.squeeze(result, axis=[1]) if rank == 1 else result, data_format)


def separable_conv(
    inputs: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Sizes = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Sizes = 1,
) -> tf.Tensor:
    """A depthwise convolution, whose channels are then mixed."""
    data_format = standardize_data_format(data_format)
    apart = depthwise_conv(inputs, depthwise_kernel, strides, padding, data_format, dilation_rate)
    return conv(apart, pointwise_kernel, 1, "valid", data_format)


def conv_transpose(
    inputs: Any,
    kernel: Any,
    strides: Sizes = 1,
    padding: str = "valid",
    output_padding: Sizes | None = None,
    data_format: str | None = None,
    dilation_rate: Sizes = 1,
) -> tf.Tensor:
    """The gradient of a convolution with respect to its input, as a layer that makes images larger."""
    data_format = standardize_data_format(data_format)
    inputs, kernel = together(inputs, kernel)
    check_conv_transpose_input_channels(inputs, kernel, data_format)
    x = channels_last(convert_to_tensor(inputs), data_format)
    rank = len(x.shape) - 2
    strides, dilations = per_axis(strides, rank), per_axis(dilation_rate, rank)
    *size, filters, _ = shape_of(kernel)
    shape = compute_conv_transpose_output_shape(
        shape_of(x), size, filters, strides, padding, output_padding, "channels_last", dilations
    )
    result = tf.nn.conv_transpose(x, kernel, shape, strides, padding=padding.upper(), dilations=dilations)
    return as_given(result, data_format)
