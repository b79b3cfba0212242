"""Functions that create arrays."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes, nest
from .._common import as_shape, as_tuple, refuse
from ._types import check_device

if TYPE_CHECKING:
    from .._typing import DTypeLike, ShapeLike, TensorLike

Array = _native.Tensor


def asarray(obj: Any, /, *, dtype: DTypeLike = None, device: Any = None, copy: bool | None = None) -> Array:
    """Converts an object to an array, without a copy where possible unless `copy` is true.

    With `copy=False`, a conversion that needs a copy is an error.
    """
    check_device("asarray", device)
    if isinstance(obj, _native.Array):
        same = dtype is None or obj.dtype == dtypes.as_dtype(dtype)
        if not same and copy is False:
            refuse("asarray", f"copy=False does not allow the conversion from {obj.dtype.name}", ValueError)
        made = _native.as_tensor(obj)
        if not same:
            return raw.cast(made, dtype)
        return raw.identity(made) if copy else made
    if dtype is None and not hasattr(obj, "__array__") and not hasattr(obj, "__dlpack__"):
        leaves = nest.flatten(obj)
        if leaves and all(type(leaf) is int for leaf in leaves):
            dtype = dtypes.int64 if max(leaves) < 2**63 else dtypes.uint64
        elif (
            leaves
            and all(type(leaf) in (bool, int, float, complex) for leaf in leaves)
            and complex in map(type, leaves)
        ):
            dtype = dtypes.complex64
    make = _native.own_tensor if copy else _native.as_tensor
    try:
        made = make(obj, dtype)
    except TypeError:
        # Floats to integers and numbers to booleans need an explicit cast.
        made = make(obj)
        if made.dtype.is_complex and not dtypes.as_dtype(dtype).is_complex:
            refuse(
                "asarray",
                f"{made.dtype.name} cannot be converted to {dtypes.as_dtype(dtype).name}: use real or imag",
                TypeError,
            )
        made = raw.cast(made, dtype)
    if copy is False:
        address = obj.__array_interface__["data"][0] if hasattr(obj, "__array_interface__") else None
        if address is None or (made.size and made.data_ptr() != address):
            refuse(
                "asarray",
                f"copy=False does not allow the conversion of a {type(obj).__name__}, which needs a copy",
                ValueError,
            )
    return made


def zeros(shape: ShapeLike, *, dtype: DTypeLike = None, device: Any = None) -> Array:
    """Creates an array of zeros."""
    check_device("zeros", device)
    return raw.zeros(as_shape(shape), dtypes.float32 if dtype is None else dtype)


def ones(shape: ShapeLike, *, dtype: DTypeLike = None, device: Any = None) -> Array:
    """Creates an array of ones."""
    check_device("ones", device)
    return raw.ones(as_shape(shape), dtypes.float32 if dtype is None else dtype)


def empty(shape: ShapeLike, *, dtype: DTypeLike = None, device: Any = None) -> Array:
    """Creates an array of zeros: memory is never exposed uninitialized."""
    return zeros(shape, dtype=dtype, device=device)


def _default(value: TensorLike) -> Any:
    if isinstance(value, bool):
        return dtypes.bool
    if isinstance(value, int):
        return dtypes.int64
    return dtypes.complex64 if isinstance(value, complex) else dtypes.float32


def full(shape: Any, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates an array filled with one value."""
    check_device("full", device)
    return raw.full(as_shape(shape), fill_value, _default(fill_value) if dtype is None else dtype)


def zeros_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates an array of zeros with the shape, and by default the type, of another array."""
    return zeros(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def ones_like(x: Any, /, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates an array of ones with the shape, and by default the type, of another array."""
    return ones(x.shape, dtype=x.dtype if dtype is None else dtype, device=device)


def empty_like(x: TensorLike, /, *, dtype: DTypeLike = None, device: Any = None) -> Array:
    """Creates an array of zeros with the shape, and by default the type, of another array."""
    return zeros_like(x, dtype=dtype, device=device)


def full_like(x: Any, /, fill_value: Any, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates an array filled with one value, with the shape, and by default the type, of another array."""
    return full(x.shape, fill_value, dtype=x.dtype if dtype is None else dtype, device=device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, *, dtype: Any = None, device: Any = None) -> Array:
    """Creates numbers in [start, stop) with a step; with one argument, in [0, start)."""
    check_device("arange", device)
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        whole = all(isinstance(one, (int, np.integer)) for one in (start, stop, step))
        dtype = dtypes.int64 if whole else dtypes.float32
    if step != 0 and math.ceil((stop - start) / step) <= 0:
        return raw.zeros([0], dtype)
    return raw.range(start, stop, step, dtype)


def linspace(
    start: Any, stop: Any, /, num: int, *, dtype: Any = None, device: Any = None, endpoint: bool = True
) -> Array:
    """Creates `num` evenly spaced values from `start` to `stop`, which is included if `endpoint`."""
    check_device("linspace", device)
    ends: Any = [
        end if isinstance(end, (int, float, complex)) else _native.as_tensor(end).numpy().item()
        for end in (start, stop)
    ]
    is_complex = any(isinstance(end, complex) for end in ends)
    made = dtypes.as_dtype(dtype) if dtype is not None else dtypes.complex64 if is_complex else dtypes.float32
    if not made.is_complex:
        if is_complex:
            refuse("linspace", f"dtype must be complex for complex ends, got {made.name}", TypeError)
        first, last = ends
        return raw.linspace(first, last, num, endpoint, made)
    part = dtypes.float32 if made == dtypes.complex64 else dtypes.float64
    first, last = (complex(end) for end in ends)
    return raw.complex(
        raw.linspace(first.real, last.real, num, endpoint, part),
        raw.linspace(first.imag, last.imag, num, endpoint, part),
    )


def eye(n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: DTypeLike = None, device: Any = None) -> Array:
    """Creates a matrix with ones on diagonal `k` and zeros elsewhere."""
    check_device("eye", device)
    # A diagonal outside of the matrix may have any number, also one beyond 64 bits.
    k = max(-n_rows, min(k, n_rows if n_cols is None else n_cols))
    return raw.eye(n_rows, n_cols, [], dtypes.float32 if dtype is None else dtype, k)


def meshgrid(*arrays: Any, indexing: str = "xy") -> list[Array]:
    """Creates coordinate arrays of an n-dimensional grid, one per axis."""
    return list(as_tuple(raw.meshgrid(list(arrays), indexing))) if arrays else []


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Array:
    """An array with the memory of an object of another library, or with a copy of it if `copy` is true."""
    made = _native.from_dlpack(x)
    if device is not None:
        made.to_device(device)
    return _native.own_tensor(np.array(made)) if copy else made
