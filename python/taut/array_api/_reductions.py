"""Reductions, cumulative functions and differences."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from .. import _native, _raw_ops as raw, dtypes
from .._common import refuse

if TYPE_CHECKING:
    from .._typing import AxisLike, DTypeLike, TensorLike

Array = _native.Tensor


def all(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> Array:
    """Tests whether all elements along axes are true."""
    return raw.all(x, axis, keepdims)


def any(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> Array:
    """Tests whether any element along axes is true."""
    return raw.any(x, axis, keepdims)


def count_nonzero(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> Array:
    """Counts the nonzero elements along axes."""
    return raw.count_nonzero(x, axis, keepdims)


def max(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> Array:
    """Computes the maximum along axes."""
    return raw.max(x, axis, keepdims)


def min(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> Array:
    """Computes the minimum along axes."""
    return raw.min(x, axis, keepdims)


def mean(x: TensorLike, /, *, axis: AxisLike = None, keepdims: bool = False) -> Array:
    """Computes the mean along axes."""
    return raw.mean(x, axis, keepdims)


def var(x: TensorLike, /, *, axis: AxisLike = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Computes the variance along axes; `correction` is subtracted from the count."""
    return raw.var(x, axis, correction, keepdims)


def std(x: TensorLike, /, *, axis: AxisLike = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """Computes the standard deviation along axes; `correction` is subtracted from the count."""
    return raw.std(x, axis, correction, keepdims)


def sum(x: TensorLike, /, *, axis: AxisLike = None, dtype: DTypeLike = None, keepdims: bool = False) -> Array:
    """Computes the sum along axes, 64-bit for integers, or in a given type."""
    if dtype is None:
        return raw.sum(x, axis, keepdims)
    return raw.cast(raw.sum(raw.cast(x, dtype), axis, keepdims), dtype)


def prod(x: TensorLike, /, *, axis: AxisLike = None, dtype: DTypeLike = None, keepdims: bool = False) -> Array:
    """Computes the product along axes, 64-bit for integers, or in a given type."""
    if dtype is None:
        return raw.prod(x, axis, keepdims)
    return raw.cast(raw.prod(raw.cast(x, dtype), axis, keepdims), dtype)


def _running(name: str, which: Any, first: int, x: Any, axis: int | None, dtype: Any, include_initial: bool) -> Array:
    if axis is None:
        if x.ndim != 1:
            refuse(name, f"axis must be given for rank {x.ndim}, got None", ValueError)
        axis = 0
    made = which(x if dtype is None else raw.cast(x, dtype), axis)
    made = made if dtype is None else raw.cast(made, dtype)
    if not include_initial:
        return made
    shape = list(x.shape)
    shape[axis] = 1
    return raw.concat([raw.full(shape, first, made.dtype), made], axis)


def cumulative_sum(
    x: TensorLike, /, *, axis: int | None = None, dtype: DTypeLike = None, include_initial: bool = False
) -> Array:
    """Computes the cumulative sum along an axis; with `include_initial` it starts with 0."""
    return _running("cumulative_sum", raw.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: TensorLike, /, *, axis: int | None = None, dtype: DTypeLike = None, include_initial: bool = False
) -> Array:
    """Computes the cumulative product along an axis; with `include_initial` it starts with 1."""
    return _running("cumulative_prod", raw.cumprod, 1, x, axis, dtype, include_initial)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Array:
    """Computes the n-th differences along an axis."""
    parts = [one for one in (prepend, x, append) if one is not None]
    x = raw.concat(parts, axis) if len(parts) > 1 else x
    if not -x.ndim <= axis < x.ndim:
        refuse("diff", f"axis must be in [{-x.ndim}, {x.ndim}), got {axis}")
    if n < 0:
        refuse("diff", f"n must be >= 0, got {n}")
    for _ in range(builtins.min(n, x.shape[axis])):
        key = [slice(None)] * x.ndim
        key[axis] = slice(1, None)
        later = x[tuple(key)]
        key[axis] = slice(None, -1)
        earlier = x[tuple(key)]
        x = later != earlier if x.dtype == dtypes.bool else later - earlier
    return x
