"""Profiles: every buffer and op call over time, and an HTML report."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from . import _namespace, _native
from ._native import mark


class Alive(NamedTuple):
    """A buffer that was live at a moment: bytes, kind, the op and line that created it, and why it was live."""

    bytes: int
    kind: str
    op: str | None
    line: str | None
    why: str


class Planned(NamedTuple):
    """The runs of a traced function: the planned peak, and the largest and smallest measured peaks."""

    line: str
    steps: int
    runs: int
    planned: int
    measured: int
    least: int
    seconds: float

    @property
    def is_exact(self) -> bool:
        """Whether every run had the planned peak, to the byte."""
        return self.planned == self.measured == self.least


class Time(NamedTuple):
    """The time of a group of calls; `own` excludes nested calls."""

    op: str
    gradient_of: str | None
    line: str | None
    calls: int
    seconds: float
    own: float
    gflops: float | None
    gigabytes: float | None


class Mark(NamedTuple):
    """A moment named by `mark`, and the live bytes then."""

    at: float
    name: str
    live_bytes: int


class Sample(NamedTuple):
    """The bytes of each kind from a moment on."""

    at: float
    by_kind: dict[str, int]

    @property
    def live_bytes(self) -> int:
        """Their sum: `tf.memory.live_bytes()` at that moment."""
        return sum(self.by_kind.values())


class Profile:
    """Records a `with` block on all threads: buffers, calls, steps of traced functions. One profile records at a time.

    >>> import taut as tf
    >>> x = tf.ones([1000])
    >>> with tf.profiler.Profile("a sum") as profile:
    ...     total = tf.reduce_sum(tf.exp(x))
    >>> sum(row.bytes for row in profile.alive()) == profile.peak_bytes
    True
    >>> sorted(row.op for row in profile.by_op())
    ['exp', 'sum']

    It records up to a million memory events and a million calls, or `capacity` of each; further ones are counted in
    `dropped` and reported by a warning.
    """

    def __init__(self, title: str = "profile", capacity: int | None = None) -> None:
        if capacity is not None and capacity < 1:
            raise ValueError(f"capacity must be >= 1, got {capacity}")
        self.title = title
        self._capacity = capacity
        self._profiler: _native.Profiler | None = None
        self._timeline: _native.Timeline | None = None

    def start(self) -> None:
        """Starts recording."""
        if self._profiler is not None:
            raise RuntimeError("the profile is already recording")
        capacity = () if self._capacity is None else (self._capacity,)
        self._profiler, self._timeline = _native.Profiler(*capacity), None

    def stop(self) -> None:
        """Stops recording and makes the results available."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            raise RuntimeError("the profile is not recording: call start() or use a `with` statement")
        self._timeline = profiler.finish()

    def __enter__(self) -> Profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        # `stop` may have been called inside the block.
        if self._profiler is not None:
            self.stop()

    def _recorded(self) -> _native.Timeline:
        if self._timeline is None:
            raise RuntimeError("the profile has no results yet: stop recording first")
        return self._timeline

    @property
    def seconds(self) -> float:
        """The duration of the recording."""
        return self._recorded().duration

    @property
    def peak_bytes(self) -> int:
        """The maximal live bytes, including those allocated before."""
        return self._recorded().peak_bytes

    @property
    def peak_at(self) -> float:
        """The time of the peak, in seconds from the start."""
        return self._recorded().peak_at

    @property
    def live_at_start(self) -> int:
        """The live bytes when recording started."""
        return self._recorded().live_at_start

    @property
    def live_at_end(self) -> int:
        """The live bytes when recording stopped."""
        return self._recorded().live_at_end

    @property
    def dropped(self) -> tuple[int, int, int]:
        """The numbers of memory events, calls and marks that exceeded the capacity."""
        return self._recorded()._dropped

    def alive(self, at: float | None = None) -> list[Alive]:
        """The live buffers at a moment (default: the peak), the largest first. The rows sum to the live bytes."""
        return [Alive(*row) for row in self._recorded()._alive_at(at)]

    def memory(self) -> list[Sample]:
        """The bytes of each kind at every moment at which they changed."""
        return [Sample(at, dict(kinds)) for at, kinds in self._recorded()._memory()]

    def planned(self) -> list[Planned]:
        """Every traced function that ran: planned and measured peaks."""
        return [Planned(*row) for row in self._recorded()._planned()]

    def by_op(self) -> list[Time]:
        """Time per op, in descending order of own time. Calls of gradients are separate rows."""
        return [Time(*row) for row in self._recorded()._by_op()]

    def by_line(self) -> list[Time]:
        """Time per line of your program, in descending order of own time."""
        return [Time(*row) for row in self._recorded()._by_line()]

    def marks(self) -> list[Mark]:
        """The moments named by `tf.profiler.mark`."""
        return [Mark(*row) for row in self._recorded()._marks()]

    def save_html(self, path: str | os.PathLike, plans: Mapping[str, _native.Plan] | None = None) -> None:
        """Writes an HTML report: memory over time, live buffers at any moment, time per op and line, planned and
        measured peaks, and plans. `plans` adds plans by name (`{"step": step.plan(x)}`).
        """
        self._recorded()._save_html(path, self.title, list((plans or {}).items()))

    def save_trace(self, path: str | os.PathLike) -> None:
        """Writes the recording in the trace event format of Perfetto and chrome://tracing."""
        with open(os.fspath(path), "w", encoding="utf-8") as file:
            file.write(self._recorded().to_chrome_trace())


class _Options(NamedTuple):
    """Options of recordings. The levels have nothing to choose: every call and every buffer is recorded."""

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None


class _Logged(Profile):
    """A profile that is written to a folder when it stops."""

    def __init__(self, logdir: str | os.PathLike, options: Any = None) -> None:
        if options is not None and not isinstance(options, _Options):
            raise TypeError(f"options must be tf.profiler.experimental.ProfilerOptions, got {options!r}")
        if options is not None and options.delay_ms is not None:
            raise ValueError(f"delay_ms must be None: a recording begins at once, got {options.delay_ms!r}")
        super().__init__(os.path.basename(os.path.abspath(logdir)))
        self._folder = logdir

    def start(self) -> None:
        # A folder that cannot be created is reported before the work, not after it.
        os.makedirs(self._folder, exist_ok=True)
        super().start()

    def stop(self) -> None:
        super().stop()
        self.save_html(os.path.join(self._folder, "profile.html"))
        self.save_trace(os.path.join(self._folder, "trace.json"))


class _Trace:
    """Marks the start and end of a `with` block in the recording."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._name = " ".join([name, *(f"{key}={json.dumps(value, default=str)}" for key, value in kwargs.items())])

    def __enter__(self) -> _Trace:
        mark(self._name)
        return self

    def __exit__(self, *_: object) -> None:
        mark(f"{self._name}: end")


_current: _Logged | None = None


def _start(logdir: str | os.PathLike, options: Any = None) -> None:
    """Starts recording; `stop` writes `profile.html` and `trace.json` into the folder."""
    global _current
    started = _Logged(logdir, options)
    started.start()
    _current = started


def _stop(save: bool = True) -> None:
    """Stops the recording of `start` and writes it if `save`."""
    global _current
    if _current is None:
        raise RuntimeError("no profile is recording: call tf.profiler.experimental.start(logdir) first")
    ended, _current = _current, None
    if save:
        ended.stop()
    else:
        Profile.stop(ended)


experimental = SimpleNamespace(Profile=_Logged, ProfilerOptions=_Options, Trace=_Trace, start=_start, stop=_stop)

__all__ = ["Alive", "Mark", "Planned", "Profile", "Sample", "Time", "experimental", "mark"]
__getattr__, __dir__ = _namespace.plain(__name__)
