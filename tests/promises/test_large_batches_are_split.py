"""A batch that is too large for its memory budget is split into micro-batches that give the same mean gradient."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import taut as tf


def network(batch_norm=False):
    """A wide network on a large batch: activations are much larger than gradients."""
    rng = np.random.default_rng(1)
    weights = [tf.Variable(rng.normal(size=(24, 24)).astype("f4") * 0.3) for _ in range(6)]

    def step(x, y, mask):
        with tf.GradientTape() as tape:
            h = x
            for w in weights:
                h = tf.tanh(h @ w)
                if batch_norm:
                    mean, variance = tf.nn.moments(h, [0])
                    h = tf.nn.batch_normalization(h, mean, variance, None, None, 1e-3)
            errors = tf.reduce_sum(tf.square(h - y), axis=1) * mask
            loss = tf.reduce_sum(errors) / tf.reduce_sum(mask)
        for w, gradient in zip(weights, tape.gradient(loss, weights)):
            w.assign_sub(0.1 * gradient)
        return loss

    x, y = (tf.constant(rng.normal(size=(250, 24)).astype("f4")) for _ in range(2))
    mask = tf.constant((rng.random(250) < 0.7).astype("f4"))
    return step, [x, y, mask], weights


def run(budget):
    body, arguments, weights = network()
    step = tf.function(body, memory_budget=budget)
    planned = step.plan(*arguments).peak_bytes
    gc.collect()
    with tf.memory.measure() as measured:
        loss = step(*arguments)
    assert measured.peak_bytes == planned
    return planned, [loss.numpy(), *[w.numpy() for w in weights]]


def test_parts_give_the_gradient_of_the_whole_batch():
    plain, expected = run(None)
    body, arguments, _ = network()
    rows = [row for row in tf.function(body).frontier(*arguments).rows if row.micro_batches > 1]
    assert rows and rows[0].bytes < plain / 4
    for row in rows:
        planned, got = run(row.bytes)
        assert planned <= row.bytes
        for one, other in zip(got, expected):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def test_a_budget_can_ask_for_the_same_bits():
    plain, expected = run(None)
    body, arguments, _ = network()
    smallest = tf.function(body).frontier(*arguments).bit_equal_rows[0]
    assert smallest.micro_batches == 1
    _, got = run(tf.memory.MemoryBudget(smallest.bytes, bit_equal=True))
    for one, other in zip(got, expected):
        np.testing.assert_array_equal(one, other)


def test_what_mixes_rows_is_named():
    body, arguments, _ = network(batch_norm=True)
    f = tf.function(body, memory_budget=20_000)
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        f(*arguments)
    text = str(caught.value)
    assert "the batch is not split: moments at" in text and "mixes the rows" in text
    assert __file__.rsplit("/", 1)[-1] in text
    assert "the batch is not split" in str(tf.function(body).frontier(*arguments))
