"""Abstract values of the analysis in `analysis.py`: what is known about a value before the code runs.

They form a lattice. `BOTTOM` is the value of what has not been assigned yet; `PLAIN` is a subset of `LIBRARY`, and
everything is a subset of `UNKNOWN`.
"""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from .. import _native
from ..shape import TensorShape


class Unproven(Exception):  # noqa: N818
    """The analysis cannot show that a function needs no conversion."""


class _Kind:
    """Base of abstract values: equal if the class and all fields are."""

    __slots__: tuple[str, ...] = ()

    def __init__(self, *fields: Any) -> None:
        for name, field in zip(self.__slots__, fields):
            setattr(self, name, field)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(getattr(self, name) == getattr(other, name) for name in self.__slots__)

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, name) for name in self.__slots__)))


class _Named(_Kind):
    __slots__ = ("name",)


#: No value: nothing was assigned yet.
BOTTOM = _Named("bottom")
#: A Python value that is no tensor and holds none: a number, a string, a shape, a type.
PLAIN = _Named("plain")
#: A value whose methods are code of libraries: a tensor, a variable, an array, or a structure of those.
LIBRARY = _Named("library")
#: Anything.
UNKNOWN = _Named("unknown")
_FLAT = frozenset((BOTTOM, PLAIN, LIBRARY))


class Known(_Kind):
    """An object that is known already: a global, the contents of a cell, an argument, an attribute of one of them."""

    __slots__ = __match_args__ = ("value",)
    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Known):
            return False
        # A bound method is another object each time that it is read.
        is_method = isinstance(self.value, types.MethodType) and isinstance(other.value, types.MethodType)
        return self.value is other.value or (is_method and self.value == other.value)

    def __hash__(self) -> int:
        value = self.value
        return hash((value.__func__, id(value.__self__)) if isinstance(value, types.MethodType) else id(value))


class Items(_Kind):
    """A list, a set, or an iterator of Python: never a tensor, a dataset or a traced range."""

    __slots__ = __match_args__ = ("element",)
    element: Any


class Parts(_Kind):
    """A tuple of known length."""

    __slots__ = __match_args__ = ("parts",)
    parts: tuple


class Mapping(_Kind):
    """A dict."""

    __slots__ = __match_args__ = ("key", "value")
    key: Any
    value: Any


class Method(_Kind):
    """A method of a list, a set, a tuple or a dict."""

    __slots__ = __match_args__ = ("owner", "name")
    owner: Any
    name: str


class Closure(_Kind):
    """A function that the analysed code defines: its syntax tree, the scope around it, and its defaults."""

    __slots__ = __match_args__ = ("node", "scope", "defaults", "kw_defaults")
    node: Any
    scope: Any
    defaults: tuple
    kw_defaults: tuple


_PLAIN_TYPES = frozenset(
    (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), slice, TensorShape, _native.DType)
)
_CONTAINERS = frozenset((list, tuple, dict, set, frozenset))
_DEPTH = 4
# A larger container is not looked into.
_MOST = 10_000


def of(value: Any) -> Any:
    """The abstract value of an object."""
    kind = type(value)
    if kind in _PLAIN_TYPES:
        return PLAIN
    if isinstance(value, (_native.Array, np.ndarray, np.generic)):
        return LIBRARY if _is_of(kind, "taut") or _is_of(kind, "numpy") else UNKNOWN
    return Known(value)


def _is_of(kind: type, package: str) -> bool:
    return kind.__module__.partition(".")[0] == package


def _holds_items(value: Any) -> bool:
    """Whether it is a container of Python whose methods are not the user's."""
    kind = type(value)
    if kind in _CONTAINERS:
        return True
    return isinstance(value, (list, dict)) and (_is_of(kind, "taut") or _is_of(kind, "keras"))


def is_container(kind: Any) -> bool:
    """Whether it is a container of Python, or an iterator over one."""
    if isinstance(kind, Known):
        return _holds_items(kind.value)
    return isinstance(kind, (Items, Parts, Mapping))


def joined(kinds: Iterable) -> Any:
    """What holds of each of these values."""
    made: Any = BOTTOM
    for kind in kinds:
        made = join(made, kind)
        if made is UNKNOWN:
            break
    return made


def join(one: Any, other: Any, depth: int = 0) -> Any:
    """What holds of both values."""
    if one is other or other is BOTTOM or one == other:
        return one
    if one is BOTTOM:
        return other
    if one is UNKNOWN or other is UNKNOWN or depth > _DEPTH:
        return UNKNOWN
    if isinstance(one, Parts) and isinstance(other, Parts) and len(one.parts) == len(other.parts):
        return Parts(tuple(join(*each, depth + 1) for each in zip(one.parts, other.parts)))
    if _is_dict(one) and _is_dict(other):
        first, second = _mapping(one), _mapping(other)
        return Mapping(join(first.key, second.key, depth + 1), join(first.value, second.value, depth + 1))
    if is_container(one) and is_container(other) and not (_is_dict(one) or _is_dict(other)):
        return Items(join(element(one), element(other), depth + 1))
    return LIBRARY if is_library(one) and is_library(other) else UNKNOWN


def _is_dict(kind: Any) -> bool:
    return isinstance(kind, Mapping) or (
        isinstance(kind, Known) and isinstance(kind.value, dict) and _holds_items(kind.value)
    )


def _mapping(kind: Any) -> Mapping:
    """The keys and values of a dict."""
    if isinstance(kind, Mapping):
        return kind
    if len(kind.value) > _MOST:
        return Mapping(UNKNOWN, UNKNOWN)
    return Mapping(joined(map(of, kind.value)), joined(map(of, kind.value.values())))


def element(kind: Any) -> Any:
    """What iteration over a value gives."""
    match kind:
        case Items(found):
            return found
        case Parts(parts):
            return joined(parts)
        case Mapping(key, _):
            return key
        case Known(value) if _holds_items(value):
            # An empty container may be filled before it is read.
            if not value or len(value) > _MOST:
                return UNKNOWN
            return joined(map(of, value))
        case Known(value) if isinstance(value, range):
            return PLAIN
    return kind if kind in _FLAT else UNKNOWN


def item(kind: Any) -> Any:
    """What indexing a value gives."""
    if _is_dict(kind):
        return _mapping(kind).value
    return element(kind)


def item_at(kind: Any, index: Any) -> Any:
    """What indexing a value with this index gives; None if that is not known."""
    if not isinstance(kind, Known) or isinstance(kind.value, (set, frozenset)):
        return None
    try:
        return of(kind.value[index])
    except (LookupError, TypeError):
        return None


def pairs(kind: Any) -> Mapping | None:
    """The keys and values of a value that is known to be a dict."""
    return _mapping(kind) if _is_dict(kind) else None


def is_library(kind: Any, depth: int = 0) -> bool:
    """Whether a value holds no function or object of the user."""
    if kind in _FLAT:
        return True
    if depth > _DEPTH:
        return False
    match kind:
        case Items(found):
            return is_library(found, depth + 1)
        case Parts(parts):
            return all(is_library(part, depth + 1) for part in parts)
        case Mapping(key, value):
            return is_library(key, depth + 1) and is_library(value, depth + 1)
        case Known(value):
            if _holds_items(value):
                return bool(value) and len(value) <= _MOST and is_library(item(kind), depth + 1)
            return isinstance(value, (_native.Op, types.BuiltinFunctionType, range))
    return False


def decides(kind: Any) -> bool:
    """Whether the truth of a value is known to be Python's: it is not a traced tensor."""
    return kind is BOTTOM or kind is PLAIN or isinstance(kind, (Known, Closure, Method)) or is_container(kind)


def is_iterated_by_python(kind: Any) -> bool:
    """Whether a `for` over a value is known to be Python's: over no traced tensor, range or dataset."""
    if kind is BOTTOM or kind is PLAIN or is_container(kind):
        return True
    return isinstance(kind, Known) and not any(_is_of(base, "taut") for base in type(kind.value).__mro__)
