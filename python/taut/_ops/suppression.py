"""Non-maximum suppression of boxes `[top, left, bottom, right]`.

How many boxes remain depends on their values, so these functions compute on the host, and a traced function that calls them
runs op by op.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from ..errors import DynamicShapeError

if TYPE_CHECKING:
    from .._typing import TensorLike


def _values(name: str, x: TensorLike) -> np.ndarray:
    """The values of a tensor as float32."""
    x = as_tensor(x)
    if x.is_symbolic:
        refuse(name, "the number of results depends on the values of traced tensors", DynamicShapeError)
    return cast_to(x, dtypes.float32).numpy()


def _overlap(boxes: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Intersection over union of each box with one box."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    own_low, own_high = np.minimum(box[:2], box[2:]), np.maximum(box[:2], box[2:])
    shared = np.maximum(np.minimum(high, own_high) - np.maximum(low, own_low), 0).prod(1)
    union = (high - low).prod(1) + (own_high - own_low).prod() - shared
    return np.divide(shared, union, out=np.zeros_like(shared), where=(shared > 0) & (union > 0))


def _select(
    scores: np.ndarray, overlap: Callable[[int], np.ndarray], most: Any, threshold: Any, least: Any, sigma: Any = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """Indices and scores of the boxes that remain, by falling score.

    `overlap` gives the overlaps of all boxes with one. Boxes that overlap a selected one too much are dropped, or their scores
    decay, if `sigma` is not 0.
    """
    left = scores.copy()
    kept: list[int] = []
    found: list[Any] = []
    while len(kept) < int(most) and left.size:
        place = int(left.argmax())
        if not left[place] > float(least):
            break
        kept.append(place)
        found.append(left[place])
        shared = overlap(place)
        if sigma:
            left *= np.exp(np.float32(-0.5 / float(sigma)) * np.square(shared))
        else:
            left[shared > float(threshold)] = -np.inf
        left[place] = -np.inf
    return np.asarray(kept, np.int32), np.asarray(found, np.float32)


def _select_boxes(
    name: str, boxes: TensorLike, scores: TensorLike, most: Any, threshold: Any, least: Any, sigma: Any = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    places, values = _values(name, boxes), _values(name, scores)
    if places.ndim != 2 or places.shape[1] != 4:
        refuse(name, f"boxes must have shape [boxes, 4], got {places.shape}", ValueError)
    if values.shape != places.shape[:1]:
        refuse(name, f"scores must have one element per box, {places.shape[0]}, got shape {values.shape}")
    if int(most) < 0:
        refuse(name, f"max_output_size must be >= 0, got {most}")
    return _select(values, lambda place: _overlap(places, places[place]), most, threshold, least, sigma)


def non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = -np.inf,
    name: str | None = None,
) -> Tensor:
    """Selects boxes in descending order of score, skipping those that overlap a selected one too much."""
    made = _select_boxes("non_max_suppression", boxes, scores, max_output_size, iou_threshold, score_threshold)
    return _native.own_tensor(made[0])


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
    made = _select_boxes(name, boxes, scores, max_output_size, iou_threshold, score_threshold, soft_nms_sigma)
    return _native.own_tensor(made[0]), _native.own_tensor(made[1])


def non_max_suppression_overlaps(
    overlaps: TensorLike,
    scores: TensorLike,
    max_output_size: Any,
    overlap_threshold: float = 0.5,
    score_threshold: float = -math.inf,
    name: str | None = None,
) -> Tensor:
    """The indices of boxes by falling score, without those that overlap an earlier one too much; `overlaps` is a matrix."""
    name = "non_max_suppression_overlaps"
    matrix, values = _values(name, overlaps), _values(name, scores)
    if matrix.shape != (values.size, values.size):
        refuse(name, f"expected overlaps [boxes, boxes] and scores [boxes], got {matrix.shape} and {values.shape}")
    made = _select(values, lambda place: matrix[place], max_output_size, overlap_threshold, score_threshold)
    return _native.own_tensor(made[0])


def non_max_suppression_padded(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = -math.inf,
    pad_to_max_output_size: bool = False,
    name: str | None = None,
    sorted_input: bool = False,
    canonicalized_coordinates: bool = False,
    tile_size: int = 512,
) -> tuple[Tensor, Tensor]:
    """The indices of boxes that are kept, padded with zeros to `max_output_size` if asked for, and their number."""
    name = "non_max_suppression_padded"
    values = as_tensor(scores)
    if values.ndim != 1:
        refuse(name, f"expected the boxes of one image, got scores of shape {values.shape}")
    made, _ = _select_boxes(name, boxes, values, max_output_size, iou_threshold, score_threshold)
    count = len(made)
    kept = _native.own_tensor(made)
    if pad_to_max_output_size:
        kept = raw.pad(kept, [[0, int(max_output_size) - count]])
    return kept, _native.own_tensor(np.int32(count))


class CombinedNonMaxSuppression(NamedTuple):
    """The result of `combined_non_max_suppression`."""

    nmsed_boxes: Tensor
    nmsed_scores: Tensor
    nmsed_classes: Tensor
    valid_detections: Tensor


def combined_non_max_suppression(
    boxes: TensorLike,
    scores: TensorLike,
    max_output_size_per_class: Any,
    max_total_size: Any,
    iou_threshold: float = 0.5,
    score_threshold: float = -math.inf,
    pad_per_class: bool = False,
    clip_boxes: bool = True,
    name: str | None = None,
) -> CombinedNonMaxSuppression:
    """Non-maximum suppression per class, and the best boxes of all classes: for boxes `[batch, boxes, classes or 1, 4]`."""
    name = "combined_non_max_suppression"
    places, values = _values(name, boxes), _values(name, scores)
    if places.ndim != 4 or values.ndim != 3 or places.shape[:2] != values.shape[:2]:
        refuse(
            name,
            f"expected boxes [batch, boxes, classes or 1, 4] and scores [batch, boxes, classes], got {places.shape} "
            f"and {values.shape}",
        )
    batch, _, classes = values.shape
    each, total = int(max_output_size_per_class), int(max_total_size)
    if pad_per_class:
        total = min(total, each * classes)
    made_boxes = np.zeros((batch, total, 4), np.float32)
    made_scores, made_classes = np.zeros((batch, total), np.float32), np.zeros((batch, total), np.float32)
    counts = np.zeros(batch, np.int32)
    for image in range(batch):
        found = []
        for kind in range(classes):
            own = places[image, :, kind if places.shape[2] > 1 else 0]
            kept, _ = _select(
                values[image, :, kind],
                lambda place, own=own: _overlap(own, own[place]),  # type: ignore[misc]
                each,
                iou_threshold,
                score_threshold,
            )
            found += [(-float(values[image, box, kind]), kind, own[box]) for box in kept]
        found.sort(key=lambda row: row[:2])
        for place, (score, kind, box) in enumerate(found[:total]):
            made_boxes[image, place] = np.clip(box, 0, 1) if clip_boxes else box
            made_scores[image, place], made_classes[image, place] = -score, kind
        counts[image] = min(len(found), total)
    return CombinedNonMaxSuppression(*map(_native.own_tensor, (made_boxes, made_scores, made_classes, counts)))
