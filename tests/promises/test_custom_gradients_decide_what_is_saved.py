"""Custom gradients decide what is saved for the backward pass."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf

FLOAT = 4
ELEMENTS = 4 * 5
TENSOR, ROW = ELEMENTS * FLOAT, 5 * FLOAT


def test_a_custom_gradient_keeps_what_it_declares(rng):
    @tf.custom_gradient
    def cubed(x):
        square = x * x

        def grad(upstream):
            return upstream * 3.0 * square

        return square * x, grad

    @tf.custom_gradient
    def frozen(x):
        return tf.tanh(tf.exp(x)), lambda upstream: upstream * 2.0

    x = tf.constant(rng.normal(size=(4, 5)).astype("f4"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = cubed(x)
    assert tape.bytes_held() == TENSOR
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), 3 * x.numpy() ** 2, rtol=1e-5)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = frozen(x)
    assert tape.bytes_held() == 0
    assert tape.gradient(y, x).numpy().tolist() == [[2.0] * 5] * 4


@tf.custom_gradient
def mixed(x, y, scale=1.0):
    """Two inputs, two outputs and a keyword, with its own rule."""
    product, wave = x * y * scale, tf.sin(x)

    def grad(of_product, of_wave):
        return of_product * y * scale + of_wave * tf.cos(x), of_product * x * scale

    return (product, wave), grad


@pytest.mark.parametrize("traced", [False, True])
def test_several_inputs_outputs_and_keywords(traced, rng, numeric):
    def thrice(x, y):
        return mixed(x, y, scale=3.0)

    call = tf.function(thrice) if traced else thrice

    def total(x, y):
        product, wave = call(x, y)
        return product * product + 2.0 * wave

    x, y = (tf.constant(rng.normal(size=(3,))) for _ in range(2))
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.reduce_sum(total(x, y))
    found = tape.gradient(z, [x, y])
    np.testing.assert_allclose(found[0].numpy(), numeric(lambda v: total(v, y), x.numpy()), rtol=1e-6)
    np.testing.assert_allclose(found[1].numpy(), numeric(lambda v: total(x, v), y.numpy()), rtol=1e-6)


@pytest.mark.parametrize("traced", [False, True])
def test_custom_gradients_are_differentiable(traced, rng, numeric, slope):
    @tf.custom_gradient
    def cubed(x):
        def grad(upstream):
            return upstream * 3.0 * x * x

        return x * x * x, grad

    f = tf.function(cubed) if traced else cubed
    x = rng.normal(size=(3,))
    np.testing.assert_allclose(slope(f, x), 3 * x**2, rtol=1e-12)
    np.testing.assert_allclose(slope(f, x, order=2), 6 * x, rtol=1e-12)
    np.testing.assert_allclose(slope(f, x, order=2), numeric(lambda v: 3.0 * v * v, x), rtol=1e-6)
