"""`keras.ops.image`: colours and sizes of images."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from keras.src.backend.config import standardize_data_format

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, cut, floating, is_float, shape_of
from taut.keras.backend.missing import missing
from taut.keras.backend.ops.warping import *  # noqa: F403

for _name in ("elastic_transform", "scale_and_translate", "sobel_edges"):
    globals()[_name] = missing("image." + _name)


def channel_axis(images: tf.Tensor, data_format: str | None) -> int:
    """Where the channels of an image or of many images are."""
    if len(images.shape) not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received: images.shape={shape_of(images)}"
        )
    return -1 if standardize_data_format(data_format) == "channels_last" else -3


def rgb_to_grayscale(images: Any, data_format: str | None = None) -> tf.Tensor:
    """The brightness of colours, as the eye weighs them; one channel is left."""
    images = convert_to_tensor(images)
    axis = channel_axis(images, data_format)
    shares = np.reshape(
        [0.2989, 0.5870, 0.1140],
        [3 if i == axis % len(images.shape) else 1 for i in range(len(images.shape))],
    )
    gray = tf.reduce_sum(
        floating(images) * convert_to_tensor(shares, floating(images).dtype), axis=axis, keepdims=True
    )
    return tf.cast(gray, images.dtype)


def rgb_to_hsv(images: Any, data_format: str | None = None) -> tf.Tensor:
    """Red, green and blue as hue, saturation and value, all from 0 to 1."""
    images = convert_to_tensor(images)
    axis = channel_axis(images, data_format)
    if not is_float(images):
        raise ValueError(f"Invalid images dtype: expected float dtype. Received: images.dtype={images.dtype}")
    red, green, blue = tf.unstack(images, axis=axis)
    value = tf.maximum(tf.maximum(red, green), blue)
    spread = value - tf.minimum(tf.minimum(red, green), blue)
    safe = tf.where(tf.greater(spread, 0.0), spread, tf.ones_like(spread))
    saturation = tf.where(
        tf.greater(value, 0.0), spread / tf.where(tf.greater(value, 0.0), value, safe), tf.zeros_like(value)
    )
    from_red = (green - blue) / safe
    from_green = (blue - red) / safe + 2.0
    from_blue = (red - green) / safe + 4.0
    sixth = tf.where(tf.equal(value, red), from_red, tf.where(tf.equal(value, green), from_green, from_blue))
    hue = tf.math.floormod(sixth / 6.0, tf.ones_like(sixth))
    hue = tf.where(tf.greater(spread, 0.0), hue, tf.zeros_like(hue))
    return tf.stack([hue, saturation, value], axis=axis)


def hsv_to_rgb(images: Any, data_format: str | None = None) -> tf.Tensor:
    """Hue, saturation and value as red, green and blue, all from 0 to 1."""
    images = convert_to_tensor(images)
    axis = channel_axis(images, data_format)
    if not is_float(images):
        raise ValueError(f"Invalid images dtype: expected float dtype. Received: images.dtype={images.dtype}")
    hue, saturation, value = tf.unstack(images, axis=axis)
    sixth = hue * 6.0
    shares = (tf.abs(sixth - 3.0) - 1.0, 2.0 - tf.abs(sixth - 2.0), 2.0 - tf.abs(sixth - 4.0))
    colours = [value * (1.0 + saturation * (tf.clip_by_value(share, 0.0, 1.0) - 1.0)) for share in shares]
    return tf.stack(colours, axis=axis)


def triangle(x: np.ndarray) -> np.ndarray:
    """The kernel of linear interpolation."""
    return np.maximum(0.0, 1.0 - np.abs(x))


def cubic(x: np.ndarray) -> np.ndarray:
    """The kernel of cubic interpolation with slope -1/2."""
    x = np.abs(x)
    near = ((1.5 * x - 2.5) * x) * x + 1.0
    far = ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return np.where(x < 1.0, near, np.where(x < 2.0, far, 0.0))


def lanczos(radius: int) -> Callable[[np.ndarray], np.ndarray]:
    """The windowed sinc of this radius."""
    return lambda x: np.where(np.abs(x) < radius, np.sinc(x) * np.sinc(x / radius), 0.0)


KERNELS = {"bilinear": triangle, "bicubic": cubic, "lanczos3": lanczos(3), "lanczos5": lanczos(5)}


def weights(before: int, after: int, kernel: Callable, antialias: bool) -> np.ndarray:
    """What each of `before` places contributes to each of `after`: pixels are squares, seen at their
    centres."""
    ratio = before / after
    width = max(ratio, 1.0) if antialias else 1.0
    centres = (np.arange(after) + 0.5) * ratio - 0.5
    shares = kernel((np.arange(before)[:, None] - centres[None, :]) / width)
    if not antialias:
        # Without smoothing, what lies outside counts as the nearest place inside.
        reach = math.ceil({triangle: 1, cubic: 2}.get(kernel, 5)) + 1
        places = np.arange(-reach, before + reach)
        outer = kernel(places[:, None] - centres[None, :])
        shares = np.zeros((before, after))
        np.add.at(shares, np.clip(places, 0, before - 1), outer)
    total = shares.sum(axis=0, keepdims=True)
    return np.divide(shares, total, out=np.zeros_like(shares), where=np.abs(total) > 1e-8)


def resize(
    images: Any,
    size: Sequence[int],
    interpolation: str = "bilinear",
    antialias: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    fill_mode: str = "constant",
    fill_value: float = 0.0,
    data_format: str | None = None,
) -> tf.Tensor:
    """Images at another size; cropped or padded first, if their proportions are to be kept."""
    if interpolation != "nearest" and interpolation not in KERNELS:
        raise ValueError(
            f"Invalid interpolation: {interpolation}. Expected 'nearest' or one of {sorted(KERNELS)}."
        )
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError("Only one of `crop_to_aspect_ratio` & `pad_to_aspect_ratio` can be `True`.")
    if fill_mode != "constant":
        raise ValueError(
            f"Invalid value for argument `fill_mode`. Only 'constant' is supported. Received: {fill_mode}"
        )
    images = convert_to_tensor(images)
    first = len(images.shape) - 3 if channel_axis(images, data_format) == -1 else len(images.shape) - 2
    rows, columns = first, first + 1
    height, width = shape_of(images)[rows], shape_of(images)[columns]
    target = (int(size[0]), int(size[1]))
    x = images
    if crop_to_aspect_ratio:
        inner = (
            min(height, int(width * target[0] / target[1])),
            min(width, int(height * target[1] / target[0])),
        )
        for axis, whole, part in ((rows, height, inner[0]), (columns, width, inner[1])):
            start = (whole - part) // 2
            x = cut(x, axis, start, start + part)
    elif pad_to_aspect_ratio:
        outer = (
            max(height, int(width * target[0] / target[1])),
            max(width, int(height * target[1] / target[0])),
        )
        around = [[0, 0] for _ in x.shape]
        for axis, part, whole in ((rows, height, outer[0]), (columns, width, outer[1])):
            around[axis] = [(whole - part) // 2, whole - part - (whole - part) // 2]
        x = tf.pad(x, around, constant_values=fill_value)
    if interpolation != "nearest":
        x = floating(x)
    for axis, after in ((rows, target[0]), (columns, target[1])):
        before = shape_of(x)[axis]
        if before == after:
            continue
        if interpolation == "nearest":
            places = np.minimum(np.floor((np.arange(after) + 0.5) * before / after), before - 1)
            x = tf.gather(x, convert_to_tensor(places, "int32"), axis=axis)
        else:
            x = mixed(x, weights(before, after, KERNELS[interpolation], antialias), axis)
    if not is_float(images) and interpolation != "nearest":
        kind = images.dtype
        x = tf.round(x)
        x = tf.clip_by_value(x, float(tf.as_dtype(kind).min), float(tf.as_dtype(kind).max))
    return tf.cast(x, images.dtype)


def mixed(x: tf.Tensor, shares: np.ndarray, axis: int) -> tf.Tensor:
    """The places along an axis, mixed by a matrix of shares."""
    moved = tf.tensordot(x, convert_to_tensor(shares, x.dtype), axes=[[axis], [0]])
    order = list(range(len(x.shape) - 1))
    return tf.transpose(moved, [*order[:axis], len(order), *order[axis:]])
