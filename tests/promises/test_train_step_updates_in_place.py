"""A traced train step frees each gradient once its variable is updated, in place."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf

FLOAT = 4
BATCH, WIDTH = 32, 64
MATRIX = WIDTH * WIDTH * FLOAT


@pytest.mark.parametrize("layers", [4, 16, 64])
def test_a_traced_step_never_holds_all_gradients(layers, rng):
    weights = [tf.Variable(rng.normal(size=(WIDTH, WIDTH), scale=0.1).astype("f4")) for _ in range(layers)]
    start = [w.numpy().copy() for w in weights]
    batch = 4  # so that activations are small compared with the matrices
    x = tf.constant(rng.normal(size=(batch, WIDTH)).astype("f4"))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            y = x
            for w in weights:
                y = tf.nn.relu(tf.matmul(y, w))
            loss = tf.reduce_sum(y)
        for w, gradient in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(0.01 * gradient)
        return loss

    addresses = [w.address for w in weights]
    plan = step.plan(x)
    with tf.memory.measure() as measured:
        loss = step(x)
    assert measured.peak_bytes == plan.peak_bytes
    activations = layers * batch * WIDTH * (FLOAT + FLOAT)
    assert plan.peak_bytes <= 2 * MATRIX + activations + 4096
    assert layers < 16 or plan.peak_bytes < layers * MATRIX // 2
    assert [w.address for w in weights] == addresses

    # The same step in NumPy.
    values = [x.numpy()]
    for w in start:
        values.append(np.maximum(values[-1] @ w, 0))
    np.testing.assert_allclose(loss.numpy(), values[-1].sum(), rtol=1e-4)
    upstream = np.ones_like(values[-1])
    for w, before, given, made in zip(weights[::-1], start[::-1], values[-2::-1], values[:0:-1]):
        upstream = upstream * (made > 0)
        np.testing.assert_allclose(w.numpy(), before - 0.01 * given.T @ upstream, rtol=1e-3, atol=1e-6)
        upstream = upstream @ before.T
