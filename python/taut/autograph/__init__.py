"""Python's control flow on tensors: `if`, `while`, `for` and the like become ops in traced functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import experimental

__all__ = ["experimental", "lazily_converted", "to_graph"]


def lazily_converted(function: Callable) -> Callable:
    """A function that does the same with tensors in its control flow. Its first call converts it.

    Where it cannot be converted, it warns once, with the reason, and runs as it is.
    """
    inner = getattr(function, "__taut_converted__", None)
    if inner is not None:
        function.__taut_converted__ = lazily_converted(inner)
        return function
    if experimental.is_marked(function):
        return function

    @functools.wraps(function)
    def converted(*args: Any, **kwargs: Any) -> Any:
        from .calls import call

        return call(function, args, kwargs)

    return converted


def to_graph(entity: Callable, recursive: bool = True) -> Callable:
    """The function, converted now: tensors may decide its control flow when it is traced.

    With `recursive`, functions that it calls are converted, too. Raises ValueError if it cannot be converted.
    """
    from .calls import converted

    return converted(entity, recursive)
