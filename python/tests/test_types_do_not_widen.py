"""Promotion: float64 results only from float64 tensors, and integers take the type of the floats beside them."""

import itertools

import numpy as np
import pytest

import taut as tf

INTEGERS = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]


@pytest.mark.parametrize("integer, other", list(itertools.product(INTEGERS, FLOATS)))
def test_integer_beside_a_float_takes_its_type(integer, other):
    x, y = tf.ones([2], integer), tf.ones([2], other)
    for made in (x * y, y * x, tf.where([True, False], x, y), tf.concat([x, y], 0), tf.stack([y, x])):
        assert made.dtype.name == other
    assert tf.matmul(tf.ones([2, 2], other), tf.ones([2, 2], integer)).dtype.name == other


@pytest.mark.parametrize("integer", INTEGERS)
def test_functions_and_true_division_of_integers_are_float32(integer):
    x = tf.ones([2], integer)
    for made in (x / x, x / 255, 255 / x, tf.divide(x, 2), tf.exp(x), tf.sqrt(x), tf.math.divide_no_nan(x, x), x + 1.5):
        assert made.dtype == tf.float32
    assert tf.function(lambda x: tf.exp(x / 2))(x).dtype == tf.float32
    assert (tf.constant([128, 64], "uint8") / 255).numpy().tolist() == [np.float32(128 / 255), np.float32(64 / 255)]


def test_python_values_do_not_make_float64():
    assert tf.maximum(0.0, [1, -1]).dtype == tf.float32
    assert tf.add([1, 2], [0.5, 0.5]).dtype == tf.float32
    assert (tf.constant([1, 2]) + 1.5).numpy().tolist() == [2.5, 3.5]
    assert (tf.constant([1, 2]) + [0.5, 1.5]).dtype == tf.float32
    assert tf.stack([tf.constant(1), 2.5]).dtype == tf.float32
    assert (tf.constant([True, False]) + 1).dtype == tf.int32
    assert tf.clip_by_value(tf.constant([1, 5]), 0, 2.5).dtype == tf.float32


@pytest.mark.parametrize("traced", [False, True])
def test_arrays_take_the_tensors_type(traced):
    def results(x, count):
        array = np.array([0.5, 1.5])
        yield from (x + array, array + x, x + np.float64(0.5), np.float64(2.0) * x, tf.maximum(array, x))
        yield from (tf.matmul(x[None], array[:, None]), tf.concat([array, x], 0), tf.stack([x, array]))
        yield from (tf.tensordot(x, array, 1), tf.einsum("i,i->", x, array), tf.where([True, False], array, x))
        yield from (count * array, array * count, count + np.float64(0.5), tf.clip_by_value(x, array, array))

    given = tf.constant([1.0, 2.0]), tf.constant([1, 2])
    run = tf.function(lambda *given: list(results(*given))) if traced else lambda *given: list(results(*given))
    for place, made in enumerate(run(*given)):
        assert made.dtype == tf.float32, place
    assert (given[1] + np.array([3, 4])).dtype == tf.int32


def test_python_floats_beside_float64_are_not_rounded():
    x = tf.constant([0.0], tf.float64)
    for made in (x + 0.1, x + [0.1], tf.add([0.1], x), tf.concat([x, [0.1]], 0)[1:], tf.stack([x, [0.1]])[1]):
        assert made.dtype == tf.float64 and made.numpy().tolist() == [0.1]
    assert tf.matmul(tf.ones([1, 1], tf.float64), [[0.1]]).numpy().tolist() == [[0.1]]
    assert tf.gather(x, [0]).dtype == tf.float64


def test_values_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="out of range for uint8"):
        tf.constant([1], tf.uint8) + np.array([300])
    x, y = tf.constant([1], tf.uint64), tf.constant([-1], tf.int64)
    calls = {
        "add": lambda: x + y,
        "less": lambda: x < y,
        "where": lambda: tf.where([True], x, y),
        "concat": lambda: tf.concat([y, x], 0),
        "matmul": lambda: tf.matmul(x[None], y[None]),
        "einsum": lambda: tf.einsum("i,i->i", x, y),
    }
    for name, call in calls.items():
        with pytest.raises(
            TypeError, match=f"{name}: no integer type holds .*int64(.|\n)*test_types_do_not_widen(.|\n)*cast"
        ):
            call()
    assert (x + np.array([2])).dtype == tf.uint64


def test_assigned_arrays_are_converted():
    v, n = tf.Variable([1.0, 2.0]), tf.Variable([1, 2])
    v.assign(np.array([0.5, 0.25]))
    v.assign_add(np.array([1, 1]))
    v.assign_sub(np.array([0.25, 0.25], "float16"))
    assert v.dtype == tf.float32 and v.numpy().tolist() == [1.25, 1.0]
    v.scatter_nd_update([[0]], np.array([4.0]))
    assert v.numpy().tolist() == [4.0, 1.0]
    for refused in (np.array([0.5, 1.0]), tf.constant([0.5, 1.0])):
        with pytest.raises((TypeError, ValueError)):
            n.assign(refused)
        with pytest.raises((TypeError, ValueError)):
            n.scatter_nd_update([[0], [1]], refused)
    with pytest.raises((TypeError, ValueError), match="float64"):
        v.assign(tf.constant([0.5, 1.0], tf.float64))
    assert n.numpy().tolist() == [1, 2]


def test_counters_do_not_change_the_type_of_a_loop():
    @tf.function
    def factorials(x):
        i = 0
        while i < tf.cast(x[1], tf.int32):
            x = x / (i + 1)
            i += 1
        return x

    assert factorials(tf.constant([1.0, 2.0])).numpy().tolist() == [0.5, 1.0]


def test_means_of_integers_are_exact():
    large = tf.constant([2**24 + 1, 2**24 + 1])
    assert tf.reduce_mean(large).numpy() == 2**24 + 1
    assert tf.reduce_mean(tf.constant([-1, -2])).numpy() == -1
    assert tf.reduce_mean(tf.constant([[1, 2], [4, 9]]), 0).numpy().tolist() == [2, 5]
    assert tf.reduce_mean(tf.constant([250, 255], tf.uint8)).numpy() == 252
    assert tf.reduce_mean(tf.zeros([0], tf.int32)).numpy() == 0
    with pytest.raises(TypeError, match="bool"):
        tf.reduce_mean(tf.constant([True]))
