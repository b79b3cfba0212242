"""Histograms and segment reductions against NumPy."""

import numpy as np
import pytest
from checks import fails

import taut as tf


def test_bincount():
    x = np.array([1, 1, 3, 0, 7])
    got = tf.math.bincount(x)
    assert got.dtype == tf.int32
    assert got.numpy().tolist() == np.bincount(x).tolist()
    assert tf.math.bincount(x, minlength=10).numpy().tolist() == np.bincount(x, minlength=10).tolist()
    assert tf.math.bincount(x, maxlength=3).numpy().tolist() == [1, 2, 0]
    weights = np.array([0.5, 1, 2, 4, 8], "float32")
    assert tf.math.bincount(x, weights).numpy().tolist() == np.bincount(x, weights).tolist()
    assert tf.math.bincount(x, dtype=tf.int64).dtype == tf.int64
    assert tf.math.bincount(tf.zeros([0], tf.int32)).shape == (0,)


def test_bincount_by_row():
    x = np.array([[1, 1, 3], [0, 2, 2]])
    want = [np.bincount(row, minlength=4).tolist() for row in x]
    assert tf.math.bincount(x, axis=-1).numpy().tolist() == want
    binary = tf.math.bincount(x, axis=-1, binary_output=True).numpy()
    assert binary.tolist() == (np.array(want) > 0).astype(int).tolist()
    assert tf.math.bincount(x).numpy().tolist() == np.bincount(x.ravel()).tolist()


def test_bincount_refuses():
    fails(ValueError, "bincount", lambda: tf.math.bincount([-1, 2]))
    fails(ValueError, "bincount", lambda: tf.math.bincount([1], axis=3))
    fails(ValueError, "bincount", lambda: tf.math.bincount([1], weights=[1.0], binary_output=True))


def test_confusion_matrix():
    labels, predictions = [1, 2, 4, 4], [2, 2, 4, 4]
    want = np.zeros((5, 5), int)
    np.add.at(want, (labels, predictions), 1)
    got = tf.math.confusion_matrix(labels, predictions)
    assert got.dtype == tf.int32
    assert got.numpy().tolist() == want.tolist()
    weighted = tf.math.confusion_matrix([0, 1], [1, 1], 2, weights=[0.5, 2.0], dtype=tf.float32)
    assert weighted.numpy().tolist() == [[0, 0.5], [0, 2]]
    fails(ValueError, "confusion_matrix", lambda: tf.math.confusion_matrix([0, 1], [1]))


def test_invert_permutation():
    order = np.random.default_rng(1).permutation(9).astype("int32")
    got = tf.math.invert_permutation(order)
    assert got.dtype == tf.int32
    assert got.numpy().tolist() == np.argsort(order).tolist()
    fails(ValueError, "invert_permutation", lambda: tf.math.invert_permutation([0, 0]))
    fails(ValueError, "invert_permutation", lambda: tf.math.invert_permutation([[0]]))


COMBINE = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "max": np.max, "min": np.min}


@pytest.mark.parametrize("which", COMBINE)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_segments(which, dtype):
    data = np.random.default_rng(2).uniform(1, 2, (6, 3)).astype(dtype)
    ids = np.array([0, 0, 1, 1, 1, 2])
    want = np.stack([COMBINE[which](data[ids == i], axis=0) for i in range(3)])
    got = getattr(tf.math, f"segment_{which}")(data, ids, name="a_name")
    assert got.dtype.name == dtype
    np.testing.assert_allclose(got, want, rtol=1e-6)
    order = np.array([5, 2, 0, 3, 1, 4])
    unsorted = getattr(tf.math, f"unsorted_segment_{which}")
    np.testing.assert_allclose(unsorted(data[order], ids[order], 3), want, rtol=1e-6)


def test_rows_with_a_negative_id_belong_nowhere():
    data, ids = tf.constant([[1.0], [2.0], [4.0]]), [0, -1, 0]
    assert tf.math.unsorted_segment_sum(data, ids, 2).numpy().tolist() == [[5], [0]]
    assert tf.math.unsorted_segment_mean(data, ids, 2).numpy().tolist() == [[2.5], [0]]
    assert tf.math.unsorted_segment_max(data, ids, 2).numpy().tolist() == [[4], [np.finfo("float32").min]]
    assert tf.math.unsorted_segment_prod(data, ids, 2).numpy().tolist() == [[4], [1]]
    got = tf.math.unsorted_segment_sqrt_n(data, [0, 0, 1], 3).numpy()
    np.testing.assert_allclose(got, [[3 / np.sqrt(2)], [4], [0]], rtol=1e-6)
    traced = tf.function(lambda ids: tf.math.unsorted_segment_sum(data, ids, 2), autograph=False)
    assert traced(tf.constant(ids)).numpy().tolist() == [[5], [0]]


def test_segments_refuse():
    fails(IndexError, "unsorted_segment_sum", lambda: tf.math.unsorted_segment_sum([1.0], [5], 2))
    fails((ValueError, IndexError), "segment_sum", lambda: tf.math.segment_sum([1.0, 2.0], [1, 0]))
    fails((ValueError, TypeError), "segment_sum", lambda: tf.math.segment_sum([1.0, 2.0], [0.5, 1.0]))


def test_the_mean_of_integers_is_not_cut_off():
    made = tf.math.unsorted_segment_mean([1, 2, 3], [1, 0, 0], 3)
    assert made.dtype == tf.float32 and made.numpy().tolist() == [2.5, 1.0, 0.0]


def test_a_column_of_labels_is_counted_as_a_row():
    want = [[0, 1], [0, 1]]
    assert tf.math.confusion_matrix([[0], [1]], [1, 1]).numpy().tolist() == want
    assert tf.math.confusion_matrix([0, 1], [[1], [1]]).numpy().tolist() == want


def test_segments_that_are_known_are_known_in_a_trace():
    x = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    for name, wanted in [("sum", [[4, 6], [5, 6]]), ("max", [[3, 4], [5, 6]]), ("mean", [[2, 3], [5, 6]])]:
        work = getattr(tf.math, f"segment_{name}")
        traced = tf.function(lambda x, work=work: work(x, [0, 0, 1]))
        np.testing.assert_array_equal(traced(x), wanted)
