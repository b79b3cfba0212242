"""`grad_budget` bounds the memory of the gradient of a loop, whatever its length.

The number of recomputed steps is tested in Rust (crates/control).
"""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf

STATE = 64  # bytes of eight float64


def by_hand(steps, x, w):
    """The gradients of the sum of the last state of `sine_loop`."""
    states = [x.numpy()]
    for _ in range(steps):
        states.append(np.sin(states[-1] * w.numpy()))
    of_x, of_w = np.ones(8), np.zeros(8)
    for state in states[-2::-1]:
        inner = of_x * np.cos(state * w.numpy())
        of_w += inner * state
        of_x = inner * w.numpy()
    return of_x, of_w


@pytest.mark.parametrize("traced", [False, True])
def test_the_peak_under_a_budget_is_independent_of_the_length(traced, peak_of, vector, sine_loop):
    x, w = vector(), vector()
    budget = 20 * 2 * STATE  # twenty states: the vector and the loop counter, 64 bytes each

    def gradients(steps):
        def run(x, w):
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                loss = tf.reduce_sum(sine_loop(steps, x, w, grad_budget=budget))
            return tape.gradient(loss, [x, w])

        f = tf.function(run, autograph=False) if traced else run
        planned = f.plan(x, w).peak_bytes if traced else None
        peak, found = peak_of(lambda: f(x, w))
        assert planned in (None, peak)
        for one, other in zip(found, by_hand(steps, x, w)):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-9, atol=1e-300)
        return peak

    peaks = [gradients(steps) for steps in [100, 1000, 10_000, 100_000]]
    assert peaks == [peaks[0]] * 4
    assert peaks[0] <= budget + 16 * STATE


def test_a_larger_budget_gives_a_larger_peak_and_the_same_gradient(peak_of, vector, sine_loop):
    x, w = vector(), vector()

    def gradients(slots):
        with tf.GradientTape() as tape:
            tape.watch([x, w])
            loss = tf.reduce_sum(sine_loop(60, x, w, grad_budget=slots * 2 * STATE))
        return [g.numpy().tobytes() for g in tape.gradient(loss, [x, w])]

    measured = [peak_of(lambda: gradients(slots)) for slots in [1, 2, 5, 10, 20, 40]]
    assert all(found == measured[0][1] for _, found in measured)
    peaks = [peak for peak, _ in measured]
    assert peaks == sorted(peaks) and peaks[0] < peaks[-1]


def test_a_scan_under_a_budget(rng, vector):
    x, w = vector(), vector()
    rows = tf.constant(rng.normal(size=(100, 8)))

    def scanned(grad_budget):
        with tf.GradientTape() as tape:
            tape.watch([x, w, rows])
            states = tf.scan(lambda s, r: tf.sin(s * w + r), rows, initializer=x, grad_budget=grad_budget)
            loss = tf.reduce_sum(states * states)
            held = tape.bytes_held() - states.nbytes
        return held, [g.numpy() for g in tape.gradient(loss, [x, w, rows])]

    held, found = scanned(10 * STATE)
    assert held <= 10 * STATE + rows.nbytes + x.nbytes + w.nbytes + 256
    for one, other in zip(found, scanned(None)[1]):
        np.testing.assert_allclose(one, other, rtol=1e-12)
