"""Functions of `tf.compat.v1.image`: images are resized from the corners of pixels, not from their centres."""

from __future__ import annotations

import enum
from typing import Any

import numpy as np

import taut as tf

from ..._common import as_ints, check_choice, refuse
from ..._native import Tensor, as_tensor


class ResizeMethod(enum.IntEnum):
    """How images are resized."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


def _coordinates(size: int, wanted: int, align_corners: bool) -> np.ndarray:
    """Where the pixels of the result are in the image, along an axis."""
    scale = (size - 1) / (wanted - 1) if align_corners and wanted > 1 else size / wanted
    return np.arange(wanted, dtype=np.float32) * np.float32(scale)


def _checked(name: str, images: Any, size: Any) -> tuple[Tensor, list[int]]:
    images, sizes = as_tensor(images), as_ints(size)
    if len(images.shape) != 4 or len(sizes) != 2 or min(sizes) < 1:
        refuse(name, f"expected images of rank 4 and two sizes >= 1, got shape {images.shape} and {sizes}")
    return images, sizes


def resize_bilinear(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Tensor:
    """Resizes [batch, height, width, channels] by bilinear interpolation; the result is float32."""
    images, sizes = _checked("resize_bilinear", images, size)
    images = tf.cast(images, tf.float32)
    if half_pixel_centers:
        if align_corners:
            refuse("resize_bilinear", "align_corners must be False with half_pixel_centers")
        return tf.image.resize(images, sizes, "bilinear")
    for axis, wanted in zip((1, 2), sizes):
        at = _coordinates(images.shape[axis], wanted, align_corners)
        lower = np.floor(at).astype(np.int64)
        upper = np.minimum(lower + 1, images.shape[axis] - 1)
        share = (at - lower).reshape([-1, 1, 1] if axis == 1 else [-1, 1])
        low, high = tf.gather(images, lower, axis=axis), tf.gather(images, upper, axis=axis)
        images = low + (high - low) * share
    return images


def resize_nearest_neighbor(
    images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
) -> Tensor:
    """Resizes [batch, height, width, channels] by taking the nearest pixel."""
    images, sizes = _checked("resize_nearest_neighbor", images, size)
    if half_pixel_centers:
        if align_corners:
            refuse("resize_nearest_neighbor", "align_corners must be False with half_pixel_centers")
        return tf.image.resize(images, sizes, "nearest")
    for axis, wanted in zip((1, 2), sizes):
        at = _coordinates(images.shape[axis], wanted, align_corners)
        nearest = np.floor(at + np.float32(0.5)) if align_corners else np.floor(at)
        images = tf.gather(images, np.minimum(nearest.astype(np.int64), images.shape[axis] - 1), axis=axis)
    return images


def resize(
    images: Any,
    size: Any,
    method: Any = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """Resizes images, or one image, by bilinear interpolation or by the nearest pixel. Images of the size stay as they are."""
    check_choice("resize", "method", int(method), [0, 1])
    images, sizes = as_tensor(images), as_ints(size)
    is_one = len(images.shape) == 3
    images = images[None] if is_one else images
    own = list(images.shape[1:3])
    if preserve_aspect_ratio:
        scale = min(wanted / got for wanted, got in zip(sizes, own))
        sizes = [max(1, round(scale * got)) for got in own]
    if sizes != own:
        chosen = resize_bilinear if int(method) == 0 else resize_nearest_neighbor
        images = chosen(images, sizes, align_corners)
    return images[0] if is_one else images


def names() -> dict[str, Any]:
    """What `tf.compat.v1.image` has beside the names of `tf.image`."""
    return {
        "ResizeMethod": ResizeMethod,
        "resize": resize,
        "resize_bilinear": resize_bilinear,
        "resize_image_with_crop_or_pad": tf.image.resize_with_crop_or_pad,
        "resize_images": resize,
        "resize_nearest_neighbor": resize_nearest_neighbor,
        "transpose_image": tf.image.transpose,
    }
