"""Critical sections: `tf.CriticalSection`."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ._common import refuse, refuse_option

_shared: dict[str, threading.Lock] = {}
_held = threading.local()


class CriticalSection:
    """Runs functions one at a time: `execute` waits until no other thread executes in the section.

    Sections with one `shared_name` are one section.
    """

    def __init__(
        self,
        name: str | None = None,
        shared_name: str | None = None,
        critical_section_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        reason = "there are no graphs to import"
        refuse_option("CriticalSection", "critical_section_def", critical_section_def, reason)
        refuse_option("CriticalSection", "import_scope", import_scope, reason)
        self._name = name or shared_name or "critical_section"
        self._lock = threading.Lock() if shared_name is None else _shared.setdefault(shared_name, threading.Lock())

    @property
    def name(self) -> str:
        """The name it was made with."""
        return self._name

    def execute(self, fn: Callable[[], Any], exclusive_resource_access: bool = True, name: str | None = None) -> Any:
        """Calls `fn()` and returns its result. A section must not be entered again by the function that it executes."""
        if not callable(fn):
            raise ValueError(f"CriticalSection.execute: fn must be callable, got {fn!r}")
        held = getattr(_held, "locks", ())
        if self._lock in held:
            refuse("CriticalSection.execute", "the section is already executing a function of this thread", ValueError)
        with self._lock:
            _held.locks = (*held, self._lock)
            try:
                return fn()
            finally:
                _held.locks = held
