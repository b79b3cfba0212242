"""Side effects inside a trace have a defined meaning or are refused with the line."""

from __future__ import annotations

import pytest
import taut as tf


def test_variables_of_the_first_trace_belong_to_the_function():
    made = []

    @tf.function(on_retrace="allow")
    def f(x):
        if not made:
            made.append(tf.Variable(tf.fill([3], 2.0)))
        made[0].assign_add(tf.ones([3]))
        return made[0] * x

    assert f(tf.ones([3])).numpy().tolist() == [3.0] * 3
    assert f(tf.ones([3])).numpy().tolist() == [4.0] * 3
    assert f.trace_count == 1
    assert len(f.variables) == 1
    assert f.variables[0].numpy().tolist() == [4.0] * 3


def test_variables_of_every_call_and_of_later_traces_are_refused_with_their_lines(line_of):
    @tf.function(on_retrace="allow")
    def every(x):
        return tf.Variable(tf.ones([2])) * x  # in every call

    made = {}

    @tf.function(on_retrace="allow")
    def later(x):
        if x.shape not in made:
            made[x.shape] = tf.Variable(tf.ones([2]))  # in another trace
        return made[x.shape] * x

    later(tf.ones([2]))
    for function, mark in ((every, "# in every call"), (later, "# in another trace")):
        with pytest.raises(tf.errors.OpError, match="variable") as caught:
            function(tf.ones([1]))
        line = line_of(test_variables_of_every_call_and_of_later_traces_are_refused_with_their_lines, mark)
        assert f"test_side_effects_in_traces.py:{line}" in str(caught.value)


def test_python_runs_once_per_trace(capsys):
    seen = []

    @tf.function
    def f(x):
        seen.append(x)
        print("tracing")
        return x + 1.0

    for _ in range(3):
        f(tf.ones([2]))
    assert capsys.readouterr().out == "tracing\n"
    assert len(seen) == 1
    with pytest.raises(tf.errors.OpError, match="trace"):
        seen[0] + 1.0
    with pytest.raises((tf.errors.OpError, TypeError), match="trac"):
        seen[0].numpy()
