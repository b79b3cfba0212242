"""A function is traced once per signature, and a retrace is explained."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


def test_a_function_is_traced_once_per_signature():
    traced = []

    @tf.function(on_retrace="allow")
    def f(x, scale):
        traced.append(1)
        return x * scale

    ones = tf.ones([2])
    for x, scale in [
        (ones, 2.0),
        (tf.zeros([2]), 2.0),  # as before
        (tf.ones([3]), 2.0),  # another shape
        (tf.ones([2], tf.float64), 2.0),  # another type
        (ones, 3.0),  # another value
        (ones, tf.constant(3.0)),  # a tensor
        (ones, tf.constant(4.0)),  # as before
        (ones, 2.0),  # as before
    ]:
        assert f(x, scale).numpy().tolist() == (x.numpy() * np.asarray(scale)).tolist()
    assert len(traced) == f.trace_count == len(f.traces) == 5


def test_variables_are_compared_by_spec_and_by_which_are_the_same():
    a, b = tf.Variable([1.0]), tf.Variable([1.0])

    @tf.function(on_retrace="allow")
    def f(v, w):
        return v.assign_add(w) * 2.0

    f(a, b)
    a.assign([5.0])
    assert f(a, b).numpy().tolist() == [12.0]
    assert f.trace_count == 1, "another value of the same variable"
    assert f(b, a).numpy().tolist() == [14.0]
    assert f.trace_count == 1, "other variables of the same type and shape"
    assert f(a, a).numpy().tolist() == [24.0]
    assert f.trace_count == 2, "the same variable twice"
    assert f(b, b).numpy().tolist() == [28.0]
    assert f.trace_count == 2, "another variable twice"


def test_a_function_that_depends_on_which_variable_it_is_given_is_traced_for_each():
    a, b = tf.Variable([1.0], name="a"), tf.Variable([1.0], name="b")

    @tf.function(on_retrace="allow")
    def f(v):
        return v * (2.0 if v.name == "a:0" else 3.0)

    assert [f(v).numpy().tolist() for v in (a, b, a)] == [[2.0], [3.0], [2.0]]
    assert f.trace_count == 2
    assert (
        f.traces[1].reason
        == f"args[0] was variable `a` float32[1] (id {a.id}) and is variable `b` float32[1] (id {b.id})"
    )


def test_a_report_lists_cost_and_reason_of_each_trace():
    @tf.function(on_retrace="allow")
    def f(x, y, flag=False):
        return x + y if flag else x - y

    f(tf.ones([2, 3]), tf.ones([3]))
    f(tf.ones([4, 3]), tf.ones([3]))
    f(tf.ones([4, 3]), tf.ones([3], tf.float64))
    f(tf.ones([4, 3]), tf.ones([3], tf.float64), True)
    assert all(trace.ms > 0 and trace.bytes > 0 for trace in f.traces)
    assert [trace.peak_bytes for trace in f.traces] == [24, 48, 96, 96]
    first, shape, dtype, value = (trace.reason for trace in f.traces)
    assert first == "first call"
    assert "float32[2, 3]" in shape and "float32[4, 3]" in shape and "args[0]" in shape
    assert "float32[3]" in dtype and "float64[3]" in dtype and "args[1]" in dtype
    assert "False" in value and "True" in value and "args[2]" in value


def test_a_denied_retrace_names_the_changed_argument(line_of):
    @tf.function(on_retrace="deny", name="step")
    def f(x, y):
        return x + y

    f(tf.ones([2]), tf.ones([2]))
    with pytest.raises(ValueError) as caught:
        f(tf.ones([2]), tf.ones([1]))  # here
    text = str(caught.value)
    for words in ["step", "args[1]", "float32[2]", "float32[1]"]:
        assert words in text
    line = line_of(test_a_denied_retrace_names_the_changed_argument, "# here")
    assert f"test_functions_trace_once_per_signature.py:{line}" in text
    assert f(tf.ones([2]), tf.ones([2])).numpy().tolist() == [2, 2]
