"""Boxes in pictures: `[top, left, bottom, right]`; as `tf.image` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native, dtypes
from ._common import _as, _ints, _refuse
from .control import scan as _scan
from .math import argmax, exp, floor, maximum, minimum, reduce_sum, square

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

_broadcast = op("broadcast_to")
_cast = op("cast")
_clip = op("clip_by_value")
_gather_nd = op("gather_nd")
_logical_and = op("logical_and")
_range = op("range")
_reshape = op("reshape")
_stack = op("stack")
_where = op("where")


def _boxes(name: str, boxes: Any) -> _Tensor:
    boxes = _tensor(boxes)
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        _refuse(name, f"boxes are a matrix with four columns, not of shape {boxes.shape}", ValueError)
    return boxes


# Parts of pictures.


def _steps(low: _Tensor, high: _Tensor, count: int, size: int) -> _Tensor:
    """For each box, where the pixels of its part lie along an axis of the picture: `[boxes, count]`."""
    low, high = _reshape(low, [-1, 1]), _reshape(high, [-1, 1])
    if count == 1:
        return 0.5 * (low + high) * float(size - 1)
    part = _range(0, count, 1, dtypes.float32) / float(count - 1)
    return (low + (high - low) * part) * float(size - 1)


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_indices: Any,
    crop_size: Any,
    method: str = "bilinear",
    extrapolation_value: float = 0.0,
    name: str | None = None,
) -> _Tensor:
    """For each box, what is in it, made as large as `crop_size`, as floats.

    The corners of a picture are 0 and 1; `box_indices` says of which picture of the batch a box is. What lies
    outside is `extrapolation_value`.
    """
    image, boxes = _tensor(image), _as(_boxes("crop_and_resize", boxes), dtypes.float32)
    which, size = _tensor(box_indices), _ints(crop_size)
    if image.ndim != 4 or which.shape != boxes.shape[:1] or len(size) != 2 or min(size) < 1:
        shapes = f"pictures {image.shape}, boxes {boxes.shape}, indices {which.shape} and size {size}"
        _refuse("crop_and_resize", f"{shapes} do not go together")
    if method not in ("bilinear", "nearest"):
        _refuse("crop_and_resize", f"method is 'bilinear' or 'nearest', not {method!r}", ValueError)
    height, width = image.shape[1:3]
    pixels = _as(image, dtypes.float32)
    rows = _reshape(_steps(boxes[:, 0], boxes[:, 2], size[0], height), [-1, size[0], 1])
    columns = _reshape(_steps(boxes[:, 1], boxes[:, 3], size[1], width), [-1, 1, size[1]])
    places = [boxes.shape[0], *size]
    which = _broadcast(_reshape(_as(which, dtypes.int32), [-1, 1, 1]), places)

    def at(row: _Tensor, column: _Tensor) -> _Tensor:
        row, column = (
            _broadcast(_cast(_clip(place, 0.0, float(most - 1)), dtypes.int32), places)
            for place, most in ((row, height), (column, width))
        )
        return _gather_nd(pixels, _stack([which, row, column], -1))

    if method == "nearest":
        made = at(floor(rows + 0.5), floor(columns + 0.5))
    else:
        top, left = floor(rows), floor(columns)
        down, right = _reshape(rows - top, [-1, size[0], 1, 1]), _reshape(columns - left, [-1, 1, size[1], 1])
        above = at(top, left) + (at(top, left + 1.0) - at(top, left)) * right
        below = at(top + 1.0, left) + (at(top + 1.0, left + 1.0) - at(top + 1.0, left)) * right
        made = above + (below - above) * down
    inside = _logical_and(
        _logical_and(rows >= 0.0, rows <= float(height - 1)),
        _logical_and(columns >= 0.0, columns <= float(width - 1)),
    )
    return _where(_reshape(inside, [-1, *size, 1]), made, _cast(extrapolation_value, dtypes.float32))


# The best of boxes that overlap.


def _overlaps(boxes: _Tensor, box: _Tensor) -> _Tensor:
    """Of each box, the part that it shares with one of them, over what both cover."""
    low, high = minimum(boxes[:, :2], boxes[:, 2:]), maximum(boxes[:, :2], boxes[:, 2:])
    own_low, own_high = minimum(box[:2], box[2:]), maximum(box[:2], box[2:])
    sides = maximum(minimum(high, own_high) - maximum(low, own_low), 0.0)
    shared = sides[:, 0] * sides[:, 1]
    areas, own = high - low, own_high - own_low
    either = areas[:, 0] * areas[:, 1] + own[0] * own[1] - shared
    return _where(shared > 0.0, shared / _where(either > 0.0, either, 1.0), 0.0)


def _best(
    name: str, boxes: Any, scores: Any, most: Any, threshold: Any, least: Any, sigma: Any
) -> tuple[_Tensor, _Tensor]:
    """The boxes that stay, best first, and their scores; their number is known only where the values are."""
    boxes, scores = _as(_boxes(name, boxes), dtypes.float32), _as(_tensor(scores), dtypes.float32)
    if scores.shape != boxes.shape[:1]:
        _refuse(name, f"scores of shape {scores.shape} for boxes of shape {boxes.shape}")
    if boxes.is_symbolic or scores.is_symbolic:
        _refuse(name, "how many boxes stay is not known while a function is traced", TypeError)
    count = min(int(most), boxes.shape[0])
    if not count:
        return _range(0, 0, 1, dtypes.int32), scores[:0]
    numbers, gone = _range(0, boxes.shape[0], 1, dtypes.int64), float("-inf")

    def step(state: tuple, _: Any) -> tuple:
        left = state[0]
        place = argmax(left)
        score = left[place]
        shared = _overlaps(boxes, boxes[place])
        fallen = left * exp(-0.5 / sigma * square(shared)) if sigma else _where(shared > threshold, gone, left)
        left = _where(numbers == place, gone, fallen)
        return left, place, score

    begin = (scores, numbers[0], scores[0])
    _, places, kept = _scan(step, _range(0, count, 1, dtypes.int32), begin)
    # Scores only fall: what is above the least comes first.
    stay = int(reduce_sum(_cast(_logical_and(kept > least, kept > gone), dtypes.int32)))
    return _cast(places[:stay], dtypes.int32), kept[:stay]


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = -np.inf,
    name: str | None = None,
) -> _Tensor:
    """The numbers of the best boxes, best first, without those that share too much with a better one."""
    made = _best("non_max_suppression", boxes, scores, max_output_size, iou_threshold, score_threshold, 0.0)
    return made[0]


def non_max_suppression_with_scores(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = -np.inf,
    soft_nms_sigma: float = 0.0,
    name: str | None = None,
) -> tuple[_Tensor, _Tensor]:
    """As `non_max_suppression`, and their scores.

    With a sigma, boxes lose by what they share with a better one, and no box is left out for it.
    """
    name = "non_max_suppression_with_scores"
    return _best(name, boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma)
