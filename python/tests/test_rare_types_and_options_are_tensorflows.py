"""Lists of several types, structures of composite tensors, images, paddings and coordinates. The literals are TensorFlow 2.21's."""

import numpy as np
import pytest

import taut as tf

RAGGED = tf.ragged.constant([[[1], [2, 3]], [[4]]])
SPARSE = tf.SparseTensor([[0, 1]], [5], [2, 2])


def lists(structure):
    return [np.asarray(part).tolist() for part in structure]


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([np.float32(1), 2], "float32"),
        ([np.float32(1), 2.5], "float32"),
        ([np.float32(1), np.float64(2)], "float32"),
        ([[np.float32(1), 2], [3, 4]], "float32"),
        ([np.array([1.0], np.float32), [2.0]], "float32"),
        ([np.array([1.0], np.float32), np.array([2.0])], "float32"),
        ([np.float16(1), 2.5], "float16"),
        ([np.int32(1), 2.5], "float32"),
        ([np.array([1]), np.array([2.0])], "float32"),
        ([np.int8(1), 2], "int32"),
        ([np.array([1, 2], np.int32), [2, 3]], "int32"),
        ([np.int32(1), 2**40], "int64"),
        ([np.float64(1), 2], "float64"),
        ([np.float64(1), np.float32(2)], "float64"),
        ([2, np.float64(1)], "float32"),
        # TensorFlow makes int32 of these two.
        ([np.int64(1), np.int64(2)], "int64"),
        ([np.uint8(3), np.uint8(4)], "uint8"),
    ],
)
def test_a_list_has_the_type_of_its_first_element(values, dtype):
    made = tf.constant(values)
    assert made.dtype.name == dtype
    assert made.numpy().tolist() == np.asarray(values).tolist()
    assert tf.Variable(values).dtype.name == dtype
    assert tf.data.Dataset.from_tensor_slices(values).element_spec.dtype.name == dtype


def test_numbers_beyond_the_type_of_the_first_stay_as_they_are():
    assert tf.constant([np.float16(1), 70000.0]).numpy().tolist() == [1.0, 70000.0]
    assert tf.constant([np.float32(1), 1e300]).numpy().tolist() == [1.0, 1e300]


def test_composites_are_flattened_into_their_components():
    assert lists(tf.nest.flatten(RAGGED, expand_composites=True)) == [[1, 2, 3, 4], [0, 2, 3], [0, 1, 3, 4]]
    assert lists(tf.nest.flatten({"b": SPARSE, "a": 1}, True)) == [1, [[0, 1]], [5], [2, 2]]
    slices = tf.IndexedSlices(tf.constant([1.0]), tf.constant([0]))
    assert lists(tf.nest.flatten(slices, True)) == [[1.0], [0]]
    assert lists(tf.nest.flatten(tf.IndexedSlices(slices.values, slices.indices, [3]), True)) == [[1.0], [0], [3]]
    assert tf.nest.flatten([RAGGED]) == [RAGGED]


def test_composites_of_extension_types_are_flattened():
    class Pair(tf.experimental.ExtensionType):
        values: tf.Tensor
        count: int
        rows: tf.RaggedTensor

    pair = Pair(tf.constant([1]), 5, tf.ragged.constant([[1, 2]]))
    assert lists(tf.nest.flatten(pair, True)) == [[1], [1, 2], [0, 2]]
    doubled = tf.nest.pack_sequence_as(pair, [tf.constant([2]), tf.constant([2, 4]), tf.constant([0, 2])], True)
    assert doubled.count == 5 and doubled.values.numpy().tolist() == [2] and doubled.rows.to_list() == [[2, 4]]


def test_composites_are_packed_and_mapped():
    rows = tf.ragged.constant([[1], [2, 3]])
    packed = tf.nest.pack_sequence_as(rows, [tf.constant([7, 8, 9]), tf.constant([0, 2, 3])], expand_composites=True)
    assert packed.to_list() == [[7, 8], [9]]
    assert tf.nest.map_structure(lambda x: x, {"a": rows}, expand_composites=True)["a"].to_list() == [[1], [2, 3]]
    assert tf.nest.map_structure(tf.identity, SPARSE, expand_composites=True).values.numpy().tolist() == [5]
    with pytest.raises(ValueError, match="row_splits must"):
        tf.nest.pack_sequence_as(rows, [tf.constant([7, 8, 9]), tf.constant([0, 2, 6])], expand_composites=True)
    tf.nest.assert_same_structure(rows, tf.ragged.constant([[5]]), expand_composites=True)
    for other in (tf.constant([[1]]), SPARSE):
        with pytest.raises(ValueError, match="structures must match"):
            tf.nest.assert_same_structure(rows, other, expand_composites=True)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_a_range_has_the_widest_type_given(dtype):
    limit = tf.constant(3, dtype)
    assert tf.range(limit).dtype.name == tf.range(0, limit).dtype.name == tf.range(limit, 5).dtype.name == dtype
    assert tf.range(0.0, limit).dtype.name == ("float64" if dtype == "float64" else "float32")


def test_coordinates_out_of_range_are_ignored_on_demand():
    ignore = {"bad_indices_policy": "IGNORE"}
    assert tf.gather_nd([1, 2], [[2], [-1], [1]], **ignore).numpy().tolist() == [0, 0, 2]
    assert tf.gather_nd([[1, 2], [3, 4]], [[5], [1]], **ignore).numpy().tolist() == [[0, 0], [3, 4]]
    assert tf.gather_nd([[1, 2], [3, 4]], [[[5]], [[1]]], batch_dims=1, **ignore).numpy().tolist() == [[0], [4]]
    assert tf.scatter_nd([[5], [0]], [1, 2], [3], **ignore).numpy().tolist() == [2, 0, 0]
    assert tf.tensor_scatter_nd_add([1, 2], [[5], [0]], [1, 2], **ignore).numpy().tolist() == [3, 2]
    assert tf.tensor_scatter_nd_sub([1, 2], [[5], [0]], [1, 2], **ignore).numpy().tolist() == [-1, 2]
    assert tf.tensor_scatter_nd_max([1, 2], [[-1], [0]], [1, 9], **ignore).numpy().tolist() == [9, 2]
    found = tf.tensor_scatter_nd_min([[1, 2], [3, 4]], [[0, 0], [0, 3]], [-5, 2], **ignore)
    assert found.numpy().tolist() == [[-5, 2], [3, 4]]
    with pytest.raises(IndexError):
        tf.gather_nd([1, 2], [[2]], bad_indices_policy="ERROR")
    with pytest.raises(ValueError, match="bad_indices_policy must be one of"):
        tf.scatter_nd([[0]], [1], [3], bad_indices_policy="ignore")


def test_boxes_without_colors_have_ten():
    places = [[[i / 12, i / 12, 1.0, 1.0] for i in range(11)]]
    drawn = tf.image.draw_bounding_boxes(tf.fill([1, 25, 25, 4], 0.25), places, None).numpy()
    colors = [drawn[0, 2 * i, 24].tolist() for i in range(11)]
    assert colors[:2] == [[1.0, 1.0, 0.0, 1.0], [0.0, 0.0, 1.0, 1.0]]
    assert colors[8:] == [[0.0, 1.0, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]]
    gray = tf.image.draw_bounding_boxes(tf.zeros([1, 5, 5, 1]), [[[0.0, 0.0, 1.0, 1.0]] * 3], None)
    assert float(tf.reduce_sum(gray)) == 16.0


def test_standardised_images_are_float32():
    image = tf.reshape(tf.range(12, dtype=tf.float64), [2, 2, 3])
    for dtype in (tf.uint8, tf.float16, tf.bfloat16, tf.float64):
        made = tf.image.per_image_standardization(tf.cast(image, dtype))
        assert made.dtype == tf.float32
        assert np.allclose(made.numpy().ravel()[[0, 11]], [-1.5932548, 1.5932548], atol=1e-5)


def test_images_of_wrong_types_and_ranges_are_refused():
    image = tf.zeros([2, 2, 3], tf.uint8)
    with pytest.raises(TypeError, match="differences"):
        tf.image.total_variation(image)
    with pytest.raises(TypeError, match="integers or floats, got bool"):
        tf.image.convert_image_dtype(tf.constant([True]), tf.float32)
    for change in (tf.image.random_hue, lambda x, most: tf.image.stateless_random_hue(x, most, [1, 2])):
        with pytest.raises(ValueError, match=r"max_delta must be in \[0, 0.5\], got 0.9"):
            change(image, 0.9)
    for random in (tf.image.random_saturation, tf.image.random_contrast):
        with pytest.raises(ValueError, match="lower must be >= 0, got -1"):
            random(image, -1, 0.5)
    for stateless in (tf.image.stateless_random_saturation, tf.image.stateless_random_contrast):
        with pytest.raises(ValueError, match="lower must be >= 0, got -1"):
            stateless(image, -1, 0.5, [1, 2])


def test_counts_take_floats():
    assert tf.math.bincount([1.7, 2.2]).numpy().tolist() == [0, 1, 1]
    assert tf.math.confusion_matrix([0.5, 1.0], [0.0, 1.0]).numpy().tolist() == [[1, 0], [0, 1]]


def test_small_differences():
    assert tf.stack([]).shape == (0,) and tf.stack([]).dtype == tf.float32
    assert tf.stop_gradient([1.0, 2.0]).numpy().tolist() == [1.0, 2.0]
    assert tf.math.approx_max_k([1.0, 5.0, 3.0], 2).indices.numpy().tolist() == [1, 2]
    assert tf.nn.approx_min_k([1.0, 5.0, 3.0], 2).values.numpy().tolist() == [1.0, 3.0]
    assert int(tf.ragged.constant(3)) == 3
    cross = tf.experimental.numpy.cross
    assert int(cross([1, 2], [4, 5])) == -3
    assert cross([[1, 2]], [[4, 5, 6]]).numpy().tolist() == [[12, -6, -3]]
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"index 0 must lie in the shape \(2, 2\), got \[0, 5\]"):
        tf.sparse.to_dense(tf.SparseTensor([[0, 5]], [1], [2, 2]))


def test_paddings_have_the_containers_of_the_elements():
    data = tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": [3, 4]})
    with pytest.raises(TypeError, match="padded_shapes must have the containers"):
        data.padded_batch(2, padded_shapes=([], []))
    with pytest.raises(ValueError, match=r"padding_values must have the keys \['a', 'b'\]"):
        data.padded_batch(2, padding_values={"a": 0, "c": 0})
    with pytest.raises(TypeError, match="padded_shapes must have the containers"):
        tf.data.Dataset.from_tensors((1, 2)).padded_batch(2, padded_shapes={"a": [], "b": []})


def test_datasets_to_choose_from_have_one_type():
    numbers, texts = tf.data.Dataset.range(2), tf.data.Dataset.from_tensors("a")
    with pytest.raises(TypeError, match="choose_from_datasets: elements must have one type"):
        tf.data.Dataset.choose_from_datasets([numbers, texts], numbers)


def test_generators_take_the_states_of_three_integers():
    one = tf.random.Generator.from_state(tf.random.experimental.create_rng_state(7, "philox"), alg="philox")
    assert one.algorithm == 1
    assert one.normal([3]).numpy().tolist() == tf.random.Generator.from_seed(7).normal([3]).numpy().tolist()
    drawn = [tf.random.Generator.from_state([1, 2, last], "philox").uniform([2]).numpy().tolist() for last in (3, 4, 3)]
    assert drawn[0] == drawn[2] != drawn[1]


def test_coordinates_of_ragged_tensors_are_checked():
    rows = tf.ragged.constant([[1, 2], [5, 3]])
    assert tf.gather_nd(rows, [[0, 1], [1, 0]]).numpy().tolist() == [2, 5]
    with pytest.raises(ValueError, match="bad_indices_policy must be 'ERROR' for ragged tensors"):
        tf.gather_nd(rows, [[0, 1]], bad_indices_policy="IGNORE")


IMAGE = tf.reshape(tf.cast(tf.range(12), tf.uint8), [2, 2, 3])


@pytest.mark.filterwarnings("ignore:.*runs op by op")
@pytest.mark.parametrize(
    ("make", "value"),
    [
        (lambda x: tf.io.decode_png(tf.io.encode_png(x)), IMAGE),
        (lambda x: tf.io.parse_tensor(tf.io.serialize_tensor(x), tf.float32), tf.constant([1.5, 2.0])),
        (lambda x: tf.strings.unicode_decode(tf.strings.unicode_encode(x, "UTF-8"), "UTF-8"), tf.constant([97, 241])),
    ],
)
def test_strings_of_traced_numbers(make, value):
    traced = tf.function(make, autograph=False)
    assert traced(value).numpy().tolist() == value.numpy().tolist()
    assert tf.function(lambda: make(value), autograph=False)().numpy().tolist() == value.numpy().tolist()


@pytest.mark.filterwarnings("ignore:.*runs op by op")
def test_scripts_and_jpeg_of_traced_numbers():
    assert tf.function(tf.strings.unicode_script)(tf.constant([97, 1041])).numpy().tolist() == [25, 8]
    encode = tf.function(lambda x: tf.io.encode_jpeg(x, quality=100), autograph=False)
    assert tf.io.extract_jpeg_shape(encode(IMAGE)).numpy().tolist() == [2, 2, 3]


def test_rows_of_constants_are_read_in_functions():
    made = tf.function(lambda: tf.io.decode_csv(["1,2.5,a", "3,,b"], [[0], [1.0], [""]]), autograph=False)()
    assert [column.numpy().tolist() for column in made] == [[1, 3], [2.5, 1.0], [b"a", b"b"]]


def test_embeddings_of_constant_ids_have_a_plan():
    ids = tf.ragged.constant([[1, 2], [3]])
    look = tf.function(lambda table: tf.nn.embedding_lookup_sparse(table, ids, None, combiner="mean"), autograph=False)
    table = tf.reshape(tf.range(8.0), [4, 2])
    assert look(table).numpy().tolist() == [[3.0, 4.0], [6.0, 7.0]]
    assert look.plan(tf.TensorSpec([4, 2])).peak_bytes > 0
