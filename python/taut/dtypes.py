"""Element types."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from ._native import DType, dtype_named

bool: DType = dtype_named("bool")
uint8 = dtype_named("uint8")
uint16 = dtype_named("uint16")
uint32 = dtype_named("uint32")
uint64 = dtype_named("uint64")
int8 = dtype_named("int8")
int16 = dtype_named("int16")
int32 = dtype_named("int32")
int64: DType = dtype_named("int64")
float16 = half = dtype_named("float16")
bfloat16 = dtype_named("bfloat16")
float32: DType = dtype_named("float32")
float64 = double = dtype_named("float64")
complex64 = dtype_named("complex64")
complex128 = dtype_named("complex128")
string = dtype_named("string")

REAL = (bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64)
ALL = (*REAL, complex64, complex128)

# One object per type, so that types can be compared with `is`.
_OURS = {dtype: dtype for dtype in (*ALL, string)}
_NUMBERED = {dtype.as_datatype_enum: dtype for dtype in _OURS}


def as_dtype(type_value: Any) -> DType:
    """Converts to an element type: from a DType, its name, its number in TensorFlow's files, a Python type or a NumPy type."""
    if type(type_value) is builtins.int:
        if type_value not in _NUMBERED:
            raise TypeError(f"expected the number of an element type, one of {sorted(_NUMBERED)}, got {type_value}")
        return _NUMBERED[type_value]
    return _OURS[type_value if isinstance(type_value, DType) else DType(type_value)]


# A copy, and what was pickled, is the same object: programs compare types with `is`.
setattr(DType, "__reduce__", lambda self: (as_dtype, (self.name,)))


def info(dtype: DType) -> Any:
    """NumPy's limits of a numeric type (`finfo` or `iinfo`)."""
    if dtype == bfloat16:
        import ml_dtypes

        return ml_dtypes.finfo(ml_dtypes.bfloat16)
    scalar: Any = dtype.as_numpy_dtype
    return np.finfo(scalar) if dtype.is_floating or dtype.is_complex else np.iinfo(scalar)


def _limit(dtype: DType, which: str) -> Any:
    if dtype.is_bool:
        return which == "max"
    if dtype == string or dtype.is_complex:
        raise TypeError(f"tf.{dtype.name} has no smallest and no largest value")
    limit = getattr(info(dtype), which)
    return float(limit) if dtype == bfloat16 else limit


def _is_compatible_with(self: DType, other: Any) -> builtins.bool:
    """Whether it is the same type."""
    return self == as_dtype(other)


_MEMBERS: dict[str, Any] = {
    "min": property(lambda self: _limit(self, "min"), doc="The smallest finite value."),
    "max": property(lambda self: _limit(self, "max"), doc="The largest finite value."),
    "limits": property(lambda self: (self.min, self.max), doc="The smallest and the largest finite value as a pair."),
    "base_dtype": property(lambda self: self, doc="The type itself."),
    "is_quantized": property(lambda self: False, doc="Whether it is quantized: never."),
    "is_numeric": property(
        lambda self: self.is_floating or self.is_integer or self.is_complex,
        doc="Whether its values are numbers: not those of bool and string.",
    ),
    "is_compatible_with": _is_compatible_with,
}
for _name, _member in _MEMBERS.items():
    setattr(DType, _name, _member)


def __getattr__(name: str) -> Any:
    # Ops import this module, so functions made of ops are resolved on use.
    if name in ("cast", "saturate_cast"):
        from ._ops import casting

        return getattr(casting, name)
    if name == "complex":
        from ._ops.elementwise import complex as of_parts

        return of_parts
    from ._missing import explain

    raise AttributeError(explain(__name__, name), name=name)
