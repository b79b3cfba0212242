"""`map_fn` holds `parallel_iterations` bodies and the outputs, and is as exact as the vectorised form."""

from __future__ import annotations

import collections

import numpy as np
import pytest
import taut as tf

DOUBLE = 8
WIDE = 1000  # elements of an intermediate value of the body


def body(x):
    """Expands a scalar to `WIDE` elements and reduces it again, in ops that cannot be fused."""
    wide = tf.cumsum(tf.fill([WIDE], x) * tf.range(WIDE, dtype=tf.float64))
    return tf.reduce_sum(tf.sort(tf.sin(wide)))


def by_hand(values):
    return np.array([np.sin(np.cumsum(np.full(WIDE, x) * np.arange(WIDE))).sum() for x in values])


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("at_once", [1, 4, 16])
def test_a_map_holds_parallel_iterations_bodies_and_the_outputs(at_once, traced, peak_of, rng):
    def mapped(x):
        return tf.map_fn(body, x, parallel_iterations=at_once)

    beside = []
    for count in [32, 256, 2048]:
        x = tf.constant(rng.normal(size=count))
        f = tf.function(mapped, autograph=False) if traced else mapped
        peak, y = peak_of(lambda: f(x))
        np.testing.assert_allclose(y.numpy(), by_hand(x.numpy()), rtol=1e-7)
        beside.append(peak - y.nbytes)
    assert beside == [beside[0]] * 3, "independent of the number of elements"
    # A body holds two such values at a time, input and output of an op; some are shared by all bodies.
    assert (at_once - 1) * WIDE * DOUBLE <= beside[0] <= (2 * at_once + 4) * WIDE * DOUBLE + 4096


def test_nested_structures_are_mapped(rng):
    Pair = collections.namedtuple("Pair", "low high")
    elements = {"a": tf.constant(rng.normal(size=(5, 3))), "b": (tf.constant([1, 2, 3, 4, 5]),)}

    def split(element):
        a, (b,) = element["a"], element["b"]
        return Pair(tf.reduce_min(a), [tf.reduce_max(a), b * 2])

    signature = Pair(tf.float64, [tf.float64, tf.int32])
    made = tf.map_fn(split, elements, fn_output_signature=signature)
    assert isinstance(made, Pair)
    a = elements["a"].numpy()
    assert made.low.numpy().tolist() == a.min(1).tolist()
    assert made.high[0].numpy().tolist() == a.max(1).tolist()
    assert made.high[1].numpy().tolist() == [2, 4, 6, 8, 10]


def test_a_wrong_output_signature_is_refused():
    with pytest.raises(TypeError, match="int64"):
        tf.map_fn(lambda x: x * 2.0, tf.ones([3]), fn_output_signature=tf.int64)


@pytest.mark.parametrize("budget", [200_000, 1_000_000])
def test_a_budget_holds_in_the_forward_and_backward_pass(budget, peak_of, rng):
    w = tf.constant(0.5, tf.float64)
    peaks, backs = [], []
    for count in [64, 512, 2048]:
        x = tf.constant(rng.normal(size=count))
        peak, y = peak_of(lambda: tf.map_fn(lambda v: body(v * w), x, memory_budget=budget))
        peaks.append(peak - y.nbytes)
        np.testing.assert_allclose(y.numpy(), by_hand(x.numpy() * 0.5), rtol=1e-7)

        def gradient():
            with tf.GradientTape() as tape:
                tape.watch([x, w])
                y = tf.reduce_sum(tf.map_fn(lambda v: body(v * w), x, memory_budget=budget))
            return tape.gradient(y, [x, w])

        back, (of_x, of_w) = peak_of(gradient)
        # Beside a chunk: the incoming and outgoing gradients, of the size of the elements.
        backs.append(back - 2 * x.nbytes)
        ramp = np.cumsum(np.arange(WIDE))
        slopes = np.array([(np.cos(v * 0.5 * ramp) * ramp).sum() for v in x.numpy()])
        np.testing.assert_allclose(of_x.numpy(), slopes * 0.5, rtol=1e-6, atol=1e-3)
        np.testing.assert_allclose(of_w.numpy(), (slopes * x.numpy()).sum(), rtol=1e-6)
    assert peaks == [peaks[0]] * 3 and backs == [backs[0]] * 3, "independent of the number of elements"
    assert peaks[0] <= budget
    # Beside the map: the sum of its results, and the gradient of `w`.
    assert backs[0] <= budget + 8 * w.nbytes


@pytest.mark.parametrize("options", [{}, {"parallel_iterations": 3}, {"memory_budget": 40_000}])
def test_a_map_equals_its_vectorised_form(options, rng):
    x = tf.constant(rng.normal(size=50))
    mapped, vectorised = tf.map_fn(body, x, **options), tf.vectorized_map(body, x)
    np.testing.assert_allclose(mapped.numpy(), vectorised.numpy(), rtol=1e-12)


def test_the_body_is_traced_and_not_called_per_element():
    calls = []

    def counted(x):
        calls.append(1)
        return x * 2

    assert tf.map_fn(counted, tf.range(1000)).numpy().tolist() == list(range(0, 2000, 2))
    assert len(calls) <= 2
