"""Objects that hold variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from . import _native


class Module:
    """An object whose attributes hold variables, lists and dicts of them, and other modules."""

    def __init__(self, name: str | None = None) -> None:
        self._name = name or type(self).__name__.lower()

    @property
    def name(self) -> str:
        """What it is called."""
        return self._name

    def _held(self) -> Iterator[Any]:
        seen: set[int] = set()

        def visit(thing: Any) -> Iterator[Any]:
            if id(thing) in seen:
                return
            seen.add(id(thing))
            if isinstance(thing, (_native.Variable, Module)):
                yield thing
            if isinstance(thing, Module):
                parts = [part for _, part in sorted(vars(thing).items())]
            elif isinstance(thing, dict):
                parts = [thing[key] for key in sorted(thing)]
            elif isinstance(thing, (list, tuple)):
                parts = list(thing)
            else:
                parts = []
            for part in parts:
                yield from visit(part)

        yield from visit(self)

    @property
    def variables(self) -> tuple:
        """All variables, in the order of the attributes' names."""
        return tuple(part for part in self._held() if isinstance(part, _native.Variable))

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
        return tuple(part for part in self._held() if isinstance(part, Module) and part is not self)
