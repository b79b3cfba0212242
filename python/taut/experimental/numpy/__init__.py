"""The namespace `tf.experimental.numpy`: NumPy's functions on tensors, with NumPy's types."""

from __future__ import annotations

import math as _math
from typing import Any as _Any

import numpy as _np

from ... import _namespace
from ..._native import Tensor as _Tensor
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
    *("uint64", "uint8", "float_", "finfo", "iinfo", "issubdtype", "complex64", "complex128", "complex_", "object_"),
    *("string_", "unicode_"),
)

e, inf, newaxis, pi = _math.e, _math.inf, None, _math.pi
bool_, inexact, int_, float_ = _np.bool_, _np.inexact, _np.int64, _np.float64
float16, float32, float64 = _np.float16, _np.float32, _np.float64
int8, int16, int32, int64 = _np.int8, _np.int16, _np.int32, _np.int64
uint8, uint16, uint32, uint64 = _np.uint8, _np.uint16, _np.uint32, _np.uint64
complex64, complex128, complex_ = _np.complex64, _np.complex128, _np.complex128
object_, string_, unicode_ = _np.object_, _np.bytes_, _np.str_
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
    """Gives tensors the methods of arrays, such as `astype`, `reshape` and `mean`, also in traced functions.

    Indices and `T` are NumPy's without it. Promotion keeps the engine's rule, and options that change it are refused.
    """
    if prefer_float32 or dtype_conversion_mode != "legacy":
        raise ValueError(
            "experimental_enable_numpy_behavior: prefer_float32 and dtype_conversion_mode must have their defaults: "
            "the types of operators do not change"
        )
    for name, method in _METHODS.items():
        setattr(_Tensor, name, method)


def _reshape(self: _Any, *shape: _Any) -> _Any:
    return _arrays.reshape(self, shape[0] if len(shape) == 1 else shape)


def _transpose(self: _Any, *axes: _Any) -> _Any:
    order = axes[0] if len(axes) == 1 else axes or None
    return _arrays.transpose(self, order)


_METHODS: dict[str, _Any] = {
    "__pos__": lambda self: self,
    "astype": lambda self, dtype: _arrays.array(self, dtype),
    "clip": lambda self, a_min, a_max: _OWN["clip"](self, a_min, a_max),
    "data": property(lambda self: self),
    "flatten": lambda self: _arrays.ravel(self),
    "max": lambda self, axis=None, keepdims=None: _OWN["amax"](self, axis, keepdims=keepdims),
    "mean": lambda self, axis=None, dtype=None, keepdims=None: _OWN["mean"](self, axis, dtype, keepdims),
    "min": lambda self, axis=None, keepdims=None: _OWN["amin"](self, axis, keepdims=keepdims),
    "ravel": lambda self: _arrays.ravel(self),
    "reshape": _reshape,
    "transpose": _transpose,
}


__all__ = sorted({*_OWN, *_CONSTANTS, *_TYPES, "experimental_enable_numpy_behavior", "random"})  # noqa: PLE0605
__getattr__: _Any
__getattr__, __dir__ = _namespace.plain(__name__)
