"""Image transformations: flips, crops, padding and resizing."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import as_ints, cast_to, refuse, select_rows
from .._native import ResampleTaps, Tensor, as_tensor, is_tracing, resample
from ..errors import ResourceExhaustedError
from .indexing import gather
from .random import next_key, seed_key

if TYPE_CHECKING:
    from .._typing import IntsLike, TensorLike


def check_image(name: str, image: TensorLike) -> Tensor:
    """Converts to a tensor of rank 3 (an image) or 4 (a batch of images)."""
    image = as_tensor(image)
    if image.ndim not in (3, 4):
        text = f"expected rank 3 or 4, got shape {image.shape}"
        refuse(name, text, ValueError)
    return image


def flip_left_right(image: TensorLike) -> Tensor:
    """Flips images horizontally."""
    return raw.reverse(check_image("flip_left_right", image), -2)


def flip_up_down(image: TensorLike) -> Tensor:
    """Flips images vertically."""
    return raw.reverse(check_image("flip_up_down", image), -3)


def transpose(image: TensorLike, name: str | None = None) -> Tensor:
    """Exchanges height and width."""
    return raw.swapaxes(check_image("transpose", image), -3, -2)


def rot90(image: TensorLike, k: Any = 1, name: str | None = None) -> Tensor:
    """Rotates images counter-clockwise by `k` times 90 degrees."""
    image, k = check_image("rot90", image), int(k) % 4
    if k == 1:
        return raw.reverse(raw.swapaxes(image, -3, -2), -3)
    if k == 2:
        return raw.reverse(image, [-3, -2])
    return raw.reverse(raw.swapaxes(image, -3, -2), -2) if k == 3 else image


def _flip_at_random(key: Tensor, image: Tensor, turned: Tensor) -> Tensor:
    """Each image flipped with probability 0.5."""
    shape = [image.shape[0], 1, 1, 1] if image.ndim == 4 else []
    return raw.where(raw.stateless_uniform(key, shape, 0.0, 1.0, dtypes.float32) < 0.5, turned, image)


def random_flip_left_right(image: TensorLike, seed: int | None = None) -> Tensor:
    """Flips each image horizontally with probability 0.5."""
    image = check_image("random_flip_left_right", image)
    return _flip_at_random(next_key(seed), image, raw.reverse(image, -2))


def random_flip_up_down(image: TensorLike, seed: int | None = None) -> Tensor:
    """Flips each image vertically with probability 0.5."""
    image = check_image("random_flip_up_down", image)
    return _flip_at_random(next_key(seed), image, raw.reverse(image, -3))


def stateless_random_flip_left_right(image: TensorLike, seed: Any) -> Tensor:
    """Flips each image horizontally with probability 0.5, depending on `seed` alone."""
    image = check_image("stateless_random_flip_left_right", image)
    return _flip_at_random(seed_key("stateless_random_flip_left_right", seed), image, raw.reverse(image, -2))


def stateless_random_flip_up_down(image: TensorLike, seed: Any) -> Tensor:
    """Flips each image vertically with probability 0.5, depending on `seed` alone."""
    image = check_image("stateless_random_flip_up_down", image)
    return _flip_at_random(seed_key("stateless_random_flip_up_down", seed), image, raw.reverse(image, -3))


def crop_to_bounding_box(
    image: TensorLike, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Crops images to the box of this size at these offsets."""
    image = check_image("crop_to_bounding_box", image)
    top, left, height, width = map(int, (offset_height, offset_width, target_height, target_width))
    rows, columns = image.shape[-3:-1]
    if top < 0 or left < 0 or height <= 0 or width <= 0 or top + height > rows or left + width > columns:
        part = f"{height}x{width} pixels at ({top}, {left})"
        refuse("crop_to_bounding_box", f"the box must lie inside {rows}x{columns}, got {part}", ValueError)
    return image[..., top : top + height, left : left + width, :]


def pad_to_bounding_box(
    image: TensorLike, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """Pads images with zeros to this size, with the image at the offsets."""
    image = check_image("pad_to_bounding_box", image)
    top, left, height, width = map(int, (offset_height, offset_width, target_height, target_width))
    bottom, right = height - top - image.shape[-3], width - left - image.shape[-2]
    if min(top, left, bottom, right) < 0:
        part = f"{image.shape[-3]}x{image.shape[-2]} pixels at ({top}, {left})"
        refuse("pad_to_bounding_box", f"the image must lie inside {height}x{width}, got {part}", ValueError)
    return raw.pad(image, [[0, 0]] * (image.ndim - 3) + [[top, bottom], [left, right], [0, 0]])


def central_crop(image: TensorLike, central_fraction: float) -> Tensor:
    """Crops the central fraction of height and width."""
    image, fraction = check_image("central_crop", image), float(central_fraction)
    if not 0.0 < fraction <= 1.0:
        refuse("central_crop", f"central_fraction must be in (0, 1], got {fraction}", ValueError)
    if fraction == 1.0:
        return image
    rows, columns = image.shape[-3:-1]
    top, left = (int((size - size * fraction) / 2) for size in (rows, columns))
    return image[..., top : rows - top, left : columns - left, :]


def resize_with_crop_or_pad(image: TensorLike, target_height: Any, target_width: Any) -> Tensor:
    """Crops centrally or pads with zeros to the target size."""
    image, height, width = check_image("resize_with_crop_or_pad", image), int(target_height), int(target_width)
    if height <= 0 or width <= 0:
        refuse(
            "resize_with_crop_or_pad", f"target_height and target_width must be >= 1, got {height}x{width}", ValueError
        )
    rows, columns = image.shape[-3:-1]
    inner = min(height, rows), min(width, columns)
    image = crop_to_bounding_box(image, max(rows - height, 0) // 2, max(columns - width, 0) // 2, *inner)
    return pad_to_bounding_box(image, max(height - rows, 0) // 2, max(width - columns, 0) // 2, height, width)


def random_crop(value: TensorLike, size: IntsLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """Crops a part of this size at a random position."""
    return _crop_at_random("random_crop", value, size, next_key(seed))


def stateless_random_crop(value: TensorLike, size: IntsLike, seed: Any, name: str | None = None) -> Tensor:
    """Crops a part of this size at a random position that depends on `seed` alone."""
    return _crop_at_random("stateless_random_crop", value, size, seed_key("stateless_random_crop", seed))


def _crop_at_random(name: str, value: TensorLike, size: IntsLike, key: Tensor) -> Tensor:
    value, size = as_tensor(value), as_ints(size)
    if len(size) != value.ndim or any(part > whole for part, whole in zip(size, value.shape)):
        refuse(name, f"size must be at most the shape {value.shape}, got {size}")
    draws = raw.stateless_integers(key, [value.ndim], 0, 1 << 62, dtypes.int64)
    for axis, (part, whole) in enumerate(zip(size, value.shape)):
        if part != whole:
            start = draws[axis] % (whole - part + 1)
            value = gather(value, start + raw.range(0, part, 1, dtypes.int64), axis=axis)
    return value


def _triangle(x: Any) -> Any:
    return np.maximum(0.0, 1.0 - np.abs(x))


def _cubic(x: Any) -> Any:
    x = np.abs(x)
    near, far = ((1.5 * x - 2.5) * x) * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _mitchell_cubic(x: Any) -> Any:
    x = np.abs(x)
    near = (7.0 * x**3 - 12.0 * x**2 + 16.0 / 3.0) / 6.0
    far = (-7.0 / 3.0 * x**3 + 12.0 * x**2 - 20.0 * x + 32.0 / 3.0) / 6.0
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def _lanczos(radius: float) -> Callable:
    return lambda x: np.where(np.abs(x) < radius, np.sinc(x) * np.sinc(x / radius), 0.0)


def _gaussian(x: Any) -> Any:
    return np.where(np.abs(x) < 1.5, np.exp(-2.0 * x * x), 0.0)


#: The kernel of each method, and the distance at which it ends.
_KERNELS: dict[str, tuple[Callable, float]] = {
    "bilinear": (_triangle, 1.0),
    "bicubic": (_cubic, 2.0),
    "lanczos3": (_lanczos(3.0), 3.0),
    "lanczos5": (_lanczos(5.0), 5.0),
    "gaussian": (_gaussian, 1.5),
    "mitchellcubic": (_mitchell_cubic, 2.0),
}
_METHODS = sorted([*_KERNELS, "area", "nearest"])


class ResizeMethod:
    """Interpolation methods of `resize`."""

    AREA = "area"
    BICUBIC = "bicubic"
    BILINEAR = "bilinear"
    GAUSSIAN = "gaussian"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    MITCHELLCUBIC = "mitchellcubic"
    NEAREST_NEIGHBOR = "nearest"


def _windows(method: str, old: int, new: int, antialias: bool) -> tuple[np.ndarray, np.ndarray]:
    """The first old pixel that each new one may read, and the weights from there on `[new, window]`, which sum to one."""
    scale = old / new
    spread = max(scale, 1.0) if antialias and method != "area" else 1.0
    kernel, radius = _KERNELS.get(method, (None, scale / 2))
    reach = radius * spread
    centres = (np.arange(new) + 0.5) * scale
    if method == "bicubic" and not antialias:
        centres = _centres_of_table(old, new)
    # Pixel p has its centre at p + 0.5; an area reaches half a pixel beyond the centres that it contains.
    reach += 0.5 if kernel is None else 0.0
    window = min(old, int(2.0 * reach) + 2)
    first = np.clip(np.floor(centres - 0.5 - reach).astype(np.int64), 0, old - window)
    pixels = first[:, None] + np.arange(window)
    if kernel is None:
        edges = np.arange(new + 1) * scale
        overlap = np.minimum(edges[1:, None], pixels + 1) - np.maximum(edges[:-1, None], pixels)
        made = np.maximum(overlap, 0.0)
    else:
        made = kernel((pixels + 0.5 - centres[:, None]) / spread)
    return first, made / made.sum(1, keepdims=True)


def interpolation_weights(method: str, old: int, new: int, antialias: bool) -> Any:
    """Interpolation matrix `[new, old]`. Rows sum to one."""
    first, weights = _windows(method, old, new, antialias)
    made = np.zeros([new, old])
    np.put_along_axis(made, first[:, None] + np.arange(weights.shape[1]), weights, axis=1)
    return made


def _centres_of_table(old: int, new: int) -> Any:
    """The centres of new pixels, in old ones, as TensorFlow's bicubic kernel has them: it takes weights from a table for
    fractions of 1/1024.
    """
    half, scale = np.float32(0.5), np.float32(old) / np.float32(new)
    places = (np.arange(new, dtype=np.float32) + half) * scale - half
    whole = np.floor(places)
    return whole + np.rint((places - whole) * 1024.0) / 1024.0 + 0.5


def _check_size(new: int, old: int) -> None:
    """Refuses sizes whose coordinates or interpolation weights do not fit, before any of them is computed."""
    if new > 1 << 24:
        refuse("resize", f"sizes must be <= {1 << 24}, beyond which float32 has no exact coordinates, got {new}")
    if new * old > 1 << 30:
        message = f"the interpolation weights of {old} to {new} pixels take {8 * new * old} bytes, more than {8 << 30}"
        refuse("resize", message, ResourceExhaustedError)


def resize(
    images: TensorLike,
    size: IntsLike,
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resizes images to `[height, width]`. The result is float32, except for "nearest", which keeps the type.

    With `antialias`, downsampling averages over all pixels that a new one covers.
    """
    images = check_image("resize", images)
    method = getattr(method, "value", method)
    given: Any = size
    if not isinstance(given, np.ndarray) and not as_tensor(given).dtype.is_integer:
        refuse("resize", f"size must be two integers >= 1, got {size}", ValueError)
    size = as_ints(size)
    if len(size) != 2 or min(size) <= 0:
        refuse("resize", f"size must be two integers >= 1, got {size}", ValueError)
    if method not in _METHODS:
        refuse("resize", f"method must be one of {', '.join(_METHODS)}, got {method!r}", ValueError)
    height, width = size
    *_, rows, columns, _ = images.shape
    if not rows or not columns:
        refuse("resize", f"images must have at least one pixel, got shape {images.shape}")
    if preserve_aspect_ratio:
        # In float32, half to even, as TensorFlow: 2.5 rows are 2.
        scale = min(np.float32(height) / np.float32(rows), np.float32(width) / np.float32(columns))
        height, width = (int(np.rint(np.float32(old) * scale)) for old in (rows, columns))
        if not height or not width:
            refuse("resize", f"images of {rows} x {columns} pixels keep no pixel in size {size}")
    _check_size(max(height, width), max(rows, columns) if method != "nearest" else 1)
    if (height, width) == (rows, columns) and method not in ("gaussian", "mitchellcubic"):
        return images if method == "nearest" else cast_to(images, dtypes.float32)
    if method == "nearest":
        for axis, (old, new) in ((-3, (rows, height)), (-2, (columns, width))):
            places = np.minimum(np.floor((np.arange(new) + 0.5) * (old / new)), old - 1).astype(np.int32)
            images = select_rows(images, as_tensor(places), axis)
        return images
    if images.dtype == dtypes.uint8 and not is_tracing():
        plan = _resample_plan(method, rows, columns, height, width, antialias)
        if plan is not None:
            # Integers have no gradients: one call instead of several ops, with the same results.
            return resample(images, *plan)
    axes = ((-3, rows, height), (-2, columns, width))
    for axis, old, new in reversed(axes) if _columns_first(rows, columns, height, width) else axes:
        if old != new or method in ("gaussian", "mitchellcubic"):
            images = _interpolated(images, axis, method, new, antialias)
    return cast_to(images, dtypes.float32)


#: With more taps than this, an interpolation is a product with a matrix.
_MOST_TAPS = 8


def _interpolated(images: Tensor, axis: int, method: str, new: int, antialias: bool) -> Tensor:
    """Images with a new size along an axis, -3 or -2."""
    old = images.shape[axis]
    taps = _taps(method, old, new, antialias)
    if taps is None:
        weights = interpolation_weights(method, old, new, antialias).astype(np.float32)
        return _multiplied(cast_to(images, dtypes.float32), axis, as_tensor(weights))
    first, weights = taps
    parts = [
        cast_to(select_rows(images, as_tensor(first + tap), axis), dtypes.float32)
        * as_tensor(weights[:, tap].reshape([new, *[1] * (-1 - axis)]))
        for tap in range(weights.shape[1])
    ]
    return functools.reduce(raw.add, parts)


@functools.lru_cache(maxsize=64)
def _taps(method: str, old: int, new: int, antialias: bool) -> tuple[np.ndarray, np.ndarray] | None:
    """The first old pixel of each new one, and the weights `[new, taps]`; None if there are many."""
    if old == new and method not in ("gaussian", "mitchellcubic"):
        return np.arange(new, dtype=np.int32), np.ones([new, 1], np.float32)
    start, weights = _windows(method, old, new, antialias)
    weights = weights.astype(np.float32)
    window = weights.shape[1]
    first = (weights != 0).argmax(axis=1)
    last = window - (weights[:, ::-1] != 0).argmax(axis=1)
    count = int((last - first).max())
    if count > _MOST_TAPS:
        return None
    first = np.minimum(first, window - count)
    return (start + first).astype(np.int32), np.take_along_axis(weights, first[:, None] + np.arange(count), axis=1)


def _columns_first(rows: int, columns: int, height: int, width: int) -> bool:
    """Whether columns shrink more than rows. They come first then: the other axis has less to do."""
    return width / columns < height / rows


@functools.lru_cache(maxsize=64)
def _resample_plan(
    method: str, rows: int, columns: int, height: int, width: int, antialias: bool
) -> tuple[ResampleTaps, ResampleTaps, bool] | None:
    """The arguments of `resample`; None if there are many taps."""
    row_taps, column_taps = _taps(method, rows, height, antialias), _taps(method, columns, width, antialias)
    if row_taps is None or column_taps is None:
        return None
    return ResampleTaps(*row_taps), ResampleTaps(*column_taps), _columns_first(rows, columns, height, width)


def _multiplied(images: Tensor, axis: int, weights: Tensor) -> Tensor:
    """The product of a matrix and an axis, -3 or -2."""
    if axis == -2:
        return raw.matmul(weights, images)
    *batch, _, width, channels = images.shape
    flat = raw.reshape(images, [*images.shape[:-2], width * channels])
    return raw.reshape(raw.matmul(weights, flat), [*batch, weights.shape[0], width, channels])


def resize_with_pad(
    image: TensorLike, target_height: Any, target_width: Any, method: str = "bilinear", antialias: bool = False
) -> Tensor:
    """Resizes images without distortion to fit the target size, and pads with zeros."""
    image, height, width = check_image("resize_with_pad", image), int(target_height), int(target_width)
    if height <= 0 or width <= 0:
        refuse("resize_with_pad", f"target_height and target_width must be >= 1, got {height}x{width}", ValueError)
    ratio = max(image.shape[-3] / height, image.shape[-2] / width)
    rows, columns = (old / ratio for old in image.shape[-3:-1])
    image = resize(image, [int(rows), int(columns)], method, antialias=antialias)
    return pad_to_bounding_box(image, int((height - rows) / 2), int((width - columns) / 2), height, width)
