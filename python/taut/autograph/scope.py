"""Names in analysed code: scopes, and attributes of objects that are known."""

from __future__ import annotations

import builtins
import types
from typing import Any

from . import abstract
from .abstract import BOTTOM, UNKNOWN, Items, Known
from .callables import is_never_converted

_LIBRARIES = frozenset(("taut", "keras", "numpy", "math"))
# Attributes of tensors that are known while tracing.
STATIC = frozenset(("device", "dtype", "name", "ndim", "shape", "trainable"))
# Properties of layers and models of libraries that are lists.
_LISTS = frozenset(
    (
        *("layers", "non_trainable_variables", "non_trainable_weights", "trainable_variables", "trainable_weights"),
        *("variables", "weights"),
    )
)
# How attributes are looked up in classes that do not change it.
_GENERIC = (object.__getattribute__, types.SimpleNamespace.__getattribute__)
_MISSING = object()


class Scope:
    """The variables of a function. A variable has one abstract value: what holds after each of its assignments."""

    is_comprehension = False

    def __init__(self, parent: Scope | None, outer: dict, names: frozenset[str] = frozenset()) -> None:
        self.parent, self.globals, self.names = parent, outer, names
        self.variables: dict[str, Any] = {}
        # The values of variables of outer functions, until they are assigned.
        self.constants: dict[str, Any] = {}
        self.nonlocals: set[str] = set()
        self.read: set[str] = set()
        self.changes = 0
        self.stale = False
        self.returned: Any = BOTTOM

    def find(self, name: str) -> Scope | None:
        """The scope of a variable that is read; None for a global one."""
        scope: Scope | None = self
        while scope is not None:
            scope.read.add(name)
            if (name in scope.variables or name in scope.names) and name not in scope.nonlocals:
                return scope
            scope = scope.parent
        return None

    def get(self, name: str) -> Any:
        """What is known about a variable."""
        owner = self.find(name)
        if owner is not None:
            return owner.variables.get(name, BOTTOM)
        found = self.globals.get(name, _MISSING)
        if found is _MISSING:
            found = getattr(builtins, name, _MISSING)
        return UNKNOWN if found is _MISSING else abstract.of(found)

    def assign(self, name: str, kind: Any) -> None:
        """Adds an assignment to a variable."""
        owner: Scope = (self.find(name) or self) if name in self.nonlocals else self
        if name in owner.constants:
            del owner.constants[name]
            owner.changes += 1
            owner.stale = True
        before = owner.variables.get(name, BOTTOM)
        after = abstract.join(before, kind)
        if after != before:
            owner.variables[name] = after
            owner.changes += 1
            # What was computed from the value before is to be computed again.
            owner.stale = owner.stale or name in owner.read or owner is not self

    def state(self) -> tuple:
        """Changes whenever a variable of this or an outer scope does."""
        made, scope = [], self
        while scope is not None:
            made.append((id(scope), scope.changes))
            scope = scope.parent  # type: ignore[assignment]
        return tuple(made)


def attribute(owner: Any, name: str) -> Any:
    """What is known about an attribute of an object, without running code of the object."""
    if isinstance(owner, types.ModuleType):
        return _of_module(owner, name)
    if isinstance(owner, type):
        found = _in_class(owner, name)
        if isinstance(found, classmethod):
            return _bound(found.__func__, owner)
        found = found.__func__ if isinstance(found, staticmethod) else found
        return Known(found) if isinstance(found, types.FunctionType) else UNKNOWN
    kind = type(owner)
    if kind.__getattribute__ not in _GENERIC:
        return UNKNOWN
    found = _in_class(kind, name)
    if hasattr(type(found), "__set__") or hasattr(type(found), "__delete__"):
        return _of_property(found, name)
    own = getattr(owner, "__dict__", {}).get(name, _MISSING)
    if own is not _MISSING:
        return abstract.of(own)
    return UNKNOWN if found is _MISSING else _of_class(found, owner)


def _of_module(owner: types.ModuleType, name: str) -> Any:
    found = vars(owner).get(name, _MISSING)
    if found is _MISSING and owner.__name__.partition(".")[0] in _LIBRARIES:
        found = getattr(owner, name, _MISSING)
    return UNKNOWN if found is _MISSING else abstract.of(found)


def _in_class(kind: type, name: str) -> Any:
    """What a class or one of its bases defines, as it is defined."""
    for base in kind.__mro__:
        if name in vars(base):
            return vars(base)[name]
    return _MISSING


def _of_property(found: Any, name: str) -> Any:
    getter = getattr(found, "fget", None)
    if name in _LISTS and isinstance(getter, types.FunctionType) and is_never_converted(getter.__code__.co_filename):
        return Items(UNKNOWN)
    return UNKNOWN


def _of_class(found: Any, owner: Any) -> Any:
    """What an attribute of a class is on one of its objects."""
    if isinstance(found, types.FunctionType):
        return _bound(found, owner)
    if isinstance(found, classmethod):
        return _bound(found.__func__, type(owner))
    if isinstance(found, staticmethod):
        return abstract.of(found.__func__)
    if isinstance(found, (types.MethodDescriptorType, types.BuiltinFunctionType)):
        return Known(found)
    if type(found).__module__ == "taut.function":
        # A traced function: bound to the object, it is one as well.
        return Known(found)
    return UNKNOWN if hasattr(type(found), "__get__") else abstract.of(found)


def _bound(function: Any, owner: Any) -> Any:
    return Known(types.MethodType(function, owner)) if isinstance(function, types.FunctionType) else UNKNOWN
