"""Gradients of lookups stay sparse through tape, function, accumulation and optimizer."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf

FLOAT = 4


@pytest.mark.parametrize("traced", [False, True])
def test_the_gradient_of_a_lookup_has_the_size_of_the_lookup(traced):
    ids = tf.constant([3, 1, 3, 7])

    def sizes(vocabulary):
        table = tf.Variable(tf.zeros([vocabulary, 8]))

        def lookup(ids):
            return tf.gather(table, ids) * 2.0

        f = tf.function(lookup) if traced else lookup
        f(ids)
        with tf.memory.measure() as measured:
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(f(ids))
            gradient = tape.gradient(loss, table)
        assert isinstance(gradient, tf.IndexedSlices)
        assert gradient.shape == (vocabulary, 8)
        assert gradient.indices.numpy().tolist() == [3, 1, 3, 7]
        assert gradient.values.numpy().tolist() == [[2.0] * 8] * 4
        assert gradient.nbytes == 4 * 8 * FLOAT + gradient.indices.nbytes
        return gradient.nbytes, measured.peak_bytes

    small, large = sizes(10), sizes(100_000)
    assert small == large, "independent of the vocabulary"
    assert large[1] < 1024


def test_two_lookups_accumulate_without_becoming_dense(rng):
    vocabulary = 100_000
    table = tf.Variable(tf.zeros([vocabulary, 4]))
    with tf.memory.measure() as measured:
        with tf.GradientTape() as tape:
            one = tf.reduce_sum(tf.gather(table, tf.constant([5, 6])))
            other = tf.reduce_sum(tf.gather(table, tf.constant([6, 99_999])) * 3.0)
            loss = one + other
        gradient = tape.gradient(loss, table)
    assert isinstance(gradient, tf.IndexedSlices)
    assert measured.peak_bytes < vocabulary * FLOAT
    sums = np.zeros(vocabulary)
    np.add.at(sums, gradient.indices.numpy(), gradient.values.numpy()[:, 0])
    assert {int(row): sums[row] for row in np.flatnonzero(sums)} == {5: 1.0, 6: 4.0, 99_999: 3.0}


def test_a_function_returns_indexed_slices(rng):
    table = tf.Variable(tf.zeros([1000, 4]))

    @tf.function
    def gradient(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, ids))
        return tape.gradient(loss, table)

    found = gradient(tf.constant([2, 5]))
    assert isinstance(found, tf.IndexedSlices)
    assert found.values.shape == (2, 4)
    assert found.indices.numpy().tolist() == [2, 5]


@pytest.mark.parametrize("rule", ["SGD", "Adam"])
def test_an_optimizer_updates_only_the_rows_in_use(rule, rng):
    vocabulary, used = 50_000, [4, 17, 4]
    start = rng.normal(size=(vocabulary, 4)).astype("f4")
    table = tf.Variable(start)
    optimizer = getattr(tf.optimizers, rule)(learning_rate=0.5)
    optimizer.build([table])
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, tf.constant(used)))
    gradient = tape.gradient(loss, table)
    with tf.memory.measure() as measured:
        optimizer.apply_gradients([(gradient, table)])
    assert measured.peak_bytes < vocabulary * FLOAT, "no allocation of the size of the table"
    changed = np.flatnonzero((table.numpy() != start).any(axis=1))
    assert changed.tolist() == [4, 17]
    if rule == "SGD":
        np.testing.assert_allclose(table.numpy()[4], start[4] - 0.5 * 2, rtol=1e-6)
        np.testing.assert_allclose(table.numpy()[17], start[17] - 0.5, rtol=1e-6)
    else:  # The first step of Adam is as long as the learning rate.
        np.testing.assert_allclose(table.numpy()[[4, 17]], start[[4, 17]] - 0.5, rtol=1e-4)
