"""A call allocates its results and nothing else."""

from __future__ import annotations

import taut as tf


def test_an_eager_op_allocates_its_result_and_nothing_else():
    x, y = tf.ones([10]), tf.ones([10])
    x + y
    for work, count in [
        (lambda: x + y, 1),
        (lambda: tf.reshape(x, [2, 5]), 0),
        (lambda: x[2:7], 0),
        (lambda: tf.transpose(tf.reshape(x, [2, 5])), 0),
    ]:
        before = tf.memory.allocations()
        work()
        assert tf.memory.allocations() - before == count


def test_a_compiled_step_allocates_its_results_and_nothing_else(rng):
    w = tf.Variable(rng.normal(size=(8, 8)))

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.tanh(tf.matmul(tf.tanh(tf.matmul(x, w)), w)))
        w.assign_sub(0.1 * tape.gradient(loss, w))
        return loss

    x = tf.constant(rng.normal(size=(4, 8)))
    step(x)
    before = tf.memory.allocations()
    for _ in range(100):
        step(x)
    assert tf.memory.allocations() - before == 100
    assert step.trace_count == 1
