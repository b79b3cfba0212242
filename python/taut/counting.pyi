"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

def bincount(arr: Any, weights: Any = ..., minlength: Any = ..., maxlength: Any = ..., dtype: Any = ..., name: str | None = ..., axis: int | None = ..., binary_output: bool = ...) -> Tensor:
    """How often each integer occurs, or the sum of the weights where it does."""

def confusion_matrix(labels: Any, predictions: Any, num_classes: Any = ..., weights: Any = ..., dtype: Any = ..., name: str | None = ...) -> Tensor:
    """How often each class (row) was predicted as each other one (column), or the weight of those times."""

def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = ...) -> Tensor:
    """For each row of predictions, whether fewer than `k` classes have more than the target does."""

def invert_permutation(x: Any, name: str | None = ...) -> Tensor:
    """Where each number of a permutation stands: another permutation, which undoes it."""

def segment_max(data: TensorLike, segment_ids: TensorLike, *, name: str | None = ...) -> Any:
    """The largest of the rows of `data` with equal ids: row `i` of the result is made of those with id `i`. Ids must not decrease;"""

def segment_mean(data: TensorLike, segment_ids: TensorLike, *, name: str | None = ...) -> Any:
    """The mean of the rows of `data` with equal ids: row `i` of the result is made of those with id `i`. Ids must not decrease;"""

def segment_min(data: TensorLike, segment_ids: TensorLike, *, name: str | None = ...) -> Any:
    """The smallest of the rows of `data` with equal ids: row `i` of the result is made of those with id `i`. Ids must not decrease;"""

def segment_prod(data: TensorLike, segment_ids: TensorLike, *, name: str | None = ...) -> Any:
    """The product of the rows of `data` with equal ids: row `i` of the result is made of those with id `i`. Ids must not decrease;"""

def segment_sum(data: TensorLike, segment_ids: TensorLike, *, name: str | None = ...) -> Any:
    """The sum of the rows of `data` with equal ids: row `i` of the result is made of those with id `i`. Ids must not decrease;"""

def unsorted_segment_max(data: Any, segment_ids: Any, num_segments: Any, name: str | None = ...) -> Tensor:
    """The largest of the rows with equal ids; the lowest value there is for an id that does not occur."""

def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = ...) -> Tensor:
    """The mean of the rows with equal ids; zero for an id that does not occur. That of integers is a float64."""

def unsorted_segment_min(data: Any, segment_ids: Any, num_segments: Any, name: str | None = ...) -> Tensor:
    """The smallest of the rows with equal ids; the highest value there is for an id that does not occur."""

def unsorted_segment_prod(data: Any, segment_ids: Any, num_segments: Any, name: str | None = ...) -> Tensor:
    """The product of the rows with equal ids; one for an id that does not occur."""

def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = ...) -> Tensor:
    """The sum of the rows with equal ids over the root of their number; zero where there are none."""

def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = ...) -> Tensor:
    """The sum of the rows with equal ids; zero for an id that does not occur."""
