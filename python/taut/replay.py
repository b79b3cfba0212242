"""Recorded calls, and the objects with which they are made again."""

from __future__ import annotations

import abc
import contextlib
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _native


class ChangedError(Exception):
    """Something that the function's code has observed while tracing is different."""


class Call:
    """A call with its arguments and its result."""

    def __init__(self, function: Any, args: Any, kwargs: Any, result: Any, line: tuple[str, int]) -> None:
        self.function, self.args, self.kwargs, self.result, self.line = function, args, kwargs, result, line

    def used(self) -> Iterator[Any]:
        """The tensors that it uses."""
        yield from tensors((self.function, self.args, self.kwargs))

    def replay(self, new: Objects) -> None:
        """Does with the new objects what was recorded."""
        function, args, kwargs = new.of(self.function), new.of(self.args), new.of(self.kwargs)
        _native.set_replayed_line(*self.line)
        try:
            made = function(*args, **kwargs)
        finally:
            _native.set_replayed_line()
        new.pair(self.result, made)


class ObservedValue:
    """A rank, shape or value that the function's code has observed while tracing. None is a size that it has not observed."""

    def __init__(self, array: Any, dims: tuple, value: Any, at: str) -> None:
        self.array, self.dims, self.value, self.at = array, dims, value, at

    def used(self) -> Iterator[Any]:
        """The tensors that it uses."""
        yield from tensors(self.array)

    def replay(self, new: Objects) -> None:
        """Does with the new objects what was recorded."""
        array = new.of(self.array)
        shape = tuple(array.shape)
        if len(shape) != len(self.dims) or any(a is not None and a != b for a, b in zip(self.dims, shape)):
            raise ChangedError(f"its code has read a size that is another one now (at {self.at})")
        if self.value is not None and not np.array_equal(
            self.value, np.asarray(array), equal_nan=_is_float(self.value)
        ):
            raise ChangedError(f"its code has read a value that is another one now (at {self.at})")


def _is_float(value: np.ndarray) -> bool:
    return value.dtype.kind in "fc"


class Replayable(abc.ABC):
    """What a recording has in place of an object that a replay finds or makes anew."""

    @abc.abstractmethod
    def replayed(self, _new: Objects) -> Any:
        """The object in a replay."""

    def used(self) -> Iterator[Any]:
        """The tensors of other calls that it uses."""
        return iter(())


class Weak(Replayable):
    """An object that a recording does not keep alive: a variable, a layer, another function."""

    def __init__(self, value: Any) -> None:
        self._reference, self.kind = weakref.ref(value), type(value)

    def replayed(self, _new: Objects) -> Any:
        """The object."""
        return self.get()

    def get(self) -> Any:
        """The object. Raises ChangedError if it no longer exists."""
        found = self._reference()
        if found is None:
            raise ChangedError("an object that its code has used no longer exists")
        return found


class CastVariable(Replayable):
    """A variable whose value is read in another type, as those of Keras's layers are where they compute in `float16`."""

    def __init__(self, variable: Any, dtype: Any) -> None:
        self.variable, self.dtype = Weak(variable), dtype

    def replayed(self, _new: Objects) -> Any:
        """The value in that type."""
        from ._ops.casting import cast

        return cast(self.variable.get(), self.dtype)


class Objects:
    """The objects of a replay in place of the recorded ones."""

    def __init__(self, outer: Objects | None = None) -> None:
        self._outer = outer
        #: By the ids of the recorded ones.
        self.own: dict[int, Any] = {}

    def find(self, old: Any) -> Any:
        """The object in place of a recorded one; None if it stays."""
        found = self.own.get(id(old))
        return self._outer.find(old) if found is None and self._outer is not None else found

    def of(self, value: Any) -> Any:
        """A recorded structure, with new objects."""
        if isinstance(value, Replayable):
            return value.replayed(self)
        found = self.find(value)
        return rebuilt(value, self.of) if found is None else found

    def pair(self, old: Any, new: Any) -> None:
        """Takes the parts of a new result in place of those of the recorded one."""
        if isinstance(old, Weak):
            old = old.get()
        if is_made(old):
            if type(old) is not type(new):
                raise ChangedError
            self.own[id(old)] = new
        parts = parts_of(old)
        if parts is None:
            if not is_made(old) and not _is_same(old, new):
                raise ChangedError
            return
        others = parts_of(new)
        if type(old) is not type(new) or others is None or len(parts) != len(others):
            raise ChangedError
        if isinstance(old, dict) and list(old) != list(new):
            raise ChangedError
        for one, other in zip(parts, others):
            self.pair(one, other)


def _is_same(old: Any, new: Any) -> bool:
    if old is new:
        return True
    if isinstance(old, _native.Array):
        return False
    try:
        return type(old) is type(new) and bool(old == new)
    except Exception:
        return False


def is_made(value: Any) -> bool:
    """Whether calls make such objects: a replay has others."""
    return isinstance(value, (_native.Tensor, _native.GradientTape, _native.ForwardAccumulator)) or _is_slices(value)


def _is_slices(value: Any) -> bool:
    return type(value).__name__ == "IndexedSlices" and type(value).__module__ == "taut.indexed_slices"


def parts_of(value: Any) -> list | None:
    """The parts of a structure, or None for a leaf."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, (list, tuple)):
        return list(value)
    if isinstance(value, slice):
        return [value.start, value.stop, value.step]
    if _is_slices(value):
        return [value.values, value.indices, value._static_shape]
    return None


def rebuilt(value: Any, change: Callable) -> Any:
    """A structure with each part changed. Leaves stay."""
    if isinstance(value, dict):
        return type(value)((key, change(part)) for key, part in value.items())
    if isinstance(value, tuple):
        made = [change(part) for part in value]
        return type(value)(*made) if hasattr(value, "_fields") else tuple(made)
    if type(value) is list:
        return [change(part) for part in value]
    if isinstance(value, slice):
        return slice(change(value.start), change(value.stop), change(value.step))
    if _is_slices(value):
        return type(value)(change(value.values), change(value.indices), value._static_shape)
    return value


class _Replay(threading.local):
    is_active = False


_replay = _Replay()


def is_replaying() -> bool:
    """Whether the calls of a recording are made again on this thread."""
    return _replay.is_active


@contextlib.contextmanager
def replaying(is_active: bool) -> Iterator[None]:
    """Sets whether the calls that follow are those of a replay."""
    before, _replay.is_active = _replay.is_active, is_active
    if is_active:
        _native.bind_variables_by_identity(True)
    try:
        yield
    finally:
        _replay.is_active = before
        if is_active:
            _native.bind_variables_by_identity(False)


class Trial:
    """Recorded calls made for other sizes of the arguments, to see which sizes follow from those. Each call is made once."""

    def __init__(self, arguments: Any, others: Any) -> None:
        self._objects = Objects()
        self._objects.pair(arguments, others)
        self._count = 0
        #: Whether the calls cannot be made one by one: tapes belong to one trace.
        self.is_whole = False

    def shape(self, array: Any, entries: list[Call | ObservedValue]) -> tuple:
        """The shape of a tensor, which these calls make."""
        while self._count < len(entries):
            self._advance(entries[self._count :])
            self._count = len(entries)
        return tuple(self._objects.of(array).shape)

    def _advance(self, entries: list[Call | ObservedValue]) -> None:
        made = Objects(self._objects)
        used = {id(one): one for entry in entries for one in entry.used()}
        found = [(key, self._objects.find(one)) for key, one in used.items()]
        inputs = [(key, one) for key, one in found if isinstance(one, _native.Tensor) and one.is_symbolic]

        def run(*given: Any) -> tuple:
            made.own.update(zip((key for key, _ in inputs), given))
            with replaying(True):
                for entry in entries:
                    entry.replay(made)
            return ()

        _native.trace_only(run, *(one for _, one in inputs))
        for key, one in made.own.items():
            if isinstance(one, _native.Tensor):
                self._objects.own[key] = _native.placeholder(one.dtype, list(one.shape)) if one.is_symbolic else one
            elif not _is_slices(one):
                self.is_whole = True


def sizes(tensor: Any) -> tuple:
    """The sizes of a tensor, open ones as well."""
    with unrecorded():
        return tuple(tensor.shape)


def tensors(value: Any) -> Iterator[Any]:
    """The tensors of a structure, in the order of its parts."""
    if isinstance(value, _native.Tensor):
        yield value
    elif isinstance(value, Replayable):
        yield from value.used()
    for part in parts_of(value) or ():
        yield from tensors(part)


def with_tensors(value: Any, tensors: Iterator) -> Any:
    """A structure with other tensors, in the same order."""
    if isinstance(value, _native.Tensor):
        return next(tensors)
    return rebuilt(value, lambda part: with_tensors(part, tensors))


@contextlib.contextmanager
def unrecorded() -> Iterator[None]:
    """Excludes calls from recordings: those that create what later calls, and replays, only use."""
    before = _native.set_recording(None)
    try:
        yield
    finally:
        _native.set_recording(before)
