"""Machine code is the default, and changes no result; without it, kernels are interpreted."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import taut as tf


def chain(x):
    y = tf.tanh(x * 2.0 + 1.0) * tf.exp(-x * x)
    return (
        y,
        tf.reduce_sum(y * y, axis=0),
        tf.while_loop(lambda i, r: i < 3, lambda i, r: (i + 1, r * x + 0.5), (0, x))[1],
    )


@pytest.mark.parametrize("shape", [(3, 5), (33, 70), (257, 130)])
def test_results_have_the_same_bits(shape):
    x = tf.constant(np.random.default_rng(3).normal(size=shape).astype("f4"))
    results = [[np.asarray(one) for one in tf.function(chain, jit_compile=jit)(x)] for jit in (None, True, False)]
    for other in results[1:]:
        for one, two in zip(results[0], other):
            assert one.tobytes() == two.tobytes()


# The kernel of Linux refuses memory that becomes executable after it was writable (PR_SET_MDWE).
REFUSED = """
import ctypes, sys, warnings
import numpy as np
import taut as tf

prctl = getattr(ctypes.CDLL(None), "prctl", None)
if prctl is None or prctl(65, ctypes.c_ulong(1), 0, 0, 0) != 0:
    print("unsupported")
    sys.exit()
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    for jit in (None, True, False):
        f = tf.function(lambda x: 2.0 * x * x + 1.0, jit_compile=jit)
        assert f(tf.constant([1.0, 2.0])).numpy().tolist() == [3.0, 9.0]
        assert f(tf.constant([1.0, 2.0, 3.0])).numpy().tolist() == [3.0, 9.0, 19.0]
print(len(caught), *(str(one.message).splitlines()[0] for one in caught))
"""


def test_a_refusal_of_executable_memory_is_one_warning():
    run = subprocess.run([sys.executable, "-c", REFUSED], capture_output=True, text=True, check=True)
    if run.stdout.strip() == "unsupported":
        pytest.skip("this system has no call that refuses executable memory")
    flags = Path("/proc/cpuinfo").read_text().split()
    if "avx2" in flags and "fma" in flags:
        assert run.stdout.startswith("1 the operating system refused executable memory"), run.stdout
    else:  # nothing to refuse: kernels are interpreted
        assert run.stdout.startswith("0"), run.stdout
