"""AutoGraph: which functions are converted, when, and their errors."""

from __future__ import annotations

import functools
import inspect
import linecache
import sys
import threading
import traceback
import warnings

import numpy as np
import pytest

import taut as tf
from taut.autograph import calls


def magnitude(x):
    if x > 0:
        return x
    return -x


@pytest.fixture(autouse=True)
def no_warnings():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


@pytest.fixture
def forgotten(monkeypatch):
    """As if nothing had been warned of before."""
    monkeypatch.setattr(calls, "_warned", set())


def test_what_is_called_is_converted():
    def twice(x):
        return magnitude(magnitude(x) - 5)

    f = tf.function(twice)
    for x in (-7.0, -3.0, 3.0, 7.0):
        assert float(f(tf.constant(x))) == abs(abs(x) - 5)
    assert f.trace_count == 1


def test_closures_share_their_cells():
    count = 0

    @tf.function
    def f(x):
        nonlocal count
        count += 1
        if x > scale:
            return x * scale
        return x

    scale = 3.0
    assert float(f(tf.constant(4.0))) == 12.0
    assert count == 1
    scale = 5.0
    f.forget()
    assert float(f(tf.constant(4.0))) == 4.0
    assert count == 2


def test_variables_of_outer_functions():
    def f(x):
        count = x * 0

        def bump(by):
            nonlocal count
            if by > 0:
                count = count + by

        bump(x)
        bump(-x)
        bump(x * 2)
        return count

    for x in (2.0, -3.0):
        assert float(tf.function(f)(tf.constant(x))) == (3 * x if x > 0 else -x)


def test_variables_of_modules():
    global shared

    @tf.function
    def f(x):
        global shared
        if x > 0:
            shared = x * 2
        else:
            shared = x
        write(x)
        return shared + 1

    def write(x):
        global shared
        if x > 10:
            shared = shared * 10

    shared = 0.0
    assert [float(f(tf.constant(x))) for x in (-1.0, 2.0, 20.0)] == [0.0, 5.0, 401.0]


def test_functions_inside_functions():
    @tf.function
    def f(x):
        def clipped(y, limit=2.0):
            if y > limit:
                return y * 0 + limit
            return y

        pick = lambda y: y if y > 0 else y * 0  # noqa: E731
        return clipped(pick(x)), clipped(x, limit=1.0)

    for x in (-1.0, 1.5, 9.0):
        found = f(tf.constant(x))
        assert [float(part) for part in found] == [min(max(x, 0.0), 2.0), min(x, 1.0)]


def test_lambdas():
    f = tf.function(lambda x: x if x > 0 else -x)
    assert [float(f(tf.constant(x))) for x in (-2.0, 2.0)] == [2.0, 2.0]


def test_defaults_and_keywords():
    @tf.function
    def f(x, low=-1.0, *rest, high=1.0, **named):
        if x < low:
            return x * 0 + low
        for extra in rest:
            x = x + extra
        return x if x < high else x * 0 + high + len(named)

    assert float(f(tf.constant(-5.0))) == -1.0
    assert float(f(tf.constant(5.0))) == 1.0
    assert float(f(tf.constant(5.0), high=9.0)) == 5.0
    assert float(f(tf.constant(0.0), -1.0, 2.0, 3.0, high=4.0, a=1, b=2)) == 6.0


def test_recursion_on_python_values():
    def power(x, n):
        if n == 0:
            return x * 0 + 1
        half = power(x, n // 2)
        return half * half * x if n % 2 else half * half

    f = tf.function(power)
    for n in range(8):
        assert float(f(tf.constant(3.0), n)) == 3.0**n


class Base:
    def __init__(self, scale):
        self.__scale = scale
        self.calls = 0

    def scaled(self, x):
        if x > 0:
            return x * self.__scale
        return x


class Derived(Base):
    @tf.function
    def step(self, x):
        self.calls += 1
        if x > 10:
            return super().scaled(x)
        return self.scaled(x) + 1

    def scaled(self, x):
        if x > 5:
            return x
        return super().scaled(x)

    @staticmethod
    def flipped(x):
        return -x if x > 0 else x

    def __call__(self, x):
        return self.flipped(x) if x < 100 else x


def test_methods():
    one, other = Derived(2.0), Derived(3.0)
    for x, factor in ((20.0, None), (7.0, 1.0), (2.0, None), (-1.0, 1.0)):
        for thing, scale in ((one, 2.0), (other, 3.0)):
            expected = x * scale if x > 10 else (x if x > 5 or x < 0 else x * scale) + 1
            assert float(thing.step(tf.constant(x))) == expected
    assert (one.calls, other.calls) == (1, 1)


def test_bound_methods_partials_and_callable_objects():
    thing = Derived(2.0)
    assert float(tf.function(thing.scaled)(tf.constant(3.0))) == 6.0
    assert float(tf.function(thing)(tf.constant(3.0))) == -3.0

    @tf.function
    def f(x):
        scaled = functools.partial(Base.scaled, thing)
        return thing(x) + scaled(x)

    assert float(f(tf.constant(3.0))) == 3.0


def test_decorated_functions():
    def doubling(function):
        @functools.wraps(function)
        def inner(x):
            made = function(x)
            if made > 4:
                return made
            return made * 2

        return inner

    @doubling
    def plus_one(x):
        if x > 0:
            return x + 1
        return x

    f = tf.function(plus_one)
    for x in (-1.0, 1.0, 8.0):
        one = x + 1 if x > 0 else x
        assert float(f(tf.constant(x))) == (one if one > 4 else one * 2)


def test_functions_that_are_handed_to_taut():
    @tf.function
    def f(xs):
        mapped = tf.map_fn(magnitude, xs)
        return mapped, tf.while_loop(lambda i: i < 5, bump, [tf.constant(0)])

    def bump(i):
        if i > 2:
            return [i + 10]
        return [i + 1]

    mapped, [last] = f(tf.constant([-1.0, 2.0, -3.0]))
    np.testing.assert_allclose(np.asarray(mapped), [1.0, 2.0, 3.0])
    assert int(last) == 13


def test_python_maps_convert_their_functions():
    @tf.function
    def f(x, y):
        return list(map(magnitude, [x, y]))

    assert [float(part) for part in f(tf.constant(-1.0), tf.constant(2.0))] == [1.0, 2.0]


def test_traced_functions_inside_traced_functions():
    inner = tf.function(magnitude)

    @tf.function
    def f(x):
        if inner(x) > 2:
            return inner(x)
        return x * 0

    assert [float(f(tf.constant(x))) for x in (-3.0, 1.0)] == [3.0, 0.0]


def test_code_of_others_runs_as_it_is():
    @tf.function
    def f(x, n):
        table = np.asarray(sorted([3, 1, 2], key=lambda value: -value))
        return x * int(table[0]) + n.bit_length() + len(inspect.signature(magnitude).parameters)

    assert float(f(tf.constant(2.0), 8)) == 2.0 * 3 + 4 + 1


def test_do_not_convert():
    @tf.autograph.experimental.do_not_convert
    def raw(x):
        return x if x > 0 else -x

    @tf.autograph.experimental.do_not_convert()
    def known(n):
        return "many" if n > 3 else "few"

    @tf.function
    def f(x, n):
        if x > 0 and known(n) == "many":
            return x
        return raw(x)

    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        f(tf.constant(1.0), 1)
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(raw)(tf.constant(1.0))
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        tf.function(magnitude, autograph=False)(tf.constant(1.0))


def test_conversion_waits_for_the_first_call(monkeypatch):
    def refused(*_):
        raise AssertionError("converted too early")

    from taut.autograph import source

    monkeypatch.setattr(source, "_converted", refused)

    @tf.function
    def f(x):
        return x if x > 0 else -x

    assert f.trace_count == 0


def test_a_function_is_converted_once(monkeypatch):
    from taut.autograph import source

    made = []
    original = source._converted
    monkeypatch.setattr(source, "_converted", lambda *args: made.append(args) or original(*args))

    def factory(scale):
        def f(x):
            return x * scale if x > 0 else x

        return f

    found = [float(tf.function(factory(scale))(tf.constant(2.0))) for scale in (1.0, 2.0, 3.0)]
    assert found == [2.0, 4.0, 6.0]
    assert len(made) == 1


def test_to_graph():
    converted = tf.autograph.to_graph(magnitude)
    assert float(converted(tf.constant(-3.0))) == 3.0
    assert converted(-4) == 4
    traced = tf.function(converted, autograph=False)
    assert float(traced(tf.constant(-5.0))) == 5.0

    def outer(x):
        y = magnitude(x)
        return y if y > 1 else y * 0

    assert float(tf.function(tf.autograph.to_graph(outer), autograph=False)(tf.constant(-2.0))) == 2.0
    alone = tf.function(tf.autograph.to_graph(outer, recursive=False), autograph=False)
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError):
        alone(tf.constant(-2.0))
    with pytest.raises(ValueError, match="expected a Python function"):
        tf.autograph.to_graph(len)


# Functions that cannot be converted.


def from_text(text, name="f"):
    made = {"tf": tf}
    exec(compile(text, "<somewhere>", "exec"), made)  # noqa: S102
    return made[name]


def test_no_source(forgotten):
    f = tf.function(from_text("def f(x, n):\n    if n > 1:\n        return x * n\n    return x"))
    with pytest.warns(UserWarning, match="f is not converted by AutoGraph.*source is not available"):
        assert float(f(tf.constant(2.0), 3)) == 6.0
    assert float(f(tf.constant(2.0), 1)) == 2.0


def test_no_source_of_something_called(forgotten):
    plain = from_text("def f(x):\n    return x * 2")
    choosy = from_text("def g(x, n):\n    return x if n else -x", "g")

    @tf.function
    def f(x):
        if x > 0:
            return plain(x)
        return choosy(x, 0)

    with pytest.warns(UserWarning, match="g is not converted by AutoGraph") as caught:
        assert float(f(tf.constant(-2.0))) == 2.0
    assert len(caught) == 1


def test_statements_that_cannot_be_converted(forgotten):
    @tf.function
    def f(x, n):
        match n:
            case [1]:
                return x
            case _:
                return -x

    with pytest.warns(UserWarning, match="`match`") as caught:
        assert float(f(tf.constant(2.0), [1])) == 2.0
        assert float(f(tf.constant(2.0), [2])) == -2.0
    assert len(caught) == 1
    assert caught[0].filename == __file__


class Holder:
    @property
    def function(self):
        return lambda x: x


def test_without_the_package_that_converts(forgotten, monkeypatch):
    monkeypatch.setitem(sys.modules, "malt.core", None)
    monkeypatch.delitem(sys.modules, "taut.autograph.rewriting", raising=False)
    monkeypatch.delattr("taut.autograph.rewriting", raising=False)

    @tf.function
    def straight(x):
        return x * 2

    @tf.function
    def choosy(x, n):
        if n > 1:
            return x * n
        return x

    @tf.function
    def undecided(x, holder):
        if holder.function(x) is x:
            return x * 3.0
        return x

    assert float(straight(tf.constant(2.0))) == 4.0
    assert float(choosy(tf.constant(2.0), 3)) == 6.0
    with pytest.warns(UserWarning, match="diastatic-malt is not installed"):
        assert float(undecided(tf.constant(2.0), Holder())) == 6.0
    with pytest.raises(ValueError, match="diastatic-malt"):
        tf.autograph.to_graph(lambda x: x if x > 0 else -x)


def test_source_that_only_the_line_cache_has():
    text = "def f(x):\n    if x > 0:\n        return x\n    return -x\n"
    name = "<cell of a notebook>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    made = {}
    exec(compile(text, name, "exec"), made)  # noqa: S102
    assert float(tf.function(made["f"])(tf.constant(-2.0))) == 2.0


def test_threads():
    def f(x, n):
        total = 0
        for i in range(n):
            if x > i:
                total += i
        return total

    found = {}

    def work(k):
        found[k] = [int(tf.function(f)(tf.constant(float(x)), tf.constant(6))) for x in range(k, k + 3)]

    threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {k: [sum(i for i in range(6) if x > i) for x in range(k, k + 3)] for k in range(8)}


def test_equal_code_in_different_files(tmp_path):
    text = "def f(x):\n    if x > 0:\n        return x.nothing\n    return x\n"
    for name in ("first.py", "second.py"):
        path = tmp_path / name
        path.write_text(text)
        made = {}
        exec(compile(text, str(path), "exec"), made)  # noqa: S102
        with pytest.raises(AttributeError) as caught:
            tf.function(made["f"])(tf.constant(1.0))
        assert any(frame.filename == str(path) for frame in traceback.extract_tb(caught.value.__traceback__))


# Functions in which there is nothing to decide.


def test_straight_functions_need_no_other_package(forgotten, monkeypatch):
    monkeypatch.setitem(sys.modules, "malt.core", None)
    monkeypatch.delitem(sys.modules, "taut.autograph.rewriting", raising=False)
    monkeypatch.delattr("taut.autograph.rewriting", raising=False)

    @tf.function
    def f(x, *rest, scale=2.0, **more):
        """Says what it does."""
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.reduce_sum(x * x * scale, **more)
        parts = [tf.multiply(part, *[2.0], **{}) for part in rest]
        pick = lambda a, b=1.0: a + b  # noqa: E731
        return tape.gradient(y, x), pick(parts[0], b=3.0), sorted([3, 1], key=lambda k: -k)[0]

    gradient, picked, largest = f(tf.constant([1.0, 2.0]), tf.constant(5.0), scale=3.0, axis=0)
    np.testing.assert_allclose(np.asarray(gradient), [6.0, 12.0])
    assert (float(picked), int(largest)) == (13.0, 3)


def test_straight_functions_convert_what_they_call():
    class Thing(Base):
        def __init__(self):
            super().__init__(4.0)
            self.__offset = 1.0

        @tf.function
        def shifted(self, x):
            return super().scaled(x) + self.__offset

    assert float(Thing().shifted(tf.constant(2.0))) == 9.0
    assert float(Thing().shifted(tf.constant(-2.0))) == -1.0


def test_tracebacks_of_straight_functions_are_those_of_the_original():
    def f(x):
        y = x + 1
        return tf.reshape(y, [7])

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.function(f)(tf.constant([1.0]))
    place = f"{__file__}:{inspect.getsourcelines(f)[1] + 2}"
    assert place.rsplit("/", 1)[-1] in str(caught.value)
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert "return tf.reshape(y, [7])" in [frame.line for frame in frames]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="columns of instructions are not known before")
def test_lambdas_on_one_line():
    f, g = tf.function(lambda x: x if x > 0 else -x), tf.function(lambda x: x * 2 if x > 0 else x)
    assert [float(f(tf.constant(x))) for x in (-3.0, 3.0)] == [3.0, 3.0]
    assert [float(g(tf.constant(x))) for x in (-3.0, 3.0)] == [-3.0, 6.0]
    nested = tf.function(lambda x: (lambda y: y + 1)(x) if x > 0 else x)
    assert [float(nested(tf.constant(x))) for x in (1.0, -1.0)] == [2.0, -1.0]


def test_cells_that_are_filled_later():
    def f(x):
        if x > 0:
            return x
        return later(x)

    traced = tf.function(f)
    with pytest.raises(NameError, match="later"):
        traced(tf.constant(1.0))
    later = magnitude
    assert float(traced(tf.constant(-1.0))) == 1.0


def halvings(n):
    count = tf.constant(0)
    while n > 1:
        n = n // 2
        count += 1
    return count


def test_functions_of_loops_and_maps_branch_outside_of_traces_as_well():
    numbers = tf.constant([1, 2, 9, 64])
    assert tf.map_fn(halvings, numbers).numpy().tolist() == [0, 1, 3, 6]

    def larger(state, x):
        if x > state:
            return x
        return state

    assert tf.scan(larger, tf.constant([3, 1, 4, 1, 5])).numpy().tolist() == [3, 3, 4, 4, 5]
    assert int(tf.foldl(larger, numbers)) == 64
    assert int(tf.while_loop(lambda n: n > 1, lambda n: n // 2 if n % 2 == 0 else 3 * n + 1, [tf.constant(27)])[0]) == 1


def test_functions_that_run_eagerly_are_traced_inside_of_maps():
    tf.config.run_functions_eagerly(True)
    try:
        assert tf.map_fn(tf.function(halvings), tf.constant([4, 8])).numpy().tolist() == [2, 3]
    finally:
        tf.config.run_functions_eagerly(False)
