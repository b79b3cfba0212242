"""Python's control flow on tensors."""

from __future__ import annotations

from collections.abc import Callable


def lazily_converted(function: Callable) -> Callable:
    """The function, converted when it is first called."""
    return function
