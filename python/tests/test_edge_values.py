"""Shared memory, and numbers that are out of range."""

import copy
import pickle

import numpy as np
import pytest

import taut as tf


def reused():
    row = np.zeros(2, np.float32)
    for i in range(4):
        row[:] = i
        yield row


def test_generators_may_use_their_arrays_again():
    rows = tf.data.Dataset.from_generator(reused)
    assert [float(x[0]) for x in list(rows)] == [0.0, 1.0, 2.0, 3.0]
    assert [x.numpy()[:, 0].tolist() for x in rows.batch(2)] == [[0.0, 1.0], [2.0, 3.0]]
    assert [float(x[0]) for x in rows.prefetch(3)] == [0.0, 1.0, 2.0, 3.0]
    signed = tf.data.Dataset.from_generator(reused, output_signature=tf.TensorSpec([2]))
    assert [float(x[0]) for x in list(signed)] == [0.0, 1.0, 2.0, 3.0]


def test_constants_of_frozen_views_are_copies():
    base = np.zeros(3, np.float32)
    view = base.view()
    view.flags.writeable = False
    constants = [tf.constant(view), tf.constant(np.broadcast_to(base, (2, 3)))]
    base[:] = 5
    assert [float(tf.reduce_sum(c)) for c in constants] == [0.0, 0.0]
    x = tf.ones([3])
    assert tf.constant(x.numpy()).data_ptr() == x.data_ptr()  # a tensor's own memory is immutable


@pytest.mark.parametrize("value, dtype", [(1e30, "int32"), ([2**63], "int32"), ([2**63], "int64"), (-1e30, "int8")])
def test_numbers_that_a_type_does_not_have(value, dtype):
    with pytest.raises((ValueError, TypeError)):
        tf.constant(value, dtype)


def test_numbers_beside_tensors_take_their_type():
    assert tf.constant([tf.constant(1.0), 2]).dtype == tf.float32


def test_nothing_comes_through_dlpack():
    assert tf.from_dlpack(np.zeros((0, 3), np.float32)).shape == (0, 3)


def test_a_cast_is_no_view():
    with pytest.raises(ValueError):
        np.array(tf.ones([3]), dtype=np.int32, copy=False)


@pytest.mark.parametrize("op", [tf.exp, tf.nn.relu, tf.reduce_sum])
def test_ops_are_copied_and_sent(op):
    assert copy.copy(op) is op and copy.deepcopy({"activation": op})["activation"] is op
    assert pickle.loads(pickle.dumps(op))(tf.constant([0.0])).numpy() == op(tf.constant([0.0])).numpy()


def test_methods_of_deleted_objects():
    class Doubles:
        @tf.function
        def double(self, x):
            return x * 2.0

    assert Doubles().double(tf.ones([1])).numpy() == [2.0]


def test_stop_iteration_in_a_mapped_function_is_no_end():
    with pytest.raises(Exception):  # noqa: B017, PT011
        list(tf.data.Dataset.range(3).map(lambda x: next(iter([]))))


@pytest.mark.parametrize("dims", [[2**62, 8], [2**63 - 1], [2**32, 2**32, 0]])
def test_sizes_beyond_memory_are_refused(dims):
    with pytest.raises((ValueError, MemoryError, OverflowError)):
        tf.TensorSpec(dims).placeholder().nbytes  # noqa: B018
