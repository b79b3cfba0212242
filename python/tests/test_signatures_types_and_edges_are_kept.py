"""What a call promises by its types and signature holds at the edges, too: other values would be wrong in silence.

The values are those of TensorFlow 2.21, unless a comment says otherwise.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import taut as tf


def concrete(*args):
    return tf.function(lambda x: x).get_concrete_function(*args)


@pytest.mark.parametrize(
    ("own", "given", "wanted"),
    [
        (tf.constant(1.0), 3, 3.0),
        (tf.constant(1), np.int64(3), 3),
        (tf.constant([1]), [2], [2]),
        (tf.constant([[1.0]]), ((2,),), [[2.0]]),
        (tf.constant(1.0), np.float64(3.25), 3.25),
        (tf.TensorSpec(None), [1, 2], [1.0, 2.0]),
        (tf.constant("a"), "b", b"b"),
    ],
)
def test_values_take_the_types_of_a_concrete_function(own, given, wanted):
    found = concrete(own)(given)
    assert found.dtype == own.dtype and found.numpy().tolist() == wanted if own.dtype != tf.string else found == wanted


def test_values_in_containers_take_the_types_of_a_concrete_function():
    found = concrete({"a": tf.constant(1.0), "b": 3})({"a": 2, "b": 3})
    assert found["a"].dtype == tf.float32 and float(found["a"]) == 2.0 and found["b"] == 3


@pytest.mark.parametrize(
    ("own", "given"),
    [
        (tf.constant(1), 1.5),
        (tf.constant(1), "a"),
        (tf.constant("a"), 3),
        (tf.constant(1), None),
        (tf.constant(1), [1]),
        ({"a": tf.constant(1)}, {"b": tf.constant(1)}),
        ((tf.constant(1), tf.constant(2)), (tf.constant(1),)),
        ([tf.constant(1), tf.constant(2)], (tf.constant(1), tf.constant(2))),
    ],
)
def test_a_concrete_function_runs_no_other_signature(own, given):
    with pytest.raises(TypeError):
        concrete(own)(given)


def test_access_by_index_sees_one_order_of_a_shuffled_dataset():
    shuffled = tf.data.Dataset.range(6).shuffle(10, seed=2)
    first = [int(tf.data.experimental.at(shuffled, i)) for i in range(6)]
    assert sorted(first) == list(range(6)) == sorted(int(x) for x in shuffled)
    assert first == [int(tf.data.experimental.at(shuffled, i)) for i in range(6)]
    batches = tf.data.Dataset.range(6).shuffle(10, seed=2).batch(2)
    pairs = [tf.data.experimental.at(batches, i).numpy().tolist() for i in (2, 1, 0)]
    assert sorted(sum(pairs, [])) == list(range(6))


@pytest.mark.parametrize(
    ("f", "x", "wanted"),
    [
        (lambda x: (5 + 7j) * x, np.complex64([1 + 2j]), [[5, -7], [7, 5]]),
        (tf.math.conj, np.complex64([1 + 2j]), [[1, 0], [0, -1]]),
        (tf.math.real, np.complex64([1 + 2j]), [[1, 0]]),
        (lambda x: tf.complex(x, x), [1.0, 2.0], [[1, 0], [1, 0], [0, 1], [0, 1]]),
    ],
)
def test_gradients_of_complex_numbers_are_measured_in_both_parts(f, x, wanted):
    (exact,), (measured,) = tf.test.compute_gradient(f, [tf.constant(x)])
    assert exact.tolist() == wanted and exact.dtype == measured.dtype == np.float32
    np.testing.assert_allclose(measured, wanted, atol=1e-3)


def test_gradients_of_empty_tensors_are_measured():
    exact, measured = tf.test.compute_gradient(tf.matmul, [tf.zeros([0, 3]), tf.ones([3, 2])])
    assert [one.shape for one in exact] == [(0, 0), (0, 6)] == [one.shape for one in measured]


@pytest.mark.parametrize(
    ("source", "target", "largest"),
    [
        ("float32", "float32", np.finfo(np.float32).max),
        ("float32", "float64", np.finfo(np.float32).max),
        ("float64", "float32", np.finfo(np.float32).max),
        ("float16", "float32", 65504.0),
        ("float16", "int32", 65504),
        ("bfloat16", "float16", 65280.0),
        ("float32", "int8", 127),
        ("bfloat16", "uint64", 2**64),
    ],
)
def test_saturate_cast_clamps_infinities(source, target, largest):
    made = tf.saturate_cast(tf.constant([math.inf, -math.inf, 3.0], source), target)
    smallest = {"int8": -128, "uint64": 0}.get(target, -largest)
    assert made.dtype == target and tf.cast(made, tf.float64).numpy().tolist() == [largest, smallest, 3.0]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("f", "sign"), [(tf.math.igamma, 1.0), (tf.math.igammac, -1.0)])
def test_the_slope_of_the_incomplete_gamma_functions_at_zero(f, sign, dtype):
    a, x = tf.constant([0.5, 1.0, 1.5, 2.0], dtype), tf.zeros([4], dtype)
    with tf.GradientTape() as tape:
        tape.watch([a, x])
        y = f(a, x)
    by_a, by_x = tape.gradient(y, [a, x])
    # The limit for a = 1 is 1, where TensorFlow 2.21 has NaN.
    assert by_x.numpy().tolist() == [sign * math.inf, sign, 0.0, 0.0] and by_a.numpy().tolist() == [0.0] * 4


def test_strings_have_no_gradient():
    x, text = tf.constant(3.0), tf.constant("a")
    with tf.GradientTape(persistent=True) as tape:
        tape.watch([x, text])
        y = x * 2.0
        length = tf.strings.length(text)
    assert tape.gradient(text, text) is None and tape.gradient(length, text) is None
    by_x, by_text = tape.gradient([y, text], [x, text])
    assert float(by_x) == 2.0 and by_text is None
    assert tape.gradient(text, [x, text]) == [None, None]
    by_x, by_text = tape.gradient([y, text], [x, text], [tf.constant(5.0), None], unconnected_gradients="zero")
    assert float(by_x) == 10.0 and by_text.numpy() == b""


def test_fractions_are_not_cut_off():
    with pytest.raises(TypeError):
        tf.one_hot([0, 1], 2, on_value=1, off_value=0.5)
    with pytest.raises(TypeError):
        tf.pad(tf.ones([1, 2], tf.int32), [[1, 0], [0, 0]], constant_values=1.5)


def test_endless_datasets_stay_endless():
    endless = tf.data.Dataset.range(3).repeat()
    stages = [
        endless.group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), window_size=2),
        endless.rejection_resample(lambda x: tf.cast(x > 1, tf.int32), [0.5, 0.5]),
        endless.batch(2).unbatch(),
    ]
    assert [int(one.cardinality()) for one in stages] == [-1, -1, -1]
    finite = tf.data.Dataset.range(3).group_by_window(lambda x: x % 2, lambda key, window: window.batch(2), 2)
    assert int(finite.cardinality()) == -2


def test_sparse_tensors_of_several_shapes_form_a_batch():
    def row(i):
        return tf.SparseTensor(tf.reshape(i, [1, 1]), tf.reshape(i, [1]), tf.reshape(i + 1, [1]))

    batches = tf.data.Dataset.range(4).map(row).batch(2)
    assert [tf.sparse.to_dense(one).numpy().tolist() for one in batches] == [
        [[0, 0], [0, 1]],
        [[0, 0, 2, 0], [0, 0, 0, 3]],
    ]


def test_one_value_may_be_returned_for_a_list_of_one_type():
    (made,) = tf.py_function(lambda i: i + 1, [1], [tf.int32])
    assert made.dtype == tf.int32 and int(made) == 2
    (made,) = tf.function(lambda x: tf.py_function(lambda i: i * 2, [x], [tf.float32]))(tf.constant(2.0))
    assert float(made) == 4.0


def test_a_constant_initializer_takes_no_tensor():
    for value in (tf.constant([1.0]), tf.Variable(1.0)):
        with pytest.raises(TypeError):
            tf.constant_initializer(value)


def test_a_cast_to_the_same_type_is_the_tensor_itself():
    for x in (tf.constant([1.0]), tf.Variable([1.0]), tf.constant(["a"])):
        assert tf.cast(x, x.dtype) is x
    assert tf.function(lambda x: tf.constant(tf.cast(x, tf.float32) is x))(tf.constant([1.0]))

    @tf.function
    def loss(x):
        return tf.keras.losses.categorical_crossentropy([[0.0, 1.0]], tf.cast(tf.nn.softmax(x), tf.float32))

    assert loss(tf.constant([[100.0, 0.0]])).numpy().tolist() == [100.0]


@pytest.mark.parametrize("dtype", [tf.int32, tf.int64])
def test_an_empty_list_takes_the_type_beside_it(dtype):
    x = tf.zeros([0], dtype)
    for found in (x * [], [] + x, tf.maximum(x, []), tf.add(x, ()), x ** []):
        assert found.dtype == dtype and found.shape == (0,)


def test_integers_beyond_int64_are_exact():
    most = 2**64 - 1
    for found in (tf.constant([100, most], tf.uint64), tf.convert_to_tensor([100, most], tf.uint64)):
        assert found.dtype == tf.uint64 and found.numpy().tolist() == [100, most]
    assert tf.constant([[1, most], [2, 3]], tf.uint64).numpy().tolist() == [[1, most], [2, 3]]
    assert (tf.constant([1, 2], tf.uint64) + [3, most - 8]).numpy().tolist() == [4, most - 6]
    for given in ([-1, most], [1.5, most]):
        with pytest.raises((TypeError, ValueError)):
            tf.constant(given, tf.uint64)
    with pytest.raises(ValueError, match="range"):
        tf.constant([1, 2**63], tf.int64)


def test_moments_of_integers_are_integers():
    mean, variance = tf.nn.moments(tf.constant([1, 2, 4]), 0)
    assert mean.dtype == variance.dtype == tf.int32 and (int(mean), int(variance)) == (2, 1)
    mean, variance = tf.nn.moments(tf.constant([[1, 2], [4, 7]], tf.int64), 1, keepdims=True)
    assert mean.numpy().tolist() == [[1], [5]] and variance.numpy().tolist() == [[0], [2]]
    mean, variance = tf.nn.moments(tf.constant([-1, -2, 4, -6]), 0)
    assert (int(mean), int(variance)) == (-1, 12)


@pytest.mark.parametrize("function", [tf.math.reduce_variance, tf.math.reduce_std])
def test_variances_of_integers_are_refused(function):
    for x in ([1, 2, 4], tf.constant([1, 2], tf.uint8), np.array([1, 2])):
        with pytest.raises(TypeError, match="float or complex"):
            function(x)
    assert function(tf.constant([1.0, 2.0], tf.float16)).dtype == tf.float16


def test_variables_count_up_to_a_limit():
    v = tf.Variable(1)
    assert [int(v.count_up_to(3)), int(v.count_up_to(3)), int(v)] == [1, 2, 3]
    with pytest.raises(tf.errors.OutOfRangeError, match="limit of 3"):
        v.count_up_to(3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="int32 or int64"):
        tf.Variable(1.0).count_up_to(3)


@pytest.mark.parametrize("mode", [lambda function: function, tf.function])
@pytest.mark.parametrize("invariant", [None, tf.TensorShape(None)])
def test_branches_in_loops_write_arrays(mode, invariant):
    def loop(n, x):
        def body(i, rows):
            return i + 1, tf.cond(i < 1, lambda: rows.write(i, x), lambda: rows.write(i, x * x))

        shapes = None if invariant is None else [tf.TensorShape([]), invariant]
        start = [tf.constant(0), tf.TensorArray(tf.float32, 3)]
        return tf.while_loop(lambda i, _: i < n, body, start, shape_invariants=shapes)[1].stack()

    x = tf.constant(3.0)
    assert mode(loop)(tf.constant(3), x).numpy().tolist() == [3.0, 9.0, 9.0]
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.reduce_sum(mode(loop)(tf.constant(3), x))
    assert float(tape.gradient(y, x)) == 13.0


def test_branches_return_arrays():
    def written(x):
        rows = tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0])
        return tf.cond(x > 0, lambda: rows.write(0, 5.0), lambda: rows).stack()

    def chosen(x):
        rows = tf.TensorArray(tf.float32, 2).unstack([1.0, 2.0])
        functions = [lambda: rows.write(0, 5.0), lambda: rows.write(1, 7.0), lambda: rows]
        return tf.switch_case(x, functions).stack()

    made = tf.function(written)
    assert [made(tf.constant(x)).numpy().tolist() for x in (1, -1)] == [[5.0, 2.0], [1.0, 2.0]]
    made = tf.function(chosen)
    found = [made(tf.constant(x)).numpy().tolist() for x in (0, 1, 2, 9)]
    assert found == [[5.0, 2.0], [1.0, 7.0], [1.0, 2.0], [1.0, 2.0]]


def test_strings_differ_after_branches():
    @tf.function
    def named(x):
        name = "a"
        if x > 0:
            name = "b"
        return name

    assert [named(tf.constant(x)).numpy() for x in (1, -1)] == [b"b", b"a"]
    with_tensors = tf.function(lambda x: tf.cond(x > 0, lambda: tf.constant("b"), lambda: tf.constant("a")))
    assert [with_tensors(tf.constant(x)).numpy() for x in (1, -1)] == [b"b", b"a"]
