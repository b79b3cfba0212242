"""Shapes, tensor specifications, element types, structures and settings."""

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
