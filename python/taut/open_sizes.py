"""Traces of a function whose arguments have open dimensions: one for all sizes."""

from __future__ import annotations

import collections
import contextlib
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _native, nest
from .errors import InvalidArgumentError
from .recording import Recording, UnknownError, frozen
from .replay import ChangedError, Objects, is_replaying, replaying, sizes, tensors
from .shape import TensorShape
from .spec import TensorSpec

#: How many recordings a function keeps. Several are needed if its code has observed different sizes.
_KEPT = 16


class _Depth(threading.local):
    recordings = 0
    is_trial = False


#: How many functions are recorded on this thread (those that they call are recorded, too), and whether sizes are tried.
_depth = _Depth()


class Traces:
    """Calls the Python code of a function for a trace, or makes the calls that it has made before."""

    def __init__(self, name: str, specs: list[TensorSpec] | None, reduce_retracing: bool, on_retrace: str) -> None:
        self._name, self._on_retrace = name, on_retrace
        self._declared = None if specs is None else [spec.shape for spec in specs]
        self._reduces = reduce_retracing
        #: Whether the code is called once, for all sizes: no later call may leave the dimensions open that vary.
        self._is_final = reduce_retracing and specs is None and on_retrace == "deny"
        #: What the code was called for: the types and sizes of tensors, and other arguments.
        self._first: list[Any] | None = None
        self._recordings: list[Recording] = []
        # For `reduce_retracing`: arguments, and the shapes of their tensors so far.
        self._shapes: list[tuple[Any, list[TensorShape]]] = []
        self._has_warned = False
        #: What the code was traced for, with the shapes of open dimensions: for `tf.saved_model.save`.
        self.traced_for: list[tuple[Any, list[TensorShape] | None]] = []
        #: Whether a call ran op by op because it could not be traced.
        self.ran_op_by_op = False
        #: Whether the code is recorded.
        self.is_recorded = True
        #: How often the code was called.
        self.count = 0
        #: Whether the code must run op by op once, to create variables, and whether it has done so since it was traced.
        self.needs_variables = self.is_obsolete = False
        #: Those of another function that counts these calls, too.
        self.counted_by: Traces | None = None

    def call(self, function: Callable, args: tuple, kwargs: dict, reports: bool = True) -> Any:
        """The result of the function's code for these arguments, in a trace. With `reports`, a trace that is necessary only
        because a recording does not hold for a new size is reported.
        """
        arguments = (args, kwargs)
        found, reason = self._find(arguments)
        if found is not None:
            return found.replay(arguments)
        if self._is_final and self._first is not None and self._first != _described(arguments):
            self._deny(reason or _change(self._first, _described(arguments)))
        if reason is not None and reports:
            self._report(reason)
        shapes = self._open_shapes(arguments)
        self.count += 1
        if self.counted_by is not None:
            self.counted_by.count += 1
        if not self.is_recorded or (shapes is None and not _depth.recordings and not is_replaying()):
            result = function(*args, **kwargs)
            self.note(arguments, shapes)
            return result
        # If this is the only call of the code, it sees the sizes of this call, and what it reads of them is noted.
        recording = Recording(arguments, None if self._is_final else shapes)
        before = _native.set_recording(recording)
        try:
            with calls_recorded():
                result = function(*args, **kwargs)
        finally:
            _native.set_recording(before)
        recording.finish(result)
        self.note(arguments, shapes)
        if self._is_final:
            self._first, recording.shapes = _described(arguments), shapes
        self._recordings = [*self._recordings[-_KEPT + 1 :], recording]
        return result

    def note(self, arguments: Any, shapes: list[TensorShape] | None) -> None:
        """Notes what the code was traced for, unless that is part of another function."""
        is_outermost = self._declared is None and not _depth.recordings and not is_replaying()
        if is_outermost and len(self.traced_for) < _NOTES:
            self.traced_for.append((_noted(arguments), shapes))

    def forget(self) -> None:
        """Drops what was recorded."""
        self.traced_for = []
        self._recordings, self._shapes, self._first = [], [], None

    def _find(self, arguments: Any) -> tuple[Recording | None, str | None]:
        """The recording for these arguments; if there is none, why those for other sizes do not hold."""
        reason = None
        for recording in reversed(self._recordings):
            if not self._covers(recording, arguments):
                continue
            if recording.reason is not None:
                # Without open dimensions the sizes are those of the recording.
                reason = recording.reason if recording.shapes is not None or is_replaying() else reason
                continue
            try:
                # In a trace of its own: one that fails halfway may have assigned to variables.
                _native.trace_only(lambda *given, recording=recording: recording.replay(given), *arguments)
            except ChangedError as changed:
                reason = str(changed)
            except Exception as error:
                # The function's own code reports it with its lines.
                reason = f"with these sizes a call fails: {error}"
            else:
                return recording, None
        return None, reason

    def _covers(self, recording: Recording, arguments: Any) -> bool:
        """Whether a recording is for arguments like these, with open dimensions of any size. If a function without open
        dimensions is called by another, its recording is for any size in replays of that one, and for its own sizes elsewhere.
        """
        try:
            Objects().pair(recording.arguments, arguments)
        except ChangedError:
            return False
        given = list(tensors(arguments))
        if any(old.dtype != new.dtype for old, new in zip(recording.inputs, given)):
            return False
        shapes = recording.shapes
        if shapes is None:
            return is_replaying() or all(sizes(old) == sizes(new) for old, new in zip(recording.inputs, given))
        return all(shape.is_compatible_with(sizes(one)) for shape, one in zip(shapes, given))

    def _open_shapes(self, arguments: Any) -> list[TensorShape] | None:
        """The shapes of the tensors with None for open dimensions, or None if there are none."""
        given = [TensorShape(sizes(one)) for one in tensors(arguments)]
        if self._declared is not None:
            shapes = self._declared
        elif self._is_final:
            return [TensorShape(None) for _ in given]
        elif self._reduces:
            shapes = self._relaxed(arguments, given)
        else:
            return None
        is_open = len(shapes) == len(given) and not all(shape.is_fully_defined() for shape in shapes)
        return shapes if is_open else None

    def _relaxed(self, arguments: Any, given: list[TensorShape]) -> list[TensorShape]:
        """The shapes of these tensors and of those before, where they agree."""
        for i, (known, shapes) in enumerate(self._shapes):
            try:
                Objects().pair(known, arguments)
            except ChangedError:
                continue
            if any(old.dtype != new.dtype for old, new in zip(tensors(known), tensors(arguments))):
                continue
            relaxed = [_common(*pair) for pair in zip(shapes, given)]
            self._shapes[i] = (known, relaxed)
            return relaxed
        # Otherwise there are arguments that cannot be compared later.
        with contextlib.suppress(UnknownError):
            self._shapes = [*self._shapes[-_KEPT + 1 :], (frozen(arguments, _is_tensor), given)]
        return given

    def _deny(self, reason: str) -> None:
        raise InvalidArgumentError(
            f"{self._name} must not be traced again, but {reason}\n"
            f"  at {_native.calling_line()}\n  help: use tf.shape(x) in ops instead of sizes in Python"
        )

    def _report(self, reason: str) -> None:
        if self._on_retrace == "deny":
            self._deny(f"a new size of an open dimension needs it: {reason}")
        if self._on_retrace == "warn" and not self._has_warned and not _depth.is_trial:
            self._has_warned = True
            file, _, line = _native.calling_line().rpartition(":")
            text = f"{self._name} is traced again for a new size of an open dimension: {reason}"
            warnings.warn_explicit(text, RuntimeWarning, file, int(line) if line.isdigit() else 0)


def _described(arguments: Any) -> list[Any]:
    """What of arguments a trace is for. Objects that are not plain values count by their identity."""
    found: list[Any] = []
    for leaf in nest.flatten(arguments):
        if isinstance(leaf, _native.Array) and not isinstance(leaf, _native.Variable):
            found.append(f"{leaf.dtype.name}{list(sizes(leaf))}")
        else:
            found.append((type(leaf), leaf if isinstance(leaf, _PLAIN) else id(leaf)))
    return found


def _noted(value: Any) -> Any:
    """Arguments with specs in place of tensors, and without objects that would be kept alive."""
    if isinstance(value, _native.Tensor):
        return TensorSpec(sizes(value), value.dtype)
    if type(value) in (dict, collections.OrderedDict):
        return type(value)((key, _noted(part)) for key, part in value.items())
    if type(value) in (list, tuple):
        return type(value)(map(_noted, value))
    return value if isinstance(value, _NOTED) else Unnoted(type(value).__name__)


class Unnoted:
    """Stands for an argument of a trace that is neither a tensor nor a plain value."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


#: How many signatures are noted: as many as there are traces.
_NOTES = 1000

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
_NOTED = (*_PLAIN, np.generic, _native.DType, TensorShape)


def _change(before: list[Any], now: list[Any]) -> str:
    """How arguments differ from those that the code was called for."""
    if len(before) != len(now):
        return f"it was called with {len(before)} arguments, and is with {len(now)}"
    pairs = [pair for pair in zip(before, now) if pair[0] != pair[1]]
    old, new = (one if isinstance(one, str) else one[0].__name__ for one in pairs[0])
    return f"an argument was {old} and is {new}" if old != new else f"an argument of type {old} is another one"


def _is_tensor(value: Any) -> bool:
    return isinstance(value, _native.Tensor)


def _common(one: TensorShape, other: TensorShape) -> TensorShape:
    return one if one.rank is None else one.most_specific_compatible_shape(other)


@contextlib.contextmanager
def calls_recorded() -> Iterator[None]:
    """While a function's code is recorded. If a replay calls it, its own calls are not part of that replay."""
    _depth.recordings += 1
    # What is recorded are calls with these variables.
    _native.bind_variables_by_identity(True)
    try:
        with replaying(False):
            yield
    finally:
        _native.bind_variables_by_identity(False)
        _depth.recordings -= 1


@contextlib.contextmanager
def trying_sizes() -> Iterator[None]:
    """While a function is traced for sizes that it need not take: that it is traced again is not reported."""
    before, _depth.is_trial = _depth.is_trial, True
    try:
        yield
    finally:
        _depth.is_trial = before
