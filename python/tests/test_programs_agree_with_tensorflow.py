"""Small programs as TensorFlow's users write them, with the answers of TensorFlow 2.21."""

import os

import numpy as np
import pytest

import taut as tf

NAN, INF = float("nan"), float("inf")
POINTS = [-2.0, -0.0, 0.0, 0.5, 6.0, 7.0, NAN, INF, -INF]


def gradient(function, points, tape):
    """The derivative at each point, with one kind of tape."""
    x = tf.constant(points)

    def compute(x):
        with tf.GradientTape(persistent=tape == "persistent") as t:
            t.watch(x)
            y = function(x)
        return t.gradient(y, x)

    return (tf.function(compute) if tape == "traced" else compute)(x).numpy().tolist()


# TensorFlow's gradients compare with zero: NaN is on the side of the comparison that is false.
AT_ODD_POINTS = {
    "relu": (tf.nn.relu, [0, 0, 0, 1, 1, 1, 0, 1, 0]),
    "relu6": (tf.nn.relu6, [0, 0, 0, 1, 0, 0, 0, 0, 0]),
    "leaky_relu": (tf.nn.leaky_relu, [0.2, 0.2, 0.2, 1, 1, 1, 0.2, 1, 0.2]),
    "elu": (tf.nn.elu, [np.exp(-2), 1, 1, 1, 1, 1, 1, 1, 0]),
    "selu": (tf.nn.selu, [1.7580993408473766 * np.exp(-2), *[1.0507009873554805] * 7, 0]),
    "crelu": (tf.nn.crelu, [-1, 0, 0, 1, 1, 1, 0, 1, -1]),
}


@pytest.mark.parametrize("tape", ["single", "persistent", "traced"])
@pytest.mark.parametrize("name", AT_ODD_POINTS)
def test_gradients_at_zero_and_nan_do_not_depend_on_the_kind_of_tape(name, tape):
    function, wanted = AT_ODD_POINTS[name]
    np.testing.assert_allclose(gradient(function, POINTS, tape), wanted, rtol=1e-6)


@pytest.mark.parametrize("traced", [False, True])
def test_second_derivative_of_elu_is_that_of_the_positive_side_at_zero(traced):
    def second(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as inner:
                inner.watch(x)
                y = tf.nn.elu(x)
            first = inner.gradient(y, x)
        return outer.gradient(first, x)

    found = (tf.function(second) if traced else second)(tf.constant([-1.0, 0.0, 1.0]))
    np.testing.assert_allclose(found, [np.exp(-1), 0, 0], rtol=1e-6)


def test_hard_sigmoid_has_no_slope_at_its_upper_end():
    found = gradient(tf.keras.activations.hard_sigmoid, [-3.0, 0.0, 3.0, 7.0], "single")
    np.testing.assert_allclose(found, [0, 1 / 6, 0, 0], rtol=1e-6)


@pytest.mark.parametrize("function", [tf.math.ndtri, tf.math.erfcinv, tf.math.erfinv, tf.math.digamma, tf.sqrt])
def test_nan_stays_nan(function):
    assert np.isnan(function(tf.constant([NAN])).numpy()).all()


@pytest.mark.parametrize("power", [-1, np.array([-1]), tf.constant([-1])])
def test_negative_powers_of_integers_are_refused(power):
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative power"):
        tf.pow(tf.constant([2]), power)
    traced = tf.function(lambda x, y: x**y)
    assert traced(tf.constant([2]), tf.constant([3])).numpy().tolist() == [8]
    with pytest.raises(tf.errors.InvalidArgumentError, match="negative power"):
        traced(tf.constant([2]), tf.constant([-3]))


def test_a_type_that_an_op_does_not_take_is_caught_by_each_name_of_the_error():
    for caught in (TypeError, ValueError, tf.errors.InvalidArgumentError):
        with pytest.raises(caught, match="bool is not supported"):
            tf.constant([True]) - tf.constant([True])


def test_dtype_hint_converts_arrays():
    assert tf.convert_to_tensor(np.array([1.0, 2.0]), dtype_hint=tf.float32).dtype == tf.float32
    assert tf.convert_to_tensor(np.array([1, 2]), dtype_hint=tf.int32).dtype == tf.int32


# Accumulators, gradients of graphs


def test_an_accumulator_can_be_entered_again():
    x = tf.constant(2.0)
    accumulator = tf.autodiff.ForwardAccumulator(x, tf.constant(1.0))
    with accumulator:
        y = x * x
    with accumulator:
        z = y * y
    assert float(accumulator.jvp(z)) == 32.0
    with accumulator, pytest.raises(ValueError, match="already tracking"):
        accumulator.__enter__()


def test_gradients_of_a_while_loop_of_unknown_length():
    @tf.function
    def first(x):
        _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x])
        return tf.gradients(y, x)[0]

    assert float(first(tf.constant(2.0))) == 32.0
    assert float(first(tf.constant(3.0))) == 108.0


def test_second_gradients_of_a_while_loop_need_a_limit():
    def second(limit):
        @tf.function
        def call(x):
            _, y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, y * x), [0, x], maximum_iterations=limit)
            return tf.gradients(tf.gradients(y, x)[0], x)[0]

        return call(tf.constant(2.0))

    assert float(second(3)) == 48.0
    with pytest.raises(ValueError, match="maximum_iterations"):
        second(None)


# Variables


def test_a_constraint_is_applied_by_keras_optimizers():
    v = tf.Variable(5.0, constraint=lambda x: tf.minimum(x, 1.0))
    tf.keras.optimizers.SGD(0.1).apply_gradients([(tf.constant(1.0), v)])
    assert float(v) == 1.0


def test_an_operator_that_assigns_does_not_replace_a_variable():
    v = tf.Variable(1.0)
    with pytest.raises(RuntimeError, match="assign_add"):
        v += 1.0
    assert isinstance(v, tf.Variable)


# Functions


def test_nested_input_signatures_convert_python_values():
    n = []

    @tf.function(input_signature=[{"a": tf.TensorSpec([None]), "b": [tf.TensorSpec([], tf.int32)]}])
    def f(d):
        n.append(1)
        return d["a"] * tf.cast(d["b"][0], tf.float32)

    assert f({"a": tf.ones([3]), "b": [tf.constant(2)]}).numpy().tolist() == [2, 2, 2]
    assert f({"a": [1.0, 2.0], "b": [3]}).numpy().tolist() == [3, 6]
    assert f({"a": np.ones(1), "b": [np.int64(4)]}).numpy().tolist() == [4]
    assert len(n) == 1


def test_a_variable_fits_a_tensor_spec():
    double = tf.function(lambda x: x * 2.0, input_signature=[tf.TensorSpec([])])
    v = tf.Variable(3.0)
    with tf.GradientTape() as tape:
        y = double(v)
    assert (float(y), float(tape.gradient(y, v))) == (6.0, 2.0)


@pytest.mark.parametrize("given", [(tf.ones([2, 4]),), (tf.ones([2, 3]), tf.ones([2, 3]))])
def test_arguments_that_do_not_fit_a_signature_are_type_errors(given):
    f = tf.function(lambda *args: args[0], input_signature=[tf.TensorSpec([None, 3])])
    with pytest.raises(TypeError, match="input signature"):
        f(*given)


def test_specs_of_a_concrete_function_have_the_names_of_parameters():
    @tf.function
    def f(d, *rest, k=None):
        return d["a"], tf.cast(k, tf.int32)

    spec = tf.TensorSpec([2])
    concrete = f.get_concrete_function({"a": spec, "b": [spec]}, spec, spec, k=tf.TensorSpec([], name="key"))
    args, kwargs = concrete.structured_input_signature
    assert (args[0]["a"].name, args[0]["b"][0].name, args[1].name, args[2].name) == ("d_a", "d_b_0", "rest_0", "rest_1")
    assert kwargs["k"].name == "key"
    assert [tuple(shape) for shape in concrete.output_shapes] == [(2,), ()]
    assert concrete.output_dtypes == (tf.float32, tf.int32)


# Checkpoints


def test_a_checkpoint_that_is_missing_is_not_found(tmp_path):
    missing = os.path.join(tmp_path, "nothing")
    checkpoint = tf.train.Checkpoint(v=tf.Variable(1.0))
    for read in (checkpoint.restore, checkpoint.read, tf.train.load_checkpoint, tf.train.list_variables):
        with pytest.raises(tf.errors.NotFoundError):
            read(missing)
    path = checkpoint.save(os.path.join(tmp_path, "there"))
    with pytest.raises(tf.errors.NotFoundError, match="nope"):
        tf.train.load_checkpoint(path).get_tensor("nope")


def test_restoring_none_matches_nothing():
    status = tf.train.Checkpoint(v=tf.Variable(1.0)).restore(None)
    for claim in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(AssertionError):
            claim()


# Datasets


def varying():
    return tf.data.Dataset.range(1, 5).map(lambda n: tf.fill([n, 2], n))


@pytest.mark.parametrize(
    ("dataset", "shape"),
    [
        (varying(), (None, 2)),
        (varying().map(lambda x: tf.boolean_mask(x, x[:, 0] > 1)), (None, 2)),
        (tf.data.Dataset.range(6).group_by_window(lambda x: x % 2, lambda k, d: d.batch(2), window_size=2), (None,)),
        (tf.data.Dataset.range(5).window(3).flat_map(lambda w: w.batch(3)), (None,)),
        (tf.data.Dataset.range(6).batch(4), (None,)),
        (tf.data.Dataset.range(6).batch(4, drop_remainder=True), (4,)),
    ],
)
def test_element_spec_promises_no_size_that_varies(dataset, shape):
    spec = dataset.element_spec
    assert tuple(spec.shape) == shape
    for element in dataset:
        assert spec.is_compatible_with(element)


def test_datasets_of_different_types_are_not_concatenated():
    with pytest.raises(TypeError, match="concatenate"):
        tf.data.Dataset.range(2).concatenate(tf.data.Dataset.from_tensors(1.0))


def test_apply_wants_a_dataset():
    with pytest.raises(TypeError, match="apply"):
        tf.data.Dataset.range(2).apply(lambda dataset: 3)


def test_map_refuses_what_is_no_element():
    with pytest.raises(TypeError, match="element"):
        list(tf.data.Dataset.range(2).map(lambda x: object()))


def test_an_error_of_a_generator_is_an_invalid_argument():
    wrong = tf.data.Dataset.from_generator(lambda: iter([[1, 2]]), output_signature=tf.TensorSpec([3], tf.int32))
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(3,\)"):
        list(wrong)
