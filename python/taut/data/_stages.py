"""Dataset stages that run in Python: generators over elements."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes, nest
from ..errors import InvalidArgumentError
from ..spec import TensorSpec
from . import _specs
from ._structures import as_tensors, size_of


def applied(function: Callable, element: Any) -> Any:
    """Calls a function with an element; the parts of a tuple are its arguments."""
    return function(*element) if isinstance(element, tuple) else function(element)


def scanned(dataset: Iterable, state: Any, step: Callable) -> Iterator:
    """Yields the second result of `step(state, element)`; the first is the next state."""
    for element in dataset:
        after, made = scan_pair(step(state, element))
        state = same_state("scan", state, after)
        yield made


def scan_pair(result: Any) -> tuple:
    """The result of a scan's function, or its specs: the next state, and an element."""
    if not isinstance(result, (tuple, list)) or len(result) != 2:
        raise TypeError(f"scan: scan_func must return a pair, the next state and an element, got {result!r}")
    return result[0], result[1]


def distinct(dataset: Iterable) -> Iterator:
    """Yields the first occurrence of each element."""
    seen = set()
    for element in dataset:
        array = np.asarray(element)
        # An array of strings has their addresses as its bytes.
        value = tuple(array.ravel().tolist()) if array.dtype == object else array.tobytes()
        key = (array.dtype.str, array.shape, value)
        if key not in seen:
            seen.add(key)
            yield element


def chosen(datasets: list, choices: Iterable, stop: bool) -> Iterator:
    """Yields the next element of the dataset that each choice names, until one or all have ended."""
    running = dict(enumerate(iter(dataset) for dataset in datasets))
    for choice in choices:
        number = int(choice)
        if not 0 <= number < len(datasets):
            raise InvalidArgumentError(f"choose_from_datasets: choices must be in [0, {len(datasets)}), got {number}")
        if number not in running:
            continue
        try:
            element = next(running[number])
        except StopIteration:
            del running[number]
            if stop or not running:
                return
            continue
        yield element


def drawn(weights: list[float], seed: list[int]) -> Iterator[int]:
    """Yields indices at random, by weight, without end."""
    chances = np.asarray(weights) / sum(weights)
    generator = np.random.default_rng(seed)
    while True:
        yield int(generator.choice(len(chances), p=chances))


def drawn_by(weights: Iterable, count: int, seed: list[int]) -> Iterator[int]:
    """Yields an index at random for each element of a dataset of weights."""
    generator = np.random.default_rng(seed)
    for element in weights:
        chances = np.asarray(element, np.float64)
        if chances.shape != (count,) or not np.isfinite(chances).all() or (chances < 0).any() or not chances.any():
            raise InvalidArgumentError(
                f"sample_from_datasets: weights must be {count} numbers >= 0, not all zero, got {chances.tolist()}"
            )
        yield int(generator.choice(count, p=chances / chances.sum()))


def grouped(dataset: Iterable, key_func: Callable, reduce_func: Callable, size: Callable, held: Callable) -> Iterator:
    """Groups elements by key into windows of `size(key)` elements; yields the elements of `reduce_func` of each window.

    `held` creates a dataset from a list of elements.
    """

    def reduced(key: int, window: list) -> Any:
        made = reduce_func(_native.own_tensor(np.int64(key)), held(window))
        return _specs.checked_dataset("group_by_window", made)

    windows: dict[int, list] = {}
    for element in dataset:
        key = int(applied(key_func, element))
        window = windows.setdefault(key, [])
        window.append(element)
        if len(window) >= size_of("group_by_window", "window_size", size(_native.own_tensor(np.int64(key))), 1):
            yield from reduced(key, windows.pop(key))
    for key in sorted(windows):
        yield from reduced(key, windows[key])


def batch_count(count: int, size: int, exact: bool) -> int:
    """The number of batches of `count` elements, which is negative if it is infinite (-1) or unknown (-2)."""
    return count if count < 0 else count // size if exact else -(-count // size)


def in_form(state: Any, after: Any) -> Any:
    """The next state, with tensors in place of lists where the state has tensors, and tuples where it has tuples."""
    if isinstance(state, dict) and isinstance(after, dict):
        return {key: in_form(state[key], part) if key in state else part for key, part in after.items()}
    if isinstance(state, tuple) and isinstance(after, (tuple, list)) and len(state) == len(after):
        parts = [in_form(one, part) for one, part in zip(state, after)]
        return type(after)(*parts) if hasattr(after, "_fields") else tuple(parts)
    try:
        return as_tensors(after)
    except InvalidArgumentError:
        # A list that is no tensor: it does not have the structure of the state.
        return tuple(after) if isinstance(after, list) else after


def same_state(stage: str, before: Any, after: Any) -> Any:
    """The new state of a reduction or scan; an error if it has another structure or another type."""
    _specs.check_state(stage, before, after)
    return nest.pack_sequence_as(before, nest.flatten(as_tensors(after)))


def reduced_in_trace(iterator: Any, state: Any, step: Callable) -> Any:
    """Reduces the elements of an iterator of a traced function: a loop that runs with the function."""

    def holds(_states: list) -> Any:
        return iterator.has_next()

    def body(states: list) -> list:
        return nest.flatten(step(nest.pack_sequence_as(state, states), iterator.get_next()))

    return nest.pack_sequence_as(state, _native.while_loop(holds, body, nest.flatten(state)))


def single_in_trace(iterator: Any) -> Any:
    """The only element of an iterator of a traced function; an error when it runs if there are more or none."""
    found = iterator.get_next_as_optional()
    message = "the dataset must have exactly one element, it has "
    raw.ensure(found.has_value(), f"{message}none")
    raw.ensure(raw.logical_not(iterator.has_next()), f"{message}more")
    return found.value


def rebatched(rows: Iterable, sizes: list[int], drop_remainder: bool, join: Callable, empty: Callable) -> Iterator:
    """Joins rows to batches; their sizes take turns. `empty` makes a batch for a size of 0, which reads no row: one comes
    after the last row, too.
    """
    source = iter(rows)
    for size in itertools.cycle(sizes):
        if size == 0:
            yield empty()
            continue
        group = list(itertools.islice(source, size))
        if group and (len(group) == size or not drop_remainder):
            yield join(group)
        if len(group) < size:
            return


def empty_batch(spec: Any) -> Any:
    """A batch of no elements with these specs; a size that varies is 0."""

    def one(leaf: Any) -> Any:
        if not isinstance(leaf, TensorSpec):
            raise InvalidArgumentError(f"an empty batch must be of tensors, got {leaf}")
        sizes = [0] if leaf.shape.rank is None else [0, *(dim or 0 for dim in leaf.shape)]
        kind = object if leaf.dtype == dtypes.string else np.float32
        return _native.as_tensor(np.zeros(sizes, kind), leaf.dtype)

    return nest.map_structure(one, spec)


def stacked(elements: list) -> Any:
    """Elements along a new first axis."""
    return nest.map_structure(
        lambda *leaves: None if leaves[0] is None else raw.stack(list(leaves), 0), *elements, check_types=False
    )


def resampled(
    dataset: Iterable, class_func: Callable, target: Any, initial: Any, seed: list[int]
) -> Iterator[tuple[Any, Any]]:
    """Yields elements, each beside its class, so that classes have the target distribution: by rejection.

    Without an initial distribution it is estimated from the elements so far; every class starts with a count of 1.
    """
    target = np.asarray(target, np.float64)
    counts = np.ones(len(target)) if initial is None else None
    generator = np.random.default_rng(seed)
    for element in dataset:
        made = _native.as_tensor(applied(class_func, element))
        kind = int(made)
        if not 0 <= kind < len(target):
            raise InvalidArgumentError(f"rejection_resample: classes must be in [0, {len(target)}), got {kind}")
        if counts is not None:
            counts[kind] += 1
        chances = np.asarray(initial, np.float64) if counts is None else counts / counts.sum()
        # Classes that do not occur cannot be accepted; they do not limit the others.
        ratio = np.divide(target, chances, out=np.zeros_like(target), where=chances > 0)
        if generator.random() * ratio.max() < ratio[kind]:
            yield made, element


def drawn_numbers(seed: list[int]) -> Iterator:
    """Yields random integers of 32 bits without end."""
    generator = np.random.default_rng(seed)
    while True:
        yield _native.own_tensor(np.int64(generator.integers(0, 2**32)))


def reduced_by_key(dataset: Iterable, key_func: Callable, reducer: Any) -> Iterator:
    """Reduces the elements of each key, and yields the results in the order of the keys."""
    states: dict[int, Any] = {}
    for element in dataset:
        key = int(applied(key_func, element))
        if key not in states:
            states[key] = as_tensors(reducer.init_func(_native.own_tensor(np.int64(key))))
        states[key] = in_form(states[key], reducer.reduce_func(states[key], element))
    for key in sorted(states):
        yield applied(reducer.finalize_func, states[key])
