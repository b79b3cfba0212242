"""Annotations about conversion."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable
from typing import Any

_MARK = "__taut_do_not_convert__"


class Feature(enum.Enum):
    """Parts of AutoGraph. All of them are always on, as far as a function needs them."""

    ALL = "ALL"
    AUTO_CONTROL_DEPS = "AUTO_CONTROL_DEPS"
    ASSERT_STATEMENTS = "ASSERT_STATEMENTS"
    BUILTIN_FUNCTIONS = "BUILTIN_FUNCTIONS"
    EQUALITY_OPERATORS = "EQUALITY_OPERATORS"
    LISTS = "LISTS"
    NAME_SCOPES = "NAME_SCOPES"


def do_not_convert(func: Callable | None = None) -> Callable:
    """Decorates a function to run unconverted wherever it is called from."""
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def unconverted(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    setattr(unconverted, _MARK, True)
    return unconverted


def set_loop_options(
    parallel_iterations: int | None = None,
    swap_memory: bool | None = None,
    maximum_iterations: Any = None,
    shape_invariants: Any = None,
) -> None:
    """Options of the loop whose body begins with this call. Shapes may change in any loop, so `shape_invariants` need not
    be given, and a loop has the parallelism and the memory of its plan.
    """
    if maximum_iterations is not None:
        from .._common import refuse

        message = "maximum_iterations must be None\n  help: end the loop with `break`, or use tf.while_loop"
        refuse("set_loop_options", message, ValueError)


def is_marked(func: Any) -> bool:
    """Whether a function is decorated with `do_not_convert`."""
    return getattr(func, _MARK, False) is True
