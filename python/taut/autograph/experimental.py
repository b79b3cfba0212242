"""Annotations about conversion."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_MARK = "__taut_do_not_convert__"


def do_not_convert(func: Callable | None = None) -> Callable:
    """Decorates a function to run unconverted wherever it is called from."""
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def unconverted(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    setattr(unconverted, _MARK, True)
    return unconverted


def is_marked(func: Any) -> bool:
    """Whether a function is decorated with `do_not_convert`."""
    return getattr(func, _MARK, False) is True
