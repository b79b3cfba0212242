"""Traced loops over datasets, whose elements are fetched when the function runs."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _native, _raw_ops as raw, nest
from ..data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from ..errors import InvalidArgumentError
from ..spec import TensorSpec
from . import loops

_TOKEN: list[tuple[str, list[int]]] = [("int64", [])]
_FLAG: list[tuple[str, list[int]]] = [("bool", [])]


class _Iterators:
    """The iterators of a loop over a dataset: one per run of the loop, found by a token.

    Every callback takes the token and returns it, so that the data dependency keeps callbacks in order.
    """

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset
        self._numbers = itertools.count()
        self._running: dict[int, Any] = {}
        self._mine = threading.local()

    def begin(self, _inputs: list) -> list[bytes]:
        # A thread runs a loop once at a time: an earlier run on this thread has ended, even if by an error.
        self._running.pop(getattr(self._mine, "number", -1), None)
        self._mine.number = number = next(self._numbers)
        self._running[number] = iter(self._dataset)
        return [np.int64(number).tobytes()]

    def has_next(self, inputs: list) -> list[bytes]:
        number = int(inputs[0])
        for element in self._running[number]:
            self._running[number] = itertools.chain([element], self._running[number])
            return [np.True_.tobytes()]
        return [np.False_.tobytes()]

    def element(self, spec: Any, token: Any) -> tuple:
        """The next element, which has these types and shapes, and the token."""
        specs = nest.flatten(spec)

        def next_element(inputs: list) -> list[bytes]:
            parts = nest.flatten(next(self._running[int(inputs[0])]))
            for part, wanted in zip(parts, specs):
                if not wanted.is_compatible_with(part):
                    raise InvalidArgumentError(
                        f"all elements of a dataset in a traced loop must be {wanted}, got {TensorSpec.from_tensor(part)}\n"
                        "  help: use batch(..., drop_remainder=True), or loop outside of tf.function"
                    )
            return [*(np.asarray(part).tobytes() for part in parts), np.int64(inputs[0]).tobytes()]

        kinds = [(one.dtype, list(one.shape)) for one in specs]
        *parts, token = _native.host_callback("dataset", next_element, [token], [*kinds, *_TOKEN], True)
        return nest.pack_sequence_as(spec, parts), token


def _spec_of(dataset: Dataset) -> Any:
    """The specs of the first element; None for an empty dataset."""
    with _native.InitScope():
        for element in dataset.take(1).iterate((0, 0)):
            return nest.map_structure(TensorSpec.from_tensor, element)
    return None


def for_dataset(statement: loops.Statement, dataset: Dataset, extra_test: Callable | None, body: Callable) -> None:
    """A `for` over a dataset. All elements have one spec, except perhaps the last if the length is known."""
    count = len(dataset) if dataset.cardinality() >= 0 else int(dataset.cardinality())
    spec = _spec_of(dataset)
    if spec is None:
        return
    last = _spec_of(dataset.skip(count - 1)) if count > 1 else spec
    runs = _Iterators(dataset)
    tokens = _native.host_callback("dataset", runs.begin, [], _TOKEN, True)

    def goes_on(at: Any, token: Any) -> Any:
        if count == INFINITE_CARDINALITY:
            return raw.less(at, at + 1)
        if count == UNKNOWN_CARDINALITY:
            return _native.host_callback("dataset", runs.has_next, [token], _FLAG, True)[0]
        return raw.less(at, count if last == spec else count - 1)

    def loop(tensors: list, enter: Callable, leave: Callable) -> list:
        def holds(states: list) -> Any:
            enter(states[2:])
            return loops.unless_ended(goes_on(states[0], states[1]), extra_test)

        def step(states: list) -> list:
            enter(states[2:])
            found, token = runs.element(spec, states[1])
            body(found)
            return [states[0] + 1, token, *leave()]

        done = _native.while_loop(holds, step, [_native.as_tensor(0), tokens[0], *tensors])
        tokens[1:] = [done[1]]
        return done[2:]

    statement.run(loop)
    if last != spec:
        _further(statement, lambda: body(runs.element(last, tokens[1])[0]), extra_test)


def is_traced(iterable: Any) -> bool:
    """Whether it is a dataset that a traced function iterates over."""
    return isinstance(iterable, Dataset) and _native.is_tracing()


def _further(statement: loops.Statement, step: Callable, extra_test: Callable | None) -> None:
    """Runs one more step unless the loop has ended."""
    from .operators import if_stmt

    goes_on = True if extra_test is None else extra_test()
    names = statement.names
    if_stmt(goes_on, step, lambda: None, statement.get, statement.set, names, len(names))
