"""The namespace `tf.experimental.numpy`: NumPy's functions on tensors, with NumPy's types."""

from __future__ import annotations

import math as _math
from typing import Any as _Any

import numpy as _np

from ... import _namespace
from . import _arrays, _elementwise, random as random

_MODULES = (_arrays, _elementwise)
_CONSTANTS = ("e", "inf", "newaxis", "pi")
_TYPES = (
    *(
        "bool_",
        "float16",
        "float32",
        "float64",
        "inexact",
        "int16",
        "int32",
        "int64",
        "int8",
        "int_",
        "uint16",
        "uint32",
    ),
    *("uint64", "uint8", "float_", "finfo", "iinfo", "issubdtype"),
)

e, inf, newaxis, pi = _math.e, _math.inf, None, _math.pi
bool_, inexact, int_, float_ = _np.bool_, _np.inexact, _np.int64, _np.float64
float16, float32, float64 = _np.float16, _np.float32, _np.float64
int8, int16, int32, int64 = _np.int8, _np.int16, _np.int32, _np.int64
uint8, uint16, uint32, uint64 = _np.uint8, _np.uint16, _np.uint32, _np.uint64
finfo, iinfo, issubdtype = _np.finfo, _np.iinfo, _np.issubdtype

_OWN = {
    name: value
    for module in _MODULES
    for name, value in vars(module).items()
    if not name.startswith("_")
    and (getattr(value, "__module__", "").startswith(__name__) or name == "ndarray")
    and name not in ("tensor", "cast", "floats", "numpy_type", "promoted", "reduction", "unary", "binary")
}
globals().update(_OWN)


def experimental_enable_numpy_behavior(prefer_float32: bool = False, dtype_conversion_mode: str = "legacy") -> None:
    """Gives tensors NumPy's methods and promotion. They have the methods; promotion keeps the engine's rule, and options that
    change it are refused."""
    if prefer_float32 or dtype_conversion_mode != "legacy":
        raise ValueError(
            "experimental_enable_numpy_behavior: prefer_float32 and dtype_conversion_mode must have their defaults: "
            "the types of operators do not change"
        )


__all__ = sorted({*_OWN, *_CONSTANTS, *_TYPES, "experimental_enable_numpy_behavior", "random"})  # noqa: PLE0605
__getattr__: _Any
__getattr__, __dir__ = _namespace.plain(__name__)
