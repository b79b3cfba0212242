"""What functions can say about their conversion."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

_MARK = "__taut_do_not_convert__"


def do_not_convert(func: Callable | None = None) -> Callable:
    """The function, to run as it is wherever it is called from: its control flow is Python's own."""
    if func is None:
        return do_not_convert

    @functools.wraps(func)
    def as_it_is(*args: Any, **kwargs: Any) -> Any:
        return func(*args, **kwargs)

    setattr(as_it_is, _MARK, True)
    return as_it_is


def is_marked(func: Any) -> bool:
    """Whether a function said that it does not want to be converted."""
    return getattr(func, _MARK, False) is True
