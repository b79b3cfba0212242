"""The memory of a loop does not depend on its number of iterations."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf

STATE = 64  # bytes of eight float64


def test_a_python_loop_holds_two_states(peak_of, rng):
    a = tf.constant(rng.normal(size=(16, 16), scale=0.2))

    def loop(steps):
        state = a
        for _ in range(steps):
            state = tf.matmul(state, a)
        return state

    peaks = [peak_of(lambda: loop(steps))[0] for steps in [10, 10_000]]
    # The old state and the new one.
    assert peaks == [2 * a.nbytes] * 2


@pytest.mark.parametrize("traced", [False, True])
def test_a_while_loop_of_any_length_holds_its_states(traced, peak_of, vector, sine_loop):
    x, w = vector(), vector()
    shapes = (tf.TensorShape([]), tf.TensorShape([8]))
    peaks = []
    for steps in [10, 1000, 100_000]:
        calls = []

        def run(x, w):
            return sine_loop(steps, x, w, calls, shape_invariants=shapes, maximum_iterations=200_000)

        f = tf.function(run, autograph=False) if traced else run
        if traced:
            planned = f.plan(x, w).peak_bytes
        peak, y = peak_of(lambda: f(x, w))
        if traced:
            assert peak == planned
        assert len(calls) == 1, "the body is traced once"
        want = x.numpy()
        for _ in range(min(steps, 1000)):
            want = np.sin(want * w.numpy())
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-9, atol=1e-300)
        peaks.append(peak)
        del y
    assert peaks == [peaks[0]] * 3
    # The state, and 64 bytes each for counter, limit, result of the condition and its operands.
    assert peaks[0] <= STATE + 5 * 64


def test_states_are_updated_in_place(peak_of, rng):
    start = rng.uniform(size=1000)
    v = tf.Variable(start)

    @tf.function(autograph=False)
    def step():
        def body(i, x):
            return i + 1, tf.sin(x)

        _, x = tf.while_loop(lambda i, _: i < 50, body, (tf.constant(0), v.read_value()))
        v.assign(x)

    address = v.address
    peak, _ = peak_of(step)
    assert peak < 512, "the counter, but no second state"
    assert v.address == address
    want = start
    for _ in range(50):
        want = np.sin(want)
    np.testing.assert_allclose(v.numpy(), want, rtol=1e-12)


@pytest.mark.parametrize("limit", [0, 1, 7])
def test_maximum_iterations_end_the_loop(limit):
    i = tf.while_loop(lambda i: i < 100, lambda i: i + 1, tf.constant(0), maximum_iterations=limit)
    assert int(i) == limit


def test_states_may_grow_under_a_shape_invariant():
    start = (tf.constant(0), tf.constant([1.0]))
    _, grown = tf.while_loop(
        lambda i, _: i < 3,
        lambda i, x: (i + 1, tf.concat([x, x + 1.0], 0)),
        start,
        shape_invariants=[tf.TensorShape([]), tf.TensorShape([None])],
    )
    assert grown.numpy().tolist() == [1, 2, 2, 3, 2, 3, 3, 4]
