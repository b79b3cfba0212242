"""Keras: variables, loops, slices and output specs."""

import importlib
import inspect
import re

import numpy as np
import pytest
from keras.src import backend

import taut as tf
from taut import keras

ops = keras.ops


# Variables.


def test_a_variable_is_held_by_one_of_taut():
    variable = keras.Variable([1.0, 2.0])
    variable.assign_add([1.0, 1.0])
    assert isinstance(variable.__taut_variable__(), tf.Variable)
    np.testing.assert_array_equal(variable.numpy(), [2.0, 3.0])
    np.testing.assert_array_equal(np.array(variable), [2.0, 3.0])
    np.testing.assert_array_equal((variable * 2.0).numpy(), [4.0, 6.0])
    np.testing.assert_array_equal(tf.add(variable, 1.0).numpy(), [3.0, 4.0])


def test_a_variable_of_taut_is_taken_over():
    own = tf.Variable([1.0, 2.0])
    variable = keras.Variable(own)
    variable.assign([5.0, 6.0])
    np.testing.assert_array_equal(own.numpy(), [5.0, 6.0])


def test_tapes_follow_variables():
    variable = keras.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        loss = ops.sum(ops.square(variable))
    np.testing.assert_array_equal(tape.gradient(loss, variable).numpy(), [2.0, 4.0])


def test_the_value_is_the_variable_behind():
    variable = keras.Variable([1.0])
    own, read = variable.value, ops.convert_to_tensor(variable)
    assert isinstance(own, tf.Variable)
    own.assign_add([1.0])
    assert variable.numpy().tolist() == own.numpy().tolist() == [2.0]
    assert read.numpy().tolist() == [1.0]
    with tf.GradientTape(persistent=True) as tape:
        y = ops.sum(ops.square(variable))
    # As in TensorFlow, both names of the variable have its gradient.
    for source in (variable, variable.value):
        assert tape.gradient(y, source).numpy().tolist() == [4.0]


def test_a_tape_watches_the_value_alone():
    watched, other = keras.Variable([3.0], trainable=False), keras.Variable([5.0])
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(watched.value)
        y = ops.sum(watched * watched * other)
    gradients = tape.gradient(y, [watched.value, other.value])
    assert gradients[0].numpy().tolist() == [30.0]
    assert gradients[1] is None


def test_assigned_values_are_those_of_the_time():
    first, second = keras.Variable([1.0]), keras.Variable([2.0])
    with keras.StatelessScope() as scope:
        first.assign(second.value)
        second.assign([7.0])
    second.assign([9.0])
    assert scope.get_current_value(first).numpy().tolist() == [2.0]


def test_optimizers_take_values():
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1, kernel_initializer="ones")])
    optimizer = keras.optimizers.SGD(0.5)
    values = [weight.value for weight in model.trainable_weights]

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(model(x))
        optimizer.apply_gradients(zip(tape.gradient(loss, values), values))
        return loss

    losses = [float(step(tf.constant([[1.0, 3.0]]))) for _ in range(3)]
    assert losses == [4.0, -1.5, -7.0]
    assert model.get_weights()[0].tolist() == [[-0.5], [-3.5]]


def test_in_a_stateless_scope_variables_do_not_change():
    variable = keras.Variable([1.0])
    with keras.StatelessScope([(variable, ops.array([5.0]))]) as scope:
        variable.assign_add([1.0])
        assert variable.value.numpy().tolist() == [6.0]
    assert variable.numpy().tolist() == [1.0]
    assert scope.get_current_value(variable).numpy().tolist() == [6.0]


def test_layers_can_be_built_inside_a_function():
    layer = keras.layers.Dense(3, kernel_initializer="ones")

    @tf.function
    def run(x):
        return layer(x)

    np.testing.assert_array_equal(run(tf.ones([2, 4])).numpy(), np.full((2, 3), 4.0))
    assert layer.kernel.shape == (4, 3)
    np.testing.assert_array_equal(run(tf.ones([2, 4])).numpy(), np.full((2, 3), 4.0))


# Conversion.


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (1.5, "float32"),
        (3, "int32"),
        ([1, 2], "int32"),
        ([True], "bool"),
        (np.float64(1), "float64"),
        ([np.float64(1)], "float64"),
        (np.ones(2, "int64"), "int64"),
    ],
)
def test_types_of_what_becomes_a_tensor(value, dtype):
    assert keras.backend.standardize_dtype(ops.convert_to_tensor(value).dtype) == dtype


def test_lists_may_hold_tensors():
    made = ops.convert_to_tensor([[ops.array(1.0), 2.0], [3.0, keras.Variable(4.0)]])
    np.testing.assert_array_equal(made.numpy(), [[1.0, 2.0], [3.0, 4.0]])


def test_arrays_that_come_out_can_be_written_to():
    x = ops.ones((2,))
    array = ops.convert_to_numpy(x)
    array[0] = 5.0
    np.testing.assert_array_equal(x.numpy(), [1.0, 1.0])


@pytest.mark.parametrize("make", [ops.convert_to_tensor, ops.array, keras.Variable])
def test_arrays_that_change_afterwards_change_nothing_here(make):
    array = np.ones(3, "float32")
    made = make(array)
    array[0] = 5.0
    np.testing.assert_array_equal(made.numpy(), [1.0, 1.0, 1.0])


def test_sparse_tensors_are_made_dense_and_ragged_ones_refused():
    given = tf.sparse.from_dense([[0.0, 2.0]])
    for sparse in (True, False):
        np.testing.assert_array_equal(ops.convert_to_tensor(given, sparse=sparse), [[0, 2]])
        np.testing.assert_array_equal(ops.convert_to_tensor([1.0], sparse=sparse), [1])
    with pytest.raises(ValueError, match="[Rr]agged"):
        ops.convert_to_tensor([1.0], ragged=True)
    with pytest.raises(ValueError, match="[Ss]parse"):
        ops.one_hot([1], 2, sparse=True)


# Loops and branches.


def test_cond_and_switch():
    assert float(ops.cond(ops.array(True), lambda: ops.array(1.0), lambda: ops.array(2.0))) == 1.0
    branches = [lambda x: x + 1, lambda x: x * 10]
    assert int(ops.switch(1, branches, ops.array(3))) == 30
    assert int(ops.switch(7, branches, ops.array(3))) == 30


@pytest.mark.parametrize("traced", [False, True])
def test_branches_may_assign(traced):
    first, second = keras.Variable(1.0), keras.Variable(10.0)

    def run(pred):
        def yes():
            first.assign_add(1.0)
            return first * 2.0

        def no():
            second.assign(first + 5.0)
            return second.value

        return ops.cond(pred, yes, no)

    run = tf.function(run, autograph=False) if traced else run
    assert float(run(tf.constant(True))) == 4.0
    assert (float(first), float(second)) == (2.0, 10.0)
    assert float(run(tf.constant(False))) == 7.0
    assert (float(first), float(second)) == (2.0, 7.0)


def test_while_and_fori_loops():
    i, total = ops.while_loop(lambda i, s: i < 5, lambda i, s: (i + 1, s + i), (0, 0))
    assert (int(i), int(total)) == (5, 10)
    assert int(ops.while_loop(lambda i: i < 100, lambda i: i + 1, 0, maximum_iterations=7)) == 7
    assert int(ops.fori_loop(1, 4, lambda i, product: product * i, ops.array(1))) == 6


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_a_running_sum(reverse):
    x = np.arange(4.0, dtype="float32")
    last, sums = ops.scan(lambda carry, x: (carry + x, carry), ops.array(0.0), x, reverse=reverse)
    order = x[::-1] if reverse else x
    before = np.concatenate([[0.0], np.cumsum(order)[:-1]])
    assert float(last) == 6.0
    np.testing.assert_array_equal(sums.numpy(), before[::-1] if reverse else before)


def test_scan_without_inputs_or_outputs():
    last, nothing = ops.scan(lambda carry, _: (carry * 2, None), ops.array(1), length=5)
    assert int(last) == 32 and nothing is None


def test_maps():
    x = np.arange(6.0, dtype="float32").reshape(3, 2)
    np.testing.assert_array_equal(ops.map(lambda row: ops.sum(row) * 2, x).numpy(), [2.0, 10.0, 18.0])
    np.testing.assert_array_equal(ops.vectorized_map(lambda row: row[0] - row[1], x).numpy(), [-1.0] * 3)


@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_cumulative(reverse):
    x = np.arange(1.0, 8.0, dtype="float32")
    expected = np.cumprod(x[::-1])[::-1] if reverse else np.cumprod(x)
    np.testing.assert_allclose(ops.associative_scan(lambda a, b: a * b, x, reverse=reverse).numpy(), expected)


# Slices and places.


def test_slices():
    x = np.arange(12.0, dtype="float32").reshape(3, 4)
    np.testing.assert_array_equal(ops.slice(x, (1, 1), (2, 2)).numpy(), x[1:, 1:3])
    changed = x.copy()
    changed[1:, 2:] = -1
    np.testing.assert_array_equal(ops.slice_update(x, (1, 2), -np.ones((2, 2))).numpy(), changed)
    # A slice that would reach beyond the end is moved back.
    np.testing.assert_array_equal(ops.slice_update(x, (2, 3), -np.ones((2, 2))).numpy(), changed)


def test_slices_whose_place_is_computed():
    x = np.arange(12.0, dtype="float32").reshape(3, 4)

    @tf.function(autograph=False)
    def run(row, column):
        part = ops.slice(x, (row, column), (2, 2))
        return part, ops.slice_update(x, ops.stack([row, column]), part * 0.0)

    part, changed = run(tf.constant(1), tf.constant(2))
    np.testing.assert_array_equal(part.numpy(), x[1:, 2:])
    expected = x.copy()
    expected[1:, 2:] = 0
    np.testing.assert_array_equal(changed.numpy(), expected)


@pytest.mark.parametrize(
    ("reduction", "expected"),
    [(None, [9, 2, 7]), ("add", [10, 2, 10]), ("max", [9, 2, 7]), ("min", [1, 2, 3]), ("mul", [9, 2, 21])],
)
def test_scatter_update(reduction, expected):
    made = ops.scatter_update(np.array([1, 2, 3]), [[0], [2]], np.array([9, 7]), reduction=reduction)
    assert made.numpy().tolist() == expected


def test_scatter_adds_what_meets():
    made = ops.scatter([[0], [2], [0]], np.array([1.0, 2.0, 3.0], "float32"), (4,))
    assert made.numpy().tolist() == [4.0, 0.0, 2.0, 0.0]


# Gradients.


def test_custom_gradients():
    @ops.custom_gradient
    def double(x):
        return x * 2.0, lambda upstream: upstream * 7.0

    x = keras.Variable(3.0)
    with tf.GradientTape() as tape:
        y = double(x)
    assert float(y) == 6.0
    assert float(tape.gradient(y, x)) == 7.0


def test_remat_gives_the_same_gradient():
    x = keras.Variable(0.5)
    remade = keras.remat(lambda v: ops.sin(ops.exp(v)))
    with tf.GradientTape() as tape:
        y = remade(x.value)
    np.testing.assert_allclose(float(tape.gradient(y, x)), np.cos(np.exp(0.5)) * np.exp(0.5), rtol=1e-6)


def test_gradients_stop():
    x = keras.Variable(2.0)
    with tf.GradientTape() as tape:
        y = x * ops.stop_gradient(x)
    assert float(tape.gradient(y, x)) == 2.0


# Shapes of results.


def spec(fn, *shapes, dtype="float32"):
    return backend.compute_output_spec(fn, *[keras.KerasTensor(shape, dtype) for shape in shapes])


def test_shapes_without_computing():
    made = spec(lambda x, y: ops.matmul(x, y), (2, 3), (3, 5))
    assert made.shape == (2, 5) and made.dtype == "float32"


def test_unknown_sizes_stay_unknown():
    assert spec(lambda x: ops.concatenate([x, x], axis=1), (None, 3)).shape == (None, 6)
    assert spec(lambda x: ops.sum(x, axis=0), (None, 3)).shape == (3,)
    assert spec(lambda x: ops.reshape(x, (-1, 4)), (None, 8)).shape == (None, 4)
    assert spec(lambda x: x[:, ::2], (None, 7)).shape == (None, 4)


def test_results_may_be_structures_with_other_things():
    made = spec(lambda x: {"a": x + 1, "b": (x, None, 3)}, (None, 2))
    assert made["a"].shape == (None, 2)
    assert made["b"][1:] == (None, 3)


def test_finding_a_shape_builds_layers_and_changes_nothing():
    layer = keras.layers.Dense(4, kernel_initializer="ones")
    counter = keras.Variable(0)

    def run(x):
        counter.assign_add(1)
        return layer(x)

    assert spec(run, (None, 3)).shape == (None, 4)
    np.testing.assert_array_equal(layer.kernel.numpy(), np.ones((3, 4)))
    assert int(counter) == 0


def test_a_rank_that_depends_on_an_unknown_size_is_an_error():
    with pytest.raises(ValueError, match="rank"):
        spec(lambda x: x if x.shape[0] == 240 else x[0], (None, 2))


# What is missing says so.


def test_what_is_missing_is_named(tmp_path):
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    for format in ("onnx", "openvino", "litert", "torch"):
        with pytest.raises(
            tf.errors.UnimplementedError, match=rf"format='{format}'.*Use `Model.save\(path\)` to store the model"
        ):
            model.export(str(tmp_path / "exported"), format=format)
    assert not (tmp_path / "exported").exists()


@pytest.mark.parametrize("module", ["core", "image", "linalg", "math", "nn", "numpy"])
def test_every_function_that_keras_looks_for_is_there(module):
    source = inspect.getsource(importlib.import_module(f"keras.src.ops.{module}"))
    wanted = set(re.findall(rf"\bbackend\.{module}\.([a-z_0-9]+)", source))
    assert wanted
    found = getattr(backend, module)
    assert [name for name in sorted(wanted) if not callable(getattr(found, name, None))] == []


def test_there_is_one_device():
    with keras.device("cpu:0"):
        pass
    with pytest.raises(ValueError, match="CPU"):
        keras.device("gpu:0")


def test_strings_are_converted_as_by_tensorflow():
    """As with TensorFlow 2.21: arrays and lists of strings, by functions and as inputs of a model."""
    words = np.array(["x", "y"], object)
    for given in (words, words.astype(str), ["x", "y"], [b"x", b"y"]):
        made = keras.ops.convert_to_tensor(given)
        assert made.dtype == tf.string and made.numpy().tolist() == [b"x", b"y"]
    assert keras.ops.convert_to_tensor("x", dtype="string").numpy() == b"x"
    given = keras.Input((1,), name="word", dtype="string")
    model = keras.Model({"word": given}, keras.layers.StringLookup(vocabulary=["x"])(given))
    assert model({"word": words}).numpy().tolist() == [[1], [0]]
    for bad in (None, [None], [1, "x"], object()):
        with pytest.raises(ValueError, match="Cannot convert"):
            keras.ops.convert_to_tensor(bad)
    with pytest.raises(ValueError, match="of type float32"):
        keras.ops.convert_to_tensor(["x"], dtype="float32")


def test_scalar_variables_give_numbers_of_numpy():
    """As with TensorFlow 2.21, a scalar weight is no array without axes."""
    assert type(keras.Variable(1.5).numpy()) is np.float32
    layer = keras.layers.Normalization(axis=None)
    layer.adapt(np.arange(3.0))
    assert [type(weight) for weight in layer.get_weights()[:2]] == [np.float32, np.float32]


def test_integers_of_keras_are_those_of_keras_on_tensorflow():
    """The types are those of Keras 3 on TensorFlow 2.21."""
    assert keras.optimizers.SGD().iterations.dtype == keras.metrics.MeanIoU(3).total_cm.dtype == "int64"
    assert ops.cast([1.5], "int").dtype == ops.cast([1.5], int).dtype == ops.tri(2, dtype=int).dtype == tf.int64
    assert ops.convert_to_tensor(3).dtype == ops.arange(3).dtype == tf.int32
    assert tf.is_tensor(ops.size(np.ones((2, 3)))) and int(ops.size(np.ones((2, 3)))) == 6
    seeds = keras.random.SeedGenerator(3_000_000_000)
    assert seeds.state.dtype == "int64" and seeds.next().numpy().tolist() == [3_000_000_000, 0]


@pytest.mark.parametrize("name", ["dot", "inner", "vdot", "outer", "kron", "tensordot"])
def test_products_of_int8_are_int8(name):
    """As in Keras 3 on TensorFlow 2.21, where only `matmul` and `einsum` of int8 are int32."""
    x = ops.ones((2, 2), "int8")
    arguments = (x, x, 1) if name == "tensordot" else (x, x)
    assert getattr(ops, name)(*arguments).dtype == tf.int8
    assert ops.matmul(x, x).dtype == ops.einsum("ij,jk->ik", x, x).dtype == tf.int32
