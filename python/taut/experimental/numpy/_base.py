"""Conversion and promotion as in NumPy: Python's floats are float64 and its integers int64, and types are promoted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ... import _native, _raw_ops as raw
from ..._native import Tensor


def tensor(value: Any, dtype: Any = None) -> Tensor:
    """A value as a tensor, with NumPy's types for Python's numbers."""
    if isinstance(value, _native.Array):
        made = raw.identity(value) if not isinstance(value, Tensor) else value
    elif isinstance(value, (list, tuple)) and any(isinstance(leaf, _native.Array) for leaf in value):
        made = raw.stack(promoted(*value), 0)
    else:
        made = _native.own_tensor(np.asarray(value))
    return made if dtype is None else cast(made, dtype)


def cast(value: Tensor, dtype: Any) -> Tensor:
    """The tensor in another type."""
    known = isinstance(dtype, (type, np.dtype, str)) and dtype != "bfloat16"
    name = np.dtype(dtype).name if known else dtype
    return raw.cast(value, name)


def numpy_type(value: Tensor) -> np.dtype:
    """The type of the elements."""
    return np.dtype(value.dtype.as_numpy_dtype)


def promoted(*values: Any) -> list[Tensor]:
    """Values as tensors of one type. Python's numbers take the type of the tensors beside them if it can hold them."""
    weak = [value for value in values if type(value) in (bool, int, float)]
    strong = [tensor(value) for value in values if type(value) not in (bool, int, float)]
    if not strong:
        return [tensor(value) for value in values]
    kinds = {value.dtype.name for value in strong}
    if len(kinds) == 1 and not weak:
        return strong
    if "bfloat16" in kinds:
        # NumPy does not know the type: beside another float it is float32, as tensors are promoted.
        common: Any = "bfloat16" if not any(one.startswith("float") for one in kinds) else "float32"
        common = "float64" if "float64" in kinds else common
        return [cast(tensor(value), common) for value in values]
    common = np.result_type(*[numpy_type(value) for value in strong], *weak)
    return [cast(tensor(value), common) for value in values]


def floats(value: Any) -> Tensor:
    """A tensor of floats: integers and booleans become float64."""
    found = tensor(value)
    return found if found.dtype.is_floating or found.dtype.is_complex else cast(found, np.float64)


def unary(name: str, op: Callable, doc: str, only_floats: bool = True) -> Callable:
    """A function of one tensor."""

    def function(x: Any) -> Tensor:
        return op(floats(x) if only_floats else tensor(x))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def binary(name: str, op: Callable, doc: str, only_floats: bool = False) -> Callable:
    """A function of two tensors, in their common type."""

    def function(x1: Any, x2: Any) -> Tensor:
        one, other = promoted(x1, x2)
        if only_floats and not one.dtype.is_floating:
            one, other = floats(one), floats(other)
        return op(one, other)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


def reduction(name: str, op: Callable, doc: str) -> Callable:
    """A function that reduces axes."""

    def function(a: Any, axis: Any = None, dtype: Any = None, keepdims: bool | None = None) -> Tensor:
        value = tensor(a, dtype)
        axes = None if axis is None else [axis] if isinstance(axis, (int, np.integer)) else list(axis)
        return op(value, axes, bool(keepdims))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function
