"""DLPack and `ml_dtypes`: tensors exchanged with NumPy, PyTorch and JAX without a copy."""

from __future__ import annotations

import gc
import pickle

import numpy as np
import pytest
import taut as tf


def test_dlpack_with_numpy_shares_memory_and_keeps_it_alive():
    array = np.arange(6.0).reshape(2, 3)
    tensor = tf.from_dlpack(array)
    assert tensor.data_ptr() == array.ctypes.data
    back = np.from_dlpack(tensor)
    assert back.ctypes.data == array.ctypes.data
    del array, tensor
    gc.collect()
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]]
    mine = tf.ones([3]) * 2.0
    live = tf.memory.live_bytes()
    theirs = np.from_dlpack(mine)
    del mine
    gc.collect()
    assert theirs.tolist() == [2, 2, 2]
    assert tf.memory.live_bytes() == live
    assert tf.ones([3]).__dlpack_device__() == (1, 0)


def test_unused_dlpack_capsules_are_freed():
    before = tf.memory.live_bytes()
    capsule = tf.zeros([1000]).__dlpack__()
    assert tf.memory.live_bytes() >= before
    del capsule
    gc.collect()
    assert tf.memory.live_bytes() == before


def test_dlpack_with_pytorch():
    torch = pytest.importorskip("torch")
    tensor = tf.range(6, dtype=tf.float32) + 0.5
    theirs = torch.from_dlpack(tensor)
    assert theirs.data_ptr() == tensor.data_ptr()
    assert theirs.tolist() == tensor.numpy().tolist()
    made = torch.arange(6.0).reshape(2, 3).T
    mine = tf.from_dlpack(made)
    assert mine.data_ptr() == made.data_ptr()
    assert mine.numpy().tolist() == made.tolist()


def test_dlpack_with_jax():
    jax = pytest.importorskip("jax")
    tensor = tf.range(16, dtype=tf.float32) + 0.5
    theirs = jax.numpy.from_dlpack(tensor)
    assert theirs.tolist() == tensor.numpy().tolist()
    made = jax.numpy.arange(6.0)
    mine = tf.from_dlpack(made)
    assert mine.numpy().tolist() == made.tolist()


def test_bfloat16_through_ml_dtypes():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.0, 2.5, -3.0], ml_dtypes.bfloat16)
    tensor = tf.convert_to_tensor(array)
    assert tensor.dtype == tf.bfloat16
    assert tensor.data_ptr() == array.ctypes.data
    out = (tensor * 2).numpy()
    assert out.dtype == ml_dtypes.bfloat16
    assert out.astype("f4").tolist() == [2.0, 5.0, -6.0]
    # Eight bits of mantissa: 257 lies between two values and is rounded to the even one.
    assert float(tf.cast(tf.constant(257.0), tf.bfloat16)) == 256.0
    assert pickle.loads(pickle.dumps(tensor)).numpy().tobytes() == array.tobytes()
