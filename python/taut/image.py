"""Pictures: tensors `[height, width, channels]`, or batches of them."""

from __future__ import annotations

import math as _numbers
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native, dtypes
from ._common import _as, _ints, _refuse
from .boxes import crop_and_resize, non_max_suppression, non_max_suppression_with_scores  # noqa: F401
from .indexing import gather
from .math import (  # noqa: A004
    abs,
    divide_no_nan,
    equal,
    log,
    maximum,
    minimum,
    reduce_mean,
    reduce_std,
    reduce_sum,
    squared_difference,
)
from .ops import saturate_cast
from .patches import extract_patches, sobel_edges, ssim, ssim_multiscale  # noqa: F401
from .random import _drawn_key, _given_key

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

_cast = op("cast")
_clip = op("clip_by_value")
_concat = op("concat")
_integers = op("stateless_integers")
_matmul = op("matmul")
_mod = op("mod")
_pad = op("pad")
_pow = op("pow")
_range = op("range")
_reshape = op("reshape")
_reverse = op("reverse")
_stack = op("stack")
_tensordot = op("tensordot")
_transpose = op("swapaxes")
_uniform = op("stateless_uniform")
_where = op("where")


def _image(name: str, image: Any) -> _Tensor:
    """One picture, or a batch of them."""
    image = _tensor(image)
    if image.ndim not in (3, 4):
        text = f"a picture has three dimensions and a batch of them four, not shape {image.shape}"
        _refuse(name, text, ValueError)
    return image


# Turning.


def flip_left_right(image: Any) -> _Tensor:
    """The picture, mirrored left to right."""
    return _reverse(_image("flip_left_right", image), -2)


def flip_up_down(image: Any) -> _Tensor:
    """The picture, upside down."""
    return _reverse(_image("flip_up_down", image), -3)


def transpose(image: Any, name: str | None = None) -> _Tensor:
    """The picture with rows and columns exchanged."""
    return _transpose(_image("transpose", image), -3, -2)


def rot90(image: Any, k: Any = 1, name: str | None = None) -> _Tensor:
    """The picture, turned counter-clockwise by `k` quarter turns."""
    image, k = _image("rot90", image), int(k) % 4
    if k == 1:
        return _reverse(_transpose(image, -3, -2), -3)
    if k == 2:
        return _reverse(image, [-3, -2])
    return _reverse(_transpose(image, -3, -2), -2) if k == 3 else image


def _maybe(key: _Tensor, image: _Tensor, turned: _Tensor) -> _Tensor:
    """Each picture turned with probability one half."""
    shape = [image.shape[0], 1, 1, 1] if image.ndim == 4 else []
    return _where(_uniform(key, shape, 0.0, 1.0, dtypes.float32) < 0.5, turned, image)


def random_flip_left_right(image: Any, seed: int | None = None) -> _Tensor:
    """Each picture, mirrored left to right with probability one half."""
    image = _image("random_flip_left_right", image)
    return _maybe(_drawn_key(seed), image, _reverse(image, -2))


def random_flip_up_down(image: Any, seed: int | None = None) -> _Tensor:
    """Each picture, upside down with probability one half."""
    image = _image("random_flip_up_down", image)
    return _maybe(_drawn_key(seed), image, _reverse(image, -3))


def stateless_random_flip_left_right(image: Any, seed: Any) -> _Tensor:
    """As `random_flip_left_right`, by a seed of two numbers."""
    image = _image("stateless_random_flip_left_right", image)
    return _maybe(_given_key("stateless_random_flip_left_right", seed), image, _reverse(image, -2))


def stateless_random_flip_up_down(image: Any, seed: Any) -> _Tensor:
    """As `random_flip_up_down`, by a seed of two numbers."""
    image = _image("stateless_random_flip_up_down", image)
    return _maybe(_given_key("stateless_random_flip_up_down", seed), image, _reverse(image, -3))


# Cutting and padding.


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> _Tensor:
    """The part of this size whose upper left corner is at the offsets."""
    image = _image("crop_to_bounding_box", image)
    top, left, height, width = map(int, (offset_height, offset_width, target_height, target_width))
    rows, columns = image.shape[-3:-1]
    if top < 0 or left < 0 or height <= 0 or width <= 0 or top + height > rows or left + width > columns:
        part = f"{height}x{width} pixels at ({top}, {left})"
        _refuse("crop_to_bounding_box", f"{part} do not lie inside {rows}x{columns}", ValueError)
    return image[..., top : top + height, left : left + width, :]


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> _Tensor:
    """A black picture of this size with the picture at the offsets."""
    image = _image("pad_to_bounding_box", image)
    top, left, height, width = map(int, (offset_height, offset_width, target_height, target_width))
    bottom, right = height - top - image.shape[-3], width - left - image.shape[-2]
    if min(top, left, bottom, right) < 0:
        part = f"{image.shape[-3]}x{image.shape[-2]} pixels at ({top}, {left})"
        _refuse("pad_to_bounding_box", f"{part} do not lie inside {height}x{width}", ValueError)
    return _pad(image, [[0, 0]] * (image.ndim - 3) + [[top, bottom], [left, right], [0, 0]])


def central_crop(image: Any, central_fraction: float) -> _Tensor:
    """The middle of the picture: this fraction of its height and width."""
    image, fraction = _image("central_crop", image), float(central_fraction)
    if not 0.0 < fraction <= 1.0:
        _refuse("central_crop", f"a fraction lies between 0 and 1, not {fraction}", ValueError)
    if fraction == 1.0:
        return image
    rows, columns = image.shape[-3:-1]
    top, left = (int((size - size * fraction) / 2) for size in (rows, columns))
    return image[..., top : rows - top, left : columns - left, :]


def resize_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> _Tensor:
    """The middle of the picture, or the picture in the middle of black, as the size asks for."""
    image, height, width = _image("resize_with_crop_or_pad", image), int(target_height), int(target_width)
    if height <= 0 or width <= 0:
        _refuse("resize_with_crop_or_pad", f"{height}x{width} is no size", ValueError)
    rows, columns = image.shape[-3:-1]
    inner = min(height, rows), min(width, columns)
    image = crop_to_bounding_box(image, max(rows - height, 0) // 2, max(columns - width, 0) // 2, *inner)
    return pad_to_bounding_box(image, max(height - rows, 0) // 2, max(width - columns, 0) // 2, height, width)


def random_crop(value: Any, size: Any, seed: int | None = None, name: str | None = None) -> _Tensor:
    """A part of this size from a random place."""
    return _crop("random_crop", value, size, _drawn_key(seed))


def stateless_random_crop(value: Any, size: Any, seed: Any, name: str | None = None) -> _Tensor:
    """As `random_crop`, by a seed of two numbers."""
    return _crop("stateless_random_crop", value, size, _given_key("stateless_random_crop", seed))


def _crop(name: str, value: Any, size: Any, key: _Tensor) -> _Tensor:
    value, size = _tensor(value), _ints(size)
    if len(size) != value.ndim or any(part > whole for part, whole in zip(size, value.shape)):
        _refuse(name, f"a part of shape {size} does not lie inside shape {value.shape}")
    draws = _integers(key, [value.ndim], 0, 1 << 62, dtypes.int64)
    for axis, (part, whole) in enumerate(zip(size, value.shape)):
        if part != whole:
            start = draws[axis] % (whole - part + 1)
            value = gather(value, start + _range(0, part, 1, dtypes.int64), axis=axis)
    return value


# Sizes. A resized picture is a product with a matrix per axis, whose rows are the weights of the old pixels.


def _triangle(x: Any) -> Any:
    return np.maximum(0.0, 1.0 - np.abs(x))


def _keys(x: Any) -> Any:
    x = np.abs(x)
    near, far = ((1.5 * x - 2.5) * x) * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _mitchell(x: Any) -> Any:
    x = np.abs(x)
    near = (7.0 * x**3 - 12.0 * x**2 + 16.0 / 3.0) / 6.0
    far = (-7.0 / 3.0 * x**3 + 12.0 * x**2 - 20.0 * x + 32.0 / 3.0) / 6.0
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _lanczos(radius: float) -> Callable:
    return lambda x: np.where(np.abs(x) < radius, np.sinc(x) * np.sinc(x / radius), 0.0)


def _gaussian(x: Any) -> Any:
    return np.where(np.abs(x) < 1.5, np.exp(-2.0 * x * x), 0.0)


_KERNELS = {
    "bilinear": _triangle,
    "bicubic": _keys,
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
    "gaussian": _gaussian,
    "mitchellcubic": _mitchell,
}


class ResizeMethod:
    """The ways to resize."""

    AREA = "area"
    BICUBIC = "bicubic"
    BILINEAR = "bilinear"
    GAUSSIAN = "gaussian"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    MITCHELLCUBIC = "mitchellcubic"
    NEAREST_NEIGHBOR = "nearest"


def _weights(method: str, old: int, new: int, antialias: bool) -> Any:
    """`[new, old]`: how much of each old pixel is in each new one. Rows sum to one."""
    scale = old / new
    if method == "area":
        edges = np.arange(new + 1) * scale
        pixels = np.arange(old)
        overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
        made = np.maximum(overlap, 0.0)
    else:
        spread = max(scale, 1.0) if antialias else 1.0
        centres = (np.arange(new) + 0.5) * scale
        made = _KERNELS[method]((np.arange(old) + 0.5 - centres[:, None]) / spread)
    return made / made.sum(1, keepdims=True)


def resize(
    images: Any,
    size: Any,
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> _Tensor:
    """Pictures of another size `[height, width]`: float32, but for "nearest", which keeps the type.

    With `antialias`, what is made smaller is made of all the pixels it covers.
    """
    images = _image("resize", images)
    method = getattr(method, "value", method)
    size = _ints(size)
    if len(size) != 2 or min(size) <= 0:
        _refuse("resize", f"a size is two positive numbers, not {size}", ValueError)
    known = sorted([*_KERNELS, "area", "nearest"])
    if method not in known:
        _refuse("resize", f"method {method!r} is unknown: {', '.join(known)}", ValueError)
    height, width = size
    rows, columns = images.shape[-3:-1]
    if preserve_aspect_ratio:
        scale = min(height / rows, width / columns)
        height, width = (_numbers.floor(old * scale + 0.5) for old in (rows, columns))
    if (height, width) == (rows, columns) and method not in ("gaussian", "mitchellcubic"):
        return images if method == "nearest" else _as(images, dtypes.float32)
    if method == "nearest":
        for axis, (old, new) in ((-3, (rows, height)), (-2, (columns, width))):
            places = np.minimum(np.floor((np.arange(new) + 0.5) * (old / new)), old - 1).astype(np.int32)
            images = gather(images, _tensor(places), axis=axis)
        return images
    made = _as(images, dtypes.float32)
    across, down = (
        _tensor(_weights(method, old, new, antialias).astype(np.float32))
        for old, new in ((columns, width), (rows, height))
    )
    made = _matmul(across, made)
    flat = _reshape(made, [*made.shape[:-2], width * made.shape[-1]])
    return _reshape(_matmul(down, flat), [*made.shape[:-3], height, width, made.shape[-1]])


def resize_with_pad(
    image: Any, target_height: Any, target_width: Any, method: str = "bilinear", antialias: bool = False
) -> _Tensor:
    """The picture as large as fits, in the middle of black, in a picture of this size."""
    image, height, width = _image("resize_with_pad", image), int(target_height), int(target_width)
    if height <= 0 or width <= 0:
        _refuse("resize_with_pad", f"{height}x{width} is no size", ValueError)
    ratio = max(image.shape[-3] / height, image.shape[-2] / width)
    rows, columns = (old / ratio for old in image.shape[-3:-1])
    image = resize(image, [int(rows), int(columns)], method, antialias=antialias)
    return pad_to_bounding_box(image, int((height - rows) / 2), int((width - columns) / 2), height, width)


# Values.


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> _Tensor:
    """The picture in another type, scaled: floats go from 0 to 1, integers up to their largest value."""
    image, dtype = _tensor(image), dtypes.as_dtype(dtype)
    cast = saturate_cast if saturate else _cast
    own = image.dtype
    if own == dtype:
        return image
    if own.is_integer and dtype.is_integer:
        if own.max > dtype.max:
            return cast(image // ((int(own.max) + 1) // (int(dtype.max) + 1)), dtype)
        return cast(image, dtype) * ((int(dtype.max) + 1) // (int(own.max) + 1))
    if own.is_floating and dtype.is_floating:
        return _cast(image, dtype)
    if own.is_integer:
        return _cast(image, dtype) * (1.0 / int(own.max))
    return cast(image * (int(dtype.max) + 0.5), dtype)


def _in_floats(image: Any, work: Callable[[_Tensor], _Tensor]) -> _Tensor:
    """Work on the picture as floats from 0 to 1; the result has the picture's type again."""
    image = _tensor(image)
    if image.dtype in (dtypes.float16, dtypes.float32):
        return work(image)
    return convert_image_dtype(work(convert_image_dtype(image, dtypes.float32)), image.dtype, saturate=True)


def adjust_brightness(image: Any, delta: Any) -> _Tensor:
    """The picture with `delta` added, as floats from 0 to 1."""
    return _in_floats(image, lambda x: x + delta)


def adjust_contrast(images: Any, contrast_factor: Any) -> _Tensor:
    """The picture with distances from each channel's mean multiplied."""

    def work(x: _Tensor) -> _Tensor:
        mean = reduce_mean(x, [-3, -2], True)
        return (x - mean) * contrast_factor + mean

    return _in_floats(_image("adjust_contrast", images), work)


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> _Tensor:
    """`gain * image ** gamma`, as floats from 0 to 1."""
    if not isinstance(gamma, _native.Array) and gamma < 0:
        _refuse("adjust_gamma", f"gamma is 0 at least, not {gamma}", ValueError)
    return _in_floats(image, lambda x: gain * _pow(x, gamma))


def _between(name: str, low: float, high: float, key: _Tensor) -> _Tensor:
    if high <= low:
        _refuse(name, f"the upper bound {high} is not above the lower one, {low}", ValueError)
    return _uniform(key, [], low, high, dtypes.float32)


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> _Tensor:
    """The picture with a random number between `-max_delta` and `max_delta` added."""
    return adjust_brightness(image, _between("random_brightness", -max_delta, max_delta, _drawn_key(seed)))


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> _Tensor:
    """The picture with its contrast multiplied by a random number from `lower` up to `upper`."""
    return adjust_contrast(image, _between("random_contrast", lower, upper, _drawn_key(seed)))


def per_image_standardization(image: Any) -> _Tensor:
    """Each picture with mean 0 and deviation 1, float32 unless it has a floating type.

    The deviation is taken to be at least that of one pixel in all.
    """
    image = _image("per_image_standardization", image)
    x = image if image.dtype.is_floating else _cast(image, dtypes.float32)
    least = 1.0 / _numbers.sqrt(max(x.shape[-3:].num_elements(), 1))
    axes = [-3, -2, -1]
    return (x - reduce_mean(x, axes, True)) / maximum(reduce_std(x, axes, True), least)


def rgb_to_grayscale(images: Any, name: str | None = None) -> _Tensor:
    """The lightness of each pixel, in one channel and the picture's own type."""
    images = _tensor(images)
    floats = convert_image_dtype(images, dtypes.float32) if images.dtype.is_integer else images
    _check_colours("rgb_to_grayscale", floats)
    weights = np.array([[0.2989], [0.587], [0.114]], floats.dtype.as_numpy_dtype)
    return convert_image_dtype(_tensordot(floats, _tensor(weights), 1), images.dtype)


def grayscale_to_rgb(images: Any, name: str | None = None) -> _Tensor:
    """A gray channel three times."""
    images = _tensor(images)
    if not images.ndim or images.shape[-1] != 1:
        _refuse("grayscale_to_rgb", f"the last axis holds one channel, not shape {images.shape}", ValueError)
    return _concat([images, images, images], -1)


# Colours.


def _check_colours(name: str, images: _Tensor) -> None:
    if not images.ndim or images.shape[-1] != 3:
        _refuse(name, f"the last axis holds three colours, not shape {images.shape}", ValueError)
    if not images.dtype.is_floating:
        text = f"{images.dtype.name} is not supported\n  help: tf.image.convert_image_dtype makes floats"
        _refuse(name, text, TypeError)


def _colours(name: str, images: Any) -> tuple[_Tensor, _Tensor, _Tensor]:
    images = _tensor(images)
    _check_colours(name, images)
    return images[..., 0], images[..., 1], images[..., 2]


def rgb_to_hsv(images: Any, name: str | None = None) -> _Tensor:
    """Hue, saturation and value of each pixel, all from 0 to 1."""
    red, green, blue = _colours("rgb_to_hsv", images)
    value = maximum(maximum(red, green), blue)
    spread = value - minimum(minimum(red, green), blue)
    # The part of the circle that belongs to the strongest colour, and where in it the pixel is.
    unit = 1.0 / (6.0 * _where(spread > 0.0, spread, 1.0))
    hue = _where(
        equal(value, red),
        (green - blue) * unit,
        _where(equal(value, green), (blue - red) * unit + 1.0 / 3.0, (red - green) * unit + 2.0 / 3.0),
    )
    hue = _where(spread > 0.0, _where(hue < 0.0, hue + 1.0, hue), 0.0)
    return _stack([hue, divide_no_nan(spread, value), value], -1)


def hsv_to_rgb(images: Any, name: str | None = None) -> _Tensor:
    """Red, green and blue of pixels given by hue, saturation and value."""
    hue, saturation, value = _colours("hsv_to_rgb", images)
    around = hue * 6.0
    parts = (abs(around - 3.0) - 1.0, 2.0 - abs(around - 2.0), 2.0 - abs(around - 4.0))
    return _stack([((_clip(part, 0.0, 1.0) - 1.0) * saturation + 1.0) * value for part in parts], -1)


# Light, and two colour differences: blue's and red's, or those turned by 33 degrees.
_LIGHT = np.array([0.299, 0.587, 0.114])
_YUV = np.stack([_LIGHT, 0.492111 * ([0, 0, 1] - _LIGHT), 0.877283 * ([1, 0, 0] - _LIGHT)])
_TURN = np.cos(np.radians(33)), np.sin(np.radians(33))
_YIQ = np.stack([_LIGHT, _TURN[0] * _YUV[2] - _TURN[1] * _YUV[1], _TURN[1] * _YUV[2] + _TURN[0] * _YUV[1]])


def _mixed(name: str, images: Any, parts: Any) -> _Tensor:
    images = _tensor(images)
    _check_colours(name, images)
    return _tensordot(images, _tensor(np.ascontiguousarray(parts.T), images.dtype), 1)


def rgb_to_yuv(images: Any) -> _Tensor:
    """The light of each pixel, and how much bluer and redder than that it is."""
    return _mixed("rgb_to_yuv", images, _YUV)


def yuv_to_rgb(images: Any) -> _Tensor:
    """Red, green and blue of pixels given by `rgb_to_yuv`."""
    return _mixed("yuv_to_rgb", images, np.linalg.inv(_YUV))


def rgb_to_yiq(images: Any) -> _Tensor:
    """The light of each pixel, and its colour between blue and orange and between green and purple."""
    return _mixed("rgb_to_yiq", images, _YIQ)


def yiq_to_rgb(images: Any) -> _Tensor:
    """Red, green and blue of pixels given by `rgb_to_yiq`."""
    return _mixed("yiq_to_rgb", images, np.linalg.inv(_YIQ))


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> _Tensor:
    """The picture with the saturation of its colours multiplied."""

    def work(x: _Tensor) -> _Tensor:
        hsv = rgb_to_hsv(x)
        saturation = _clip(hsv[..., 1] * saturation_factor, 0.0, 1.0)
        return hsv_to_rgb(_stack([hsv[..., 0], saturation, hsv[..., 2]], -1))

    return _in_floats(image, work)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> _Tensor:
    """The picture with its colours moved along the circle of hues; 1 is all the way round."""

    def work(x: _Tensor) -> _Tensor:
        hsv = rgb_to_hsv(x)
        return hsv_to_rgb(_stack([_mod(hsv[..., 0] + delta, 1.0), hsv[..., 1], hsv[..., 2]], -1))

    return _in_floats(image, work)


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> _Tensor:
    """The picture with its saturation multiplied by a random number from `lower` up to `upper`."""
    return adjust_saturation(image, _between("random_saturation", lower, upper, _drawn_key(seed)))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> _Tensor:
    """The picture with its hues moved by a random number between `-max_delta` and `max_delta`."""
    return adjust_hue(image, _between("random_hue", -max_delta, max_delta, _drawn_key(seed)))


# The same, by a seed of two numbers.


def stateless_random_brightness(image: Any, max_delta: float, seed: Any) -> _Tensor:
    """As `random_brightness`, by a seed of two numbers."""
    key = _given_key("stateless_random_brightness", seed)
    return adjust_brightness(image, _between("stateless_random_brightness", -max_delta, max_delta, key))


def stateless_random_contrast(image: Any, lower: float, upper: float, seed: Any) -> _Tensor:
    """As `random_contrast`, by a seed of two numbers."""
    key = _given_key("stateless_random_contrast", seed)
    return adjust_contrast(image, _between("stateless_random_contrast", lower, upper, key))


def stateless_random_saturation(image: Any, lower: float, upper: float, seed: Any) -> _Tensor:
    """As `random_saturation`, by a seed of two numbers."""
    key = _given_key("stateless_random_saturation", seed)
    return adjust_saturation(image, _between("stateless_random_saturation", lower, upper, key))


def stateless_random_hue(image: Any, max_delta: float, seed: Any) -> _Tensor:
    """As `random_hue`, by a seed of two numbers."""
    key = _given_key("stateless_random_hue", seed)
    return adjust_hue(image, _between("stateless_random_hue", -max_delta, max_delta, key))


# Measures.


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> _Tensor:
    """How near pictures are, in decibels: the largest value, squared, over the mean squared difference."""
    a, b = _tensor(a), _tensor(b)
    # Integers become floats up to 1, and so does their largest value.
    a, b, peak = (convert_image_dtype(one, dtypes.float32) for one in (a, b, _cast(max_val, a.dtype)))
    error = reduce_mean(squared_difference(a, b), [-3, -2, -1])
    return (20.0 * log(peak) - 10.0 * log(error)) * (1.0 / _numbers.log(10.0))


def total_variation(images: Any, name: str | None = None) -> _Tensor:
    """The sum of the differences between neighbouring pixels of each picture."""
    images = _image("total_variation", images)
    down = images[..., 1:, :, :] - images[..., :-1, :, :]
    right = images[..., :, 1:, :] - images[..., :, :-1, :]
    return reduce_sum(abs(down), [-3, -2, -1]) + reduce_sum(abs(right), [-3, -2, -1])


def image_gradients(image: Any) -> tuple[_Tensor, _Tensor]:
    """How much each pixel of a batch differs from the one below and the one to the right; 0 at the ends."""
    image = _tensor(image)
    if image.ndim != 4:
        text = f"a batch of pictures has four dimensions, not shape {image.shape}"
        _refuse("image_gradients", text, ValueError)
    down = image[:, 1:] - image[:, :-1]
    right = image[:, :, 1:] - image[:, :, :-1]
    return _pad(down, [[0, 0], [0, 1], [0, 0], [0, 0]]), _pad(right, [[0, 0], [0, 0], [0, 1], [0, 0]])
