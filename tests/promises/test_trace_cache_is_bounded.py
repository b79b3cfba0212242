"""The trace cache is bounded in bytes, and freed with its function."""

from __future__ import annotations

import gc
import warnings
import weakref

import pytest
import taut as tf

FLOAT = 4


def test_ten_thousand_shapes_stay_under_the_cap():
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


def test_a_million_calls_hold_as_much_as_one():
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


def test_dropping_a_function_frees_its_traces(rng):
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
    """An object that holds a traced closure over itself."""

    def __init__(self):
        self.w = tf.Variable(tf.ones([1000]) * 2.0)
        self.step = tf.function(lambda x: x * self.w)


class Bound(Closure):
    """An object that holds a traced bound method."""

    def __init__(self):
        super().__init__()
        self.step = tf.function(self.scaled)

    def scaled(self, x):
        return x * self.w


class Decorated(Closure):
    """A class with a traced method."""

    def __init__(self):
        self.w = tf.Variable(tf.ones([1000]) * 2.0)

    @tf.function
    def step(self, x):
        return x * self.w


@pytest.mark.parametrize("kind", [Closure, Bound, Decorated])
def test_an_object_and_its_function_are_freed_together(kind):
    before = tf.memory.live_bytes()
    model = kind()
    assert model.step(tf.ones([1000])).numpy()[0] == 2.0
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None
    assert tf.memory.live_bytes() == before


def test_open_dimensions_cause_no_retrace_warnings():
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


def test_repeated_retracing_is_reported_once_with_its_cause(capfd):
    f = tf.function(lambda x, n: x * n, name="scaled")
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for n in range(12):
            f(tf.ones([2]), float(n))
    said = [str(warning.message) for warning in told] + capfd.readouterr().err.splitlines()
    said = [text for text in said if "scaled" in text and "traced" in text]
    assert len(said) == 1, said
    assert "args[1]" in said[0]
