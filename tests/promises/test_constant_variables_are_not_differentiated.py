"""A variable used as a constant is not differentiated."""

from __future__ import annotations

import numpy as np
import taut as tf


def test_a_variable_used_as_a_constant_is_not_differentiated(rng):
    w = tf.Variable(rng.normal(size=(4, 4)))
    scale, frozen = tf.Variable(2.0, dtype=tf.float64), tf.Variable(3.0, dtype=tf.float64, trainable=False)
    x = tf.constant(rng.normal(size=(2, 4)))
    outside = tf.identity(scale)
    with tf.GradientTape() as tape:
        scaled = x * outside * frozen * tf.stop_gradient(scale)
        assert tape.num_entries() == 0
        y = tf.matmul(scaled, w)
        assert tape.num_entries() == 1
    of_w, of_scale, of_frozen = tape.gradient(y, [w, scale, frozen])
    assert of_scale is None and of_frozen is None
    np.testing.assert_allclose(of_w.numpy(), (x.numpy() * 12).T @ np.ones((2, 4)), rtol=1e-12)


def test_constants_in_a_function_are_not_differentiated():
    v, frozen = tf.Variable(2.0), tf.Variable(3.0, trainable=False)

    @tf.function
    def gradients(x):
        with tf.GradientTape() as tape:
            y = tf.stop_gradient(v) * frozen * x + v
        return tape.gradient(y, [v, frozen], unconnected_gradients="zero")

    assert [float(g) for g in gradients(tf.constant(5.0))] == [1.0, 0.0]
