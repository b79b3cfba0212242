"""The tape keeps exactly the bytes that the gradients of the recorded ops need."""

from __future__ import annotations

import pytest
import taut as tf

FLOAT = 4
ELEMENTS = 4 * 5
TENSOR, ROW = ELEMENTS * FLOAT, 5 * FLOAT
HELD = {
    # Name: the computation, which of x and y are watched, the bytes that its gradient needs.
    "add": (lambda x, y: x + y, "xy", 0),
    "mul, both sides": (lambda x, y: x * y, "xy", 2 * TENSOR),
    "mul, one side": (lambda x, y: x * y, "x", TENSOR),
    "mul, by a number": (lambda x, y: x * 3.0, "x", FLOAT),
    "mul, by itself": (lambda x, y: x * x, "x", TENSOR),
    "relu": (lambda x, y: tf.nn.relu(x), "x", (ELEMENTS + 7) // 8),
    "matmul, both sides": (lambda x, y: tf.matmul(x, tf.transpose(y)), "xy", 2 * TENSOR),
    "matmul, one side": (lambda x, y: tf.matmul(x, tf.transpose(y)), "y", TENSOR),
    "reshape": (lambda x, y: tf.reshape(x, [5, 4]), "x", 0),
    "transpose": (lambda x, y: tf.transpose(x), "x", 0),
    "sum": (lambda x, y: tf.reduce_sum(x), "x", 0),
    "sum of rows": (lambda x, y: tf.reduce_sum(x, axis=0), "x", 0),
    "softmax": (lambda x, y: tf.nn.softmax(x), "x", TENSOR),
    "tanh": (lambda x, y: tf.tanh(x), "x", TENSOR),
    "exp, then tanh": (lambda x, y: tf.tanh(tf.exp(x)), "x", 2 * TENSOR),
    "neg": (lambda x, y: -x, "x", 0),
    "gather": (lambda x, y: tf.gather(x, tf.constant([0, 3, 3])), "x", 3 * 4),
}


@pytest.mark.parametrize("name", HELD)
def test_a_tape_holds_what_the_gradient_needs(name, rng):
    work, watched, want = HELD[name]
    tensors = {key: tf.constant(rng.uniform(0.5, 2, size=(4, 5)).astype("f4")) for key in "xy"}
    with tf.GradientTape() as tape:
        tape.watch([tensors[key] for key in watched])
        result = work(tensors["x"], tensors["y"])
    assert tape.bytes_held() == want, tape.explain()
    assert sum(row[0] for row in tape.explain().rows) == want
    assert tape.gradient(result, tensors[watched[0]]) is not None


def test_the_explanation_names_op_line_and_bytes(rng):
    x = tf.constant(rng.normal(size=(4, 5)).astype("f4"))
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.tanh(x)  # this line
    [(held, op, line, _)] = tape.explain().rows
    assert (held, op) == (TENSOR, "tanh")
    number = test_the_explanation_names_op_line_and_bytes.__code__.co_firstlineno + 4
    assert f"test_tape_keeps_only_what_it_needs.py:{number}" in line
    assert y.shape == (4, 5)
