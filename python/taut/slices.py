"""Parts of variables that can be assigned: `variable[1:3].assign(value)`."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native
from ._common import _refuse

_broadcast, _cast, _reshape, _stack = (_native.Op(name) for name in ("broadcast_to", "cast", "reshape", "stack"))

# By the ids of tensors that were read from variables with an index: what they were read from, and with which one.
_read: dict[int, tuple[weakref.ref, Any, Any]] = {}


def remember(tensor: _native.Tensor, variable: Any, key: Any) -> None:
    """Notes that a tensor is this part of a variable, as long as somebody has it."""
    number = id(tensor)
    _read[number] = (weakref.ref(tensor, lambda _: _read.pop(number, None)), variable, key)


def _assign(self: _native.Tensor) -> Callable:
    """Gives a part of a variable other values: only what was read from a variable with an index has it."""
    found = _read.get(id(self))
    if found is None or found[0]() is not self:
        raise AttributeError("only a variable, or a part of one, `variable[1:3]`, can be assigned; a tensor never changes")
    _, variable, key = found

    shape = self.shape

    def assign(value: Any, name: str | None = None, read_value: bool = True) -> Any:
        _write(variable, key, shape, value)
        return variable if read_value else None

    return assign


_native.Tensor.assign = property(_assign)


def _write(variable: Any, key: Any, shape: Any, value: Any) -> None:
    value = _native.as_tensor(value, None if hasattr(value, "dtype") else variable.dtype)
    value = _broadcast(value, shape)
    places = _places(variable, key)
    if not places:
        variable.assign(_reshape(value, variable.shape))
        return
    counts = [len(place) for place in places]
    rows = _reshape(value, [int(np.prod(counts)), *variable.shape[len(places) :]])
    variable.scatter_nd_update(_coordinates(places, counts), rows)


def _places(variable: Any, key: Any) -> list:
    """Per axis, the numbers that are named; without the axes at the end of which everything is."""
    parts = [part for part in (key if isinstance(key, tuple) else (key,)) if part is not None]
    if Ellipsis in [part for part in parts if not isinstance(part, _native.Array)]:
        at = next(k for k, part in enumerate(parts) if part is Ellipsis)
        missing = len(variable.shape) - len(parts) + 1
        parts[at : at + 1] = [slice(None)] * missing
    while parts and isinstance(parts[-1], slice) and parts[-1] == slice(None):
        parts.pop()
    return [_along(part, size) for part, size in zip(parts, variable.shape)]


def _along(part: Any, size: int) -> Any:
    if isinstance(part, slice):
        return np.arange(size)[slice(*(None if end is None else int(end) for end in (part.start, part.stop, part.step)))]
    if isinstance(part, _native.Array) and part.is_symbolic and part.ndim == 0:
        return _reshape(_cast(part, "int64"), [1])
    if np.ndim(part) or isinstance(part, (bool, np.bool_)):
        _refuse("assign", "a part of a variable is named by numbers and slices; scatter_nd_update takes the rest", TypeError)
    return np.arange(size)[[int(part)]]


def _coordinates(places: list, counts: list[int]) -> Any:
    """All combinations of the numbers, as `scatter_nd_update` takes them."""
    columns = []
    for axis, place in enumerate(places):
        along = [1] * len(places)
        along[axis] = counts[axis]
        columns.append(_reshape(_broadcast(_reshape(place, along), counts), [-1]))
    return _stack(columns, -1)
