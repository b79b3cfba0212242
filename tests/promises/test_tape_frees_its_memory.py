"""A tape gives its memory back: while `gradient` runs, or all at once when it is dropped."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import taut as tf

FLOAT = 4
BATCH, WIDTH = 32, 64
ACTIVATION = BATCH * WIDTH * FLOAT
MATRIX = WIDTH * WIDTH * FLOAT


def test_a_persistent_tape_gives_several_gradients(rng):
    x = tf.constant(rng.normal(size=(4,)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        middle = x * x
        y = tf.exp(middle)
        z = tf.sin(middle)
    a, m = x.numpy(), x.numpy() ** 2
    for _ in range(2):
        np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.exp(m) * 2 * a, rtol=1e-12)
    np.testing.assert_allclose(tape.gradient(z, x).numpy(), np.cos(m) * 2 * a, rtol=1e-12)
    np.testing.assert_allclose(tape.gradient(y, middle).numpy(), np.exp(m), rtol=1e-12)
    np.testing.assert_allclose(
        tape.gradient([y, z], x).numpy(), (np.exp(m) + np.cos(m)) * 2 * a, rtol=1e-12
    )


def test_a_tape_that_is_not_persistent_is_used_once(rng):
    x = tf.constant(rng.normal(size=(4,)))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
    tape.gradient(y, x)
    assert tape.bytes_held() == 0
    with pytest.raises((RuntimeError, ValueError), match="persistent"):
        tape.gradient(y, x)


@pytest.mark.parametrize("persistent", [False, True])
def test_dropping_a_tape_frees_every_byte_at_once(persistent, rng):
    x = tf.constant(rng.normal(size=(BATCH, WIDTH)).astype("f4"))
    w = tf.Variable(rng.normal(size=(WIDTH, WIDTH)).astype("f4"))
    gc.collect()
    gc.disable()  # memory must be freed by reference counts alone
    try:
        before = tf.memory.live_bytes()
        with tf.GradientTape(persistent=persistent) as tape:
            y = x
            for _ in range(10):
                y = tf.tanh(tf.matmul(y, w))
        # Each layer keeps its result once: for the gradient of tanh and as input of the next product.
        assert tf.memory.live_bytes() - before == 10 * ACTIVATION
        if persistent:
            tape.gradient(y, w)
            tape.gradient(y, w)
            assert tf.memory.live_bytes() - before == 10 * ACTIVATION
        del tape
        assert tf.memory.live_bytes() - before == ACTIVATION
        del y
        assert tf.memory.live_bytes() == before
    finally:
        gc.enable()


@pytest.mark.parametrize("batch", [32, 256])
def test_the_backward_pass_frees_residuals_as_it_proceeds(batch, rng):
    layers = 64
    activation, bits = batch * WIDTH * FLOAT, batch * WIDTH // 8
    weights = [tf.Variable(rng.normal(size=(WIDTH, WIDTH), scale=0.1).astype("f4")) for _ in range(layers)]
    start = tf.constant(rng.normal(size=(batch, WIDTH)).astype("f4"))
    before = tf.memory.live_bytes()
    with tf.GradientTape() as tape:
        x = start
        for w in weights:
            x = tf.nn.relu(tf.matmul(x, w))
        loss = tf.reduce_sum(x)
        del x
    kept = (layers - 1) * activation + layers * bits
    assert tf.memory.live_bytes() - before == kept + FLOAT
    with tf.memory.measure() as walk:
        gradients = tape.gradient(loss, weights)
    peak = walk.peak_bytes + kept + FLOAT

    def passing(i):
        """The live bytes in the backward pass of layer `i`: layers below, gradients above, its own values."""
        inputs, above = i * activation, (layers - 1 - i) * MATRIX
        masked = inputs + (i + 1) * bits + above + activation
        product = inputs + i * bits + above + activation + (activation if i else 0) + MATRIX
        return max(masked, product)

    assert peak == max(passing(i) for i in range(layers)) + FLOAT
    if activation >= MATRIX:
        assert peak < kept + 2 * (activation + MATRIX)
    del gradients
    assert tf.memory.live_bytes() - before == FLOAT
