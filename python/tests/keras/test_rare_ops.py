"""Ops of Keras that few models use, with the values of Keras on JAX."""

import keras
import numpy as np
import pytest

import taut as tf

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(2, 6, 4)).astype("float32")
IMAGE = RNG.uniform(0, 255, (1, 6, 6, 1)).astype("float32")


def test_beam_search():
    for decode in (keras.ops.ctc_decode, tf.function(keras.ops.ctc_decode, autograph=False)):
        paths, scores = decode(
            LOGITS, np.array([6, 5]), strategy="beam_search", beam_width=10, top_paths=2, mask_index=3
        )
        assert paths[0].numpy().tolist() == [[2, 1, -1, -1, -1, -1], [0, 1, 2, -1, -1, -1]]
        assert paths[1].numpy().tolist() == [[2, 1, 1, -1, -1, -1], [0, 1, -1, -1, -1, -1]]
        np.testing.assert_allclose(scores, [[-2.6495857, -3.012622], [-2.265149, -2.6870246]], rtol=1e-6)


def test_a_blank_inside_a_label_is_a_label():
    logits = np.random.default_rng(0).normal(size=(2, 5, 4)).astype("float32")
    labels = np.array([[1, 0, 2], [2, 2, 0]], "int32")
    found = keras.ops.ctc_loss(labels, logits, np.array([3, 3]), np.array([5, 5]), mask_index=0)
    # The same from TensorFlow and JAX.
    np.testing.assert_allclose(found, [5.912281, 7.7237706], rtol=1e-6)
    found = keras.ops.ctc_loss(labels, logits, np.array([2, 3]), np.array([5, 5]), mask_index=0)
    np.testing.assert_allclose(found, [6.4780917, 7.7237706], rtol=1e-6)


@pytest.mark.parametrize(
    "method, values",
    {
        "linear": [46.483696, 134.41254, 166.03693, 150.11693, 114.06015, 163.19698, 68.456825, 14.39825],
        "cubic": [43.783306, 133.8471, 178.16554, 156.36465, 113.24767, 173.30202, 53.86485, -16.718243],
        "lanczos3": [47.4295, 122.26007, 188.78079, 155.7181, 122.14811, 175.97014, 48.303135, -41.99707],
    }.items(),
)
def test_scale_and_translate(method, values):
    found = keras.ops.image.scale_and_translate(IMAGE, (1, 4, 8, 1), [0.5, 1.3], [0.3, -0.2], [1, 2], method)
    np.testing.assert_allclose(keras.ops.reshape(found, [-1])[:8], values, rtol=1e-5)


def test_lu_factor():
    matrix = np.array([[1, 2, 3], [4, 5, 6], [7, 8, 10]], "float32")
    factors, pivots = keras.ops.lu_factor(matrix)
    assert pivots.numpy().tolist() == [2, 2, 2]
    np.testing.assert_allclose(
        factors,
        [[7, 8, 10], [0.14285715, 0.8571428, 1.5714285], [0.5714286, 0.5, -0.5]],
        rtol=1e-5,
    )


def test_unique_rows():
    x = np.array([[1, 2], [1, 2], [3, 4], [0, 9]])
    values, index, inverse, counts = keras.ops.unique(
        x, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    assert values.numpy().tolist() == [[0, 9], [1, 2], [3, 4]]
    assert (index.numpy().tolist(), inverse.numpy().tolist(), counts.numpy().tolist()) == (
        [3, 0, 2],
        [1, 1, 2, 0],
        [1, 2, 1],
    )
    padded = keras.ops.unique(x, axis=0, size=5, fill_value=7)
    assert padded.numpy().tolist() == [[0, 9], [1, 2], [3, 4], [7, 7], [7, 7]]
    columns = keras.ops.unique(x.T, axis=1)
    assert columns.numpy().tolist() == [[0, 1, 3], [9, 2, 4]]


def test_i0():
    np.testing.assert_allclose(keras.ops.i0(np.array([0.0, 1.0, 2.0, -9.0])), np.i0([0.0, 1.0, 2.0, -9.0]), rtol=1e-6)


def test_a_thin_crop_has_one_pixel():
    image = np.full((1, 2, 64, 1), 85.0, "float32")
    found = keras.ops.image.resize(image, (64, 1), crop_to_aspect_ratio=True)
    np.testing.assert_allclose(found, np.full((1, 64, 1, 1), 85.0))
    with pytest.raises(ValueError, match="at least one pixel"):
        keras.ops.image.resize(np.zeros((1, 0, 4, 1), "float32"), (2, 2))
    with pytest.raises(tf.errors.InvalidArgumentError, match="at least one pixel"):
        tf.image.resize(tf.zeros([0, 4, 1]), [2, 2])


def draws(name, *parameters):
    """Samples for traced parameters."""
    f = tf.function(lambda *given: getattr(keras.random, name)((4000,), *given, dtype="float64", seed=3))
    return f(*(tf.constant(one, tf.float64) for one in parameters)).numpy()


def test_random_numbers_with_traced_parameters():
    for alpha in (0.3, 2.5):
        found = draws("gamma", alpha)
        assert abs(found.mean() - alpha) < 5 * (alpha / 4000) ** 0.5
        assert abs(found.var() - alpha) < 0.25 * alpha + 0.1
    found = draws("beta", 2.0, 3.0)
    assert abs(found.mean() - 0.4) < 0.02 and abs(found.var() - 0.04) < 0.005
    for chance in (0.2, 0.7):
        found = draws("binomial", 10.0, chance)
        assert abs(found.mean() - 10 * chance) < 0.15 and abs(found.var() - 10 * chance * (1 - chance)) < 0.3
        assert found.min() >= 0 and found.max() <= 10 and np.all(found == np.round(found))
    assert draws("binomial", 5.0, 0.0).max() == 0 and draws("binomial", 5.0, 1.0).min() == 5


@pytest.mark.parametrize("name", ["MixUp", "CutMix"])
def test_mixing_layers_in_pipelines(name):
    layer = getattr(keras.layers, name)(seed=1)
    images, labels = np.ones((4, 8, 8, 3), "float32"), np.eye(4, dtype="float32")
    data = tf.data.Dataset.from_tensor_slices({"images": images, "labels": labels}).batch(2)
    mixed = next(iter(data.map(lambda batch: layer(batch, training=True))))
    np.testing.assert_allclose(mixed["images"], images[:2], rtol=1e-6)
    np.testing.assert_allclose(tf.reduce_sum(mixed["labels"], axis=1), [1, 1], rtol=1e-6)


def test_augmix_in_pipelines():
    layer = keras.layers.AugMix(seed=1)
    data = tf.data.Dataset.from_tensor_slices(np.full((2, 8, 8, 3), 100.0, "float32")).batch(2)
    assert next(iter(data.map(lambda batch: layer(batch, training=True)))).shape == [2, 8, 8, 3]


@pytest.mark.parametrize("shape", [(4, 3), (3, 4), (3, 3), (2, 5, 3), (2, 3, 5)])
def test_lu_factor_of_matrices_that_are_not_square(shape, rng):
    a = rng.normal(size=shape)
    factors, pivots = (np.asarray(part) for part in keras.ops.lu_factor(a))
    rows, columns = shape[-2:]
    for matrix, made, swaps in zip(
        a.reshape(-1, rows, columns), factors.reshape(-1, rows, columns), pivots.reshape(-1, min(rows, columns))
    ):
        order = np.arange(rows)
        for i, other in enumerate(swaps):
            order[[i, other]] = order[[other, i]]
        k = min(rows, columns)
        lower = np.tril(made[:, :k], -1) + np.eye(rows, k)
        np.testing.assert_allclose(lower @ np.triu(made[:k]), matrix[order], atol=1e-5)
        assert np.abs(lower).max() <= 1 + 1e-6


def test_a_grayscale_image_stays_as_it_is(rng):
    image = rng.random((4, 5, 1)).astype("float32")
    np.testing.assert_array_equal(keras.ops.image.rgb_to_grayscale(image).numpy(), image)
    with pytest.raises(ValueError, match="Invalid channel size"):
        keras.ops.image.rgb_to_grayscale(np.ones((4, 4, 4), "float32"))


def test_shapes_of_images_and_transforms_are_checked():
    flat, image = np.ones((4, 4), "float32"), np.ones((4, 4, 3), "float32")
    image_ops = keras.ops.image
    for call in (
        lambda: image_ops.affine_transform(flat, np.ones(8)),
        lambda: image_ops.perspective_transform(flat, np.ones((4, 2)), np.ones((4, 2))),
        lambda: image_ops.gaussian_blur(flat),
        lambda: image_ops.elastic_transform(flat),
    ):
        with pytest.raises(ValueError, match="Invalid images rank"):
            call()
    with pytest.raises(ValueError, match="Invalid transform rank"):
        image_ops.affine_transform(image, np.ones((1, 1, 8)))
    with pytest.raises(ValueError, match="Invalid end_points shape"):
        image_ops.perspective_transform(image, np.ones((4, 2)), np.ones((2, 2, 4, 2)))
    with pytest.raises(ValueError, match="Invalid coordinates rank"):
        image_ops.map_coordinates(image, np.ones(3), 1)
    with pytest.raises(ValueError, match="the rank of `inputs`"):
        image_ops.map_coordinates(image, np.ones((2, 5)), 1)


@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((0, 3), 0), ((3, 0), 0), ((3, 0), 1)])
def test_unique_of_nothing(shape, axis):
    x = np.zeros(shape, "float32")
    given = {"axis": axis, "return_index": True, "return_inverse": True, "return_counts": True}
    for made, expected in zip(keras.ops.unique(x, **given), np.unique(x, **given)):
        np.testing.assert_array_equal(np.asarray(made), expected)


@pytest.mark.parametrize("block_size", [64, None, -1])
def test_lora_of_an_embedding_of_four_bits(block_size, rng):
    layer = keras.layers.Embedding(50, 128)
    layer.build()
    layer.quantize("int4", config=keras.quantizers.Int4QuantizationConfig(block_size=block_size))
    before = layer(np.array([[1, 2]])).numpy()
    layer.enable_lora(4)
    assert not layer._embeddings.trainable
    assert [weight.path.split("/")[-1] for weight in layer.trainable_weights] == [
        "lora_embeddings_a",
        "lora_embeddings_b",
    ]
    np.testing.assert_allclose(layer(np.array([[1, 2]])).numpy(), before, atol=1e-6)


def test_datasets_are_split():
    dataset = tf.data.Dataset.from_tensor_slices((np.arange(10), np.arange(10) * 2))
    left, right = keras.utils.split_dataset(dataset, left_size=0.7)
    assert [int(x) for x, _ in left] == list(range(7))
    assert [int(y) for _, y in right] == [14, 16, 18]


def test_layouts_over_one_device_are_accepted_and_others_are_refused():
    from keras.src.distribution import DeviceMesh, TensorLayout

    from taut.keras.backend import distribution_lib

    x = np.ones((2, 2), "float32")
    alone = DeviceMesh((1, 1), ["batch", "model"], ["cpu:0"])
    assert distribution_lib.distribute_tensor(x, TensorLayout(("batch", "model"), alone)) is x
    assert distribution_lib.distribute_variable(x, TensorLayout((None, "model"), alone)) is x
    several = DeviceMesh((1, 2), ["batch", "model"], ["cpu:0", "cpu:1"])
    assert distribution_lib.distribute_variable(x, TensorLayout((None, "batch"), several)) is x
    for call in (distribution_lib.distribute_tensor, distribution_lib.distribute_variable):
        with pytest.raises(ValueError, match="mesh axis 'model'.*DataParallel"):
            call(x, TensorLayout((None, "model"), several))
    with pytest.raises(ValueError, match="mesh axis 'model'"):
        distribution_lib.distribute_data_input(x, TensorLayout(("batch", "model"), several), "batch")
    assert distribution_lib.distribute_data_input(x, TensorLayout(("batch", None), several), "batch") is x
