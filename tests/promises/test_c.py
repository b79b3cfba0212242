"""Traced functions (C1 to C5, C7; the rest is in test_c8.py). Budgets of steps (C6) are not in Python."""

from __future__ import annotations

import gc
import re
import subprocess
import sys
import textwrap
import warnings
import weakref

import numpy as np
import pytest
import taut as tf

FLOAT = 4


def test_c1_a_function_is_traced_once_per_signature():
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


def test_c1_variables_are_known_by_identity():
    a, b = tf.Variable([1.0]), tf.Variable([1.0])

    @tf.function(on_retrace="allow")
    def f(v):
        return v * 2.0

    f(a)
    a.assign([5.0])
    assert f(a).numpy().tolist() == [10.0]
    assert f.trace_count == 1, "another value of the same variable"
    assert f(b).numpy().tolist() == [2.0]
    assert f.trace_count == 2, "another variable"


def test_c1_a_report_says_what_traces_cost_and_why_they_were_made():
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


def test_c1_a_retrace_can_be_denied_and_says_which_argument_changed(line_of):
    @tf.function(on_retrace="deny", name="step")
    def f(x, y):
        return x + y

    f(tf.ones([2]), tf.ones([2]))
    with pytest.raises(ValueError) as caught:
        f(tf.ones([2]), tf.ones([1]))  # here
    text = str(caught.value)
    for words in ["step", "args[1]", "float32[2]", "float32[1]"]:
        assert words in text
    line = line_of(test_c1_a_retrace_can_be_denied_and_says_which_argument_changed, "# here")
    assert f"test_c.py:{line}" in text
    assert f(tf.ones([2]), tf.ones([2])).numpy().tolist() == [2, 2]


def test_c2_ten_thousand_shapes_stay_under_the_cap():
    cap = 1 << 20
    f = tf.function(lambda x: tf.matmul(x, tf.exp(x) + 1.0), cache_bytes=cap, reduce_retracing=True)
    gc.collect()
    before = tf.memory.live_bytes()
    for i in range(10_000):
        f(tf.ones([i + 1, 1, 1]))
        assert f.cached_bytes <= cap
    assert f.trace_count == 10_000
    assert tf.memory.live_bytes() - before <= cap
    del f
    gc.collect()
    assert tf.memory.live_bytes() == before


def test_c2_a_million_calls_hold_what_one_holds():
    v = tf.Variable([0.0, 0.0])

    @tf.function
    def f(x):
        v.assign_add(x)
        return v * 2.0

    x = tf.ones([2])
    f(x)
    before = tf.memory.live_bytes()
    for _ in range(999_999):
        f(x)
    assert tf.memory.live_bytes() == before
    assert f.trace_count == 1
    assert v.numpy().tolist() == [1e6, 1e6]


def test_c2_dropping_a_function_frees_its_traces(rng):
    def made():
        constant = tf.constant(rng.normal(size=(100, 100)).astype("f4"))
        f = tf.function(lambda x: tf.matmul(tf.matmul(x, constant), x))
        f(tf.ones([100, 100]))
        return f

    before = tf.memory.live_bytes()
    f = made()
    assert f.cached_bytes > 0
    assert tf.memory.live_bytes() >= before + 100 * 100 * FLOAT
    del f
    gc.collect()
    assert tf.memory.live_bytes() == before


class Closure:
    """Holds a function that holds it."""

    def __init__(self):
        self.w = tf.Variable(tf.ones([1000]) * 2.0)
        self.step = tf.function(lambda x: x * self.w)


class Bound(Closure):
    """Holds a function made of its own method."""

    def __init__(self):
        super().__init__()
        self.step = tf.function(self.scaled)

    def scaled(self, x):
        return x * self.w


class Decorated(Closure):
    """Has a method that is a function."""

    def __init__(self):
        self.w = tf.Variable(tf.ones([1000]) * 2.0)

    @tf.function
    def step(self, x):
        return x * self.w


@pytest.mark.parametrize("kind", [Closure, Bound, Decorated])
def test_c2_an_object_and_its_function_go_together(kind):
    before = tf.memory.live_bytes()
    model = kind()
    assert model.step(tf.ones([1000])).numpy()[0] == 2.0
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    assert tf.memory.live_bytes() == before


def test_c2_sizes_left_open_are_no_retraces():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        signed = tf.function(
            lambda x: tf.reduce_sum(x, 0),
            input_signature=[tf.TensorSpec([None, 3], tf.float32)],
            on_retrace="deny",
        )
        loose = tf.function(lambda x: tf.reduce_sum(x, 0), reduce_retracing=True)
        for rows in range(1, 30):
            assert signed(tf.ones([rows, 3])).numpy().tolist() == [rows] * 3
            assert loose(tf.ones([rows, 3])).numpy().tolist() == [rows] * 3
    assert not [warning for warning in told if "traced" in str(warning.message)]
    with pytest.raises(ValueError, match=r"float32\[4, 2\]"):
        signed(tf.ones([4, 2]))
    with pytest.raises(TypeError, match="float64"):
        signed(tf.ones([4, 3], tf.float64))


def test_c2_a_storm_of_retraces_is_told_once_with_its_culprit(capfd):
    f = tf.function(lambda x, n: x * n, name="scaled")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for n in range(12):
            f(tf.ones([2]), float(n))
    said = [str(warning.message) for warning in told] + capfd.readouterr().err.splitlines()
    said = [text for text in said if "scaled" in text and "traced" in text]
    assert len(said) == 1, said
    assert "args[1]" in said[0]


def test_c3_the_way_of_writing_costs_nothing(rng):
    w = tf.constant(rng.normal(size=(16, 16)).astype("f4"))

    @tf.function
    def chained(x):
        return tf.reduce_sum(tf.exp(tf.tanh(tf.matmul(tf.nn.relu(tf.matmul(x, w)), w))), 0)

    @tf.function
    def named(x):
        product = tf.matmul(x, w)
        hidden = tf.nn.relu(product)
        second = tf.matmul(hidden, w)
        bounded = tf.tanh(second)
        grown = tf.exp(bounded)
        unused = tf.square(grown)  # noqa: F841
        return tf.reduce_sum(grown, 0)

    @tf.function
    def deleted(x):
        product = tf.matmul(x, w)
        hidden = tf.nn.relu(product)
        del product
        second = tf.matmul(hidden, w)
        del hidden
        bounded = tf.tanh(second)
        del second
        grown = tf.exp(bounded)
        del bounded
        return tf.reduce_sum(grown, 0)

    def shape(f):
        plan = f.plan(tf.TensorSpec([8, 16]))
        table = re.sub(r"at \S+:\d+", "at a line", plan.table())
        rows = [(row[0], row[1]) for row in plan.explain_peak().rows]
        return table, [op for op, _ in plan.steps], rows, plan.peak_bytes, plan.arena_bytes

    assert shape(chained) == shape(named) == shape(deleted)


@pytest.mark.parametrize("jit", [False, True])
def test_c4_a_chain_holds_its_result_alone(jit, peak_of, rng):
    f = tf.function(lambda x: 2.0 * x * x + 1.0, jit_compile=jit)
    x = tf.constant(rng.normal(size=(256, 256)).astype("f4"))
    plan = f.plan(x)
    peak, y = peak_of(lambda: f(x))
    assert peak == plan.peak_bytes == y.nbytes == 256 * 256 * FLOAT
    assert len(plan.steps) == 1
    np.testing.assert_allclose(y.numpy(), 2 * x.numpy() ** 2 + 1, rtol=1e-6)


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("size", [1000, 1_000_000])
def test_c4_a_sum_of_squares_holds_one_number(jit, size, peak_of, rng):
    f = tf.function(lambda x, y: tf.reduce_sum(tf.square(x - y)), jit_compile=jit)
    x, y = (tf.constant(rng.normal(size=size)) for _ in range(2))
    peak, z = peak_of(lambda: f(x, y))
    assert peak == z.nbytes == 8
    np.testing.assert_allclose(z.numpy(), np.sum((x.numpy() - y.numpy()) ** 2), rtol=1e-12)


def test_c4_broadcasts_and_copies_are_not_made(peak_of, rng):
    rows, columns = tf.constant(rng.normal(size=(2000, 1))), tf.constant(rng.normal(size=(1, 2000)))
    f = tf.function(lambda a, b: tf.reduce_max(a * b))
    peak, y = peak_of(lambda: f(rows, columns))
    assert peak < 64 << 10, "not the 32 MB of the product"
    np.testing.assert_allclose(y.numpy(), np.max(rows.numpy() * columns.numpy()))
    g = tf.function(lambda x: tf.reduce_sum(tf.repeat(x, 1000)))
    peak, z = peak_of(lambda: g(tf.ones([2000])))
    assert peak < 64 << 10, "not the 8 MB of the copies"
    assert float(z) == 2e6


def test_c5_a_plan_tells_the_peak_before_running(peak_of, rng):
    v = tf.Variable(rng.normal(size=(64, 32)).astype("f4"))
    table = tf.constant(rng.normal(size=(32, 32)).astype("f4"))

    @tf.function
    def f(x):
        hidden = tf.tanh(tf.matmul(x, v))
        v.assign_sub(tf.matmul(tf.transpose(x), hidden))
        return tf.matmul(tf.exp(hidden), table), tf.cumsum(hidden, 0)

    before = tf.memory.live_bytes()
    plan = f.plan(tf.TensorSpec([128, 64]))
    assert tf.memory.live_bytes() == before, "nothing was allocated"
    assert plan.input_bytes == 128 * 64 * FLOAT
    assert plan.output_bytes == 2 * 128 * 32 * FLOAT
    assert plan.variable_bytes == 64 * 32 * FLOAT
    assert plan.constant_bytes == 32 * 32 * FLOAT
    assert plan.peak_bytes == plan.arena_bytes + plan.output_bytes
    beside = plan.input_bytes + plan.variable_bytes + plan.constant_bytes
    assert plan.total_bytes == plan.peak_bytes + beside
    assert plan.lower_bound <= plan.peak_bytes
    x = tf.constant(rng.normal(size=(128, 64)).astype("f4"))
    peak, _ = peak_of(lambda: f(x))
    assert peak == plan.peak_bytes


def test_c5_a_plan_of_what_no_machine_could_hold():
    f = tf.function(lambda x: tf.exp(tf.matmul(x, x)))
    with tf.memory.measure() as measured:
        assert f.plan(tf.TensorSpec([100_000, 100_000])).peak_bytes == 40_000_000_000
    assert measured.peak_bytes == 0


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resident memory is read from /proc")
def test_c5_the_system_sees_what_the_plan_says():
    program = textwrap.dedent("""
        import taut as tf

        @tf.function
        def f(x):
            both = tf.concat([x, tf.exp(x)], 0)
            return tf.cumsum(tf.concat([tf.cumsum(both, 0), both], 0), 1)

        def status(field):
            lines = open("/proc/self/status").read().splitlines()
            return int(next(line for line in lines if line.startswith(field)).split()[1]) * 1024

        x = tf.ones([4096, 2048])
        planned = f.plan(x).peak_bytes
        f(tf.ones([64, 64]))  # threads and kernels take what they take once
        tf.memory.trim()
        open("/proc/self/clear_refs", "w").write("5")
        before = status("VmRSS")
        y = f(x)
        print(planned, status("VmHWM") - before)
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    planned, grown = map(int, done.stdout.split())
    assert planned >= 256 << 20
    assert abs(grown - planned) <= planned / 100 + (4 << 20)


def spread(x):
    """Three calls that cannot share their memory."""
    return tf.cumsum(tf.cumsum(tf.cumsum(x, 0), 1), 0)


def kept_for_later(x):
    early = tf.exp(x)  # early
    return tf.reduce_sum(spread(early) * early)


def test_c7_the_rows_sum_to_the_peak_and_name_their_lines(line_of):
    plan = tf.function(kept_for_later).plan(tf.TensorSpec([64, 64]))
    peak = plan.explain_peak()
    # The early value, what a step reads and what it makes, and the number that is returned.
    assert sum(row[0] for row in peak.rows) == plan.peak_bytes == 3 * 64 * 64 * FLOAT + FLOAT
    [(held, op, at, why, remedy)] = [row for row in peak.rows if row[1] == "exp"]
    assert held == 64 * 64 * FLOAT
    assert f"test_c.py:{line_of(kept_for_later, '# early')}" in at
    assert why.startswith("kept for")
    assert "recompute it" in remedy
    assert f"{plan.peak_bytes} bytes" in peak


def test_c7_recomputing_what_is_kept_saves_what_it_said():
    def again(x, same):
        return tf.reduce_sum(spread(tf.exp(x)) * tf.exp(same))

    spec = tf.TensorSpec([64, 64])
    plan = tf.function(kept_for_later).plan(spec)
    [advised] = [row for row in plan.explain_peak().rows if row[4] and "recompute" in row[4]]
    assert tf.function(again).plan(spec, spec).peak_bytes == plan.peak_bytes - advised[0]


def test_c7_not_returning_what_is_returned_saves_what_it_said():
    def both(x):
        return tf.cumsum(x, 0), tf.cumsum(x, 1)

    def one(x):
        return tf.cumsum(x, 0)

    spec = tf.TensorSpec([64, 32])
    plan = tf.function(both).plan(spec)
    advised = [row for row in plan.explain_peak().rows if row[4] and "do not return it" in row[4]]
    assert [row[0] for row in advised] == [64 * 32 * FLOAT] * 2
    assert tf.function(one).plan(spec).peak_bytes == plan.peak_bytes - advised[0][0]
