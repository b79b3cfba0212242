"""Windows that slide over images: convolution and pooling, as `tf.nn` has them."""

from __future__ import annotations

from typing import Any

from . import _native
from ._common import _ints, _refuse

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

_avg_pool = op("avg_pool")
_conv = {1: op("conv1d"), 2: op("conv2d"), 3: op("conv3d")}
_conv_transpose = op("conv_transpose")
_depthwise = op("depthwise_conv2d")
_max_pool = op("max_pool")
_pad = op("pad")
_reshape = op("reshape")

_FORMATS = {1: ("NWC", "NCW"), 2: ("NHWC", "NCHW"), 3: ("NDHWC", "NCDHW")}


def _spatial(name: str, what: str, given: Any, rank: int, channels_first: bool) -> list[int]:
    """A number per spatial dimension, from one for all, or for each, or for each of the tensor's."""
    numbers = [1] if given is None else _ints(given)
    if len(numbers) == 1:
        return numbers * rank
    if len(numbers) == rank + 2:
        inner = numbers[2:] if channels_first else numbers[1:-1]
        outer = [numbers[0], numbers[1] if channels_first else numbers[-1]]
        if outer != [1, 1]:
            _refuse(name, f"{what}={numbers} go over the batch or the channels, too")
        return inner
    if len(numbers) != rank:
        _refuse(name, f"{what}={numbers} for {rank} spatial dimensions")
    return numbers


def _sliding(
    name: str, strides: Any, padding: Any, data_format: str | None, dilations: Any, rank: int
) -> dict[str, Any]:
    """How a window slides, in the op table's words."""
    data_format = _FORMATS[rank][0] if data_format is None else data_format
    first = data_format.startswith("NC")
    how = {
        "strides": _spatial(name, "strides", strides, rank, first),
        "dilations": _spatial(name, "dilations", dilations, rank, first),
        "data_format": data_format,
    }
    if isinstance(padding, str):
        return {**how, "padding": padding.upper()}
    margins = [_ints(pair) for pair in padding]
    if len(margins) == rank + 2:
        margins = margins[2:] if first else margins[1:-1]
    return {**how, "padding": "EXPLICIT", "explicit_paddings": [one for pair in margins for one in pair]}


def _convolved(
    name: str, x: Any, filters: Any, strides: Any, padding: Any, data_format: Any, dilations: Any, rank: int
) -> _Tensor:
    x, filters = _tensor(x), _tensor(filters)
    how = _sliding(name, strides, padding, data_format, dilations, rank)
    if filters.ndim != rank + 2 or x.ndim < rank + 2:
        shapes = f"an image of shape {x.shape} and filters of shape {filters.shape}"
        _refuse(name, f"{shapes}, where {rank} spatial dimensions are needed")
    first = how["data_format"].startswith("NC")
    channels, per_group = x.shape[-rank - 1 if first else -1], filters.shape[-2]
    if not per_group or channels % per_group:
        _refuse(name, f"filters for {per_group} channels do not go with an image of {channels}")
    batch = x.shape[: x.ndim - rank - 1]
    if len(batch) == 1:
        return _conv[rank](x, filters, groups=channels // per_group, **how)
    flat = _reshape(x, [-1, *x.shape[len(batch) :]])
    made = _conv[rank](flat, filters, groups=channels // per_group, **how)
    return _reshape(made, [*batch, *made.shape[1:]])


def conv1d(
    input: Any,  # noqa: A002
    filters: Any,
    stride: Any,
    padding: Any,
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> _Tensor:
    """Convolution over one spatial dimension."""
    return _convolved("conv1d", input, filters, stride, padding, data_format, dilations, 1)


def conv2d(
    input: Any,  # noqa: A002
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> _Tensor:
    """Convolution over two spatial dimensions.

    Padding is "SAME", "VALID", or a pair of amounts per dimension. Filters for fewer channels than there
    are slide over groups of channels.
    """
    return _convolved("conv2d", input, filters, strides, padding, data_format, dilations, 2)


def conv3d(
    input: Any,  # noqa: A002
    filters: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> _Tensor:
    """Convolution over three spatial dimensions."""
    return _convolved("conv3d", input, filters, strides, padding, data_format, dilations, 3)


def convolution(
    input: Any,  # noqa: A002
    filters: Any,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> _Tensor:
    """Convolution over as many spatial dimensions as the filters have: one, two or three."""
    filters = _tensor(filters)
    if filters.ndim - 2 not in _FORMATS:
        _refuse("convolution", f"filters of shape {filters.shape} have not 1 to 3 spatial dimensions")
    return _convolved(
        "convolution", input, filters, strides, padding, data_format, dilations, filters.ndim - 2
    )


def atrous_conv2d(value: Any, filters: Any, rate: Any, padding: Any, name: str | None = None) -> _Tensor:
    """Convolution over two spatial dimensions with filters whose elements are `rate` apart."""
    return _convolved("atrous_conv2d", value, filters, 1, padding, None, rate, 2)


def _transposed(
    name: str,
    x: Any,
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any,
    data_format: Any,
    dilations: Any,
    rank: int,
) -> _Tensor:
    x, filters = _tensor(x), _tensor(filters)
    how = _sliding(name, strides, padding, data_format, dilations, rank)
    shape = _ints(output_shape)
    if len(shape) == rank:
        channels = [filters.shape[-2]]
        shape = [x.shape[0], *channels, *shape] if how["data_format"].startswith("NC") else \
            [x.shape[0], *shape, *channels]
    return _conv_transpose(x, filters, shape, **how)


def conv1d_transpose(
    input: Any,  # noqa: A002
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NWC",
    dilations: Any = None,
    name: str | None = None,
) -> _Tensor:
    """The way back from a convolution over one dimension; `filters` are `[width, outputs, channels]`."""
    return _transposed(
        "conv1d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 1
    )


def conv2d_transpose(
    input: Any,  # noqa: A002
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NHWC",
    dilations: Any = None,
    name: str | None = None,
) -> _Tensor:
    """The way back from a convolution; `filters` are `[height, width, outputs, channels]`."""
    return _transposed(
        "conv2d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 2
    )


def conv3d_transpose(
    input: Any,  # noqa: A002
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = "NDHWC",
    dilations: Any = None,
    name: str | None = None,
) -> _Tensor:
    """The way back from a convolution over three spatial dimensions."""
    return _transposed(
        "conv3d_transpose", input, filters, output_shape, strides, padding, data_format, dilations, 3
    )


def conv_transpose(
    input: Any,  # noqa: A002
    filters: Any,
    output_shape: Any,
    strides: Any,
    padding: Any = "SAME",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> _Tensor:
    """The way back from a convolution over the filters' one, two or three spatial dimensions."""
    filters = _tensor(filters)
    if filters.ndim - 2 not in _FORMATS:
        _refuse("conv_transpose", f"filters of shape {filters.shape} have not 1 to 3 spatial dimensions")
    rank = filters.ndim - 2
    return _transposed(
        "conv_transpose", input, filters, output_shape, strides, padding, data_format, dilations, rank
    )


def depthwise_conv2d(
    input: Any,  # noqa: A002
    filter: Any,  # noqa: A002
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> _Tensor:
    """Convolution of every channel by itself; `filter` is `[height, width, channels, multiplier]`."""
    x, how = _tensor(input), _sliding("depthwise_conv2d", strides, padding, data_format, dilations, 2)
    margins = how.pop("explicit_paddings", None)
    if margins is not None:
        pairs = [margins[:2], margins[2:]]
        none = [[0, 0]]
        x = _pad(x, none * 2 + pairs if how["data_format"] == "NCHW" else none + pairs + none)
        how["padding"] = "VALID"
    return _depthwise(x, filter, **how)


def separable_conv2d(
    input: Any,  # noqa: A002
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> _Tensor:
    """A convolution of every channel by itself, then one of size 1 over all channels."""
    apart = depthwise_conv2d(input, depthwise_filter, strides, padding, data_format, dilations)
    return _convolved("separable_conv2d", apart, pointwise_filter, 1, "VALID", data_format, 1, 2)


def _pooled(
    name: str,
    which: Any,
    x: Any,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None,
    rank: int | None = None,
    dilations: Any = None,
) -> _Tensor:
    x = _tensor(x)
    rank = x.ndim - 2 if rank is None else rank
    if rank not in _FORMATS or x.ndim != rank + 2:
        wanted = rank if rank in _FORMATS else "1 to 3"
        _refuse(
            name, f"an image of shape {x.shape} has not a batch, channels and {wanted} spatial dimensions"
        )
    how = _sliding(name, strides, padding, data_format, dilations, rank)
    window = _spatial(name, "ksize", ksize, rank, how["data_format"].startswith("NC"))
    return which(x, window, **how)


def max_pool(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> _Tensor:
    """The largest element of every window, over one to three spatial dimensions."""
    return _pooled("max_pool", _max_pool, input, ksize, strides, padding, data_format)


def max_pool1d(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NWC",
    name: str | None = None,
) -> _Tensor:
    """The largest element of every window over one spatial dimension."""
    return _pooled("max_pool1d", _max_pool, input, ksize, strides, padding, data_format, 1)


def max_pool2d(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> _Tensor:
    """The largest element of every window over two spatial dimensions."""
    return _pooled("max_pool2d", _max_pool, input, ksize, strides, padding, data_format, 2)


def max_pool3d(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> _Tensor:
    """The largest element of every window over three spatial dimensions."""
    return _pooled("max_pool3d", _max_pool, input, ksize, strides, padding, data_format, 3)


def avg_pool(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str | None = None,
    name: str | None = None,
) -> _Tensor:
    """The mean of every window, of what lies inside, over one to three spatial dimensions."""
    return _pooled("avg_pool", _avg_pool, input, ksize, strides, padding, data_format)


def avg_pool1d(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NWC",
    name: str | None = None,
) -> _Tensor:
    """The mean of every window, of what lies inside, over one spatial dimension."""
    return _pooled("avg_pool1d", _avg_pool, input, ksize, strides, padding, data_format, 1)


def avg_pool2d(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
) -> _Tensor:
    """The mean of every window, of what lies inside, over two spatial dimensions."""
    return _pooled("avg_pool2d", _avg_pool, input, ksize, strides, padding, data_format, 2)


def avg_pool3d(
    input: Any,  # noqa: A002
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NDHWC",
    name: str | None = None,
) -> _Tensor:
    """The mean of every window, of what lies inside, over three spatial dimensions."""
    return _pooled("avg_pool3d", _avg_pool, input, ksize, strides, padding, data_format, 3)


def pool(
    input: Any,  # noqa: A002
    window_shape: Any,
    pooling_type: str,
    strides: Any = None,
    padding: Any = "VALID",
    data_format: str | None = None,
    dilations: Any = None,
    name: str | None = None,
) -> _Tensor:
    """The largest element ("MAX") or the mean ("AVG") of every window, whose elements may be apart."""
    which = {"MAX": _max_pool, "AVG": _avg_pool}.get(pooling_type)
    if which is None:
        _refuse("pool", f"pooling_type is 'MAX' or 'AVG', not {pooling_type!r}", ValueError)
    return _pooled("pool", which, input, window_shape, strides, padding, data_format, None, dilations)
