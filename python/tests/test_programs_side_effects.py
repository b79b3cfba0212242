"""Side effects of programs: printed and called once per run."""

import pytest

import taut as tf


def test_words_are_printed_in_every_run_by_the_branch_that_runs(capfd):
    @tf.function
    def f(x):
        tf.print("begin")
        if x > 0:
            tf.print("positive")
        else:
            tf.print("negative")
        return x

    for x in (1.0, -1.0, 2.0):
        f(tf.constant(x))
    assert capfd.readouterr().err.split() == ["begin", "positive", "begin", "negative", "begin", "positive"]


def test_words_are_printed_in_every_step(capfd):
    @tf.function
    def f(n):
        for _ in tf.range(n):
            tf.print("step")
        return n

    f(tf.constant(3))
    assert capfd.readouterr().err.split() == ["step"] * 3


@pytest.mark.parametrize("inputs", [[], [2.0]])
def test_functions_of_nothing_are_called_in_every_run(inputs):
    calls = []

    def one(*values):
        calls.append([float(value) for value in values])
        return 1.0

    @tf.function
    def f(x):
        return x + tf.py_function(one, inputs, tf.TensorSpec([], tf.float32))

    assert [float(f(tf.constant(x))) for x in (1.0, 1.0, 5.0)] == [2.0, 2.0, 6.0]
    assert calls == [inputs] * 3
