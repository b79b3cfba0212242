"""Tensors and variables are copied and pickled."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
import taut as tf


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int32", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4)])
def test_tensors_are_pickled(dtype, shape):
    tensor = tf.cast(tf.constant(np.arange(np.prod(shape, dtype=int)).reshape(shape)), dtype)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(tensor, protocol))
        assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
        np.testing.assert_array_equal(back.numpy(), tensor.numpy())
        assert back.size == 0 or back.data_ptr() != tensor.data_ptr()


def test_a_copy_of_an_immutable_tensor_is_the_tensor():
    tensor = tf.ones([3])
    assert copy.copy(tensor) is tensor
    assert copy.deepcopy([tensor])[0] is tensor


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_variables_are_copied_with_their_attributes(duplicate):
    v = tf.Variable([1.0, 2.0], trainable=False, name="speed")
    other = duplicate(v)
    assert isinstance(other, tf.Variable)
    assert (other.trainable, other.name, other.dtype) == (False, v.name, tf.float32)
    other.assign([5.0, 6.0])
    v.assign_add([1.0, 1.0])
    assert (v.numpy().tolist(), other.numpy().tolist()) == ([2.0, 3.0], [5.0, 6.0])


def test_a_traced_tensor_is_not_pickled():
    @tf.function
    def f(x):
        pickle.dumps(x)
        return x

    with pytest.raises(TypeError, match="traced"):
        f(tf.ones([2]))
