"""Objects that hold variables."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from . import _native, nest


class Module:
    """An object whose attributes hold variables, lists and dicts of them, and other modules.

    Layers and variables of Keras among them count as well.
    """

    def __init__(self, name: str | None = None) -> None:
        if name is not None and not name.isidentifier():
            raise ValueError(f"{name!r} is no name for a module: it has to be one that Python could have given it")
        self._name = name or _snake(type(self).__name__)

    @property
    def name(self) -> str:
        """What it is called."""
        return self.__dict__.get("_name") or _snake(type(self).__name__)

    @property
    def name_scope(self) -> AbstractContextManager[str]:
        """The scope of its name. Ops are told apart by their lines; nothing is named by it."""
        from .ops import name_scope

        return name_scope(self.name)

    @classmethod
    def with_name_scope(cls, method: Callable) -> Callable:
        """A method that runs in the scope of the module's name."""

        @functools.wraps(method)
        def scoped(self: Module, *args: Any, **kwargs: Any) -> Any:
            with self.name_scope:
                return method(self, *args, **kwargs)

        return scoped

    def _held(self, seen: set[int]) -> Iterator[Any]:
        """The variables and modules that it holds: its own, by the attributes' names, before those of its modules."""
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
            yield from module._held(seen)

    @property
    def variables(self) -> tuple:
        """All variables: its own in the order of the attributes' names, then those of the modules inside it."""
        return tuple(part for part in self._held({id(self)}) if not isinstance(part, Module))

    @property
    def trainable_variables(self) -> tuple:
        """The variables that tapes follow."""
        return tuple(variable for variable in self.variables if variable.trainable)

    @property
    def non_trainable_variables(self) -> tuple:
        """The variables that tapes do not follow by themselves."""
        return tuple(variable for variable in self.variables if not variable.trainable)

    @property
    def submodules(self) -> tuple:
        """The modules inside it."""
        return tuple(part for part in self._held({id(self)}) if isinstance(part, Module))


def _snake(name: str) -> str:
    """The name of a class as that of an object: `ConvBlock` is `conv_block`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _leaves(value: Any) -> list:
    try:
        return nest.flatten(value)
    except TypeError:  # the keys of a dict need not have an order
        return [leaf for part in value.values() for leaf in _leaves(part)] if isinstance(value, dict) else [value]


def _is_variable(part: Any) -> bool:
    return isinstance(part, _native.Variable) or hasattr(part, "__taut_variable__")


def _holds_variables(part: Any) -> bool:
    """Whether it is a layer of Keras's, or something else that lists its variables."""
    return not isinstance(part, type) and isinstance(getattr(part, "trainable_variables", None), (list, tuple))
