"""Exceptions of user code reach the caller unchanged."""

from __future__ import annotations

import gc
import traceback

import pytest
import taut as tf

HERE = "test_exceptions_reach_the_caller.py"


class Own(Exception):
    """An exception class of the user."""


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
    assert tf.executing_eagerly(), "no trace is left active"
    assert (tf.ones([2]) + 1.0).numpy().tolist() == [2.0, 2.0]


def test_an_exception_in_a_custom_gradient_reaches_the_caller():
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
