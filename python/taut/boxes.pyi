"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

from .math import argmax as argmax
def crop_and_resize(image: Any, boxes: Any, box_indices: Any, crop_size: Any, method: str = ..., extrapolation_value: float = ..., name: str | None = ...) -> Tensor:
    """For each box, what is in it, made as large as `crop_size`, as floats."""

def exp(x: TensorLike, *, name: str | None = ...) -> Any:
    """e to the power of each element."""

def floor(x: TensorLike, *, name: str | None = ...) -> Any:
    """The largest whole number that is not above each element."""

def maximum(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The larger of x and y; NaN if either is."""

def minimum(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The smaller of x and y; NaN if either is."""

def non_max_suppression(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: float = ..., score_threshold: float = ..., name: str | None = ...) -> Tensor:
    """The numbers of the best boxes, best first, without those that share too much with a better one."""

def non_max_suppression_with_scores(boxes: Any, scores: Any, max_output_size: Any, iou_threshold: float = ..., score_threshold: float = ..., soft_nms_sigma: float = ..., name: str | None = ...) -> tuple[Tensor, Tensor]:
    """As `non_max_suppression`, and their scores."""

from .math import reduce_sum as reduce_sum
def square(x: TensorLike, *, name: str | None = ...) -> Any:
    """The square of each element, `x * x`; integers wrap."""
