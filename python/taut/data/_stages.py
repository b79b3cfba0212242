"""Dataset stages that run in Python: generators over elements."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .. import _native, nest
from ..errors import InvalidArgumentError
from ..function import Function


def traced(function: Callable) -> Callable:
    """The function as a traced function."""
    return function if isinstance(function, Function) else Function(function, on_retrace="allow")


def applied(function: Callable, element: Any) -> Any:
    """Calls a function with an element; the parts of a tuple are its arguments."""
    return function(*element) if isinstance(element, tuple) else function(element)


def scanned(dataset: Iterable, initial_state: Any, step: Callable) -> Iterator:
    """Yields the second result of `step(state, element)`; the first is the next state."""
    state = nest.map_structure(_native.as_tensor, initial_state)
    for element in dataset:
        state, made = step(state, element)
        yield made


def distinct(dataset: Iterable) -> Iterator:
    """Yields the first occurrence of each element."""
    seen = set()
    for element in dataset:
        array = np.asarray(element)
        key = (array.dtype.str, array.shape, array.tobytes())
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


def grouped(dataset: Iterable, key_func: Callable, reduce_func: Callable, size: Callable, held: Callable) -> Iterator:
    """Groups elements by key into windows of `size(key)` elements; yields the elements of `reduce_func` of each window.

    `held` creates a dataset from a list of elements.
    """
    windows: dict[int, list] = {}
    for element in dataset:
        key = int(applied(key_func, element))
        window = windows.setdefault(key, [])
        window.append(element)
        if len(window) >= int(size(key)):
            yield from reduce_func(_native.own_tensor(np.int64(key)), held(windows.pop(key)))
    for key in sorted(windows):
        yield from reduce_func(_native.own_tensor(np.int64(key)), held(windows[key]))
