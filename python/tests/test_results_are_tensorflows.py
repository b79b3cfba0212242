"""Corners in which a program must give TensorFlow's result, or an error. The literals are TensorFlow's answers."""

import dataclasses

import numpy as np
import pytest

import taut as tf


def gradients(function, *values):
    inputs = [tf.constant(value) for value in values]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        y = function(*inputs)
    return [None if g is None else g.numpy() for g in tape.gradient(y, inputs)]


def test_the_gradient_of_a_variable_with_respect_to_itself():
    v, frozen = tf.Variable(3.0), tf.Variable(3.0, trainable=False)
    for one in (v, frozen, tf.constant(3.0)):
        with tf.GradientTape() as tape:
            pass
        assert float(tape.gradient(one, one)) == 1.0
    with tf.GradientTape(persistent=True) as tape:
        y = v * 2.0
    assert float(tape.gradient([v, y], v)) == 3.0
    assert float(tape.gradient(v, v, output_gradients=tf.constant(5.0))) == 5.0
    assert float(tape.gradient([v, v], v)) == 2.0
    assert tape.gradient(y, tf.Variable(1.0)) is None
    w = tf.Variable(1)
    assert tape.gradient(w, w) is None


def test_the_gradient_of_swish_for_beta():
    x, beta = tf.constant(2.0), tf.Variable(1.5)
    with tf.GradientTape() as tape:
        y = tf.nn.swish(x, beta)
    assert float(tape.gradient(y, beta)) == pytest.approx(0.18070662, rel=1e-5)
    assert float(tf.nn.silu(x, beta)) == pytest.approx(float(tf.nn.silu(x, 1.5)))
    x, beta = np.array([2.0, -1.0], "f4"), np.array([1.5, 0.3], "f4")
    found = gradients(tf.nn.swish, x, beta)
    np.testing.assert_allclose(found[0], [1.0881041, 0.35221997], rtol=1e-5)
    np.testing.assert_allclose(found[1].sum(), 0.42516494, rtol=1e-5)


@pytest.mark.parametrize("traced", [False, True])
def test_the_gradient_of_padding_for_its_value(traced):
    def weighted(x, value):
        padded = tf.pad(x, [[1, 2]], constant_values=value)
        return padded, tf.reduce_sum(padded * [1.0, 2.0, 3.0, 4.0, 5.0])

    run = tf.function(weighted) if traced else weighted
    x, value = tf.constant([2.0, 1.0]), tf.Variable(7.0)
    with tf.GradientTape() as tape:
        tape.watch(x)
        padded, total = run(x, value)
    np.testing.assert_array_equal(padded, [7, 2, 1, 7, 7])
    found = tape.gradient(total, [x, value])
    np.testing.assert_array_equal(found[0], [2, 3])
    # The slope: the weights of the padding. TensorFlow's gradient is None.
    assert float(found[1]) == 1.0 + 4.0 + 5.0


def test_derivatives_of_piecewise_linear_functions():
    x = np.array([2.0, -1.0, 0.0], "f4")
    np.testing.assert_array_equal(gradients(tf.sign, x)[0], [0, 0, 0])

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = tf.abs(x)
        return tape.gradient(y, x)

    np.testing.assert_array_equal(gradients(tf.abs, x)[0], [1, -1, 0])
    np.testing.assert_array_equal(gradients(slope, x)[0], [0, 0, 0])
    assert gradients(tf.floor, x) == [None]


def test_gradients_behind_a_condition():
    x = np.array([-1.0, 0.0, 4.0], "f4")

    def chosen(function):
        return gradients(lambda x: tf.where(x > 0, function(x), 0.0), x)[0]

    np.testing.assert_array_equal(chosen(tf.math.log), [0, np.nan, 0.25])
    np.testing.assert_array_equal(chosen(lambda x: 1 / x), [0, np.nan, -0.0625])
    np.testing.assert_array_equal(chosen(lambda x: x**0.5), [np.nan, np.nan, 0.25])


@pytest.mark.parametrize("divide", [lambda x, y: x // y, lambda x, y: x % y, tf.truncatediv, tf.truncatemod])
@pytest.mark.parametrize("zero", [0, np.array([2, 0], "i4")], ids=["scalar", "tensor"])
def test_integers_are_not_divided_by_zero(divide, zero):
    x = tf.constant([4, 5])
    given = zero if isinstance(zero, int) else tf.constant(zero)
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        divide(x, given)
    traced = tf.function(divide)
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        traced(x, given)
    np.testing.assert_array_equal(
        traced(x, tf.constant([2, 3])), np.asarray(divide(np.array([4, 5]), np.array([2, 3])))
    )


def test_divisors_that_may_be_zero():
    assert (tf.constant([], tf.int32) // 0).shape == [0]
    np.testing.assert_array_equal(tf.constant([4.0, -5.0]) // 0.0, [np.inf, -np.inf])
    np.testing.assert_array_equal(tf.constant([4, 5]) / 0, [np.inf, np.inf])
    with pytest.raises(tf.errors.InvalidArgumentError, match="division by zero"):
        5 // tf.constant([0])


def test_ranges_count_in_the_arithmetic_of_their_elements():
    assert tf.range(0.0, 1.0, 1 / 49).shape == [49]
    assert tf.range(0.0, 1.0, 1 / 49, dtype=tf.float64).shape == [50]
    longer = [n for n in range(1, 200) if tf.range(0.0, 1.0, 1 / n).shape[0] != n]
    assert longer == [61, 109, 115, 121, 122, 123]
    assert tf.range(0.0, 1.0, 0.1, dtype=tf.float16).shape == [10]
    assert tf.range(0.0, 3.0, 0.1, dtype=tf.bfloat16).shape == [30]


def test_an_empty_list_of_axes_squeezes_all():
    x = tf.zeros([1, 2, 1])
    assert tf.squeeze(x, []).shape == tf.squeeze(x).shape == [2]
    assert tf.squeeze(x, 0).shape == tf.squeeze(x, [0]).shape == [2, 1]


def case_of(a, exclusive=False):
    return tf.case([(a > 3, lambda: tf.constant(1)), (a > 4, lambda: tf.constant(2))], exclusive=exclusive)


@pytest.mark.parametrize("run", [case_of, tf.function(case_of)], ids=["eager", "traced"])
def test_a_case_without_default_needs_a_true_predicate(run):
    assert int(run(tf.constant(5))) == 1
    with pytest.raises(tf.errors.InvalidArgumentError, match="one of the predicates must be true"):
        run(tf.constant(1))
    with pytest.raises(tf.errors.InvalidArgumentError, match="at most one"):
        run(tf.constant(5), True)
    assert int(run(tf.constant(4), True)) == 1


def test_a_variable_of_every_call_is_refused():
    kept = []

    @tf.function
    def every(x):
        kept.append(tf.Variable(1.0))
        return x * kept[-1]

    with pytest.raises(ValueError, match="in every call"):
        every(tf.constant(1.0))

    once = []

    @tf.function
    def first(x):
        if not once:
            once.append(tf.Variable(2.0))
        return x * once[0].assign_add(1.0)

    assert [float(first(tf.constant(1.0))) for _ in range(3)] == [3.0, 4.0, 5.0]


class Numbers(list):
    pass


@pytest.mark.parametrize("kind", [list, Numbers])
def test_a_list_that_changes_between_calls(kind):
    f = tf.function(lambda numbers, x: x * numbers[0], on_retrace="allow")
    numbers = kind([2.0])
    found = [float(f(numbers, tf.constant(1.0)))]
    numbers[0] = 3.0
    found.append(float(f(numbers, tf.constant(1.0))))
    assert found == [2.0, 3.0]


def test_a_function_does_not_change_its_arguments():
    @tf.function
    def f(parts):
        parts.append(tf.constant(2.0))
        return tf.add_n(parts)

    with pytest.raises(ValueError, match="must not modify its arguments"):
        f([tf.constant(1.0)])
    tf.function(lambda parts: tf.add_n([*parts, parts[0]]))([tf.constant(1.0)])


def empty_in_run(number):
    runs = []

    def rows():
        runs.append(1)
        if len(runs) != number:
            yield len(runs)

    return tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([], tf.int32))


def test_repeat_goes_on_after_an_empty_run():
    assert [int(x) for x in empty_in_run(1).repeat(3)] == [2, 3]
    assert [int(x) for x in empty_in_run(1).repeat().take(3)] == []
    assert [int(x) for x in empty_in_run(2).repeat().take(3)] == [1]


@pytest.mark.parametrize("workers", [None, 2])
@pytest.mark.parametrize("seed", [None, 5])
def test_random_ops_in_a_map_repeat_with_a_global_seed(seed, workers):
    def drawn(data):
        return [float(x) for x in data]

    tf.random.set_seed(3)
    data = tf.data.Dataset.range(3).map(lambda x: tf.random.uniform([], seed=seed), workers)
    first = drawn(data)
    assert drawn(data) == first
    twice = drawn(data.repeat(2))
    assert twice[:3] == first and len(set(twice)) == 6
    other = tf.data.Dataset.range(3).map(lambda x: tf.random.uniform([], seed=seed), workers)
    assert not set(drawn(other)) & set(first)
    tf.random.set_seed(3)
    assert drawn(tf.data.Dataset.range(3).map(lambda x: tf.random.uniform([], seed=seed), workers)) == first


def test_random_ops_in_a_map_draw_anew_without_a_global_seed(monkeypatch):
    monkeypatch.setattr("taut._ops.random._has_seed", False)
    data = tf.data.Dataset.range(3).map(lambda x: tf.random.uniform([]))
    drawn = [float(x) for _ in range(2) for x in data] + [float(x) for x in data.repeat(2)]
    assert len(set(drawn)) == 12


def test_the_average_loss_of_no_examples():
    average = tf.nn.compute_average_loss
    assert float(average(tf.constant([1.0, 2.0]), global_batch_size=0)) == 0.0
    assert float(average(tf.constant([]), global_batch_size=0)) == 0.0
    assert float(average(tf.constant([1.0, 2.0]))) == 1.5
    assert float(average(tf.constant([1.0, 2.0]), global_batch_size=6)) == 0.5
    with pytest.raises(tf.errors.InvalidArgumentError, match=">= 0, got -2"):
        average(tf.constant([1.0, 2.0]), global_batch_size=-2)
    with pytest.raises(TypeError, match="integer"):
        average(tf.constant([1.0, 2.0]), global_batch_size=2.0)


@dataclasses.dataclass(frozen=True)
class Holder:
    function: object


@dataclasses.dataclass
class MutableHolder:
    function: object


def test_a_function_among_its_own_arguments():
    @tf.function
    def f(_g):
        return tf.constant(1.0)

    assert float(f(f)) == float(f([f])) == float(f(Holder(f))) == float(f(f)) == 1.0
    assert f.trace_count == 3
    with pytest.raises(TypeError, match="MutableHolder"):
        f(MutableHolder(f))


def test_the_quotient_of_floats_is_rounded_before_its_floor():
    inf = float("inf")
    x = [6.0, 1.0, 5.4, -7.0, inf, inf, -inf, 1.0, -1.0, 1.0]
    y = [0.1, 0.1, 0.6, 2.0, 1.0, -1.0, 1.0, -inf, inf, 0.0]
    expected = {
        "float32": [60, 10, 9, -4, inf, -inf, -inf, -0.0, -0.0, inf],
        "float64": [60, 10, 9, -4, inf, -inf, -inf, -0.0, -0.0, inf],
        "float16": [60, 10, 8, -4, inf, -inf, -inf, -0.0, -0.0, inf],
        "bfloat16": [60, 10, 9, -4, inf, -inf, -inf, -0.0, -0.0, inf],
    }
    for dtype, want in expected.items():
        a, b = (tf.cast(tf.constant(part, tf.float64), dtype) for part in (x, y))
        for found in (a // b, tf.math.floordiv(a, b), tf.function(lambda a, b: a // b)(a, b)):
            assert found.dtype.name == dtype
            assert str(tf.cast(found, tf.float64).numpy().tolist()) == str(list(map(float, want)))
    assert (tf.constant([7, -7, 7]) // tf.constant([2, 2, -2])).numpy().tolist() == [3, -4, -4]


def test_map_fn_to_ragged_rows():
    spec = tf.RaggedTensorSpec([None], tf.int32)
    found = tf.map_fn(tf.range, tf.constant([1, 3, 0]), fn_output_signature=spec)
    assert isinstance(found, tf.RaggedTensor)
    assert found.to_list() == [[0], [0, 1, 2], []]
    equal = tf.map_fn(tf.range, tf.constant([2, 2]), fn_output_signature=spec)
    assert isinstance(equal, tf.RaggedTensor)
    pair = tf.map_fn(
        lambda n: (n, tf.fill([n], "x")),
        tf.constant([1, 2]),
        fn_output_signature=(tf.int32, tf.RaggedTensorSpec([None], tf.string)),
    )
    assert pair[0].numpy().tolist() == [1, 2]
    assert pair[1].to_list() == [[b"x"], [b"x", b"x"]]


def test_a_nan_is_equal_to_no_other():
    x = [1.0, float("nan"), -0.0, float("nan"), 0.0, 1.0]
    values, places = tf.unique(x)
    assert str(values.numpy().tolist()) == "[1.0, nan, -0.0, nan]"
    assert places.numpy().tolist() == [0, 1, 2, 3, 2, 0]
    assert tf.unique_with_counts(x).count.numpy().tolist() == [2, 1, 2, 1]


def test_arrays_that_a_function_captures_are_copied_by_its_trace():
    array = np.array([1.0, 2.0], "float32")
    f = tf.function(lambda x: x * array)
    assert f(tf.constant(1.0)).numpy().tolist() == [1.0, 2.0]
    array[0] = 10.0
    assert f(tf.constant(1.0)).numpy().tolist() == [1.0, 2.0]
    # An argument has the value that it has at the call.
    g = tf.function(lambda x: x * 2.0)
    assert g(array).numpy().tolist() == [20.0, 4.0]
    array[1] = 0.0
    assert g(array).numpy().tolist() == [20.0, 0.0]


def test_lists_of_mixed_types_are_refused():
    with pytest.raises(ValueError, match="supported element type"):
        tf.constant([1, "a"])
