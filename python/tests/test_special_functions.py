"""Special functions and decompositions against SciPy, and their gradients against finite differences."""

import numpy as np
import pytest
import scipy.linalg
import scipy.special

import taut as tf

POSITIVE = np.array([1e-8, 0.05, 0.5, 1.0, 1.49, 1.99, 2.01, 4.99, 5.01, 7.99, 8.01, 11.9, 23.0, 25.0, 60.0])
SIGNED = np.concatenate([-POSITIVE[::-1], [0.0], POSITIVE])

UNARY = {
    "bessel_i0": (scipy.special.i0, SIGNED),
    "bessel_i0e": (scipy.special.i0e, SIGNED),
    "bessel_i1": (scipy.special.i1, SIGNED),
    "bessel_i1e": (scipy.special.i1e, SIGNED),
    "bessel_j0": (scipy.special.j0, SIGNED),
    "bessel_j1": (scipy.special.j1, SIGNED),
    "bessel_k0": (scipy.special.k0, POSITIVE),
    "bessel_k0e": (scipy.special.k0e, POSITIVE),
    "bessel_k1": (scipy.special.k1, POSITIVE),
    "bessel_k1e": (scipy.special.k1e, POSITIVE),
    "bessel_y0": (scipy.special.y0, POSITIVE),
    "bessel_y1": (scipy.special.y1, POSITIVE),
    "dawsn": (scipy.special.dawsn, SIGNED),
    "expint": (scipy.special.expi, POSITIVE),
    "fresnel_cos": (lambda x: scipy.special.fresnel(x)[1], SIGNED),
    "fresnel_sin": (lambda x: scipy.special.fresnel(x)[0], SIGNED),
    "spence": (scipy.special.spence, np.concatenate([[0.0], POSITIVE])),
}


@pytest.mark.parametrize("name", UNARY)
def test_values_are_scipys(name):
    expected, x = UNARY[name]
    function = getattr(tf.math.special, name)
    np.testing.assert_allclose(function(tf.constant(x)), expected(x), rtol=2e-12, atol=1e-14)
    single = x.astype(np.float32)
    np.testing.assert_allclose(function(tf.constant(single)), expected(single.astype(float)), rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("name", UNARY)
def test_slopes(name):
    function = getattr(tf.math.special, name)
    x = np.array([0.3, 1.2, 2.5, 5.5, 9.0])
    step = 1e-6
    with tf.GradientTape() as tape:
        value = tf.Variable(x)
        y = function(value)
    slope = (function(tf.constant(x + step)) - function(tf.constant(x - step))) / (2 * step)
    np.testing.assert_allclose(tape.gradient(y, value), slope, rtol=1e-6, atol=1e-8)
    traced = tf.function(function)(tf.constant(x))
    np.testing.assert_allclose(traced, function(tf.constant(x)), rtol=1e-14)


def test_outside_of_their_domain():
    special = tf.math.special
    # TensorFlow's answers.
    ends = tf.constant([0.0, -1.0, -np.inf, np.inf, np.nan])
    for function, wanted in (
        (special.bessel_k0, [np.inf, np.inf, np.inf, 0.0, np.nan]),
        (special.bessel_k1, [np.inf, np.inf, np.inf, 0.0, np.nan]),
        (special.bessel_y0, [-np.inf, -np.inf, -np.inf, np.nan, np.nan]),
        (special.expint, [-np.inf, np.nan, np.nan, np.nan, np.nan]),
        (special.spence, [1.644934, np.nan, np.nan, np.nan, np.nan]),
        (special.fresnel_cos, [0.0, -0.7798934, -0.5, 0.5, np.nan]),
        (special.fresnel_sin, [0.0, -0.43825915, -0.5, 0.5, np.nan]),
        (special.dawsn, [0.0, -0.5380795, 0.0, 0.0, np.nan]),
    ):
        np.testing.assert_allclose(function(ends), wanted, rtol=1e-6)
    with pytest.raises(TypeError, match="floating-point type"):
        tf.math.bessel_i0(tf.constant(3))
    with pytest.raises(TypeError, match="one floating-point type"):
        tf.math.igamma(tf.constant(1.0), tf.constant(1.0, tf.float64))


def test_slopes_at_the_ends_of_the_domain():
    special, inf = tf.math.special, np.inf
    for function, x, wanted in (
        (special.fresnel_cos, 0.0, 1.0),
        (special.spence, 0.0, -inf),
        (special.spence, 1.0, -1.0),
        (special.expint, 0.0, inf),
        (special.expint, -1.0, -0.36787945),
        (special.bessel_k0, 0.0, -inf),
        (special.bessel_j1, 0.0, 0.5),
        (tf.math.bessel_i0, 1e30, inf),
    ):
        x = tf.constant(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        np.testing.assert_allclose(tape.gradient(y, x), wanted, rtol=1e-6, err_msg=function.__name__)


@pytest.mark.parametrize("name", ["dawsn", "bessel_j0", "bessel_k1", "spence"])
def test_second_slopes(name):
    function = getattr(tf.math.special, name)
    x = tf.constant([0.3, 1.7, 6.0], tf.float64)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = function(x)
        slope = inner.gradient(y, x)
    reference = getattr(scipy.special, {"bessel_j0": "j0", "bessel_k1": "k1"}.get(name, name))
    step = 1e-4
    wanted = (reference(x.numpy() + step) - 2 * reference(x.numpy()) + reference(x.numpy() - step)) / step**2
    np.testing.assert_allclose(outer.gradient(slope, x), wanted, rtol=1e-5, atol=1e-6)


def test_dawsons_integral_of_large_numbers():
    x = np.array([5.1, 157.0, 158.2, 1e3, 1e6, 1e100, -1e4])
    np.testing.assert_allclose(tf.math.special.dawsn(tf.constant(x)), scipy.special.dawsn(x), rtol=1e-14)


def test_inverse_error_functions():
    x = np.array([1e-300, 1e-20, 1e-3, 0.1, 0.5, 0.9, 1.0, 1.3, 1.999, 2.0, 0.0])
    np.testing.assert_allclose(tf.math.erfcinv(tf.constant(x)), scipy.special.erfcinv(x), rtol=1e-13, atol=1e-15)
    p = np.array([1e-300, 1e-10, 0.02, 0.5, 0.7, 1 - 1e-9, 1.0, 0.0])
    np.testing.assert_allclose(tf.math.ndtri(tf.constant(p)), scipy.special.ndtri(p), rtol=1e-8, atol=1e-15)
    assert np.isnan(tf.math.ndtri(tf.constant(1.5)))


def test_incomplete_gamma_and_beta():
    a, x = np.meshgrid([0.01, 0.5, 1.0, 3.3, 40.0, 300.0], [0.0, 1e-6, 0.3, 2.0, 11.0, 290.0, 400.0])
    np.testing.assert_allclose(tf.math.igamma(tf.constant(a), x), scipy.special.gammainc(a, x), rtol=1e-11, atol=1e-15)
    np.testing.assert_allclose(tf.math.igammac(tf.constant(a), x), scipy.special.gammaincc(a, x), rtol=1e-9, atol=1e-14)
    a, b, x = np.meshgrid([0.2, 1.0, 5.0, 60.0], [0.3, 2.0, 50.0], [0.0, 0.01, 0.4, 0.93, 1.0])
    np.testing.assert_allclose(
        tf.math.betainc(tf.constant(a), b, x), scipy.special.betainc(a, b, x), rtol=1e-11, atol=1e-15
    )
    a, x = tf.Variable([0.7, 2.0, 9.0], dtype=tf.float64), tf.Variable([1.5, 0.4, 12.0], dtype=tf.float64)
    with tf.GradientTape() as tape:
        y = tf.math.igamma(a, x)
    in_a, in_x = tape.gradient(y, [a, x])
    step = 1e-6
    plus, minus = (
        scipy.special.gammainc(a.numpy() + step, x.numpy()),
        scipy.special.gammainc(a.numpy() - step, x.numpy()),
    )
    np.testing.assert_allclose(in_a, (plus - minus) / (2 * step), rtol=1e-5)
    np.testing.assert_allclose(in_x, np.exp(-x.numpy()) * x.numpy() ** (a.numpy() - 1) / scipy.special.gamma(a.numpy()))


def test_zeta_and_polygamma():
    s, q = np.meshgrid([1.1, 2.0, 3.5, 20.0], [0.1, 1.0, 4.4, 30.0])
    np.testing.assert_allclose(tf.math.zeta(tf.constant(s), q), scipy.special.zeta(s, q), rtol=1e-12)
    for order in (0, 1, 2, 5):
        x = np.array([0.2, 1.0, 3.3, 25.0])
        found = tf.math.polygamma(tf.constant(float(order), tf.float64), x)
        np.testing.assert_allclose(found, scipy.special.polygamma(order, x), rtol=1e-11)
    assert np.isnan(tf.math.polygamma(tf.constant(0.5), tf.constant(1.0)))


def test_lu():
    matrices = np.random.default_rng(1).normal(size=(3, 5, 5))
    found = tf.linalg.lu(tf.constant(matrices))
    lower = np.tril(found.lu, -1) + np.eye(5)
    upper = np.triu(found.lu)
    for i in range(3):
        np.testing.assert_allclose(lower[i] @ upper[i], matrices[i][found.p.numpy()[i]], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(found.lu[i], scipy.linalg.lu_factor(matrices[i])[0], rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(tf.linalg.lu_reconstruct(*found), matrices, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(tf.linalg.lu_matrix_inverse(*found), np.linalg.inv(matrices), rtol=1e-9, atol=1e-12)
    rhs = np.ones((3, 5, 2))
    np.testing.assert_allclose(tf.linalg.lu_solve(*found, rhs), np.linalg.solve(matrices, rhs), rtol=1e-9, atol=1e-12)
    singular = tf.linalg.lu(tf.constant([[1.0, 2.0], [2.0, 4.0]]))
    np.testing.assert_allclose(tf.linalg.lu_reconstruct(*singular), [[1, 2], [2, 4]])
    assert tf.linalg.lu(tf.zeros([0, 0])).lu.shape == [0, 0]
    with pytest.raises(tf.errors.InvalidArgumentError, match="square matrices of floats"):
        tf.linalg.lu(tf.ones([2, 3]))


def test_the_gradient_of_lu():
    matrix = np.random.default_rng(2).normal(size=(3, 3))

    def total(x):
        return tf.reduce_sum(tf.sin(tf.linalg.lu(x).lu))

    with tf.GradientTape() as tape:
        x = tf.Variable(matrix)
        y = total(x)
    slope = np.zeros((3, 3))
    for i, j in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[i, j] = 1e-6
        slope[i, j] = (total(tf.constant(matrix + step)) - total(tf.constant(matrix - step))) / 2e-6
    np.testing.assert_allclose(tape.gradient(y, x), slope, rtol=1e-5, atol=1e-8)


def test_square_roots_of_matrices():
    matrix = np.array([[4.0, 1.0], [0.5, 9.0]])
    root = tf.linalg.sqrtm(tf.constant(matrix))
    np.testing.assert_allclose(root, scipy.linalg.sqrtm(matrix), rtol=1e-12)


def test_eigenvalues_of_tridiagonal_matrices():
    alpha, beta = np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.5, -1.0, 2.0])
    expected = scipy.linalg.eigh_tridiagonal(alpha, beta)
    values, vectors = tf.linalg.eigh_tridiagonal(alpha, beta, eigvals_only=False)
    np.testing.assert_allclose(values, expected[0], rtol=1e-12)
    np.testing.assert_allclose(np.abs(vectors), np.abs(expected[1]), rtol=1e-8, atol=1e-12)
    part = tf.linalg.eigh_tridiagonal(alpha, beta, select="v", select_range=(0.0, 3.0))
    np.testing.assert_allclose(part, [x for x in expected[0] if 0 < x <= 3], rtol=1e-12)


def test_zeta_and_polygamma_left_of_zero():
    q = np.array([-0.5, -3.3, -100.25])
    for s in (2.0, 3.0):
        np.testing.assert_allclose(tf.math.zeta(tf.constant(s, tf.float64), q), scipy.special.zeta(s, q), rtol=1e-12)
    assert np.isnan(tf.math.zeta(2.5, -0.5)) and np.isinf(tf.math.zeta(2.0, -3.0))
    order, x = tf.Variable(1.0, dtype=tf.float64), tf.Variable(q)
    with tf.GradientTape() as tape:
        y = tf.math.polygamma(order, x)
    np.testing.assert_allclose(y, scipy.special.polygamma(1, q), rtol=1e-11)
    slopes = tape.gradient(y, [order, x])
    assert slopes[0] is None  # as in TensorFlow 2.21
    np.testing.assert_allclose(slopes[1], scipy.special.polygamma(2, q), rtol=1e-9)
