"""Functions of element types."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .. import _native, dtypes
from .._common import _refuse

_cast = _native.Op("cast")
_identity = _native.Op("identity")
_where = _native.Op("where")
_zeros = _native.Op("zeros")

KINDS = {
    "bool": (dtypes.bool,),
    "signed integer": (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    "unsigned integer": (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    "real floating": (dtypes.float32, dtypes.float64),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"]

# Beyond the standard's own.
_HALF = (dtypes.float16, dtypes.bfloat16)


def check_device(name: str, device: Any) -> None:
    """Refuses every device but the processor."""
    if device is not None and "cpu" not in str(device).lower():
        _refuse(name, f"there is no device {device!r}: 'cpu' is the only one", ValueError)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> _native.Tensor:
    """The elements in another type; the array itself if it has it already and no copy is asked for."""
    check_device("astype", device)
    if x.dtype == dtypes.as_dtype(dtype):
        return _identity(x) if copy else x
    return _cast(x, dtype)


@lru_cache(maxsize=None)
def _meeting(a: _native.DType, b: _native.DType) -> _native.DType:
    return _where(_zeros([0], dtypes.bool), _zeros([0], a), _zeros([0], b)).dtype


def result_type(*arrays_and_dtypes: Any) -> _native.DType:
    """The type that arrays, types and Python's numbers meet in. Numbers have no size of their own."""
    strong, weak = [], []
    for one in arrays_and_dtypes:
        if isinstance(one, (bool, int, float)) and not isinstance(one, np.number):
            weak.append(one)
        else:
            strong.append(dtypes.as_dtype(one.dtype if hasattr(one, "dtype") else one))
    if not strong:
        _refuse("result_type", "no array and no type is given", ValueError)
    found = strong[0]
    for dtype in strong[1:]:
        found = _meeting(found, dtype)
    for number in weak:
        found = _where(_zeros([0], dtypes.bool), _zeros([0], found), number).dtype
    return found


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether an array, or a type, becomes another type without losing anything by promotion."""
    return result_type(from_, to) == dtypes.as_dtype(to)


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a type is another one, of a kind such as "integral", or any of several of those."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    dtype = dtypes.as_dtype(dtype)
    if not isinstance(kind, str):
        return dtype == dtypes.as_dtype(kind)
    if kind == "complex floating":
        return False
    if kind not in KINDS:
        _refuse("isdtype", f"kind {kind!r} is unknown", ValueError)
    return dtype in KINDS[kind] or (kind in ("real floating", "numeric") and dtype in _HALF)


class FloatInfo(NamedTuple):
    """The limits of a floating-point type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: _native.DType


class IntegerInfo(NamedTuple):
    """The limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: _native.DType


def _type_of(given: Any) -> _native.DType:
    return dtypes.as_dtype(given.dtype if isinstance(given, _native.Array) else given)


def finfo(type: Any, /) -> FloatInfo:  # noqa: A002
    """The limits of a floating-point type, or of that of an array."""
    dtype = _type_of(type)
    if not dtype.is_floating:
        _refuse("finfo", f"{dtype.name} is no floating-point type", TypeError)
    info = dtypes.info(dtype)
    numbers = (float(one) for one in (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(info.bits, *numbers, dtype)


def iinfo(type: Any, /) -> IntegerInfo:  # noqa: A002
    """The limits of an integer type, or of that of an array."""
    dtype = _type_of(type)
    if not dtype.is_integer:
        _refuse("iinfo", f"{dtype.name} is no integer type", TypeError)
    info = dtypes.info(dtype)
    return IntegerInfo(info.bits, int(info.max), int(info.min), dtype)
