"""A traced function keeps only its outputs: an intermediate value is freed at its last use."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf

FLOAT = 4
BATCH, WIDTH = 32, 64
ACTIVATION = BATCH * WIDTH * FLOAT


@pytest.mark.parametrize("layers", [3, 4, 33, 100])
def test_a_forward_pass_holds_two_activations_however_deep(layers, peak_of, rng):
    w = tf.constant(rng.normal(size=(WIDTH, WIDTH), scale=0.1).astype("f4"))
    x = tf.constant(rng.normal(size=(BATCH, WIDTH)).astype("f4"))

    @tf.function
    def forward(x):
        for _ in range(layers):
            x = tf.nn.relu(tf.matmul(x, w))
        return x

    planned = forward.plan(x).peak_bytes
    peak, y = peak_of(lambda: forward(x))
    # Input and output of one layer; one of the two is the memory of the result.
    assert peak == planned == 2 * ACTIVATION
    want = x.numpy()
    for _ in range(layers):
        want = np.maximum(want @ w.numpy(), 0)
    np.testing.assert_allclose(y.numpy(), want, rtol=1e-3, atol=1e-5)


def test_a_call_keeps_its_outputs_and_reuses_its_arena(rng):
    @tf.function
    def f(x):
        return tf.matmul(tf.tanh(tf.matmul(x, x)), x)

    x = tf.constant(rng.normal(size=(64, 64)).astype("f4"))
    plan = f.plan(x)
    before = tf.memory.live_bytes()
    y = f(x)
    assert tf.memory.live_bytes() - before == y.nbytes + plan.arena_bytes
    with tf.memory.measure() as again:
        z = f(x)
    assert again.peak_bytes == z.nbytes, "the second call allocates its output and nothing else"
    f.release()
    assert tf.memory.live_bytes() - before == y.nbytes + z.nbytes
