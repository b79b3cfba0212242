"""The gradient of a loop keeps loop-invariant tensors once, and of the others what its body needs."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("steps", [1, 10, 100])
def test_a_power_loop_keeps_one_state_per_step(traced, steps, rng):
    x, w = (tf.constant(rng.normal(size=(16, 16), scale=0.2)) for _ in range(2))

    def power(x, w):
        def body(i, x):
            return i + 1, tf.matmul(x, w)

        return tf.while_loop(
            lambda i, _: i < steps, body, (tf.constant(0), x), maximum_iterations=steps
        )[1]

    f = tf.function(power, autograph=False) if traced else power
    with tf.GradientTape() as tape:
        tape.watch([x, w])
        y = f(x, w)
    counts = 128  # the loop counter and the number of steps
    assert (steps + 1) * x.nbytes <= tape.bytes_held() <= (steps + 1) * x.nbytes + counts + 16 * steps
    found = tape.gradient(y, [x, w])
    # d/dx of the sum of x w^n; d/dw is a sum over the n factors w.
    n, ones = steps, np.ones((16, 16))
    powers = [np.linalg.matrix_power(w.numpy(), k) for k in range(n + 1)]
    np.testing.assert_allclose(found[0].numpy(), ones @ powers[n].T, rtol=1e-9, atol=1e-12)
    want = sum((x.numpy() @ powers[k]).T @ ones @ powers[n - 1 - k].T for k in range(n))
    np.testing.assert_allclose(found[1].numpy(), want, rtol=1e-9, atol=1e-12)


def test_loop_invariant_tensors_are_kept_once(rng):
    x, w, b = (tf.constant(rng.uniform(size=1000)) for _ in range(3))

    def held(watched):
        with tf.GradientTape() as tape:
            tape.watch(watched)
            y = tf.scan(lambda s, _: s * w + b, tf.zeros([100]), initializer=x)[-1]
        assert tape.gradient(y, watched) is not None
        with tf.GradientTape() as tape:
            tape.watch(watched)
            y = tf.foldl(lambda s, _: s * w + b, tf.zeros([100]), initializer=x)
        return tape.bytes_held()

    # The gradients of x and b need w alone, whatever the length; that of w needs the state before each step.
    assert held(x) == x.nbytes
    assert held(b) == x.nbytes
    assert held(w) == 101 * x.nbytes
