"""Functions of element types."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import refuse

if TYPE_CHECKING:
    from .._typing import DTypeLike

KINDS = {
    "bool": (dtypes.bool,),
    "signed integer": (dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64),
    "unsigned integer": (dtypes.uint8, dtypes.uint16, dtypes.uint32, dtypes.uint64),
    "real floating": (dtypes.float32, dtypes.float64),
    "complex floating": (dtypes.complex64, dtypes.complex128),
}
KINDS["integral"] = KINDS["signed integer"] + KINDS["unsigned integer"]
KINDS["numeric"] = KINDS["integral"] + KINDS["real floating"] + KINDS["complex floating"]

# Types that the standard does not name.
_HALF = (dtypes.float16, dtypes.bfloat16)


def check_device(name: str, device: Any) -> None:
    """Raises ValueError for a device other than the CPU."""
    if device is not None and "cpu" not in str(device).lower():
        refuse(name, f"device must be 'cpu', the only one, got {device!r}", ValueError)


def astype(x: Any, dtype: Any, /, *, copy: bool = True, device: Any = None) -> _native.Tensor:
    """Casts to another type; without `copy`, returns the array if it has the type."""
    check_device("astype", device)
    if x.dtype == dtypes.as_dtype(dtype):
        return raw.identity(x) if copy else x
    return raw.cast(x, dtype)


@cache
def _promoted(a: _native.DType, b: _native.DType) -> _native.DType:
    return raw.where(raw.zeros([0], dtypes.bool), raw.zeros([0], a), raw.zeros([0], b)).dtype


def result_type(*arrays_and_dtypes: Any) -> _native.DType:
    """The type to which arrays, types and Python numbers (weakly typed) promote."""
    strong, weak = [], []
    for one in arrays_and_dtypes:
        if isinstance(one, (bool, int, float, complex)) and not isinstance(one, np.number):
            weak.append(one)
        else:
            strong.append(dtypes.as_dtype(one.dtype if hasattr(one, "dtype") else one))
    if not strong:
        refuse("result_type", "at least one array or type must be given", ValueError)
    found = strong[0]
    for dtype in strong[1:]:
        found = _promoted(found, dtype)
    for number in weak:
        found = raw.where(raw.zeros([0], dtypes.bool), raw.zeros([0], found), number).dtype
    return found


def can_cast(from_: Any, to: Any, /) -> bool:
    """Whether a type, or that of an array, promotes to another type."""
    try:
        return result_type(from_, to) == dtypes.as_dtype(to)
    except TypeError:  # uint64 and a signed integer have no common type
        return False


def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether a type is equal to another one, or of a kind such as "integral"; a tuple means any of them."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    dtype = dtypes.as_dtype(dtype)
    if not isinstance(kind, str):
        return dtype == dtypes.as_dtype(kind)
    if kind not in KINDS:
        refuse("isdtype", f"kind must be one of {', '.join(map(repr, KINDS))}, got {kind!r}", ValueError)
    return dtype in KINDS[kind] or (kind in ("real floating", "numeric") and dtype in _HALF)


class FloatInfo(NamedTuple):
    """Limits of a floating-point type."""

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: _native.DType


class IntegerInfo(NamedTuple):
    """Limits of an integer type."""

    bits: int
    max: int
    min: int
    dtype: _native.DType


def _type_of(given: Any) -> _native.DType:
    return dtypes.as_dtype(given.dtype if isinstance(given, _native.Array) else given)


def finfo(type: DTypeLike, /) -> FloatInfo:
    """Limits of a floating-point type, or of that of an array; of a complex type, those of its parts."""
    dtype = _type_of(type).real_dtype
    if not dtype.is_floating:
        refuse("finfo", f"expected a floating-point type, got {dtype.name}", TypeError)
    info = dtypes.info(dtype)
    eps, most, least, smallest = (float(one) for one in (info.eps, info.max, info.min, info.smallest_normal))
    return FloatInfo(info.bits, eps, most, least, smallest, dtype)


def iinfo(type: DTypeLike, /) -> IntegerInfo:
    """Limits of an integer type, or of that of an array."""
    dtype = _type_of(type)
    if not dtype.is_integer:
        refuse("iinfo", f"expected an integer type, got {dtype.name}", TypeError)
    info = dtypes.info(dtype)
    return IntegerInfo(info.bits, int(info.max), int(info.min), dtype)
