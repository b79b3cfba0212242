"""Functions over axes."""

from __future__ import annotations

from typing import Any

from .. import _native, dtypes
from .._common import _refuse

op = _native.Op
Array = _native.Tensor

_all = op("all")
_any = op("any")
_cast = op("cast")
_concat = op("concat")
_count = op("count_nonzero")
_cumprod = op("cumprod")
_cumsum = op("cumsum")
_full = op("full")
_max = op("max")
_mean = op("mean")
_min = op("min")
_prod = op("prod")
_std = op("std")
_sum = op("sum")
_var = op("var")


def all(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:  # noqa: A001
    """Whether all elements are true."""
    return _all(x, axis, keepdims)


def any(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:  # noqa: A001
    """Whether any element is true."""
    return _any(x, axis, keepdims)


def count_nonzero(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """How many elements are not zero."""
    return _count(x, axis, keepdims)


def max(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:  # noqa: A001
    """The largest element."""
    return _max(x, axis, keepdims)


def min(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:  # noqa: A001
    """The smallest element."""
    return _min(x, axis, keepdims)


def mean(x: Any, /, *, axis: Any = None, keepdims: bool = False) -> Array:
    """The mean."""
    return _mean(x, axis, keepdims)


def var(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The variance; `correction` is subtracted from the count."""
    return _var(x, axis, correction, keepdims)


def std(x: Any, /, *, axis: Any = None, correction: float = 0.0, keepdims: bool = False) -> Array:
    """The standard deviation; `correction` is subtracted from the count."""
    return _std(x, axis, correction, keepdims)


def sum(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:  # noqa: A001
    """The sum, of 64 bits for integers, or in a given type."""
    if dtype is None:
        return _sum(x, axis, keepdims)
    return _cast(_sum(_cast(x, dtype), axis, keepdims), dtype)


def prod(x: Any, /, *, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Array:
    """The product, of 64 bits for integers, or in a given type."""
    if dtype is None:
        return _prod(x, axis, keepdims)
    return _cast(_prod(_cast(x, dtype), axis, keepdims), dtype)


def _running(
    name: str, which: Any, first: int, x: Any, axis: int | None, dtype: Any, include_initial: bool
) -> Array:
    if axis is None:
        if x.ndim != 1:
            _refuse(name, f"an axis is needed for an array of shape {x.shape}", ValueError)
        axis = 0
    made = which(x if dtype is None else _cast(x, dtype), axis)
    made = made if dtype is None else _cast(made, dtype)
    if not include_initial:
        return made
    shape = list(x.shape)
    shape[axis] = 1
    return _concat([_full(shape, first, made.dtype), made], axis)


def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """The running sum along an axis; after a zero, with `include_initial`."""
    return _running("cumulative_sum", _cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Array:
    """The running product along an axis; after a one, with `include_initial`."""
    return _running("cumulative_prod", _cumprod, 1, x, axis, dtype, include_initial)


def diff(x: Any, /, *, axis: int = -1, n: int = 1, prepend: Any = None, append: Any = None) -> Array:
    """The differences of neighbours along an axis, `n` times."""
    parts = [one for one in (prepend, x, append) if one is not None]
    x = _concat(parts, axis) if len(parts) > 1 else x
    if not -x.ndim <= axis < x.ndim:
        _refuse("diff", f"axis {axis} is out of range for rank {x.ndim}")
    for _ in range(n):
        key = [slice(None)] * x.ndim
        key[axis] = slice(1, None)
        later = x[tuple(key)]
        key[axis] = slice(None, -1)
        earlier = x[tuple(key)]
        x = later != earlier if x.dtype == dtypes.bool else later - earlier
    return x
