"""Named intermediates, chained calls and `del` give the same plan."""

from __future__ import annotations

import re

import taut as tf


def test_three_styles_give_one_plan(rng):
    w = tf.constant(rng.normal(size=(16, 16)).astype("f4"))

    @tf.function
    def chained(x):
        return tf.reduce_sum(tf.exp(tf.tanh(tf.matmul(tf.nn.relu(tf.matmul(x, w)), w))), 0)

    @tf.function
    def named(x):
        product = tf.matmul(x, w)
        hidden = tf.nn.relu(product)
        second = tf.matmul(hidden, w)
        bounded = tf.tanh(second)
        grown = tf.exp(bounded)
        unused = tf.square(grown)  # noqa: F841
        return tf.reduce_sum(grown, 0)

    @tf.function
    def deleted(x):
        product = tf.matmul(x, w)
        hidden = tf.nn.relu(product)
        del product
        second = tf.matmul(hidden, w)
        del hidden
        bounded = tf.tanh(second)
        del second
        grown = tf.exp(bounded)
        del bounded
        return tf.reduce_sum(grown, 0)

    def shape(f):
        plan = f.plan(tf.TensorSpec([8, 16]))
        table = re.sub(r"at \S+:\d+", "at a line", plan.table())
        rows = [(row[0], row[1]) for row in plan.explain_peak().rows]
        return table, [op for op, _ in plan.steps], rows, plan.peak_bytes, plan.arena_bytes

    assert shape(chained) == shape(named) == shape(deleted)
