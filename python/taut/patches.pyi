"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

from .windows import avg_pool2d as avg_pool2d
from .windows import depthwise_conv2d as depthwise_conv2d
def extract_patches(images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = ...) -> Tensor:
    """Patches of pictures, the pixels of each along the last axis: `[batch, rows, columns, pixels]`."""

from .math import reduce_mean as reduce_mean
from .math import reduce_prod as reduce_prod
def relu(features: TensorLike, *, name: str | None = ...) -> Any:
    """Each element, or zero where it is negative."""

def sobel_edges(image: Any) -> Tensor:
    """How fast each pixel changes downward and to the right, along a new last axis."""

def square(x: TensorLike, *, name: str | None = ...) -> Any:
    """The square of each element, `x * x`; integers wrap."""

def ssim(img1: Any, img2: Any, max_val: Any, filter_size: int = ..., filter_sigma: float = ..., k1: float = ..., k2: float = ..., return_index_map: bool = ...) -> Tensor:
    """How alike the structures of pictures are, up to 1: for each picture, or for each pixel."""

def ssim_multiscale(img1: Any, img2: Any, max_val: Any, power_factors: Sequence[float] = ..., filter_size: int = ..., filter_sigma: float = ..., k1: float = ..., k2: float = ...) -> Tensor:
    """As `ssim`, of pictures that are made smaller by half again and again: a factor for each size."""
