"""Modules: objects that hold variables."""

from __future__ import annotations

import functools
import re
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from . import _native, _trackable, nest


class Module:
    """Base class of objects whose attributes hold variables, other modules, and lists and dicts of those.

    Keras layers and variables are found, too.
    """

    def __init__(self, name: str | None = None) -> None:
        if name is not None and not (isinstance(name, str) and name.isidentifier()):
            raise ValueError(f"name must be a valid Python identifier, got {name!r}")
        from ._ops.scopes import scoped_name

        self._name = name or _snake(type(self).__name__)
        self._scope = scoped_name(self._name) + "/"

    def __setattr__(self, name: str, value: Any) -> None:
        value = _trackable.watched(value)
        super().__setattr__(name, value)
        _trackable.variables_made(value)

    @property
    def name(self) -> str:
        """The name of the module."""
        return self.__dict__.get("_name") or _snake(type(self).__name__)

    @property
    def name_scope(self) -> AbstractContextManager[str]:
        """A context manager for the module's name scope, which is a prefix of the names of variables made inside of it."""
        from ._ops.scopes import name_scope

        return name_scope(self.__dict__.get("_scope") or f"{self.name}/")

    @classmethod
    def with_name_scope(cls, method: Callable) -> Callable:
        """Decorates a method to run in the module's name scope."""

        @functools.wraps(method)
        def scoped(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped

    def _children(self, seen: set[int]) -> Iterator[Any]:
        """Yields its variables and modules, by attribute name, then those of its modules."""
        inside = []
        for _, value in sorted(vars(self).items()):
            for part in _leaves(value):
                if id(part) in seen:
                    continue
                seen.add(id(part))
                if isinstance(part, Module):
                    inside.append(part)
                    yield part
                elif _is_variable(part):
                    yield part
                elif _holds_variables(part):
                    yield from (one for one in part.variables if id(one) not in seen)
                    seen.update(map(id, part.variables))
        for module in inside:
            yield from module._children(seen)

    @property
    def variables(self) -> tuple:
        """All variables: its own, by attribute name, then those of its submodules."""
        return tuple(part for part in self._children({id(self)}) if not isinstance(part, Module))

    @property
    def trainable_variables(self) -> tuple:
        """The trainable variables."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def non_trainable_variables(self) -> tuple:
        """The variables that are not trainable."""
        return tuple(variable for variable in self.variables if not variable.trainable)

    @property
    def submodules(self) -> tuple:
        """All modules inside it, recursively."""
        return tuple(part for part in self._children({id(self)}) if isinstance(part, Module))


def _snake(name: str) -> str:
    """Converts a class name to snake case: `ConvBlock` to `conv_block`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _leaves(value: Any) -> list:
    try:
        return nest.flatten(value)
    except TypeError:  # keys of a dict that cannot be sorted
        return [leaf for part in value.values() for leaf in _leaves(part)] if isinstance(value, dict) else [value]


def _is_variable(part: Any) -> bool:
    return isinstance(part, _native.Variable) or hasattr(part, "__taut_variable__")


def _holds_variables(part: Any) -> bool:
    """Whether it is a Keras layer, or another object that lists its variables."""
    return not isinstance(part, type) and isinstance(getattr(part, "trainable_variables", None), (list, tuple))


#: The parts of modules' lists and dicts when they were last read while values waited.
_last_read: weakref.WeakKeyDictionary[Module, dict[str, list[int]]] = weakref.WeakKeyDictionary()


def _read_while_values_wait(self: Module, name: str) -> Any:
    """Reads an attribute of a module. Variables that were added to a list or a dict of it take their values first: nothing else
    tells that they were added."""
    found = object.__getattribute__(self, name)
    if isinstance(found, (list, dict)) and not name.startswith("__"):
        parts = [id(part) for part in _leaves(found)]
        known = _last_read.setdefault(self, {})
        if known.get(name) != parts:
            known[name] = parts
            _trackable.variables_made(found)
    return found


def _when_values_wait(waiting: bool) -> None:
    """Watches the reads of attributes only while values of a checkpoint wait for variables, for they take time."""
    if waiting:
        Module.__getattribute__ = _read_while_values_wait  # type: ignore[method-assign, assignment]
    elif "__getattribute__" in vars(Module):
        del Module.__getattribute__


_trackable.observe_waiting(_when_values_wait)
