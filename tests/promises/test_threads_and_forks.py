"""Many calls, threads and forks: memory stays flat and results equal."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import threading
import time

import numpy as np
import pytest
import taut as tf


def test_many_calls_leave_live_bytes_flat():
    x, v = tf.ones([10]), tf.Variable(tf.zeros([10]))
    f = tf.function(lambda x: tf.tanh(x) * 2.0)
    f(x)
    before = tf.memory.live_bytes()
    for _ in range(100_000):
        x + 1.0
    assert tf.memory.live_bytes() == before
    for _ in range(100_000):
        f(x)
    assert tf.memory.live_bytes() == before
    for _ in range(10_000):
        with tf.GradientTape() as tape:
            y = tf.reduce_sum(v * x)
        v.assign_sub(tape.gradient(y, v))
    del tape, y
    assert tf.memory.live_bytes() == before
    assert v.numpy().tolist() == [-10_000.0] * 10


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="resident memory is read from /proc")
def test_many_calls_leave_resident_memory_flat():
    x, v = tf.ones([10]), tf.Variable(tf.zeros([10]))
    f = tf.function(lambda x, k: tf.tanh(x) * k + v)

    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def calls(count):
        for _ in range(count):
            f(x + 1.0, 2.0).numpy()
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(v * x)
            tape.gradient(y, v)
            tf.constant([1.0, 2.0])[0].shape.as_list()

    calls(5_000)
    before = resident()
    calls(50_000)
    assert resident() - before < 2 << 20, "less than 42 bytes per round"


def test_eight_threads_agree_with_one():
    shared = tf.function(lambda x: tf.sin(x) * tf.exp(-x), on_retrace="allow")
    weights = tf.constant(np.random.default_rng(1).normal(size=(8, 8)))

    def work(seed):
        rng = np.random.default_rng(seed)
        v = tf.Variable(rng.normal(size=(8, 8)))

        @tf.function
        def step(x):
            with tf.GradientTape() as tape:
                y = tf.reduce_sum(tf.tanh(tf.matmul(tf.matmul(x, v), weights)))
            v.assign_sub(0.1 * tape.gradient(y, v))
            return y

        found = []
        for i in range(30):
            x = tf.constant(rng.normal(size=(4 + seed % 3, 8)))
            found.append(step(x).numpy())
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = tf.reduce_sum(shared(x) * x)
            found.append(tape.gradient(y, x).numpy())
            if i % 10 == 0:
                found.append(tf.map_fn(lambda row: tf.reduce_sum(row * row), x).numpy())
        return [*found, v.numpy().copy()]

    serial = [work(seed) for seed in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        parallel = list(pool.map(work, range(8)))
    for one, other in zip(serial, parallel, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_tape_records_its_own_thread_only():
    x = tf.constant(2.0)
    started, done = threading.Event(), threading.Event()
    seen = []

    def elsewhere():
        started.wait(60)
        seen.append(float(x * x))
        done.set()

    thread = threading.Thread(target=elsewhere)
    thread.start()
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = x * x
        entries = tape.num_entries()
        started.set()
        assert done.wait(60)
        assert tape.num_entries() == entries
    thread.join()
    assert seen == [4.0]
    assert float(tape.gradient(y, x)) == 4.0


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
def test_a_forked_process_computes_or_reports_why_not():
    big = tf.constant(np.random.default_rng(1).normal(size=(700, 700)))
    f = tf.function(lambda x: tf.matmul(tf.sin(x), x) * 2.0)
    want = f(big).numpy()  # the thread pool has been started
    child = os.fork()
    if child == 0:
        status = 1
        try:
            eager = tf.matmul(tf.sin(big), big) * 2.0
            if np.array_equal(f(big).numpy(), want) and np.allclose(eager.numpy(), want):
                status = 0
        except (RuntimeError, tf.errors.OpError) as error:
            status = 0 if "fork" in str(error) else 2
        finally:
            os._exit(status)
    for _ in range(600):
        waited, status = os.waitpid(child, os.WNOHANG)
        if waited:
            break
        time.sleep(0.1)
    else:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        pytest.fail("the child hung")
    assert os.waitstatus_to_exitcode(status) == 0
    np.testing.assert_array_equal(f(big).numpy(), want)
