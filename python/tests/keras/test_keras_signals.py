"""Keras: Fourier transforms against NumPy, CTC against sums over paths, and image transforms."""

import itertools

import numpy as np
import pytest

import taut as tf
from taut import keras
from taut.keras import ops


def complex_of(parts) -> np.ndarray:
    real, imaginary = (ops.convert_to_numpy(part) for part in parts)
    return real + 1j * imaginary


@pytest.mark.parametrize("count", [1, 2, 12, 61, 67, 96, 127, 134, 1000, 4096])
def test_transforms_are_those_of_numpy(rng, count):
    real, imaginary = rng.normal(size=(2, 3, count))
    np.testing.assert_allclose(complex_of(ops.fft((real, imaginary))), np.fft.fft(real + 1j * imaginary), atol=1e-9)
    half = ops.rfft(real)
    np.testing.assert_allclose(complex_of(half), np.fft.rfft(real), atol=1e-9)
    np.testing.assert_allclose(ops.irfft(half, fft_length=count).numpy(), real, atol=1e-9)


def test_transforms_take_lengths_and_two_axes(rng):
    real, imaginary = rng.normal(size=(2, 2, 6, 10))
    whole = real + 1j * imaginary
    np.testing.assert_allclose(complex_of(ops.fft2((real, imaginary))), np.fft.fft2(whole), atol=1e-9)
    np.testing.assert_allclose(complex_of(ops.ifft2((real, imaginary))), np.fft.ifft2(whole), atol=1e-9)
    for length in (7, 8, 15):
        np.testing.assert_allclose(complex_of(ops.rfft(real, length)), np.fft.rfft(real, length), atol=1e-9)
        np.testing.assert_allclose(ops.irfft((real, imaginary), length).numpy(), np.fft.irfft(whole, length), atol=1e-9)
    with pytest.raises(ValueError, match="must have one shape"):
        ops.fft((real, imaginary[..., :3]))


def test_a_transform_has_its_gradient(rng):
    x = tf.constant(rng.normal(size=130))
    with tf.GradientTape() as tape:
        tape.watch(x)
        real, imaginary = ops.fft((x, tf.zeros_like(x)))
        power = tf.reduce_sum(real * real + imaginary * imaginary)
    # The power of a signal's transform is its own, as often as it is long.
    np.testing.assert_allclose(tape.gradient(power, x).numpy(), 2 * 130 * x.numpy(), rtol=1e-9)


@pytest.mark.parametrize("window", ["hann", "hamming"])
@pytest.mark.parametrize("center", [True, False])
def test_pieces_of_a_signal_come_back(rng, window, center):
    signal = rng.normal(size=(2, 72))
    pieces = ops.stft(signal, 12, 4, 16, window=window, center=center)
    back = ops.istft(pieces, 12, 4, 16, length=72, window=window, center=center).numpy()
    inside = slice(16, 56)
    np.testing.assert_allclose(back[:, inside], signal[:, inside], atol=1e-9)
    weights = np.pad((np.hanning if window == "hann" else np.hamming)(13)[:-1], 2)
    around = np.pad(signal, [(0, 0), (8, 8)], mode="reflect") if center else signal
    np.testing.assert_allclose(complex_of(pieces)[:, 3], np.fft.rfft(around[:, 12:28] * weights), atol=1e-9)


# Keras 3.15 on TensorFlow 2.21.
ENDS = {
    "hann": [0.0, 0.0, 1.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 5.5, 0.0],
    "hamming": [0.0, 0.012719, 1.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 9.936407, 5.5, 0.0],
}


@pytest.mark.parametrize("window", ENDS)
def test_the_ends_of_a_signal_are_damped_as_with_tensorflow(window):
    signal = np.arange(1.0, 13.0)
    pieces = ops.stft(signal, 4, 2, 6, window=window, center=False)
    back = ops.istft(pieces, 4, 2, 6, window=window, center=False)
    np.testing.assert_allclose(back.numpy(), ENDS[window], atol=1e-6)


def test_a_window_of_odd_length_is_symmetric_as_with_tensorflow():
    real, imaginary = ops.stft(np.arange(1.0, 9.0), 5, 2, 6, center=False)
    # Keras 3.15 on TensorFlow 2.21.
    np.testing.assert_allclose(real.numpy(), [[6.0, -3.0, 0.0, 0.0], [10.0, -4.5, -0.5, 0.0]], atol=1e-6)
    expected = [[0.0, -3.464102, 1.732051, 0.0], [0.0, -6.062178, 2.598076, 0.0]]
    np.testing.assert_allclose(imaginary.numpy(), expected, atol=1e-6)


def test_a_spectrogram_is_a_layer(rng):
    layer = keras.layers.MelSpectrogram(num_mel_bins=8, sampling_rate=800, sequence_stride=8, fft_length=32)
    made = layer(rng.normal(size=(2, 100)).astype("float32"))
    assert made.shape[:2] == (2, 8) and np.isfinite(made.numpy()).all()


def paths(labels: tuple, steps: int, classes: int):
    """All classes along `steps` that read as `labels`, where 0 is blank."""
    for path in itertools.product(range(classes), repeat=steps):
        if tuple(key for key, _ in itertools.groupby(path) if key) == labels:
            yield path


def test_ctc_sums_over_all_paths(rng):
    logits = rng.normal(size=(2, 5, 3)).astype("float32")
    target, lengths, times = [[1, 2, 0], [2, 2, 1]], [2, 3], [4, 5]
    made = ops.ctc_loss(target, logits, lengths, times).numpy()
    for row, logs, labels, length, time in zip(made, logits, target, lengths, times):
        shares = np.exp(logs) / np.exp(logs).sum(-1, keepdims=True)
        total = sum(
            np.prod([shares[t, k] for t, k in enumerate(path)]) for path in paths(tuple(labels[:length]), time, 3)
        )
        np.testing.assert_allclose(row, -np.log(total), rtol=1e-5)


def test_a_model_learns_labels_along_time():
    model = keras.Sequential([keras.Input((6, 2)), keras.layers.Dense(4)])
    model.compile(keras.optimizers.Adam(0.1), keras.losses.CTC())
    x = np.tile(np.eye(2, dtype="float32")[[0, 0, 0, 1, 1, 1]], (4, 1, 1))
    history = model.fit(x, np.tile([[1, 3]], (4, 1)), epochs=60, verbose=0)
    assert history.history["loss"][-1] < 0.2
    labels, _ = ops.ctc_decode(model.predict(x, verbose=0), [6] * 4)
    np.testing.assert_array_equal(labels.numpy(), [[[1, 3, -1, -1, -1, -1]] * 4])


def test_the_likeliest_labels():
    def logits(*best):
        return np.eye(4, dtype="float32")[list(best)] * 2

    inputs = np.stack([logits(1, 1, 0, 1, 2, 2), logits(3, 0, 0, 2, 2, 1)])
    labels, scores = ops.ctc_decode(inputs, [6, 4])
    np.testing.assert_array_equal(labels.numpy()[0], [[1, 1, 2, -1, -1, -1], [3, 2, -1, -1, -1, -1]])
    np.testing.assert_array_equal(scores.numpy(), [[-12.0], [-8.0]])
    labels, _ = ops.ctc_decode(inputs, [6, 4], merge_repeated=False, mask_index=1)
    np.testing.assert_array_equal(labels.numpy()[0], [[0, 2, 2, -1, -1, -1], [3, 0, 0, 2, -1, -1]])
    with pytest.raises(ValueError, match="Invalid strategy"):
        ops.ctc_decode(inputs, [6, 4], strategy="best")


def test_edges_are_where_brightness_changes():
    image = np.zeros((1, 4, 5, 1), dtype="float32")
    image[:, :, 3:] = 1.0
    edges = ops.image.sobel_edges(image).numpy()
    np.testing.assert_array_equal(edges[0, :, :, 0, 0], np.zeros((4, 5)))
    np.testing.assert_array_equal(edges[0, :, :, 0, 1], [[0, 0, 4, 4, 0]] * 4)
    first = ops.image.sobel_edges(image.transpose(0, 3, 1, 2), data_format="channels_first").numpy()
    np.testing.assert_array_equal(first[0, 0], edges[0, :, :, 0])


def test_images_are_bent_smoothly(rng):
    rows, columns = np.mgrid[:16, :16].astype("float32")
    image = np.stack([rows, columns], axis=-1)
    bent = ops.image.elastic_transform(image, alpha=2.0, sigma=2.0, seed=1).numpy()
    shift = (bent - image)[3:-3, 3:-3]
    assert 0.05 < np.abs(shift).max() < 4.0
    assert np.abs(np.diff(shift, axis=0)).max() < 0.5 * np.abs(shift).max()
    # Rows and columns are moved apart from each other.
    assert not np.allclose(shift[..., 0], shift[..., 1])
    np.testing.assert_allclose(ops.image.elastic_transform(image, alpha=0.0, seed=1).numpy(), image, atol=1e-5)
    batch = ops.image.elastic_transform(np.stack([image, image]), alpha=2.0, sigma=2.0, seed=1).numpy()
    assert not np.allclose(batch[0], batch[1])


def test_images_are_bent_in_a_model(rng):
    model = keras.Sequential([keras.Input((8, 8, 3)), keras.layers.RandomElasticTransform(1.0)])
    images = rng.uniform(size=(4, 8, 8, 3)).astype("float32")
    bend = tf.function(lambda x: model(x, training=True))
    assert bend(images).shape == (4, 8, 8, 3)
    np.testing.assert_array_equal(model(images, training=False).numpy(), images)
