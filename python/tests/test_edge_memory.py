"""Custom allocators: edge cases."""

import ctypes
import subprocess
import sys

import pytest

import taut as tf

ALLOCATE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)
RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)

# C's allocator, with functions that only the engine refers to.
AT_EXIT = """
import ctypes
import numpy
import taut as tf

c = ctypes.CDLL(None)
c.aligned_alloc.restype = ctypes.c_void_p
c.aligned_alloc.argtypes = [ctypes.c_size_t, ctypes.c_size_t]
c.free.argtypes = [ctypes.c_void_p]

def functions(c):
    allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t)(lambda n: c.aligned_alloc(64, -(-n // 64) * 64))
    release = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t)(lambda block, n: c.free(block))
    return allocate, release

tf.memory.set_allocator(functions(c), "mine")
kept = tf.exp(tf.ones([1000]))
numpy.kept = tf.exp(tf.ones([1000])).numpy()  # goes later than this package
print(tf.memory.allocator())
"""


def test_buffers_go_back_while_the_interpreter_goes_down():
    done = subprocess.run([sys.executable, "-c", AT_EXIT], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout.strip()) == (0, "mine"), done.stderr


@pytest.mark.parametrize(
    "functions", [("a", "b"), (True, True), (len, len), (1.5, 2), (None, None), (lambda n: 0, lambda b, n: None)]
)
def test_only_functions_and_addresses_are_allocators(functions):
    with pytest.raises(TypeError, match="C functions"):
        tf.memory.set_allocator(functions)
    assert tf.memory.allocator() == "pool"


@pytest.mark.parametrize("source", [None, 5, (), (1, 2, 3), {"a": 1}])
def test_a_pair_is_two(source):
    with pytest.raises(TypeError, match="pair"):
        tf.memory.set_allocator(source)
    assert tf.memory.allocator() == "pool"


def test_names_are_for_allocators_of_ones_own():
    with pytest.raises(ValueError, match="name must be None"):
        tf.memory.set_allocator("pool", name="mine")
    pair = ALLOCATE(lambda n: None), RELEASE(lambda block, n: None)
    with pytest.raises(ValueError, match="built-in allocator"):
        tf.memory.set_allocator(pair, name="system")
    assert tf.memory.allocator() == "pool"
