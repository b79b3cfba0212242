"""Reductions over segments of rows, which may come in any order. Rows with a negative id are dropped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _raw_ops as raw, dtypes
from .._common import value_range
from .._native import Tensor, as_tensor

if TYPE_CHECKING:
    from .._typing import TensorLike

_SEGMENT_OPS = {name: getattr(raw, f"unsorted_segment_{name}") for name in ("max", "mean", "min", "prod", "sum")}


def _unsorted_segment(which: str, data: TensorLike, segment_ids: TensorLike, num_segments: Any) -> Tensor:
    ids, count = as_tensor(segment_ids), int(num_segments)
    work = _SEGMENT_OPS[which]
    if not ids.is_symbolic and value_range(ids)[0] >= 0:
        return work(data, ids, count)
    # Rows with a negative id go into an additional segment, which is dropped.
    ids = raw.where(ids < 0, raw.cast(count, ids.dtype), ids)
    return work(data, ids, count + 1)[:count]


def unsorted_segment_max(
    data: TensorLike, segment_ids: TensorLike, num_segments: Any, name: str | None = None
) -> Tensor:
    """Computes the maximum of the rows with equal ids; the type's lowest value for empty segments."""
    return _unsorted_segment("max", data, segment_ids, num_segments)


def unsorted_segment_mean(
    data: TensorLike, segment_ids: TensorLike, num_segments: Any, name: str | None = None
) -> Tensor:
    """Computes the mean of the rows with equal ids; 0 for empty segments. The mean of integers is float32."""
    data = as_tensor(data)
    data = raw.cast(data, dtypes.float32) if data.dtype.is_integer else data
    return _unsorted_segment("mean", data, segment_ids, num_segments)


def unsorted_segment_min(
    data: TensorLike, segment_ids: TensorLike, num_segments: Any, name: str | None = None
) -> Tensor:
    """Computes the minimum of the rows with equal ids; the type's highest value for empty segments."""
    return _unsorted_segment("min", data, segment_ids, num_segments)


def unsorted_segment_prod(
    data: TensorLike, segment_ids: TensorLike, num_segments: Any, name: str | None = None
) -> Tensor:
    """Computes the product of the rows with equal ids; 1 for empty segments."""
    return _unsorted_segment("prod", data, segment_ids, num_segments)


def unsorted_segment_sum(
    data: TensorLike, segment_ids: TensorLike, num_segments: Any, name: str | None = None
) -> Tensor:
    """Computes the sum of the rows with equal ids; 0 for empty segments."""
    return _unsorted_segment("sum", data, segment_ids, num_segments)


def unsorted_segment_sqrt_n(
    data: TensorLike, segment_ids: TensorLike, num_segments: Any, name: str | None = None
) -> Tensor:
    """Computes the sum of the rows with equal ids over the square root of their count; 0 for empty segments."""
    data, ids = as_tensor(data), as_tensor(segment_ids)
    total = _unsorted_segment("sum", data, ids, num_segments)
    count = _unsorted_segment("sum", raw.full(ids.shape, 1, data.dtype), ids, num_segments)
    count = raw.reshape(raw.maximum(count, 1), [*count.shape, *[1] * (total.ndim - count.ndim)])
    return total / raw.sqrt(count)
