"""AutoGraph: Python control flow that depends on tensors becomes ops in traced functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .._native import is_tracing
from . import experimental
from .analysis import runs_as_it_is, trace_memo
from .callables import is_wanted, python_function

__all__ = ["experimental", "lazily_converted", "needs_no_conversion", "set_verbosity", "to_code", "to_graph", "trace"]


def lazily_converted(function: Callable) -> Callable:
    """The function, converted by AutoGraph on its first call.

    If it cannot be converted, a warning gives the reason once, and the function runs unconverted.
    """
    inner = getattr(function, "__taut_converted__", None)
    if inner is not None:
        setattr(function, "__taut_converted__", lazily_converted(inner))
        return function
    if experimental.is_marked(function):
        return function

    runs_op_by_op = False

    @functools.wraps(function)
    def converted(*args: Any, **kwargs: Any) -> Any:
        nonlocal runs_op_by_op
        # Outside of a trace, tensors have values: what needed no conversion for one call needs none for the next ones.
        if runs_op_by_op and not is_tracing():
            return function(*args, **kwargs)
        with trace_memo():
            if needs_no_conversion(function, args, kwargs):
                runs_op_by_op = not is_tracing()
                return function(*args, **kwargs)
            from .calls import call

            return call(function, args, kwargs)

    return converted


def needs_no_conversion(callee: Callable, args: tuple, kwargs: dict) -> bool:
    """Whether a call is known to need no conversion. The modules that convert are imported only if it does."""
    function, first = python_function(callee)
    return function is not None and (
        not is_wanted(callee, function) or runs_as_it_is(function, (*first, *args), kwargs)
    )


def trace(*args: Any) -> None:
    """Prints its arguments when a function is traced, not when it runs."""
    print(*args)


def to_graph(entity: Callable, recursive: bool = True, experimental_optional_features: Any = None) -> Callable:
    """Converts a function now, so that tensors may decide its control flow when it is traced.

    With `recursive`, functions that it calls are converted, too. Raises ValueError if it cannot be converted.
    """
    from .calls import converted

    return converted(entity, recursive)


def to_code(entity: Callable, recursive: bool = True, experimental_optional_features: Any = None) -> str:
    """The source code of the converted function, in which `ag__` has the operators of AutoGraph."""
    import ast

    from . import source

    function, _ = python_function(getattr(entity, "python_function", entity))
    if function is None:
        raise ValueError(f"expected a Python function, got {entity!r}")
    return ast.unparse(ast.fix_missing_locations(source.converted_node(function, recursive)))


def set_verbosity(level: int, alsologtostdout: bool = False) -> None:
    """Does nothing: conversions log nothing. What cannot be converted is a warning or an error in any case."""
