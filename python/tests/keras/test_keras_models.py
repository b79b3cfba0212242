"""Keras: layers, models, files, linear algebra, images and random numbers."""

import colorsys

import numpy as np
import pytest
from keras.src import backend

import taut as tf
from taut import keras

ops, layers = keras.ops, keras.layers


# Layers beside their formulas.


def test_dense_is_a_product(rng):
    x = rng.normal(size=(2, 3, 4)).astype("float32")
    layer = layers.Dense(5, activation="relu", bias_initializer="normal")
    made = layer(x).numpy()
    np.testing.assert_allclose(made, np.maximum(x @ layer.kernel.numpy() + layer.bias.numpy(), 0), rtol=1e-5, atol=1e-6)


def test_embeddings_are_rows():
    layer = layers.Embedding(7, 3)
    made = layer(np.array([[1, 6], [0, 1]])).numpy()
    np.testing.assert_array_equal(made, layer.embeddings.numpy()[[[1, 6], [0, 1]]])


def test_batch_normalization_learns_means_and_variances(rng):
    x = rng.normal(2.0, 3.0, size=(64, 5)).astype("float32")
    layer = layers.BatchNormalization(momentum=0.75)
    made = layer(x, training=True).numpy()
    np.testing.assert_allclose(made, (x - x.mean(0)) / np.sqrt(x.var(0) + 1e-3), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(layer.moving_mean.numpy(), 0.25 * x.mean(0), rtol=1e-4)
    np.testing.assert_allclose(layer.moving_variance.numpy(), 0.75 + 0.25 * x.var(0), rtol=1e-4)
    still = layer(x, training=False).numpy()
    expected = (x - layer.moving_mean.numpy()) / np.sqrt(layer.moving_variance.numpy() + 1e-3)
    np.testing.assert_allclose(still, expected, rtol=1e-4, atol=1e-4)


def test_layer_normalization(rng):
    x = rng.normal(size=(2, 3, 8)).astype("float32")
    made = layers.LayerNormalization()(x).numpy()
    away = x - x.mean(-1, keepdims=True)
    np.testing.assert_allclose(made, away / np.sqrt(x.var(-1, keepdims=True) + 1e-3), rtol=1e-4, atol=1e-5)


def test_dropout_keeps_the_mean_and_draws_anew():
    layer, x = layers.Dropout(0.25), np.ones((100, 100), "float32")

    @tf.function
    def run(x):
        return layer(x, training=True)

    first, second = run(x).numpy(), run(x).numpy()
    assert set(np.unique(first)) == {0.0, np.float32(1 / 0.75)}
    # The share of zeros is 1/4 with a standard deviation of 0.0043.
    assert abs(np.mean(first == 0) - 0.25) < 0.02
    assert np.any(first != second)
    np.testing.assert_array_equal(layer(x, training=False).numpy(), x)


def test_masks_travel_with_tensors():
    embedding = layers.Embedding(5, 2, mask_zero=True)
    x = embedding(np.array([[1, 0], [2, 3]]))
    pooled = layers.GlobalAveragePooling1D()(x).numpy()
    table = embedding.embeddings.numpy()
    np.testing.assert_allclose(pooled, [table[1], (table[2] + table[3]) / 2], rtol=1e-5)


# Models.


def small_model():
    inputs = keras.Input((4,), name="a")
    other = keras.Input((2,), name="b")
    joined = layers.Concatenate()([layers.Dense(3, activation="tanh")(inputs), other])
    return keras.Model({"a": inputs, "b": other}, [layers.Dense(2)(joined), layers.Dense(1)(joined)])


def test_models_with_several_inputs_and_outputs(rng):
    model = small_model()
    data = {"a": rng.normal(size=(10, 4)), "b": rng.normal(size=(10, 2))}
    model.compile("adam", ["mse", "mae"], loss_weights=[1.0, 0.5])
    logs = model.fit(data, [np.zeros((10, 2)), np.zeros((10, 1))], epochs=2, verbose=0).history
    assert logs["loss"][1] < logs["loss"][0]
    two, one = model.predict(data, batch_size=4, verbose=0)
    assert two.shape == (10, 2) and one.shape == (10, 1)
    assert isinstance(two, np.ndarray)


def test_subclassed_models_are_built_by_data():
    class Model(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = layers.Dense(2)

        def call(self, x, training=False):
            return self.dense(x) * (2.0 if training else 1.0)

    model = Model()
    assert model.predict(np.ones((3, 4), "float32"), verbose=0).shape == (3, 2)
    assert model.count_params() == 10


def test_summaries_count_parameters():
    lines = []
    small_model().summary(print_fn=lambda text, **_: lines.append(text))
    assert "Total params: 33" in "\n".join(lines)


def test_metrics_add_up_over_batches():
    accuracy = keras.metrics.SparseCategoricalAccuracy()
    accuracy.update_state([0, 1], [[0.9, 0.1], [0.8, 0.2]])
    accuracy.update_state([1, 1], [[0.1, 0.9], [0.3, 0.7]])
    assert float(accuracy.result()) == 0.75
    area = keras.metrics.AUC()
    area.update_state([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8])
    np.testing.assert_allclose(float(area.result()), 0.75, atol=1e-3)
    recall = keras.metrics.Recall()
    recall.update_state([1, 1, 0], [0.9, 0.2, 0.8])
    assert float(recall.result()) == 0.5


# Files.


def test_models_come_back_from_files(tmp_path, rng):
    model = small_model()
    data = {"a": rng.normal(size=(6, 4)).astype("float32"), "b": rng.normal(size=(6, 2)).astype("float32")}
    model.compile("adam", "mse")
    model.fit(data, [np.zeros((6, 2)), np.zeros((6, 1))], verbose=0)
    model.save(tmp_path / "model.keras")
    restored = keras.models.load_model(tmp_path / "model.keras")
    for mine, theirs in zip(model.predict(data, verbose=0), restored.predict(data, verbose=0)):
        np.testing.assert_array_equal(mine, theirs)
    # The optimizer's state came along: both go on alike.
    for each in (model, restored):
        each.fit(data, [np.ones((6, 2)), np.ones((6, 1))], shuffle=False, verbose=0)
    for mine, theirs in zip(model.get_weights(), restored.get_weights()):
        np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_weights_come_back_from_files(tmp_path):
    model, other = small_model(), small_model()
    model.save_weights(tmp_path / "model.weights.h5")
    other.load_weights(tmp_path / "model.weights.h5")
    for mine, theirs in zip(model.get_weights(), other.get_weights()):
        np.testing.assert_array_equal(mine, theirs)


def test_checkpoints_are_written_while_training(tmp_path):
    model = keras.Sequential([keras.Input((2,)), layers.Dense(1)])
    model.compile("sgd", "mse")
    save = keras.callbacks.ModelCheckpoint(tmp_path / "best.keras", monitor="loss", save_best_only=True)
    model.fit(np.ones((4, 2)), np.ones((4, 1)), epochs=2, verbose=0, callbacks=[save])
    assert (tmp_path / "best.keras").exists()


# Random numbers.


def test_the_same_seed_gives_the_same_numbers():
    for draw in (keras.random.normal, keras.random.uniform, keras.random.truncated_normal):
        np.testing.assert_array_equal(draw((5,), seed=3).numpy(), draw((5,), seed=3).numpy())
        assert np.any(draw((5,), seed=3).numpy() != draw((5,), seed=4).numpy())


def test_a_generator_moves_on():
    generator = keras.random.SeedGenerator(7)
    assert np.any(
        keras.random.normal((5,), seed=generator).numpy() != keras.random.normal((5,), seed=generator).numpy()
    )


# Bounds are about five standard deviations of the sample's statistics.


def test_distributions():
    count = (20000,)
    normal = keras.random.normal(count, mean=1.0, stddev=2.0, seed=1).numpy()
    assert abs(normal.mean() - 1.0) < 0.07 and abs(normal.std() - 2.0) < 0.05
    uniform = keras.random.uniform(count, -1.0, 3.0, seed=1).numpy()
    assert uniform.min() >= -1.0 and uniform.max() < 3.0 and abs(uniform.mean() - 1.0) < 0.045
    truncated = keras.random.truncated_normal(count, seed=1).numpy()
    assert np.abs(truncated).max() <= 2.0 and abs(truncated.std() - 0.8796) < 0.02
    whole = keras.random.randint(count, 2, 6, seed=1).numpy()
    np.testing.assert_allclose(np.bincount(whole)[2:] / 20000, 0.25, atol=0.016)
    gamma = keras.random.gamma(count, 3.0, seed=1).numpy()
    assert abs(gamma.mean() - 3.0) < 0.065
    beta = keras.random.beta(count, 2.0, 3.0, seed=1).numpy()
    assert abs(beta.mean() - 0.4) < 0.01
    binomial = keras.random.binomial(count, 10.0, 0.3, seed=1).numpy()
    assert abs(binomial.mean() - 3.0) < 0.055
    drawn = keras.random.categorical(np.log([[0.2, 0.8]]), 20000, seed=1).numpy()
    assert abs(drawn.mean() - 0.8) < 0.015


def test_shuffling_keeps_the_elements():
    x = np.arange(100)
    shuffled = keras.random.shuffle(x, seed=1).numpy()
    assert np.any(shuffled != x)
    np.testing.assert_array_equal(np.sort(shuffled), x)
    rows = keras.random.shuffle(np.stack([x, x + 100]), axis=1, seed=1).numpy()
    np.testing.assert_array_equal(rows[1] - rows[0], np.full(100, 100))
    np.testing.assert_array_equal(np.sort(rows[0]), x)


# Linear algebra and mathematics.


def test_factorisations(rng):
    a = rng.normal(size=(2, 4, 4)).astype("float32")
    positive = a @ np.swapaxes(a, -1, -2) + 4 * np.eye(4, dtype="float32")
    lower = ops.cholesky(positive).numpy()
    np.testing.assert_allclose(lower @ np.swapaxes(lower, -1, -2), positive, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ops.cholesky_inverse(lower).numpy(), np.linalg.inv(positive), rtol=1e-3, atol=1e-4)
    q, r = (each.numpy() for each in ops.qr(a))
    np.testing.assert_allclose(q @ r, a, rtol=1e-4, atol=1e-5)
    u, s, v = (each.numpy() for each in ops.svd(a, full_matrices=False))
    np.testing.assert_allclose(u * s[..., None, :] @ v, a, rtol=1e-4, atol=1e-5)
    values, vectors = (each.numpy() for each in ops.eigh(positive))
    np.testing.assert_allclose(positive @ vectors, vectors * values[..., None, :], rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(ops.det(a).numpy(), np.linalg.det(a), rtol=1e-4)
    np.testing.assert_allclose(ops.inv(positive).numpy(), np.linalg.inv(positive), rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(ops.slogdet(a)[1].numpy(), np.linalg.slogdet(a)[1], rtol=1e-4, atol=1e-5)


def test_equations(rng):
    a, b = rng.normal(size=(4, 4)).astype("float32"), rng.normal(size=(4, 2)).astype("float32")
    np.testing.assert_allclose(ops.solve(a, b).numpy(), np.linalg.solve(a, b), rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ops.solve(a, b[:, 0]).numpy(), np.linalg.solve(a, b[:, 0]), rtol=1e-3, atol=1e-4)
    upper = np.triu(a) + 3 * np.eye(4, dtype="float32")
    np.testing.assert_allclose(ops.solve_triangular(upper, b).numpy(), np.linalg.solve(upper, b), rtol=1e-4, atol=1e-5)
    tall = rng.normal(size=(6, 3)).astype("float32")
    target = rng.normal(size=6).astype("float32")
    expected = np.linalg.lstsq(tall, target, rcond=None)[0]
    np.testing.assert_allclose(ops.lstsq(tall, target).numpy(), expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(ops.pinv(tall).numpy(), np.linalg.pinv(tall), rtol=1e-3, atol=1e-4)
    assert int(ops.matrix_rank(tall @ tall.T)) == 3


@pytest.mark.parametrize("order", [None, 1, 2, 3, np.inf, -np.inf, 0])
def test_norms_of_vectors(order, rng):
    x = rng.normal(size=(3, 4)).astype("float32")
    np.testing.assert_allclose(ops.norm(x, order, axis=1).numpy(), np.linalg.norm(x, order, axis=1), rtol=1e-5)


@pytest.mark.parametrize("order", [None, "fro", "nuc", 1, -1, 2, -2, np.inf, -np.inf])
def test_norms_of_matrices(order, rng):
    x = rng.normal(size=(2, 3, 4)).astype("float32")
    made = ops.norm(x, order, axis=(1, 2), keepdims=True).numpy()
    np.testing.assert_allclose(made, np.linalg.norm(x, order, axis=(1, 2), keepdims=True), rtol=1e-4)


def test_segments_and_largest():
    data = np.array([1.0, 5.0, 2.0, 4.0], "float32")
    ids = np.array([0, 2, 0, 2])
    assert ops.segment_sum(data, ids, 4).numpy().tolist() == [3.0, 0.0, 9.0, 0.0]
    # Keras 3.15 on TensorFlow 2.21.
    assert ops.segment_max(data, ids, 3).numpy().tolist() == [2.0, np.finfo(np.float32).min, 5.0]
    assert ops.segment_min(data, np.array([0, 0, 2, 2]), 3).numpy().tolist() == [1.0, np.finfo(np.float32).max, 2.0]
    assert ops.segment_max(data, np.array([0, 0, 2, 2]), sorted=True).numpy().tolist() == [5.0, 0.0, 4.0]
    values, places = ops.top_k(data, 2)
    assert values.numpy().tolist() == [5.0, 4.0] and places.numpy().tolist() == [1, 3]
    assert ops.in_top_k([0, 1], [[0.1, 0.9, 0.3], [0.1, 0.9, 0.3]], 2).numpy().tolist() == [False, True]
    frames = ops.extract_sequences(np.arange(7), 3, 2).numpy()
    assert frames.tolist() == [[0, 1, 2], [2, 3, 4], [4, 5, 6]]
    np.testing.assert_allclose(ops.logsumexp(data).numpy(), np.log(np.sum(np.exp(data))), rtol=1e-6)


# Images.


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_colours(data_format, rng):
    rgb = rng.random((2, 4, 5, 3)).astype("float32")
    hsv = np.reshape([colorsys.rgb_to_hsv(*pixel) for pixel in rgb.reshape(-1, 3).tolist()], rgb.shape)
    gray = rgb @ np.array([[0.2989], [0.587], [0.114]], "float32")
    if data_format == "channels_first":
        rgb, hsv, gray = (np.moveaxis(each, -1, 1) for each in (rgb, hsv, gray))
    made = ops.image.rgb_to_hsv(rgb, data_format)
    np.testing.assert_allclose(made.numpy(), hsv, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ops.image.hsv_to_rgb(made, data_format).numpy(), rgb, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(ops.image.rgb_to_grayscale(rgb, data_format).numpy(), gray, rtol=1e-5)
    with pytest.raises(ValueError, match="float"):
        ops.image.rgb_to_hsv((255 * rgb).astype("uint8"), data_format)


def test_sizes_of_images():
    ramp = np.arange(4, dtype="float32")[None, :, None, None] * np.ones((1, 1, 3, 1), "float32")
    # Centres of the larger image lie at -1/4, 1/4, 3/4, ... of the smaller; the ends are held.
    made = ops.image.resize(ramp, (8, 3)).numpy()[0, :, 0, 0]
    np.testing.assert_allclose(made, [0.0, 0.25, 0.75, 1.25, 1.75, 2.25, 2.75, 3.0], atol=1e-6)
    # The cubic kernel's shares of the first two pixels, at distances 1/4 and 5/4; what would lie outside does
    # not count.
    first, second = 1.5 * 0.25**3 - 2.5 * 0.25**2 + 1, -0.5 * 1.25**3 + 2.5 * 1.25**2 - 4 * 1.25 + 2
    made = ops.image.resize(ramp, (8, 3), interpolation="bicubic").numpy()[0, 0, 0, 0]
    np.testing.assert_allclose(made, second / (first + second), rtol=1e-5)
    made = ops.image.resize(ramp, (2, 3), interpolation="nearest").numpy()[0, :, 0, 0]
    np.testing.assert_array_equal(made, [1.0, 3.0])
    for kernel in ("bilinear", "bicubic", "lanczos3", "lanczos5"):
        flat = ops.image.resize(np.ones((1, 5, 6, 2), "float32"), (9, 4), kernel, antialias=True).numpy()
        np.testing.assert_allclose(flat, 1.0, rtol=1e-5)


@pytest.mark.parametrize("order", [0, 1])
@pytest.mark.parametrize("mode", ["constant", "nearest", "mirror", "reflect"])
def test_elements_between_places(mode, order, rng):
    ndimage = pytest.importorskip("scipy.ndimage")
    x = rng.normal(size=(5, 6)).astype("float32")
    # Away from the borders' outer halves, where SciPy fades constants differently.
    places = rng.uniform(0.01, 3.99, size=(2, 4, 3)) if mode == "constant" else rng.uniform(-4, 9, size=(2, 4, 3))
    expected = ndimage.map_coordinates(x, places, order=order, mode=mode)
    made = ops.image.map_coordinates(x, places.astype("float32"), order, mode)
    np.testing.assert_allclose(made.numpy(), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("data_format", ["channels_last", "channels_first"])
def test_images_are_moved(data_format, rng):
    x = rng.normal(size=(2, 5, 6, 3)).astype("float32")
    right = np.array([1.0, 0.0, -2.0, 0.0, 1.0, 1.0, 0.0, 0.0], "float32")
    expected = np.zeros_like(x)
    expected[:, :4, 2:] = x[:, 1:, :4]
    if data_format == "channels_first":
        x, expected = np.moveaxis(x, -1, 1), np.moveaxis(expected, -1, 1)
    made = ops.image.affine_transform(x, np.stack([right, right]), data_format=data_format)
    np.testing.assert_allclose(made.numpy(), expected, atol=1e-6)
    np.testing.assert_allclose(
        ops.image.affine_transform(x[0], right, data_format=data_format).numpy(), expected[0], atol=1e-6
    )


def test_perspectives_send_points_to_points(rng):
    start = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 4.0], [5.0, 4.0]], "float32")
    end = start + rng.uniform(-0.5, 0.5, size=(4, 2)).astype("float32")
    a, b, c, d, e, f, g, h = backend.image.compute_homography_matrix(start[None], end[None]).numpy()[0]
    for (u, v), (x, y) in zip(start, end):
        depth = g * x + h * y + 1
        np.testing.assert_allclose([(a * x + b * y + c) / depth, (d * x + e * y + f) / depth], [u, v], atol=1e-3)
    image = rng.normal(size=(5, 6, 2)).astype("float32")
    np.testing.assert_allclose(ops.image.perspective_transform(image, start, start).numpy(), image, atol=1e-4)


def test_a_blur_keeps_the_sum_and_spreads():
    x = np.zeros((7, 7, 1), "float32")
    x[3, 3] = 1.0
    made = ops.image.gaussian_blur(x, (3, 3), (1.0, 1.0)).numpy()[..., 0]
    bell = np.exp([-0.5, 0.0, -0.5])
    bell /= bell.sum()
    np.testing.assert_allclose(made[2:5, 2:5], np.outer(bell, bell), rtol=1e-5)
    np.testing.assert_allclose(made.sum(), 1.0, rtol=1e-5)
