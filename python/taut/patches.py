"""Pictures seen through windows: patches, edges, likeness; as `tf.image` has them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _native, dtypes
from ._common import _ints, _refuse
from .math import reduce_mean, reduce_prod, square
from .nn import avg_pool2d, depthwise_conv2d, relu

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

_gather = op("gather")
_pad = op("pad")
_pow = op("pow")
_reshape = op("reshape")
_stack = op("stack")
_transpose = op("transpose")


def _batch(name: str, images: Any) -> _Tensor:
    images = _tensor(images)
    if images.ndim != 4:
        _refuse(name, f"a batch of pictures has four dimensions, not shape {images.shape}", ValueError)
    return images


def _inner(name: str, what: str, given: Any) -> list[int]:
    numbers = _ints(given)
    if len(numbers) != 4 or numbers[0] != 1 or numbers[3] != 1 or min(numbers) < 1:
        _refuse(name, f"{what} are [1, rows, columns, 1], not {numbers}", ValueError)
    return numbers[1:3]


def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> _Tensor:
    """Patches of pictures, the pixels of each along the last axis: `[batch, rows, columns, pixels]`.

    They begin `strides` apart; the pixels of one are `rates` apart.
    """
    x = _batch("extract_patches", images)
    sizes, strides, rates = (
        _inner("extract_patches", what, given)
        for what, given in (("sizes", sizes), ("strides", strides), ("rates", rates))
    )
    padding = padding.upper()
    if padding not in ("SAME", "VALID"):
        _refuse("extract_patches", f"padding is 'SAME' or 'VALID', not {padding!r}", ValueError)
    margins, places = [[0, 0]], []
    for length, size, stride, rate in zip(x.shape[1:3], sizes, strides, rates):
        spread = (size - 1) * rate + 1
        count = -(-length // stride) if padding == "SAME" else max(length - spread, -1) // stride + 1
        free = max((count - 1) * stride + spread - length, 0) if padding == "SAME" else 0
        margins.append([free // 2, free - free // 2])
        places.append(np.arange(count)[:, None] * stride + np.arange(size) * rate)
    if any(map(any, margins)):
        x = _pad(x, [*margins, [0, 0]])
    rows, columns = places
    batch, channels = x.shape[0], x.shape[3]
    x = _gather(x, _tensor(rows.reshape(-1)), 1)
    x = _gather(x, _tensor(columns.reshape(-1)), 2)
    x = _reshape(x, [batch, *rows.shape, *columns.shape, channels])
    x = _transpose(x, [0, 1, 3, 2, 4, 5])
    return _reshape(x, [*x.shape[:3], sizes[0] * sizes[1] * channels])


def sobel_edges(image: Any) -> _Tensor:
    """How fast each pixel changes downward and to the right, along a new last axis."""
    x = _batch("sobel_edges", image)
    x = _pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    down = x[:, 2:] - x[:, :-2]
    right = x[:, :, 2:] - x[:, :, :-2]
    down = down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:]
    right = right[:, :-2] + 2 * right[:, 1:-1] + right[:, 2:]
    return _stack([down, right], -1)


# Likeness, seen through a window of Gauss's weights.


def _pair(name: str, one: Any, other: Any, max_val: Any) -> tuple[_Tensor, _Tensor, _Tensor]:
    """Both pictures as floats, as batches, and the largest value that they can have."""
    from .image import convert_image_dtype

    one, other = _tensor(one), _tensor(other)
    if one.ndim < 3 or one.shape != other.shape:
        shapes = f"shapes {one.shape} and {other.shape}"
        _refuse(name, f"two pictures, or batches of them, have one shape, and not {shapes}", ValueError)
    peak = convert_image_dtype(op("cast")(max_val, one.dtype), dtypes.float32)
    return (
        *(_reshape(convert_image_dtype(x, dtypes.float32), [-1, *x.shape[-3:]]) for x in (one, other)),
        peak,
    )


def _likeness(
    name: str, x: _Tensor, y: _Tensor, peak: _Tensor, size: int, sigma: float, k1: float, k2: float
) -> tuple[_Tensor, _Tensor]:
    """For each pixel and channel, how alike light and contrast are, and contrast alone."""
    if min(x.shape[1:3]) < size:
        _refuse(name, f"a filter of {size} pixels does not fit into {x.shape[1]}x{x.shape[2]}")
    weights = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    weights = np.tile((weights / weights.sum())[:, None, None, None], (1, 1, x.shape[3], 1)).astype("float32")
    down, across = _tensor(weights), _tensor(weights.transpose(1, 0, 2, 3))

    def blurred(image: _Tensor) -> _Tensor:
        return depthwise_conv2d(depthwise_conv2d(image, down, 1, "VALID"), across, 1, "VALID")

    c1, c2 = square(k1 * peak), square(k2 * peak)
    a, b = blurred(x), blurred(y)
    product, squares = 2.0 * a * b, square(a) + square(b)
    light = (product + c1) / (squares + c1)
    contrast = (2.0 * blurred(x * y) - product + c2) / (blurred(square(x) + square(y)) - squares + c2)
    return light * contrast, contrast


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> _Tensor:
    """How alike the structures of pictures are, up to 1: for each picture, or for each pixel."""
    x, y, peak = _pair("ssim", img1, img2, max_val)
    made, _ = _likeness("ssim", x, y, peak, int(filter_size), filter_sigma, k1, k2)
    made = reduce_mean(made, [-1] if return_index_map else [-3, -2, -1])
    return _reshape(made, [*_tensor(img1).shape[:-3], *made.shape[1:]])


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> _Tensor:
    """As `ssim`, of pictures that are made smaller by half again and again: a factor for each size."""
    x, y, peak = _pair("ssim_multiscale", img1, img2, max_val)
    parts = []
    for number, factor in enumerate(power_factors):
        if number:
            x, y = _halved(x), _halved(y)
        both, contrast = _likeness("ssim_multiscale", x, y, peak, int(filter_size), filter_sigma, k1, k2)
        last = number == len(power_factors) - 1
        parts.append(_pow(relu(reduce_mean(both if last else contrast, [1, 2])), factor))
    made = reduce_mean(reduce_prod(_stack(parts, -1), -1), -1)
    return _reshape(made, _tensor(img1).shape[:-3])


def _halved(x: _Tensor) -> _Tensor:
    odd = [[0, size % 2] for size in x.shape[1:3]]
    x = _pad(x, [[0, 0], *odd, [0, 0]], "SYMMETRIC") if any(map(any, odd)) else x
    return avg_pool2d(x, 2, 2, "VALID")
