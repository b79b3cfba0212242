"""Conversions between element types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._native import Tensor, as_tensor
from ..indexed_slices import IndexedSlices

if TYPE_CHECKING:
    from .._typing import DTypeLike, TensorLike

if TYPE_CHECKING:
    from .._typing import TensorLike


@overload
def cast(x: IndexedSlices, dtype: DTypeLike, name: str | None = None) -> IndexedSlices: ...
@overload
def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor: ...
def cast(x: TensorLike, dtype: DTypeLike, name: str | None = None) -> Any:
    """Casts a tensor, or the values of an IndexedSlices, to another element type."""
    if isinstance(x, IndexedSlices):
        return IndexedSlices(raw.cast(x.values, dtype), x.indices, x.dense_shape)
    try:
        return raw.cast(x, dtype)
    except TypeError:
        if getattr(x, "dtype", None) == dtypes.string == dtypes.as_dtype(dtype):
            return x
        raise


def saturate_cast(value: TensorLike, dtype: DTypeLike, name: str | None = None) -> Tensor:
    """Casts to another element type, clamping values that are out of its range."""
    value, dtype = as_tensor(value), dtypes.as_dtype(dtype)
    if value.dtype != dtype and not dtype.is_bool and value.dtype != dtypes.bool:
        low, high = value.dtype.min, value.dtype.max
        if low < dtype.min:
            value = raw.maximum(value, raw.cast(dtype.min, value.dtype))
        if high > dtype.max:
            # The limit may not be representable in the source type: then it is rounded toward zero.
            limit = np.array(dtype.max, value.dtype.as_numpy_dtype)
            if float(limit) > float(dtype.max):
                limit = np.nextafter(limit, np.array(0, limit.dtype))
            value = raw.minimum(value, limit)
    return raw.cast(value, dtype)
