"""Convolution over one to three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras.src.backend.common.backend_utils import (
    check_conv_transpose_input_channels,
    compute_conv_transpose_output_shape,
)
from keras.src.backend.config import standardize_data_format

import taut as tf
from taut.keras.backend.convert import promote, shape_of, size_of

Sizes = int | Sequence[int]


def per_axis(value: Sizes, count: int) -> list[int]:
    """One integer for each of `count` dimensions."""
    return [value] * count if isinstance(value, int) else [int(each) for each in value]


def layout(data_format: str | None, rank: int) -> str:
    """The data format in TensorFlow's letters, such as NHWC."""
    space = "DHW"[3 - rank :]
    return f"N{space}C" if standardize_data_format(data_format) == "channels_last" else f"NC{space}"


def conv(
    inputs: Any,
    kernel: Any,
    strides: Sizes = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Sizes = 1,
) -> tf.Tensor:
    """Computes a convolution, grouped if the kernel has fewer channels than the input."""
    x, kernel = promote(inputs, kernel)
    rank = len(x.shape) - 2
    letters = layout(data_format, rank)
    channels, (*_, own, filters) = shape_of(x)[letters.index("C")], shape_of(kernel)
    groups, rest = divmod(channels, own)
    if rest or filters % max(groups, 1):
        raise ValueError(
            "The input channels must be a multiple of the kernel's, and the filters a multiple of the groups. "
            f"Received: input channels={channels}, kernel shape={shape_of(kernel)}"
        )
    result = tf.nn.convolution(
        x, kernel, per_axis(strides, rank), padding.upper(), letters, per_axis(dilation_rate, rank)
    )
    if size_of(shape_of(result)) == 0 and size_of(shape_of(x)) != 0:
        raise ValueError(
            "The convolution operation resulted in an empty output. "
            f"Output shape: {shape_of(result)}. The input of shape {shape_of(x)} is too small for the "
            "kernel size, strides, dilation rate and padding."
        )
    return result


def depthwise_conv(
    inputs: Any,
    kernel: Any,
    strides: Sizes = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Sizes = 1,
) -> tf.Tensor:
    """Convolves each channel separately: a grouped convolution with one channel per group."""
    inputs, kernel = promote(inputs, kernel)
    *size, channels, each = shape_of(kernel)
    grouped = tf.reshape(kernel, [*size, 1, channels * each])
    return conv(inputs, grouped, strides, padding, data_format, dilation_rate)


def separable_conv(
    inputs: Any,
    depthwise_kernel: Any,
    pointwise_kernel: Any,
    strides: Sizes = 1,
    padding: str = "valid",
    data_format: str | None = None,
    dilation_rate: Sizes = 1,
) -> tf.Tensor:
    """Computes a depthwise convolution followed by a pointwise convolution."""
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
    """Transposed convolution: the gradient of a convolution with respect to its input."""
    data_format = standardize_data_format(data_format)
    x, kernel = promote(inputs, kernel)
    check_conv_transpose_input_channels(x, kernel, data_format)
    rank = len(x.shape) - 2
    strides, dilations = per_axis(strides, rank), per_axis(dilation_rate, rank)
    *size, filters, _ = shape_of(kernel)
    shape = compute_conv_transpose_output_shape(
        shape_of(x), size, filters, strides, padding, output_padding, data_format, dilations
    )
    return tf.nn.conv_transpose(x, kernel, shape, strides, padding.upper(), layout(data_format, rank), dilations)
