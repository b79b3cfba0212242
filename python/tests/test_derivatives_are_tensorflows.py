"""Which derivatives exist, and what they are where a function has a bend or is not defined: as in TensorFlow 2.21.

The values were recorded by running the same expressions there; None is a derivative that does not exist.
"""

import numpy as np
import pytest

import taut as tf

X = [-1.0, 0.0, 2.0]
NAN, INF = float("nan"), float("inf")


def first(f, x=X):
    x = tf.constant(x)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    return tape.gradient(y, x)


def second(f, x=X):
    x = tf.constant(x)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = f(x)
        gradient = inner.gradient(y, x)
    return outer.gradient(gradient, x)


def check(found, expected):
    if expected is None:
        assert found is None
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-6)


ZEROS = [0.0, 0.0, 0.0]

# Function, first and second derivative at X.
BENDS = {
    "relu": (tf.nn.relu, [0, 0, 1], ZEROS),
    "abs": (tf.abs, [-1, 0, 1], ZEROS),
    "sign": (tf.sign, ZEROS, None),
    "relu6": (tf.nn.relu6, [0, 0, 1], ZEROS),
    "leaky_relu": (tf.nn.leaky_relu, [0.2, 0.2, 1], ZEROS),
    "selu": (tf.nn.selu, [0.64676857, 1.050701, 1.050701], [0.64676857, 0, 0]),
    "crelu": (tf.nn.crelu, [-1, 0, 1], ZEROS),
    "maximum": (lambda x: tf.maximum(x, 0.5), [0, 0, 1], None),
    "clip": (lambda x: tf.clip_by_value(x, -0.5, 0.5), [0, 1, 0], None),
    "where": (lambda x: tf.where(x > 0, x, 0.0), [0, 0, 1], None),
    "identity": (tf.identity, [1, 1, 1], None),
    "scaled": (lambda x: 2.0 * x, [2, 2, 2], None),
    "largest": (tf.reduce_max, [0, 0, 1], None),
    "mean": (tf.reduce_mean, [1 / 3, 1 / 3, 1 / 3], None),
    "cast": (lambda x: tf.cast(x, tf.float64), [1, 1, 1], None),
}


@pytest.mark.parametrize("name", BENDS)
@pytest.mark.parametrize("traced", [False, True])
def test_first_and_second_derivatives(name, traced):
    f, expected, again = BENDS[name]
    found = (tf.function(lambda: (first(f), second(f))) if traced else lambda: (first(f), second(f)))()
    check(found[0], expected)
    check(found[1], again)


@pytest.mark.parametrize("f", [tf.floor, tf.math.ceil, tf.round, tf.math.rint, lambda x: x // 1.5])
def test_steps_have_no_derivative(f):
    assert first(f) is None


def test_second_derivatives_of_relu_by_other_ways():
    x = tf.constant(X)

    @tf.function
    def hessian(x):
        return tf.hessians(tf.reduce_sum(tf.nn.relu(x)), x)[0]

    np.testing.assert_array_equal(hessian(x), np.zeros([3, 3]))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = tf.nn.relu(x) * 3.0
        gradient = inner.gradient(y, x)
    np.testing.assert_array_equal(tape.jacobian(gradient, x), np.zeros([3, 3]))
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as forward:
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.nn.relu(x) * x
        gradient = tape.gradient(y, x)
    # The derivative of 2 x above zero.
    np.testing.assert_array_equal(forward.jvp(gradient), [0, 0, 2])


# Function, gradient, forward derivative at X.
UNDEFINED = {
    "sqrt": (lambda x: tf.where(x > 0, tf.sqrt(x), 0.0), [0, 0, 0.35355338], [0, 0, 0.35355338]),
    "rsqrt": (lambda x: tf.where(x > 0, tf.math.rsqrt(x), 0.0), [0, 0, -0.17677668], [0, 0, -0.17677668]),
    "reciprocal": (lambda x: tf.where(x > 0, tf.math.reciprocal(x), 0.0), [0, 0, -0.25], [0, 0, -0.25]),
    "norm": (lambda x: tf.where(x > 0, tf.norm(x[:, None], axis=1), 0.0), [0, 0, 1], [0, 0, 1]),
    "sqrt_of_abs": (lambda x: tf.where(x > 0, tf.sqrt(tf.abs(x)), 0.0), [0, 0, 0.35355338], [0, 0, 0.35355338]),
    "log": (lambda x: tf.where(x > 0, tf.math.log(x), 0.0), [0, NAN, 0.5], [0, 0, 0.5]),
    "log1p": (lambda x: tf.where(x > 0, tf.math.log1p(x - 1), 0.0), [0, NAN, 0.5], [0, 0, 0.5]),
    "divide": (lambda x: tf.where(x > 0, 1.0 / x, 0.0), [0, NAN, -0.25], [0, 0, -0.25]),
    "divide_no_nan": (lambda x: tf.where(x > 0, tf.math.divide_no_nan(2.0, x), 0.0), [0, 0, -0.5], [0, 0, -0.5]),
    "safe": (
        lambda x: tf.where(x > 0, tf.sqrt(tf.where(x > 0, x, 1.0)), 0.0),
        [0, 0, 0.35355338],
        [0, 0, 0.35355338],
    ),
    "sqrt_itself": (tf.sqrt, [NAN, INF, 0.35355338], [NAN, INF, 0.35355338]),
}


@pytest.mark.parametrize("name", UNDEFINED)
def test_gradients_where_one_side_is_not_defined(name):
    f, expected, forward = UNDEFINED[name]
    check(first(f), expected)
    traced = tf.function(lambda x: tf.gradients(f(x), x)[0])
    check(traced(tf.constant(X)), expected)
    x = tf.constant(X)
    with tf.autodiff.ForwardAccumulator(x, tf.ones_like(x)) as accumulator:
        y = f(x)
    check(accumulator.jvp(y), forward)


def test_multiply_no_nan():
    x, y = tf.constant([INF, NAN, 2.0, INF]), tf.constant([0.0, 0.0, 3.0, 2.0])
    np.testing.assert_array_equal(tf.math.multiply_no_nan(x, y), [0, 0, 6, INF])
    with tf.GradientTape() as tape:
        tape.watch([x, y])
        z = tf.math.multiply_no_nan(x, y)
    dx, dy = tape.gradient(z, [x, y])
    np.testing.assert_array_equal(dx, [0, 0, 3, 2])
    np.testing.assert_array_equal(dy, [INF, NAN, 2, INF])


def test_tangents_may_be_numbers():
    # As TensorFlow 2.21: 27, 32.
    x, v = tf.constant(3.0), tf.Variable(2.0)
    with tf.autodiff.ForwardAccumulator(x, 1.0) as acc:
        y = x**3
    assert float(acc.jvp(y)) == 27.0
    with tf.autodiff.ForwardAccumulator([x, v], [1.0, 10.0]) as acc:
        y = v * x
    assert float(acc.jvp(y)) == 32.0
