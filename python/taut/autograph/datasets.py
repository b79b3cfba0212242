"""Traced loops over datasets, whose elements are fetched when the function runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import _native, _raw_ops as raw
from ..data import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset, DatasetIterator, TracedIterator
from ..errors import DynamicShapeError
from ..recording import call_with_functions
from . import loops, values


def for_dataset(statement: loops.Statement, dataset: Any, extra_test: Callable | None, body: Callable) -> None:
    """A `for` over a dataset or an iterator. All elements have one spec, except perhaps the last of a known number."""
    count, last = UNKNOWN_CARDINALITY, None
    total: Any = count
    if isinstance(dataset, Dataset):
        count, total = dataset._count_in_trace()
        if count == 0:
            return
        if dataset._elements is None:
            message = "the shapes of a dataset's elements are known only when they are computed"
            remedy = "give output_signature with all sizes, or iterate outside of tf.function"
            raise DynamicShapeError(values.problem(message, remedy))
        if dataset._elements is not None and count > 0:
            last = dataset._elements.last
        # The last element, which may be smaller, has a copy of the body.
        elements = dataset._traced_iterator(dataset._elements.each)
    else:
        elements = dataset._captured() if isinstance(dataset, DatasetIterator) else dataset
    spec = last if count == 1 and last is not None else elements.element_spec
    last = spec if last is None else last

    def goes_on(at: Any) -> Any:
        if count == INFINITE_CARDINALITY:
            return raw.less(at, at + 1)
        if count == UNKNOWN_CARDINALITY:
            return elements.has_next()
        return raw.less(at, total if last == spec else total - 1)

    def loop(tensors: list, enter: Callable, leave: Callable) -> list:
        def holds(states: list) -> Any:
            enter(states[1:])
            return loops.unless_ended(goes_on(states[0]), extra_test)

        def step(states: list) -> list:
            enter(states[1:])
            body(elements.element(spec))
            return [states[0] + 1, *leave()]

        return call_with_functions(_native.while_loop, holds, step, [_native.as_tensor(0), *tensors])[1:]

    statement.run(loop)
    if last != spec:
        _further(statement, lambda: body(elements.element(last)), extra_test)


def traced(iterable: Any) -> Any:
    """The dataset, or the iterator over one, over which a traced function iterates; None for other objects."""
    if not _native.is_tracing():
        return None
    found = iterable._in_trace() if hasattr(type(iterable), "_in_trace") else iterable
    return found if isinstance(found, (Dataset, DatasetIterator, TracedIterator)) else None


def _further(statement: loops.Statement, step: Callable, extra_test: Callable | None) -> None:
    """Runs one more step unless the loop has ended."""
    from .operators import if_stmt

    goes_on = True if extra_test is None else extra_test()
    names = statement.names
    if_stmt(goes_on, step, lambda: None, statement.get, statement.set, names, len(names))
