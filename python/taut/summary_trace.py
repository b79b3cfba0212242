"""Graphs and profiles of the functions that run for a while: `tf.summary.trace_on`, `trace_export`, `trace_off`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from . import _native, nest, profiler
from .concrete_function import as_spec
from .errors import DynamicShapeError
from .example_protos import field
from .function import Function

# The plugins of TensorBoard that show graphs, and graphs beside a profile.
_GRAPH, _WITH_PROFILE = "graph_run_metadata_graph", "graph_run_metadata"


class _Trace:
    """What `trace_on` has begun."""

    def __init__(self, graph: bool, folder: str | None) -> None:
        self.notes_graphs, self.folder = graph, folder
        #: The functions that were called, with the specs of their arguments.
        self.calls: list[tuple[Function, Any]] = []
        self._call: Callable | None = None
        if graph:
            self._observe()
        if folder is not None:
            profiler.experimental.start(folder)

    def _observe(self) -> None:
        """Notes the calls of functions. Otherwise they are not slowed down."""
        self._call = original = Function.__call__

        @functools.wraps(original)
        def call(function: Function, *args: Any, **kwargs: Any) -> Any:
            if not _native.is_tracing():
                given = nest.map_structure(as_spec, (args, kwargs))
                if not any(known is function and _same(own, given) for known, own in self.calls):
                    self.calls.append((function, given))
            return original(function, *args, **kwargs)

        setattr(Function, "__call__", call)

    def end(self, saves: bool) -> None:
        """Ends it; writes the profile if `saves`."""
        if self._call is not None:
            setattr(Function, "__call__", self._call)
        if self.folder is not None:
            profiler.experimental.stop(save=saves)

    def graphs(self) -> list[bytes]:
        """The graphs of the functions that were called. One that runs op by op has none."""
        from .summary import graph_message

        found = []
        for function, (args, kwargs) in self.calls:
            try:
                found.append(graph_message(function.get_concrete_function(*args, **kwargs).plan))
            except DynamicShapeError:
                continue
        return found


def _same(one: Any, other: Any) -> bool:
    """Whether two structures of specs and other arguments are equal."""
    try:
        return bool(one == other)
    except Exception:
        # Arrays compare elementwise.
        return False


_current: _Trace | None = None


def trace_on(graph: bool = True, profiler: bool = False, profiler_outdir: str | None = None) -> None:
    """Starts to note the graphs of the traced functions that are called, and to record a profile into a folder.

    `trace_export` writes them; one is on at a time.
    """
    global _current
    if _current is not None:
        from ._ops.scopes import get_logger

        get_logger().warning("Trace already enabled")
        return
    if profiler and profiler_outdir is None:
        raise ValueError(
            "trace_on: profiler_outdir must be given for a profile: it is the folder that it is written to"
        )
    _current = _Trace(graph, profiler_outdir if profiler else None)


def trace_off() -> None:
    """Ends the trace; nothing is written."""
    global _current
    if _current is not None:
        ended, _current = _current, None
        ended.end(saves=False)


def trace_export(name: str, step: Any = None, profiler_outdir: str | None = None) -> None:
    """Ends the trace: writes the graphs of the functions that were called, and the profile if there is one.

    A graph is that of a plan: a node per step, with its line. The folder of the profile is that of `trace_on`;
    without a profile, none is written to.
    """
    global _current
    from . import summary

    if _current is None:
        raise ValueError("Must enable trace before export through tf.summary.trace_on.")
    if _current.folder is not None and profiler_outdir not in (None, _current.folder):
        raise ValueError(f"trace_export: profiler_outdir must be that of trace_on, {_current.folder!r}")
    if _current.notes_graphs:
        # Of a `RunMetadata`, field 4 is a function's graphs, of which field 2 is the one before optimization.
        message = b"".join(field(4, field(2, one)) for one in _current.graphs())
        plugin = _GRAPH if _current.folder is None else _WITH_PROFILE
        metadata = summary.SummaryMetadata(plugin, b"1")
        summary.write(name, _native.string_tensor(message), step, metadata)
    ended, _current = _current, None
    ended.end(saves=True)
