"""Element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._native import DType, dtype_named

bool = dtype_named("bool")  # noqa: A001
uint8 = dtype_named("uint8")
uint16 = dtype_named("uint16")
uint32 = dtype_named("uint32")
uint64 = dtype_named("uint64")
int8 = dtype_named("int8")
int16 = dtype_named("int16")
int32 = dtype_named("int32")
int64 = dtype_named("int64")
float16 = half = dtype_named("float16")
bfloat16 = dtype_named("bfloat16")
float32 = dtype_named("float32")
float64 = double = dtype_named("float64")

ALL = (bool, uint8, uint16, uint32, uint64, int8, int16, int32, int64, float16, bfloat16, float32, float64)

# One object per type, so that `is` holds, too.
_OURS = {dtype: dtype for dtype in ALL}


def as_dtype(type_value: Any) -> DType:
    """The element type that a value names: one of ours, a word, a Python type, or what NumPy takes for one."""
    return _OURS[type_value if isinstance(type_value, DType) else DType(type_value)]


def info(dtype: DType) -> Any:
    """NumPy's description of a type of numbers: its limits, and its precision."""
    if dtype == bfloat16:
        import ml_dtypes

        return ml_dtypes.finfo(ml_dtypes.bfloat16)
    scalar = dtype.as_numpy_dtype
    return np.finfo(scalar) if dtype.is_floating else np.iinfo(scalar)


def _limit(dtype: DType, which: str) -> Any:
    if dtype.is_bool:
        return which == "max"
    limit = getattr(info(dtype), which)
    return float(limit) if dtype == bfloat16 else limit


DType.min = property(lambda self: _limit(self, "min"), doc="The smallest finite value.")
DType.max = property(lambda self: _limit(self, "max"), doc="The largest finite value.")
DType.limits = property(lambda self: (self.min, self.max), doc="The smallest and the largest finite value.")
DType.base_dtype = property(lambda self: self, doc="The type itself.")
DType.real_dtype = property(lambda self: self, doc="The type itself: there are no complex numbers.")
DType.is_complex = property(lambda self: False, doc="There are no complex numbers.")
DType.is_quantized = property(lambda self: False, doc="There are no quantized types.")
DType.is_numeric = property(lambda self: not self.is_bool, doc="Whether its values are numbers.")


def _is_compatible_with(self: DType, other: Any) -> Any:
    """Whether values of the other type can stand here: those of the same type."""
    return self == as_dtype(other)


DType.is_compatible_with = _is_compatible_with


def __getattr__(name: str) -> Any:
    # What is made of ops comes when it is asked for: ops are made of types.
    if name in ("cast", "saturate_cast"):
        from . import ops

        return getattr(ops, name)
    raise AttributeError(f"module 'taut.dtypes' has no attribute {name!r}")
