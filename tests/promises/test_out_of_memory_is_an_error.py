"""Out of memory is an error raised before the first kernel runs; variables and tapes stay as they were."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


def test_too_little_memory_is_reported_before_the_first_kernel(no_limit, rng, line_of):
    v = tf.Variable(np.ones(1000, "f4"))
    w = tf.constant(rng.normal(size=(1000, 1000)).astype("f4"))

    @tf.function
    def f(x):
        v.assign_add(x)
        return tf.matmul(tf.reshape(v * x + 1.0, [1, 1000]), w)

    x = tf.ones([1000])
    need = f.plan(x).peak_bytes
    address, before = v.address, tf.memory.live_bytes()
    tf.memory.limit(before + need - 1)
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        f(x)  # here
    assert isinstance(caught.value, MemoryError)
    line = line_of(test_too_little_memory_is_reported_before_the_first_kernel, "# here")
    assert f"test_out_of_memory_is_an_error.py:{line}" in str(caught.value)
    del caught
    f.release()
    assert tf.memory.live_bytes() == before
    assert (v.address, v.numpy().tolist()) == (address, [1.0] * 1000), "no kernel ran"
    tf.memory.limit(before + need)
    f(x)
    assert v.numpy().tolist() == [2.0] * 1000


def test_the_error_names_the_owners_of_memory(no_limit, line_of):
    tf.memory.record(True)
    try:
        owner = tf.ones([5000])  # owner
        tf.memory.limit(tf.memory.live_bytes() + 100)
        with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
            tf.zeros([1000])
    finally:
        tf.memory.record(False)
    line = line_of(test_the_error_names_the_owners_of_memory, "# owner")
    assert f"test_out_of_memory_is_an_error.py:{line}" in str(caught.value)
    assert "4000" in str(caught.value) or "3.9 KiB" in str(caught.value)
    assert owner.nbytes == 20_000


@pytest.mark.parametrize("kind", ["eager", "traced", "tape"])
def test_every_limit_holds_and_a_failure_changes_nothing(kind, no_limit, rng):
    v = tf.Variable(rng.normal(size=(16, 16)))
    x = tf.constant(rng.normal(size=(16, 16)))

    def work(x):
        y = tf.tanh(tf.matmul(x, v))
        return tf.matmul(tf.exp(y), y)

    traced = tf.function(work)

    def run():
        if kind == "eager":
            return work(x)
        if kind == "traced":
            return traced(x)
        with tf.GradientTape() as tape:
            y = traced(x)
        return tape.gradient(y, v)

    want = run().numpy().copy()
    start, address = v.numpy().copy(), v.address
    traced.release()
    before = tf.memory.live_bytes()
    with tf.memory.measure() as measured:
        run()
    need = measured.peak_bytes
    traced.release()
    limits = [*range(0, need, max(need // 32, 1)), need - 1, need, 2 * need]
    outcomes = []
    for extra in limits:
        tf.memory.reset_peak()
        tf.memory.limit(before + extra)
        try:
            np.testing.assert_array_equal(run().numpy(), want)
            outcomes.append(True)
        except tf.errors.ResourceExhaustedError:
            outcomes.append(False)
        assert tf.memory.peak_bytes() <= before + extra
        tf.memory.limit(None)
        traced.release()
        assert tf.memory.live_bytes() == before, extra
        assert v.address == address
    np.testing.assert_array_equal(v.numpy(), start)
    assert outcomes[-2:] == [True, True], "the measured peak is enough"
    assert outcomes[0] is False and outcomes == sorted(outcomes), "success is monotone in the limit"
    np.testing.assert_array_equal(run().numpy(), want)
