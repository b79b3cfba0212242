"""Chains of elementwise ops, broadcasts and reductions run in one pass without temporaries."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf

FLOAT = 4


@pytest.mark.parametrize("jit", [False, True])
def test_a_chain_allocates_only_its_result(jit, peak_of, rng):
    f = tf.function(lambda x: 2.0 * x * x + 1.0, jit_compile=jit)
    x = tf.constant(rng.normal(size=(256, 256)).astype("f4"))
    plan = f.plan(x)
    peak, y = peak_of(lambda: f(x))
    assert peak == plan.peak_bytes == y.nbytes == 256 * 256 * FLOAT
    assert len(plan.steps) == 1
    np.testing.assert_allclose(y.numpy(), 2 * x.numpy() ** 2 + 1, rtol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_a_sum_of_squares_allocates_one_scalar(jit, size, peak_of, rng):
    f = tf.function(lambda x, y: tf.reduce_sum(tf.square(x - y)), jit_compile=jit)
    x, y = (tf.constant(rng.normal(size=size)) for _ in range(2))
    peak, z = peak_of(lambda: f(x, y))
    assert peak == z.nbytes == 8
    np.testing.assert_allclose(z.numpy(), np.sum((x.numpy() - y.numpy()) ** 2), rtol=1e-12)


def test_broadcasts_and_repeats_are_not_materialised(peak_of, rng):
    rows, columns = tf.constant(rng.normal(size=(2000, 1))), tf.constant(rng.normal(size=(1, 2000)))
    f = tf.function(lambda a, b: tf.reduce_max(a * b))
    peak, y = peak_of(lambda: f(rows, columns))
    assert peak < 64 << 10, "the 32 MB of the product are not allocated"
    np.testing.assert_allclose(y.numpy(), np.max(rows.numpy() * columns.numpy()))
    g = tf.function(lambda x: tf.reduce_sum(tf.repeat(x, 1000)))
    peak, z = peak_of(lambda: g(tf.ones([2000])))
    assert peak < 64 << 10, "the 8 MB of the copies are not allocated"
    assert float(z) == 2e6
