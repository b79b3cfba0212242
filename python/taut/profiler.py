"""What happened when: every buffer and call of a piece of work, and the page that shows it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

from . import _native
from ._native import mark


class Alive(NamedTuple):
    """Bytes that were there at a moment: what for, the op and the line that made them, and why they were there."""

    bytes: int
    kind: str
    op: str | None
    line: str | None
    why: str


class Planned(NamedTuple):
    """The runs of one traced function: the peak that was planned, and the largest and smallest that were measured."""

    line: str
    steps: int
    runs: int
    planned: int
    measured: int
    least: int
    seconds: float

    @property
    def is_exact(self) -> bool:
        """Whether every run held at its peak what was planned, to the byte."""
        return self.planned == self.measured == self.least


class Time(NamedTuple):
    """The time of calls that have something in common; `own` is without what is called inside of them."""

    op: str
    gradient_of: str | None
    line: str | None
    calls: int
    seconds: float
    own: float
    gflops: float | None
    gigabytes: float | None


class Mark(NamedTuple):
    """A moment that `mark` named, and the bytes that were live then."""

    at: float
    name: str
    live_bytes: int


class Sample(NamedTuple):
    """The bytes of each kind from a moment on, until the next one."""

    at: float
    by_kind: dict[str, int]

    @property
    def live_bytes(self) -> int:
        """All of them: what `tf.memory.live_bytes()` said then."""
        return sum(self.by_kind.values())


class Profile:
    """Records a `with` block, on all threads: buffers, calls, steps of traced functions. There is one at a time.

    >>> import taut as tf
    >>> x = tf.ones([1000])
    >>> with tf.profiler.Profile("a sum") as profile:
    ...     total = tf.reduce_sum(tf.exp(x))
    >>> sum(row.bytes for row in profile.alive()) == profile.peak_bytes
    True
    >>> sorted(row.op for row in profile.by_op())
    ['exp', 'sum']

    It keeps a million changes of memory and a million calls, or `capacity` of each; what there is no room for is counted in
    `dropped`, and a warning tells of it.
    """

    def __init__(self, title: str = "profile", capacity: int | None = None) -> None:
        if capacity is not None and capacity < 1:
            raise ValueError(f"a profile needs room for one change and one call at least, not for {capacity}")
        self.title = title
        self._capacity = capacity
        self._profiler: _native.Profiler | None = None
        self._timeline: _native.Timeline | None = None

    def start(self) -> None:
        """Begins to record."""
        if self._profiler is not None:
            raise RuntimeError("this profile is being recorded already")
        capacity = () if self._capacity is None else (self._capacity,)
        self._profiler, self._timeline = _native.Profiler(*capacity), None

    def stop(self) -> None:
        """Ends the recording. What happened can be asked from now on."""
        profiler, self._profiler = self._profiler, None
        if profiler is None:
            raise RuntimeError("this profile is not being recorded: call start() or use it in a `with` statement")
        self._timeline = profiler.finish()

    def __enter__(self) -> Profile:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        # It may have been stopped inside.
        if self._profiler is not None:
            self.stop()

    def _recorded(self) -> _native.Timeline:
        if self._timeline is None:
            raise RuntimeError("a profile answers when its recording is over")
        return self._timeline

    @property
    def seconds(self) -> float:
        """How long it was recorded."""
        return self._recorded().duration

    @property
    def peak_bytes(self) -> int:
        """The most bytes that were live at a time, those included that were there before."""
        return self._recorded().peak_bytes

    @property
    def peak_at(self) -> float:
        """When that was, in seconds from the start."""
        return self._recorded().peak_at

    @property
    def live_at_start(self) -> int:
        """The bytes that were live when recording began."""
        return self._recorded().live_at_start

    @property
    def live_at_end(self) -> int:
        """The bytes that were live when recording ended."""
        return self._recorded().live_at_end

    @property
    def dropped(self) -> tuple[int, int, int]:
        """How many changes of memory, calls and marks there was no room for."""
        return self._recorded()._dropped

    def alive(self, at: float | None = None) -> list[Alive]:
        """Everything that was alive at a moment, or at the peak, the largest first. The rows sum to the bytes that were live."""
        return [Alive(*row) for row in self._recorded()._alive_at(at)]

    def memory(self) -> list[Sample]:
        """The bytes of each kind, at every moment at which they changed."""
        return [Sample(at, dict(kinds)) for at, kinds in self._recorded()._memory()]

    def planned(self) -> list[Planned]:
        """Every traced function that ran: what was planned, and what was measured."""
        return [Planned(*row) for row in self._recorded()._planned()]

    def by_op(self) -> list[Time]:
        """Time per op, the largest own time first. What is part of a gradient stands apart."""
        return [Time(*row) for row in self._recorded()._by_op()]

    def by_line(self) -> list[Time]:
        """Time per line of your program, the largest own time first."""
        return [Time(*row) for row in self._recorded()._by_line()]

    def marks(self) -> list[Mark]:
        """The moments that `tf.profiler.mark` named."""
        return [Mark(*row) for row in self._recorded()._marks()]

    def save_html(self, path: str | os.PathLike, plans: Mapping[str, _native.Plan] | None = None) -> None:
        """Writes one page for a browser: memory over time, who is alive at any moment and why, time per op and line, planned
        against measured, and the plans of what ran. `plans` names some of those (`{"step": step.plan(x)}`)."""
        self._recorded()._save_html(path, self.title, list((plans or {}).items()))

    def save_trace(self, path: str | os.PathLike) -> None:
        """Writes the recording in the trace event format, which Perfetto and chrome://tracing open."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._recorded().to_chrome_trace())


class _Logged(Profile):
    """A profile that is written to a folder when it ends."""

    def __init__(self, logdir: str | os.PathLike, options: Any = None) -> None:
        if options is not None:
            raise ValueError("everything is recorded: there are no options of tracing levels")
        super().__init__(os.path.basename(os.path.abspath(logdir)))
        self._folder = logdir

    def start(self) -> None:
        # A folder that cannot be made is told before the work, not after it.
        os.makedirs(self._folder, exist_ok=True)
        super().start()

    def stop(self) -> None:
        super().stop()
        self.save_html(os.path.join(self._folder, "profile.html"))
        self.save_trace(os.path.join(self._folder, "trace.json"))


class _Trace:
    """Names the beginning and the end of a `with` block in the recording, with what else is said of it."""

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._name = " ".join([name, *(f"{key}={json.dumps(value, default=str)}" for key, value in kwargs.items())])

    def __enter__(self) -> _Trace:
        mark(self._name)
        return self

    def __exit__(self, *_: object) -> None:
        mark(f"{self._name}: end")


_current: _Logged | None = None


def _start(logdir: str | os.PathLike, options: Any = None) -> None:
    """Begins to record; `stop` writes `profile.html` and `trace.json` into the folder."""
    global _current
    started = _Logged(logdir, options)
    started.start()
    _current = started


def _stop(save: bool = True) -> None:
    """Ends the recording that `start` began, and writes it unless it is not to be saved."""
    global _current
    if _current is None:
        raise RuntimeError("no profile is being recorded: call tf.profiler.experimental.start(logdir) before")
    ended, _current = _current, None
    if save:
        ended.stop()
    else:
        Profile.stop(ended)


experimental = SimpleNamespace(Profile=_Logged, Trace=_Trace, start=_start, stop=_stop)

__all__ = ["Alive", "Mark", "Planned", "Profile", "Sample", "Time", "experimental", "mark"]
