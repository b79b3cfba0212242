"""Shapes, tensor specifications, element types, structures and settings."""

import collections.abc
import copy
import operator
import pickle

import numpy as np
import pytest

import taut as tf


def test_ranks_of_shapes():
    shape = tf.TensorShape([2, None])
    assert shape.with_rank_at_least(2) == shape.with_rank_at_most(2) == shape
    shape.assert_has_rank(2)
    shape.assert_same_rank([1, 1])
    tf.TensorShape([2]).assert_is_fully_defined()
    for wrong in (
        lambda: shape.with_rank_at_least(3),
        lambda: shape.with_rank_at_most(1),
        lambda: shape.assert_has_rank(1),
        lambda: shape.assert_same_rank([1]),
        lambda: shape.assert_is_fully_defined(),
        lambda: tf.TensorShape([-1]),
    ):
        with pytest.raises(ValueError):
            wrong()
    with pytest.raises(TypeError):
        tf.TensorShape(["a"])


def test_shapes_in_common():
    shape = tf.TensorShape([2, 3])
    assert shape.most_specific_compatible_shape([2, 4]) == [2, None]
    assert shape.is_subtype_of(tf.TensorShape([None, 3])) and not shape.is_subtype_of(tf.TensorShape([None, 4]))
    one, other = tf.TensorSpec([2]), tf.TensorSpec([3])
    assert one.most_specific_compatible_type(other) == tf.TensorSpec([None])
    assert one.is_subtype_of(tf.TensorSpec([None])) and not tf.TensorSpec([None]).is_subtype_of(one)
    with pytest.raises(ValueError):
        one.most_specific_compatible_type(tf.TensorSpec([3], tf.int32))
    assert tf.type_spec_from_value(tf.ones([2, 3])) == tf.TensorSpec([2, 3])


def test_a_shape_is_one_leaf():
    shapes = {"a": tf.TensorShape([1, 2]), "b": [tf.TensorShape([3])]}
    assert tf.nest.flatten(shapes) == [tf.TensorShape([1, 2]), tf.TensorShape([3])]
    assert tf.nest.map_structure(lambda shape: shape.rank, shapes) == {"a": 2, "b": [1]}
    assert not tf.nest.is_nested(tf.TensorShape([1]))


def test_types_cast_and_compare():
    assert tf.dtypes.cast([1], tf.float32).dtype == tf.float32
    assert tf.dtypes.saturate_cast([300], tf.uint8).numpy().tolist() == [255]
    assert tf.float32.is_compatible_with("float32") and not tf.float32.is_compatible_with(tf.int32)
    assert tf.int32.is_numeric and not tf.bool.is_numeric and not tf.int32.is_quantized


def test_symbols():
    seen = []
    tf.function(lambda x: seen.append(tf.is_symbolic_tensor(x)))(tf.ones([2]))
    assert seen == [True] and not tf.is_symbolic_tensor(tf.ones([2])) and not tf.is_symbolic_tensor(np.ones(2))


def test_devices():
    cpu = tf.config.list_physical_devices("CPU")
    tf.config.set_visible_devices([], "GPU")
    tf.config.set_visible_devices(cpu[0], "CPU")
    assert tf.config.get_visible_devices() == tf.config.experimental.list_physical_devices() == cpu
    with pytest.raises(ValueError):
        tf.config.set_visible_devices([], "CPU")


def test_threads():
    tf.config.threading.set_inter_op_parallelism_threads(4)
    assert tf.config.threading.get_inter_op_parallelism_threads() == 1
    with pytest.raises(ValueError):
        tf.config.threading.set_inter_op_parallelism_threads(-1)


def test_errors_say_what_went_wrong():
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.matmul(tf.ones([2, 3]), tf.ones([2, 3]))
    assert "matmul" in caught.value.message


def test_tapes_are_among_derivatives():
    assert tf.autodiff.GradientTape is tf.GradientTape


def test_choices_are_functions():
    for wrong in ({}, {"true_fn": 1, "false_fn": 2}):
        with pytest.raises(TypeError, match="must be callable"):
            tf.cond(True, **wrong)


X = tf.ones([2, 3])
UNKNOWN = tf.TensorShape(None)

# TensorFlow 2.21's answers.
AS_TEXT = {
    "%s": (operator.mod("%s", tf.ones([3]).shape), "(3,)"),
    "%s of a matrix": (operator.mod("%s", X.shape), "(2, 3)"),
    "%r": (operator.mod("%r", X.shape), "TensorShape([2, 3])"),
    "format": (f"{tf.ones([]).shape} {UNKNOWN}", "() <unknown>"),
}


@pytest.mark.parametrize("text, wanted", AS_TEXT.values(), ids=AS_TEXT)
def test_shapes_are_formatted_as_one_value(text, wanted):
    assert text == wanted


def test_shapes_are_no_tuples():
    shape = X.shape
    assert not isinstance(shape, (tuple, list)) and isinstance(shape, collections.abc.Hashable)
    # Packages that work with arrays of any kind ask for a sequence. TensorFlow's shapes can only be iterated over.
    assert isinstance(shape, collections.abc.Sequence)
    assert shape.index(3) == 1 and shape.count(3) == 1
    with pytest.raises(TypeError):
        shape * 2
    with pytest.raises(TypeError):
        shape < (3,)


def test_a_shape_is_true_if_its_rank_is_known():
    assert tf.ones([]).shape and tf.TensorShape([0]) and not UNKNOWN


def test_shapes_equal_tuples_lists_and_sizes():
    assert X.shape == (2, 3) and (2, 3) == X.shape and X.shape == [2, 3] and tf.ones([3]).shape == 3
    assert X.shape != (3, 2) and X.shape != "ab" and X.shape != 5 and X.shape is not None and not X.shape == None
    assert UNKNOWN == None and UNKNOWN == tf.TensorShape(None) and UNKNOWN != tf.TensorShape([2])
    assert {X.shape: 1}[2, 3] == 1 and (1, 2) in [tf.TensorShape([1, 2])]


def test_shapes_are_joined_and_sliced():
    shape = X.shape
    assert repr([4] + shape + 5) == "TensorShape([4, 2, 3, 5])" and repr((4,) + shape) == "TensorShape([4, 2, 3])"
    assert repr(shape + None) == "TensorShape(None)" and repr(shape[::-1]) == "TensorShape([3, 2])"
    assert repr(UNKNOWN[1:3]) == "TensorShape([None, None])" and UNKNOWN[0] is None
    assert shape[-1] == 3 and list(reversed(shape)) == [3, 2] and max(shape) == 3 and 2 in shape
    for refused in (lambda: len(UNKNOWN), lambda: list(UNKNOWN), lambda: 2 in UNKNOWN, UNKNOWN.as_list):
        with pytest.raises(ValueError):
            refused()
    assert shape.most_specific_common_supertype([tf.TensorShape([2, 4])]) == [2, None]
    assert pickle.loads(pickle.dumps(UNKNOWN)) is UNKNOWN and copy.deepcopy(shape) == shape


def test_numpy_takes_shapes():
    assert np.zeros(X.shape).shape == (2, 3) and np.prod(X.shape) == 6 and np.array([X.shape, X.shape]).shape == (2, 2)


# Each is a tensor of these values and this type in TensorFlow.
AS_TENSORS = {
    "constant": (lambda: tf.constant(X.shape), [2, 3], "int32"),
    "of a type": (lambda: tf.constant(X.shape, tf.float32), [2.0, 3.0], "float32"),
    "of no sizes": (lambda: tf.constant(tf.TensorShape([])), [], "int32"),
    "nested": (lambda: tf.constant([X.shape, X.shape]), [[2, 3], [2, 3]], "int32"),
    "stack": (lambda: tf.stack([X.shape, X.shape]), [[2, 3], [2, 3]], "int32"),
    "concat": (lambda: tf.concat([X.shape, [4]], 0), [2, 3, 4], "int32"),
    "add": (lambda: tf.add(X.shape, 1), [3, 4], "int32"),
    "result of a function": (lambda: tf.function(lambda x: x.shape)(X), [2, 3], "int32"),
    "result of a branch": (
        lambda: tf.function(lambda x: tf.cond(x[0, 0] > 0, lambda: x.shape, lambda: x.shape))(X),
        [2, 3],
        "int32",
    ),
    "result of a map": (lambda: tf.map_fn(lambda row: row.shape, X, fn_output_signature=tf.int32), [[3], [3]], "int32"),
    "element": (
        lambda: next(iter(tf.data.Dataset.from_tensors(X).map(lambda x: (x.shape, x))))[0],
        [2, 3],
        "int32",
    ),
}


@pytest.mark.parametrize("made, values, dtype", AS_TENSORS.values(), ids=AS_TENSORS)
def test_shapes_become_tensors(made, values, dtype):
    tensor = made()
    assert tensor.numpy().tolist() == values and tensor.dtype.name == dtype


def test_shapes_that_are_not_known_are_no_tensors():
    with pytest.raises(ValueError, match="every size must be known"):
        tf.constant(tf.TensorShape([None, 2]))


def test_a_shape_is_a_value_of_python_in_arguments():
    assert tf.function(lambda shape: tf.ones(shape))(X.shape).shape == (2, 3)
    assert tf.function(lambda shape: shape.rank)(X.shape).numpy() == 2


# What TensorFlow 2.21 selects from a tensor of the shape (2, 3, 4) that counts from 0.
LISTS = {
    "two integers": ([0, 2], [8, 9, 10, 11]),
    "three integers": ([0, 1, 2], 6),
    "no entry": ([], np.arange(24).reshape(2, 3, 4).tolist()),
    "an integer and a slice": ([0, slice(1, 3)], [[4, 5, 6, 7], [8, 9, 10, 11]]),
    "an ellipsis": ([..., 1], [[1, 5, 9], [13, 17, 21]]),
    "a new axis": ([None, 0, 1], [[4, 5, 6, 7]]),
}


@pytest.mark.parametrize("key, wanted", LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("kind", [tf.constant, tf.Variable])
def test_a_list_as_a_subscript_has_one_entry_for_each_axis(key, wanted, kind):
    x = kind(np.arange(24).reshape(2, 3, 4))
    assert x[key].numpy().tolist() == wanted
    assert tf.function(lambda x: x[key])(x).numpy().tolist() == wanted


def test_lists_of_rows_are_refused_with_the_function_that_takes_them():
    with pytest.raises(tf.errors.InvalidArgumentError, match="tf.gather selects rows"):
        tf.range(5)[[0, 2]]
    assert tf.range(5)[np.array([0, 2])].numpy().tolist() == [0, 2]
    assert tf.range(2)[[True, False]].numpy().tolist() == [0]


def test_keras_writes_and_reads_shapes():
    from keras.saving import deserialize_keras_object, serialize_keras_object

    import taut.keras  # noqa: F401

    written = serialize_keras_object({"shape": tf.TensorShape([2, None])})
    assert written == deserialize_keras_object(written) == {"shape": [2, None]}  # as with TensorFlow
