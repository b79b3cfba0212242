"""tf.image against NumPy: patches, SSIM and bounding boxes."""

import numpy as np
import pytest
from checks import fails

import taut as tf

RNG = np.random.default_rng(8)
X = RNG.random((2, 7, 6, 3)).astype("float32")


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    "size,stride,rate", [((3, 2), (1, 1), (1, 1)), ((2, 3), (2, 3), (1, 1)), ((2, 3), (2, 1), (3, 2))]
)
def test_patches(padding, size, stride, rate):
    got = tf.image.extract_patches(X, [1, *size, 1], [1, *stride, 1], [1, *rate, 1], padding)
    spread = [(k - 1) * r + 1 for k, r in zip(size, rate)]
    padded, counts = X, []
    for axis, (n, k, s) in enumerate(zip(X.shape[1:3], spread, stride)):
        count = -(-n // s) if padding == "SAME" else (n - k) // s + 1
        free = max((count - 1) * s + k - n, 0) if padding == "SAME" else 0
        widths = [(0, 0)] * 4
        widths[axis + 1] = (free // 2, free - free // 2)
        padded = np.pad(padded, widths)
        counts.append(count)
    assert got.shape == [2, *counts, size[0] * size[1] * 3]
    for i in range(counts[0]):
        for j in range(counts[1]):
            top, left = i * stride[0], j * stride[1]
            want = padded[:, top : top + spread[0] : rate[0], left : left + spread[1] : rate[1]]
            np.testing.assert_array_equal(got[:, i, j], want.reshape(2, -1))


def test_patches_that_do_not_fit():
    assert tf.image.extract_patches(X, [1, 9, 9, 1], [1, 1, 1, 1], [1, 1, 1, 1], "VALID").shape == [2, 0, 0, 243]
    ones = [1, 1, 1, 1]
    fails(ValueError, "extract_patches", lambda: tf.image.extract_patches(X, [2, 2, 2, 1], ones, ones, "VALID"))
    fails(ValueError, "extract_patches", lambda: tf.image.extract_patches(X[0], ones, ones, ones, "VALID"))
    fails(ValueError, "extract_patches", lambda: tf.image.extract_patches(X, ones, ones, ones, "FULL"))


def test_edges():
    ramp = np.broadcast_to(np.arange(5.0)[:, None] + 10 * np.arange(6.0), (1, 5, 6))[..., None].astype("float32")
    made = tf.image.sobel_edges(ramp).numpy()
    assert made.shape == (1, 5, 6, 1, 2)
    np.testing.assert_allclose(made[0, 1:-1, :, 0, 0], 8.0)
    np.testing.assert_allclose(made[0, :, 1:-1, 0, 1], 80.0)


def reference_ssim(x, y, size=11, sigma=1.5):
    g = np.exp(-0.5 * ((np.arange(size) - (size - 1) / 2) / sigma) ** 2)
    window = np.outer(g, g) / g.sum() ** 2

    def mean(z):
        views = np.lib.stride_tricks.sliding_window_view(z, (size, size), (0, 1))
        return np.einsum("ijckl,kl->ijc", views, window)

    a, b = mean(x), mean(y)
    va, vb, cov = mean(x * x) - a * a, mean(y * y) - b * b, mean(x * y) - a * b
    contrast = (2 * cov + 9e-4) / (va + vb + 9e-4)
    return (2 * a * b + 1e-4) / (a * a + b * b + 1e-4) * contrast, contrast


def test_likeness():
    x = RNG.random((2, 20, 17, 3))
    y = np.clip(x + 0.1 * RNG.normal(size=x.shape), 0, 1)
    want = [reference_ssim(*pair)[0] for pair in zip(x, y)]
    got = tf.image.ssim(x.astype("float32"), y.astype("float32"), 1.0)
    np.testing.assert_allclose(got, [one.mean() for one in want], rtol=1e-4)
    pixels = tf.image.ssim(x[0].astype("float32"), y[0].astype("float32"), 1.0, return_index_map=True)
    np.testing.assert_allclose(pixels, want[0].mean(-1), rtol=1e-3)
    np.testing.assert_allclose(tf.image.ssim(X, X, 1.0, filter_size=5), [1.0, 1.0], rtol=1e-5)
    fails(ValueError, "ssim", lambda: tf.image.ssim(X, X, 1.0))
    fails(ValueError, "ssim", lambda: tf.image.ssim(X, X[:1], 1.0))


def test_likeness_at_several_sizes():
    x = RNG.random((1, 20, 16, 2))
    y = np.clip(x + 0.1 * RNG.normal(size=x.shape), 0, 1)
    half = [one.reshape(10, 2, 8, 2, 2).mean((1, 3)) for one in (x[0], y[0])]
    first = reference_ssim(x[0], y[0], 5)[1].mean((0, 1))
    second = reference_ssim(*half, 5)[0].mean((0, 1))
    want = (np.maximum(first, 0) ** 0.4 * np.maximum(second, 0) ** 0.6).mean()
    got = tf.image.ssim_multiscale(x.astype("float32"), y.astype("float32"), 1.0, (0.4, 0.6), filter_size=5)
    np.testing.assert_allclose(got, [want], rtol=1e-4)


@pytest.mark.parametrize("name", ["yuv", "yiq"])
def test_light_and_colours(name):
    made = getattr(tf.image, f"rgb_to_{name}")(X)
    np.testing.assert_allclose(made[..., 0], X @ [0.299, 0.587, 0.114], rtol=1e-5)
    np.testing.assert_allclose(
        getattr(tf.image, f"rgb_to_{name}")([[0.5, 0.5, 0.5]]), [[0.5, 0, 0]], atol=2e-5
    )  # of yiq, 1.8e-5 as in TensorFlow
    np.testing.assert_allclose(getattr(tf.image, f"{name}_to_rgb")(made), X, atol=1e-4)
    fails(TypeError, name, lambda: getattr(tf.image, f"rgb_to_{name}")(tf.zeros([2, 3], tf.uint8)))


def test_kernels_that_blur_do_so_at_the_same_size_too():
    for method in ("gaussian", "mitchellcubic"):
        assert np.abs(tf.image.resize(X, X.shape[1:3], method).numpy() - X).max() > 0.01
    np.testing.assert_array_equal(tf.image.resize(X, X.shape[1:3], "lanczos3"), X)


@pytest.mark.parametrize(
    "name,bounds", [("brightness", [0.3]), ("contrast", [0.5, 1.5]), ("saturation", [0.5, 1.5]), ("hue", [0.2])]
)
def test_random_changes_by_a_seed(name, bounds):
    change = getattr(tf.image, f"stateless_random_{name}")
    one, same, other = (change(X, *bounds, seed=seed) for seed in ([1, 2], [1, 2], [1, 3]))
    np.testing.assert_array_equal(one, same)
    assert (one.numpy() != other.numpy()).any() and (one.numpy() != X).any()


def test_parts_in_boxes():
    boxes = [[0.0, 0.0, 1.0, 1.0], [0.5, 0.2, 0.5, 0.2], [0.0, 0.0, 2.0, 0.0]]
    made = tf.image.crop_and_resize(X, boxes, [0, 1, 1], [4, 2], extrapolation_value=9.0).numpy()
    assert made.shape == (3, 4, 2, 3)
    np.testing.assert_allclose(made[0], X[0][::2, ::5], rtol=1e-5)
    np.testing.assert_allclose(made[1], np.broadcast_to(X[1, 3, 1], (4, 2, 3)), rtol=1e-5)
    assert (made[2, 2:] == 9.0).all() and (made[2, :2] != 9.0).all()
    near = tf.image.crop_and_resize(X, [[0.1, 0.1, 0.1, 0.1]], [0], [1, 1], "nearest")
    np.testing.assert_array_equal(near[0, 0, 0], X[0, 1, 1])
    fails(ValueError, "crop_and_resize", lambda: tf.image.crop_and_resize(X, boxes, [0], [4, 2]))
    fails(ValueError, "crop_and_resize", lambda: tf.image.crop_and_resize(X, boxes, [0, 1, 1], [4, 2], "cubic"))


def test_the_gradient_of_parts():
    image, boxes = tf.constant(X), tf.constant([[0.13, 0.21, 0.77, 0.83]])

    def total(boxes):
        return tf.reduce_sum(tf.square(tf.image.crop_and_resize(image, boxes, [1], [3, 3])))

    with tf.GradientTape() as tape:
        tape.watch([image, boxes])
        made = total(boxes)
    whole, edges = tape.gradient(made, [image, boxes])
    assert not whole.numpy()[0].any() and whole.numpy()[1].any()
    step = np.eye(4, dtype="float32")[:, None] * 1e-3
    want = [float(total(boxes + one) - total(boxes - one)) / 2e-3 for one in step]
    np.testing.assert_allclose(edges[0], want, rtol=2e-2)


BOXES = np.array([[0, 0, 2, 2], [0, 0, 2, 1.9], [1, 1, 3, 3], [5, 5, 6, 6], [6, 6, 5, 5.1]], "float32")


def test_the_best_boxes():
    scores = [0.9, 0.95, 0.8, 0.1, 0.2]
    assert tf.image.non_max_suppression(BOXES, scores, 10).numpy().tolist() == [1, 2, 4]
    assert tf.image.non_max_suppression(BOXES, scores, 2).numpy().tolist() == [1, 2]
    assert tf.image.non_max_suppression(BOXES, scores, 10, 0.97).numpy().tolist() == [1, 0, 2, 4, 3]
    assert tf.image.non_max_suppression(BOXES, scores, 10, score_threshold=0.5).numpy().tolist() == [1, 2]
    made = tf.image.non_max_suppression(BOXES, scores, 0)
    assert made.shape == [0] and made.dtype == tf.int32
    fails(ValueError, "non_max_suppression", lambda: tf.image.non_max_suppression(BOXES[:, :3], scores, 3))
    fails(ValueError, "non_max_suppression", lambda: tf.image.non_max_suppression(BOXES, scores[1:], 3))
    f = tf.function(lambda boxes: tf.image.non_max_suppression(boxes, scores, 3))
    with pytest.raises(TypeError, match="traced"):
        f.plan(tf.TensorSpec([5, 4]))
    with pytest.warns(RuntimeWarning, match="runs op by op"):
        assert f(tf.constant(BOXES)).numpy().tolist() == [1, 2, 4]


def test_boxes_that_lose_by_what_they_share():
    scores = np.array([0.9, 0.95, 0.1, 0.3, 0.2], "float32")
    places, kept = tf.image.non_max_suppression_with_scores(BOXES, scores, 3, soft_nms_sigma=0.5)
    assert places.numpy().tolist() == [1, 0, 3]
    shared = 3.8 / 4.0
    np.testing.assert_allclose(kept, [0.95, 0.9 * np.exp(-(shared**2)), 0.3], rtol=1e-4)
