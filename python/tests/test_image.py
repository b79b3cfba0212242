"""tf.image against NumPy: resizing, colours, crops."""

import colorsys

import numpy as np
import pytest
from checks import fails

import taut as tf

RNG = np.random.default_rng(8)
X = RNG.uniform(0, 1, (2, 5, 6, 3)).astype("float32")
U = RNG.integers(0, 256, (2, 5, 6, 3)).astype("uint8")


def close(got, want, tolerance=1e-5):
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance)


def interpolated(x, rows, columns):
    def along(x, axis, new):
        old = x.shape[axis]
        places = np.clip((np.arange(new) + 0.5) * old / new - 0.5, 0, old - 1)
        low = np.floor(places).astype(int)
        high = np.minimum(low + 1, old - 1)
        part = (places - low).reshape([-1 if i == axis % x.ndim else 1 for i in range(x.ndim)])
        return np.take(x, low, axis) * (1 - part) + np.take(x, high, axis) * part

    return along(along(x.astype("float64"), -3, rows), -2, columns)


@pytest.mark.parametrize("size", [(8, 9), (3, 2), (1, 12), (5, 7)])
def test_bilinear(size):
    close(tf.image.resize(X, size), interpolated(X, *size))
    close(tf.image.resize(X[0], size), interpolated(X[0], *size))
    got = tf.image.resize(U, size)
    assert got.dtype == tf.float32
    close(got, interpolated(U, *size), 1e-4)
    close(tf.image.resize(tf.constant(X)[:, ::-1], size), interpolated(X[:, ::-1], *size))


@pytest.mark.parametrize("size", [(8, 9), (3, 2)])
def test_nearest(size):
    rows, columns = (((np.arange(new) + 0.5) * old / new).astype(int) for new, old in zip(size, (5, 6)))
    got = tf.image.resize(U, size, method="nearest")
    assert got.dtype == tf.uint8
    np.testing.assert_array_equal(got, U[:, rows][:, :, columns])


def test_other_ways_to_resize():
    halves = X[:, :4].reshape(2, 2, 2, 3, 2, 3).mean((2, 4))
    close(tf.image.resize(X[:, :4], [2, 3], "area"), halves)
    constant = np.full((4, 5, 1), 0.75, "float32")
    for method in ("bilinear", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic", "area"):
        for antialias in (False, True):
            close(tf.image.resize(constant, [7, 3], method, antialias=antialias), np.full((7, 3, 1), 0.75))
    ramp = np.tile(np.arange(20, dtype="float32")[:, None, None], (1, 3, 1))
    inner = tf.image.resize(ramp, [40, 3], "bicubic").numpy()[8:-8, 0, 0]
    close(inner, (np.arange(40) + 0.5)[8:-8] / 2 - 0.5)
    assert tf.image.resize(X, [10, 24], preserve_aspect_ratio=True).shape == (2, 10, 12, 3)
    assert tf.image.resize(U, [5, 6]).dtype == tf.float32
    fails(ValueError, "resize", lambda: tf.image.resize(X, [3, 3], "by magic"))
    fails(ValueError, "resize", lambda: tf.image.resize(X, [3]))
    fails(ValueError, "resize", lambda: tf.image.resize(X[0, 0], [3, 3]))


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("method", ["bilinear", "bicubic", "lanczos3", "lanczos5", "gaussian", "mitchellcubic", "area"])
def test_every_method_is_the_sum_over_all_pixels(method, antialias):
    def cubic(x, b, c):
        near = ((12 - 9 * b - 6 * c) * x**3 + (-18 + 12 * b + 6 * c) * x**2 + 6 - 2 * b) / 6
        far = ((-b - 6 * c) * x**3 + (6 * b + 30 * c) * x**2 + (-12 * b - 48 * c) * x + 8 * b + 24 * c) / 6
        return np.where(x < 1, near, np.where(x < 2, far, 0))

    kernels = {
        "bilinear": lambda x: np.maximum(0, 1 - x),
        "bicubic": lambda x: cubic(x, 0, 0.5),
        "mitchellcubic": lambda x: cubic(x, 1 / 3, 1 / 3),
        "lanczos3": lambda x: np.where(x < 3, np.sinc(x) * np.sinc(x / 3), 0),
        "lanczos5": lambda x: np.where(x < 5, np.sinc(x) * np.sinc(x / 5), 0),
        "gaussian": lambda x: np.where(x < 1.5, np.exp(-2 * x * x), 0),
    }

    def weights(old, new):
        scale, pixels = old / new, np.arange(old)
        if method == "area":
            edges = np.arange(new + 1)[:, None] * scale
            made = np.maximum(0, np.minimum(edges[1:], pixels + 1) - np.maximum(edges[:-1], pixels))
        else:
            spread = max(scale, 1) if antialias else 1
            places = (np.arange(new) + 0.5) * scale - 0.5
            if method == "bicubic" and not antialias:
                # TensorFlow's weights are those of fractions of 1/1024.
                places = np.floor(places) + np.rint((places - np.floor(places)) * 1024) / 1024
            made = kernels[method](np.abs(pixels - places[:, None]) / spread)
        return made / made.sum(1, keepdims=True)

    for rows, columns, height, width in [(1, 7, 3, 5), (9, 2, 4, 6), (33, 40, 7, 9), (5, 3, 17, 31), (40, 12, 41, 11)]:
        image = RNG.integers(0, 256, (rows, columns, 3)).astype("uint8")
        want = np.einsum("ai,bj,ijc->abc", weights(rows, height), weights(columns, width), image)
        close(tf.image.resize(image, [height, width], method, antialias=antialias), want, 3e-5)
        traced = tf.function(lambda x, size=(height, width): tf.image.resize(x, size, method, antialias=antialias))
        close(traced(tf.constant(image)), want, 3e-5)


def test_resize_has_a_gradient():
    with tf.GradientTape() as tape:
        x = tf.constant(X)
        tape.watch(x)
        total = tf.reduce_sum(tf.image.resize(x, [10, 12]))
    # Each old pixel is spread over four new ones.
    np.testing.assert_allclose(tf.reduce_sum(tape.gradient(total, x)), 2 * 10 * 12 * 3, rtol=1e-5)


@pytest.mark.parametrize("image", [X, X[0], U])
def test_turning(image):
    height, width = image.ndim - 3, image.ndim - 2
    same = np.testing.assert_array_equal
    same(tf.image.flip_left_right(image), np.flip(image, width))
    same(tf.image.flip_up_down(image), np.flip(image, height))
    same(tf.image.transpose(image), np.swapaxes(image, height, width))
    for k in range(-1, 5):
        same(tf.image.rot90(image, k), np.rot90(image, k, (height, width)))


def test_random_turning():
    many = np.stack([X[0]] * 200)
    turned = tf.image.random_flip_left_right(many, seed=1).numpy()
    flipped = np.array([np.array_equal(one, X[0][:, ::-1]) for one in turned])
    assert 60 < flipped.sum() < 140
    assert all(np.array_equal(one, X[0]) for one in turned[~flipped])
    a = tf.image.stateless_random_flip_up_down(many, [1, 2]).numpy()
    np.testing.assert_array_equal(a, tf.image.stateless_random_flip_up_down(many, [1, 2]))
    assert tf.image.random_flip_up_down(X[0]).shape == X[0].shape


def test_cutting():
    same = np.testing.assert_array_equal
    same(tf.image.crop_to_bounding_box(X, 1, 2, 3, 4), X[:, 1:4, 2:6])
    same(tf.image.pad_to_bounding_box(X[0], 1, 2, 8, 9), np.pad(X[0], [(1, 2), (2, 1), (0, 0)]))
    same(tf.image.central_crop(X, 0.5), X[:, 1:4, 1:5])
    same(tf.image.resize_with_crop_or_pad(X, 3, 8), np.pad(X[:, 1:4], [(0, 0), (0, 0), (1, 1), (0, 0)]))
    padded = tf.image.resize_with_pad(X, 10, 24)
    close(padded, np.pad(interpolated(X, 10, 12), [(0, 0), (0, 0), (6, 6), (0, 0)]))
    part = tf.image.random_crop(X[0], [2, 3, 3], seed=1).numpy()
    places = [(i, j) for i in range(4) for j in range(4) if np.array_equal(part, X[0][i : i + 2, j : j + 3])]
    assert len(places) == 1
    again = tf.image.stateless_random_crop(X[0], [2, 3, 3], [1, 2])
    same(tf.image.stateless_random_crop(X[0], [2, 3, 3], [1, 2]), again)
    fails(ValueError, "crop_to_bounding_box", lambda: tf.image.crop_to_bounding_box(X, 3, 3, 3, 3))
    fails(ValueError, "pad_to_bounding_box", lambda: tf.image.pad_to_bounding_box(X, 3, 3, 5, 5))
    fails(ValueError, "central_crop", lambda: tf.image.central_crop(X, 0.0))
    fails(ValueError, "random_crop", lambda: tf.image.random_crop(X[0], [9, 3, 3]))


def test_types():
    close(tf.image.convert_image_dtype(U, tf.float32), U / 255.0)
    np.testing.assert_array_equal(tf.image.convert_image_dtype(X, tf.uint8), np.floor(X * np.float32(255.5)))
    np.testing.assert_array_equal(tf.image.convert_image_dtype(U, tf.uint16), U.astype("uint16") * 256)
    big = np.array([[[0, 65535, 300]]], "uint16")
    assert tf.image.convert_image_dtype(big, tf.uint8).numpy().tolist() == [[[0, 255, 1]]]
    assert tf.image.convert_image_dtype(X * 3, tf.uint8, saturate=True).numpy().max() == 255
    assert tf.image.convert_image_dtype(U, tf.uint8).dtype == tf.uint8


def test_values():
    close(tf.image.adjust_brightness(X, 0.25), X + 0.25)
    brighter = tf.image.adjust_brightness(U, 0.1)
    assert brighter.dtype == tf.uint8
    assert np.abs(brighter.numpy().astype(int) - np.clip(U.astype(int) + 25.5, 0, 255)).max() <= 1
    mean = X.mean((1, 2), keepdims=True)
    close(tf.image.adjust_contrast(X, 2.0), (X - mean) * 2 + mean)
    close(tf.image.adjust_gamma(X, gamma=2.0, gain=0.5), 0.5 * X**2)
    deviation = X.std((1, 2, 3), keepdims=True)
    close(tf.image.per_image_standardization(X), (X - X.mean((1, 2, 3), keepdims=True)) / deviation, 1e-4)
    flat = tf.image.per_image_standardization(np.full((4, 4, 1), 7, "uint8"))
    assert flat.dtype == tf.float32
    close(flat, np.zeros((4, 4, 1)))
    close(tf.image.rgb_to_grayscale(X), X @ np.float32([[0.2989], [0.587], [0.114]]))
    assert tf.image.rgb_to_grayscale(U).dtype == tf.uint8
    close(tf.image.grayscale_to_rgb(X[..., :1]), np.repeat(X[..., :1], 3, -1))
    delta = tf.image.random_brightness(X, 0.2, seed=1).numpy() - X
    assert abs(delta.mean()) < 0.2
    np.testing.assert_allclose(delta, delta.mean(), atol=1e-5)
    assert tf.image.random_contrast(X, 0.5, 1.5).shape == X.shape
    fails(ValueError, "rgb_to_grayscale", lambda: tf.image.rgb_to_grayscale(X[..., :2]))
    fails(ValueError, "random_contrast", lambda: tf.image.random_contrast(X, 2.0, 1.0))


def test_colours():
    special = [[0.5, 0.5, 0.5], [0.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0], [0.2, 0.1, 0.9]]
    pixels = np.concatenate([X.reshape(-1, 3), np.float32(special)])
    hsv = np.array([colorsys.rgb_to_hsv(*pixel) for pixel in pixels])
    close(tf.image.rgb_to_hsv(pixels), hsv)
    close(tf.image.hsv_to_rgb(hsv), pixels)
    weak = np.array([colorsys.hsv_to_rgb(h, s / 2, v) for h, s, v in hsv])
    close(tf.image.adjust_saturation(pixels, 0.5), weak)
    turned = np.array([colorsys.hsv_to_rgb((h + 0.3) % 1, s, v) for h, s, v in hsv])
    close(tf.image.adjust_hue(pixels, 0.3), turned)
    assert tf.image.adjust_hue(U, 0.1).dtype == tf.uint8
    assert tf.image.random_hue(X, 0.1).shape == X.shape
    close(tf.image.random_saturation(X, 0.999999, 1.0), X, 1e-4)
    fails(TypeError, "rgb_to_hsv", lambda: tf.image.rgb_to_hsv(U))
    fails(ValueError, "hsv_to_rgb", lambda: tf.image.hsv_to_rgb(X[..., :2]))


def test_measures():
    other = np.clip(X + 0.1, 0, 1)
    error = ((X - other) ** 2).mean((1, 2, 3))
    close(tf.image.psnr(X, other, max_val=1.0), 10 * np.log10(1 / error))
    whole = ((U.astype(float) - U[::-1]) ** 2).mean((1, 2, 3))
    close(tf.image.psnr(U, U[::-1].copy(), 255), 10 * np.log10(255**2 / whole), 1e-4)
    down, right = np.diff(X, axis=1), np.diff(X, axis=2)
    close(tf.image.total_variation(X), np.abs(down).sum((1, 2, 3)) + np.abs(right).sum((1, 2, 3)), 1e-4)
    got = tf.image.image_gradients(X)
    close(got[0], np.pad(down, [(0, 0), (0, 1), (0, 0), (0, 0)]))
    close(got[1], np.pad(right, [(0, 0), (0, 0), (0, 1), (0, 0)]))
    fails(ValueError, "image_gradients", lambda: tf.image.image_gradients(X[0]))


def test_bicubic_takes_its_weights_from_tensorflows_table():
    pictures = np.arange(12, dtype="float32").reshape(1, 3, 4, 1)
    expected = [-0.367991, 0.109662, 0.86489, 1.530906, 2.286133, 2.763786, 1.159564, 1.637218, 2.392445, 3.05846]
    expected += [3.813688, 4.291341, 3.934111, 4.411765, 5.166992, 5.833008, 6.588236, 7.065888]
    found = tf.image.resize(pictures, [5, 6], "bicubic").numpy().reshape(-1)[:18]
    np.testing.assert_allclose(found, expected, rtol=0, atol=4e-6)
