"""Conversions between element types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._native import Tensor, as_tensor
from ..indexed_slices import IndexedSlices

if TYPE_CHECKING:
    from .._typing import DTypeLike, TensorLike


@overload
def cast(x: IndexedSlices, dtype: DTypeLike, name: str | None = None) -> IndexedSlices: ...
@overload
def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor: ...
def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Any:
    """Casts a tensor, or the values of an IndexedSlices, to another element type; returns a tensor of that type as it is."""
    if isinstance(x, _native.Array) and x.dtype == dtypes.as_dtype(dtype):
        return x
    if isinstance(x, IndexedSlices):
        return x.with_values(raw.cast(x.values, dtype))
    try:
        return raw.cast(x, dtype)
    except TypeError:
        if getattr(x, "dtype", None) == dtypes.string == dtypes.as_dtype(dtype):
            return x
        raise


def _range(dtype: Any) -> tuple[Any, Any]:
    """The smallest and the largest value of a type, as Python's numbers, which compare without rounding."""
    number = float if dtype.is_floating else int
    return number(dtype.min), number(dtype.max)


def _limit(bound: Any, dtype: Any) -> Any:
    """The bound in this type, rounded toward zero if it is not representable."""
    if not dtype.is_floating:
        return np.array(int(bound), dtype.as_numpy_dtype)
    with np.errstate(over="ignore"):
        limit = np.array(float(bound), dtype.as_numpy_dtype)
    if abs(float(limit)) > abs(float(bound)):
        limit = np.nextafter(limit, np.array(0, limit.dtype))
    return limit


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Casts to another element type, clamping values that are out of its range."""
    value, dtype = as_tensor(value), dtypes.as_dtype(dtype)
    if value.dtype == dtypes.bool or dtype.is_bool:
        return raw.cast(value, dtype)
    # Infinities are out of the range of every type.
    own, is_floating = _range(value.dtype), value.dtype.is_floating
    wanted = _range(dtype)
    if own[0] < wanted[0] or is_floating:
        value = raw.maximum(value, _limit(max(own[0], wanted[0]), value.dtype))
    if own[1] > wanted[1] or is_floating:
        value = raw.minimum(value, _limit(min(own[1], wanted[1]), value.dtype))
    return raw.cast(value, dtype)
