"""Bounding boxes `[top, left, bottom, right]`: crops, drawing, glimpses and random boxes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import as_ints, cast_to, refuse
from .._native import Tensor, as_tensor
from ..errors import DynamicShapeError
from .checks import check_holds, value_text
from .random import next_key, seed_key

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
    finite = raw.all(raw.is_finite(boxes))
    check_holds("crop_and_resize", finite, lambda: f"boxes must be finite, got {value_text(boxes, 3)}")
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


# Yellow, blue, red, lime, purple, olive, maroon, navy, aqua and fuchsia, opaque: TensorFlow's colors.
_COLORS = (
    *((1.0, 1.0, 0.0, 1.0), (0.0, 0.0, 1.0, 1.0), (1.0, 0.0, 0.0, 1.0), (0.0, 1.0, 0.0, 1.0), (0.5, 0.0, 0.5, 1.0)),
    *((0.5, 0.5, 0.0, 1.0), (0.5, 0.0, 0.0, 1.0), (0.0, 0.0, 0.5, 1.0), (0.0, 1.0, 1.0, 1.0), (1.0, 0.0, 1.0, 1.0)),
)


def draw_bounding_boxes(images: TensorLike, boxes: TensorLike, colors: Any, name: str | None = None) -> Tensor:
    """Draws boxes (y1, x1, y2, x2), as fractions of the size, into images; the colors take turns.

    Without colors, there are ten of them; images of one channel get 1.
    """
    x, places = as_tensor(images), np.asarray(as_tensor(boxes).numpy())
    if colors is None or np.shape(colors)[:1] == (0,):
        colors = [[1.0]] if x.shape[-1] == 1 else _COLORS
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
    paint = np.zeros(tuple(x.shape), np.float32)
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

    Offsets are fractions of the size if `normalized`; if `centered`, (0, 0) is the middle and (-1, -1) a corner. In pixels,
    that is without `normalized`, they are those of the window's corner.
    """
    if noise not in ("uniform", "gaussian", "zero"):
        refuse("extract_glimpse", f"noise must be 'uniform', 'gaussian' or 'zero', got {noise!r}", ValueError)
    x, where = as_tensor(input), cast_to(as_tensor(offsets), dtypes.float32).numpy()
    height, width = as_ints(size)
    if x.ndim != 4 or where.shape != (x.shape[0], 2):
        refuse(
            "extract_glimpse",
            f"expected images [batch, height, width, channels] and offsets [batch, 2], got {x.shape} and {where.shape}",
        )
    rows, columns = x.shape[1:3]
    made = []
    for image in range(x.shape[0]):
        y, z = (float(part) for part in where[image])
        if normalized and centered:
            y, z = (y * rows + rows - height) / 2, (z * columns + columns - width) / 2
        elif normalized:
            y, z = y * rows, z * columns
        elif centered:
            # In pixels, offsets are those of the window's corner from the middle, as in TensorFlow.
            y, z = y + rows / 2, z + columns / 2
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


class DistortedBox(NamedTuple):
    """A random window: where it begins, its size, and its corners as fractions of the image."""

    begin: Tensor
    size: Tensor
    bboxes: Tensor


def _distorted_box(
    name: str,
    image_size: Any,
    bounding_boxes: TensorLike,
    key: Tensor,
    least_covered: Any,
    aspects: Any,
    areas: Any,
    attempts: Any,
    use_image: Any,
) -> DistortedBox:
    if key.is_symbolic or any(as_tensor(one).is_symbolic for one in (image_size, bounding_boxes)):
        refuse(name, "the size of the window depends on the values of traced tensors", DynamicShapeError)
    sizes = as_ints(image_size)
    boxes = cast_to(as_tensor(bounding_boxes), dtypes.float32).numpy()
    if len(sizes) != 3 or min(sizes) < 1 or boxes.ndim != 3 or boxes.shape[-1] != 4:
        refuse(
            name,
            "expected image_size [height, width, channels] and bounding_boxes [batch, boxes, 4], got "
            f"{sizes} and shape {boxes.shape}",
        )
    boxes = boxes.reshape(-1, 4)
    if not len(boxes):
        if not use_image:
            refuse(name, "there must be at least one bounding box, or use_image_if_no_bounding_boxes=True")
        boxes = np.array([[0.0, 0.0, 1.0, 1.0]], np.float32)
    (low, high), (smallest, largest) = aspects or (0.75, 1.33), areas or (0.05, 1.0)
    if not 0 < low <= high or not 0 < smallest <= largest:
        refuse(name, f"expected ranges of positive numbers, got aspect_ratio_range {aspects} and area_range {areas}")
    height, width = sizes[:2]
    corners = boxes * [height, width, height, width]
    rng = np.random.default_rng([int(part) for part in key.numpy()])
    top, left, rows, columns = 0, 0, height, width
    for _ in range(100 if attempts is None else int(attempts)):
        area, aspect = rng.uniform(smallest, largest) * height * width, rng.uniform(low, high)
        h, w = round((area / aspect) ** 0.5), round((area * aspect) ** 0.5)
        if not (1 <= h <= height and 1 <= w <= width and smallest <= h * w / (height * width) <= largest):
            continue
        y, x = int(rng.integers(height - h + 1)), int(rng.integers(width - w + 1))
        inside = np.minimum(corners[:, 2:], [y + h, x + w]) - np.maximum(corners[:, :2], [y, x])
        shared = np.maximum(inside, 0).prod(1)
        whole = np.maximum(corners[:, 2:] - corners[:, :2], 0).prod(1)
        if np.any((shared >= float(least_covered) * whole) & (whole > 0)):
            top, left, rows, columns = y, x, h, w
            break
    fractions = np.array([top / height, left / width, (top + rows) / height, (left + columns) / width], np.float32)
    return DistortedBox(
        _native.own_tensor(np.array([top, left, 0], np.int32)),
        _native.own_tensor(np.array([rows, columns, -1], np.int32)),
        _native.own_tensor(fractions.reshape(1, 1, 4)),
    )


def sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: TensorLike,
    seed: int = 0,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> DistortedBox:
    """Draws a window of random size and place that covers at least `min_object_covered` of one of the boxes.

    Its width divided by its height is in `aspect_ratio_range` (default 0.75 to 1.33), its share of the image in `area_range`
    (default 0.05 to 1). After `max_attempts` (default 100) it is the whole image.
    """
    return _distorted_box(
        "sample_distorted_bounding_box",
        image_size,
        bounding_boxes,
        next_key(seed or None),
        min_object_covered,
        aspect_ratio_range,
        area_range,
        max_attempts,
        use_image_if_no_bounding_boxes,
    )


def stateless_sample_distorted_bounding_box(
    image_size: Any,
    bounding_boxes: TensorLike,
    seed: Any,
    min_object_covered: Any = 0.1,
    aspect_ratio_range: Any = None,
    area_range: Any = None,
    max_attempts: int | None = None,
    use_image_if_no_bounding_boxes: bool | None = None,
    name: str | None = None,
) -> DistortedBox:
    """As `sample_distorted_bounding_box`; the window depends on `seed` alone."""
    name = "stateless_sample_distorted_bounding_box"
    return _distorted_box(
        name,
        image_size,
        bounding_boxes,
        seed_key(name, seed),
        min_object_covered,
        aspect_ratio_range,
        area_range,
        max_attempts,
        use_image_if_no_bounding_boxes,
    )
