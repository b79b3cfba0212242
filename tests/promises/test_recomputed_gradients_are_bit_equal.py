"""`recompute_grad` trades time for memory and does not change a bit of the gradients."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf

FLOAT = 4
BATCH, WIDTH = 32, 64
ACTIVATION = BATCH * WIDTH * FLOAT
MATRIX = WIDTH * WIDTH * FLOAT


def dropped(x):
    """A block that draws random numbers."""
    keep = tf.cast(tf.random.uniform(x.shape) < 0.7, tf.float32) / 0.7
    return tf.tanh(tf.exp(tf.sin(x * 0.5) * keep))


def net(block, x, w):
    for _ in range(6):
        x = block(tf.matmul(x, w))
    return tf.reduce_sum(x)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("dropout", ["by hand", "tf.nn.dropout"])
def test_recomputed_gradients_are_bit_equal_and_the_peak_is_lower(traced, dropout, rng):
    block = dropped if dropout == "by hand" else lambda x: tf.nn.dropout(tf.tanh(tf.exp(tf.sin(x))), 0.3)
    x = tf.constant(rng.normal(size=(BATCH, WIDTH)).astype("f4"))
    w = tf.constant(rng.normal(size=(WIDTH, WIDTH), scale=0.1).astype("f4"))

    def run(block):
        def plain(x, w):
            return net(block, x, w)

        f = tf.function(plain) if traced else plain
        tf.random.set_seed(5)
        with tf.memory.measure() as measured:
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = f(x, w)
            held = tape.bytes_held()
            found = tape.gradient(y, [x, w])
        return held, measured.peak_bytes, y.numpy(), [g.numpy() for g in found]

    held, peak, y, gradients = run(block)
    held_again, peak_again, y_again, gradients_again = run(tf.recompute_grad(block))
    assert y == y_again
    for one, other in zip(gradients, gradients_again):
        assert one.tobytes() == other.tobytes()
    assert np.abs(gradients[0]).max() > 0
    # The inputs of blocks and products; the plain net keeps the values inside the blocks as well.
    assert held_again <= 12 * ACTIVATION + MATRIX + 1024
    assert held_again < held
    assert peak_again < peak
