"""Slicing, gathering, scattering and sorting against NumPy."""

import numpy as np
import pytest
from checks import fails

import taut as tf

X = np.random.default_rng(3).normal(size=(4, 3, 5)).astype("float32")


def same(got, want):
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(np.asarray(got), want)


def test_slice():
    same(tf.slice(X, [1, 0, 2], [2, -1, 3]), X[1:3, :, 2:5])
    same(tf.slice(X, begin=tf.constant([0, 1, 0]), size=tf.constant([1, 1, 1])), X[:1, 1:2, :1])
    same(tf.slice(X, [4, 0, 0], [0, 3, 5]), X[4:])
    fails(ValueError, "slice", lambda: tf.slice(X, [0, 0, 3], [1, 1, 3]))
    fails(ValueError, "slice", lambda: tf.slice(X, [0, 0], [1, 1]))
    at = tf.function(lambda i: tf.slice(tf.constant(X), [i, 0, 0], [2, 3, 5]), autograph=False)
    same(at(tf.constant(1)), X[1:3])


def test_strided_slice():
    same(tf.strided_slice(X, [0, 0, 4], [4, 3, 0], [2, 1, -1]), X[::2, :, 4:0:-1])
    same(tf.strided_slice(X, [1], [3]), X[1:3])
    same(tf.strided_slice(X, [1, 1], [3, 2], begin_mask=1, end_mask=2), X[:3, 1:])
    same(tf.strided_slice(X, [1, 1], [2, 2], shrink_axis_mask=2), X[1:2, 1])
    same(tf.strided_slice(X, [0, 0, 1], [0, 0, 2], new_axis_mask=1, ellipsis_mask=2), X[None, ..., 1:2])


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gather(dtype):
    where = np.array([[0, 2], [2, 1]], dtype)
    same(tf.gather(X, where), X[where])
    same(tf.gather(X, where, axis=1), np.take(X, where, 1))
    same(tf.gather(X, where, axis=-1), np.take(X, where, -1))
    same(tf.gather(X[::2], where[:, :1], batch_dims=1), np.stack([X[0][[0]], X[2][[2]]]))
    same(tf.gather(X, np.zeros([0], dtype)), X[:0])
    same(tf.gather_nd(X, where), X[where[:, 0], where[:, 1]])
    fails(IndexError, "gather", lambda: tf.gather(X, [4]))
    fails(IndexError, "gather", lambda: tf.gather(X, [-1]))
    fails(TypeError, "gather", lambda: tf.gather(X, [0.5]))
    fails(IndexError, "gather_nd", lambda: tf.gather_nd(X, [[0, 3]]))


def test_masks():
    mask = X > 0
    same(tf.boolean_mask(X, mask), X[mask])
    same(tf.boolean_mask(X, [True, False, True], axis=1), X[:, [0, 2]])
    same(tf.where(mask), np.argwhere(mask))
    assert tf.where(mask).dtype == tf.int64
    same(tf.where(mask, X, 0.0), np.where(mask, X, 0))
    same(tf.where(mask[:1], X, -X), np.where(mask[:1], X, -X))
    assert tf.where([True], 1, 2).dtype == tf.int32
    fails(ValueError, "where", lambda: tf.where(mask, X))
    fails(TypeError, "where", lambda: tf.where(X, X, X))
    fails(ValueError, "boolean_mask", lambda: tf.boolean_mask(X, [True, False]))


def test_masks_that_are_known_when_a_function_is_traced():
    rows, places = np.array([True, False, True, True]), np.array([[True, False, True]] * 4)

    def masked(mask, axis):
        return tf.function(lambda x: tf.boolean_mask(x, mask, axis), autograph=False)

    same(masked(rows, 0)(tf.constant(X)), X[rows])
    same(masked(places, 0)(tf.constant(X)), X[places])
    same(masked(rows[:3], 1)(tf.constant(X)), X[:, rows[:3]])
    same(masked(rows[:3], -2)(tf.constant(X)), X[:, rows[:3]])
    traced = tf.function(lambda x: (x, tf.where(places)), autograph=False)
    same(traced(tf.constant(X))[1], np.argwhere(places))
    parts = tf.function(lambda x: tf.dynamic_partition(x, np.array([1, 0, 1, 1]), 2), autograph=False)
    same(parts(tf.constant(X))[1], X[[0, 2, 3]])


def test_reverse_sequence():
    lengths = [2, 0, 5, 3]
    want = X.copy()
    for row, length in enumerate(lengths):
        want[row, :, :length] = X[row, :, :length][:, ::-1]
    same(tf.reverse_sequence(X, lengths, seq_axis=2), want)
    turned = tf.reverse_sequence(X.transpose(2, 1, 0).copy(), lengths, seq_axis=0, batch_axis=2)
    same(turned, want.transpose(2, 1, 0))
    fails(ValueError, "reverse_sequence", lambda: tf.reverse_sequence(X, [1], seq_axis=1))


def test_scatter():
    indices, updates = np.array([[1], [3], [1]]), np.array([9.0, 10.0, 1.0], "float32")
    same(tf.scatter_nd(indices, updates, [5]), [0, 10, 0, 10, 0])
    base = np.ones(5, "float32")
    same(tf.tensor_scatter_nd_update(base, indices, updates), [1, 1, 1, 10, 1])
    same(tf.tensor_scatter_nd_add(base, indices, updates), [1, 11, 1, 11, 1])
    same(tf.tensor_scatter_nd_sub(base, indices, updates), [1, -9, 1, -9, 1])
    same(tf.tensor_scatter_nd_max(base, indices, updates), [1, 9, 1, 10, 1])
    same(tf.tensor_scatter_nd_min(base, indices, -updates), [1, -9, 1, -10, 1])
    fails(IndexError, "scatter", lambda: tf.scatter_nd([[7]], [1.0], [5]))
    fails(ValueError, "tensor_scatter", lambda: tf.tensor_scatter_nd_add(base, indices, updates[:2]))


def test_partition_and_stitch():
    numbers = [1, 0, 1, 2]
    parts = tf.dynamic_partition(X, numbers, 4)
    for i, part in enumerate(parts):
        same(part, X[np.array(numbers) == i])
    places = tf.dynamic_partition(tf.range(4), numbers, 4)
    same(tf.dynamic_stitch(places, parts), X)
    same(tf.dynamic_stitch([[0, 1], [1]], [[1, 2], [3]]), [1, 3])
    fails(ValueError, "dynamic_partition", lambda: tf.dynamic_partition(X, numbers, 2))
    fails(ValueError, "dynamic_stitch", lambda: tf.dynamic_stitch([[0]], [X]))


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "float16"])
def test_order(dtype):
    x = (np.random.default_rng(4).permutation(12).reshape(3, 4)).astype(dtype)
    for axis in (0, -1):
        same(tf.sort(x, axis=axis), np.sort(x, axis))
        same(tf.sort(x, axis, direction="DESCENDING"), -np.sort(-x.astype("float32"), axis))
        same(tf.argsort(x, axis), np.argsort(x, axis))
        same(tf.argsort(x, axis, "DESCENDING", stable=True), np.argsort(-x.astype("float32"), axis))
    assert tf.argsort(x).dtype == tf.int32
    fails(ValueError, "sort", lambda: tf.sort(x, direction="UP"))


def test_searchsorted():
    edges, values = np.array([1.0, 3.0, 3.0, 5.0], "float32"), np.array([0.0, 3.0, 9.0], "float32")
    for side in ("left", "right"):
        got = tf.searchsorted(edges, values, side=side)
        assert got.dtype == tf.int32
        same(got, np.searchsorted(edges, values, side))
    assert tf.searchsorted(edges, values, out_type=tf.int64).dtype == tf.int64
    fails(ValueError, "searchsorted", lambda: tf.searchsorted(edges, values, side="middle"))


def test_unique():
    y, idx, count = tf.unique_with_counts([5, 1, 5, 2, 1, 5])
    same(y, [5, 1, 2])
    same(idx, [0, 1, 0, 2, 1, 0])
    same(count, [3, 2, 1])
    assert idx.dtype == tf.int32
    assert tf.unique([1.5, 1.5], out_idx=tf.int64).idx.dtype == tf.int64
    assert tf.unique(tf.zeros([0], tf.int32)).y.shape == (0,)
    fails(ValueError, "unique", lambda: tf.unique([[1]]))


def test_places():
    flat = np.array([0, 7, 59, 23])
    same(tf.unravel_index(flat, [4, 3, 5]), np.stack(np.unravel_index(flat, (4, 3, 5))))
    fails(ValueError, "unravel_index", lambda: tf.unravel_index([60], [4, 3, 5]))
    values = np.array([-1.0, 0.0, 1.5, 2.0, 5.0, 15.0], "float32")
    same(tf.histogram_fixed_width(values, [0.0, 5.0], nbins=5), [2, 1, 1, 0, 2])
    same(tf.histogram_fixed_width_bins(values, [0.0, 5.0], nbins=5), [0, 0, 1, 2, 4, 4])
    assert tf.histogram_fixed_width(values, [0.0, 5.0]).dtype == tf.int32
    fails(ValueError, "histogram_fixed_width", lambda: tf.histogram_fixed_width(values, [5.0, 0.0]))


@pytest.mark.parametrize("name", ["add", "max", "min", "sub", "update"])
def test_scattered_lists_take_the_type_of_the_tensor(name):
    made = getattr(tf, f"tensor_scatter_nd_{name}")(tf.zeros([3]), [[0], [2]], [1, 2])
    assert made.dtype == tf.float32
