"""Bounding boxes `[top, left, bottom, right]`: crops, drawing, glimpses and random boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import as_ints, cast_to, refuse
from .._native import Tensor, as_tensor

if TYPE_CHECKING:
    from .._typing import IntsLike, TensorLike


def _check_boxes(name: str, boxes: TensorLike) -> Tensor:
    boxes = as_tensor(boxes)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        refuse(name, f"boxes must have shape [boxes, 4], got {boxes.shape}", ValueError)
    return boxes


def _sample_positions(low: Tensor, high: Tensor, count: int, size: int) -> Tensor:
    """For each box, the positions of its samples along an axis of the image: `[boxes, count]`."""
    low, high = raw.reshape(low, [-1, 1]), raw.reshape(high, [-1, 1])
    if count == 1:
        return 0.5 * (low + high) * float(size - 1)
    part = raw.range(0, count, 1, dtypes.float32) / float(count - 1)
    return (low + (high - low) * part) * float(size - 1)


def crop_and_resize(
    image: TensorLike,
    boxes: TensorLike,
    box_indices: TensorLike,
    crop_size: IntsLike,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> Tensor:
    """Crops the boxes and resizes them to `crop_size`, as float32.

    Box coordinates are relative: an image's corners are 0 and 1. `box_indices` names the image of each box. Samples
    outside the image are `extrapolation_value`.
    """
    image, boxes = as_tensor(image), cast_to(_check_boxes("crop_and_resize", boxes), dtypes.float32)
    which, size = as_tensor(box_indices), as_ints(crop_size)
    if image.ndim != 4 or which.shape != boxes.shape[:1] or len(size) != 2 or min(size) < 1:
        shapes = f"pictures {image.shape}, boxes {boxes.shape}, indices {which.shape} and size {size}"
        refuse(
            "crop_and_resize",
            f"expected images of rank 4, one index per box and a size of two integers >= 1, got {shapes}",
        )
    if method not in ("bilinear", "nearest"):
        refuse("crop_and_resize", f"method must be 'bilinear' or 'nearest', got {method!r}", ValueError)
    height, width = image.shape[1:3]
    pixels = cast_to(image, dtypes.float32)
    rows = raw.reshape(_sample_positions(boxes[:, 0], boxes[:, 2], size[0], height), [-1, size[0], 1])
    columns = raw.reshape(_sample_positions(boxes[:, 1], boxes[:, 3], size[1], width), [-1, 1, size[1]])
    places = [boxes.shape[0], *size]
    which = raw.broadcast_to(raw.reshape(cast_to(which, dtypes.int32), [-1, 1, 1]), places)

    def at(row: Tensor, column: Tensor) -> Tensor:
        row, column = (
            raw.broadcast_to(raw.cast(raw.clip_by_value(place, 0.0, float(most - 1)), dtypes.int32), places)
            for place, most in ((row, height), (column, width))
        )
        return raw.gather_nd(pixels, raw.stack([which, row, column], -1))

    if method == "nearest":
        made = at(raw.floor(rows + 0.5), raw.floor(columns + 0.5))
    else:
        top, left = raw.floor(rows), raw.floor(columns)
        down, right = raw.reshape(rows - top, [-1, size[0], 1, 1]), raw.reshape(columns - left, [-1, 1, size[1], 1])
        above = at(top, left) + (at(top, left + 1.0) - at(top, left)) * right
        below = at(top + 1.0, left) + (at(top + 1.0, left + 1.0) - at(top + 1.0, left)) * right
        made = above + (below - above) * down
    inside = raw.logical_and(
        raw.logical_and(rows >= 0.0, rows <= float(height - 1)),
        raw.logical_and(columns >= 0.0, columns <= float(width - 1)),
    )
    return raw.where(raw.reshape(inside, [-1, *size, 1]), made, raw.cast(extrapolation_value, dtypes.float32))


def draw_bounding_boxes(images: TensorLike, boxes: TensorLike, colors: Any, name: str | None = None) -> Tensor:
    """Draws boxes (y1, x1, y2, x2), as fractions of the size, into images; the colors take turns."""
    x, places = as_tensor(images), as_tensor(boxes).numpy()
    palette = np.asarray(colors, np.float32)
    if x.ndim != 4 or places.ndim != 3 or places.shape[-1] != 4 or len(places) != x.shape[0]:
        refuse(
            "draw_bounding_boxes",
            f"expected images [batch, height, width, channels] and boxes [batch, boxes, 4], got {x.shape} and {places.shape}",
        )
    if palette.ndim != 2 or palette.shape[1] < x.shape[-1]:
        refuse("draw_bounding_boxes", f"colors must have shape [colors, {x.shape[-1]} or more], got {palette.shape}")
    height, width, channels = x.shape[1:]
    mask = np.zeros(x.shape[:3], bool)
    paint = np.zeros(x.shape, np.float32)
    for image in range(x.shape[0]):
        for number, (top, left, bottom, right) in enumerate(places[image]):
            low = int(top * (height - 1)), int(left * (width - 1))
            high = int(bottom * (height - 1)), int(right * (width - 1))
            if low[0] > high[0] or low[1] > high[1]:
                continue
            for row in range(max(low[0], 0), min(high[0], height - 1) + 1):
                for column in range(max(low[1], 0), min(high[1], width - 1) + 1):
                    if row in (low[0], high[0]) or column in (low[1], high[1]):
                        mask[image, row, column] = True
                        paint[image, row, column] = palette[number % len(palette)][:channels]
    return raw.where(as_tensor(mask[..., None]), raw.cast(as_tensor(paint), x.dtype), x)


def extract_glimpse(
    input: TensorLike,
    size: IntsLike,
    offsets: TensorLike,
    centered: bool = True,
    normalized: bool = True,
    noise: str = "uniform",
    name: str | None = None,
) -> Tensor:
    """Windows of this size at offsets (y, x) of images; what lies outside of them is zero (`noise="zero"`) or noise.

    Offsets are fractions of the size if `normalized`; if `centered`, (0, 0) is the middle and (-1, -1) a corner.
    """
    if noise not in ("uniform", "gaussian", "zero"):
        refuse("extract_glimpse", f"noise must be 'uniform', 'gaussian' or 'zero', got {noise!r}", ValueError)
    x, where = as_tensor(input), cast_to(as_tensor(offsets), dtypes.float32).numpy()
    height, width = as_ints(size)
    rows, columns = x.shape[1:3]
    made = []
    for image in range(x.shape[0]):
        y, z = (float(part) for part in where[image])
        if normalized:
            y, z = y * rows, z * columns
        if centered:
            y, z = (y + rows - height) / 2, (z + columns - width) / 2
        top, left = int(y), int(z)
        over = [max(-top, 0), max(top + height - rows, 0), max(-left, 0), max(left + width - columns, 0)]
        part = x[image, max(top, 0) : max(top + height, 0), max(left, 0) : max(left + width, 0)]
        if any(over) and noise != "zero":
            refuse(
                "extract_glimpse",
                f"noise={noise!r} is for windows that reach over the edge of the image, which need noise='zero' here",
                ValueError,
            )
        around = [[min(over[0], height), min(over[1], height)], [min(over[2], width), min(over[3], width)]]
        made.append(raw.pad(part, [*around, [0, 0]]))
    return raw.stack(made, 0)
