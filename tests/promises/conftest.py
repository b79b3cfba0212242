"""What the promise tests share: a ledger that must balance, peaks, and slopes by finite differences."""

from __future__ import annotations

import gc
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import taut as tf


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo) -> Iterator[None]:
    """Remembers how a test went: a failed one still holds its tensors in the traceback."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


PASSED = pytest.StashKey[bool]()


@pytest.fixture(autouse=True)
def ledger(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every byte that a test took is given back when the test's names are gone."""
    gc.collect()
    before = tf.memory.live_bytes()
    yield
    if request.node.stash.get(PASSED, False):
        gc.collect()
        # Less is no leak: the test before may have failed, and its tensors be gone by now.
        assert tf.memory.live_bytes() <= before, tf.memory.report()


@pytest.fixture
def rng() -> np.random.Generator:
    """Numbers that are the same in every run."""
    return np.random.default_rng(7)


@pytest.fixture
def peak_of() -> Callable[[Callable], tuple[int, Any]]:
    """Calls a function; returns the most bytes held above those before the call, and its result."""

    def peak_of(work: Callable) -> tuple[int, Any]:
        with tf.memory.measure() as measured:
            result = work()
        return measured.peak_bytes, result

    return peak_of


@pytest.fixture
def numeric() -> Callable[..., np.ndarray]:
    """The slope of the sum of `f` at an array, element by element, by central differences in float64."""

    def numeric(f: Callable, x: np.ndarray, step: float = 1e-5) -> np.ndarray:
        x = np.array(x, np.float64)
        slope = np.zeros_like(x)
        for at in np.ndindex(x.shape):
            ahead, behind = x.copy(), x.copy()
            ahead[at] += step
            behind[at] -= step
            rise = np.sum(np.asarray(f(tf.constant(ahead)))) - np.sum(np.asarray(f(tf.constant(behind))))
            slope[at] = rise / (2 * step)
        return slope

    return numeric


@pytest.fixture
def slope() -> Callable[..., np.ndarray]:
    """The gradient of the sum of `f` at an array, of the first or of a higher order, by tapes."""

    def slope(f: Callable, x: np.ndarray, order: int = 1) -> np.ndarray:
        def derived(x: tf.Tensor, order: int) -> tf.Tensor:
            if order == 0:
                return f(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(derived(x, order - 1))
            return tape.gradient(y, x)

        return derived(tf.constant(np.array(x, np.float64)), order).numpy()

    return slope


@pytest.fixture
def line_of() -> Callable[[Callable, str], int]:
    """Finds the number of the line of a function that holds certain words."""

    def line_of(function: Callable, words: str) -> int:
        lines, first = inspect.getsourcelines(function)
        return first + next(i for i, line in enumerate(lines) if words in line)

    return line_of


@pytest.fixture
def no_limit() -> Iterator[None]:
    """The limit is everybody's: afterwards there is none."""
    yield
    tf.memory.limit(None)
