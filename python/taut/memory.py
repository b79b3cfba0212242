"""Who holds how many bytes: the ledger, its limit, and its report."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _native
from ._native import allocations, allocator, idle_bytes, live_bytes, peak_bytes, record, reset_peak, trim


class Report(str):
    """The ledger at one moment: a text for people, `categories` as (name, live, peak) and `lines` as (bytes, buffers,
    category, line)."""

    categories: list[tuple[str, int, int]]
    lines: list[tuple[int, int, str, str | None]]

    def _repr_html_(self) -> str:
        from .display import report_html

        return report_html(self)


_KEEP: Any = object()


def limit(bytes: Any = _KEEP) -> int | None:  # noqa: A002
    """Sets the most bytes that tensors may hold (None for no limit) and returns the limit that was there before.

    Without an argument, returns the limit. A request that would pass it raises `tf.errors.ResourceExhaustedError` before
    anything changes.
    """
    return _native.current_limit() if bytes is _KEEP else _native.set_limit(bytes)


def set_allocator(source: str | tuple[Any, Any], name: str | None = None) -> None:
    """Makes `source` where new buffers come from; those that are there go back to where they came from.

    `"pool"`, the default, keeps memory for reuse; `"system"` asks the system each time. A pair of C functions is an
    allocator of your own, `void *allocate(size_t bytes)` and `void release(void *block, size_t bytes)`: of a library that
    ctypes loaded, made with `ctypes.CFUNCTYPE`, or as addresses; `name` is what errors call it. Blocks have to be aligned to
    64 bytes; one that is null or is not aligned is as good as no memory: `tf.errors.ResourceExhaustedError`. They may be
    released by any thread, and until the process ends. Functions written in Python must not use
    tensors themselves, and must not raise: ctypes would return anything for a block.

    >>> import taut as tf
    >>> tf.memory.set_allocator("system")
    >>> tf.memory.allocator()
    'system'
    >>> tf.memory.set_allocator("pool")
    """
    if isinstance(source, str):
        if name is not None:
            raise ValueError(f"a name is for an allocator of your own, and {source!r} has one")
        _native.set_allocator(source)
        return
    if not isinstance(source, (tuple, list)) or len(source) != 2:
        raise TypeError('allocators are "pool", "system", or a pair of functions: allocate and release')
    if name in ("pool", "system"):
        raise ValueError(f"{name!r} is the name of another allocator")
    _native.set_allocator(name or "custom", (_address(source[0]), _address(source[1])))
    # Kept for good: buffers go back even while the interpreter goes down.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(tuple(source)))


def _address(function: Any) -> int:
    if isinstance(function, int) and not isinstance(function, bool):
        return function
    if not isinstance(function, (ctypes._CFuncPtr, ctypes.c_void_p)):
        raise TypeError(f"an allocator is made of C functions or their addresses, not of {function!r}")
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def report() -> Report:
    """Who holds what now, by category, and by line while `record(True)` is on."""
    text, categories, lines = _native.report()
    made = Report(text)
    made.categories, made.lines = categories, lines
    return made


class Measured:
    """What a piece of work held: filled in when it ends."""

    peak_bytes: int = 0
    live_bytes: int = 0


@contextmanager
def measure() -> Iterator[Measured]:
    """Measures a `with` block: the most bytes held above those at its beginning, and the bytes that it left."""
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
    "Report",
    "allocations",
    "allocator",
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
