"""Sorting, searching and unique elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .. import _raw_ops as raw, dtypes
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor

if TYPE_CHECKING:
    from .._typing import DTypeLike, TensorLike


def _descending(name: str, direction: str) -> bool:
    if direction not in ("ASCENDING", "DESCENDING"):
        refuse(name, f"direction must be 'ASCENDING' or 'DESCENDING', got {direction!r}", ValueError)
    return direction == "DESCENDING"


def sort(values: TensorLike, axis: int = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """Sorts along an axis."""
    return raw.sort(values, axis, _descending("sort", direction))


def argsort(
    values: TensorLike, axis: int = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """Returns the int32 indices that sort along an axis. The sort is stable."""
    return raw.cast(raw.argsort(values, axis, _descending("argsort", direction)), dtypes.int32)


def searchsorted(
    sorted_sequence: TensorLike,
    values: TensorLike,
    side: str = "left",
    out_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Finds where values would be inserted into sorted sequences: before equal elements ("left") or after them
    ("right").
    """
    if side not in ("left", "right"):
        refuse("searchsorted", f"side must be 'left' or 'right', got {side!r}", ValueError)
    return cast_to(raw.searchsorted(sorted_sequence, values, side == "right"), dtypes.as_dtype(out_type))


class Unique(NamedTuple):
    """Unique values, and the index of each element among them."""

    y: Tensor
    idx: Tensor


class UniqueWithCounts(NamedTuple):
    """Unique values, the index of each element among them, and the count of each."""

    y: Tensor
    idx: Tensor
    count: Tensor  # type: ignore[assignment]  # TensorFlow's name of the field hides a method of tuples.


def unique(x: TensorLike, out_idx: DTypeLike = dtypes.int32, name: str | None = None) -> Unique:
    """Finds the unique elements of a vector, in order of first occurrence, and the index of each element among them."""
    return Unique(*_unique("unique", x, out_idx)[:2])


def unique_with_counts(x: TensorLike, out_idx: DTypeLike = dtypes.int32, name: str | None = None) -> UniqueWithCounts:
    """As `unique`, with the count of each value."""
    return UniqueWithCounts(*_unique("unique_with_counts", x, out_idx))


def _unique(name: str, x: TensorLike, out_idx: DTypeLike) -> tuple[Tensor, Tensor, Tensor]:
    x, dtype = as_tensor(x), dtypes.as_dtype(out_idx)
    if x.ndim != 1:
        refuse(name, f"expected rank 1, got shape {x.shape}")
    values, which, counts = raw.unique(x)
    first = raw.unsorted_segment_min(raw.range(0, len(x), 1, dtypes.int64), which, len(values))
    order = raw.argsort(first)
    place = raw.argsort(order)
    return (
        raw.gather(values, order),
        cast_to(raw.gather(place, which), dtype),
        cast_to(raw.gather(counts, order), dtype),
    )


class TopK(NamedTuple):
    """The largest or smallest elements, and their indices."""

    values: Tensor
    indices: Tensor


def approx_max_k(
    operand: TensorLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> TopK:
    """The `k` largest elements along an axis, and their indices. They are exact, which every `recall_target` allows."""
    moved = raw.moveaxis(as_tensor(operand), reduction_dimension, -1)
    values, indices = raw.top_k(moved, k, True)
    indices = cast_to(raw.moveaxis(indices, -1, reduction_dimension), dtypes.int32)
    return TopK(raw.moveaxis(values, -1, reduction_dimension), indices)


def approx_min_k(
    operand: TensorLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> TopK:
    """The `k` smallest elements along an axis, and their indices. They are exact, which every `recall_target` allows."""
    values, indices = approx_max_k(-as_tensor(operand), k, reduction_dimension)
    return TopK(-values, indices)


def approx_top_k(
    input: TensorLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    is_max_k: bool = True,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
    name: str | None = None,
) -> TopK:
    """The `k` largest elements along an axis, or the smallest, and their indices: exact, as `approx_max_k`."""
    pick = approx_max_k if is_max_k else approx_min_k
    return TopK(*pick(input, k, reduction_dimension))
