"""Bounding boxes `[top, left, bottom, right]`: crops and non-maximum suppression."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import as_ints, cast_to, refuse
from .._native import Tensor, as_tensor
from ..control import scan as _scan
from ..errors import DynamicShapeError
from .reduction import argmax, reduce_sum

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


def _iou(boxes: Tensor, box: Tensor) -> Tensor:
    """Intersection over union of each box with one box."""
    low, high = raw.minimum(boxes[:, :2], boxes[:, 2:]), raw.maximum(boxes[:, :2], boxes[:, 2:])
    own_low, own_high = raw.minimum(box[:2], box[2:]), raw.maximum(box[:2], box[2:])
    sides = raw.maximum(raw.minimum(high, own_high) - raw.maximum(low, own_low), 0.0)
    shared = sides[:, 0] * sides[:, 1]
    areas, own = high - low, own_high - own_low
    either = areas[:, 0] * areas[:, 1] + own[0] * own[1] - shared
    return raw.where(shared > 0.0, shared / raw.where(either > 0.0, either, 1.0), 0.0)


def _suppress(
    name: str, boxes: TensorLike, scores: TensorLike, most: Any, threshold: Any, least: Any, sigma: Any
) -> tuple[Tensor, Tensor]:
    """Indices and scores of the boxes that remain, in descending order of score. Their number depends on the values."""
    boxes, scores = cast_to(_check_boxes(name, boxes), dtypes.float32), cast_to(as_tensor(scores), dtypes.float32)
    if scores.shape != boxes.shape[:1]:
        refuse(name, f"scores must have one element per box, {boxes.shape[0]}, got shape {scores.shape}")
    if boxes.is_symbolic or scores.is_symbolic:
        refuse(
            name,
            "the number of results depends on the values of traced tensors",
            DynamicShapeError,
        )
    count = min(int(most), boxes.shape[0])
    if not count:
        return raw.range(0, 0, 1, dtypes.int32), scores[:0]
    numbers, gone = raw.range(0, boxes.shape[0], 1, dtypes.int64), float("-inf")

    def step(state: tuple, _: Any) -> tuple:
        left = state[0]
        place = argmax(left)
        score = left[place]
        shared = _iou(boxes, boxes[place])
        fallen = (
            left * raw.exp(-0.5 / sigma * raw.square(shared)) if sigma else raw.where(shared > threshold, gone, left)
        )
        left = raw.where(numbers == place, gone, fallen)
        return left, place, score

    begin = (scores, numbers[0], scores[0])
    _, places, kept = _scan(step, raw.range(0, count, 1, dtypes.int32), begin)
    # Scores are in descending order, so those above the threshold come first.
    stay = int(reduce_sum(raw.cast(raw.logical_and(kept > least, kept > gone), dtypes.int32)))
    return raw.cast(places[:stay], dtypes.int32), kept[:stay]


def non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = -np.inf,
    name: str | None = None,
) -> Tensor:
    """Selects boxes in descending order of score, skipping those that overlap a selected one too much."""
    made = _suppress("non_max_suppression", boxes, scores, max_output_size, iou_threshold, score_threshold, 0.0)
    return made[0]


def non_max_suppression_with_scores(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = -np.inf,
    soft_nms_sigma: float = 0.0,
    name: str | None = None,
) -> tuple[Tensor, Tensor]:
    """As `non_max_suppression`, and returns the scores.

    With `soft_nms_sigma`, the scores of overlapping boxes decay instead (Soft-NMS).
    """
    name = "non_max_suppression_with_scores"
    return _suppress(name, boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma)
