"""Coordinate maps of images: interpolation, affine and perspective transforms, blurs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from keras.src.backend.config import standardize_data_format

import taut as tf
from taut.keras.backend.convert import check_images, convert_to_tensor, floating, is_float, matmul_axis, shape_of
from taut.keras.backend.ops.nn.conv import depthwise_conv
from taut.keras.backend.random import draw_seed, second_seed

FILL_MODES = ("constant", "nearest", "wrap", "mirror", "reflect")
ORDERS = {"nearest": 0, "bilinear": 1}


def map_coordinates(
    inputs: Any, coordinates: Any, order: int, fill_mode: str = "constant", fill_value: float = 0.0
) -> tf.Tensor:
    """Samples `inputs` at coordinates: the nearest element (order 0) or linear interpolation (order 1).

    The first axis of `coordinates` runs over the axes of `inputs`; the others are those of the result.
    """
    x = convert_to_tensor(inputs)
    coordinates = convert_to_tensor(coordinates)
    sizes = shape_of(x)
    if len(coordinates.shape) < 2:
        raise ValueError(
            f"Invalid coordinates rank: expected at least rank 2. Received: coordinates.shape={shape_of(coordinates)}"
        )
    if shape_of(coordinates)[0] != len(sizes):
        raise ValueError(
            "The size of the first axis of `coordinates` must be the same as the rank of `inputs`. "
            f"Received: inputs.shape={sizes}, coordinates.shape={shape_of(coordinates)}"
        )
    if order not in (0, 1):
        raise ValueError(f"Invalid value for argument `order`. Expected one of [0, 1]. Received: order={order}")
    flat = tf.reshape(floating(x), [-1])

    def read(places):
        index = places[0]
        for place, size in zip(places[1:], sizes[1:]):
            index = index * size + place
        return tf.gather(flat, index)

    made = interpolate(read, tf.unstack(floating(coordinates)), sizes, order, fill_mode, fill_value)
    return tf.cast(made if is_float(x) else tf.round(made), x.dtype)


def interpolate(
    read: Callable,
    coordinates: Sequence[tf.Tensor],
    sizes: Sequence[int],
    order: int,
    fill_mode: str,
    fill_value: float,
    trailing: int = 0,
) -> tf.Tensor:
    """Interpolates what `read` returns at integer positions. Values have `trailing` more axes than positions."""
    if fill_mode not in FILL_MODES:
        raise ValueError(f"Invalid `fill_mode`: {fill_mode}. Expected one of {FILL_MODES}.")
    corners = []
    for x in coordinates:
        low = tf.round(x) if order == 0 else tf.floor(x)
        corners.append([(low, None)] if order == 0 else [(low, 1.0 - (x - low)), (low + 1.0, x - low)])
    total: Any = None
    for corner in itertools.product(*corners):
        places = [tf.cast(place, "int32") for place, _ in corner]
        value = read([wrap_position(place, size, fill_mode) for place, size in zip(places, sizes)])
        rows = [*shape_of(places[0]), *[1] * trailing]
        if fill_mode == "constant":
            there = tf.ones(places[0].shape, "bool")
            for place, size in zip(places, sizes):
                there = tf.logical_and(there, tf.logical_and(tf.greater_equal(place, 0), tf.less(place, size)))
            value = tf.where(tf.reshape(there, rows), value, tf.zeros_like(value) + fill_value)
        for _, share in corner:
            value = value if share is None else value * tf.cast(tf.reshape(share, rows), value.dtype)
        total = value if total is None else total + value
    return total


def wrap_position(place: tf.Tensor, size: int, fill_mode: str) -> tf.Tensor:
    """Maps a position that may be out of bounds to one inside, by fill mode."""
    if fill_mode == "wrap":
        return tf.math.floormod(place, size)
    if fill_mode == "mirror" and size > 1:
        place = tf.math.floormod(place, 2 * size - 2)
        return tf.minimum(place, 2 * size - 2 - place)
    if fill_mode == "reflect":
        place = tf.math.floormod(place, 2 * size)
        return tf.minimum(place, 2 * size - 1 - place)
    return tf.clip_by_value(place, 0, size - 1)


def sample_images(
    images: Any,
    place: Callable,
    interpolation: str,
    fill_mode: str,
    fill_value: float,
    data_format: str | None,
    whole: Callable = tf.round,
) -> tf.Tensor:
    """Images whose pixel at column x and row y is read at `place(x, y)`: columns and rows, for each image. `whole` rounds the
    pixels of images of integers.
    """
    if interpolation not in ORDERS:
        raise ValueError(f"Invalid `interpolation`: {interpolation}. Expected one of {sorted(ORDERS)}.")
    images = convert_to_tensor(images)
    if len(images.shape) not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received: images.shape={shape_of(images)}"
        )
    first = standardize_data_format(data_format) == "channels_first"
    x = images if len(images.shape) == 4 else images[None]
    x = floating(tf.transpose(x, [0, 2, 3, 1]) if first else x)
    batch, height, width, channels = shape_of(x)
    grid = np.meshgrid(np.arange(width), np.arange(height))
    columns, rows = place(*(convert_to_tensor(each, x.dtype) for each in grid))
    columns, rows = (tf.broadcast_to(each, [batch, height, width]) for each in (columns, rows))
    pixels = tf.reshape(x, [batch * height * width, channels])
    starts = convert_to_tensor(np.arange(batch)[:, None, None] * (height * width), "int32")

    def read(places):
        return tf.gather(pixels, starts + places[0] * width + places[1])

    order = ORDERS[interpolation]
    made = interpolate(read, [rows, columns], (height, width), order, fill_mode, fill_value, trailing=1)
    made = tf.transpose(made, [0, 3, 1, 2]) if first else made
    made = tf.cast(made if is_float(images) else whole(made), images.dtype)
    return made if len(images.shape) == 4 else made[0]


def project_images(
    images: tf.Tensor,
    transforms: tf.Tensor,
    interpolation: str,
    fill_mode: str,
    fill_value: float,
    data_format: str | None,
) -> tf.Tensor:
    """Projective transforms as TensorFlow's: coordinates are brought into the image before they are interpolated between,
    halves are rounded away from zero, and pixels of integers are truncated.
    """
    height, width = plane_of(images, data_format)[-2:]
    project = projection(transforms)

    def place(x, y):
        places = [into_image(each, size, fill_mode) for each, size in zip(project(x, y), (width, height))]
        if interpolation == "nearest":
            places = [tf.where(each < 0, tf.math.ceil(each - 0.5), tf.floor(each + 0.5)) for each in places]
        return places

    return sample_images(images, place, interpolation, fill_mode, fill_value, data_format, tf.identity)


def into_image(x: tf.Tensor, size: int, fill_mode: str) -> tf.Tensor:
    """Brings coordinates along an axis of `size` pixels into [0, size - 1], as TensorFlow's projective transforms do."""
    last = size - 1
    if fill_mode == "reflect":
        x = tf.math.floormod(x, 2.0 * size)
        x = tf.minimum(x, 2.0 * size - 1.0 - x)
    elif fill_mode == "wrap":
        turns = tf.floor(tf.abs(x) / max(last, 1))
        x = tf.where(x < 0, x + (turns + 1.0) * size, tf.where(x > last, x - turns * size, x))
    elif fill_mode != "nearest":
        return x
    return tf.clip_by_value(x, 0.0, float(last))


def projection(transforms: tf.Tensor) -> Callable:
    """The projective map by eight numbers per image: a, b, c; d, e, f; g, h (the ninth is 1)."""
    a, b, c, d, e, f, g, h = (tf.reshape(part, [-1, 1, 1]) for part in tf.unstack(transforms, axis=-1))

    def place(x, y):
        depth = g * x + h * y + 1.0
        return (a * x + b * y + c) / depth, (d * x + e * y + f) / depth

    return place


def affine_transform(
    images: Any,
    transform: Any,
    interpolation: str = "bilinear",
    fill_mode: str = "constant",
    fill_value: float = 0,
    data_format: str | None = None,
) -> tf.Tensor:
    """Applies a projective transform, given by eight numbers, to each image."""
    images = convert_to_tensor(images)
    check_images(images)
    transform = convert_to_tensor(transform, floating(images).dtype)
    if len(transform.shape) not in (1, 2):
        raise ValueError(
            "Invalid transform rank: expected rank 1 (single transform) or rank 2 (batch of transforms). "
            f"Received: transform.shape={shape_of(transform)}"
        )
    if shape_of(transform)[-1] != 8:
        raise ValueError(
            f"`transform` must have 8 elements along its last axis. Received: transform.shape={shape_of(transform)}"
        )
    return project_images(images, transform, interpolation, fill_mode, fill_value, data_format)


def compute_homography_matrix(start_points: Any, end_points: Any) -> tf.Tensor:
    """Computes the eight numbers that map each of four end points (x, y) to its start point."""
    start, end = floating(start_points), floating(end_points)
    (u, v), (x, y) = ((points[..., 0], points[..., 1]) for points in (start, end))
    one, none = tf.ones_like(x), tf.zeros_like(x)
    upper = tf.stack([x, y, one, none, none, none, -u * x, -u * y], axis=-1)
    lower = tf.stack([none, none, none, x, y, one, -v * x, -v * y], axis=-1)
    targets = tf.concat([u, v], axis=-1)[..., None]
    return tf.linalg.solve(tf.concat([upper, lower], axis=-2), targets)[..., 0]


def perspective_transform(
    images: Any,
    start_points: Any,
    end_points: Any,
    interpolation: str = "bilinear",
    fill_value: float = 0,
    data_format: str | None = None,
) -> tf.Tensor:
    """Applies the perspective transform that moves four points to others."""
    images = convert_to_tensor(images)
    check_images(images)
    start, end = convert_to_tensor(start_points, "float32"), convert_to_tensor(end_points, "float32")
    for name, points in (("start_points", start), ("end_points", end)):
        if len(points.shape) not in (2, 3) or shape_of(points)[-2:] != (4, 2):
            raise ValueError(
                f"Invalid {name} shape: expected (4, 2) for one image or (N, 4, 2) for a batch. Received: {shape_of(points)}"
            )
    if shape_of(start) != shape_of(end):
        raise ValueError(
            f"`start_points` and `end_points` must have one shape. Received: {shape_of(start)} and {shape_of(end)}"
        )
    transform = compute_homography_matrix(start, end)
    return project_images(images, transform, interpolation, "constant", fill_value, data_format)


def gaussian_blur(
    images: Any,
    kernel_size: Sequence[int] = (3, 3),
    sigma: Any = (1.0, 1.0),
    data_format: str | None = None,
) -> tf.Tensor:
    """Convolves images with a Gaussian; the border is padded with zeros."""
    data_format = standardize_data_format(data_format)
    images = convert_to_tensor(images)
    check_images(images)
    x = floating(images if len(images.shape) == 4 else images[None])
    widths = tf.unstack(convert_to_tensor(sigma, x.dtype))
    across, down = (gaussian(size, width, x.dtype) for size, width in zip(kernel_size, widths))
    channels = shape_of(x)[-1 if data_format == "channels_last" else 1]
    # Keras takes the rows and columns of the product in this order: kernels that are not square are permuted.
    kernel = tf.reshape(down[:, None] * across, [*kernel_size, 1, 1])
    kernel = tf.tile(kernel, [1, 1, channels, 1])
    made = tf.cast(depthwise_conv(x, kernel, 1, "same", data_format), images.dtype)
    return made if len(images.shape) == 4 else made[0]


def gaussian(size: int, width: tf.Tensor, dtype: Any) -> tf.Tensor:
    """A Gaussian at `size` points around its centre, with sum 1."""
    places = convert_to_tensor(np.arange(size) - (size - 1) / 2, dtype)
    weights = tf.exp(tf.square(places / width) * -0.5)
    return weights / tf.reduce_sum(weights)


def elastic_transform(
    images: Any,
    alpha: Any = 20.0,
    sigma: Any = 5.0,
    interpolation: str = "bilinear",
    fill_mode: str = "reflect",
    fill_value: float = 0.0,
    seed: Any = None,
    data_format: str | None = None,
) -> tf.Tensor:
    """Shifts each pixel by a random displacement field, smoothed over `sigma` pixels and scaled by `alpha`."""
    images = convert_to_tensor(images)
    *batch, height, width = plane_of(images, data_format)
    dtype = floating(images).dtype
    alpha, sigma = convert_to_tensor(alpha, dtype), convert_to_tensor(sigma, dtype)
    # The size of a kernel must be known: in a trace it is half of the image.
    size = (int(6 * sigma) if tf.executing_eagerly() else min(height, width) // 2) | 1
    width_of_blur = tf.maximum(sigma, 1e-3)
    seed = draw_seed(seed)

    def shifts(seed):
        drawn = tf.random.stateless_normal([*(batch or [1]), height, width, 1], seed=seed, dtype="float32")
        smooth = gaussian_blur(
            tf.cast(drawn, dtype) * sigma, (size, size), tf.stack([width_of_blur] * 2), "channels_last"
        )
        return smooth[..., 0] * alpha

    across, down = shifts(seed), shifts(second_seed(seed))
    return sample_images(images, lambda x, y: (x + across, y + down), interpolation, fill_mode, fill_value, data_format)


def plane_of(images: tf.Tensor, data_format: str | None) -> tuple[int, ...]:
    """The shape of images without the channel axis."""
    check_images(images)
    shape = shape_of(images)
    first = standardize_data_format(data_format) == "channels_first"
    return (*shape[:-3], *shape[-2:]) if first else shape[:-1]


SOBEL = np.array([[-1, -2, -1], [0, 0, 0], [1, 2, 1]])
"""The vertical Sobel kernel."""


def sobel_edges(images: Any, data_format: str | None = None) -> tf.Tensor:
    """Computes vertical and horizontal Sobel gradients, along a new last axis; the border is reflected."""
    data_format = standardize_data_format(data_format)
    images = convert_to_tensor(images)
    last = data_format == "channels_last"
    channels = shape_of(images)[-1 if last else 1]
    none, one = [0, 0], [1, 1]
    wider = tf.pad(images, [none, one, one, none] if last else [none, none, one, one], mode="REFLECT")

    def change(kernel):
        kernel = np.broadcast_to(kernel[..., None, None], (3, 3, channels, 1))
        return depthwise_conv(wider, convert_to_tensor(kernel, images.dtype), 1, "valid", data_format)

    return tf.stack([change(SOBEL), change(SOBEL.T)], axis=-1)


def _lanczos(radius: float) -> Callable:
    def kernel(x: tf.Tensor) -> tf.Tensor:
        near = tf.maximum(x, 1e-3) * math.pi
        value = radius * tf.sin(near) * tf.sin(near / radius) / (near * near)
        return tf.where(x > radius, tf.zeros_like(x), tf.where(x > 1e-3, value, tf.ones_like(x)))

    return kernel


def _linear(x: tf.Tensor) -> tf.Tensor:
    return tf.maximum(1.0 - x, tf.zeros_like(x))


def _cubic(x: tf.Tensor) -> tf.Tensor:
    near, far = ((1.5 * x - 2.5) * x) * x + 1.0, ((-0.5 * x + 2.5) * x - 4.0) * x + 2.0
    return tf.where(x >= 2.0, tf.zeros_like(x), tf.where(x >= 1.0, far, near))


_SCALE_KERNELS: dict[str, Callable] = {
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), _linear),
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), _cubic),
    "lanczos3": _lanczos(3.0),
    "lanczos5": _lanczos(5.0),
}


def scale_and_translate(
    images: Any,
    output_shape: Sequence[int],
    scale: Any,
    translation: Any,
    spatial_dims: Sequence[int],
    method: str,
    antialias: bool = True,
) -> tf.Tensor:
    """Scales and moves images along axes, by interpolation; pixels outside of the images are zero."""
    if method not in _SCALE_KERNELS:
        raise ValueError(
            f"Invalid value for argument `method`. Expected of one {sorted(_SCALE_KERNELS)}. Received: method={method}"
        )
    images = convert_to_tensor(images)
    x = floating(images)
    scale, translation = (tf.cast(convert_to_tensor(one), x.dtype) for one in (scale, translation))
    for i, axis in enumerate(spatial_dims):
        before, after = shape_of(x)[axis], int(output_shape[axis])
        inverse = 1.0 / scale[i]
        places = (tf.cast(tf.range(after), x.dtype) + 0.5) * inverse - translation[i] * inverse - 0.5
        width = tf.maximum(inverse, tf.ones_like(inverse)) if antialias else tf.ones_like(inverse)
        pixels = tf.cast(tf.range(before), x.dtype)
        weights = _SCALE_KERNELS[method](tf.abs(places[:, None] - pixels[None, :]) / width)
        total = tf.reduce_sum(weights, axis=1, keepdims=True)
        weights = tf.where(tf.abs(total) > 1e-4, weights / tf.where(tf.equal(total, 0.0), 1.0, total), 0.0)
        inside = tf.logical_and(places >= -0.5, places <= before - 0.5)
        weights = tf.where(inside[:, None], weights, 0.0)
        x = matmul_axis(x, tf.transpose(weights), axis)
    if not is_float(images):
        x = tf.round(x)
    return tf.cast(x, images.dtype)
