"""Memory accounting: live and peak bytes, the limit, the report, the allocator."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from . import _namespace, _native
from ._native import (
    MemoryBudget,
    allocations,
    allocator,
    idle_bytes,
    live_bytes,
    peak_bytes,
    record,
    reset_peak,
    trim,
)


class Report(str):
    """A snapshot of the ledger: printable, with `categories` (name, live, peak) and `lines` (bytes, buffers, category,
    line).
    """

    categories: list[tuple[str, int, int]]
    lines: list[tuple[int, int, str, str | None]]

    def _repr_html_(self) -> str:
        from .display import report_html

        return report_html(self)


_KEEP: Any = object()
# The base class of functions that ctypes makes or loads.
_C_FUNCTION: Any = ctypes.CFUNCTYPE(None).__mro__[1]


def limit(bytes: Any = _KEEP) -> int | None:
    """Sets the maximal bytes that tensors may hold (None for no limit) and returns the previous limit.

    Without an argument, returns the limit. An allocation that would exceed it raises `tf.errors.ResourceExhaustedError`
    before anything changes.
    """
    if bytes is _KEEP:
        return _native.current_limit()
    if bytes is not None and not hasattr(bytes, "__index__"):
        raise TypeError(f"limit: bytes must be an integer such as 4 << 30, or None, got {bytes!r}")
    return _native.set_limit(bytes)


def set_allocator(source: str | tuple[Any, Any], name: str | None = None) -> None:
    """Sets the allocator of new buffers; existing buffers are returned to the allocator they came from.

    `"pool"`, the default, keeps freed memory for reuse; `"system"` allocates from the system each time. A pair of C
    functions, `void *allocate(size_t bytes)` and `void release(void *block, size_t bytes)`, is a custom allocator:
    functions of a library loaded with ctypes, made with `ctypes.CFUNCTYPE`, or addresses. `name` is its name in errors.
    Blocks must be aligned to 64 bytes; a null or misaligned block raises `tf.errors.ResourceExhaustedError`. Blocks may
    be released by any thread and until the process ends. Functions written in Python must not use tensors and must not
    raise: ctypes would return an arbitrary address.

    >>> import taut as tf
    >>> tf.memory.set_allocator("system")
    >>> tf.memory.allocator()
    'system'
    >>> tf.memory.set_allocator("pool")
    """
    if isinstance(source, str):
        if name is not None:
            raise ValueError(f"name must be None for the built-in allocator {source!r}, got {name!r}")
        _native.set_allocator(source)
        return
    if not isinstance(source, (tuple, list)) or len(source) != 2:
        raise TypeError(f'source must be "pool", "system", or a pair of functions (allocate, release), got {source!r}')
    if name in ("pool", "system"):
        raise ValueError(f"name must not be that of a built-in allocator, got {name!r}")
    _native.set_allocator(name or "custom", (_address(source[0]), _address(source[1])))
    # Never freed: buffers are released even while the interpreter shuts down.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(tuple(source)))


def _address(function: Any) -> int:
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    if not isinstance(function, (_C_FUNCTION, ctypes.c_void_p)):
        raise TypeError(f"allocate and release must be C functions or their addresses, got {function!r}")
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def report() -> Report:
    """The live bytes now, by category, and by line while `record(True)` is on."""
    text, categories, lines = _native.report()
    made = Report(text)
    made.categories, made.lines = categories, lines
    return made


_default_budget: ContextVar[Any] = ContextVar("memory_budget", default=None)


def default_budget() -> Any:
    """The memory budget of functions that are created now without one: that of the enclosing `budget` block, or None."""
    return _default_budget.get()


@contextmanager
def budget(
    bytes: Any, total: bool = False, bit_equal: bool = False, spill_to: str | os.PathLike[str] | None = None
) -> Iterator[MemoryBudget]:
    """Gives every `tf.function` that is created inside the `with` block this memory budget, unless it has its own.

    `bytes` is a number or text such as "200MB". `total` counts arguments, variables and constants as well; `bit_equal`
    forbids splitting the batch, which changes the rounding of results; `spill_to` is a folder in which values may be
    written to a file and read back.

    >>> import taut as tf
    >>> with tf.memory.budget("1MB"):
    ...     f = tf.function(lambda x: x + 1.0)
    >>> f.plan(tf.TensorSpec([1000])).fits("1MB")
    True
    """
    made = MemoryBudget(bytes, total, bit_equal, spill_to)
    token = _default_budget.set(made)
    try:
        yield made
    finally:
        _default_budget.reset(token)


class Measured:
    """The memory use of a `with` block, available after it."""

    peak_bytes: int = 0
    live_bytes: int = 0


@contextmanager
def measure() -> Iterator[Measured]:
    """Measures a `with` block: the peak bytes above those at its start, and the bytes it left live."""
    measured = Measured()
    before = live_bytes()
    reset_peak()
    try:
        yield measured
    finally:
        measured.peak_bytes = peak_bytes() - before
        measured.live_bytes = live_bytes() - before


__all__ = [
    "Measured",
    "MemoryBudget",
    "Report",
    "allocations",
    "allocator",
    "budget",
    "idle_bytes",
    "limit",
    "live_bytes",
    "measure",
    "peak_bytes",
    "record",
    "report",
    "reset_peak",
    "set_allocator",
    "trim",
]
__getattr__, __dir__ = _namespace.plain(__name__)
