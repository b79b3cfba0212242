"""Sparse tensors: axes are checked, and adjoints are conjugates."""

import numpy as np
import pytest

import taut as tf

GRID = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]], np.float32)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (lambda x: tf.sparse.reduce_sum(x, axis=2), r"axis must be in \[-2, 2\), got 2"),
        (lambda x: tf.sparse.reduce_max(x, axis=[0, -3]), r"axis must be in \[-2, 2\), got -3"),
        (lambda x: tf.sparse.split(x, 2, axis=3), r"axis must be in \[-2, 2\), got 3"),
        (lambda x: tf.sparse.concat(2, [x, x]), r"axis must be in \[-2, 2\), got 2"),
        (lambda x: tf.sparse.transpose(x, [0, 3]), r"perm must be in \[-2, 2\), got 3"),
        (lambda x: tf.sparse.expand_dims(x, 3), r"axis must be in \[-3, 3\), got 3"),
        (lambda x: tf.sparse.expand_dims(x, -4), r"axis must be in \[-3, 3\), got -4"),
    ],
)
def test_axes_out_of_range_are_errors(wrong, text):
    with pytest.raises(tf.errors.InvalidArgumentError, match=text):
        wrong(tf.sparse.from_dense(GRID))


def test_negative_axes_count_from_the_end():
    x = tf.sparse.from_dense(GRID)
    assert tf.sparse.reduce_sum(x, axis=-2).numpy().tolist() == GRID.sum(0).tolist()
    assert tf.sparse.to_dense(tf.sparse.concat(-1, [x, x])).numpy().tolist() == np.hstack([GRID, GRID]).tolist()
    assert tf.sparse.to_dense(tf.sparse.transpose(x, [-1, -2])).numpy().tolist() == GRID.T.tolist()
    for axis, shape in ((None, [2, 3, 1]), (-1, [2, 3, 1]), (-3, [1, 2, 3]), (2, [2, 3, 1]), (1, [2, 1, 3])):
        assert list(tf.sparse.expand_dims(x, axis).shape) == shape


@pytest.mark.parametrize("adjoint_a", [False, True])
@pytest.mark.parametrize("adjoint_b", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.complex64, np.complex128])
def test_products_with_adjoints_are_those_of_dense_matrices(adjoint_a, adjoint_b, dtype):
    rng = np.random.default_rng(4)

    def matrix(rows, columns):
        made = rng.normal(size=(rows, columns)) + (1j * rng.normal(size=(rows, columns)) if dtype != np.float64 else 0)
        return (made * (rng.random((rows, columns)) < 0.6)).astype(dtype)

    a = matrix(3, 2) if adjoint_a else matrix(2, 3)
    b = matrix(4, 3) if adjoint_b else matrix(3, 4)
    expected = (a.conj().T if adjoint_a else a) @ (b.conj().T if adjoint_b else b)
    for left, right in ((tf.sparse.from_dense(a), b), (a, tf.sparse.from_dense(b))):
        found = tf.sparse.sparse_dense_matmul(left, right, adjoint_a=adjoint_a, adjoint_b=adjoint_b)
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)
