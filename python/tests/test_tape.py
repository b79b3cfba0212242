"""Tapes: unconnected gradients and argument forms."""

import numpy as np
import pytest

import taut as tf


def test_what_is_not_connected_is_none_or_zero():
    x, other = tf.constant([1.0, 2.0]), tf.constant([[3.0], [4.0]])

    @tf.function(autograph=False)
    def found(x, other, wanted):
        made = tf.gradients(x * x, [x, other], unconnected_gradients=wanted)
        return [tf.constant(-1.0) if one is None else one for one in made]

    connected, none = found(x, other, "none")
    assert none.numpy() == -1
    np.testing.assert_array_equal(connected, [2, 4])
    np.testing.assert_array_equal(found(x, other, tf.UnconnectedGradients.ZERO)[1], np.zeros((2, 1)))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, other])
        y = x * x
    # As in TensorFlow, which returns zeros for both settings.
    np.testing.assert_array_equal(tape.batch_jacobian(y[:, None], other), np.zeros((2, 1, 1)))
    zeros = tape.batch_jacobian(y[:, None], other, unconnected_gradients="zero")
    np.testing.assert_array_equal(zeros, np.zeros((2, 1, 1)))
    with pytest.raises(ValueError):
        tape.jacobian(y, x, unconnected_gradients="one")


def test_derivatives_forward_that_are_not_there():
    x, other = tf.constant([1.0, 2.0]), tf.constant([3.0])
    with tf.autodiff.ForwardAccumulator(x, tf.ones([2])) as forward:
        y = x * x
        z = other * 2.0
    np.testing.assert_array_equal(forward.jvp(y), [2, 4])
    assert forward.jvp(z) is None
    np.testing.assert_array_equal(forward.jvp(z, unconnected_gradients="zero"), [0])


def test_arguments_by_position_by_name_and_left_out_are_one_trace():
    @tf.function(autograph=False)
    def scaled(x, factor=2):
        return x * factor

    x = tf.constant([1.0, 3.0])
    for made in (scaled(x), scaled(x, 2), scaled(x, factor=2), scaled(factor=2, x=x)):
        np.testing.assert_array_equal(made, [2, 6])
    assert scaled.trace_count == 1
    np.testing.assert_array_equal(scaled(x, 3), [3, 9])
    assert scaled.trace_count == 2


def test_a_variable_refuses_what_it_would_not_do():
    with pytest.raises(ValueError, match="constraint"):
        tf.Variable([1.0], constraint=3)
    with pytest.raises(ValueError, match="incompatible"):
        tf.Variable([1.0], shape=[2])


def test_what_no_tape_follows_is_refused():
    v = tf.Variable(3.0)
    with tf.GradientTape(persistent=True) as tape:
        y = v * v
        for wrong in (3.0, None, np.ones(2), [v, 1]):
            with pytest.raises(TypeError, match="GradientTape.watch"):
                tape.watch(wrong)
    for wrong in (float(y), None, y.numpy().reshape(1), [y, 2.0]):
        with pytest.raises(TypeError, match="GradientTape.gradient"):
            tape.gradient(wrong, v)
    assert float(tape.gradient({"a": y}, v)) == 6.0


@pytest.mark.parametrize("traced", [False, True])
def test_the_jacobian_per_row_of_a_variable(traced):
    x = tf.Variable([[1.0, 2.0], [3.0, 4.0]])

    def rows():
        with tf.GradientTape() as tape:
            y = x**3
        return tape.batch_jacobian(y, x)

    # d(x³)/dx = 3x², on the diagonal of each row's table.
    wanted = [np.diag(3 * row**2) for row in np.array([[1.0, 2.0], [3.0, 4.0]])]
    np.testing.assert_allclose((tf.function(rows) if traced else rows)(), wanted)


def test_a_tape_is_used_once_for_jacobians_too():
    x = tf.Variable([[1.0, 2.0]])
    for first in ("gradient", "jacobian", "batch_jacobian"):
        for second in ("gradient", "jacobian", "batch_jacobian"):
            with tf.GradientTape() as tape:
                y = x * 2.0
            getattr(tape, first)(y, x)
            with pytest.raises(RuntimeError, match="only once") as caught:
                getattr(tape, second)(y, x)
            assert "crates/" not in str(caught.value)


def test_arguments_that_a_tape_refuses():
    x = tf.constant([[1.0, 2.0]])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(x)
        y = x * x
        with pytest.raises(ValueError, match="already recording"):
            tape.__enter__()
    for call in (tape.gradient, tape.jacobian):
        for source in ("x", 3, np.float32(1.0), [x, 2.0]):
            with pytest.raises((TypeError, ValueError), match="expected a tensor or a variable"):
                call(y, source)
    with pytest.raises(ValueError, match="expected a tensor or a variable, got float"):
        tape.watch(3.0)
    for call in (tape.jacobian, tape.batch_jacobian):
        with pytest.raises(ValueError, match="nothing"):
            call(y, x, unconnected_gradients="nothing")
    with pytest.raises(ValueError, match="source must have rank >= 2"):
        tape.batch_jacobian(y, tf.ones([1]))
    with pytest.raises(TypeError, match="source must be one tensor"):
        tape.batch_jacobian(y, [x])


def test_tangents_have_the_structure_of_the_primals():
    x = tf.constant([1.0, 2.0])
    with pytest.raises(ValueError, match="got 1 primals and 2 tangents"):
        tf.autodiff.ForwardAccumulator([x], [1.0, 2.0])
    with tf.autodiff.ForwardAccumulator(x, [1.0, 0.0]) as accumulator:
        y = x * x
    np.testing.assert_array_equal(accumulator.jvp(y), [2, 0])


def test_a_tape_around_a_loop_gives_the_gradient_of_what_the_loop_computes():
    """TensorFlow 2.21's answers. The function runs op by op: the tape records a traced loop as a whole."""
    v = tf.Variable(3.0)

    def loop(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            square, total = x * x, tf.constant(0.0)
            for _ in tf.range(3):
                total += tape.gradient(square * 2.0, x)
        return total

    def branch(x):
        with tf.GradientTape(persistent=True) as tape:
            square = v * v
            return tf.cond(x > 0.0, lambda: tape.gradient(square * 3.0, v), lambda: x)

    def rows(x):
        with tf.GradientTape(persistent=True) as tape:
            square = v * v
            return tf.map_fn(lambda e: tape.gradient(square * e, v), tf.constant([1.0, 2.0]))

    def zeros(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            square, total = x * x, tf.constant(0.0)
            for _ in tf.range(3):
                total += tape.gradient(square * 2.0, x, unconnected_gradients="zero")
        return total

    for function, expected in ((loop, 60.0), (branch, 18.0), (rows, [6.0, 12.0]), (zeros, 60.0)):
        with pytest.warns(RuntimeWarning, match="records the loop or branch as a whole"):
            assert np.allclose(tf.function(function)(tf.constant(5.0)), expected), function.__name__


def test_a_tape_around_a_loop_gives_the_gradient_of_what_was_computed_before():
    @tf.function
    def function(x, y):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch((x, y))
            square = x * x
        total = tf.constant(0.0)
        for _ in tf.range(3):
            own, other = tape.gradient(square, [x, y])
            total += own
            assert other is None
            total += sum(tape.gradient(square, [x, y], unconnected_gradients="zero"))
        return total

    assert float(function(tf.constant(5.0), tf.constant(1.0))) == 60.0
    assert function.trace_count == 1


@pytest.mark.filterwarnings("ignore:.*runs op by op")
def test_a_tape_around_a_loop_gives_the_gradient_of_several_targets_of_which_one_is_computed_in_it():
    @tf.function
    def function(x):
        total = tf.zeros_like(x)
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            square = x * x
            for _ in tf.range(1):
                total = tape.gradient([square, square * 3.0], x)
        return total

    # TensorFlow's: 2x and 6x.
    assert float(function(tf.constant(2.0))) == 16.0
