"""Parts of variables, and the functions that make them."""

import threading

import numpy as np
import pytest

import taut as tf


def test_parts_are_read():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        read = v.sparse_read([1, 1])
    assert read.numpy().tolist() == [[3.0, 4.0], [3.0, 4.0]]
    assert tf.convert_to_tensor(tape.gradient(read, v)).numpy().tolist() == [[0.0, 0.0], [2.0, 2.0]]
    assert v.gather_nd([[0, 1]]).numpy().tolist() == [2.0]


def test_parts_are_written():
    v = tf.Variable([1.0, 2.0, 3.0])
    v.scatter_nd_max([[0], [1]], [9, 0])
    v.scatter_nd_min([[2]], [-9.0])
    assert v.numpy().tolist() == [9.0, 2.0, -9.0]
    v.scatter_nd_update([[0]], [5])
    v.scatter_add(tf.IndexedSlices([1], [2]))
    assert v.numpy().tolist() == [5.0, 2.0, -8.0]


def noting(made):
    """A creator that notes the names of the variables it makes."""

    def creator(next_creator, **kwargs):
        made.append(kwargs["name"])
        return next_creator(**kwargs)

    return creator


def test_creators_belong_to_their_thread():
    made, others, other = [], [], []
    may_make, has_made = threading.Event(), threading.Event()

    def work():
        may_make.wait(60)
        other.append(tf.Variable(2.0, name="other"))
        with tf.variable_creator_scope(noting(others)):
            other.append(tf.Variable(3.0, name="noted"))
        has_made.set()

    def value():
        # The other thread makes variables while this one runs a constructor.
        may_make.set()
        has_made.wait(60)
        return 1.0

    thread = threading.Thread(target=work)
    thread.start()
    with tf.variable_creator_scope(noting(made)):
        tf.Variable(value, name="first")
        tf.Variable(1.0, name="second")
    thread.join()
    assert (made, others) == (["first", "second"], ["noted"])
    assert [float(one) for one in other] == [2.0, 3.0]


def test_creators_see_the_variables_of_initial_values_and_remain_after_errors():
    made = []
    with tf.variable_creator_scope(noting(made)):
        outer = tf.Variable(lambda: tf.Variable(2.0, name="inner").read_value() + 1.0, name="outer")
        with pytest.raises(ZeroDivisionError):
            tf.Variable(lambda: 1 // 0, name="failed")
        tf.Variable(1.0, name="last")
    tf.Variable(1.0, name="outside")
    assert float(outer) == 3.0
    assert made == ["outer", "inner", "failed", "last"]


def test_a_creator_with_wrong_arguments_does_not_turn_creators_off():
    made = []

    def wrong(next_creator, **kwargs):
        return next_creator(**kwargs, colour="red")

    with tf.variable_creator_scope(wrong), pytest.raises(TypeError, match="colour"):
        tf.Variable(1.0)
    with tf.variable_creator_scope(noting(made)):
        tf.Variable(1.0, name="noted")
    assert made == ["noted"]


@pytest.mark.parametrize("dtype", [tf.float32, tf.int32])
def test_rows_are_divided(dtype):
    """A row that occurs twice is divided twice; integers are rounded towards zero, as in TensorFlow."""
    variable = tf.Variable(tf.constant([[9, 8], [-7, 6], [5, 4]], dtype))
    variable.scatter_div(tf.IndexedSlices(tf.constant([[2, 3], [2, 2], [3, 1]], dtype), [0, 1, 1]))
    wanted = np.array([[9 / 2, 8 / 3], [-7 / 6, 6 / 2], [5, 4]])
    np.testing.assert_allclose(variable, wanted if dtype == tf.float32 else np.trunc(wanted), rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError):
        variable.scatter_div(tf.IndexedSlices(tf.constant([[2, 3]], dtype), [7]))
