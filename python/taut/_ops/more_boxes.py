"""Boxes in images: drawing, glimpses, and further forms of non-maximum suppression."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import as_ints, cast_to, refuse
from .._native import Tensor, as_tensor

if TYPE_CHECKING:
    from .._typing import IntsLike, TensorLike


def non_max_suppression_overlaps(
    overlaps: TensorLike,
    scores: TensorLike,
    max_output_size: Any,
    overlap_threshold: float = 0.5,
    score_threshold: float = -math.inf,
    name: str | None = None,
) -> Tensor:
    """The indices of boxes by falling score, without those that overlap an earlier one too much; `overlaps` is a matrix."""
    matrix, values = as_tensor(overlaps).numpy(), as_tensor(scores).numpy()
    if matrix.shape != (values.size, values.size):
        refuse(
            "non_max_suppression_overlaps", f"expected overlaps [boxes, boxes] and scores [boxes], got {matrix.shape}"
        )
    kept: list[int] = []
    for index in np.argsort(-values, kind="stable"):
        if len(kept) >= int(max_output_size) or values[index] <= float(score_threshold):
            break
        if all(matrix[index, other] <= float(overlap_threshold) for other in kept):
            kept.append(int(index))
    return _native.own_tensor(np.asarray(kept, np.int32))


def _overlap(boxes: np.ndarray) -> np.ndarray:
    """Intersection over union of all pairs of boxes (y1, x1, y2, x2)."""
    low, high = np.minimum(boxes[:, :2], boxes[:, 2:]), np.maximum(boxes[:, :2], boxes[:, 2:])
    area = np.prod(high - low, 1)
    inside = np.maximum(np.minimum(high[:, None], high) - np.maximum(low[:, None], low), 0).prod(2)
    union = area[:, None] + area - inside
    return np.divide(inside, union, out=np.zeros_like(inside), where=union > 0)


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
    values = as_tensor(scores)
    if values.ndim != 1:
        refuse("non_max_suppression_padded", f"expected the boxes of one image, got scores of shape {values.shape}")
    places = as_tensor(boxes).numpy()
    if places.shape != (values.shape[0], 4):
        refuse("non_max_suppression_padded", f"boxes must have shape [{values.shape[0]}, 4], got {places.shape}")
    overlaps = _overlap(places)
    kept = non_max_suppression_overlaps(overlaps, values, max_output_size, iou_threshold, score_threshold)
    count = kept.shape[0]
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
    places, values = as_tensor(boxes).numpy(), as_tensor(scores).numpy()
    if places.ndim != 4 or values.ndim != 3 or places.shape[:2] != values.shape[:2]:
        refuse(
            "combined_non_max_suppression",
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
            kept = non_max_suppression_overlaps(
                _overlap(own), values[image, :, kind], each, iou_threshold, score_threshold
            ).numpy()
            found += [(-float(values[image, box, kind]), kind, own[box]) for box in kept]
        found.sort(key=lambda row: row[:2])
        for place, (score, kind, box) in enumerate(found[:total]):
            made_boxes[image, place] = np.clip(box, 0, 1) if clip_boxes else box
            made_scores[image, place], made_classes[image, place] = -score, kind
        counts[image] = min(len(found), total)
    return CombinedNonMaxSuppression(*map(_native.own_tensor, (made_boxes, made_scores, made_classes, counts)))


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
