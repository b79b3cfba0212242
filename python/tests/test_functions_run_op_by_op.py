"""A function in which a shape depends on a value runs op by op: what that means for plans, budgets, side effects and
signatures.
"""

from __future__ import annotations

import gc
import warnings

import numpy as np
import pytest

import taut as tf
from taut.errors import DynamicShapeError

pytestmark = pytest.mark.filterwarnings("ignore:.*runs op by op")


def I(n):  # noqa: E743, N802
    return tf.constant(n, tf.int32)


def test_sizes_from_known_shapes_stay_in_one_planned_program():
    @tf.function
    def f(x):
        rows = tf.shape(x)[0]
        half = tf.cast(tf.math.ceil(tf.cast(rows, tf.float32) * 0.5), tf.int32)
        y = tf.reshape(x, [rows * 2, -1])[:half]
        z = tf.ones([rows, tf.size(x) // rows]) + tf.cast(tf.range(rows), tf.float32)[:, None]
        return tf.reduce_sum(y) + tf.reduce_sum(z[: rows - 1]) + tf.reduce_sum(tf.fill([half], 2.0))

    x = tf.ones([6, 4])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f(x)
        with tf.memory.measure() as used:
            value = f(x)
    assert float(value) == 6.0 + 4 * (1 + 2 + 3 + 4 + 5) + 6.0
    assert f.plan(tf.TensorSpec([6, 4])).peak_bytes == used.peak_bytes


def test_the_warning_comes_once_and_names_the_line():
    @tf.function
    def halves(x):
        return x[x > 0] * 0.5

    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for size in (2, 3, 4):
            halves(tf.ones([size]))
    found = [one for one in seen if "op by op" in str(one.message)]
    assert len(found) == 1
    line = halves.python_function.__code__.co_firstlineno + 2
    assert "halves runs op by op" in str(found[0].message)
    assert f"{__file__.rsplit('/', 1)[-1]}:{line}" in str(found[0].message)


def test_a_plan_and_a_budget_say_why_there_is_none():
    def halves(x):
        return x[x > 0] * 0.5

    line = f"{__file__.rsplit('/', 1)[-1]}:{halves.__code__.co_firstlineno + 1}"
    f = tf.function(halves)
    for ask in (f.plan, f.frontier, f.plan_gradient, f.graph):
        with pytest.raises(DynamicShapeError, match="has no plan, since it runs op by op") as error:
            ask(tf.TensorSpec([4]))
        assert line in str(error.value)
    with pytest.raises(DynamicShapeError, match="memory budget") as error:
        tf.function(halves, memory_budget="1MB")(tf.ones([4]))
    assert line in str(error.value)


def test_a_function_inside_keeps_its_plan():
    @tf.function
    def heavy(x):
        return tf.reduce_sum(tf.sin(x) * 2.0)

    @tf.function
    def f(x, n):
        return heavy(x[:n])

    assert float(f(tf.zeros([10]), I(4))) == 0.0
    assert [trace.signature for trace in heavy.traces] == ["(float32[4])"]


def test_one_signature_with_known_shapes_stays_compiled():
    @tf.function
    def f(x, dense):
        return tf.reduce_sum(x if dense else x[x > 0])

    assert float(f(tf.constant([1.0, -1.0]), False)) == 1.0
    assert float(f(tf.constant([1.0, -1.0]), True)) == 0.0
    assert f.plan(tf.TensorSpec([2]), True).peak_bytes > 0
    with pytest.raises(DynamicShapeError):
        f.plan(tf.TensorSpec([3]), False)


def test_the_dropped_trace_has_no_effects(capfd):
    tf.random.set_seed(3)
    v, called = tf.Variable(0.0), []

    def host(x):
        called.append(1)
        return x

    iterator = iter(tf.data.Dataset.range(10))

    def body(x):
        tf.print("once per call")
        v.assign_add(1.0)
        tf.numpy_function(host, [x], tf.TensorSpec([2]))
        noise = tf.random.normal([2])
        element = next(iterator)
        return noise, element, x[x > 0]

    f = tf.function(body)
    found = [f(tf.constant([1.0, -1.0])) for _ in range(3)]
    assert [int(element) for _, element, _ in found] == [0, 1, 2]
    assert float(v) == 3.0
    assert len(called) == 3
    assert capfd.readouterr().err.count("once per call") == 3
    # The random numbers are those of a program that never was traced.
    tf.random.set_seed(3)
    iterator = iter(tf.data.Dataset.range(10))
    eager = [body(tf.constant([1.0, -1.0])) for _ in range(3)]
    for (noise, *_), (wanted, *_) in zip(found, eager):
        np.testing.assert_array_equal(noise, wanted)


def test_an_error_after_the_boundary_is_the_users():
    @tf.function
    def f(x):
        x[x > 0]
        raise KeyError("mine")

    for _ in range(2):
        with pytest.raises(KeyError, match="mine"):
            f(tf.ones([2]))


def test_variables_are_created_in_the_first_call_only():
    @tf.function
    def f(n):
        return tf.ones([n]) * tf.Variable(2.0)

    with pytest.raises(ValueError, match="only in its first call"):
        f(I(2))
        f(I(3))


def test_arguments_must_not_be_modified():
    @tf.function
    def f(parts, n):
        parts.append(tf.ones([n]))
        return parts[0]

    with pytest.raises(ValueError, match="must not modify its arguments"):
        f([tf.ones([1])], I(2))


def test_what_tensorflow_refuses_is_refused():
    for function in (lambda x: int(x), lambda x: x.numpy(), lambda x: np.asarray(x), lambda x: [0, 1][x]):
        with pytest.raises(TypeError):
            tf.function(function, autograph=False)(I(1))


def test_an_input_signature_is_checked_op_by_op():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
    def f(x):
        return x[x > 0]

    assert f(tf.constant([1.0, -1.0])).numpy().tolist() == [1.0]
    with pytest.raises(ValueError, match="by its input signature"):
        f(tf.ones([2, 2]))


def test_shapes_of_any_rank():
    unknown, known = tf.TensorShape(None), tf.TensorShape([2, 3])
    assert (unknown.rank, unknown.ndims, unknown.dims, unknown.num_elements()) == (None, None, None, None)
    assert not unknown.is_fully_defined() and not unknown
    assert (str(unknown), repr(unknown)) == ("<unknown>", "TensorShape(None)")
    assert unknown == tf.TensorShape(None) and unknown != known and hash(unknown) == hash(tf.TensorShape(None))
    assert unknown.is_compatible_with(known) and known.is_compatible_with(None)
    assert unknown.merge_with(known) == known.merge_with(unknown) == known
    assert (unknown + known).rank is None and (known + unknown).rank is None
    assert unknown.with_rank(2).as_list() == [None, None]
    assert unknown[:2].as_list() == [None, None] and unknown[0] is None and unknown[1:].rank is None
    assert known.is_subtype_of(unknown) and not unknown.is_subtype_of(known)
    assert known.most_specific_compatible_shape(tf.TensorShape([2])).rank is None
    for use in (len, list, lambda shape: shape.as_list(), lambda shape: shape.assert_is_fully_defined()):
        with pytest.raises(ValueError):
            use(unknown)
    assert repr(tf.TensorSpec(None)).startswith("TensorSpec(shape=<unknown>")
    assert tf.TensorSpec(None, tf.int32).is_compatible_with(I(1))


def test_a_new_size_of_an_open_dimension_is_no_new_signature():
    f = tf.function(lambda x: tf.reduce_sum(x), input_signature=[tf.TensorSpec([None], tf.float32)], on_retrace="deny")
    for size in (2, 3, 4):
        assert float(f(tf.ones([size]))) == size
    assert f.experimental_get_tracing_count() == 1


def test_memory_goes_back_to_where_it_was():
    def run():
        f = tf.function(lambda x: x[x > 0] * 2.0)
        for size in (10, 1000):
            x = tf.ones([size])
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = f(x)
            tape.gradient(y, x)

    run()
    gc.collect()
    before = tf.memory.live_bytes()
    run()
    gc.collect()
    assert tf.memory.live_bytes() == before


def test_a_concrete_function_runs_op_by_op():
    f = tf.function(lambda x: x[x > 0])
    concrete = f.get_concrete_function(tf.TensorSpec([3]))
    assert concrete(tf.constant([1.0, -1.0, 2.0])).numpy().tolist() == [1.0, 2.0]
    with pytest.raises(DynamicShapeError, match="runs op by op"):
        _ = concrete.plan


def test_the_results_of_open_dimensions_are_open():
    f = tf.function(lambda x, y: (tf.concat([x, x], 0), x @ y, tf.reduce_sum(x)))
    concrete = f.get_concrete_function(tf.TensorSpec([None, 3]), tf.TensorSpec([3, 2]))
    assert [spec.shape for spec in concrete.structured_outputs] == [(None, 3), (None, 2), ()]


def words():
    keys, texts = tf.constant([0, 1, 2]), tf.constant(["brain", "salad", "surgery"])
    return tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, texts), "n/a")


def test_functions_select_strings_by_values():
    # The answers are TensorFlow 2.21's.
    table, texts = words(), tf.constant(["a", "b", "c"])

    @tf.function
    def inner(k):
        return table[k]

    @tf.function
    def joined(n):
        text = tf.constant("")
        for i in tf.range(n):
            text = text + texts[i]
        return text

    assert tf.function(lambda k: table.lookup(k))(tf.constant([0, 1, -1])).numpy().tolist() == [
        b"brain",
        b"salad",
        b"n/a",
    ]
    assert tf.function(lambda k: tf.strings.length(inner(k)))(tf.constant([0, -1])).numpy().tolist() == [5, 3]
    assert tf.function(lambda k: tf.gather(texts, k))(tf.constant([0, 2])).numpy().tolist() == [b"a", b"c"]
    assert tf.function(lambda k: texts[k])(tf.constant(1)).numpy() == b"b"
    assert tf.function(lambda k: tf.where(k > 0, "p", "n"))(tf.constant([0, 1])).numpy().tolist() == [b"n", b"p"]
    assert joined(tf.constant(3)).numpy() == b"abc"


def test_a_step_that_selects_strings_updates_its_variables_once():
    table, v = words(), tf.Variable([1.0, 2.0])

    @tf.function
    def step(k):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(v * v)
        v.assign_sub(0.25 * tape.gradient(loss, v))
        return table[k], loss

    text, loss = step(tf.constant(1))
    assert (text.numpy(), float(loss), v.numpy().tolist()) == (b"salad", 5.0, [0.5, 1.0])
    text, loss = step(tf.constant(7))
    assert (text.numpy(), float(loss), v.numpy().tolist()) == (b"n/a", 1.25, [0.25, 0.5])


def test_elements_that_are_strings_selected_by_values():
    table = words()
    texts = tf.data.Dataset.range(4).map(lambda x: table[tf.cast(x, tf.int32)])
    assert [x.numpy() for x in texts] == [b"brain", b"salad", b"surgery", b"n/a"]
    kept = tf.data.Dataset.range(4).filter(lambda x: table[tf.cast(x, tf.int32)] == "salad")
    assert [int(x) for x in kept] == [1]
