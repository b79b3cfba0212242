"""A traced function called under a tape is one entry, with a planned backward pass."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


@pytest.mark.parametrize("jit", [False, True])
def test_a_function_under_a_tape_is_one_entry(jit, rng):
    w = tf.Variable(rng.normal(size=(6, 6), scale=0.3))
    x = tf.constant(rng.normal(size=(4, 6)))

    def net(x):
        for _ in range(10):
            x = tf.tanh(tf.matmul(x, w)) + tf.sin(x)
        return tf.reduce_sum(x * x)

    f = tf.function(net, jit_compile=jit)
    found = []
    for run, entries in [(f, 1), (net, None)]:
        for _ in range(2):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = run(x)
            assert entries is None or tape.num_entries() == entries
            found.append([y.numpy(), *(g.numpy() for g in tape.gradient(y, [x, w]))])
    assert f.trace_count == 1
    for other in found[:-1]:
        for one, two in zip(other, found[-1]):
            np.testing.assert_allclose(one, two, rtol=1e-10, atol=1e-12)


def test_forward_and_backward_are_planned(rng, line_of):
    w = tf.Variable(rng.normal(size=(32, 32)))
    x = tf.constant(rng.normal(size=(16, 32)))
    activation, matrix = x.nbytes, w.nbytes

    @tf.function
    def f(x):
        hidden = tf.tanh(tf.matmul(x, w))  # first layer
        return tf.reduce_sum(tf.tanh(tf.matmul(hidden, w)))

    def run():
        with tf.GradientTape() as tape:
            y = f(x)
        return tape, y

    forward, backward = f.plan_gradient(x)
    # The results of both layers are kept, and the sum is returned.
    assert forward.peak_bytes == forward.output_bytes == 2 * activation + 8
    tape, y = run()
    tape.gradient(y, w)  # forward and backward are traced and compiled now
    f.release()
    del tape, y
    with tf.memory.measure() as ahead:
        tape, y = run()
    assert ahead.peak_bytes == forward.peak_bytes
    assert tape.bytes_held() == 3 * activation + matrix, "the residuals, and the caller's x and w"
    with tf.memory.measure() as back:
        tape.gradient(y, w)
    # The second product is added to the first one in place; beside it is the gradient of the hidden layer.
    assert backward.peak_bytes == matrix + activation
    assert back.peak_bytes <= backward.peak_bytes + 8, "the plan, and the initial gradient"
    line = line_of(test_forward_and_backward_are_planned, "# first layer")
    for plan in [forward, backward]:
        here = f"test_function_under_a_tape_is_one_entry.py:{line}"
        assert any(here in at for _, at in plan.steps), plan.steps
