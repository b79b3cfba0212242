"""Fixtures of the promise tests: a ledger check, peaks, and gradients by finite differences."""

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
    """Stores the outcome of a test: the traceback of a failed test still holds its tensors."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


PASSED = pytest.StashKey[bool]()


@pytest.fixture(autouse=True)
def ledger(request: pytest.FixtureRequest) -> Iterator[None]:
    """Checks that a test has freed every byte that it allocated."""
    gc.collect()
    before = tf.memory.live_bytes()
    yield
    if request.node.stash.get(PASSED, False):
        gc.collect()
        # Fewer bytes are not a leak: a test that failed before may have freed its tensors late.
        assert tf.memory.live_bytes() <= before, tf.memory.report()


@pytest.fixture
def rng() -> np.random.Generator:
    """A random generator with a fixed seed."""
    return np.random.default_rng(7)


@pytest.fixture
def peak_of() -> Callable[[Callable], tuple[int, Any]]:
    """Calls a function; returns the peak in bytes above the live bytes before the call, and the result."""

    def peak_of(work: Callable) -> tuple[int, Any]:
        with tf.memory.measure() as measured:
            result = work()
        return measured.peak_bytes, result

    return peak_of


@pytest.fixture
def numeric() -> Callable[..., np.ndarray]:
    """The gradient of the sum of `f` at an array by central differences in float64."""

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
    """The derivative of the sum of `f` at an array, of any order, by nested tapes."""

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
    """The number of the source line of a function that contains certain words."""

    def line_of(function: Callable, words: str) -> int:
        lines, first = inspect.getsourcelines(function)
        return first + next(i for i, line in enumerate(lines) if words in line)

    return line_of


@pytest.fixture
def no_limit() -> Iterator[None]:
    """Removes the process-wide limit after the test."""
    yield
    tf.memory.limit(None)


@pytest.fixture
def vector(rng: np.random.Generator) -> Callable[[], tf.Tensor]:
    """Makes loop states: eight float64, 64 bytes."""
    return lambda: tf.constant(rng.uniform(-0.4, 0.6, size=8))


@pytest.fixture
def sine_loop() -> Callable[..., tf.Tensor]:
    """A `while_loop` that computes `x = sin(x * w)` a number of times."""

    def sine_loop(steps: int, x: Any, w: Any, calls: list | None = None, **options: Any) -> tf.Tensor:
        def body(i: tf.Tensor, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            if calls is not None:
                calls.append(1)
            return i + 1, tf.sin(x * w)

        start = (tf.constant(0, tf.int64), x)
        return tf.while_loop(lambda i, _: i < steps, body, start, parallel_iterations=1, **options)[1]

    return sine_loop
