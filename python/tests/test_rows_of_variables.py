"""`tf.IndexedSlices`, the gradient of a lookup, and updates of rows. The literals are TensorFlow's answers."""

import pytest

import taut as tf


def lookup_gradient():
    rows = tf.Variable(tf.ones([4, 2]))
    with tf.GradientTape() as tape:
        y = tf.gather(rows, [0, 2])
    return tape.gradient(y, rows)


def test_the_dense_shape_is_a_tensor():
    slices = lookup_gradient()
    assert isinstance(slices.dense_shape, tf.Tensor) and slices.dense_shape.dtype == tf.int32
    assert slices.dense_shape.numpy().tolist() == [4, 2] and slices.shape == tf.TensorShape([4, 2])
    rows = tf.Variable(tf.ones([4, 2]))

    @tf.function
    def twice():
        with tf.GradientTape() as tape:
            y = tf.gather(rows, [0, 2])
        slices = tape.gradient(y, rows)
        return slices.dense_shape * 2, slices

    shape, slices = twice()
    assert shape.numpy().tolist() == [8, 4] and slices.dense_shape.numpy().tolist() == [4, 2]


def test_slices_without_a_dense_shape():
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([0]))
    assert slices.dense_shape is None and slices.shape.rank is None
    assert repr(slices) == (
        "IndexedSlices(indices=tf.Tensor([0], shape=(1,), dtype=int32), "
        "values=tf.Tensor([[1. 2.]], shape=(1, 2), dtype=float32))"
    )
    assert (-slices).values.numpy().tolist() == [[-1.0, -2.0]]
    with pytest.raises(ValueError, match="dense_shape"):
        tf.convert_to_tensor(slices)
    assert tf.function(lambda one: one)(slices).dense_shape is None


def test_slices_with_a_dense_shape():
    slices = tf.IndexedSlices(tf.constant([[1.0, 2.0]]), tf.constant([0]), tf.constant([3, 2]))
    assert slices.shape == tf.TensorShape([3, 2])
    assert tf.convert_to_tensor(slices).numpy().tolist() == [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]]
    assert "dense_shape=tf.Tensor([3 2], shape=(2,), dtype=int32)" in repr(slices)
    assert tf.type_spec_from_value(slices) == tf.IndexedSlicesSpec([3, 2], "float32", "int32", "int32", [1])


def test_rows_of_batches_are_replaced():
    v = tf.Variable(tf.zeros([2, 3, 2]))
    updates = tf.IndexedSlices(tf.reshape(tf.range(1.0, 9.0), [2, 2, 2]), tf.constant([[0, 2], [1, 0]]))
    assert v.batch_scatter_update(updates) is v
    assert v.numpy().tolist() == [
        [[1.0, 2.0], [0.0, 0.0], [3.0, 4.0]],
        [[7.0, 8.0], [5.0, 6.0], [0.0, 0.0]],
    ]
    v = tf.Variable(tf.zeros([2, 3]))
    v.batch_scatter_update(tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([[0, 2], [1, 0]])))
    assert v.numpy().tolist() == [[1.0, 0.0, 2.0], [4.0, 3.0, 0.0]]
    v = tf.Variable(tf.zeros([3, 2]))
    v.batch_scatter_update(tf.IndexedSlices(tf.constant([[1.0, 2.0], [3.0, 4.0]]), tf.constant([0, 2])))
    assert v.numpy().tolist() == [[1.0, 2.0], [0.0, 0.0], [3.0, 4.0]]


def test_gradients_stop_at_tensors():
    @tf.function
    def found(x):
        y = x * x
        z = y * x
        return (
            tf.gradients(z, [x, y]),
            tf.gradients(z, [x, y], stop_gradients=[y]),
            tf.gradients(z, x, stop_gradients=x),
            tf.gradients(z, x, stop_gradients=[z]),
            tf.gradients(z, [z, x], stop_gradients=z),
        )

    through, stopped, at_source, at_target, of_target = found(tf.constant(3.0))
    assert [float(one) for one in through] == [27.0, 3.0]
    assert [float(one) for one in stopped] == [9.0, 3.0]
    assert float(at_source[0]) == 27.0
    assert at_target == [None]
    assert float(of_target[0]) == 1.0 and of_target[1] is None
