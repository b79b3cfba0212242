"""Programs that assign to parts of variables."""

import numpy as np
import pytest

import taut as tf

KEYS = [
    np.s_[0],
    np.s_[-1, 2],
    np.s_[1:, ::2],
    np.s_[..., 1],
    np.s_[:, 1:2, ::-1],
    np.s_[1, ..., None],
    np.s_[None, :, -2, 1:3],
    np.s_[...],
    np.s_[2, 3, 4],
    np.s_[5:],
]


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_parts_are_assigned_as_numpy_assigns_them(key, traced):
    expected = np.arange(60.0).reshape(3, 4, 5)
    v = tf.Variable(expected)
    value = -np.arange(float(expected[key].size)).reshape(expected[key].shape) - 1.0
    expected[key] = value

    def write(value):
        assert v[key].assign(value) is v

    (tf.function(write) if traced else write)(tf.constant(value))
    np.testing.assert_array_equal(v, expected)


def test_what_is_assigned_is_broadcast_and_takes_the_type():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    v[:, 0].assign(7)
    v[1].assign([5])
    assert v.numpy().tolist() == [[7, 2], [5, 5]]


def test_a_ring_buffer_in_a_loop():
    buffer = tf.Variable(tf.zeros([3, 2]))

    @tf.function
    def push(rows):
        for i in tf.range(len(rows)):
            buffer[i % 3].assign(rows[i])
        return buffer[tf.reduce_max(tf.range(len(rows))) % 3]

    rows = np.arange(10, dtype="float32").reshape(5, 2)
    assert push(tf.constant(rows)).numpy().tolist() == [8, 9]
    assert buffer.numpy().tolist() == [[6, 7], [8, 9], [4, 5]]


def test_what_was_read_stays_as_it_was():
    v = tf.Variable([1.0, 2.0, 3.0])
    before = v[1:]
    before.assign([0.0, 0.0])
    assert before.numpy().tolist() == [2, 3] and v.numpy().tolist() == [1, 0, 0]


def test_gradients_go_through_parts():
    v = tf.Variable([1.0, 2.0, 3.0])
    with tf.GradientTape() as tape:
        loss = v[1] * v[1] + v[0]
    assert tape.gradient(loss, v).numpy().tolist() == [1, 4, 0]


def test_tensors_cannot_be_assigned():
    assert not hasattr(tf.constant([1.0])[0], "assign") and not hasattr(tf.constant(1.0), "assign")
    with pytest.raises(AttributeError, match="tensors are immutable"):
        tf.constant([1.0])[0].assign(2.0)
    with pytest.raises(ValueError, match="broadcast"):
        tf.Variable([1.0, 2.0])[:1].assign([1.0, 2.0])
    with pytest.raises(TypeError, match="scatter_nd_update"):
        tf.Variable([1.0, 2.0])[np.array([0, 1])].assign([1.0, 2.0])
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    v[[0, 1]].assign(5.0)  # as v[0, 1] in TensorFlow
    assert v.numpy().tolist() == [[1.0, 5.0], [3.0, 4.0]]


def test_a_list_as_a_subscript_of_a_ragged_tensor_has_one_entry_for_each_axis():
    ragged = tf.ragged.constant([[1, 2], [3], [4, 5, 6]])
    assert int(ragged[[2, 0]]) == 4 and ragged[[1]].numpy().tolist() == [3]  # as in TensorFlow 2.21
