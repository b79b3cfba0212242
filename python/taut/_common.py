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
    return [dims] if isinstance(dims, int) else dims


def _ints(values: Any) -> list[int]:
    """Integers from one, a list, a shape, an array or a tensor with a value."""
    values = values.tolist() if isinstance(values, (_native.Array, np.ndarray)) else values
    return [int(values)] if isinstance(values, (int, np.integer)) else [int(value) for value in values]
