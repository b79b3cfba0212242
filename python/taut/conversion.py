"""Conversion of users' own classes to tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ._native import as_tensor

_registered: list[tuple[int, type, Callable]] = []


def register_tensor_conversion_function(base_type: Any, conversion_func: Callable, priority: int = 100) -> None:
    """Registers `conversion_func(value, dtype=None, name=None, as_ref=False)` for objects of a class, or of several.

    Wherever a tensor is expected, such an object is converted. Functions of smaller priority are tried first; one that
    returns `NotImplemented` leaves the object to the next.

    Raises:
        TypeError: `base_type` is not a class whose attributes can be set, such as `int`.
    """
    kinds = base_type if isinstance(base_type, tuple) else (base_type,)
    if not callable(conversion_func):
        raise TypeError(f"conversion_func must be a function, got {conversion_func!r}")
    for kind in kinds:
        if not isinstance(kind, type):
            raise TypeError(f"base_type must be a class or a tuple of classes, got {kind!r}")
        try:
            kind.__taut_tensor__ = _converted  # type: ignore[attr-defined]
        except TypeError:
            raise TypeError(f"base_type must be a class of a program, got {kind.__name__}") from None
        _registered.append((int(priority), kind, conversion_func))
    _registered.sort(key=lambda row: row[0])


def _converted(self: Any) -> Any:
    """What a registered function makes of an object."""
    for _, kind, function in _registered:
        if isinstance(self, kind):
            made = function(self, dtype=None, name=None, as_ref=False)
            if made is not NotImplemented:
                return as_tensor(made)
    raise TypeError(f"no conversion function accepts an object of type {type(self).__name__}")
