"""Custom gradients of functions that read variables."""

import pytest

import taut as tf


def scaled(w):
    """`w x`, with gradients that differ from the real ones."""

    @tf.custom_gradient
    def f(x):
        def grad(upstream, variables=None):
            assert len(variables) == 1 and variables[0] is not None
            return upstream * 10.0, [upstream * 100.0 + variables[0]]

        return x * w, grad

    return f


@pytest.mark.parametrize("traced", [False, True])
def test_variables_get_the_gradient_that_the_rule_gives_them(traced):
    w, x = tf.Variable(3.0), tf.Variable(2.0)
    f = scaled(w)

    def gradients():
        with tf.GradientTape() as tape:
            y = 2.0 * f(x)
        return y, *tape.gradient(y, [x, w])

    y, of_x, of_w = tf.function(gradients)() if traced else gradients()
    assert (float(y), float(of_x), float(of_w)) == (12.0, 20.0, 203.0)


def test_a_tape_around_a_traced_function():
    w, x = tf.Variable(3.0), tf.Variable(2.0)
    f = tf.function(scaled(w))
    with tf.GradientTape() as tape:
        y = f(x)
    assert [float(g) for g in tape.gradient(y, [x, w])] == [10.0, 103.0]


def test_without_a_variable_the_rule_is_not_told_of_any():
    @tf.custom_gradient
    def f(x):
        def grad(upstream, variables=None):
            assert variables is None
            return upstream * 7.0

        return x + 1.0, grad

    x = tf.constant(1.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert float(tape.gradient(y, x)) == 7.0


def test_what_a_rule_gets_wrong_is_said():
    w, x = tf.Variable(3.0), tf.Variable(2.0)

    @tf.custom_gradient
    def silent(x):
        return x * w, lambda upstream: upstream

    with pytest.raises(ValueError, match="must not read variables without a gradient"), tf.GradientTape():
        silent(x)

    @tf.custom_gradient
    def one_thing(x):
        return x * w, lambda upstream, variables: upstream

    with tf.GradientTape() as tape:
        y = one_thing(x)
    with pytest.raises(TypeError, match="of one_thing, which reads variables, must return two values"):
        tape.gradient(y, x)

    @tf.custom_gradient
    def too_many(x):
        return x * w, lambda upstream, variables: (upstream, [upstream, upstream])

    with tf.GradientTape() as tape:
        y = too_many(x)
    with pytest.raises(ValueError, match="must return 1 gradients of variables, got 2"):
        tape.gradient(y, x)
