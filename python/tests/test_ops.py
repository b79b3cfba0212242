"""Creation, types and shapes against NumPy."""

import numpy as np
import pytest
from checks import fails

import taut as tf


def same(got, want):
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape
    np.testing.assert_array_equal(np.asarray(got), want)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int16", "int32", "int64", "float16", "float64"])
def test_filled(dtype):
    for shape in ([], [0, 2], [2, 3]):
        for name in ("zeros", "ones"):
            made = getattr(tf, name)(shape, dtype)
            assert made.dtype.name == dtype
            same(made, getattr(np, name)(shape, dtype))
    same(tf.zeros_like(tf.ones([2, 3]), dtype=dtype), np.zeros((2, 3), dtype))
    same(tf.eye(2, 3, batch_shape=[2], dtype=dtype), np.broadcast_to(np.eye(2, 3).astype(dtype), (2, 2, 3)))


def test_fill():
    same(tf.fill([2, 3], 7), np.full((2, 3), 7))
    assert tf.fill([2], 7).dtype == tf.int32
    assert tf.fill([2], 7.5).dtype == tf.float32
    assert tf.fill(tf.constant([2, 1]), True).dtype == tf.bool
    same(tf.ones_like([[1, 2]]), [[1, 1]])
    same(tf.zeros(3), np.zeros(3))
    same(tf.ones(tf.TensorShape([2, 1])), np.ones((2, 1)))


def test_range():
    same(tf.range(5), np.arange(5))
    assert tf.range(5).dtype == tf.int32
    assert tf.range(1.0, 2.0, 0.25).dtype == tf.float32
    same(tf.range(1.0, 2.0, 0.25), np.arange(1.0, 2.0, 0.25))
    same(tf.range(start=9, limit=0, delta=-4), np.arange(9, 0, -4))
    assert tf.range(3, dtype=tf.float64).dtype == tf.float64
    assert tf.range(tf.constant(3, tf.int64)).dtype == tf.int64
    assert tf.range(tf.constant(1), tf.constant(2.5)).dtype == tf.float32
    assert tf.range(0).shape == (0,)


def test_linspace():
    for num in (1, 2, 7):
        np.testing.assert_allclose(tf.linspace(1.0, 4.0, num), np.linspace(1, 4, num), rtol=1e-6)
    assert tf.linspace(0, 10, 3).dtype == tf.float32
    for axis in (0, 1, -1):
        got = tf.linspace([0.0, 1.0], [10.0, 30.0], 5, axis=axis)
        np.testing.assert_allclose(got, np.linspace([0, 1], [10, 30], 5, axis=axis), rtol=1e-6)
    fails(ValueError, "linspace", lambda: tf.linspace(0.0, 1.0, -1))


def test_one_hot():
    same(tf.one_hot([0, 2, -1], 3), [[1, 0, 0], [0, 0, 1], [0, 0, 0]])
    assert tf.one_hot([0], 2).dtype == tf.float32
    same(tf.one_hot([0, 1], 2, on_value=5, off_value=-1), [[5, -1], [-1, 5]])
    assert tf.one_hot([0, 1], 2, on_value=5).dtype == tf.int32
    assert tf.one_hot([0, 1], 2, True, False).dtype == tf.bool
    same(tf.one_hot([0, 1], 3, axis=0), np.eye(3)[:, :2])
    fails(TypeError, "one_hot", lambda: tf.one_hot([0.5], 2))


def test_masks_and_grids():
    lengths = np.array([[1, 3], [0, 2]])
    same(tf.sequence_mask(lengths), np.arange(3) < lengths[..., None])
    same(tf.sequence_mask([1, 2], 4, tf.int32), [[1, 0, 0, 0], [1, 1, 0, 0]])
    for indexing in ("xy", "ij"):
        got = tf.meshgrid([1, 2, 3], [4, 5], indexing=indexing)
        assert isinstance(got, list)
        for one, want in zip(got, np.meshgrid([1, 2, 3], [4, 5], indexing=indexing)):
            same(one, want)


def test_casts():
    x = np.array([-1.7, 0.0, 2.9], "float32")
    same(tf.cast(x, tf.int32), [-1, 0, 2])
    same(tf.cast(x, tf.bool), [True, False, True])
    same(tf.saturate_cast([300.0, -5.0, 3.7], tf.uint8), [255, 0, 3])
    same(tf.saturate_cast(tf.constant([300, -500, 3]), tf.int8), [127, -128, 3])
    largest = np.finfo("float32").max
    same(tf.saturate_cast(np.array([1e300, -1e300]), tf.float32), np.array([largest, -largest]))
    rows = tf.cast(tf.IndexedSlices(tf.constant([[1.5]]), tf.constant([0]), [3, 1]), tf.float64)
    assert rows.dtype == tf.float64
    same(tf.bitcast(np.array([1.0], "float32"), tf.int32), [0x3F800000])
    same(tf.truncatediv([-7, 7], 2), [-3, 3])
    same(tf.truncatemod([-7, 7], 2), [-1, 1])
    with pytest.raises(TypeError):
        tf.cast([1.0], "no type")


X = np.arange(24, dtype="float32").reshape(2, 3, 4)


STEPS = tf.constant(np.repeat(X, 2, -1))[..., ::2]


@pytest.mark.parametrize("x", [tf.constant(X), STEPS, tf.transpose(X.T.copy())])
def test_shapes(x):
    same(tf.transpose(x), X.T)
    same(tf.transpose(x, perm=[1, 0, 2]), X.transpose(1, 0, 2))
    same(tf.reshape(x, [4, -1]), X.reshape(4, -1))
    same(tf.reshape(tensor=x, shape=tf.constant([24])), X.reshape(24))
    same(tf.expand_dims(x, axis=1), X[:, None])
    same(tf.squeeze(tf.expand_dims(x, -1)), X)
    same(tf.squeeze(tf.reshape(x, [1, 24, 1]), axis=[0]), X.reshape(24, 1))
    same(tf.reverse(x, [0, -1]), X[::-1, :, ::-1])
    same(tf.roll(x, shift=[1, -2], axis=[0, 2]), np.roll(X, (1, -2), (0, 2)))
    same(tf.tile(x, [1, 2, 1]), np.tile(X, (1, 2, 1)))
    same(tf.repeat(x, 2, axis=1), np.repeat(X, 2, 1))
    same(tf.repeat(x, [0, 1, 2], axis=1), np.repeat(X, [0, 1, 2], 1))
    same(tf.repeat(x, 2), np.repeat(X, 2))
    same(tf.concat([x, x], axis=-1), np.concatenate([X, X], -1))
    same(tf.stack([x, x], axis=1), np.stack([X, X], 1))
    same(tf.broadcast_to(x[:, :1], [5, 2, 3, 4]), np.broadcast_to(X[:, :1], (5, 2, 3, 4)))
    same(tf.pad(x, [[0, 0], [1, 2], [0, 1]]), np.pad(X, [[0, 0], [1, 2], [0, 1]]))
    same(tf.pad(x, [[0, 0], [1, 1], [2, 0]], mode="reflect"), np.pad(X, [[0, 0], [1, 1], [2, 0]], "reflect"))
    same(tf.pad(x, [[0, 0], [1, 1], [2, 0]], "SYMMETRIC"), np.pad(X, [[0, 0], [1, 1], [2, 0]], "symmetric"))
    margin = [[1, 0], [0, 0], [0, 0]]
    same(tf.pad(x, margin, constant_values=9), np.pad(X, margin, constant_values=9))
    same(tf.identity(x, name="a_name"), X)


def test_splitting():
    parts = tf.split(X, 2, axis=2)
    assert isinstance(parts, list)
    for got, want in zip(parts, np.split(X, 2, 2)):
        same(got, want)
    assert [part.shape[1] for part in tf.split(X, [1, -1], axis=1)] == [1, 2]
    assert [part.shape[0] for part in tf.split(X, tf.constant([1, 1]))] == [1, 1]
    assert len(tf.split(X, 1)) == 1
    for got, want in zip(tf.unstack(X, axis=1), X.transpose(1, 0, 2)):
        same(got, want)
    assert len(tf.unstack(X, num=2)) == 2
    fails(ValueError, "unstack", lambda: tf.unstack(X, num=3))
    fails(ValueError, "split", lambda: tf.split(X, 5, axis=1))
    fails(ValueError, "split", lambda: tf.split(X, [1, 1], axis=1))


def test_shapes_refuse():
    fails(ValueError, "reshape", lambda: tf.reshape(X, [5, 5]))
    fails(ValueError, "concat", lambda: tf.concat([tf.zeros([2]), tf.zeros([2, 2])], 0))
    fails(ValueError, "transpose", lambda: tf.transpose(X, [0, 0, 1]))
    fails(ValueError, "broadcast_to", lambda: tf.broadcast_to(X, [2, 3]))
    fails(ValueError, "add", lambda: tf.add(tf.zeros([2]), tf.zeros([3])))
    fails(ValueError, "ensure_shape", lambda: tf.ensure_shape(X, [2, None, 5]))
    fails(ValueError, "broadcast_static_shape", lambda: tf.broadcast_static_shape([2], [3]))
    fails(ValueError, "squeeze", lambda: tf.squeeze(X, [0]))


def test_shapes_as_values():
    same(tf.broadcast_dynamic_shape(tf.constant([1, 2, 3]), tf.constant([5, 1, 3])), [5, 2, 3])
    assert tf.broadcast_static_shape([1, 3], [2, 1]) == tf.TensorShape([2, 3])
    shapes = tf.shape_n([X, X[0]])
    same(shapes[1], [3, 4])
    assert shapes[0].dtype == tf.int32
    same(tf.ensure_shape(X, [None, 3, 4]), X)
    same(tf.shape(X), [2, 3, 4])
    assert tf.size(X).numpy() == 24
    assert tf.rank(X).numpy() == 3


def test_batches_of_blocks():
    image = np.arange(2 * 4 * 6, dtype="float32").reshape(2, 4, 6, 1)
    got = tf.space_to_batch(image, [2, 3], [[0, 0], [0, 0]])
    want = image.reshape(2, 2, 2, 2, 3, 1).transpose(2, 4, 0, 1, 3, 5).reshape(12, 2, 2, 1)
    same(got, want)
    same(tf.batch_to_space(got, [2, 3], [[0, 0], [0, 0]]), image)
    padded = tf.space_to_batch(image, [2, 2], [[1, 1], [2, 0]])
    same(tf.batch_to_space(padded, [2, 2], [[1, 1], [2, 0]]), image)
    fails(ValueError, "space_to_batch", lambda: tf.space_to_batch(image, [3, 3], [[0, 0], [0, 0]]))
    fails(ValueError, "batch_to_space", lambda: tf.batch_to_space(image, [3, 3], [[0, 0], [0, 0]]))


def test_clipping():
    x = np.array([[3.0, 4.0], [0.0, 0.5]], "float32")
    norm = np.linalg.norm(x)
    same(tf.clip_by_value(x, clip_value_min=1.0, clip_value_max=3.5), np.clip(x, 1, 3.5))
    np.testing.assert_allclose(tf.clip_by_norm(x, 1.0), x / norm, rtol=1e-6)
    rows = np.linalg.norm(x, axis=1, keepdims=True)
    np.testing.assert_allclose(tf.clip_by_norm(x, 1.0, axes=[1]), x / np.maximum(rows, 1), rtol=1e-6)
    np.testing.assert_allclose(tf.clip_by_norm(x, tf.constant(1.0)), x / norm, rtol=1e-6)
    whole = np.sqrt(2) * norm
    clipped, got = tf.clip_by_global_norm([x, x], 2.0)
    np.testing.assert_allclose(got, whole, rtol=1e-6)
    np.testing.assert_allclose(clipped[1], x * 2 / whole, rtol=1e-6)
    clipped, got = tf.clip_by_global_norm([x, None, tf.IndexedSlices(x, [0, 1], [5, 2])], 2.0)
    assert clipped[1] is None
    np.testing.assert_allclose(got, whole, rtol=1e-6)
    np.testing.assert_allclose(clipped[2].values, x * 2 / whole, rtol=1e-6)
    clipped, _ = tf.clip_by_global_norm([x, None], 2.0, use_norm=np.float32(np.inf))
    assert np.all(np.isnan(clipped[0]))
    fails(TypeError, "clip_by_global_norm", lambda: tf.clip_by_global_norm(tf.constant(x), 2.0))


def test_scopes():
    with tf.name_scope("a"), tf.device("/CPU:0"), tf.control_dependencies([]):
        same(tf.add(1, 2), 3)
    with pytest.raises(ValueError, match="unknown attribute 'nothing'"), tf.device("nothing"):
        pass
    assert tf.no_op() is None
    assert tf.group(tf.constant(1)) is None


def test_python_inside():
    x = tf.constant([1.0, 4.0])
    got = tf.numpy_function(np.sqrt, [x], tf.float32)
    same(got, np.float32([1, 2]))
    first, second = tf.numpy_function(lambda a, b: (a + b, a.sum()), [x, x], [tf.float32, tf.float64])
    same(first, np.float32([2, 8]))
    assert second.dtype == tf.float64
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = tf.py_function(lambda a: a * a, [x], tf.float32)
    same(tape.gradient(y, x), np.float32([2, 8]))
    assert tf.py_function(lambda: None, [], []) == []
    fails(ValueError, "numpy_function", lambda: tf.numpy_function(np.sqrt, [x], [tf.float32] * 3))
    traced = tf.function(lambda x: tf.numpy_function(np.sqrt, [x], tf.float32), autograph=False)
    fails(tf.errors.DynamicShapeError, "numpy_function", lambda: traced.plan(x))


def test_shapes_are_tensors_too():
    row = tf.shape(tf.ones([3]))
    for made in (tf.zeros(row), tf.ones(row), tf.fill(row, 1.0), tf.random.normal(row), tf.random.uniform(row)):
        assert made.shape == [3]
    assert tf.zeros(tf.constant(3)).shape == tf.fill(3, 1).shape == tf.zeros(np.int64(3)).shape == [3]
    assert tf.eye(2, batch_shape=tf.constant([2])).shape == [2, 2, 2]
    assert tf.scatter_nd([[1]], [2.0], row).numpy().tolist() == [0.0, 2.0, 0.0]


def test_numbers_take_the_type_of_the_tensors_they_stand_with():
    assert tf.stack([1.0, 2, 3]).dtype == tf.float32
    assert tf.stack([tf.constant(1.0, tf.float16), 2]).dtype == tf.float16
    assert tf.concat([tf.constant([1.0]), [2, 3]], 0).dtype == tf.float32
    assert tf.concat([np.array([1.0]), [2.5]], 0).dtype == tf.float64
    assert tf.stack([tf.constant(1), 2.5]).dtype == tf.float32
    assert tf.truncatediv(7, tf.constant([2.0])).dtype == tf.float32


def test_a_tensor_is_stacked_by_its_slices():
    x = np.arange(6.0).reshape(2, 3)
    for axis in (0, 1, -1):
        same(tf.stack(tf.constant(x), axis), np.stack(list(x), axis))


def test_linspace_has_a_gradient():
    start, stop = tf.constant(1.0), tf.constant(2.0)
    with tf.GradientTape() as tape:
        tape.watch([start, stop])
        made = tf.linspace(start, stop, 3)
    same(made, np.array([1.0, 1.5, 2.0], np.float32))
    assert [float(one) for one in tape.gradient(made, [start, stop])] == [1.5, 1.5]


def test_constants_of_nothing_and_of_ranges():
    assert tf.constant([], tf.int32).dtype == tf.int32 and tf.constant([[]], tf.int64).shape == [1, 0]
    assert tf.convert_to_tensor([], tf.bool).shape == [0]
    assert tf.constant([]).dtype == tf.float32
    same(tf.constant(range(3)), np.arange(3, dtype=np.int32))
    same(tf.convert_to_tensor(range(3), tf.float32), np.arange(3, dtype=np.float32))
