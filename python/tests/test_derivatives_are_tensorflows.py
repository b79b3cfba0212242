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


def test_the_gradients_of_cholesky_and_logdet_are_symmetric():
    for f, expected in (
        (tf.linalg.cholesky, [[0.20634446, 0.17462218], [0.17462218, 0.30151135]]),
        (tf.linalg.logdet, [[0.27272728, -0.09090909], [-0.09090909, 0.36363637]]),
    ):
        check(first(f, [[4.0, 1.0], [1.0, 3.0]]), expected)
    # The upper triangle is not read, and has half of the gradient.
    a = [[4.0, 9.0], [1.0, 3.0]]
    check(tf.linalg.cholesky(a), [[2.0, 0.0], [0.5, 1.6583124]])
    check(first(tf.linalg.cholesky, a), [[0.20634446, 0.17462218], [0.17462218, 0.30151135]])
    with pytest.raises(tf.errors.InvalidArgumentError, match="square"):
        tf.linalg.cholesky(tf.ones([2, 3]))


ROWS = np.linspace(0.1, 1.0, 12, dtype="float32").reshape(4, 3)
SPARSE = [[0, 1], [1, 2], [3, 0]]
DENSE_GRADIENTS = {
    "frame": (lambda v: tf.signal.frame(v, 2, 1), ROWS[:, 0]),
    "stft": (lambda v: tf.abs(tf.signal.stft(v, 2, 1)), ROWS[:, 0]),
    "resize": (lambda v: tf.image.resize(v, [3, 5]), ROWS[:, :, None]),
    "nearest": (lambda v: tf.image.resize(v, [3, 5], "nearest"), ROWS[:, :, None]),
    "sparse_dense_matmul": (
        lambda v: tf.sparse.sparse_dense_matmul(tf.SparseTensor(SPARSE, [1.0, 2.0, 3.0], [4, 4]), v),
        ROWS,
    ),
    "sparse transpose": (lambda v: tf.sparse.transpose(tf.SparseTensor(SPARSE, v, [4, 4])).values, ROWS[:3, 0]),
    "sparse segment_sum": (lambda v: tf.sparse.segment_sum(v, [0, 2], [0, 0]), ROWS),
    "TensorArray.gather": (lambda v: tf.TensorArray(tf.float32, 4).unstack(v).gather([1, 2]), ROWS),
}


@pytest.mark.parametrize("name", DENSE_GRADIENTS)
def test_only_gathers_of_rows_give_slices(name):
    f, values = DENSE_GRADIENTS[name]
    variable, constant = tf.Variable(values), tf.constant(values)
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(constant)
        y, same = f(variable) ** 2, f(constant) ** 2
    found = tape.gradient(y, variable)
    assert isinstance(found, tf.Tensor)
    np.testing.assert_array_equal(found, tape.gradient(same, constant))
    with tf.GradientTape() as tape:
        y = tf.gather(variable, [0, 2])
    assert isinstance(tape.gradient(y, variable), tf.IndexedSlices)


@pytest.mark.parametrize("mode", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_second_derivatives_of_powers_with_an_exponent_of_zero(mode):
    @mode
    def derivatives(x, y):
        with tf.GradientTape() as outer:
            outer.watch([x, y])
            with tf.GradientTape() as inner:
                inner.watch([x, y])
                power = x**y
            by_x, by_y = inner.gradient(power, [x, y])
        return by_x, by_y, outer.gradient(by_x, y)

    # TensorFlow 2.21's, but for the first derivative at x = 0, y = 0, which is NaN there.
    by_x, by_y, mixed = derivatives(tf.constant([-1.0, 2.0, 0.5, -2.5, 0.0]), tf.constant([0.0] * 5))
    np.testing.assert_array_equal(by_x, [0.0] * 5)
    np.testing.assert_allclose(by_y, [0.0, np.log(2.0), np.log(0.5), 0.0, 0.0], rtol=1e-6)
    np.testing.assert_allclose(mixed[:4], [-1.0, 0.5, 2.0, -0.4], rtol=1e-6)


@pytest.mark.parametrize("mode", [lambda f: f, tf.function], ids=["eager", "traced"])
def test_the_second_derivative_of_max_pooling_is_zeros(mode):
    @mode
    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.nn.max_pool2d(x, 2, 2, "VALID")
            slope = inner.gradient(y, x)
        return slope, outer.gradient(slope, x)

    slope, curvature = second(tf.reshape(tf.range(16.0), [1, 4, 4, 1]))
    assert float(tf.reduce_sum(slope)) == 4.0 and curvature.numpy().tolist() == np.zeros([1, 4, 4, 1]).tolist()
