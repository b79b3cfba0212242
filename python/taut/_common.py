"""What the functions of all groups are written with."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from . import _native
from .errors import InvalidArgumentError

_cast = _native.Op("cast")


def _refuse(name: str, message: str, kind: type[Exception] = InvalidArgumentError) -> NoReturn:
    """Raises an error that names the function and the line that called it."""
    raise kind(f"{name}: {message}\n  at {_native.calling_line()}")


def _as(x: _native.Tensor, dtype: _native.DType) -> _native.Tensor:
    """The tensor in this type: itself, if it has it."""
    return x if x.dtype == dtype else _cast(x, dtype)


def _ends(x: _native.Tensor) -> tuple[Any, Any]:
    """The smallest and the largest element: read, rather than computed, so that a trace sees numbers."""
    array = np.asarray(x)
    return (array.min().item(), array.max().item()) if array.size else (0, -1)


def _several(made: Any) -> tuple[_native.Tensor, ...]:
    """The results of an op that has one or several."""
    return made if isinstance(made, tuple) else (made,)


def _shape(dims: Any) -> Any:
    """A shape as the op table takes it: one size stands for a vector's."""
    return _ints(dims) if isinstance(dims, (int, np.integer, _native.Array)) else dims


def _weak(value: Any, dtype: _native.DType) -> _native.Tensor:
    """A value as a tensor: numbers and lists, which have no type of their own, in this one if it holds such."""
    made = _native.as_tensor(value)
    if hasattr(value, "dtype") or made.dtype == dtype or made.dtype.is_bool:
        return made
    holds = dtype.is_floating or (dtype.is_integer and made.dtype.is_integer)
    return _native.as_tensor(value, dtype) if holds else made


def _alike(values: Any) -> list[_native.Tensor]:
    """Values that go together, as tensors: numbers and lists take the type of the tensors among them."""
    if all(isinstance(value, _native.Tensor) for value in values):
        return list(values)
    typed = next((value.dtype for value in values if hasattr(value, "dtype")), None)
    if typed is None:
        made = [_native.as_tensor(value) for value in values]
        typed = next((one.dtype for one in made if one.dtype.is_floating), None)
        return made if typed is None else [_weak(value, typed) for value in values]
    typed = _native.DType(typed)
    return [_weak(value, typed) for value in values]


def _ints(values: Any) -> list[int]:
    """Integers from one, a list, a shape, an array or a tensor with a value."""
    values = values.tolist() if isinstance(values, (_native.Array, np.ndarray)) else values
    return [int(values)] if isinstance(values, (int, np.integer)) else [int(value) for value in values]
