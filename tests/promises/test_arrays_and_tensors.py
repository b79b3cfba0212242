"""Memory shared between arrays and tensors: what is copied, what changes, and how long it lives."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import taut as tf


def test_an_array_of_a_tensor_is_read_only_and_keeps_the_memory():
    tensor = tf.range(10)
    address = tensor.data_ptr()
    array = tensor.numpy()
    assert array.ctypes.data == address
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5
    live = tf.memory.live_bytes()
    del tensor
    gc.collect()
    assert tf.memory.live_bytes() == live, "the array keeps the memory alive"
    assert array.tolist() == list(range(10))
    del array
    assert tf.memory.live_bytes() < live


def test_a_tensor_keeps_the_array_whose_memory_it_uses():
    tensor = tf.convert_to_tensor(np.arange(1000.0))
    gc.collect()
    np.ones(1000)  # would reuse the memory if it were free
    assert tensor.numpy().tolist() == list(range(1000))


def test_a_changed_array_changes_the_tensors_that_share_its_memory_and_no_constant():
    array = np.zeros(4)
    looking, own = tf.convert_to_tensor(array), tf.constant(array)
    array[0] = 7
    assert looking.numpy()[0] == 7
    assert own.numpy()[0] == 0
    assert own.data_ptr() != array.ctypes.data


def test_a_constant_shares_only_immutable_memory():
    tensor = tf.range(4.0)
    assert tf.constant(tensor.numpy()[2:]).data_ptr() == tensor.data_ptr() + 8
    array = np.arange(4.0)
    frozen = array[:]
    frozen.flags.writeable = False
    constant = tf.constant(frozen)
    array[0] = 7
    assert constant.numpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::2],
        lambda a: a[:, 1:3],
        lambda a: np.broadcast_to(a[:, :1], a.shape),
        lambda a: a[::-1],
        lambda a: a[1, ::-2],
        lambda a: np.asfortranarray(a),
        lambda a: a[:0],
        lambda a: a[2, 3],
        lambda a: a[2:3, 3:4].reshape(()),
    ],
)
def test_arrays_of_any_layout_have_their_values(view):
    array = view(np.arange(24.0).reshape(4, 6))
    for tensor in [tf.constant(array), tf.convert_to_tensor(array)]:
        assert tensor.shape == array.shape
        np.testing.assert_array_equal(tensor.numpy(), array)
        np.testing.assert_array_equal((tensor + 1.0).numpy(), array + 1)


def test_misaligned_and_byte_swapped_arrays_are_copied():
    raw = np.zeros(8 * 5 + 1, np.uint8)
    misaligned = raw[1:].view(np.float64)
    misaligned[:] = range(5)
    tensor = tf.convert_to_tensor(misaligned)
    assert tensor.data_ptr() != misaligned.ctypes.data
    assert tensor.numpy().tolist() == [0, 1, 2, 3, 4]
    swapped = np.arange(5).astype(">i4")
    assert tf.convert_to_tensor(swapped).numpy().tolist() == [0, 1, 2, 3, 4]
    assert tf.convert_to_tensor(swapped).dtype == tf.int32


def test_an_array_of_a_variable_does_not_change():
    v = tf.Variable([1.0, 2.0])
    before = v.numpy()
    v.assign([3.0, 4.0])
    assert before.tolist() == [1.0, 2.0], "an assignment does not change arrays read before"
    assert v.numpy().tolist() == [3.0, 4.0]
