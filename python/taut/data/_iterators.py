"""Iterators over datasets. In a traced function they deliver elements when the function runs."""

from __future__ import annotations

import contextlib
import functools
import itertools
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _native, _raw_ops as raw, dtypes, nest
from .._common import refuse
from ..errors import (
    DynamicShapeError,
    InvalidArgumentError,
    NotFoundError,
    OperatorNotAllowedInGraphError,
    OutOfRangeError,
)
from ..function import register_argument
from ..ragged_tensor import RaggedTensor
from ..sparse_tensor import SparseTensor, to_dense
from ..spec import TensorSpec
from ..type_spec import IteratorSpec, NoneTensorSpec
from . import _epochs, _specs
from ._fingerprints import outline

if TYPE_CHECKING:
    from . import Dataset

_NUMBER: list[tuple[str, list[int]]] = [("int64", [])]
_FLAG: list[tuple[str, list[int]]] = [("bool", [])]
_END = "the dataset has no more elements"
# A Python `for` that AutoGraph has not converted would call `__next__` without end.
_MOST_CALLS = 10_000


class Report(str):
    """Statistics of a pipeline's stages: printable, with `stages` of (stage, peak bytes), and the number of errors that
    `ignore_errors` left out.
    """

    stages: list[tuple[str, int]]
    ignored_errors: int


class Optional(NamedTuple):
    """An element, or none at the end of a dataset. Made by `get_next_as_optional`."""

    flag: Any
    value: Any

    def has_value(self, name: str | None = None) -> _native.Tensor:
        """Whether there is an element, as a tensor."""
        return _native.as_tensor(self.flag)

    def get_value(self, name: str | None = None) -> Any:
        """The element; raises `tf.errors.InvalidArgumentError` if there is none."""
        message = "get_value: the optional has no value"
        if isinstance(self.flag, _native.Array) and self.flag.is_symbolic:
            raw.ensure(self.flag, message)
        elif not self.flag:
            raise InvalidArgumentError(message)
        return self.value

    @property
    def element_spec(self) -> Any:
        """The types and shapes of the element."""
        return self.value.spec if isinstance(self.value, _NoValue) else _specs.specs_of(self.value)

    @staticmethod
    def from_value(value: Any) -> Optional:
        """An optional with this value."""
        return Optional(_native.as_tensor(True), nest.map_structure(_as_component, value))

    @staticmethod
    def empty(element_spec: Any) -> Optional:
        """An optional without a value; a value would have these types and shapes."""
        if not all(_is_of_known_size(spec) for spec in nest.flatten(element_spec)):
            return Optional(_native.as_tensor(False), _NoValue(element_spec))
        zeros = nest.map_structure(lambda spec: raw.zeros(list(spec.shape), spec.dtype), element_spec)
        return Optional(_native.as_tensor(False), zeros)


def _as_component(leaf: Any) -> Any:
    """A leaf of an element: a tensor, unless it has parts, such as a sparse tensor or a dataset."""
    is_composite = hasattr(leaf, "_taut_parts") or hasattr(leaf, "element_spec")
    return leaf if is_composite else _native.as_tensor(leaf)


class _NoValue:
    """In place of the value of an optional that has none: its specs."""

    def __init__(self, spec: Any) -> None:
        self.spec = spec


def _is_of_known_size(spec: Any) -> bool:
    """Whether it is the spec of a tensor of numbers, with all sizes."""
    return isinstance(spec, TensorSpec) and spec.shape.is_fully_defined() and spec.dtype != dtypes.string


class Iterator:
    """Base class of iterators over datasets."""


class NumpyIterator(Iterator):
    """An iterator over the elements of a dataset as arrays. Made by `Dataset.as_numpy_iterator`."""

    def __init__(self, elements: Any) -> None:
        self._running = iter(elements)

    def __iter__(self) -> NumpyIterator:
        return self

    def __next__(self) -> Any:
        return as_arrays(next(self._running))

    def next(self) -> Any:
        """The next element, as `next(iterator)`."""
        return next(self)


def as_arrays(element: Any) -> Any:
    """The element with arrays in place of tensors."""

    def one(leaf: Any) -> Any:
        if hasattr(leaf, "element_spec"):
            raise TypeError("as_numpy_iterator: elements must be tensors, got a dataset")
        if isinstance(leaf, SparseTensor):
            return to_dense(leaf).numpy()
        return leaf.numpy() if isinstance(leaf, (_native.Array, RaggedTensor)) else leaf

    return nest.map_structure(one, element)


class DatasetIterator(Iterator):
    """An iterator over a dataset. Its position can be saved and resumed.

    In a traced function, `next` and `get_next` deliver the next element whenever the function runs.
    """

    def __init__(self, running: _native.DatasetIterator, dataset: Dataset) -> None:
        self._running, self._dataset = running, dataset
        # The next elements, the last of the list first, if they were computed before they were asked for.
        self._ahead: list = []
        self._number = next(_numbers)
        self._seen: Any = None
        # The error of an element that was computed before it was asked for.
        self._failed: Exception | None = None
        _iterators[self._number] = self

    def __iter__(self) -> DatasetIterator:
        _refuse_iteration()
        return self

    def __next__(self) -> Any:
        if _native.is_tracing():
            return self._captured().get_next()
        return self._pull()

    def next(self) -> Any:
        """The next element; raises StopIteration after the last."""
        return self.__next__()

    def get_next(self) -> Any:
        """The next element; raises `tf.errors.OutOfRangeError` after the last."""
        return self._captured().get_next() if _native.is_tracing() else self._pull_or_raise()

    def get_next_as_optional(self) -> Optional:
        """The next element, or an optional without a value after the last."""
        if _native.is_tracing():
            return self._captured().get_next_as_optional()
        try:
            return Optional(_native.as_tensor(True), self._pull())
        except StopIteration:
            return Optional(_native.as_tensor(False), _NoValue(self.element_spec))

    @property
    def element_spec(self) -> Any:
        """The types and shapes of the elements."""
        return self._dataset.element_spec

    @property
    def position(self) -> tuple[int, int]:
        """The position: epoch, and number of elements delivered. `dataset.iterate(position)` resumes there."""
        epoch, delivered = self._running.position
        return epoch, delivered - len(self._ahead)

    def report(self) -> Report:
        """Statistics of each stage: elements, peak bytes, and waiting times."""
        text, stages, ignored = self._running.report()
        report = Report(text)
        report.stages, report.ignored_errors = stages, ignored
        return report

    def __repr__(self) -> str:
        epoch, delivered = self.position
        return f"<tf.data iterator at element {delivered} of epoch {epoch} of {self._dataset!r}>"

    def _saved_state(self) -> _native.Tensor:
        """For checkpoints: the position, and numbers that tell whether the pipeline draws the same random numbers and has the
        same stages.
        """
        digests = _epochs.seeds_digest(self._dataset._native), outline(self._dataset)[0]
        return _native.own_tensor(np.array([*self.position, *digests], np.int64))

    def _restore_state(self, state: _native.Tensor) -> None:
        epoch, delivered, digest, number = (int(part) for part in state.numpy())
        own, names = outline(self._dataset)
        if number != own:
            text = f"the dataset must have the stages that it had when its iterator was saved, got {names}\n"
            help_text = "  help: make the dataset as it was made there; its sizes and functions may differ"
            refuse("Checkpoint.restore", text + help_text, NotFoundError)
        if digest != _epochs.seeds_digest(self._dataset._native):
            text = "the dataset must draw the random numbers that it drew when its iterator was saved\n"
            refuse(
                "Checkpoint.restore", f"{text}  help: give the same seed to each shuffle, or call tf.random.set_seed"
            )
        self._running = self._dataset._native.iterate((epoch, delivered))
        self._ahead.clear()
        self._failed = None
        _epochs.count_epoch(self._dataset._native, epoch)

    def _pull(self) -> Any:
        if self._ahead:
            return self._ahead.pop()
        if self._failed is not None:
            error, self._failed = self._failed, None
            raise error
        return next(self._running)

    def _pull_or_raise(self) -> Any:
        try:
            return self._pull()
        except StopIteration:
            raise OutOfRangeError(_END) from None

    def _has_next(self) -> bool:
        if not self._ahead:
            with contextlib.suppress(StopIteration):
                self._ahead.append(self._pull())
        return bool(self._ahead)

    def _next_spec(self) -> Any:
        """The specs of the next element. It is computed now if they are not known otherwise, and delivered later."""
        known = self._dataset._elements
        if known is not None and known.is_uniform:
            return known.each
        with _native.InitScope():
            if self._has_next():
                self._seen = _specs.specs_of(self._ahead[-1])
        if self._seen is None and known is None:
            raise OutOfRangeError(_END)
        return self._seen or known.each  # type: ignore[union-attr]

    @functools.cached_property
    def _varying(self) -> Any:
        """The specs of all elements if the stages tell that their sizes vary, else None."""
        spec = self._dataset._spec_of_all()
        is_open = any(isinstance(leaf, TensorSpec) and not leaf.shape.is_fully_defined() for leaf in nest.flatten(spec))
        return spec if is_open else None

    def _spec_after_next(self) -> Any:
        """The specs of the element after the next one; None if there is none, or if it cannot be computed."""
        if len(self._ahead) < 2:
            try:
                self._ahead[:0] = itertools.islice(self._running, 1)
            except Exception as error:  # It is raised again when the element is asked for.
                self._failed = error
        return _specs.specs_of(self._ahead[0]) if len(self._ahead) > 1 else None

    def _captured(self) -> TracedIterator:
        """This iterator in a traced function that uses it without taking it as an argument."""
        self._dataset._check_plan()
        return TracedIterator(lambda _inputs: self, [], self._dataset._spec_of_all() or self._next_spec())


class TracedIterator(Iterator):
    """An iterator in a traced function: its elements are fetched whenever the function runs.

    `find` returns the iterator of a run for the values of `inputs`. `varying` are the specs of all elements if only the first
    of a run has those of `spec`.
    """

    def __init__(self, find: Callable[[list], DatasetIterator], inputs: list, spec: Any, varying: Any = None) -> None:
        self._find, self._inputs, self.element_spec, self._varying = find, inputs, spec, varying
        self._calls = self._taken = 0
        self._depth = _native.body_depth()
        for leaf in nest.flatten(spec):
            if isinstance(leaf, NoneTensorSpec):
                continue
            if not isinstance(leaf, TensorSpec) or leaf.dtype == dtypes.string:
                refuse(
                    "iterator", f"the sizes of the elements do not follow from their shapes: {leaf}", DynamicShapeError
                )
            if not leaf.shape.is_fully_defined():
                refuse("iterator", f"the shapes of a dataset's elements vary: they are {leaf}", DynamicShapeError)

    def __iter__(self) -> TracedIterator:
        _refuse_iteration()
        return self

    def __next__(self) -> Any:
        self._calls += 1
        if self._calls > _MOST_CALLS:
            _refuse_iteration()
        return self.get_next()

    def get_next(self) -> Any:
        """The next element; raises `tf.errors.OutOfRangeError` after the last, when the function runs."""
        return self.element(self.element_spec)

    def _check_is_first(self) -> None:
        """Raises DynamicShapeError if a run may take several elements whose sizes vary."""
        self._taken += 1
        if self._varying is not None and (self._taken > 1 or _native.body_depth() > self._depth):
            text = f"the shapes of a dataset's elements vary: they are {self._varying}"
            refuse("iterator", text, DynamicShapeError)

    def element(self, spec: Any) -> Any:
        """The next element, which has these types and shapes."""
        self._check_is_first()
        specs, find = _tensor_specs(spec), self._find

        def callback(inputs: list) -> list[bytes]:
            return _as_bytes(find(inputs)._pull_or_raise(), specs)

        return _element(spec, _native.host_callback("dataset", callback, self._inputs, _kinds(specs), True))

    def has_next(self) -> _native.Tensor:
        """Whether there are more elements."""
        find = self._find

        def callback(inputs: list) -> list[bytes]:
            return [np.bool_(find(inputs)._has_next()).tobytes()]

        return _native.host_callback("dataset", callback, self._inputs, _FLAG, True)[0]

    def get_next_as_optional(self) -> Optional:
        """The next element, or an optional without a value after the last."""
        self._check_is_first()
        specs, find = _tensor_specs(self.element_spec), self._find

        def callback(inputs: list) -> list[bytes]:
            iterator = find(inputs)
            if iterator._has_next():
                return [np.True_.tobytes(), *_as_bytes(iterator._pull(), specs)]
            return [np.False_.tobytes(), *(raw.zeros(list(s.shape), s.dtype).numpy().tobytes() for s in specs)]

        kinds = [*_FLAG, *_kinds(specs)]
        flag, *parts = _native.host_callback("dataset", callback, self._inputs, kinds, True)
        return Optional(flag, _element(self.element_spec, parts))


class _Runs:
    """The iterators that a traced function makes of a dataset: one per run, found by a number. `find` returns the dataset of a
    run for the values of the callback's inputs.
    """

    def __init__(self, find: Callable[[list], Dataset]) -> None:
        self._find = find
        self._running: dict[int, DatasetIterator] = {}
        self._mine = threading.local()

    def begin(self, inputs: list) -> list[bytes]:
        # A thread runs a function once at a time: an earlier run on this thread has ended, even if by an error.
        self._running.pop(getattr(self._mine, "number", -1), None)
        iterator = self._find(inputs)._start()
        self._mine.number = iterator._number
        self._running[iterator._number] = iterator
        return [np.int64(iterator._number).tobytes()]

    def find(self, inputs: list) -> DatasetIterator:
        return self._running[int(inputs[0])]


def traced_iterator(find: Callable[[list], Dataset], inputs: list, spec: Any) -> TracedIterator:
    """An iterator that begins anew in every run of the function being traced, over the dataset that `find` returns for the
    values of `inputs`.
    """
    runs = _Runs(find)
    return TracedIterator(runs.find, _native.host_callback("dataset", runs.begin, inputs, _NUMBER, True), spec)


class _ElementSpec:
    """The structure, types and shapes of an element, as part of a signature, and those of all elements if they vary."""

    def __init__(self, spec: Any, varying: Any) -> None:
        self.spec, self.varying = spec, varying
        self._key = repr(spec) if varying is None else f"{spec!r} of {varying!r}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _ElementSpec) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"iterator over {self._key}"


class _IteratorArgument(NamedTuple):
    """An iterator as an argument: a trace serves all iterators over elements with these specs."""

    number: Any
    element: Any

    def in_trace(self) -> TracedIterator:
        one = self.element
        return TracedIterator(lambda inputs: _iterators[int(inputs[0])], [self.number], one.spec, one.varying)

    def in_call(self) -> DatasetIterator:
        return _iterators[int(self.number)]

    def type_spec(self) -> IteratorSpec:
        return IteratorSpec(self.element.spec)


def _as_argument(iterator: DatasetIterator) -> Any:
    number = _native.own_tensor(np.int64(iterator._number))
    return _IteratorArgument(number, _ElementSpec(iterator._next_spec(), iterator._varying))


def _tensor_specs(spec: Any) -> list:
    """The specs of the tensors of an element, which may have None as a part."""
    return [leaf for leaf in nest.flatten(spec) if not isinstance(leaf, NoneTensorSpec)]


def _element(spec: Any, tensors: list) -> Any:
    """The element with these specs of its tensors."""
    rest = iter(tensors)
    parts = [None if isinstance(leaf, NoneTensorSpec) else next(rest) for leaf in nest.flatten(spec)]
    return nest.pack_sequence_as(spec, parts)


def _kinds(specs: list) -> list:
    return [(spec.dtype, list(spec.shape)) for spec in specs]


def _as_bytes(element: Any, specs: list) -> list[bytes]:
    """The bytes of an element, which must have these specs."""
    parts = [part for part in nest.flatten(element) if part is not None]
    for part, wanted in zip(parts, specs):
        if not wanted.is_compatible_with(part):
            raise InvalidArgumentError(
                f"all elements of a dataset in a traced function must be {wanted}, got {TensorSpec.from_tensor(part)}\n"
                "  help: use batch(..., drop_remainder=True), or take the elements outside of tf.function"
            )
    return [np.asarray(part).tobytes() for part in parts]


def _refuse_iteration() -> None:
    if _native.is_tracing():
        text = (
            "in a traced function, Python cannot iterate over a dataset: its elements are known when the function runs\n"
            "  help: use a `for` statement in a function that AutoGraph converts, or next(iterator)"
        )
        refuse("iter", text, OperatorNotAllowedInGraphError)


_numbers = itertools.count()
_iterators: weakref.WeakValueDictionary[int, DatasetIterator] = weakref.WeakValueDictionary()
register_argument(DatasetIterator, _as_argument)
