"""Rare arguments of functions that are otherwise common. The literals are TensorFlow 2.21's answers."""

import copy
import math

import numpy as np
import pytest

import taut as tf

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize("traced", [False, True])
def test_the_tangent_of_a_variable_is_given_back(traced):
    v = tf.Variable([1.0, 2.0])

    def body():
        with tf.autodiff.ForwardAccumulator(v, tf.constant([0.1, -0.2])) as accumulator:
            doubled = v * 2.0
        return accumulator.jvp((v, doubled))

    own, of_doubled = (tf.function(body) if traced else body)()
    assert np.allclose(own, [0.1, -0.2]) and np.allclose(of_doubled, [0.2, -0.4])


def test_the_tangent_of_another_variable_is_none():
    v, w = tf.Variable(1.0), tf.Variable(1.0)
    with tf.autodiff.ForwardAccumulator(v, 1.0) as accumulator:
        v * w
    assert accumulator.jvp(w) is None and float(accumulator.jvp(w, "zero")) == 0.0


def test_moments_without_weights_are_zero_and_have_gradients():
    x = tf.ones([3, 4])
    weights = tf.concat([tf.zeros([3, 2]), tf.ones([3, 2])], 1)
    with tf.GradientTape() as tape:
        tape.watch(x)
        mean, variance = tf.nn.weighted_moments(x, [0], weights)
        total = tf.reduce_sum(mean) + tf.reduce_sum(variance)
    assert mean.numpy().tolist() == [0.0, 0.0, 1.0, 1.0] and variance.numpy().tolist() == [0.0] * 4
    assert np.allclose(tape.gradient(total, x), [[0.0, 0.0, 1 / 3, 1 / 3]] * 3)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_clipped_gradient_keeps_its_type(dtype):
    ((clipped,), norm) = tf.clip_by_global_norm([tf.constant([4.0, 0.0], dtype)], 2.0, use_norm=tf.constant(5.0))
    assert clipped.dtype == dtype and norm.dtype == tf.float32
    assert np.allclose(tf.cast(clipped, tf.float32), [1.6, 0.0], atol=4e-3)


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(0.0, [0.0, 0.0]), (-1.0, [4.0, 0.0]), (-INF, [NAN, NAN]), (NAN, [NAN, NAN]), (2.0, [2.0, 0.0])],
)
def test_clipping_to_a_norm_that_is_no_limit(limit, expected):
    for given in (limit, tf.constant(limit)):
        ((clipped,), norm) = tf.clip_by_global_norm([tf.constant([4.0, 0.0])], given)
        assert np.array_equal(clipped, expected, equal_nan=True) and float(norm) == 4.0


def test_the_widths_of_bins_are_finite():
    assert tf.histogram_fixed_width(tf.constant([3e38, 100.0]), [-1e38, 3e38], 2).numpy().tolist() == [1, 1]
    assert tf.histogram_fixed_width(tf.constant([3e38, 100.0]), [-3e38, 3e38], 2).numpy().tolist() == [0, 2]
    assert tf.histogram_fixed_width(tf.constant([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0]), [0.0, 5.0], 5).numpy().tolist() == [
        2,
        1,
        1,
        0,
        2,
    ]


@pytest.mark.parametrize(
    ("given", "expected"), [("int8", "float32"), ("int16", "float32"), ("int32", "float64"), ("int64", "float64")]
)
def test_isotonic_regression_of_integers(given, expected):
    values, segments = tf.nn.isotonic_regression(tf.constant([1, 2, 3], given))
    assert values.dtype == expected and values.numpy().tolist() == [2.0, 2.0, 2.0]
    assert segments.numpy().tolist() == [0, 0, 0]


def test_dropout_with_a_longer_noise_shape_broadcasts():
    assert tf.nn.dropout(tf.ones([2, 3]), 0.5, noise_shape=[1, 2, 3]).shape == [1, 2, 3]
    assert tf.nn.dropout(tf.ones([1, 3]), 0.5, noise_shape=[4, 3]).shape == [4, 3]


def test_glimpses_at_offsets_in_pixels():
    image = np.arange(25, dtype=np.float32).reshape(1, 5, 5, 1)

    def glimpse(size, offset, centered):
        made = tf.image.extract_glimpse(image, size, [offset], normalized=False, centered=centered, noise="zero")
        return made[0, :, :, 0].numpy().tolist()

    assert glimpse([3, 3], [0.0, 0.0], True) == [[12, 13, 14], [17, 18, 19], [22, 23, 24]]
    assert glimpse([3, 3], [-2.0, 2.0], True) == [[4, 0, 0], [9, 0, 0], [14, 0, 0]]
    assert glimpse([2, 2], [1.0, 3.0], False) == [[8, 9], [13, 14]]


def test_a_statistic_is_not_trainable_and_copies_keep_what_variables_say():
    on_read, by_sum = tf.VariableSynchronization.ON_READ, tf.VariableAggregation.SUM
    v = tf.Variable([1.0], synchronization=on_read, aggregation=by_sum, name="count")
    assert not v.trainable and tf.Variable(1.0).trainable
    assert tf.Variable(1.0, trainable=True, synchronization=on_read).trainable
    made = copy.deepcopy(v)
    assert (made.synchronization, made.aggregation, made.trainable) == (on_read, by_sum, False)


def test_functions_among_control_inputs_are_called():
    called = []
    with tf.control_dependencies([tf.constant(1.0), lambda: called.append(1)]):
        assert called == [1]


def test_rows_without_elements_are_filled_and_others_keep_their_order():
    sparse = tf.SparseTensor([[2, 3], [2, 2], [0, 1], [0, 3]], [1, 3, 2, 4], [3, 5])
    filled, empty = tf.sparse.fill_empty_rows(sparse, -1)
    assert filled.indices.numpy().tolist() == [[0, 1], [0, 3], [1, 0], [2, 3], [2, 2]]
    assert filled.values.numpy().tolist() == [2, 4, -1, 1, 3] and empty.numpy().tolist() == [False, True, False]


def test_counts_of_a_vector_have_no_rows():
    for values in (np.array([3, 2, 1, 1], np.int32), tf.sparse.from_dense([3, 2, 1, 1])):
        for axis in (0, -1, None):
            counts = tf.sparse.bincount(values, axis=axis)
            assert counts.indices.numpy().tolist() == [[1], [2], [3]] and counts.values.numpy().tolist() == [2, 1, 1]
    counts = tf.sparse.bincount(tf.ragged.constant([[1, 2], [3]]), axis=None)
    assert counts.indices.numpy().tolist() == [[1], [2], [3]]


def test_control_characters_are_ignored_like_invalid_bytes():
    for text, kept in ((b"\x00\xff", b""), (b"a\x01b", b"ab"), (b"\xffa", b"a"), (b"a\x7f", b"a\x7f")):
        made = tf.strings.unicode_transcode(text, "UTF-8", "UTF-8", "ignore", replace_control_characters=True)
        assert made.numpy() == kept
    points, offsets = tf.strings.unicode_decode_with_offsets(
        [b"a\x01b", b"\x02"], "UTF-8", "ignore", replace_control_characters=True
    )
    assert points.to_list() == [[97, 98], []] and offsets.to_list() == [[0, 2], []]
    assert tf.strings.unicode_decode(b"a\x01", "UTF-8", replace_control_characters=True).numpy().tolist() == [97, 65533]


def test_one_tensor_is_stacked_as_a_list_of_one():
    ragged = tf.ragged.constant([[1, 2], [3]])
    assert tf.ragged.stack(ragged).to_list() == [[[1, 2], [3]]] and tf.ragged.stack(ragged).shape == [1, None, None]
    assert tf.ragged.stack(tf.constant([[1, 2], [3, 4]])).to_list() == [[[1, 2], [3, 4]]]


def test_ragged_constants_without_scalars():
    assert tf.ragged.constant([], ragged_rank=1).shape.as_list() == [0, None]
    assert tf.ragged.constant([[], [], []], ragged_rank=2).shape.as_list() == [3, None, None]
    assert tf.ragged.constant([], inner_shape=(0, 100, 20)).shape.as_list() == [0, 100, 20]
    assert tf.ragged.constant([], ragged_rank=1, inner_shape=(100, 20)).shape.as_list() == [0, None, 100, 20]


def test_rows_of_one_length_are_indexed_and_stay_known():
    values = tf.ragged.constant([[1, 2, 3], [4], [5, 6], [], [7, 8, 9], []])
    rows = tf.RaggedTensor.from_uniform_row_length(values, 3)
    assert rows[:, 1].to_list() == [[4], [7, 8, 9]] and rows[:, -3].to_list() == [[1, 2, 3], []]
    assert rows[:, 1, 1:].to_list() == [[], [8, 9]]
    assert rows[:, 1:].shape.as_list() == [2, 2, None] and rows[:, ::-1].shape.as_list() == [2, 3, None]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"index must be in \[-3, 3\), got 3"):
        rows[:, 3]
    with pytest.raises(ValueError, match="must be indexed with a slice"):
        values[:, 0]


def test_ragged_tensors_are_combined_by_the_exclusive_or():
    made = tf.ragged.constant([[True], [False, True]]) ^ tf.ragged.constant([[True], [True, True]])
    assert made.to_list() == [[False], [True, False]]


def test_a_field_of_several_types_keeps_a_ragged_tensor():
    class Words(tf.experimental.ExtensionType):
        words: tf.Tensor | tf.RaggedTensor

    assert isinstance(Words(tf.ragged.constant([["A", "B"], ["C", "D"]])).words, tf.RaggedTensor)
    assert isinstance(Words([["A", "B"]]).words, tf.Tensor)


def test_functions_of_arrays_give_their_one_result():
    assert float(tf.numpy_function(np.square, [np.float32(3.0)], [tf.float32])) == 9.0
    assert tf.numpy_function(lambda: None, [], []) is None
    assert len(tf.numpy_function(lambda x: (x, x), [1.0], [tf.float32, tf.float32])) == 2
    in_trace = tf.function(lambda x: len(tf.numpy_function(np.square, [x], [tf.TensorSpec([], tf.float32)])))
    assert in_trace(tf.constant(3.0)) == 1


def test_integers_beyond_64_bits_are_floats_if_a_float_is_asked_for():
    assert float(tf.constant(10**30, tf.float64)) == 1e30 and float(tf.constant(10**30, tf.float32)) == np.float32(1e30)
    for dtype in (None, tf.int64):
        with pytest.raises(ValueError, match="out of range"):
            tf.constant(10**30, dtype)
    with pytest.raises(ValueError, match="out of range"):
        tf.constant(10**310, tf.float64)


def test_objects_with_tensorflows_protocol_are_tensors():
    class Pair:
        def __tf_tensor__(self, dtype=None, name=None):
            return tf.constant([1.0, 2.0], dtype)

    class Borrowed:
        __array_interface__ = np.arange(3.0).__array_interface__

    assert (
        tf.convert_to_tensor(Pair()).dtype == tf.float32
        and tf.convert_to_tensor(Pair(), tf.float64).dtype == tf.float64
    )
    assert tf.add(Pair(), 1.0).numpy().tolist() == (tf.constant([1.0, 1.0]) + Pair()).numpy().tolist() == [2.0, 3.0]
    assert tf.constant(Borrowed()).shape == [3]


def test_element_types_have_numbers():
    numbers = {1: tf.float32, 2: tf.float64, 3: tf.int32, 7: tf.string, 10: tf.bool, 14: tf.bfloat16, 23: tf.uint64}
    assert all(tf.as_dtype(number) is dtype for number, dtype in numbers.items())
    with pytest.raises(TypeError, match="the number of an element type"):
        tf.as_dtype(100)


def test_coordinates_are_flattened_and_masks_are_cast():
    x, y = tf.meshgrid([1, 2, 3], [[1, 2], [3, 4]])
    assert x.numpy().tolist() == [[1, 2, 3]] * 4 and y.numpy().tolist() == [[i] * 3 for i in (1, 2, 3, 4)]
    assert tf.boolean_mask([1, 2, 3], [1, 0, 1]).numpy().tolist() == [1, 3]


def test_pseudo_inverses_with_one_limit_per_matrix():
    matrix = tf.constant([[1.0, 0.4, 0.5], [0.4, 0.2, 0.25], [0.5, 0.25, 0.35]], tf.float64)
    made = tf.linalg.pinv(tf.stack([matrix, matrix]), rcond=[0.1, 0.0001])
    assert np.allclose(made[0], np.linalg.pinv(matrix.numpy(), 0.1)) and np.allclose(
        made[1], np.linalg.inv(matrix.numpy())
    )


def test_eigenvalues_at_the_ends_of_a_range_are_selected():
    main, off = tf.constant([4.0, 3.0, 2.0, 1.0]), tf.constant([0.5, 0.5, 0.5])
    values = tf.linalg.eigh_tridiagonal(main, off)
    found = tf.linalg.eigh_tridiagonal(main, off, select="v", select_range=(values[1], values[2]))
    assert np.allclose(found, values[1:3])
    assert tf.linalg.eigh_tridiagonal(main, off, select="v", select_range=(30.0, 33.0)).shape == [0]


def test_the_last_axis_of_quantisation_is_an_axis():
    x = tf.constant([[-1.0, 0.3, 2.0], [0.5, 0.8, -4.0]])
    made = [
        tf.quantization.quantize_and_dequantize_v2(x, [0.0] * 3, [0.0] * 3, range_given=False, axis=axis)
        for axis in (-1, 1)
    ]
    assert made[0].numpy().tolist() == made[1].numpy().tolist()
    # Each column has its own scale, the largest magnitude / 127 or 128.
    assert made[0][0, 0] == -1.0 and made[0][1, 1] == np.float32(0.8) and made[0][1, 2] == -4.0
    whole = tf.quantization.quantize_and_dequantize_v2(x, 0.0, 0.0, range_given=False)
    assert float(whole[1, 1]) != float(made[0][1, 1])


def test_elements_that_a_sparse_tensor_stores_are_counted():
    values = tf.sparse.from_dense(np.array([[3, 0, 1, 0], [0, 0, 0, 0], [5, 0, 4, 4]], np.int32))
    weights = tf.sparse.from_dense(np.array([[0.5, 0, 1, 0], [0, 0, 0, 0], [2, 0, 4, 4]], np.float32))
    assert tf.math.bincount(values).numpy().tolist() == [0, 1, 0, 1, 2, 1]
    assert tf.math.bincount(values, binary_output=True).numpy().tolist() == [0, 1, 0, 1, 1, 1]
    assert tf.math.bincount(values, weights).numpy().tolist() == [0.0, 1.0, 0.0, 0.5, 8.0, 2.0]
    rows = [[0, 1, 0, 1, 0, 0], [0] * 6, [0, 0, 0, 0, 2, 1]]
    assert tf.math.bincount(values, axis=-1).numpy().tolist() == rows
    assert tf.math.bincount(tf.sparse.from_dense([1, 0, 2]), axis=-1).numpy().tolist() == [0, 1, 1]
    with pytest.raises(ValueError, match="sparse"):
        tf.math.bincount(values, np.ones([3, 4], np.float32))


def test_ragged_tensors_from_the_rows_of_several_dimensions():
    ids = [[0, 0, 2], [0, 1, 2]]
    assert tf.RaggedTensor.from_nested_value_rowids([1, 2, 3], ids).to_list() == [[[1], [2]], [], [[3]]]
    assert tf.RaggedTensor.from_nested_value_rowids([1, 2, 3], ids, [4, 3]).to_list() == [[[1], [2]], [], [[3]], []]
    with pytest.raises(ValueError, match="one element per dimension, 2, got 1"):
        tf.RaggedTensor.from_nested_value_rowids([1, 2, 3], ids, [4])


def test_strings_of_the_innermost_rows_are_joined():
    rows = tf.ragged.constant([[["a", "b"], ["c"]], [["dd"]]])
    for axis in (-1, 2):
        joined = tf.strings.reduce_join(rows, axis, separator="|")
        assert joined.to_list() == [[b"a|b", b"c"], [b"dd"]]
    deeper = tf.ragged.constant([[[["t", "h"], ["i"]], []], [[["s"]]]])
    assert tf.strings.reduce_join(deeper, -1).to_list() == [[[b"th", b"i"], []], [[b"s"]]]
    assert tf.strings.reduce_join(rows[0], -1).numpy().tolist() == [b"ab", b"c"]


def test_scalars_are_stacked_to_a_vector():
    assert tf.ragged.stack([tf.constant(1), tf.constant(2)]).numpy().tolist() == [1, 2]


def test_windows_without_elements():
    for window in (tf.signal.hann_window, tf.signal.hamming_window):
        assert window(0).shape == [0] and window(1).numpy().tolist() == [1.0]
        assert window(0, periodic=False).shape == [0]


def test_successes_of_trials_with_an_unknown_chance_are_unknown():
    counts = np.array([5, 5, 5, 0, 0, 0], np.float32)
    chances = np.array([0, 1, NAN, -10, 10, NAN], np.float32)
    expected = [0.0, 5.0, NAN, 0.0, 0.0, 0.0]
    generator = tf.random.Generator.from_seed(12345)
    assert np.array_equal(generator.binomial([6], counts, chances, tf.float32), expected, equal_nan=True)
    made = tf.random.stateless_binomial([6], [1, 2], counts, chances, tf.float32)
    assert np.array_equal(made, expected, equal_nan=True)
