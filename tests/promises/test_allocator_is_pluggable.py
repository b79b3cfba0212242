"""The allocator can be chosen, or be the user's own."""

from __future__ import annotations

import ctypes

import pytest
import taut as tf


def test_a_user_defined_allocator():
    """Every byte of a computation is allocated and freed by two functions of the user."""
    c = ctypes.CDLL(None)
    c.aligned_alloc.restype = ctypes.c_void_p
    c.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
    c.free.argtypes = [ctypes.c_void_p]
    held = {}

    @ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
    def allocate(count):
        block = c.aligned_alloc(64, -(-count // 64) * 64)
        held[block] = count
        return block

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)
    def release(block, count):
        assert held.pop(block) == count
        c.free(block)

    tf.memory.set_allocator((allocate, release), name="counting")
    try:
        assert tf.memory.allocator() == "counting"
        before = tf.memory.live_bytes()
        x = tf.ones([1000])
        y = tf.function(lambda x: tf.sort(x * 2.0))(x)
        assert x.data_ptr() in held and y.data_ptr() in held
        assert sum(held.values()) == tf.memory.live_bytes() - before
    finally:
        tf.memory.set_allocator("pool")
    assert tf.memory.allocator() == "pool"
    assert y.numpy().tolist() == [2.0] * 1000
    del x, y  # freed by the allocator that made them, although the pool is active now
    assert sum(held.values()) == tf.memory.live_bytes() - before == 0


def test_an_allocator_that_fails():
    nothing = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(lambda count: None)
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)(lambda block, count: None)
    tf.memory.set_allocator((nothing, release), name="empty")
    try:
        with pytest.raises(tf.errors.ResourceExhaustedError, match="could not be allocated by the empty allocator"):
            tf.ones([1000])
    finally:
        tf.memory.set_allocator("pool")


def test_allocators_by_name():
    tf.memory.set_allocator("system")
    try:
        x = tf.ones([1000])
        assert tf.memory.allocator() == "system"
        del x
    finally:
        tf.memory.set_allocator("pool")
    with pytest.raises(ValueError, match="pool"):
        tf.memory.set_allocator("arena of mine")
    with pytest.raises(ValueError, match="address"):
        tf.memory.set_allocator((0, 0))
