"""keras.ops where the backends of Keras differ: the answers are those of Keras 3.15 on TensorFlow 2.21."""

import numpy as np
import pytest

import taut as tf
from taut.keras import losses, ops

IMAGE = np.arange(12.0, dtype="float32").reshape(1, 3, 4, 1)


def rows(images):
    return ops.convert_to_numpy(images)[0, :, :, 0].tolist()


def test_probabilities_that_do_not_sum_to_one_are_clipped_before_they_are_normalized():
    made = np.array([[0.5, 0.2, 0.2], [3.0, -1.0, 0.3]], "float32")
    expected = [0.5877866, 1.4663371]
    np.testing.assert_allclose(ops.sparse_categorical_crossentropy([0, 2], made).numpy(), expected, rtol=1e-6)
    loss = losses.SparseCategoricalCrossentropy(reduction=None)
    np.testing.assert_allclose(tf.function(loss)(tf.constant([0, 2]), tf.constant(made)).numpy(), expected, rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError):
        ops.sparse_categorical_crossentropy([0, 5], made)


def test_the_classes_may_be_another_axis():
    # The first axis: TensorFlow has the last one only.
    made = np.array([[0.5, 0.2, 0.2], [3.0, -1.0, 0.3]], "float32")
    turned = ops.sparse_categorical_crossentropy([0, 2], made.T, axis=0)
    np.testing.assert_allclose(turned.numpy(), [0.5877866, 1.4663371], rtol=1e-6)


WARPED = {
    ("wrap", "bilinear"): [[2.25, 3.0, 0.25, 1.25], [3.25, 4.0, 1.25, 2.25], [2.25, 3.0, 0.25, 1.25]],
    ("wrap", "nearest"): [[2.0, 3.0, 0.0, 1.0], [2.0, 3.0, 0.0, 1.0], [2.0, 3.0, 0.0, 1.0]],
    ("reflect", "bilinear"): [[8.75, 8.0, 8.25, 9.25], [7.75, 7.0, 7.25, 8.25], [3.75, 3.0, 3.25, 4.25]],
    ("reflect", "nearest"): [[9.0, 8.0, 8.0, 9.0], [9.0, 8.0, 8.0, 9.0], [5.0, 4.0, 4.0, 5.0]],
}


@pytest.mark.parametrize(("fill_mode", "interpolation"), WARPED)
def test_transforms_reach_beyond_an_image(fill_mode, interpolation):
    shift = np.array([1.0, 0.0, -1.75, 0.0, 1.0, 2.25, 0.0, 0.0], "float32")
    made = ops.image.affine_transform(IMAGE, shift, interpolation=interpolation, fill_mode=fill_mode)
    np.testing.assert_allclose(rows(made), WARPED[fill_mode, interpolation], atol=1e-5)


def test_pixels_of_integers_are_truncated():
    shift = np.array([1.0, 0.0, 0.25, 0.0, 1.0, 0.5, 0.0, 0.0], "float32")
    made = ops.image.affine_transform((IMAGE * 10).astype("uint8"), shift, fill_value=7)
    assert rows(made) == [[22, 32, 42, 39], [62, 72, 82, 69], [44, 49, 54, 45]]


def test_a_blur_whose_kernel_is_not_square():
    expected = [
        [0.95284, 1.59179, 1.94071, 1.69787],
        [2.79714, 4.1577, 4.61119, 3.78726],
        [3.20936, 4.48222, 4.18813, 3.4004],
    ]
    np.testing.assert_allclose(rows(ops.image.gaussian_blur(IMAGE, (3, 5), (1.0, 2.0))), expected, atol=1e-4)


def test_an_odd_remainder_of_a_padding_is_stretched():
    made = ops.image.resize(IMAGE, (4, 4), pad_to_aspect_ratio=True, interpolation="nearest")
    assert rows(made) == [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0], [4.0, 5.0, 6.0, 7.0], [8.0, 9.0, 10.0, 11.0]]


def test_the_nearest_of_two_coordinates_is_even():
    made = ops.image.map_coordinates(np.arange(5.0, dtype="float32"), np.array([[0.5, 1.5, 2.5]], "float32"), 0)
    assert made.numpy().tolist() == [0.0, 2.0, 2.0]


def test_clip_with_limits_in_the_wrong_order():
    assert ops.clip(np.array([0.0, 2.0, -2.0], "float32"), 1, -1).numpy().tolist() == [1.0, 1.0, 1.0]


def test_a_slice_stays_inside():
    x = tf.reshape(tf.range(12), [3, 4])
    assert ops.slice(x, (1, 1), (2, -1)).numpy().tolist() == [[5, 6, 7], [9, 10, 11]]
    assert ops.slice(x, (3, 0), (0, 2)).shape == (0, 2)
    for start, size in (((1, 1), (5, 2)), ((-1, 0), (1, 1)), ((0, 0), (1, -2))):
        with pytest.raises(ValueError, match="must stay within"):
            ops.slice(x, start, size)


def test_bincount_of_negative_values_is_an_error():
    with pytest.raises(ValueError, match="must be >= 0, got -1"):
        ops.bincount(np.array([[1, 0], [0, -1]]))
    count = tf.function(lambda x: ops.bincount(x, minlength=4))
    assert count(tf.constant([1, 1, 3])).numpy().tolist() == [0, 2, 0, 1]
    with pytest.raises(ValueError, match="must be >= 0"):
        count(tf.constant([1, -1, 3]))


def test_the_logarithm_of_a_determinant_needs_a_positive_definite_matrix():
    np.testing.assert_allclose(ops.logdet(np.diag([2.0, 3.0])).numpy(), np.log(6.0), rtol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not positive definite"):
        ops.logdet(np.array([[1.0, 2.0], [2.0, 1.0]], "float32"))
