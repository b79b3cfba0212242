"""Loops, branches and maps nest, and are differentiable to second order."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


def in_while(f, x):
    start = (tf.constant(0), x)
    return tf.while_loop(lambda i, _: i < 3, lambda i, s: (i + 1, f(s)), start, maximum_iterations=5)[1]


def in_scan(f, x):
    return tf.scan(lambda s, r: f(s) * r, tf.constant([0.5, 1.5], tf.float64), initializer=x)[-1]


def in_foldr(f, x):
    return tf.foldr(lambda s, r: f(s) + r, tf.constant([0.5, 1.5], tf.float64), initializer=x)


def in_cond(f, x):
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: f(x), lambda: f(x * 0.5) * 2.0)


def in_switch(f, x):
    index = tf.cast(tf.reduce_sum(x) > 0.0, tf.int32)
    return tf.switch_case(index, [lambda: f(x) * x, lambda: f(x) * 3.0])


def in_map(f, x):
    return tf.map_fn(f, x)


AROUND = {f.__name__: f for f in [in_while, in_scan, in_foldr, in_cond, in_switch, in_map]}


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("inner", AROUND)
@pytest.mark.parametrize("outer", AROUND)
def test_control_flow_nests_and_has_two_orders_of_gradients(outer, inner, traced, numeric, slope):
    def wave(x):
        return tf.sin(x * 1.3)

    def nested(x):
        return AROUND[outer](lambda x: AROUND[inner](wave, x), x)

    if "in_map" == inner and outer == "in_map":
        x = np.array([[0.3, -0.2], [0.8, 0.4]])
    else:
        x = np.array([0.3, -0.2, 0.8])
    if outer == "in_map" and inner != "in_map":
        x = x[:, None] * np.array([1.0, 0.7])
    f = tf.function(nested, autograph=False) if traced else nested
    np.testing.assert_allclose(slope(f, x), numeric(nested, x), rtol=1e-6, atol=1e-9)

    def first(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = nested(x)
        return tape.gradient(y, x)

    np.testing.assert_allclose(slope(f, x, order=2), numeric(first, x), rtol=1e-5, atol=1e-8)


def unknown(x):
    """A loop without `maximum_iterations`: its length is unknown before it runs."""
    return tf.while_loop(lambda i, _: i < 2, lambda i, s: (i + 1, tf.sin(s)), (tf.constant(0), x))[1]


@pytest.mark.parametrize("traced", [False, True])
def test_a_loop_of_unknown_length_has_two_orders_of_gradients(traced, slope):
    f = tf.function(unknown, autograph=False) if traced else unknown
    x = 0.3
    sine, cosine = np.sin(x), np.cos(x)
    np.testing.assert_allclose(slope(f, [x]), [cosine * np.cos(sine)], rtol=1e-12)
    want = -(cosine**2) * np.sin(sine) - sine * np.cos(sine)
    np.testing.assert_allclose(slope(f, [x], order=2), [want], rtol=1e-12)


def test_a_second_order_that_needs_the_length_is_refused(slope):
    def inside(x):
        return in_scan(unknown, x)

    assert np.isfinite(slope(inside, [0.3])).all()
    with pytest.raises(tf.errors.OpError, match="maximum_iterations"):
        slope(inside, [0.3], order=2)
