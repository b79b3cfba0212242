"""Functions that make arrays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from .. import _native, dtypes, nest
from .._common import _refuse, _several, _shape
from ._types import check_device

op = _native.Op
Array = _native.Tensor

tril = op("tril")
triu = op("triu")

_cast = op("cast")
_eye = op("eye")
_full = op("full")
_identity = op("identity")
_linspace = op("linspace")
_meshgrid = op("meshgrid")
_ones = op("ones")
_range = op("range")
_zeros = op("zeros")


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    """An object as an array: over its own memory where that is possible, unless a copy is asked for.

    With `copy=False`, what would have to be copied is refused.
    """
    check_device("asarray", device)
    if isinstance(obj, _native.Array):
        same = dtype is None or obj.dtype == dtypes.as_dtype(dtype)
        if not same and copy is False:
            _refuse("asarray", f"{obj.dtype.name} becomes another type only in a copy", ValueError)
        made = _native.as_tensor(obj)
        if not same:
            return _cast(made, dtype)
        return _identity(made) if copy else made
    if dtype is None and not hasattr(obj, "__array__") and not hasattr(obj, "__dlpack__"):
        leaves = nest.flatten(obj)
        if leaves and all(type(leaf) is int for leaf in leaves):
            dtype = dtypes.int64 if max(leaves) < 2**63 else dtypes.uint64
    make = _native.own_tensor if copy else _native.as_tensor
    try:
        made = make(obj, dtype)
    except TypeError:
        # Floats as integers and numbers as booleans: a cast, which is asked for here.
        made = _cast(make(obj), dtype)
    if copy is False:
        address = obj.__array_interface__["data"][0] if hasattr(obj, "__array_interface__") else None
        if address is None or (made.size and made.data_ptr() != address):
            _refuse("asarray", f"a {type(obj).__name__} becomes an array only in a copy", ValueError)
    return made


def zeros(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros."""
    check_device("zeros", device)
    return _zeros(_shape(shape), dtypes.float32 if dtype is None else dtype)


def ones(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Ones."""
    check_device("ones", device)
    return _ones(_shape(shape), dtypes.float32 if dtype is None else dtype)


def empty(shape: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros: no array shows what was in memory before."""
    return zeros(shape, dtype=dtype, device=device)


def _default(value: Any) -> Any:
    if isinstance(value, bool):
        return dtypes.bool
    return dtypes.int64 if isinstance(value, int) else dtypes.float32


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """One value everywhere."""
    check_device("full", device)
    return _full(_shape(shape), fill_value, _default(fill_value) if dtype is None else dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros in the shape of an array, and in its type unless another is given."""
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Ones in the shape of an array, and in its type unless another is given."""
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def empty_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Zeros in the shape of an array, and in its type unless another is given."""
    return zeros_like(x, dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """One value in the shape of an array, and in its type unless another is given."""
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def arange(
    start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None
) -> Array:
    """Numbers from `start` up to, and never, `stop`; with one number, from 0 up to it."""
    check_device("arange", device)
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        whole = all(isinstance(one, (int, np.integer)) for one in (start, stop, step))
        dtype = dtypes.int64 if whole else dtypes.float32
    if step != 0 and math.ceil((stop - start) / step) <= 0:
        return _zeros([0], dtype)
    return _range(start, stop, step, dtype)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Array:
    """`num` evenly spaced numbers from `start` to `stop`, which is among them if `endpoint`."""
    check_device("linspace", device)
    return _linspace(start, stop, num, endpoint, dtypes.float32 if dtype is None else dtype)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Any = None
) -> Array:
    """Ones on diagonal `k`, and zeros elsewhere."""
    check_device("eye", device)
    return _eye(n_rows, n_cols, [], dtypes.float32 if dtype is None else dtype, k)


def meshgrid(*arrays: Any, indexing: str = "xy") -> tuple[Array, ...]:
    """The coordinates of every point of a grid, an array per axis."""
    if not arrays:
        return ()
    return _several(_meshgrid(list(arrays), indexing))
