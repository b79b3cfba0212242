"""NumPy arrays enter and leave without a copy where layout and dtype allow."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_arrays_enter_and_leave_without_a_copy(dtype):
    array = np.arange(24).reshape(4, 6).astype(dtype)
    before = tf.memory.live_bytes()
    for view in [array, array.T, array[::2, 1:4]]:
        tensor = tf.convert_to_tensor(view)
        aligned = view.ctypes.data % 8 == 0
        assert (tensor.data_ptr() == view.ctypes.data) is aligned
        assert tensor.numpy().tolist() == view.tolist()
        if aligned:
            assert tf.memory.live_bytes() == before, "the tensor uses the memory of the array"
            assert np.from_dlpack(tensor).ctypes.data == view.ctypes.data
            assert tf.from_dlpack(view).data_ptr() == view.ctypes.data
    made = tf.cast(tf.ones([3, 5]), dtype)
    for array in [made.numpy(), np.asarray(made), np.from_dlpack(made)]:
        assert array.ctypes.data == made.data_ptr()


def test_arrays_and_tensors_mix(rng):
    a = rng.normal(size=(3, 4))
    t = tf.constant(a)
    for got, want in [
        (t + a, a + a),
        (a + t, a + a),
        (a @ t.T, a @ a.T),
        (tf.matmul(a, a.T), a @ a.T),
        (tf.reduce_sum(a, axis=1), a.sum(1)),
        (np.float64(2) * t, 2 * a),
    ]:
        assert isinstance(got, tf.Tensor)
        np.testing.assert_allclose(got.numpy(), want, rtol=1e-12)
    np.testing.assert_allclose(np.sqrt(np.abs(t)), np.sqrt(np.abs(a)), rtol=1e-12)
