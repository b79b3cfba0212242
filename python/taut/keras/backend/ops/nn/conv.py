"""Convolutions over one to three dimensions, with the channels last or first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras.src.backend.common.backend_utils import (
    check_conv_transpose_input_channels,
    compute_conv_transpose_output_shape,
)
from keras.src.backend.config import standardize_data_format

import taut as tf
from taut.keras.backend.convert import shape_of, size_of, together

__all__ = ["conv", "conv_transpose", "depthwise_conv", "separable_conv"]

Sizes = int | Sequence[int]


def per_axis(value: Sizes, count: int) -> list[int]:
    """One number for each of `count` dimensions."""
    return [value] * count if isinstance(value, int) else [int(each) for each in value]


def layout(data_format: str | None, rank: int) -> str:
    """Keras's format of data with `rank` dimensions, in letters."""
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
    """The convolution. Kernels for fewer channels than the inputs have are for as many groups as it takes."""
    x, kernel = together(inputs, kernel)
    rank = len(x.shape) - 2
    letters = layout(data_format, rank)
    channels, (*_, own, filters) = shape_of(x)[letters.index("C")], shape_of(kernel)
    groups, rest = divmod(channels, own)
    if rest or filters % max(groups, 1):
        raise ValueError(
            "The number of input channels must be a multiple of the kernel's, and that of its filters a "
            f"multiple of the groups. Received: input channels={channels}, kernel shape={shape_of(kernel)}"
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
    """The convolution of every channel with kernels of its own: with as many groups as there are channels."""
    inputs, kernel = together(inputs, kernel)
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
    """A depthwise convolution, whose channels are then mixed."""
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
    x, kernel = together(inputs, kernel)
    check_conv_transpose_input_channels(x, kernel, data_format)
    rank = len(x.shape) - 2
    strides, dilations = per_axis(strides, rank), per_axis(dilation_rate, rank)
    *size, filters, _ = shape_of(kernel)
    shape = compute_conv_transpose_output_shape(
        shape_of(x), size, filters, strides, padding, output_padding, data_format, dilations
    )
    return tf.nn.conv_transpose(
        x, kernel, shape, strides, padding.upper(), layout(data_format, rank), dilations
    )
