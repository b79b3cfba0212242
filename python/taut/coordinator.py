"""Threads that end together: `tf.train.Coordinator`."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterable, Iterator
from typing import Any


class Coordinator:
    """Tells several threads to stop, waits for them, and raises the first exception of one of them.

    >>> import taut as tf, threading
    >>> coordinator, done = tf.train.Coordinator(), []
    >>> def work():
    ...     with coordinator.stop_on_exception():
    ...         while not coordinator.should_stop():
    ...             done.append(1)
    ...             coordinator.request_stop()
    >>> threads = [threading.Thread(target=work) for _ in range(2)]
    >>> for thread in threads:
    ...     thread.start()
    >>> coordinator.join(threads)
    >>> len(done) >= 1
    True
    """

    def __init__(self, clean_stop_exception_types: Any = None) -> None:
        from .errors import OutOfRangeError

        # The end of a dataset is an ordinary reason to stop.
        self._clean = tuple(clean_stop_exception_types or (OutOfRangeError,))
        self._lock = threading.Lock()
        self._event = threading.Event()
        self._exception: BaseException | None = None
        self._threads: list[threading.Thread] = []
        self._joined = False

    def should_stop(self) -> bool:
        """Whether a stop was requested."""
        return self._event.is_set()

    def request_stop(self, ex: Any = None) -> None:
        """Requests a stop. The first exception that is given is raised by `join`, unless it is of a type that means the end."""
        if isinstance(ex, tuple):
            ex = ex[1]
        with self._lock:
            if self._joined:
                if ex is not None:
                    raise ex
                return
            if self._exception is None and ex is not None and not isinstance(ex, self._clean):
                self._exception = ex
            self._event.set()

    def clear_stop(self) -> None:
        """Takes the request back, with its exception."""
        with self._lock:
            self._joined, self._exception = False, None
            self._event.clear()

    @contextlib.contextmanager
    def stop_on_exception(self) -> Iterator[None]:
        """A context manager in which an exception requests a stop."""
        try:
            yield
        except BaseException as error:
            self.request_stop(error)

    def wait_for_stop(self, timeout: float | None = None) -> bool:
        """Waits for a request; returns whether there is one."""
        return self._event.wait(timeout)

    def register_thread(self, thread: threading.Thread) -> None:
        """Adds a thread that `join` waits for."""
        with self._lock:
            self._threads.append(thread)

    def join(
        self,
        threads: Iterable[threading.Thread] | None = None,
        stop_grace_period_secs: float = 120,
        ignore_live_threads: bool = False,
    ) -> None:
        """Waits until all threads have ended, and raises their exception.

        After a request to stop, it waits for that many seconds. Threads that run on are a RuntimeError, unless
        they are ignored.
        """
        with self._lock:
            waited = [*self._threads, *(one for one in threads or () if one not in self._threads)]
        while any(thread.is_alive() for thread in waited) and not self.wait_for_stop(0.05):
            pass
        deadline = time.monotonic() + stop_grace_period_secs
        for thread in waited:
            thread.join(max(0.0, deadline - time.monotonic()) if self.should_stop() else None)
        alive = [thread.name for thread in waited if thread.is_alive()]
        with self._lock:
            self._joined, self._threads = True, []
            if self._exception is not None:
                raise self._exception
        if alive and not ignore_live_threads:
            raise RuntimeError(f"Coordinator stopped with threads still running: {' '.join(alive)}")

    @property
    def joined(self) -> bool:
        """Whether `join` has returned."""
        return self._joined

    def raise_requested_exception(self) -> None:
        """Raises the exception of the request, if there is one."""
        with self._lock:
            if self._exception is not None:
                raise self._exception
