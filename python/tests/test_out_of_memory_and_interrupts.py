"""A system that refuses memory is an error, and a signal ends a long op."""

import _thread
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import taut as tf

PRELUDE = """
import resource, sys
import numpy as np
import taut as tf
tf.matmul(tf.ones([64, 64]), tf.ones([64, 64]))
list(tf.data.Dataset.range(3).shuffle(2))
with open("/proc/self/statm") as file:
    pages = int(file.read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + (64 << 20), -1))
held = []
"""

PROGRAMS = {
    "many small tensors": """
        while True:
            held.append(tf.constant(1.0) + 1.0)
    """,
    "many variables": """
        while True:
            held.append(tf.Variable(1.0))
    """,
    "a large shuffle": """
        for element in tf.data.Dataset.range(10**9).shuffle(10**9, seed=1):
            held.append(element)
    """,
    "one large tensor": """
        tf.ones([2**31])
    """,
    "a deep tape": """
        x = tf.constant(1.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            while True:
                x = tf.sin(x)
    """,
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the address space are Linux's")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_system_without_memory_raises_memory_error(program):
    body = "\n".join(f"    {line.strip(' ') and line[8:]}" for line in program.strip("\n").splitlines())
    text = (
        f"{PRELUDE}\ntry:\n{body}\nexcept MemoryError:\n    pass\n"
        # With what it held, the memory is there again.
        "held = x = tape = element = None\n"
        "print('refused', float(tf.reduce_sum(tf.ones([10]))))\n"
    )
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout.strip()) == (0, "refused 10.0"), ran.stderr[-2000:]


def test_handles_count_in_buffers_of_bytes():
    # A million scalars of 8 bytes would take 400 MB: each counts with its handle.
    numbers = tf.data.Dataset.range(10_000).shuffle(buffer_bytes=80_000, seed=1)
    running = iter(numbers)
    assert sorted(int(x) for x in running) == list(range(10_000))
    stages = dict(running.report().stages)
    assert stages["shuffle"] <= 80_000


def interrupted(work):
    """Runs work, and interrupts it once it is under way."""
    started, ended = threading.Event(), threading.Event()

    def interrupt():
        started.wait()
        time.sleep(0.2)
        _thread.interrupt_main()
        # Python drops an interrupt that arrives in a destructor.
        while not ended.wait(5.0):
            _thread.interrupt_main()

    thread = threading.Thread(target=interrupt)
    thread.start()
    before = tf.memory.live_bytes()
    try:
        with pytest.raises(KeyboardInterrupt):
            started.set()
            # Far longer than the wait above, on any machine.
            while True:
                work()
    finally:
        ended.set()
        thread.join()
    assert tf.memory.live_bytes() == before


def test_one_long_op_can_be_interrupted():
    a = tf.ones([3000, 3000], tf.float64)
    start = time.process_time()
    interrupted(lambda: tf.matmul(a, a))
    # The op is not finished first: it takes many seconds of work in a debug build.
    assert time.process_time() - start < 60
    np.testing.assert_array_equal(tf.matmul(a[:2, :8], a[:8, :2]).numpy(), np.full((2, 2), 8.0))


def test_batches_of_decompositions_can_be_interrupted():
    many = tf.eye(24, batch_shape=[4000], dtype=tf.float64)
    interrupted(lambda: tf.linalg.svd(many))
    assert float(tf.reduce_sum(tf.linalg.svd(many[:2], compute_uv=False))) == 48.0
