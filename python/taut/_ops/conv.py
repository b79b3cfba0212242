"""Convolution."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _raw_ops as raw
from .._common import as_ints, check_choice, refuse
from .._native import Array, Tensor, as_tensor

if TYPE_CHECKING:
    from .._typing import IntsLike, ShapeLike, TensorLike

_CONV_OPS = {1: raw.conv1d, 2: raw.conv2d, 3: raw.conv3d}
DATA_FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def spatial_values(name: str, what: str, given: Any, rank: int, channels_first: bool) -> list[int]:
    """One value per spatial dimension, from a single value, one per spatial dimension, or one per dimension."""
    numbers = [1] if given is None else as_ints(given)
    if len(numbers) == 1:
        return numbers * rank
    if len(numbers) == rank + 2:
        inner = numbers[2:] if channels_first else numbers[1:-1]
        outer = [numbers[0], numbers[1] if channels_first else numbers[-1]]
        if outer != [1, 1]:
            refuse(name, f"{what} must be 1 for the batch and channel dimensions, got {numbers}")
        return inner
    if len(numbers) != rank:
        refuse(name, f"{what} must have 1, {rank} or {rank + 2} values, got {numbers}")
    return numbers


def window_options(
    name: str, strides: IntsLike, padding: Any, data_format: str | None, dilations: IntsLike, rank: int
) -> dict[str, Any]:
    """Strides, dilations, padding and data format as the op table takes them."""
    data_format = DATA_FORMATS[rank][0] if data_format is None else data_format
    check_choice(name, "data_format", data_format, DATA_FORMATS[rank])
    first = data_format.startswith("NC")
    how = {
        "strides": spatial_values(name, "strides", strides, rank, first),
        "dilations": spatial_values(name, "dilations", dilations, rank, first),
        "data_format": data_format,
    }
    if isinstance(padding, str):
        return {**how, "padding": padding.upper()}
    if not isinstance(padding, (list, tuple, np.ndarray, Array)):
        refuse(name, f"padding must be 'SAME', 'VALID' or a list of pairs, got {padding!r}", ValueError)
    margins = [as_ints(pair) for pair in padding]
    if len(margins) == rank + 2:
        margins = margins[2:] if first else margins[1:-1]
    return {**how, "padding": "EXPLICIT", "explicit_paddings": [one for pair in margins for one in pair]}


def _convolve(
    name: str,
    x: TensorLike,
    filters: TensorLike,
    strides: IntsLike,
    padding: Any,
    data_format: Any,
    dilations: IntsLike,
    rank: int,
) -> Tensor:
    x, filters = as_tensor(x), as_tensor(filters)
    how = window_options(name, strides, padding, data_format, dilations, rank)
    if filters.ndim != rank + 2 or x.ndim < rank + 2:
        shapes = f"an image of shape {x.shape} and filters of shape {filters.shape}"
        refuse(name, f"expected {rank} spatial dimensions, got {shapes}")
    first = how["data_format"].startswith("NC")
    channels, per_group = x.shape[-rank - 1 if first else -1], filters.shape[-2]
    if not per_group or channels % per_group:
        refuse(name, f"the input's channels must be a multiple of the filters' {per_group}, got {channels}")
    batch = x.shape[: x.ndim - rank - 1]
    if len(batch) == 1:
        return _CONV_OPS[rank](x, filters, groups=channels // per_group, **how)
    flat = raw.reshape(x, [-1, *x.shape[len(batch) :]])
    made = _CONV_OPS[rank](flat, filters, groups=channels // per_group, **how)
    return raw.reshape(made, [*batch, *made.shape[1:]])


def conv1d(
    input: Any,
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes a 1-D convolution."""
    return _convolve("conv1d", input, filters, stride, padding, data_format, dilations, 1)


def conv2d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes a 2-D convolution.

    `padding` is "SAME", "VALID", or a pair of amounts per dimension. If the filters have fewer channels than the input,
    the convolution is grouped.
    """
    return _convolve("conv2d", input, filters, strides, padding, data_format, dilations, 2)


def conv3d(
    input: Any,
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes a 3-D convolution."""
    return _convolve("conv3d", input, filters, strides, padding, data_format, dilations, 3)


def convolution(
    input: Any,
    filters: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Computes a convolution with as many spatial dimensions as the filters have: one, two or three."""
    filters = as_tensor(filters)
    if filters.ndim - 2 not in DATA_FORMATS:
        refuse("convolution", f"filters must have 1 to 3 spatial dimensions, got shape {filters.shape}")
    return _convolve("convolution", input, filters, strides, padding, data_format, dilations, filters.ndim - 2)


def atrous_conv2d(value: TensorLike, filters: TensorLike, rate: Any, padding: Any, name: str | None = None) -> Tensor:
    """Computes a 2-D convolution with dilated filters."""
    return _convolve("atrous_conv2d", value, filters, 1, padding, None, rate, 2)


def _convolve_transposed(
    name: str,
    x: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    strides: IntsLike,
    padding: Any,
    data_format: Any,
    dilations: IntsLike,
    rank: int,
) -> Tensor:
    x, filters = as_tensor(x), as_tensor(filters)
    how = window_options(name, strides, padding, data_format, dilations, rank)
    shape = as_ints(output_shape)
    if x.ndim != rank + 2 or filters.ndim != rank + 2:
        refuse(name, f"expected input and filters of rank {rank + 2}, got shapes {x.shape} and {filters.shape}")
    if len(shape) == rank:
        channels = [filters.shape[-2]]
        shape = (
            [x.shape[0], *channels, *shape] if how["data_format"].startswith("NC") else [x.shape[0], *shape, *channels]
        )
    return raw.conv_transpose(x, filters, shape, **how)


def conv1d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Transposed 1-D convolution: the gradient of conv1d with respect to its input; `filters` are `[width, outputs,
    inputs]`.
    """
    return _convolve_transposed(
        "conv1d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 1
    )


def conv2d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Transposed convolution: the gradient of conv2d with respect to its input; `filters` are `[height, width, outputs,
    inputs]`.
    """
    return _convolve_transposed(
        "conv2d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 2
    )


def conv3d_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Transposed 3-D convolution: the gradient of conv3d with respect to its input."""
    return _convolve_transposed(
        "conv3d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 3
    )


def conv_transpose(
    input: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Transposed convolution with as many spatial dimensions as the filters have: one, two or three."""
    filters = as_tensor(filters)
    if filters.ndim - 2 not in DATA_FORMATS:
        refuse("conv_transpose", f"filters must have 1 to 3 spatial dimensions, got shape {filters.shape}")
    rank = filters.ndim - 2
    return _convolve_transposed(
        "conv_transpose", input, filters, output_shape, strides, padding, data_format, dilations, rank
    )


def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> Tensor:
    """Convolves each channel separately; `filter` is `[height, width, channels, multiplier]`."""
    x, how = as_tensor(input), window_options("depthwise_conv2d", strides, padding, data_format, dilations, 2)
    if max(np.ravel(how["dilations"])) > 1 and max(np.ravel(how["strides"])) > 1:
        # TensorFlow says so, and computes something else.
        refuse("depthwise_conv2d", f"strides must be 1 with dilations {dilations}, got {strides}")
    margins = how.pop("explicit_paddings", None)
    if margins is not None:
        pairs = [margins[:2], margins[2:]]
        none = [[0, 0]]
        x = raw.pad(x, none * 2 + pairs if how["data_format"] == "NCHW" else none + pairs + none)
        how["padding"] = "VALID"
    return raw.depthwise_conv2d(x, filter, **how)


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: IntsLike,
    padding: Any,
    data_format: str | None = None,
    dilations: IntsLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes a depthwise convolution followed by a pointwise (1x1) convolution."""
    apart = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return _convolve("separable_conv2d", apart, pointwise_filter, 1, "VALID", data_format, 1, 2)


def atrous_conv2d_transpose(
    value: TensorLike,
    filters: TensorLike,
    output_shape: ShapeLike,
    rate: Any,
    padding: Any,
    name: str | None = None,
) -> Tensor:
    """Transposed convolution with dilated filters: the gradient of `atrous_conv2d` with respect to its input."""
    return _convolve_transposed("atrous_conv2d_transpose", value, filters, output_shape, 1, padding, None, rate, 2)


def depthwise_conv2d_backprop_input(
    input_sizes: ShapeLike,
    filter: TensorLike,
    out_backprop: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d` with respect to its input."""
    filter, rates = as_tensor(filter), _rates("depthwise_conv2d_backprop_input", dilations, data_format)
    return _backprop(
        lambda x: depthwise_conv2d(x, filter, strides, padding, data_format, rates), input_sizes, out_backprop, filter
    )


def depthwise_conv2d_backprop_filter(
    input: TensorLike,
    filter_sizes: ShapeLike,
    out_backprop: TensorLike,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
) -> Tensor:
    """The gradient of `depthwise_conv2d` with respect to its filter."""
    input, rates = as_tensor(input), _rates("depthwise_conv2d_backprop_filter", dilations, data_format)
    return _backprop(
        lambda w: depthwise_conv2d(input, w, strides, padding, data_format, rates), filter_sizes, out_backprop, input
    )


def _rates(name: str, dilations: Any, data_format: str) -> list[int]:
    """The dilations of the spatial axes, given one for each axis."""
    rates = as_ints(dilations)
    if len(rates) != 4:
        refuse(name, f"dilations must be four integers, got {rates}", ValueError)
    return rates[1:3] if data_format == "NHWC" else rates[2:]


def _backprop(f: Any, sizes: ShapeLike, upstream: TensorLike, other: Tensor) -> Tensor:
    """The gradient of a function that is linear in a tensor of this shape, and of the type of its other operand."""
    from ..tape import GradientTape

    x = raw.zeros(as_ints(sizes), other.dtype)
    with GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x, output_gradients=as_tensor(upstream))
