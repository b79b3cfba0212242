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
    "a large window": """
        for element in tf.data.Dataset.range(10**9).window(10**7):
            held.append(element)
    """,
    "windows of one tensor": """
        for element in tf.data.Dataset.from_tensors(tf.ones([10])).repeat().window(10**7, shift=1):
            held.append(element)
    """,
    # Ended by the first element without memory: an endless batch would go on with an error for each further element.
    "an endless batch": """
        next(iter(tf.data.Dataset.range(2**62).batch(2**61)))
    """,
    "an endless padded batch": """
        next(iter(tf.data.Dataset.range(2**62).padded_batch(2**61)))
    """,
    "a long Fourier transform": """
        x = tf.complex(tf.ones([2**22]), tf.zeros([2**22]))
        tf.signal.fft(x)
    """,
    "a Fourier transform of a prime length": """
        x = tf.complex(tf.ones([1500007]), tf.zeros([1500007]))
        tf.signal.fft(x)
    """,
    "many rows": """
        x = tf.ones([10**5, 1])
        while True:
            held.append(tf.unstack(x))
    """,
    "a long list": """
        x = [tf.ones([])] * 4_000_000
        while True:
            held.append(tf.function(lambda x: x[0])(x))
            x = x + x
    """,
    "letters": """
        x = tf.constant("A" * 2**20)
        while True:
            x = tf.strings.lower(tf.strings.join([x, x]))
    """,
    "code points": """
        x = tf.constant("A" * 2**20)
        while True:
            x = tf.strings.join([x, x])
            tf.strings.unicode_decode(x, "UTF-8")
    """,
    "a long trace": """
        @tf.function(autograph=False)
        def element(x):
            while True:
                x = tf.sin(x)
        element(tf.ones([]))
    """,
    "a long line": """
        with open(sys.argv[1], "wb") as file:
            file.write(b"a" * 2**27)
        next(iter(tf.data.TextLineDataset(sys.argv[1])))
    """,
    "a long field": """
        with open(sys.argv[1], "wb") as file:
            file.write(b"a" * 2**27)
        next(iter(tf.data.experimental.CsvDataset(sys.argv[1], [""])))
    """,
    "bytes for Python": """
        x = tf.constant("A" * 2**20)
        while True:
            x = tf.strings.join([x, x])
            held.append(x.numpy())
    """,
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the address space are Linux's")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_system_without_memory_raises_memory_error(program, tmp_path):
    body = "\n".join(f"    {line.strip(' ') and line[8:]}" for line in program.strip("\n").splitlines())
    text = (
        f"{PRELUDE}\ntry:\n{body}\nexcept MemoryError:\n    pass\n"
        # With what it held, the memory is there again.
        "held = x = tape = element = None\n"
        "tf.memory.trim()\n"
        "print('refused', float(tf.reduce_sum(tf.ones([10]))))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", text, str(tmp_path / "file")], capture_output=True, text=True, timeout=300
    )
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
