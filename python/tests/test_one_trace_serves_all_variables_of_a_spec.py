"""A function is traced once for all variables of a type and shape, and again where it depends on which variable it is given.

Trace counts and values are those of TensorFlow 2.21, unless a comment says how it differs: TensorFlow uses the trace of the first
variable also where that gives another variable's name or optimizer state.
"""

import collections
import dataclasses
import gc
import weakref

import numpy as np
import pytest

import taut as tf


def variable(value, **options):
    return tf.Variable(value, **options)


def counts(function, *calls):
    """The values of calls, and the number of traces after each."""
    found = []
    for args in calls:
        value = function(*args)
        found.append((float(value), function.experimental_get_tracing_count()))
    return found


def test_two_variables_of_one_spec():
    f = tf.function(lambda v: v * 2.0)
    assert counts(f, *[(variable(x),) for x in (1.0, 2.0, 3.0)]) == [(2, 1), (4, 1), (6, 1)]


def test_which_arguments_are_the_same_variable_is_part_of_the_signature():
    a, b, c = variable(1.0), variable(2.0), variable(3.0)
    f = tf.function(lambda v, w: v + 10.0 * w)
    assert counts(f, (a, a), (a, b), (b, a), (c, c)) == [(11, 1), (21, 2), (12, 2), (33, 2)]


def test_the_same_variable_twice_is_updated_once_after_the_other():
    def step(v, w):
        v.assign_add(1.0)
        w.assign(w * 10.0)
        return v + 0.0

    a, b, c = variable(1.0), variable(2.0), variable(3.0)
    f = tf.function(step)
    # With one variable: (1 + 1) * 10; with two, each for itself.
    assert counts(f, (a, a), (b, c), (c, b), (a, a)) == [(20, 1), (3, 2), (31, 2), (210, 2)]
    assert [float(v) for v in (a, b, c)] == [210.0, 30.0, 31.0]


def test_type_shape_and_trainable_are_part_of_the_signature():
    f = tf.function(lambda v: tf.reduce_sum(v * 2))
    calls = [
        variable(1.0),
        variable([1.0, 2.0]),
        variable([3.0, 4.0]),
        variable(1),
        variable(2.0, trainable=False),
        variable(5.0, name="other"),
    ]
    found = counts(f, *[(v,) for v in calls])
    assert found == [(2, 1), (6, 2), (14, 2), (2, 3), (4, 4), (10, 4)]


def test_variables_in_lists_dicts_and_named_tuples():
    a, b, c = variable(1.0), variable(2.0), variable(3.0)
    f = tf.function(lambda both: both[0] + 10.0 * both[1])
    assert counts(f, ([a, b],), ([b, c],), ([a, a],)) == [(21, 1), (32, 1), (11, 2)]
    f = tf.function(lambda both: both["x"] + 10.0 * both["y"])
    assert counts(f, ({"x": a, "y": b},), ({"x": b, "y": c},)) == [(21, 1), (32, 1)]
    pair = collections.namedtuple("pair", "x y")
    f = tf.function(lambda both: both.x + 10.0 * both.y)
    assert counts(f, (pair(a, b),), (pair(b, c),)) == [(21, 1), (32, 1)]


def test_objects_that_hold_variables_are_compared_by_identity():
    class Module(tf.Module):
        def __init__(self, value):
            super().__init__()
            self.v = variable(value)

    class Plain:
        def __init__(self, value):
            self.v = variable(value)

    @dataclasses.dataclass(eq=False)
    class Data:
        v: object

    for kind in (Module, Plain, lambda value: Data(variable(value))):
        one, other = kind(1.0), kind(2.0)
        f = tf.function(lambda holder: holder.v * 2.0)
        assert counts(f, (one,), (other,), (one,)) == [(2, 1), (4, 2), (2, 2)]


def test_methods_are_traced_per_object():
    class Scale:
        def __init__(self, value):
            self.v = variable(value)

        @tf.function
        def call(self, x):
            return self.v * x

    one, other = Scale(1.0), Scale(2.0)
    assert [float(one.call(tf.constant(2.0))), float(other.call(tf.constant(2.0)))] == [2.0, 4.0]
    assert one.call.experimental_get_tracing_count() == other.call.experimental_get_tracing_count() == 1


def test_a_captured_variable_stays_the_same():
    captured = variable(5.0)
    f = tf.function(lambda v: v * 10.0 + captured)
    assert counts(f, (variable(1.0),), (variable(2.0),)) == [(15, 1), (25, 1)]
    captured.assign(7.0)
    assert counts(f, (variable(1.0),)) == [(17, 1)]


def test_a_variable_that_is_captured_and_passed():
    def step(v):
        v.assign_add(1.0)
        return captured * 1.0

    captured, a = variable(5.0), variable(1.0)
    f = tf.function(step)
    # TensorFlow has the same values with one trace.
    assert counts(f, (a,), (captured,), (a,), (captured,)) == [(5, 1), (6, 2), (6, 2), (7, 2)]
    assert float(a) == 3.0

    captured, a = variable(5.0), variable(1.0)
    f = tf.function(step)
    assert counts(f, (captured,), (a,), (captured,)) == [(6, 1), (6, 2), (7, 2)]
    assert "which the function also captures" not in f.traces[1].reason


def test_the_reason_of_a_retrace_names_a_captured_argument():
    captured = variable(5.0, name="state")
    f = tf.function(lambda v: v + captured)
    f(variable(1.0))
    f(captured)
    assert f.traces[1].reason == (
        f"args[0] was variable float32[] and is variable `state` float32[] (id {captured.id}), which the function also captures"
    )


def test_assignments_go_to_the_variable_of_the_call():
    f = tf.function(lambda v: v.assign_add(1.0))
    a, b = variable(1.0), variable(5.0)
    assert counts(f, (a,), (b,), (a,)) == [(2, 1), (6, 1), (3, 1)]
    assert (float(a), float(b)) == (3.0, 6.0)


def test_updates_are_in_place():
    @tf.function
    def step(v, g):
        v.assign_sub(0.5 * g)

    gradient = tf.ones([1000])
    variables = [variable(np.full(1000, float(i), np.float32)) for i in range(3)]
    addresses = [v.address for v in variables]
    for v in variables:
        assert step.plan(v, gradient).peak_bytes == 0
        step(v, gradient)
    assert [v.address for v in variables] == addresses
    assert [float(v[0]) for v in variables] == [-0.5, 0.5, 1.5]
    assert step.experimental_get_tracing_count() == 1


def test_gradients_inside_of_the_function():
    def cubed(v):
        with tf.GradientTape() as tape:
            y = v * v * v
        return tape.gradient(y, v)

    f = tf.function(cubed)
    assert counts(f, (variable(3.0),), (variable(2.0),)) == [(27, 1), (12, 1)]

    def watched(v):
        with tf.GradientTape() as tape:
            y = v * v * v
        return tape.gradient(y, tape.watched_variables())[0]

    f = tf.function(watched)
    assert counts(f, (variable(3.0),), (variable(2.0),)) == [(27, 1), (12, 1)]


def test_gradients_for_a_captured_variable_that_is_passed():
    def step(v):
        with tf.GradientTape() as tape:
            y = v * v
        found = tape.gradient(y, captured)
        return tf.constant(-1.0) if found is None else found

    captured, a = variable(5.0), variable(1.0)
    # As the same code without tf.function. TensorFlow's function gives -1 for `captured` as well.
    assert counts(tf.function(step), (a,), (captured,), (a,)) == [(-1, 1), (10, 2), (-1, 2)]
    assert [float(step(v)) for v in (a, captured)] == [-1.0, 10.0]


def test_gradients_outside_of_the_function():
    f = tf.function(lambda v: v * v * v)
    for value in (3.0, 2.0):
        v = variable(value)
        with tf.GradientTape() as tape:
            y = f(v)
        assert float(tape.gradient(y, v)) == 3 * value**2
    assert f.experimental_get_tracing_count() == 1


def test_gradients_outside_of_a_function_that_assigns():
    @tf.function
    def step(v, x):
        y = v * v * x
        v.assign_add(1.0)
        return y

    for value in (3.0, 2.0):
        v, x = variable(value), tf.constant(4.0)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = step(v, x)
        gradients = tape.gradient(y, [v, x])
        assert [float(g) for g in gradients] == [2 * value * 4.0, value**2]
        assert float(v) == value + 1
    assert step.experimental_get_tracing_count() == 1


def test_functions_that_call_functions():
    inner = tf.function(lambda v: v.assign_add(1.0) * 2.0)
    outer = tf.function(lambda v, w: inner(v) + 10.0 * inner(w))
    a, b, c = variable(1.0), variable(2.0), variable(3.0)
    assert counts(outer, (a, b), (b, c), (c, a)) == [(64, 1), (88, 1), (70, 1)]
    assert inner.experimental_get_tracing_count() == 1
    assert [float(v) for v in (a, b, c)] == [3.0, 4.0, 5.0]


def test_loops_and_branches_assign_the_variable_of_the_call():
    @tf.function
    def step(v, n, up):
        for _ in tf.range(n):
            v.assign_add(1.0)
        if up:
            v.assign(v * 10.0)
        return v + 0.0

    a, b = variable(1.0), variable(2.0)
    n, yes, no = tf.constant(3), tf.constant(True), tf.constant(False)
    assert counts(step, (a, n, yes), (b, n, yes), (a, n, no)) == [(40, 1), (50, 1), (43, 1)]
    assert (float(a), float(b)) == (43.0, 50.0)


# Functions that depend on which variable they are given are traced for each.


def test_names_are_those_of_the_variable():
    f = tf.function(lambda v: v + float(v.name[1]))
    # TensorFlow uses the first variable's name for both: (2, 1), (2, 1).
    calls = [(variable(1.0, name="n1"),), (variable(1.0, name="n2"),)]
    assert counts(f, *calls, calls[0]) == [(2, 1), (3, 2), (2, 2)]


def test_identity_is_that_of_the_variable():
    a, b = variable(1.0), variable(2.0)
    f = tf.function(lambda v: tf.constant(1.0) if v is a else tf.constant(0.0))
    # TensorFlow: 1 and 1.
    assert [float(f(v)) for v in (a, b, a)] == [1.0, 0.0, 1.0]

    weights = {id(a): 10.0, id(b): 20.0}

    def helper(v):
        return v * weights[id(v)]

    f = tf.function(helper)
    assert [float(f(v)) for v in (a, b, a)] == [10.0, 40.0, 10.0]

    class Holder:
        kernel = a

        def holds(self, v):
            return v is self.kernel

    holder = Holder()
    f = tf.function(lambda v: v * 2.0 if holder.holds(v) else v * 3.0)
    assert [float(f(v)) for v in (b, a)] == [6.0, 2.0]


def test_attributes_of_the_user_are_those_of_the_variable():
    a, b = variable(1.0), variable(2.0)
    a.scale, b.scale = 10.0, 100.0
    f = tf.function(lambda v: v * v.scale)
    assert [float(f(v)) for v in (a, b)] == [10.0, 200.0]

    def mark(v):
        v.seen = True
        return v + 0.0

    f = tf.function(mark)
    assert [float(f(v)) for v in (a, b)] == [1.0, 2.0]
    assert a.seen and b.seen
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        tf.function(lambda v: v.nothing)(a)


@pytest.mark.parametrize("make", [tf.optimizers.SGD, tf.keras.optimizers.SGD])
@pytest.mark.parametrize("is_built", [True, False])
def test_optimizers_keep_state_per_variable(make, is_built):
    a, b = variable(1.0), variable(2.0)
    optimizer = make(0.1, momentum=0.9)

    def step(v):
        optimizer.apply_gradients([(tf.constant(1.0), v)])
        return v + 0.0

    if is_built:
        optimizer.build([a, b])
        f = tf.function(step)
        # Each has its own momentum: 1 - 0.1, 0.9 - 0.19, 2 - 0.1. TensorFlow gives b that of a, if they share a trace.
        found = [float(f(v)) for v in (a, a, b, b)]
        np.testing.assert_allclose(found, [0.9, 0.71, 1.9, 1.71], rtol=1e-6)
    else:
        f = tf.function(step)
        found = [float(f(v)) for v in (a, a)]
        np.testing.assert_allclose(found, [0.9, 0.71], rtol=1e-6)
        with pytest.raises(Exception):
            f(b)
        assert float(b) == 2.0


def test_averages_are_those_of_the_variable():
    a, b = variable(1.0), variable(2.0)
    averages = tf.train.ExponentialMovingAverage(0.5)
    averages.apply([a, b])

    def step(v):
        averages.apply([v])
        return averages.average(v) + 0.0

    f = tf.function(step)
    a.assign(3.0)
    b.assign(6.0)
    assert [float(f(v)) for v in (a, b, a)] == [2.0, 4.0, 2.5]


def test_constraints_are_those_of_the_variable():
    free, bound = variable(1.0), variable(1.0, constraint=lambda v: tf.maximum(v, 0.8))
    optimizer = tf.optimizers.SGD(1.0)
    optimizer.build([free, bound])
    f = tf.function(lambda v: optimizer.apply_gradients([(tf.constant(1.0), v)]))
    f(free)
    f(bound)
    np.testing.assert_allclose([float(free), float(bound)], [0.0, 0.8], rtol=1e-6)


def test_values_read_while_tracing_are_those_of_the_variable():
    def step(v):
        with tf.init_scope():
            now = float(v)
        return tf.constant(now)

    f = tf.function(step)
    assert [float(f(variable(x))) for x in (1.0, 2.0)] == [1.0, 2.0]


def test_a_variable_that_the_function_keeps():
    kept = []

    def step(v):
        kept.append(v)
        return v + 0.0

    a, b = variable(1.0), variable(2.0)
    f = tf.function(step)
    assert counts(f, (a,), (b,), (a,)) == [(1, 1), (2, 2), (1, 2)]
    kept[0].assign_add(10.0)
    assert (float(a), float(b), len(kept)) == (11.0, 2.0, 2)


def test_variables_that_the_function_creates_for_a_variable():
    made = {}

    def step(v):
        if v.name not in made:
            made[v.name] = tf.Variable(0.0)
        made[v.name].assign_add(v)
        return made[v.name] + 0.0

    a, b = variable(1.0, name="a"), variable(2.0, name="b")
    f = tf.function(step)
    assert [float(f(a)), float(f(a))] == [1.0, 2.0]
    with pytest.raises(Exception, match="create"):
        f(b)
    assert float(f(a)) == 3.0


def test_a_trace_keeps_no_argument_alive():
    f = tf.function(lambda v: v * 2.0)
    a = variable(np.zeros(1000, np.float32))
    reference = weakref.ref(a)
    f(a)
    del a
    gc.collect()
    assert reference() is None
    f(variable(np.zeros(1000, np.float32)))
    assert f.experimental_get_tracing_count() == 1


def test_deny_allows_further_variables_of_a_spec():
    f = tf.function(lambda v: v * 2.0, on_retrace="deny")
    assert [float(f(variable(x))) for x in (1.0, 2.0)] == [2.0, 4.0]
    with pytest.raises(Exception, match="must not be traced again"):
        f(variable([1.0]))


def test_signatures_show_variables_by_their_specs():
    f = tf.function(lambda v, w: v + w)
    a, b = variable(1.0), variable(2.0, trainable=False)
    f(a, b)
    f(a, a)
    assert f.traces[0].signature == "(variable float32[], non-trainable variable float32[])"
    assert f.traces[1].signature == "(variable float32[], variable float32[], the same as variable 0)"


def test_concrete_functions_take_other_variables():
    captured = variable(1.0)
    f = tf.function(lambda v, x: v * x + captured)
    a, b = variable(2.0), variable(3.0)
    concrete = f.get_concrete_function(a, tf.TensorSpec([]))
    args, kwargs = concrete.structured_input_signature
    assert repr(args[0]) == "VariableSpec(shape=(), dtype=tf.float32, trainable=True, alias_id=0)" and kwargs == {}
    assert args[1] == tf.TensorSpec([], name="x")
    assert float(concrete(b, tf.constant(3.0))) == 10.0
    assert f.get_concrete_function(b, tf.TensorSpec([])) is concrete
    assert [one is captured for one in concrete.variables] == [True]
    assert f.get_concrete_function(captured, tf.TensorSpec([])) is not concrete
    with pytest.raises(TypeError, match="VariableSpec"):
        concrete(variable([1.0]), tf.constant(3.0))
    both = tf.function(lambda v, w: v + w).get_concrete_function(a, a)
    assert [spec.alias_id for spec in both.structured_input_signature[0]] == [0, 0]


def test_generators_are_objects():
    def made():
        yield 1.0
        yield 2.0

    f = tf.function(lambda g: tf.constant(next(g)))
    assert [float(f(made())) for _ in range(2)] == [1.0, 1.0]
    assert f.experimental_get_tracing_count() == 2


def test_sizes_that_vary_beside_a_variable():
    f = tf.function(lambda v, x: tf.reduce_sum(v * x), reduce_retracing=True)
    a, b = variable(2.0), variable(3.0)
    for v in (a, b):
        for n in (1, 2, 3, 4):
            assert float(f(v, tf.ones([n]))) == float(v) * n
