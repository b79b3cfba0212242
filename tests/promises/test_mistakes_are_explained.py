"""Mistakes are reported with the line, and change nothing."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import taut as tf

HERE = "test_mistakes_are_explained.py"


def test_a_tensor_of_a_finished_trace_is_refused():
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


def test_a_traced_tensor_has_no_python_value():
    for use in [bool, int, float, lambda x: x.numpy(), np.asarray, lambda x: [0, 1][x]]:
        with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match="trac") as caught:
            tf.function(lambda x, use=use: use(x), autograph=False)(tf.constant(1))
        assert HERE in str(caught.value)


MISTAKES = {
    # The call, the class of the error, words that the message must contain.
    "ragged list": (lambda: tf.constant([[1, 2], [3]]), ValueError, "equal lengths"),
    "ragged list of tensors": (lambda: tf.constant([tf.ones([2]), tf.ones([3])]), ValueError, "[2] and [3]"),
    "deeper ragged list": (lambda: tf.constant([[1], 2]), ValueError, "lists"),
    "object array": (lambda: tf.constant(np.array([1, None, "a"], object)), ValueError, "objects"),
    "words as numbers": (lambda: tf.constant(np.array(["a", "b"]), tf.float32), TypeError, "element type"),
    "an order of complex numbers": (lambda: tf.constant(np.array([1j])) < 2.0, TypeError, "complex128"),
    "dates": (lambda: tf.constant(np.array(["2020-01-01"], "datetime64[D]")), TypeError, "datetime64"),
    "a word in arithmetic": (lambda: tf.constant("abc") * 2.0, TypeError, "string"),
    "nothing": (lambda: tf.constant(None), TypeError, "None"),
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
    "many as one": (lambda: bool(tf.ones([2])), ValueError, "tf.reduce_all"),
    "an index of the gather": (lambda: tf.gather(tf.ones([2]), [7]), IndexError, "7"),
    "reshape": (lambda: tf.reshape(tf.ones([6]), [4]), ValueError, "reshape"),
    "a dictionary": (lambda: tf.ones([2]) + {}, TypeError, "dict"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_errors_state_what_must_hold(name):
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
