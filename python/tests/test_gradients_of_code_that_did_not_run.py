"""A branch that was not taken, or a loop without steps, gives zeros as gradients, also in a function that runs op by op.

TensorFlow 2.21 gives zeros for every body below, with the tape inside of the function or around it, and None without a function.
"""

from __future__ import annotations

import numpy as np
import pytest

import taut as tf

pytestmark = pytest.mark.filterwarnings("ignore:.*runs op by op")

used, unused = tf.Variable([1.0, 2.0]), tf.Variable([3.0, 4.0])
X = tf.constant([1.0, 0.0, 2.0])


class Weights(tf.Module):
    def __init__(self):
        self.parts = {"used": used, "unused": [unused]}

    def product(self, x):
        return tf.reduce_sum(self.parts["unused"][0]) * x

    def __call__(self, x):
        positive = of_positive(x)
        return self.product(positive) if positive < 0 else tf.reduce_sum(self.parts["used"])


def of_positive(x):
    """Its shape depends on values, so that a function that calls it runs op by op."""
    return tf.reduce_sum(tf.boolean_mask(x, x > 0))


def helper(x):
    return tf.reduce_sum(unused) * x


def with_cond(x):
    s = of_positive(x)
    return tf.cond(s > 0, lambda: tf.reduce_sum(used), lambda: tf.reduce_sum(unused) * s)


def with_cond_on_intermediate_results(x):
    s, a, b = of_positive(x), tf.reduce_sum(used), tf.reduce_sum(unused) * 3
    return tf.cond(s > 0, lambda: a, lambda: b)


def with_dynamic_branch(x):
    dynamic = lambda: tf.reduce_sum(tf.boolean_mask(x, x > 0)) * tf.reduce_sum(unused)  # noqa: E731
    return tf.cond(of_positive(x) < 0, dynamic, lambda: tf.reduce_sum(used))


def with_if(x):
    if of_positive(x) > 0:
        y = tf.reduce_sum(used)
    else:
        y = tf.reduce_sum(unused)
    return y


def with_if_alone(x):
    y = tf.reduce_sum(used)
    if of_positive(x) < 0:
        y = tf.reduce_sum(unused) * y
    return y


def with_nested_if(x):
    s, y = of_positive(x), tf.reduce_sum(used)
    if s < 0:
        y = y * 2
        if s < -1:
            y = y * tf.reduce_sum(unused)
    return y


def with_if_in_a_python_loop(x):
    s, y = of_positive(x), tf.reduce_sum(used)
    for _ in range(2):
        if s < 0:
            y = y * tf.reduce_sum(unused)
    return y


def with_early_return(x):
    if of_positive(x) < 0:
        return tf.reduce_sum(unused)
    return tf.reduce_sum(used)


def with_if_expression(x):
    return tf.reduce_sum(unused) if of_positive(x) < 0 else tf.reduce_sum(used)


def with_a_call(x):
    s = of_positive(x)
    return helper(s) if s < 0 else tf.reduce_sum(used)


def with_switch_case(x):
    index = tf.cast(of_positive(x) * 0, tf.int32)
    return tf.switch_case(index, [lambda: tf.reduce_sum(used), lambda: tf.reduce_sum(unused)])


def with_case(x):
    return tf.case([(of_positive(x) > 0, lambda: tf.reduce_sum(used))], default=lambda: tf.reduce_sum(unused))


def with_while(x):
    i, steps, y = tf.constant(0), tf.cast(of_positive(x), tf.int32) - 3, tf.reduce_sum(used)
    while i < steps:
        y, i = y * tf.reduce_sum(unused), i + 1
    return y


def with_while_loop(x):
    of_positive(x)
    return tf.while_loop(
        lambda i, y: i < 0, lambda i, y: (i + 1, y * tf.reduce_sum(unused)), [tf.constant(0), tf.reduce_sum(used)]
    )[1]


def with_for(x):
    y = tf.reduce_sum(used)
    for _ in tf.range(tf.cast(of_positive(x), tf.int32) - 3):
        y = y * tf.reduce_sum(unused)
    return y


def with_for_over_rows(x):
    y = tf.reduce_sum(used)
    for row in tf.boolean_mask(x, x > 5):
        y = y * tf.reduce_sum(unused) * row
    return y


def with_for_and_break(x):
    y = tf.reduce_sum(used)
    for row in tf.boolean_mask(x, x > 5):
        y = y * tf.reduce_sum(unused) * row
        if y > 100:
            break
    return y


def with_map_fn(x):
    rows = tf.boolean_mask(x, x > 5)
    return tf.reduce_sum(tf.map_fn(lambda row: row * tf.reduce_sum(unused), rows)) + tf.reduce_sum(used)


BODIES = [body for name, body in list(globals().items()) if name.startswith("with_")]


def gradients(body, sources=(used, unused)):
    with tf.GradientTape() as tape:
        y = body(X)
    return [None if g is None else np.asarray(g).tolist() for g in tape.gradient(y, list(sources))]


@pytest.mark.parametrize("body", [*BODIES, Weights()], ids=lambda body: getattr(body, "__name__", "with_a_module"))
def test_code_that_did_not_run_has_zeros(body):
    expected = [[1.0, 1.0], [0.0, 0.0]]
    assert gradients(tf.function(body)) == expected

    @tf.function
    def inside(x):
        with tf.GradientTape() as tape:
            y = body(x)
        found = tape.gradient(y, [used, unused])
        # None has no place in the result of a function of tensors.
        return [-tf.ones([2]) if g is None else g for g in found]

    assert [g.numpy().tolist() for g in inside(X)] == expected
    # Again: what a first call finds out does not change the next one.
    assert [g.numpy().tolist() for g in inside(X)] == expected


@pytest.mark.parametrize("body", [with_cond, with_if, with_early_return, with_switch_case, with_while, with_for])
def test_without_a_function_python_decides(body):
    assert gradients(body) == [[1.0, 1.0], None]


def test_a_branch_on_a_number_of_python_is_no_branch():
    def body(x, flag=False):
        return of_positive(x) * 0 + (tf.reduce_sum(unused) if flag else tf.reduce_sum(used))

    assert gradients(tf.function(body)) == [[1.0, 1.0], None]


def test_code_that_did_not_run_has_no_effects():
    log, count = [], tf.Variable(0)

    @tf.function
    def f(x):
        y = tf.reduce_sum(used)
        if of_positive(x) < 0:
            log.append("run")
            count.assign_add(1)
            y = y * tf.reduce_sum(unused)
        return y

    f(X)
    traced = len(log)
    for _ in range(3):
        assert gradients(f) == [[1.0, 1.0], [0.0, 0.0]]
    assert (len(log), int(count)) == (traced, 0)


def test_second_derivatives():
    x = tf.Variable(3.0)

    def body(values):
        return tf.cond(of_positive(values) > 0, lambda: x * x, lambda: tf.reduce_sum(unused) * x)

    with tf.GradientTape() as outer:
        with tf.GradientTape() as inner:
            y = tf.function(body)(X)
        first = inner.gradient(y, [x, unused])
    assert [g.numpy().tolist() for g in first] == [6.0, [0.0, 0.0]]
    assert float(outer.gradient(first[0], x)) == 2.0


def test_the_gradient_of_code_that_did_not_run_keeps_no_memory():
    f = tf.function(with_cond)
    gradients(f)
    before = tf.memory.live_bytes()
    gradients(f)
    assert tf.memory.live_bytes() == before
