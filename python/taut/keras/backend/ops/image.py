"""`keras.ops.image`: colour spaces and resizing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from keras.src.backend.config import standardize_data_format

import taut as tf
from taut._ops.image import interpolation_weights
from taut.keras.backend.convert import (
    broadcast_shape,
    check_images,
    convert_to_tensor,
    floating,
    is_float,
    matmul_axis,
    shape_of,
    slice_axis,
)
from taut.keras.backend.ops.numpy.shapes import moveaxis


def channel_axis(images: tf.Tensor, data_format: str | None) -> int:
    """The axis of the channels of an image or a batch of images."""
    check_images(images)
    return -1 if standardize_data_format(data_format) == "channels_last" else -3


def rgb_to_grayscale(images: Any, data_format: str | None = None) -> tf.Tensor:
    """Converts RGB to one luma channel."""
    images = convert_to_tensor(images)
    axis = channel_axis(images, data_format)
    channels = shape_of(images)[axis]
    if channels not in (1, 3):
        raise ValueError(
            f"Invalid channel size: expected 3 (RGB) or 1 (Grayscale). Received: images.shape={shape_of(images)}"
        )
    if channels == 1:
        return images
    x = floating(images)
    shares = tf.reshape(convert_to_tensor([0.2989, 0.5870, 0.1140], x.dtype), broadcast_shape(axis, len(x.shape)))
    return tf.cast(tf.reduce_sum(x * shares, axis=axis, keepdims=True), images.dtype)


def convert_color(work: Callable, images: Any, data_format: str | None) -> tf.Tensor:
    """Applies `work` to images with the channels last."""
    images = convert_to_tensor(images)
    axis = channel_axis(images, data_format)
    if not is_float(images):
        raise ValueError(f"Invalid images dtype: expected float dtype. Received: images.dtype={images.dtype}")
    return moveaxis(work(moveaxis(images, axis, -1)), -1, axis)


def rgb_to_hsv(images: Any, data_format: str | None = None) -> tf.Tensor:
    """Converts RGB to hue, saturation and value, all in [0, 1]."""
    return convert_color(tf.image.rgb_to_hsv, images, data_format)


def hsv_to_rgb(images: Any, data_format: str | None = None) -> tf.Tensor:
    """Converts hue, saturation and value to RGB, all in [0, 1]."""
    return convert_color(tf.image.hsv_to_rgb, images, data_format)


SMOOTH = ("bicubic", "bilinear", "lanczos3", "lanczos5")
"""The interpolation methods other than "nearest"."""


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
    """Resizes images, cropped or padded first to keep the aspect ratio if requested."""
    if interpolation != "nearest" and interpolation not in SMOOTH:
        raise ValueError(f"Invalid interpolation: {interpolation}. Expected 'nearest' or one of {SMOOTH}.")
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise ValueError("Only one of `crop_to_aspect_ratio` & `pad_to_aspect_ratio` can be `True`.")
    if fill_mode != "constant":
        raise ValueError(f"Invalid value for argument `fill_mode`. Only 'constant' is supported. Received: {fill_mode}")
    images = convert_to_tensor(images)
    first = len(images.shape) - 3 if channel_axis(images, data_format) == -1 else len(images.shape) - 2
    rows, columns = first, first + 1
    height, width = shape_of(images)[rows], shape_of(images)[columns]
    target = (int(size[0]), int(size[1]))
    if not height or not width:
        raise ValueError(f"images must have at least one pixel to be resized, got shape {shape_of(images)}")
    x = images
    if crop_to_aspect_ratio:
        inner = (
            max(min(height, int(width * target[0] / target[1])), 1),
            max(min(width, int(height * target[1] / target[0])), 1),
        )
        for axis, whole, part in ((rows, height, inner[0]), (columns, width, inner[1])):
            start = (whole - part) // 2
            x = slice_axis(x, axis, start, start + part)
    elif pad_to_aspect_ratio:
        outer = (
            max(height, int(width * target[0] / target[1])),
            max(width, int(height * target[1] / target[0])),
        )
        around = [[0, 0] for _ in x.shape]
        for axis, part, whole in ((rows, height, outer[0]), (columns, width, outer[1])):
            # The same on both sides, as with TensorFlow: an odd remainder is stretched.
            around[axis] = [(whole - part) // 2] * 2
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
            x = matmul_axis(x, interpolation_weights(interpolation, before, after, antialias).T, axis)
    if not is_float(images) and interpolation != "nearest":
        x = tf.clip_by_value(tf.round(x), float(images.dtype.min), float(images.dtype.max))
    return tf.cast(x, images.dtype)
