"""Who holds how many bytes: the ledger, its limit, and its report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from . import _native
from ._native import allocations, idle_bytes, live_bytes, peak_bytes, record, reset_peak, trim


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
    "idle_bytes",
    "limit",
    "live_bytes",
    "measure",
    "peak_bytes",
    "record",
    "report",
    "reset_peak",
    "trim",
]
