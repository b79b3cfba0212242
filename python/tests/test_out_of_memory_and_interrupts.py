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
    "a prefetch of all elements, which are kept": """
        for element in tf.data.Dataset.range(10**9).prefetch(10**9):
            held.append(element)
    """,
    # Rows are views: nothing but their handles takes memory.
    "a prefetch of rows": """
        element = iter(tf.data.Dataset.from_tensor_slices(["abc", "d"]).repeat().prefetch(10**9))
        while True:
            next(element)
            held.append(bytearray(2**16))
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
    raises_memory_error(PRELUDE, program, tmp_path)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the limit of data is Linux's")
@pytest.mark.parametrize("name", ["many small tensors", "a deep tape", "a prefetch of all elements, which are kept"])
def test_a_limit_of_data_raises_memory_error(name, tmp_path):
    prelude = PRELUDE.replace("RLIMIT_AS", "RLIMIT_DATA").replace(".split()[0]", ".split()[5]")
    raises_memory_error(prelude, PROGRAMS[name], tmp_path)


def raises_memory_error(prelude, program, tmp_path):
    """The program ends with a MemoryError, and can go on."""
    body = "\n".join(f"    {line.strip(' ') and line[8:]}" for line in program.strip("\n").splitlines())
    text = (
        f"{prelude}\ntry:\n{body}\nexcept MemoryError:\n    pass\n"
        # With what it held, the memory is there again.
        "held = x = tape = element = None\n"
        "tf.memory.trim()\n"
        "print('refused', float(tf.reduce_sum(tf.ones([10]))))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", text, str(tmp_path / "file")], capture_output=True, text=True, timeout=300
    )
    assert (ran.returncode, ran.stdout.strip()) == (0, "refused 10.0"), ran.stderr[-2000:]


# A number that a program gives is no reason to take memory before there are elements.
LARGE_NUMBERS = {
    "prefetch": "numbers.prefetch(10**9)",
    "shuffle": "numbers.shuffle(10**12)",
    "map": "numbers.map(lambda x: x, num_parallel_calls=10**9)",
    "map in any order": "numbers.map(lambda x: x, num_parallel_calls=10**9, deterministic=False)",
    "map of a dataset of unknown length": "numbers.filter(lambda x: x >= 0).map(lambda x: x, num_parallel_calls=10**9)",
    "interleave": "numbers.interleave(tf.data.Dataset.from_tensors, cycle_length=10**9, num_parallel_calls=10**9)",
    "interleave of long blocks": "numbers.interleave(tf.data.Dataset.from_tensors, cycle_length=1, block_length=10**12)",
    "batch": "numbers.batch(10**12).unbatch()",
    "batch in parallel": "numbers.batch(10**12, num_parallel_calls=10**9).unbatch()",
    "padded_batch": "numbers.padded_batch(10**12).unbatch()",
    "ragged_batch": "numbers.ragged_batch(10**12).flat_map(tf.data.Dataset.from_tensor_slices)",
    "rebatch": "numbers.batch(3).rebatch(10**12).unbatch()",
    "window": "numbers.window(10**12).flat_map(lambda window: window)",
    "group_by_window": "numbers.group_by_window(lambda x: 0 * x, lambda key, window: window, window_size=10**12)",
    "lines": "tf.data.TextLineDataset(sys.argv[1], buffer_size=10**12).map(lambda x: tf.strings.to_number(x, tf.int64))",
    "csv": "tf.data.experimental.CsvDataset(sys.argv[1], [tf.int64], buffer_size=10**12).map(lambda x: x)",
}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of the address space are Linux's")
def test_large_numbers_of_a_program_take_no_memory(tmp_path):
    lines = tmp_path / "lines"
    lines.write_text("".join(f"{i}\n" for i in range(10)))
    text = f"""{PRELUDE}
numbers = tf.data.Dataset.range(10)
for name, made in {LARGE_NUMBERS!r}.items():
    print(name, sorted(int(x) for x in eval(made)) == list(range(10)))
"""
    ran = subprocess.run([sys.executable, "-c", text, str(lines)], capture_output=True, text=True, timeout=300)
    expected = [f"{name} True" for name in LARGE_NUMBERS]
    assert (ran.returncode, ran.stdout.splitlines()) == (0, expected), ran.stderr[-2000:]


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
    # A call that cannot be ended goes on by itself, and holds its memory until it ends.
    start = time.monotonic()
    while tf.memory.live_bytes() != before and time.monotonic() - start < 300:
        time.sleep(0.01)
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


def long_ops():
    rng = np.random.default_rng(0)
    a = tf.constant(rng.normal(size=(1200, 1200)) + 40 * np.eye(1200))
    spd = tf.matmul(a, a, transpose_b=True)
    few = a[:600, :600]
    return {
        "eigh": lambda: tf.linalg.eigh(spd),
        "eig": lambda: tf.linalg.eig(few),
        "svd": lambda: tf.linalg.svd(a),
        "qr": lambda: tf.linalg.qr(a),
        "solve": lambda: tf.linalg.solve(a, a),
        "cholesky": lambda: tf.linalg.cholesky(spd),
        "inv": lambda: tf.linalg.inv(a),
        "det": lambda: tf.linalg.det(a),
        "lstsq": lambda: tf.linalg.lstsq(a, a, fast=False),
        "triangular_solve": lambda: tf.linalg.triangular_solve(a, a),
        "expm": lambda: tf.linalg.expm(a),
        "logm": lambda: tf.linalg.logm(tf.cast(few, tf.complex128)),
        "sqrtm": lambda: tf.linalg.sqrtm(spd),
        "lu": lambda: tf.linalg.lu(few),
        "fft": lambda: tf.signal.fft(tf.complex(tf.ones([2**23]), tf.zeros([2**23]))),
        "fft of a prime length": lambda: tf.signal.fft(tf.complex(tf.ones([1500007]), tf.zeros([1500007]))),
        "rfft": lambda: tf.signal.rfft(tf.ones([2**23])),
    }


@pytest.mark.parametrize("name", long_ops())
def test_one_decomposition_or_transform_can_be_interrupted(name):
    work = long_ops()[name]
    interrupted(work)


def test_what_goes_on_after_an_interrupt_changes_no_result():
    a = np.random.default_rng(1).normal(size=(1200, 1200))
    x = tf.constant(a)
    interrupted(lambda: tf.linalg.svd(x))
    np.testing.assert_array_equal(x.numpy(), a)
    s, _u, v = tf.linalg.svd(x[:40, :40])
    np.testing.assert_allclose(s.numpy(), np.linalg.svd(a[:40, :40])[1], rtol=1e-10)
    assert v.shape == (40, 40)
