"""Parts of variables."""

import taut as tf


def test_parts_are_read():
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
    with tf.GradientTape() as tape:
        read = v.sparse_read([1, 1])
    assert read.numpy().tolist() == [[3.0, 4.0], [3.0, 4.0]]
    assert tf.convert_to_tensor(tape.gradient(read, v)).numpy().tolist() == [[0.0, 0.0], [2.0, 2.0]]
    assert v.gather_nd([[0, 1]]).numpy().tolist() == [2.0]


def test_parts_are_written():
    v = tf.Variable([1.0, 2.0, 3.0])
    v.scatter_nd_max([[0], [1]], [9, 0])
    v.scatter_nd_min([[2]], [-9.0])
    assert v.numpy().tolist() == [9.0, 2.0, -9.0]
    v.scatter_nd_update([[0]], [5])
    v.scatter_add(tf.IndexedSlices([1], [2]))
    assert v.numpy().tolist() == [5.0, 2.0, -8.0]
