"""Methods that are traced functions."""

from __future__ import annotations

import functools
import inspect
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .function import Function


class BoundFunction:
    """A method that is a traced function. The handle keeps its object alive, the traces do not: the object owns them."""

    __slots__ = ("__self__", "__weakref__", "_function")

    def __init__(self, function: Function, instance: Any) -> None:
        self._function, self.__self__ = function, instance

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self._function)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the method."""
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._function, name)

    def __dir__(self) -> list[str]:
        return dir(self._function)

    def __reduce__(self) -> tuple:
        return getattr, (self.__self__, self._function.python_function.__name__)

    def __repr__(self) -> str:
        return repr(self._function)


def weak_method(function: Callable, instance: Any) -> Callable:
    """A bound method that does not keep its object alive: the object owns it."""
    reference = weakref.ref(instance)

    def call(*args: Any, **kwargs: Any) -> Any:
        owner = reference()
        if owner is None:
            raise ReferenceError(f"the object of the method {function.__name__} no longer exists")
        return method.__taut_converted__(owner, *args, **kwargs)

    method: Any = functools.wraps(function)(call)
    method.__taut_converted__ = function
    parameters = list(inspect.signature(function).parameters.values())[1:]
    method.__signature__ = inspect.Signature(parameters)
    method.__taut_method__ = True
    return method
