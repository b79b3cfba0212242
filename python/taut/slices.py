"""Assignment to parts of variables: `variable[1:3].assign(value)`."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native, _raw_ops as raw
from ._common import refuse

# By the id of a tensor that was read from a variable with an index: a weak reference to it, the variable, and the index.
_read: dict[int, tuple[weakref.ref, Any, Any]] = {}


def remember(tensor: _native.Tensor, variable: Any, key: Any) -> None:
    """Notes which part of a variable a tensor is, for the tensor's lifetime."""
    number = id(tensor)
    _read[number] = (weakref.ref(tensor, lambda _: _read.pop(number, None)), variable, key)


def _assign(self: _native.Tensor) -> Callable:
    """The method `assign` of a tensor that was read from a variable with an index; other tensors have none."""
    found = _read.get(id(self))
    if found is None or found[0]() is not self:
        raise AttributeError(
            "tensors are immutable: assign to a variable, or to a part of one, `variable[1:3].assign(value)`"
        )
    _, variable, key = found

    shape = self.shape

    def assign(value: Any, name: str | None = None, read_value: bool = True) -> Any:
        # One with open dimensions may have got another size since.
        own = variable.__taut_variable__() if hasattr(variable, "__taut_variable__") else variable
        _write(own, key, shape, value)
        return variable if read_value else None

    return assign


setattr(_native.Tensor, "assign", property(_assign))


def _write(variable: Any, key: Any, shape: Any, value: Any) -> None:
    value = _native.as_tensor(value, None if hasattr(value, "dtype") else variable.dtype)
    value = raw.broadcast_to(value, shape)
    places = _places(variable, key)
    if not places:
        variable.assign(raw.reshape(value, variable.shape))
        return
    counts = [len(place) for place in places]
    rows = raw.reshape(value, [int(np.prod(counts)), *variable.shape[len(places) :]])
    variable.scatter_nd_update(_coordinates(places, counts), rows)


def _places(variable: Any, key: Any) -> list:
    """The indices along each axis; trailing axes that are taken whole are left out."""
    parts = [part for part in (key if isinstance(key, (tuple, list)) else (key,)) if part is not None]
    if any(part is Ellipsis for part in parts):
        at = next(k for k, part in enumerate(parts) if part is Ellipsis)
        missing = len(variable.shape) - len(parts) + 1
        parts[at : at + 1] = [slice(None)] * missing
    while parts and isinstance(parts[-1], slice) and parts[-1] == slice(None):
        parts.pop()
    return [_along(part, size) for part, size in zip(parts, variable.shape)]


def _along(part: Any, size: int) -> Any:
    if isinstance(part, slice):
        return np.arange(size)[
            slice(*(None if end is None else int(end) for end in (part.start, part.stop, part.step)))
        ]
    if isinstance(part, _native.Array) and part.is_symbolic and part.ndim == 0:
        return raw.reshape(raw.cast(part, "int64"), [1])
    if np.ndim(part) or isinstance(part, (bool, np.bool_)):
        refuse(
            "assign",
            f"indices must be integers or slices, got {type(part).__name__}; use scatter_nd_update instead",
            TypeError,
        )
    return np.arange(size)[[int(part)]]


def _coordinates(places: list, counts: list[int]) -> Any:
    """The Cartesian product of the indices, as `scatter_nd_update` takes it."""
    columns = []
    for axis, place in enumerate(places):
        along = [1] * len(places)
        along[axis] = counts[axis]
        columns.append(raw.reshape(raw.broadcast_to(raw.reshape(place, along), counts), [-1]))
    return raw.stack(columns, -1)
