"""A plan predicts the peak before anything runs, to the byte."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest
import taut as tf

FLOAT = 4


def test_a_plan_equals_the_measured_peak(peak_of, rng):
    v = tf.Variable(rng.normal(size=(64, 32)).astype("f4"))
    table = tf.constant(rng.normal(size=(32, 32)).astype("f4"))

    @tf.function
    def f(x):
        hidden = tf.tanh(tf.matmul(x, v))
        v.assign_sub(tf.matmul(tf.transpose(x), hidden))
        return tf.matmul(tf.exp(hidden), table), tf.cumsum(hidden, 0)

    before = tf.memory.live_bytes()
    plan = f.plan(tf.TensorSpec([128, 64]))
    assert tf.memory.live_bytes() == before, "nothing was allocated"
    assert plan.input_bytes == 128 * 64 * FLOAT
    assert plan.output_bytes == 2 * 128 * 32 * FLOAT
    assert plan.variable_bytes == 64 * 32 * FLOAT
    assert plan.constant_bytes == 32 * 32 * FLOAT
    assert plan.peak_bytes == plan.arena_bytes + plan.output_bytes
    beside = plan.input_bytes + plan.variable_bytes + plan.constant_bytes
    assert plan.total_bytes == plan.peak_bytes + beside
    assert plan.lower_bound <= plan.peak_bytes
    x = tf.constant(rng.normal(size=(128, 64)).astype("f4"))
    peak, _ = peak_of(lambda: f(x))
    assert peak == plan.peak_bytes


def test_a_plan_larger_than_the_machine():
    f = tf.function(lambda x: tf.exp(tf.matmul(x, x)))
    with tf.memory.measure() as measured:
        assert f.plan(tf.TensorSpec([100_000, 100_000])).peak_bytes == 40_000_000_000
    assert measured.peak_bytes == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resident memory is read from /proc")
def test_resident_memory_grows_by_the_planned_bytes():
    program = textwrap.dedent("""
        import taut as tf

        @tf.function
        def f(x):
            both = tf.concat([x, tf.exp(x)], 0)
            return tf.cumsum(tf.concat([tf.cumsum(both, 0), both], 0), 1)

        def status(field):
            lines = open("/proc/self/status").read().splitlines()
            return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024

        x = tf.ones([4096, 2048])
        planned = f.plan(x).peak_bytes
        f(tf.ones([64, 64]))  # threads and kernels allocate their fixed memory
        tf.memory.trim()
        open("/proc/self/clear_refs", "w").write("5")
        before = status("VmRSS")
        y = f(x)
        print(planned, status("VmHWM") - before)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    planned, grown = map(int, done.stdout.split())
    assert planned >= 256 << 20
    assert abs(grown - planned) <= planned / 100 + (4 << 20)
