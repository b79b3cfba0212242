"""AutoGraph: gradients through converted control flow, and its planned memory."""

from __future__ import annotations

import numpy as np
import pytest

import taut as tf


def finite(function, x, step=1e-6):
    """The gradient by differences."""
    found = np.zeros_like(x)
    for k in range(x.size):
        delta = np.zeros_like(x)
        delta.flat[k] = step
        above, below = (float(function(tf.constant(at))) for at in (x + delta, x - delta))
        found.flat[k] = (above - below) / (2 * step)
    return found


def branch(x):
    if x[0] > x[1]:
        return tf.reduce_sum(x * x) * x[0]
    return tf.reduce_sum(x) / x[1]


def halving(x):
    y = x[0] * x[1]
    while y < 10:
        if y < 3:
            y = y * y + x[2]
        else:
            y = y * 2
    return y


def rows(x):
    total = 1.0
    for i, row in enumerate(x):
        if row < 1.5 and i > 0:
            continue
        total = total * row + tf.sin(row)
    return total


def until(x):
    total = x[0]
    for row in x:
        if total > 4:
            break
        total = total + row * row
    return total * x[2]


@pytest.mark.parametrize("function", [branch, halving, rows, until])
@pytest.mark.parametrize("point", [[1.3, 1.7, 2.1], [2.3, 1.1, 0.6]])
def test_gradients(function, point):
    x = np.array(point, np.float64)
    traced = tf.function(function)
    with tf.GradientTape() as tape:
        given = tf.constant(x)
        tape.watch(given)
        y = traced(given)
    np.testing.assert_allclose(np.asarray(tape.gradient(y, given)), finite(function, x), rtol=1e-5)


def test_a_branch_that_is_not_taken_needs_no_memory():
    def small(x):
        return tf.reduce_sum(tf.matmul(x[:, None], x[None, :]))

    def large(x):
        outer = tf.matmul(x[:, None], x[None, :])
        return tf.reduce_sum(tf.matmul(outer, tf.matmul(x[:, None] * 2, x[None, :])))

    @tf.function
    def both(x):
        if x[0] > 0:
            y = small(x)
        else:
            y = large(x)
        return y

    spec = tf.TensorSpec([256])
    one, other = (tf.function(part).plan(spec).arena_bytes for part in (small, large))
    slack = 4096
    assert max(one, other) <= both.plan(spec).arena_bytes <= max(one, other) + slack
    assert slack < min(one, other)
