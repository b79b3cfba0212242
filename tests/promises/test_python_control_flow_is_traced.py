"""Python control flow on tensors becomes graph control flow; on Python values it specialises the trace."""

from __future__ import annotations

import numpy as np
import pytest
import taut as tf


def collatz(n):
    """The number of Collatz steps until n is 1."""
    steps = 0
    while n != 1:
        if n % 2 == 0:
            n = n // 2
        else:
            n = 3 * n + 1
        steps = steps + 1
    return steps


def clipped(x):
    if x > 2.0:
        return x - 2.0
    if x < -2.0:
        return x + 2.0
    return x * 0.5


def first_above(rows, limit):
    """The index of the first row whose sum is above a limit; rows with a negative sum are skipped."""
    found = -1
    i = 0
    for row in rows:
        if row < 0.0:
            i += 1
            continue
        if row > limit:
            found = i
            break
        i += 1
    return found


def sum_of_squares(n):
    total = 0
    for i in tf.range(n):
        total += i * i
    return total


def truth(a, b):
    both = a > 0.0 and b > 0.0
    either = a > 0.0 or b > 0.0
    if both:
        return 1
    return 2 if either and not both else 3


CASES = {
    "while, if": (collatz, [(tf.constant(n),) for n in [1, 7, 27]], lambda n: collatz(int(n))),
    "early return": (clipped, [(tf.constant(x),) for x in [3.0, -5.0, 1.0]], lambda x: clipped(float(x))),
    "for, break, continue": (
        first_above,
        [(tf.constant([1.0, -9.0, 5.0, 7.0]), tf.constant(limit)) for limit in [0.5, 4.0, 6.0, 8.0]],
        lambda rows, limit: first_above(rows.numpy().tolist(), float(limit)),
    ),
    "for over a range": (
        sum_of_squares,
        [(tf.constant(n),) for n in [0, 1, 10]],
        lambda n: sum(i * i for i in range(int(n))),
    ),
    "and, or, not": (
        truth,
        [(tf.constant(a), tf.constant(b)) for a in [-1.0, 1.0] for b in [-1.0, 1.0]],
        lambda a, b: truth(float(a), float(b)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_python_control_flow_on_tensors(name):
    function, arguments, want = CASES[name]
    f = tf.function(function)
    for given in arguments:
        found = f(*given)
        assert isinstance(found, tf.Tensor)
        assert found.numpy() == want(*given)
    assert f.trace_count == 1, "values of tensors decide at run time"


def test_python_values_specialise_the_trace():
    traced = []

    @tf.function(on_retrace="allow")
    def f(x, flag, times):
        traced.append((flag, times))
        for _ in range(times):
            x = x * 2.0 if flag else x + 1.0
        return x

    x = tf.constant(3.0)
    assert float(f(x, True, 3)) == 24.0
    assert float(f(x, False, 3)) == 6.0
    assert float(f(x, True, 3)) == 24.0
    assert traced == [(True, 3), (False, 3)]
    assert "cond" not in f.graph(x, True, 3)


def test_a_branch_not_taken_costs_no_memory(peak_of, rng):
    def narrow(x):
        return tf.reduce_sum(tf.matmul(x, tf.tanh(tf.matmul(x, x))))

    def wide(x):
        rows = tf.concat([x, x, x, x], 0)
        return tf.reduce_sum(tf.tanh(tf.matmul(tf.matmul(rows, x), x)))

    @tf.function
    def either(x, flag):
        if flag:
            y = narrow(x)
        else:
            y = wide(x)
        return y

    x = tf.constant(rng.normal(size=(32, 32)))
    alone = [tf.function(f).plan(x).arena_bytes for f in [narrow, wide]]
    assert 0 < alone[0] < alone[1]
    plan = either.plan(x, tf.constant(True))
    # The larger of both branches, rounded up to 64 bytes, not their sum.
    assert -(-plan.arena_bytes // 64) == -(-alone[1] // 64)
    for flag, function in [(True, narrow), (False, wide)]:
        peak, y = peak_of(lambda: either(x, tf.constant(flag)))
        assert peak <= plan.peak_bytes + 1, "the plan, and the flag"
        np.testing.assert_allclose(y.numpy(), function(x).numpy(), rtol=1e-12)
        either.release()


def test_a_branch_not_taken_is_not_run():
    @tf.function
    def guarded(x):
        if x > 0.0:
            y = x
        else:
            y = tf.debugging.check_numerics(tf.math.log(x), "this branch")
        return y

    assert float(guarded(tf.constant(2.0))) == 2.0
    with pytest.raises(ValueError, match="this branch"):
        guarded(tf.constant(-2.0))
