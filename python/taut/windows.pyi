"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

def atrous_conv2d(value: Any, filters: Any, rate: Any, padding: Any, name: str | None = ...) -> Tensor:
    """Convolution over two spatial dimensions with filters whose elements are `rate` apart."""

def avg_pool(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = ..., name: str | None = ...) -> Tensor:
    """The mean of every window, of what lies inside, over one to three spatial dimensions."""

def avg_pool1d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = ..., name: str | None = ...) -> Tensor:
    """The mean of every window, of what lies inside, over one spatial dimension."""

def avg_pool2d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = ..., name: str | None = ...) -> Tensor:
    """The mean of every window, of what lies inside, over two spatial dimensions."""

def avg_pool3d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = ..., name: str | None = ...) -> Tensor:
    """The mean of every window, of what lies inside, over three spatial dimensions."""

def conv1d(input: Any, filters: Any, stride: Any, padding: Any, data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor:
    """Convolution over one spatial dimension."""

def conv1d_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = ..., data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor:
    """The way back from a convolution over one dimension; `filters` are `[width, outputs, channels]`."""

def conv2d(input: Any, filters: Any, strides: Any, padding: Any, data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor:
    """Convolution over two spatial dimensions."""

def conv2d_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = ..., data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor:
    """The way back from a convolution; `filters` are `[height, width, outputs, channels]`."""

def conv3d(input: Any, filters: Any, strides: Any, padding: Any, data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor:
    """Convolution over three spatial dimensions."""

def conv3d_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = ..., data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor:
    """The way back from a convolution over three spatial dimensions."""

def conv_transpose(input: Any, filters: Any, output_shape: Any, strides: Any, padding: Any = ..., data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor:
    """The way back from a convolution over the filters' one, two or three spatial dimensions."""

def convolution(input: Any, filters: Any, strides: Any = ..., padding: Any = ..., data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor:
    """Convolution over as many spatial dimensions as the filters have: one, two or three."""

def depthwise_conv2d(input: Any, filter: Any, strides: Any, padding: Any, data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor:
    """Convolution of every channel by itself; `filter` is `[height, width, channels, multiplier]`."""

def max_pool(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str | None = ..., name: str | None = ...) -> Tensor:
    """The largest element of every window, over one to three spatial dimensions."""

def max_pool1d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = ..., name: str | None = ...) -> Tensor:
    """The largest element of every window over one spatial dimension."""

def max_pool2d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = ..., name: str | None = ...) -> Tensor:
    """The largest element of every window over two spatial dimensions."""

def max_pool3d(input: Any, ksize: Any, strides: Any, padding: Any, data_format: str = ..., name: str | None = ...) -> Tensor:
    """The largest element of every window over three spatial dimensions."""

def pool(input: Any, window_shape: Any, pooling_type: str, strides: Any = ..., padding: Any = ..., data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor:
    """The largest element ("MAX") or the mean ("AVG") of every window, whose elements may be apart."""

def separable_conv2d(input: Any, depthwise_filter: Any, pointwise_filter: Any, strides: Any, padding: Any, data_format: str | None = ..., dilations: Any = ..., name: str | None = ...) -> Tensor:
    """A convolution of every channel by itself, then one of size 1 over all channels."""
