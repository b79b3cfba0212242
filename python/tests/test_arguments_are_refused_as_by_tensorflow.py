"""What TensorFlow 2.21 refuses is no result here: no argument is cut, broadcast or ignored in silence."""

import dataclasses
import os
import types

import numpy as np
import pytest

import taut as tf

IMAGE = tf.constant(np.arange(12, dtype=np.uint8).reshape(2, 2, 3))
SQUARE = np.zeros((2, 1, 1, 1), np.float32)
SPARSE = tf.SparseTensor([[0, 0], [0, 2], [2, 0]], [3, 1, 5], [3, 4])


def quantized(x, low, high, axis=None):
    return tf.quantization.quantize_and_dequantize_v2(x, low, high, range_given=True, axis=axis)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tf.image.adjust_contrast(IMAGE, [2.0]), "contrast_factor must be a scalar"),
        (lambda: tf.image.adjust_saturation(IMAGE, [2.0]), "saturation_factor must be a scalar"),
        (lambda: tf.image.adjust_hue(IMAGE, 1.5), r"delta must be in \[-1, 1\], got 1.5"),
        (lambda: tf.image.adjust_hue(IMAGE, tf.constant(-1.5)), r"delta must be in \[-1, 1\]"),
        (lambda: tf.image.adjust_gamma(IMAGE, tf.constant(-1.0)), "gamma must be >= 0, got -1"),
        (lambda: tf.image.crop_and_resize(SQUARE, [[1e40, 0, 0, 0]], [1], [1, 1]), "boxes must be finite"),
        (lambda: tf.image.crop_and_resize(SQUARE, [[np.nan, 0, 0, 0]], [1], [1, 1]), "boxes must be finite"),
        (lambda: tf.image.resize(SQUARE, tf.constant([6.0, 4.0])), "size must be two integers"),
        (lambda: tf.image.resize(SQUARE, [6.0, 4.0]), "size must be two integers"),
        (lambda: tf.nn.dropout(tf.ones([2, 3]), 0.5, noise_shape=[2, 3, 10]), "broadcast"),
        (lambda: tf.nn.dropout(tf.ones([2, 3]), [0.5, 0.5]), "rate must be a scalar"),
        (lambda: tf.signal.frame([1.0], [1], 1), "frame_length must be a scalar"),
        (lambda: tf.signal.frame([1.0], 1, 1, pad_end=True, pad_value=[1.0]), "pad_value must be a scalar"),
        (lambda: tf.strings.substr([["abc", "def"]], [[1, 2]], [1, 2]), "pos and len must have one shape"),
        (lambda: tf.strings.unicode_decode("x", "UTF-8", replacement_char=0x110000), "replacement_char must be"),
        (lambda: tf.histogram_fixed_width([np.nan, 1.0], [0.0, 5.0]), "values must not be NaN"),
        (lambda: tf.sparse.bincount(SPARSE, tf.sparse.reset_shape(SPARSE, [4, 4]), axis=-1), "the shape of values"),
        (
            lambda: tf.sparse.bincount(SPARSE, tf.SparseTensor([[0, 0], [0, 1], [2, 0]], [3, 1, 5], [3, 4]), axis=-1),
            "the indices of values",
        ),
        (
            lambda: tf.random.uniform_candidate_sampler(tf.constant([[0, 10]], tf.int64), 2, 1, True, 3),
            r"true_classes must be in \[0, 3\)",
        ),
        (lambda: quantized([[2.5, 2.5]], [0.0, 0], [1.0, 1], axis=5), r"axis must be in \[-2, 2\), got 5"),
        (lambda: quantized([[2.5, 2.5]], [0.0] * 3, [1.0] * 3, axis=1), "one element per index of axis 1"),
        (lambda: quantized([2.5, 0.5], 2.0, 1.0), "input_min must be <= input_max"),
        (lambda: tf.ragged.constant([[[1], [2]]], ragged_rank=-1), "ragged_rank must be >= 0, got -1"),
        (lambda: tf.ragged.constant([1, 2, 3], inner_shape=(1, 1)), "cannot reshape 3 elements"),
        (
            lambda: tf.ragged.constant([[[1, 2], [3, 4]]], inner_shape=(2, 2), ragged_rank=1),
            "got ragged_rank 1 and inner_shape",
        ),
        (lambda: tf.SparseTensor([0, 1], [1.0, 2.0], [2]), "indices must have rank 2"),
        (lambda: tf.io.decode_base64("aGVsbG8/Pg=="), "web-safe base64"),
        (lambda: tf.RaggedTensor.from_row_lengths([1, 2, 3], [[1, 2]]), "row_lengths must have rank 1"),
        (lambda: tf.RaggedTensor.from_row_lengths([1, 2, 3], [1.0, 2.0]), "row_lengths must be int32 or int64"),
        (lambda: tf.RaggedTensor.from_row_splits([1, 2, 3], [0.0, 3.0]), "row_splits must be int32 or int64"),
        (lambda: tf.RaggedTensor.from_row_starts([1, 2, 3], [0.0, 1.0]), "row_starts must be int32 or int64"),
        (lambda: tf.RaggedTensor.from_row_limits([1, 2, 3], [1.0, 3.0]), "row_limits must be int32 or int64"),
        (lambda: tf.RaggedTensor.from_value_rowids([1, 2, 3], [0.0, 0, 1]), "value_rowids must be int32 or int64"),
        (lambda: tf.RaggedTensor.from_value_rowids([1, 2, 3], [-1, 0, 0]), "value_rowids must be >= 0"),
        (lambda: tf.RaggedTensor.from_tensor([[1]], lengths=[0], padding=0), "not both"),
        (lambda: tf.RaggedTensor.from_tensor([[1]], padding=[1]), "padding must have the shape of an element"),
        (lambda: tf.RaggedTensor.from_tensor([[[1]]], padding=1), "padding must have the shape of an element"),
        (lambda: tf.ragged.boolean_mask([[1, 2], [3, 4]], [True]), "one element per row, 2, got 1"),
    ],
)
def test_a_value_that_does_not_fit_is_refused(call, text):
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=text):
        call()


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: tf.strings.substr("test", 3.0, 1), "pos must be integers"),
        (lambda: tf.strings.substr("test", 3, 1.0), "len must be integers"),
        (lambda: tf.RaggedTensor.from_tensor([[1]], lengths=[0.5]), "lengths must be integers"),
        (lambda: tf.ragged.constant([[1, 2], [3]])[0.5], "an index must be an integer"),
        (lambda: tf.ragged.boolean_mask([[1, 2], [3, 4]], [[1, 0], [0, 1]]), "mask must be bool"),
        (lambda: tf.image.crop_and_resize(SQUARE, [[0.0, 0, 0, 0]], [1], [1.5, 1]), "expected integers"),
        (lambda: tf.reshape(tf.zeros([4]), [2.5, 2]), "integer"),
    ],
)
def test_a_type_that_does_not_fit_is_refused(call, text):
    with pytest.raises(TypeError, match=text):
        call()


def test_whole_numbers_in_floats_are_integers():
    assert tf.nn.conv2d(tf.zeros([1, 4, 4, 4]), tf.zeros([2, 2, 4, 4]), 2.0, "SAME").shape == [1, 2, 2, 4]
    assert tf.squeeze(tf.zeros([4, 1]), 1.0).shape == [4]


def test_values_are_checked_when_a_traced_function_runs():
    gamma = tf.function(lambda g: tf.image.adjust_gamma(tf.ones([1, 1, 3]), g))
    boxes = tf.function(lambda b: tf.image.crop_and_resize(SQUARE, b, [1], [1, 1]))
    assert gamma(tf.constant(2.0)).shape == [1, 1, 3] and boxes(tf.zeros([1, 4])).shape == [1, 1, 1, 1]
    with pytest.raises(tf.errors.InvalidArgumentError, match="gamma must be >= 0"):
        gamma(tf.constant(-1.0))
    with pytest.raises(tf.errors.InvalidArgumentError, match="boxes must be finite"):
        boxes(tf.constant([[np.inf, 0, 0, 0]]))


def test_rows_out_of_range_are_not_divided():
    v = tf.Variable([1.0, 2.0, 3.0])
    for row in (-1, 3):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"indices must be in \[0, 3\)"):
            v.scatter_div(tf.IndexedSlices([5.0, 2.0], [row, 0]))
    assert v.numpy().tolist() == [1.0, 2.0, 3.0]
    assert v.scatter_div(tf.IndexedSlices([2.0], [2])).numpy().tolist() == [1.0, 2.0, 1.5]


def test_an_assigned_value_is_not_broadcast():
    v = tf.Variable([0, 1, 2, 3])
    for assign in (v.assign, v.assign_add, v.assign_sub):
        for value in (1, [1], tf.constant(1), np.ones(3, np.int32)):
            with pytest.raises(ValueError, match=r"the value must have the variable's shape \[4\]"):
                assign(value)
            with pytest.raises(ValueError, match=r"the value must have the variable's shape \[4\]"):
                tf.function(lambda assign=assign, value=value: assign(value))()
    assert v.numpy().tolist() == [0, 1, 2, 3]
    assert v.assign_add([1, 1, 1, 1]).numpy().tolist() == [1, 2, 3, 4]
    assert float(tf.Variable(1.0).assign_add(2.0)) == 3.0


def test_a_concrete_function_of_ragged_tensors_checks_its_arguments():
    function = tf.function(lambda x: x * 2).get_concrete_function(tf.ragged.constant([[1, 2], [3]]))
    assert function(tf.ragged.constant([[4], [5, 6]])).to_list() == [[8], [10, 12]]
    for wrong in (5, tf.constant([1, 2]), tf.ragged.constant([[1.0, 2.0], [3.0]]), tf.ragged.constant([[[1]], [[3]]])):
        with pytest.raises(TypeError, match="expected RaggedTensorSpec"):
            function(wrong)
    with pytest.raises(TypeError):
        function()
    of_sparse = tf.function(tf.sparse.to_dense).get_concrete_function(SPARSE)
    assert of_sparse(SPARSE).shape == [3, 4]
    with pytest.raises(TypeError):
        of_sparse()


@dataclasses.dataclass
class Settings:
    rate: float


@pytest.mark.parametrize(
    "argument", [{1, 2}, bytearray(b"a"), Settings(0.5), [Settings(0.5)], types.SimpleNamespace(rate=0.5)]
)
def test_an_argument_that_may_change_and_cannot_be_compared_is_refused(argument):
    f = tf.function(lambda x, other: x)
    with pytest.raises(TypeError, match=r"must be hashable, got .*\n  at .*test_arguments_are_refused.*\n  help: pass"):
        f(tf.constant(1.0), argument)


def test_hashable_objects_are_arguments():
    f = tf.function(lambda x, other: x * len(other))
    assert [float(f(2.0, other)) for other in (frozenset({1}), b"ab", range(3), {"a": 1})] == [2.0, 4.0, 6.0, 2.0]


@pytest.mark.parametrize(
    "argument", [{"a": [1.0]}, {"a": [1.0], "c": [1]}, {"a": [1.0], "b": [1], "c": 1}, {"a": [1.0], "b": [1, 2]}, 3.0]
)
def test_an_argument_has_the_structure_of_the_input_signature(argument):
    spec = {"a": tf.TensorSpec([None]), "b": [tf.TensorSpec([], tf.int32)]}
    f = tf.function(lambda d: tf.reduce_sum(d["a"]), input_signature=[spec])
    assert float(f({"a": [1.0, 2.0], "b": [1]})) == 3.0
    with pytest.raises(TypeError, match="input_signature|by its input signature"):
        f(argument)


def test_a_number_of_another_type_is_not_assigned():
    counter = tf.Variable(1)
    for assign in (counter.assign, counter.assign_add, counter.assign_sub):
        with pytest.raises(TypeError, match="must be assigned values of its type, got 2.5"):
            assign(2.5)
    assert counter.assign(True).numpy() == 1


def test_errors_in_numpys_functions_name_the_line_that_calls_them():
    @tf.function
    def f(x):
        return np.sort(x)  # this line

    line = f.python_function.__code__.co_firstlineno + 2
    with pytest.raises(tf.errors.OperatorNotAllowedInGraphError, match=rf"at .*{os.path.basename(__file__)}:{line}\n"):
        f(tf.constant([2.0, 1.0]))
