"""Image quality measures and gradients."""

from __future__ import annotations

import math as _numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import refuse
from .._native import Tensor, as_tensor
from .color import convert_image_dtype
from .conv import depthwise_conv2d
from .image import check_image
from .patches import check_batch
from .pool import avg_pool2d
from .reduction import reduce_mean, reduce_prod, reduce_sum

if TYPE_CHECKING:
    from .._typing import TensorLike


def psnr(a: TensorLike, b: TensorLike, max_val: TensorLike, name: str | None = None) -> Tensor:
    """Computes the peak signal-to-noise ratio in decibels."""
    a, b = as_tensor(a), as_tensor(b)
    # Integers, and their largest value, become floats in [0, 1].
    a, b, peak = (convert_image_dtype(one, dtypes.float32) for one in (a, b, raw.cast(max_val, a.dtype)))
    error = reduce_mean(raw.squared_difference(a, b), [-3, -2, -1])
    return (20.0 * raw.log(peak) - 10.0 * raw.log(error)) * (1.0 / _numbers.log(10.0))


def total_variation(images: TensorLike, name: str | None = None) -> Tensor:
    """Computes the total variation: the sum of absolute differences of neighbouring pixels."""
    images = check_image("total_variation", images)
    if images.dtype.is_unsigned:
        text = f"expected floats or signed integers, got {images.dtype.name}, in which differences are not negative"
        refuse("total_variation", f"{text}\n  help: convert it with tf.image.convert_image_dtype", TypeError)
    down = images[..., 1:, :, :] - images[..., :-1, :, :]
    right = images[..., :, 1:, :] - images[..., :, :-1, :]
    return reduce_sum(raw.abs(down), [-3, -2, -1]) + reduce_sum(raw.abs(right), [-3, -2, -1])


def image_gradients(image: TensorLike) -> tuple[Tensor, Tensor]:
    """Computes the differences of each pixel to the one below and the one to the right; 0 at the border."""
    image = as_tensor(image)
    if image.ndim != 4:
        text = f"expected rank 4, got shape {image.shape}"
        refuse("image_gradients", text, ValueError)
    down = image[:, 1:] - image[:, :-1]
    right = image[:, :, 1:] - image[:, :, :-1]
    return raw.pad(down, [[0, 0], [0, 1], [0, 0], [0, 0]]), raw.pad(right, [[0, 0], [0, 0], [0, 1], [0, 0]])


def _image_pair(name: str, one: Any, other: Any, max_val: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
    """Both images as float32 batches, and the dynamic range of their values."""
    one, other = as_tensor(one), as_tensor(other)
    if one.ndim < 3 or one.shape != other.shape:
        shapes = f"{one.shape} and {other.shape}"
        refuse(name, f"both images must have one shape of rank >= 3, got {shapes}", ValueError)
    peak = convert_image_dtype(raw.cast(max_val, one.dtype), dtypes.float32)
    first, second = (raw.reshape(convert_image_dtype(x, dtypes.float32), [-1, *x.shape[-3:]]) for x in (one, other))
    return first, second, peak


def _ssim_map(
    name: str, x: Tensor, y: Tensor, peak: Tensor, size: int, sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """The structural similarity, and its contrast term alone, per pixel and channel."""
    if min(x.shape[1:3]) < size:
        refuse(name, f"filter_size must be at most the image's {x.shape[1]}x{x.shape[2]}, got {size}")
    weights = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    weights = np.tile((weights / weights.sum())[:, None, None, None], (1, 1, x.shape[3], 1)).astype("float32")
    down, across = as_tensor(weights), as_tensor(weights.transpose(1, 0, 2, 3))

    def blurred(image: Tensor) -> Tensor:
        return depthwise_conv2d(depthwise_conv2d(image, down, 1, "VALID"), across, 1, "VALID")

    c1, c2 = raw.square(k1 * peak), raw.square(k2 * peak)
    a, b = blurred(x), blurred(y)
    product, squares = 2.0 * a * b, raw.square(a) + raw.square(b)
    light = (product + c1) / (squares + c1)
    contrast = (2.0 * blurred(x * y) - product + c2) / (blurred(raw.square(x) + raw.square(y)) - squares + c2)
    return light * contrast, contrast


def ssim(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    return_index_map: bool = False,
) -> Tensor:
    """Computes the structural similarity (SSIM) with a Gaussian window: per image, or per pixel."""
    x, y, peak = _image_pair("ssim", img1, img2, max_val)
    made, _ = _ssim_map("ssim", x, y, peak, int(filter_size), filter_sigma, k1, k2)
    made = reduce_mean(made, [-1] if return_index_map else [-3, -2, -1])
    return raw.reshape(made, [*as_tensor(img1).shape[:-3], *made.shape[1:]])


def ssim_multiscale(
    img1: TensorLike,
    img2: TensorLike,
    max_val: TensorLike,
    power_factors: Sequence[float] = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333),
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """Computes the multi-scale structural similarity (MS-SSIM), with a power factor per scale."""
    x, y, peak = _image_pair("ssim_multiscale", img1, img2, max_val)
    parts = []
    for number, factor in enumerate(power_factors):
        if number:
            x, y = _downsample(x), _downsample(y)
        both, contrast = _ssim_map("ssim_multiscale", x, y, peak, int(filter_size), filter_sigma, k1, k2)
        last = number == len(power_factors) - 1
        parts.append(raw.pow(raw.relu(reduce_mean(both if last else contrast, [1, 2])), factor))
    made = reduce_mean(reduce_prod(raw.stack(parts, -1), -1), -1)
    return raw.reshape(made, as_tensor(img1).shape[:-3])


def _downsample(x: Tensor) -> Tensor:
    odd = [[0, size % 2] for size in x.shape[1:3]]
    x = raw.pad(x, [[0, 0], *odd, [0, 0]], "SYMMETRIC") if any(map(any, odd)) else x
    return avg_pool2d(x, 2, 2, "VALID")


def sobel_edges(image: TensorLike) -> Tensor:
    """Computes Sobel gradients in vertical and horizontal direction, along a new last axis."""
    x = check_batch("sobel_edges", image)
    x = raw.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "REFLECT")
    down = x[:, 2:] - x[:, :-2]
    right = x[:, :, 2:] - x[:, :, :-2]
    down = down[:, :, :-2] + 2 * down[:, :, 1:-1] + down[:, :, 2:]
    right = right[:, :-2] + 2 * right[:, 1:-1] + right[:, 2:]
    return raw.stack([down, right], -1)
