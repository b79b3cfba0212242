"""How tensors behave among other things of Python: arrays, copies, threads, forks, signals, mistakes."""

from __future__ import annotations

import concurrent.futures
import copy
import gc
import os
import pickle
import signal
import threading
import time
import traceback

import numpy as np
import pytest
import taut as tf

HERE = "test_behaviour.py"


# Arrays in and out.


def test_an_array_comes_out_read_only_and_keeps_the_memory():
    tensor = tf.range(10)
    address = tensor.data_ptr()
    array = tensor.numpy()
    assert array.ctypes.data == address
    assert not array.flags.writeable
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 5
    live = tf.memory.live_bytes()
    del tensor
    gc.collect()
    assert tf.memory.live_bytes() == live, "the array keeps it"
    assert array.tolist() == list(range(10))
    del array
    assert tf.memory.live_bytes() < live


def test_a_tensor_keeps_the_array_that_it_looks_at():
    tensor = tf.convert_to_tensor(np.arange(1000.0))
    gc.collect()
    np.ones(1000)  # would take the memory if it were free
    assert tensor.numpy().tolist() == list(range(1000))


def test_an_array_that_changes_changes_what_looks_at_it_and_no_constant():
    array = np.zeros(4)
    looking, own = tf.convert_to_tensor(array), tf.constant(array)
    array[0] = 7
    assert looking.numpy()[0] == 7
    assert own.numpy()[0] == 0
    assert own.data_ptr() != array.ctypes.data


def test_a_constant_shares_memory_only_with_what_never_changes():
    tensor = tf.range(4.0)
    assert tf.constant(tensor.numpy()[2:]).data_ptr() == tensor.data_ptr() + 8
    array = np.arange(4.0)
    frozen = array[:]
    frozen.flags.writeable = False
    constant = tf.constant(frozen)
    array[0] = 7
    assert constant.numpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a.T,
        lambda a: a[::2],
        lambda a: a[:, 1:3],
        lambda a: np.broadcast_to(a[:, :1], a.shape),
        lambda a: a[::-1],
        lambda a: a[1, ::-2],
        lambda a: np.asfortranarray(a),
        lambda a: a[:0],
        lambda a: a[2, 3],
        lambda a: a[2:3, 3:4].reshape(()),
    ],
)
def test_arrays_of_any_layout_have_their_values(view):
    array = view(np.arange(24.0).reshape(4, 6))
    for tensor in [tf.constant(array), tf.convert_to_tensor(array)]:
        assert tensor.shape == array.shape
        np.testing.assert_array_equal(tensor.numpy(), array)
        np.testing.assert_array_equal((tensor + 1.0).numpy(), array + 1)


def test_misaligned_arrays_and_those_of_another_byte_order_are_copied():
    raw = np.zeros(8 * 5 + 1, np.uint8)
    misaligned = raw[1:].view(np.float64)
    misaligned[:] = range(5)
    tensor = tf.convert_to_tensor(misaligned)
    assert tensor.data_ptr() != misaligned.ctypes.data
    assert tensor.numpy().tolist() == [0, 1, 2, 3, 4]
    swapped = np.arange(5).astype(">i4")
    assert tf.convert_to_tensor(swapped).numpy().tolist() == [0, 1, 2, 3, 4]
    assert tf.convert_to_tensor(swapped).dtype == tf.int32


def test_a_variable_shown_as_an_array_stays_as_it_was():
    v = tf.Variable([1.0, 2.0])
    before = v.numpy()
    v.assign([3.0, 4.0])
    assert before.tolist() == [1.0, 2.0], "nothing changes what somebody has"
    assert v.numpy().tolist() == [3.0, 4.0]


# Other engines.


def test_dlpack_with_numpy_shares_memory_and_lives_as_long_as_needed():
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


def test_dlpack_capsules_that_nobody_takes_are_freed():
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
    # Eight bits of mantissa: 257 is between two numbers, and goes to the even one.
    assert float(tf.cast(tf.constant(257.0), tf.bfloat16)) == 256.0
    assert pickle.loads(pickle.dumps(tensor)).numpy().tobytes() == array.tobytes()


# Copies.


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "int32", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3, 4)])
def test_tensors_are_pickled(dtype, shape):
    tensor = tf.cast(tf.constant(np.arange(np.prod(shape, dtype=int)).reshape(shape)), dtype)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        back = pickle.loads(pickle.dumps(tensor, protocol))
        assert (back.dtype, back.shape) == (tensor.dtype, tensor.shape)
        np.testing.assert_array_equal(back.numpy(), tensor.numpy())
        assert back.size == 0 or back.data_ptr() != tensor.data_ptr()


def test_tensors_never_change_so_a_copy_is_the_tensor():
    tensor = tf.ones([3])
    assert copy.copy(tensor) is tensor
    assert copy.deepcopy([tensor])[0] is tensor


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, lambda v: pickle.loads(pickle.dumps(v))])
def test_variables_are_copied_with_all_they_have(duplicate):
    v = tf.Variable([1.0, 2.0], trainable=False, name="speed")
    other = duplicate(v)
    assert isinstance(other, tf.Variable)
    assert (other.trainable, other.name, other.dtype) == (False, v.name, tf.float32)
    other.assign([5.0, 6.0])
    v.assign_add([1.0, 1.0])
    assert (v.numpy().tolist(), other.numpy().tolist()) == ([2.0, 3.0], [5.0, 6.0])


def test_a_traced_tensor_is_not_pickled():
    @tf.function
    def f(x):
        pickle.dumps(x)
        return x

    with pytest.raises(TypeError, match="traced"):
        f(tf.ones([2]))


# Many calls, many threads.


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


def test_a_tape_is_its_threads_own():
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
def test_a_fork_computes_or_says_why_not():
    big = tf.constant(np.random.default_rng(1).normal(size=(700, 700)))
    f = tf.function(lambda x: tf.matmul(tf.sin(x), x) * 2.0)
    want = f(big).numpy()  # the threads are there now
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


# Being interrupted.


@pytest.mark.parametrize("kind", ["loop", "function", "gradient"])
def test_a_key_press_ends_a_long_loop(kind):
    v = tf.Variable(tf.ones([100]))

    def endless(x):
        def body(i, x):
            return i + 1, tf.sin(x) + 1.0

        return tf.while_loop(lambda i, _: i >= 0, body, (tf.constant(0, tf.int64), x))[1]

    def run():
        if kind == "gradient":
            with tf.GradientTape():
                return tf.while_loop(
                    lambda i, _: i >= 0,
                    lambda i, x: (i + 1, tf.sin(x) + 1.0),
                    (tf.constant(0, tf.int64), v.read_value()),
                    grad_budget=1 << 16,
                )
        f = tf.function(endless, autograph=False) if kind == "function" else endless
        return f(v.read_value())

    gc.collect()
    before = tf.memory.live_bytes()
    timer = threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT))
    # A program that was started in the background ignores the key, and so would the test.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            run()
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)
    gc.collect()
    assert tf.memory.live_bytes() == before
    assert v.numpy().tolist() == [1.0] * 100
    assert float(tf.reduce_sum(v)) == 100.0, "all goes on"


# Exceptions of the user's own.


class Own(Exception):
    """An exception that no library knows."""


def fails(*_args):
    raise Own("of my own", 42)  # raised here


CALLERS = {
    "function": lambda: tf.function(fails)(tf.ones([2])),
    "function without conversion": lambda: tf.function(fails, autograph=False)(tf.ones([2])),
    "function in a function": lambda: tf.function(tf.function(fails))(tf.ones([2])),
    "plan": lambda: tf.function(fails).plan(tf.TensorSpec([2])),
    "map_fn": lambda: tf.map_fn(fails, tf.ones([2])),
    "vectorized_map": lambda: tf.vectorized_map(fails, tf.ones([2])),
    "while_loop": lambda: tf.while_loop(lambda i: i < 3, fails, [tf.constant(0)]),
    "condition of a while_loop": lambda: tf.while_loop(fails, lambda i: i + 1, [tf.constant(0)]),
    "scan": lambda: tf.scan(fails, tf.ones([2])),
    "foldl": lambda: tf.foldl(fails, tf.ones([2])),
    "cond": lambda: tf.cond(tf.constant(True), fails, fails),
    "traced cond": lambda: tf.function(lambda x: tf.cond(x, fails, fails))(tf.constant(True)),
    "switch_case": lambda: tf.switch_case(tf.constant(1), [fails, fails]),
    "recompute_grad": lambda: tf.recompute_grad(fails)(tf.ones([2])),
    "custom_gradient": lambda: tf.custom_gradient(fails)(tf.ones([2])),
    "dataset map": lambda: list(tf.data.Dataset.range(3).map(fails)),
    "dataset generator": lambda: list(tf.data.Dataset.from_generator(lambda: (fails() for _ in range(1)))),
    "variable": lambda: tf.Variable(fails),
}


@pytest.mark.parametrize("name", CALLERS)
def test_exceptions_reach_the_caller_unchanged(name, line_of):
    gc.collect()
    before = tf.memory.live_bytes()
    with pytest.raises(Own) as caught:
        CALLERS[name]()
    assert type(caught.value) is Own
    assert caught.value.args == ("of my own", 42)
    frames = traceback.extract_tb(caught.value.__traceback__)
    line = line_of(fails, "# raised here")
    assert any(frame.filename.endswith(HERE) and frame.lineno == line for frame in frames), frames
    del caught, frames
    gc.collect()
    assert tf.memory.live_bytes() == before
    assert tf.executing_eagerly(), "no trace is left open"
    assert (tf.ones([2]) + 1.0).numpy().tolist() == [2.0, 2.0]


def test_an_exception_in_a_custom_gradient_reaches_who_asked():
    @tf.custom_gradient
    def f(x):
        return x * 2.0, fails

    x = tf.ones([2])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    with pytest.raises(Own, match="of my own"):
        tape.gradient(y, x)


def test_a_function_that_failed_can_be_called_again():
    broken = [True]

    @tf.function
    def f(x):
        if broken[0]:
            fails()
        return x + 1.0

    with pytest.raises(Own):
        f(tf.ones([2]))
    broken[0] = False
    assert f(tf.ones([2])).numpy().tolist() == [2.0, 2.0]


# Mistakes.


def test_a_tensor_of_a_trace_that_is_over_is_refused():
    leaked = []

    @tf.function
    def f(x):
        leaked.append(x * 2.0)
        return x

    f(tf.ones([2]))
    for work in [
        lambda: leaked[0] + 1.0,
        lambda: leaked[0].numpy(),
        lambda: float(leaked[0][0]),
        lambda: tf.function(lambda x: x + leaked[0])(tf.ones([2])),
        lambda: tf.Variable(leaked[0]),
    ]:
        with pytest.raises((tf.errors.OpError, TypeError), match="trac") as caught:
            work()
        assert HERE in str(caught.value)


def test_a_traced_tensor_has_no_truth_and_no_number():
    for use in [bool, int, float, lambda x: x.numpy(), np.asarray, lambda x: [0, 1][x]]:
        with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="trac") as caught:
            tf.function(lambda x, use=use: use(x), autograph=False)(tf.constant(1))
        assert HERE in str(caught.value)


MISTAKES = {
    # What is done, the class of the error, words that must be in it.
    "ragged list": (lambda: tf.constant([[1, 2], [3]]), ValueError, "different lengths"),
    "ragged list of tensors": (lambda: tf.constant([tf.ones([2]), tf.ones([3])]), ValueError, "[2] and [3]"),
    "deeper ragged list": (lambda: tf.constant([[1], 2]), ValueError, "lists"),
    "object array": (lambda: tf.constant(np.array([1, None, "a"], object)), ValueError, "objects"),
    "array of words": (lambda: tf.constant(np.array(["a", "b"])), TypeError, "element type"),
    "array of complex numbers": (lambda: tf.constant(np.array([1j])), TypeError, "complex128"),
    "dates": (lambda: tf.constant(np.array(["2020-01-01"], "datetime64[D]")), TypeError, "datetime64"),
    "a word": (lambda: tf.constant("abc"), TypeError, "str"),
    "nothing": (lambda: tf.constant(None), TypeError, "NoneType"),
    "an object": (lambda: tf.constant(object()), TypeError, "object"),
    "a fraction as an integer": (lambda: tf.constant(1.5, tf.int32), (TypeError, ValueError), "int32"),
    "fractions as integers": (lambda: tf.constant([1.5], tf.int32), TypeError, "int32"),
    "a number too large": (lambda: tf.constant(300, tf.uint8), ValueError, "uint8"),
    "numbers too large": (lambda: tf.constant([300], tf.uint8), ValueError, "uint8"),
    "a tensor of another type": (lambda: tf.convert_to_tensor(tf.ones([2]), tf.int32), ValueError, "float32"),
    "no such type": (lambda: tf.zeros([2], "float12"), TypeError, "float12"),
    "shapes": (lambda: tf.ones([2]) + tf.ones([3]), ValueError, "[2] and [3]"),
    "matrices": (lambda: tf.matmul(tf.ones([2, 3]), tf.ones([2, 3])), ValueError, "matmul"),
    "bits of floats": (lambda: tf.ones([2]) & 1, TypeError, "float32"),
    "an index": (lambda: tf.ones([2])[5], IndexError, "5"),
    "an axis": (lambda: tf.reduce_sum(tf.ones([2]), axis=3), (ValueError, IndexError), "3"),
    "a variable's shape": (lambda: tf.Variable(tf.ones([2])).assign(tf.ones([3])), ValueError, "[3]"),
    "a variable's type": (lambda: tf.Variable([1.0]).assign(tf.ones([1], tf.int32)), TypeError, "int32"),
    "a parameter": (lambda: tf.reduce_sum(tf.ones([2]), axes=0), TypeError, "axes"),
    "many as one": (lambda: bool(tf.ones([2])), ValueError, "one element"),
    "an index of the gather": (lambda: tf.gather(tf.ones([2]), [7]), IndexError, "7"),
    "reshape": (lambda: tf.reshape(tf.ones([6]), [4]), ValueError, "reshape"),
    "a dictionary": (lambda: tf.ones([2]) + {}, TypeError, "dict"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_told_in_clear_words(name):
    work, error, words = MISTAKES[name]
    with pytest.raises(error) as caught:
        work()
    assert words in str(caught.value)
    assert "panic" not in str(caught.value).lower()


def test_errors_of_ops_name_the_line(line_of):
    def mistaken(x):
        return tf.matmul(x, x)  # mistake

    line = line_of(mistaken, "# mistake")
    for run in [mistaken, tf.function(mistaken), tf.function(mistaken, autograph=False)]:
        with pytest.raises(ValueError, match="matmul") as caught:
            run(tf.ones([2, 3]))
        assert f"{HERE}:{line}" in str(caught.value)
        assert "float32[2, 3]" in str(caught.value)


def test_out_of_memory_changes_nothing(no_limit, line_of):
    v = tf.Variable(tf.ones([1000]))
    x = tf.ones([1000]) * 2.0
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(tf.exp(x))
    held, entries = tape.bytes_held(), tape.num_entries()
    gc.collect()
    before, address = tf.memory.live_bytes(), v.address
    tf.memory.limit(before + 1000)
    assert tf.memory.limit() == before + 1000
    with pytest.raises(tf.errors.ResourceExhaustedError) as caught:
        v.assign(tf.exp(x) * x)  # here
    assert isinstance(caught.value, MemoryError)
    assert f"{HERE}:{line_of(test_out_of_memory_changes_nothing, '# here')}" in str(caught.value)
    for work in [
        lambda: tf.constant(np.zeros(1000)),
        lambda: tf.zeros([1000]) + x,
        lambda: tf.map_fn(lambda e: e * 2.0, x),
        lambda: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, tf.sin(x)), (tf.constant(0), x)),
        lambda: tf.random.normal([1000]),
        lambda: tf.function(lambda x: tf.cumsum(x))(x),
        lambda: tf.Variable(np.zeros(1000)),
    ]:
        with pytest.raises(tf.errors.ResourceExhaustedError):
            work()
    tf.memory.limit(None)
    del caught
    gc.collect()
    assert tf.memory.live_bytes() == before
    assert (v.address, v.numpy().tolist()) == (address, [1.0] * 1000)
    assert (tape.bytes_held(), tape.num_entries()) == (held, entries)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.exp(x.numpy()), rtol=1e-6)


@pytest.mark.parametrize("bytes_", [-1, "many", 1.5])
def test_a_limit_is_a_number_of_bytes(bytes_, no_limit):
    with pytest.raises((TypeError, ValueError, OverflowError)):
        tf.memory.limit(bytes_)
    assert tf.memory.limit() is None
    assert tf.zeros([10]).shape == (10,)
