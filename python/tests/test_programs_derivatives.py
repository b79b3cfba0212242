"""Programs with derivatives of higher order, against closed forms."""

import numpy as np
import pytest

import taut as tf

both = pytest.mark.parametrize("traced", [False, True])


def made(function, traced):
    return tf.function(function) if traced else function


@both
def test_learning_to_learn(traced):
    """Two steps of descent on a(x - c)² make x - c smaller by (1 - 2ra)²; so the outer gradient is known."""
    a, c, rate = np.array([0.5, 1.5]), np.array([1.0, -2.0]), 0.1
    start = tf.Variable([3.0, 3.0], dtype=tf.float64)

    def outer():
        with tf.GradientTape() as tape:
            fast = tf.identity(start)
            for _ in range(2):
                with tf.GradientTape() as inner:
                    inner.watch(fast)
                    loss = tf.reduce_sum(a * (fast - c) ** 2)
                fast = fast - rate * inner.gradient(loss, fast)
            loss = tf.reduce_sum(a * (fast - c) ** 2)
        return loss, tape.gradient(loss, start)

    loss, gradient = made(outer, traced)()
    shrunk = (1 - 2 * rate * a) ** 2
    np.testing.assert_allclose(loss, (a * (shrunk * (3 - c)) ** 2).sum())
    np.testing.assert_allclose(gradient, 2 * a * shrunk**2 * (3 - c))


@both
def test_a_penalty_on_the_norm_of_a_gradient(traced):
    w = tf.Variable([[3.0], [4.0]])

    def penalty(x):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as inner:
                inner.watch(x)
                score = x @ w
            slopes = inner.gradient(score, x)
            loss = tf.reduce_mean((tf.norm(slopes, axis=1) - 1.0) ** 2)
        return loss, outer.gradient(loss, w)

    loss, gradient = made(penalty, traced)(tf.random.normal([7, 2]))
    # |w| is 5: the penalty is (5 - 1)², and its slope 2 (5 - 1) w / 5.
    np.testing.assert_allclose(loss, 16.0, rtol=1e-5)
    np.testing.assert_allclose(gradient, [[4.8], [6.4]], rtol=1e-5)


@both
def test_the_residual_of_a_differential_equation(traced):
    a, b = tf.Variable(2.0, dtype=tf.float64), tf.Variable(0.7, dtype=tf.float64)
    x = np.linspace(0, 1, 11)

    def residual(x):
        with tf.GradientTape() as outer:
            with tf.GradientTape() as second:
                second.watch(x)
                with tf.GradientTape() as first:
                    first.watch(x)
                    u = a * tf.sin(b * x)
                slope = first.gradient(u, x)
            curve = second.gradient(slope, x)
            loss = tf.reduce_mean((curve + u) ** 2)
        return loss, outer.gradient(loss, [a, b])

    loss, (by_a, by_b) = made(residual, traced)(tf.constant(x))
    r, s = 2 * (1 - 0.7**2) * np.sin(0.7 * x), np.sin(0.7 * x)
    np.testing.assert_allclose(loss, (r**2).mean())
    np.testing.assert_allclose(by_a, (2 * r * (1 - 0.7**2) * s).mean())
    np.testing.assert_allclose(by_b, (2 * r * 2 * (-2 * 0.7 * s + (1 - 0.7**2) * x * np.cos(0.7 * x))).mean())


@both
def test_the_likelihood_of_a_gaussian_process(traced):
    rng = np.random.default_rng(0)
    x, y = np.sort(rng.random((12, 1)) * 6, 0), rng.normal(size=12)
    log_length = tf.Variable(0.3, dtype=tf.float64)
    squares = (x - x.T) ** 2

    def loss():
        kernel = tf.exp(-0.5 * squares / tf.exp(2 * log_length)) + 0.1 * tf.eye(12, dtype=tf.float64)
        factor = tf.linalg.cholesky(kernel)
        weights = tf.linalg.cholesky_solve(factor, tf.constant(y)[:, None])
        return 0.5 * tf.reduce_sum(y[:, None] * weights) + tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))

    with tf.GradientTape() as tape:
        found = made(loss, traced)()
    smooth = np.exp(-0.5 * squares / np.exp(0.6))
    kernel = smooth + 0.1 * np.eye(12)
    inverse = np.linalg.inv(kernel)
    np.testing.assert_allclose(found, 0.5 * y @ inverse @ y + 0.5 * np.linalg.slogdet(kernel)[1])
    change = smooth * squares / np.exp(0.6)
    weights = inverse @ y
    expected = -0.5 * weights @ change @ weights + 0.5 * np.trace(inverse @ change)
    np.testing.assert_allclose(tape.gradient(found, log_length), expected)


@both
def test_newton_by_conjugate_gradients(traced):
    rng = np.random.default_rng(1)
    matrix, b = rng.normal(size=(6, 6)), rng.normal(size=6)
    matrix = matrix @ matrix.T + np.eye(6)
    x = tf.Variable(np.zeros(6))

    def value():
        return 0.5 * tf.tensordot(x, tf.linalg.matvec(matrix, x), 1) - tf.tensordot(b, x, 1)

    def curvature(v):
        with tf.GradientTape() as second:
            with tf.GradientTape() as first:
                found = value()
            gradient = first.gradient(found, x)
        return second.gradient(gradient, x, output_gradients=v)

    def solve(rhs):
        s, rest, p = tf.zeros_like(rhs), rhs, rhs
        size = tf.reduce_sum(rest * rest)
        for _ in tf.range(20):
            along = curvature(p)
            step = size / tf.reduce_sum(p * along)
            s += step * p
            rest -= step * along
            now = tf.reduce_sum(rest * rest)
            if now < 1e-24:
                break
            p = rest + now / size * p
            size = now
        return s

    with tf.GradientTape() as tape:
        found = value()
    x.assign_sub(made(solve, traced)(tape.gradient(found, x)))
    np.testing.assert_allclose(x, np.linalg.solve(matrix, b), rtol=1e-8)


def test_a_search_with_loops_in_loops_finds_the_lowest_point():
    @tf.function
    def valley(x):
        return tf.reduce_sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    @tf.function
    def with_slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = valley(x)
        return y, tape.gradient(y, x)

    @tf.function
    def lowest(x):
        eye = tf.eye(tf.size(x), dtype=x.dtype)
        y, g = with_slope(x)
        inverse, steps = eye, 0
        while tf.norm(g) > 1e-6 and steps < 100:
            along = -tf.linalg.matvec(inverse, g)
            far = tf.constant(1.0, x.dtype)
            while valley(x + far * along) > y + 1e-4 * far * tf.tensordot(g, along, 1):
                far = far * 0.5
            there = x + far * along
            y, g_there = with_slope(there)
            s, d = there - x, g_there - g
            product = tf.tensordot(s, d, 1)
            if product > 1e-12:
                keep = eye - tf.einsum("i,j->ij", s, d) / product
                inverse = keep @ inverse @ tf.transpose(keep) + tf.einsum("i,j->ij", s, s) / product
            x, g = there, g_there
            steps += 1
        return x, steps

    x, steps = lowest(tf.constant([-1.2, 1.0, 0.8], tf.float64))
    np.testing.assert_allclose(x, np.ones(3), rtol=1e-6)
    assert 10 < int(steps) < 100


@both
def test_a_flow_through_time(traced):
    """Runge and Kutta's steps on y' = m y come close to what the matrix exponential gives."""
    m, y0 = np.array([[0.0, 1.0], [-2.0, -0.3]]), np.array([1.0, 0.5])
    matrix = tf.Variable(m)

    def flow(y, times):
        def f(y):
            return tf.linalg.matvec(matrix, y)

        states = tf.TensorArray(tf.float64, size=tf.size(times)).write(0, y)
        for i in tf.range(1, tf.size(times)):
            h = times[i] - times[i - 1]
            k1 = f(y)
            k2 = f(y + h * k1 / 2.0)
            k3 = f(y + h * k2 / 2.0)
            y = y + h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + f(y + h * k3))
            states = states.write(i, y)
        return states.stack()

    times = tf.linspace(tf.constant(0.0, tf.float64), 1.0, 33)
    with tf.GradientTape() as tape:
        states = made(flow, traced)(tf.constant(y0), times)
        last = tf.reduce_sum(states[-1])
    values, vectors = np.linalg.eig(m)

    def exactly(t):
        return (vectors @ np.diag(np.exp(values * t)) @ np.linalg.inv(vectors)).real @ y0

    np.testing.assert_allclose(states, [exactly(t) for t in np.linspace(0, 1, 33)], rtol=1e-5, atol=1e-6)
    # The derivative by the damping, from two flows that differ in it.
    step, found = 1e-5, []
    for sign in (1, -1):
        matrix.assign(m + sign * step * np.array([[0, 0], [0, 1.0]]))
        found.append(float(tf.reduce_sum(flow(tf.constant(y0), times)[-1])))
    np.testing.assert_allclose(tape.gradient(last, matrix)[1, 1], (found[0] - found[1]) / (2 * step), rtol=1e-6)


@both
def test_rules_for_gradients_of_ones_own(traced):
    @tf.custom_gradient
    def rounded(x):
        return tf.round(x), lambda upstream: upstream

    @tf.custom_gradient
    def reversed_(x):
        return tf.identity(x), lambda upstream: -0.5 * upstream

    @tf.custom_gradient
    def log1p_exp(x):
        e = tf.exp(x)

        def grad(upstream):
            return upstream * (1 - 1 / (1 + e))

        return tf.math.log(1 + e), grad

    x = tf.Variable([0.3, 1.7, 100.0])

    def gradients():
        with tf.GradientTape(persistent=True) as tape:
            parts = [rounded(x) * [1.0, 2.0, 3.0], reversed_(x) ** 2, log1p_exp(x)]
        return [tape.gradient(part, x) for part in parts]

    straight, turned, safe = made(gradients, traced)()
    assert straight.numpy().tolist() == [1, 2, 3]
    np.testing.assert_allclose(turned, [-0.3, -1.7, -100.0], rtol=1e-6)
    np.testing.assert_allclose(safe, 1 / (1 + np.exp([-0.3, -1.7, -100.0])), rtol=1e-6)
