"""Colour spaces and adjustments of images."""

from __future__ import annotations

import math as _numbers
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from ..errors import DynamicShapeError
from .casting import saturate_cast
from .checks import check_holds, value_text
from .image import check_image
from .random import next_key, seed_key
from .reduction import reduce_mean, reduce_std

if TYPE_CHECKING:
    from .._typing import DTypeLike, TensorLike


def convert_image_dtype(image: TensorLike, dtype: DTypeLike, saturate: bool = False, name: str | None = None) -> Tensor:
    """Converts images to another type, scaling values: floats are in [0, 1], integers in [0, max]."""
    image, dtype = as_tensor(image), dtypes.as_dtype(dtype)
    cast = saturate_cast if saturate else raw.cast
    own = image.dtype
    if own == dtype:
        return image
    for one in (own, dtype):
        if not (one.is_integer or one.is_floating):
            refuse("convert_image_dtype", f"image types must be integers or floats, got {one.name}", TypeError)
    if own.is_integer and dtype.is_integer:
        if own.max > dtype.max:
            return cast(image // ((int(own.max) + 1) // (int(dtype.max) + 1)), dtype)
        return cast(image, dtype) * ((int(dtype.max) + 1) // (int(own.max) + 1))
    if own.is_floating and dtype.is_floating:
        return raw.cast(image, dtype)
    if own.is_integer:
        return raw.cast(image, dtype) * (1.0 / int(own.max))
    return cast(image * (int(dtype.max) + 0.5), dtype)


def _apply_to_floats(image: TensorLike, work: Callable[[Tensor], Tensor]) -> Tensor:
    """Applies a function to the image as floats in [0, 1]; the result has the image's type."""
    image = as_tensor(image)
    if image.dtype in (dtypes.float16, dtypes.float32):
        return work(image)
    return convert_image_dtype(work(convert_image_dtype(image, dtypes.float32)), image.dtype, saturate=True)


def adjust_brightness(image: TensorLike, delta: TensorLike) -> Tensor:
    """Adds `delta` to images as floats in [0, 1]."""
    return _apply_to_floats(image, lambda x: x + delta)


def _check_scalar(function: str, name: str, value: Any) -> None:
    if np.ndim(value):
        refuse(function, f"{name} must be a scalar, got shape {tuple(np.shape(value))}")


def adjust_contrast(images: TensorLike, contrast_factor: Any) -> Tensor:
    """Scales the distance of each pixel from its channel's mean."""
    _check_scalar("adjust_contrast", "contrast_factor", contrast_factor)

    def work(x: Tensor) -> Tensor:
        mean = reduce_mean(x, [-3, -2], True)
        return (x - mean) * contrast_factor + mean

    return _apply_to_floats(check_image("adjust_contrast", images), work)


def adjust_gamma(image: TensorLike, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """Computes `gain * image ** gamma` on images as floats in [0, 1]."""
    if isinstance(gamma, _native.Array):
        check_holds("adjust_gamma", raw.all(gamma >= 0), lambda: f"gamma must be >= 0, got {value_text(gamma, 3)}")
    elif gamma < 0:
        refuse("adjust_gamma", f"gamma must be >= 0, got {gamma}", ValueError)
    return _apply_to_floats(image, lambda x: gain * raw.pow(x, gamma))


def _random_factor(name: str, low: float, high: float, key: Tensor) -> Tensor:
    if high <= low:
        refuse(name, f"the upper bound must be above the lower bound, got [{low}, {high}]", ValueError)
    return raw.stateless_uniform(key, [], low, high, dtypes.float32)


def _check_lower(name: str, lower: float) -> None:
    if lower < 0:
        refuse(name, f"lower must be >= 0, got {lower}", ValueError)


def _check_hue(name: str, max_delta: float) -> None:
    if not 0 <= max_delta <= 0.5:
        refuse(name, f"max_delta must be in [0, 0.5], got {max_delta}", ValueError)


def random_brightness(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """Adjusts brightness by a random delta in [-max_delta, max_delta)."""
    return adjust_brightness(image, _random_factor("random_brightness", -max_delta, max_delta, next_key(seed)))


def random_contrast(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Adjusts contrast by a random factor in [lower, upper)."""
    _check_lower("random_contrast", lower)
    return adjust_contrast(image, _random_factor("random_contrast", lower, upper, next_key(seed)))


def per_image_standardization(image: TensorLike) -> Tensor:
    """Scales each image to mean 0 and variance 1, as float32.

    The deviation is taken to be at least that of one pixel in all.
    """
    x = cast_to(check_image("per_image_standardization", image), dtypes.float32)
    least = 1.0 / _numbers.sqrt(max(x.shape[-3:].num_elements(), 1))
    axes = [-3, -2, -1]
    return (x - reduce_mean(x, axes, True)) / raw.maximum(reduce_std(x, axes, True), least)


def rgb_to_grayscale(images: TensorLike, name: str | None = None) -> Tensor:
    """Converts RGB to one luma channel, in the image's type."""
    images = as_tensor(images)
    floats = convert_image_dtype(images, dtypes.float32) if images.dtype.is_integer else images
    _check_channels("rgb_to_grayscale", floats)
    weights = np.array([[0.2989], [0.587], [0.114]], floats.dtype.as_numpy_dtype)
    return convert_image_dtype(raw.tensordot(floats, as_tensor(weights), 1), images.dtype)


def grayscale_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Repeats a gray channel three times."""
    images = as_tensor(images)
    if not images.ndim or images.shape[-1] != 1:
        refuse("grayscale_to_rgb", f"the last axis must have size 1, got shape {images.shape}", ValueError)
    return raw.concat([images, images, images], -1)


def _check_channels(name: str, images: Tensor) -> None:
    if not images.ndim or images.shape[-1] != 3:
        refuse(name, f"the last axis must have size 3, got shape {images.shape}", ValueError)
    if not images.dtype.is_floating:
        text = f"expected floats, got {images.dtype.name}\n  help: convert it with tf.image.convert_image_dtype"
        refuse(name, text, TypeError)


def _split_channels(name: str, images: TensorLike) -> tuple[Tensor, Tensor, Tensor]:
    images = as_tensor(images)
    _check_channels(name, images)
    return images[..., 0], images[..., 1], images[..., 2]


def rgb_to_hsv(images: TensorLike, name: str | None = None) -> Tensor:
    """Converts RGB to hue, saturation and value, all in [0, 1]."""
    red, green, blue = _split_channels("rgb_to_hsv", images)
    value = raw.maximum(raw.maximum(red, green), blue)
    spread = value - raw.minimum(raw.minimum(red, green), blue)
    # The hue is the sector of the strongest channel plus the position within it.
    unit = 1.0 / (6.0 * raw.where(spread > 0.0, spread, 1.0))
    hue = raw.where(
        raw.equal(value, red),
        (green - blue) * unit,
        raw.where(raw.equal(value, green), (blue - red) * unit + 1.0 / 3.0, (red - green) * unit + 2.0 / 3.0),
    )
    hue = raw.where(spread > 0.0, raw.where(hue < 0.0, hue + 1.0, hue), 0.0)
    return raw.stack([hue, raw.div_no_nan(spread, value), value], -1)


def hsv_to_rgb(images: TensorLike, name: str | None = None) -> Tensor:
    """Converts hue, saturation and value to RGB."""
    hue, saturation, value = _split_channels("hsv_to_rgb", images)
    around = hue * 6.0
    parts = (raw.abs(around - 3.0) - 1.0, 2.0 - raw.abs(around - 2.0), 2.0 - raw.abs(around - 4.0))
    return raw.stack([((raw.clip_by_value(part, 0.0, 1.0) - 1.0) * saturation + 1.0) * value for part in parts], -1)


# Luma and two chroma components: those of blue and red (YUV), or these rotated by 33 degrees (YIQ).
# What each channel of RGB, and of the other space, adds to the channels of the result: TensorFlow's numbers, to the last digit.
_YUV = np.array([[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]])
_RGB_OF_YUV = np.array([[1.0, 1.0, 1.0], [0.0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0.0]])
_YIQ = np.array([[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]])
_RGB_OF_YIQ = np.array([[1.0, 1.0, 1.0], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]])


def _transform_channels(name: str, images: TensorLike, parts: Any) -> Tensor:
    images = as_tensor(images)
    _check_channels(name, images)
    return raw.tensordot(images, as_tensor(parts, images.dtype), 1)


def rgb_to_yuv(images: TensorLike) -> Tensor:
    """Converts RGB to YUV."""
    return _transform_channels("rgb_to_yuv", images, _YUV)


def yuv_to_rgb(images: TensorLike) -> Tensor:
    """Converts YUV to RGB."""
    return _transform_channels("yuv_to_rgb", images, _RGB_OF_YUV)


def rgb_to_yiq(images: TensorLike) -> Tensor:
    """Converts RGB to YIQ."""
    return _transform_channels("rgb_to_yiq", images, _YIQ)


def yiq_to_rgb(images: TensorLike) -> Tensor:
    """Converts YIQ to RGB."""
    return _transform_channels("yiq_to_rgb", images, _RGB_OF_YIQ)


def adjust_saturation(image: TensorLike, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Scales the saturation of RGB images."""
    _check_scalar("adjust_saturation", "saturation_factor", saturation_factor)

    def work(x: Tensor) -> Tensor:
        hsv = rgb_to_hsv(x)
        saturation = raw.clip_by_value(hsv[..., 1] * saturation_factor, 0.0, 1.0)
        return hsv_to_rgb(raw.stack([hsv[..., 0], saturation, hsv[..., 2]], -1))

    return _apply_to_floats(image, work)


def adjust_hue(image: TensorLike, delta: Any, name: str | None = None) -> Tensor:
    """Rotates the hue of RGB images; 1 is a full turn."""
    _check_scalar("adjust_hue", "delta", delta)
    known = not isinstance(delta, _native.Array) or not delta.is_symbolic
    if known and not -1 <= float(delta) <= 1:
        refuse("adjust_hue", f"delta must be in [-1, 1], got {float(delta)}", ValueError)

    def work(x: Tensor) -> Tensor:
        hsv = rgb_to_hsv(x)
        return hsv_to_rgb(raw.stack([raw.mod(hsv[..., 0] + delta, 1.0), hsv[..., 1], hsv[..., 2]], -1))

    return _apply_to_floats(image, work)


def random_saturation(image: TensorLike, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """Adjusts saturation by a random factor in [lower, upper)."""
    _check_lower("random_saturation", lower)
    return adjust_saturation(image, _random_factor("random_saturation", lower, upper, next_key(seed)))


def random_hue(image: TensorLike, max_delta: float, seed: int | None = None) -> Tensor:
    """Adjusts hue by a random delta in [-max_delta, max_delta)."""
    _check_hue("random_hue", max_delta)
    return adjust_hue(image, _random_factor("random_hue", -max_delta, max_delta, next_key(seed)))


def stateless_random_brightness(image: TensorLike, max_delta: float, seed: Any) -> Tensor:
    """Adjusts brightness by a random delta that depends on `seed` alone."""
    key = seed_key("stateless_random_brightness", seed)
    return adjust_brightness(image, _random_factor("stateless_random_brightness", -max_delta, max_delta, key))


def stateless_random_contrast(image: TensorLike, lower: float, upper: float, seed: Any) -> Tensor:
    """Adjusts contrast by a random factor that depends on `seed` alone."""
    _check_lower("stateless_random_contrast", lower)
    key = seed_key("stateless_random_contrast", seed)
    return adjust_contrast(image, _random_factor("stateless_random_contrast", lower, upper, key))


def stateless_random_saturation(image: TensorLike, lower: float, upper: float, seed: Any) -> Tensor:
    """Adjusts saturation by a random factor that depends on `seed` alone."""
    _check_lower("stateless_random_saturation", lower)
    key = seed_key("stateless_random_saturation", seed)
    return adjust_saturation(image, _random_factor("stateless_random_saturation", lower, upper, key))


def stateless_random_hue(image: TensorLike, max_delta: float, seed: Any) -> Tensor:
    """Adjusts hue by a random delta that depends on `seed` alone."""
    _check_hue("stateless_random_hue", max_delta)
    key = seed_key("stateless_random_hue", seed)
    return adjust_hue(image, _random_factor("stateless_random_hue", -max_delta, max_delta, key))


def adjust_jpeg_quality(image: TensorLike, jpeg_quality: Any, dct_method: str = "", name: str | None = None) -> Tensor:
    """Encodes an image as JPEG of this quality (0 to 100) and decodes it. Pixels may differ from other codecs by rounding."""
    from ..io import decode_jpeg, encode_jpeg

    image = check_image("adjust_jpeg_quality", image)
    quality = as_tensor(jpeg_quality)
    if image.is_symbolic or quality.is_symbolic:
        refuse("adjust_jpeg_quality", "the encoded image depends on the values of traced tensors", DynamicShapeError)
    if not 0 <= int(quality) <= 100:
        refuse("adjust_jpeg_quality", f"jpeg_quality must be in [0, 100], got {int(quality)}")
    pixels = convert_image_dtype(image, dtypes.uint8, saturate=True)
    coded = decode_jpeg(encode_jpeg(pixels, quality=int(quality)), dct_method=dct_method)
    return convert_image_dtype(coded, image.dtype, saturate=True)


def _random_quality(name: str, image: TensorLike, low: Any, high: Any, key: Tensor) -> Tensor:
    if not 0 <= low < high <= 100:
        refuse(name, f"expected 0 <= min_jpeg_quality < max_jpeg_quality <= 100, got {low} and {high}", ValueError)
    return adjust_jpeg_quality(image, raw.cast(_random_factor(name, float(low), float(high), key), dtypes.int32))


def random_jpeg_quality(
    image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: int | None = None
) -> Tensor:
    """Encodes an image as JPEG of a random quality in [min_jpeg_quality, max_jpeg_quality) and decodes it."""
    return _random_quality("random_jpeg_quality", image, min_jpeg_quality, max_jpeg_quality, next_key(seed))


def stateless_random_jpeg_quality(image: TensorLike, min_jpeg_quality: int, max_jpeg_quality: int, seed: Any) -> Tensor:
    """As `random_jpeg_quality`; the quality depends on `seed` alone."""
    name = "stateless_random_jpeg_quality"
    return _random_quality(name, image, min_jpeg_quality, max_jpeg_quality, seed_key(name, seed))
