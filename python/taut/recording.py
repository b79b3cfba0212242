"""Recordings of the calls that a function makes while it is traced.

A function whose arguments have open dimensions is traced once. The calls that its code makes are recorded: ops, operators,
tapes, assignments, loops with the calls of their bodies. For a new size the recorded calls are made again on tensors of that
size, in a new trace, which is compiled and planned as any other; the function itself is not called.

That is right because the function's code cannot know a size. In its own lines, `x.shape` has None for open dimensions, as in
TensorFlow. Whatever else of a size it can learn (`len(x)`, the value of `tf.shape(x)`, a size that code of this package reads
for it outside of a recorded call) is recorded with its value, and a recording is used only where all of these are the same.
A call that cannot be recorded makes the recording useless for other sizes. Then the function is traced again, with a warning
that names the line.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import functools
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import numpy as np

from . import _native
from ._dispatch import answered, dispatching
from .replay import (
    Call,
    CastVariable,
    ChangedError,
    Objects,
    ObservedValue,
    Replayable,
    Trial,
    Weak,
    is_made,
    parts_of,
    rebuilt,
    replaying,
    sizes,
    tensors,
    unrecorded,
    with_tensors,
)
from .shape import TensorShape

_Function = TypeVar("_Function", bound=Callable)


#: Objects of these types are the same in every replay.
_CONSTANTS = (
    type(None),
    bool,
    int,
    float,
    complex,
    str,
    bytes,
    range,
    type,
    type(...),
    enum.Enum,
    np.generic,
    np.dtype,
    TensorShape,
    types.BuiltinFunctionType,
    _native.DType,
    _native.Op,
)


class UnknownError(Exception):
    """An object that a replay could not use."""


def frozen(value: Any, knows: Callable[[Any], bool]) -> Any:
    """A structure that later changes of lists and arrays do not affect, and that keeps no variable alive. `knows` says
    whether an object was made by a recorded call. Raises UnknownError for objects that a replay could not use.
    """
    if isinstance(value, _native.Tensor):
        if value.is_symbolic and not knows(value):
            raise UnknownError("a tensor comes from a call that cannot be recorded")
        return value
    if isinstance(value, (*_CONSTANTS, Body, Weak, CastVariable)) or knows(value) or _is_of_package(value):
        return value
    if hasattr(type(value), "_taut_read"):
        return _frozen_variable(value, knows)
    if isinstance(value, (_native.Variable, _native.Function)) or _is_stateful(value):
        return Weak(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.copy()
    if isinstance(value, list) and type(value).__module__.startswith(("taut.", "keras.")):
        value = list(value)  # an attribute of a layer or module
    is_subclass = isinstance(value, (dict, list)) and type(value) not in (dict, list, collections.OrderedDict)
    if parts_of(value) is None or is_subclass:
        raise UnknownError(f"an argument is a {type(value).__name__}")
    return rebuilt(value, lambda part: frozen(part, knows))


def _frozen_variable(variable: Any, knows: Callable[[Any], bool]) -> Any:
    """What is read of a variable of Keras now."""
    inner, dtype = variable._taut_read()
    if isinstance(inner, _native.Variable):
        return Weak(inner) if dtype == inner.dtype.name else CastVariable(inner, dtype)
    if dtype != inner.dtype.name:
        raise UnknownError(f"the variable {variable.path!r} has a value of another type in a stateless scope")
    return frozen(inner, knows)


def _is_of_package(value: Any) -> bool:
    """Whether it is a function or a method of this package, of the extension module or of Keras."""
    if isinstance(value, types.FunctionType):
        return (value.__module__ or "").startswith(("taut.", "keras."))
    return isinstance(value, (types.MethodDescriptorType, types.WrapperDescriptorType))


class Recording:
    """The calls of a function, or of the body of a loop or branch."""

    def __init__(self, arguments: Any, shapes: list[TensorShape] | None = None, body: Body | None = None) -> None:
        self.inputs = list(tensors(arguments))
        self._body = body
        self._outer = None if body is None else body.outer
        self._known = {id(one): one for one in self.inputs}
        self.entries: list[Call | ObservedValue] = []
        self._nodes = _native.num_traced_calls()
        # Of the arguments, as the signature has them; of other tensors, as they were found.
        self._shapes = dict(zip(map(id, self.inputs), shapes or ()))
        self.shapes = shapes
        self._trials: dict[bool, Trial] = {}
        self._observed: set[tuple[int, tuple]] = set()
        self.result: Any = None
        #: Why it holds for these sizes only, with the line.
        self.reason: str | None = None
        self.arguments: Any = None
        try:
            self.arguments = frozen(arguments, self.knows)
        except UnknownError as unknown:
            self.invalidate(_native.calling_line(), str(unknown))

    # Called by the extension module.

    def add_call(
        self, function: Any, args: tuple, kwargs: Any, result: Any, file: str, line: int, before: int, after: int
    ) -> None:
        """Adds a call. `before` and `after` are the numbers of nodes in the graph."""
        if before != self._nodes:
            self.invalidate(f"{file}:{line}", "a call before this one cannot be recorded")
        self._nodes = after
        try:
            self._learn(result)
            parts = [frozen(one, self.knows) for one in (function, args, kwargs or {}, result)]
        except UnknownError as unknown:
            self.invalidate(f"{file}:{line}", str(unknown))
            return
        self.entries.append(Call(parts[0], parts[1], parts[2], parts[3], (file, line)))

    def add_failure(self, error: BaseException, at: str) -> None:
        """Notes that a call has failed: what the code does then may depend on sizes."""
        # Loops and branches are traced again with another plan.
        if type(error).__name__ != "RetraceWithPlan":
            self.invalidate(at, "a call has failed")

    def invalidate(self, at: str, why: str) -> None:
        """Notes that the calls cannot be made again for other sizes."""
        if self.reason is None:
            self.reason = f"{why} (at {at}{layer_text()})"

    def shape(self, array: Any, dims: tuple, is_user_code: bool, at: str) -> TensorShape:
        """The shape of a tensor as the calling code may see it."""
        if not self.knows(array):
            return TensorShape(dims)
        is_user_code = is_user_code or (_saving.is_active and _is_of_keras(sys._getframe(1)))
        visible = self._visible_shape(array, dims) if is_user_code else TensorShape(dims)
        if visible.rank is not None:
            self.observe(array, tuple(visible), None, at)
        return visible

    def read(self, array: Any, at: str) -> None:
        """Notes that code reads the size or the value of a tensor."""
        if self.knows(array):
            self.observe(array, tuple(array.shape), None if array.is_symbolic else np.array(array), at)

    def rank(self, array: Any, at: str) -> None:
        """Notes that code reads the rank of a tensor."""
        if self.knows(array):
            self.observe(array, (None,) * len(sizes(array)), None, at)

    # The recording itself.

    def observe(self, array: Any, dims: tuple, value: Any, at: str) -> None:
        """Notes what code has read of a tensor: its sizes, with None for others, and its value."""
        if value is None:
            # Keras reads the same shape several times.
            if (id(array), dims) in self._observed:
                return
            self._observed.add((id(array), dims))
        self.entries.append(ObservedValue(array, dims, value, at + layer_text()))

    def knows(self, value: Any) -> bool:
        """Whether an object is an argument, or the result of a recorded call."""
        return id(value) in self._known or (self._outer is not None and self._outer.knows(value))

    def _learn(self, value: Any) -> None:
        """Notes that a call has made these objects."""
        if is_made(value):
            self._known.setdefault(id(value), value)
        parts = parts_of(value)
        if parts is not None:
            for part in parts:
                self._learn(part)
        elif not is_made(value) and not isinstance(value, (*_CONSTANTS, _native.Variable)):
            raise UnknownError(f"the result of a call is a {type(value).__name__}")

    def finish(self, result: Any) -> None:
        """Ends the recording with the function's result."""
        self._trials.clear()
        self._observed.clear()
        if _native.num_traced_calls() != self._nodes:
            self.invalidate(_native.calling_line(), "a call cannot be recorded")
        try:
            self.result = frozen(result, self.knows)
        except UnknownError as unknown:
            self.invalidate(_native.calling_line(), f"of the result, {unknown}")

    def replay(self, arguments: Any, outer: Objects | None = None) -> Any:
        """Makes the recorded calls with other arguments, and returns their result."""
        return self._replayed(arguments, outer).of(self.result)

    def _replayed(self, arguments: Any, outer: Objects | None = None) -> Objects:
        new = Objects(outer)
        new.pair(self.arguments, arguments)
        with replaying(True):
            for entry in self.entries:
                entry.replay(new)
        return new

    def _visible_shape(self, array: Any, dims: tuple) -> TensorShape:
        """The shape with None for the sizes that follow from open ones: those that other sizes of the arguments change."""
        known = self._shapes.get(id(array))
        if known is not None:
            return known
        found = self._outer._visible_shape(array, dims) if id(array) not in self._known and self._outer else None
        if found is None:
            found = self._tried_shape(array, dims)
        self._shapes[id(array)] = found
        return found

    def _tried_shape(self, array: Any, dims: tuple) -> TensorShape:
        shapes = self._outermost().shapes
        if shapes is None or self.reason is not None:
            return TensorShape(dims)
        # If the code has observed a rank, a trial with another rank fails, and one with this rank may not.
        has_open_rank = any(shape.rank is None for shape in shapes)
        for changes_rank in (True, False) if has_open_rank else (False,):
            try:
                with unrecorded():
                    other = self._other_shape(array, changes_rank)
            except Exception:
                continue
            if len(other) != len(dims):
                return TensorShape(None)
            return TensorShape(a if a == b else None for a, b in zip(dims, other))
        # The calls are not possible for these sizes: then the code sees the size that it has.
        return TensorShape(dims)

    def _other_shape(self, array: Any, changes_rank: bool) -> tuple:
        """The shape of a tensor for other sizes of the arguments."""
        if self._body is None:
            trial = self._trials.get(changes_rank)
            if trial is None:
                trial = self._trials[changes_rank] = Trial(self.arguments, self.trial_arguments(changes_rank))
            if not trial.is_whole:
                shape = trial.shape(array, self.entries)
                if not trial.is_whole:
                    return shape
        made: list[tuple] = []
        self._try(lambda new: made.append(tuple(new.of(array).shape)), changes_rank)
        return made[0]

    def _outermost(self) -> Recording:
        return self if self._outer is None else self._outer._outermost()

    def _try(self, work: Callable[[Objects], Any], changes_rank: bool) -> None:
        """Calls `work` with the objects of the calls so far, made for other sizes."""
        if self._body is None or self._outer is None:
            _native.trace_only(lambda given: work(self._replayed(given)), self.trial_arguments(changes_rank))
        else:
            enter = self._body.enter
            self._outer._try(
                lambda new: enter(new, lambda *given: work(self._replayed(given, new))),
                changes_rank,
            )

    def trial_arguments(self, changes_rank: bool) -> Any:
        """The arguments with other sizes of open dimensions; with `changes_rank`, with another rank where that is open."""
        others = {dim: 2 * dim if dim > 1 else 6 for one in self.inputs for dim in sizes(one)}

        def trial(one: Any, shape: TensorShape) -> Any:
            given = sizes(one)
            if shape.rank is None:
                made = [6, *given] if changes_rank else [others[dim] for dim in given]
            else:
                made = [others[dim] if open is None else dim for dim, open in zip(given, shape)]
            return _native.placeholder(one.dtype, made)

        assert self.shapes is not None
        return with_tensors(self.arguments, iter([trial(*pair) for pair in zip(self.inputs, self.shapes)]))


class _Running(threading.local):
    op_by_op = 0


#: How many functions that could not be traced run on this thread.
running = _Running()


class _Saving(threading.local):
    def __init__(self) -> None:
        self.is_active = False
        #: The layers whose calls are being recorded, from the outermost to the innermost. After an error, that which has failed
        #: is the last.
        self.callers: list[Any] = []


_saving = _Saving()


def is_saving() -> bool:
    """Whether calls are recorded on this thread to be written to a file, which has no objects of the user: of Keras's layers it
    has the calls that they make.
    """
    return _saving.is_active


@contextlib.contextmanager
def saving() -> Iterator[None]:
    """While calls are recorded to be written to a file."""
    before, _saving.is_active, _saving.callers = (_saving.is_active, _saving.callers), True, []
    try:
        yield
    finally:
        _saving.is_active, _saving.callers = before


def layer_text() -> str:
    """Names the layer whose calls are being recorded; empty for calls outside of layers."""
    if not _saving.callers:
        return ""
    layer = _saving.callers[-1]
    return f", in the layer {getattr(layer, 'name', '')!r} of class {type(layer).__name__}"


def _is_of_keras(frame: types.FrameType) -> bool:
    """Whether a frame is of Keras itself, whose code, too, expects None for open dimensions."""
    return str(frame.f_globals.get("__name__")).startswith("keras.")


def _is_stateful(value: Any) -> bool:
    """Whether it is an object whose tensors are variables, so that a replay can use the same one."""
    from . import optimizers, random
    from .module import Module

    return isinstance(value, (Module, optimizers.Optimizer, random.Generator, *_stateful_classes))


#: Further classes of such objects.
_stateful_classes: list[type] = []


def record_calls(stateful: type, is_inlined: Callable[[], bool]) -> None:
    """Records each call of an object of this class as one, except for a file, and where `is_inlined` says that the call depends
    on more than the object.
    """
    _stateful_classes.append(stateful)
    call = stateful.__call__
    as_one = recorded(call)

    @functools.wraps(call)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not _saving.is_active:
            is_whole = not _native.is_recording_calls() or not is_inlined()
            return (as_one if is_whole else call)(self, *args, **kwargs)
        depth = len(_saving.callers)
        _saving.callers.append(self)
        made = call(self, *args, **kwargs)
        # With those that have failed inside of it.
        del _saving.callers[depth:]
        return made

    setattr(stateful, "__call__", called)


class _EnteredError(Exception):
    """Leaves a call whose body was entered."""


class Body(Replayable):
    """A function among the arguments of a recorded call: the body of a loop, a branch. Its calls are recorded, too."""

    def __init__(self, function: Callable, outer: Recording, call: list) -> None:
        self._function, self.outer = function, outer
        #: The function that calls it, and its arguments.
        self._call = call
        self.recordings: list[Recording] = []

    def enter(self, new: Objects, work: Callable) -> None:
        """Makes the call of which it is an argument with new objects, and calls `work` in place of its function, once."""

        def once(*args: Any) -> Any:
            work(*args)
            raise _EnteredError

        def argument(value: Any) -> Any:
            if value is self:
                return once
            return list(map(argument, value)) if type(value) is list else new.of(value)

        native, *args = self._call
        with contextlib.suppress(_EnteredError):
            native(*map(argument, args))

    def __call__(self, *args: Any) -> Any:
        """Calls the function, and records its calls."""
        recording = Recording(args, body=self)
        before = _native.set_recording(recording)
        try:
            result = self._function(*args)
        finally:
            _native.set_recording(before)
        recording.finish(result)
        if recording.reason is not None and self.outer.reason is None:
            self.outer.reason = recording.reason
        self.recordings.append(recording)
        return result

    def used(self) -> Iterator[Any]:
        """The tensors that its calls use."""
        for recording in self.recordings:
            for entry in recording.entries:
                yield from entry.used()
            yield from tensors(recording.result)

    def replayed(self, new: Objects) -> Callable:
        """A function that makes the recorded calls with the new objects."""
        # A body that is traced several times makes the same calls each time, unless what it has observed differs.
        calls = iter(self.recordings)
        last = None

        def call(*args: Any) -> Any:
            nonlocal last
            last = next(calls, last)
            if last is None:
                raise ChangedError
            return last.replay(args, new)

        return call


def call_with_functions(native: Callable, *args: Any) -> Any:
    """Calls a function of the extension module that calls functions among its arguments while it traces."""
    if not _native.is_recording_calls():
        return native(*args)
    recording = _native.set_recording(None)
    _native.set_recording(recording)

    call: list[Any] = [native]

    def wrapped(value: Any) -> Any:
        if isinstance(value, list) and value and all(map(callable, value)):
            return [Body(one, recording, call) for one in value]
        return Body(value, recording, call) if callable(value) and not isinstance(value, _native.Op) else value

    call += map(wrapped, args)
    try:
        return _native.recorded_call(native, tuple(call[1:]))
    finally:
        # A recording keeps no variables alive.
        call.clear()


def call_recorded(function: Callable, *args: Any) -> Any:
    """Calls a function of the extension module that a replay can call again."""
    return _native.recorded_call(function, args) if _native.is_recording_calls() else function(*args)


def recorded(function: _Function) -> _Function:
    """A function of this package of which a recording has the call, and not the calls that it makes."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            if not _native.is_recording_calls() or any(map(_calls_back, (*args, *kwargs.values()))):
                return function(*args, **kwargs)
            return _native.recorded_call(function, args, kwargs)
        except Exception as error:
            if dispatching((*args, *kwargs.values())) is None:
                raise
            return answered(call, args, kwargs, error)

    _recorded_functions.update((function, call))
    return call  # type: ignore[return-value]


_recorded_functions: set[Callable] = set()


def is_recorded(function: Any) -> bool:
    """Whether `recorded` has made it, or was given it."""
    return isinstance(function, types.FunctionType) and function in _recorded_functions


def _calls_back(value: Any) -> bool:
    """Whether an argument is a function of the user, which makes calls of its own."""
    return isinstance(value, (types.FunctionType, types.MethodType, functools.partial))
