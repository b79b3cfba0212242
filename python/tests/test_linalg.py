"""tf.linalg against NumPy and SciPy."""

import numpy as np
import pytest
import scipy.linalg
from checks import fails

import taut as tf

RNG = np.random.default_rng(5)
A = RNG.normal(size=(2, 3, 4))
S = RNG.normal(size=(2, 3, 3)) + 2 * np.eye(3)
P = S @ S.transpose(0, 2, 1) + np.eye(3)


def close(got, want, tolerance=1e-9):
    want = np.asarray(want)
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(np.asarray(got), want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_matmul(dtype):
    a, b = (RNG.integers(-4, 4, shape).astype(dtype) for shape in ((2, 3, 4), (2, 4, 5)))
    want = a @ b
    for x, y in ((tf.constant(a), tf.constant(b)), (tf.transpose(a.transpose(0, 2, 1).copy(), [0, 2, 1]), b)):
        got = tf.matmul(x, y, name="a_name")
        assert got.dtype.name == dtype
        close(got, want, 1e-5)
    close(tf.matmul(a, b.transpose(0, 2, 1).copy(), transpose_b=True), want, 1e-5)
    close(tf.matmul(a.transpose(0, 2, 1).copy(), b, adjoint_a=True), want, 1e-5)
    assert tf.matmul(a[0], b[0], output_type=tf.float64).dtype == tf.float64
    fails(ValueError, "matmul", lambda: tf.matmul(a, a))


def test_products():
    a, v = A[0], RNG.normal(size=4)
    close(tf.linalg.matvec(a, v), a @ v)
    close(tf.linalg.matvec(a.T.copy(), v, transpose_a=True), a @ v)
    close(tf.einsum("bij,bkj->bik", A, A), np.einsum("bij,bkj->bik", A, A))
    close(tf.einsum("ii", S[0]), np.trace(S[0]))
    close(tf.tensordot(A, A, [[1, 2], [1, 2]]), np.tensordot(A, A, [[1, 2], [1, 2]]))
    close(tf.tensordot(a, a.T.copy(), 1), a @ a.T)
    close(tf.tensordot(a, a, [1, 1]), a @ a.T)
    close(tf.tensordot(v, v, axes=0), np.outer(v, v))
    close(tf.linalg.cross(a[:, :3], S[0]), np.cross(a[:, :3], S[0]))
    fails(ValueError, "einsum", lambda: tf.einsum("ij,jk", a, a))
    fails(ValueError, "cross", lambda: tf.linalg.cross(v, v))


def test_diagonals():
    v = np.array([1.0, 2.0, 3.0])
    for k in (-2, 0, 1):
        close(tf.linalg.diag(v, k=k), np.diag(v, k))
        close(tf.linalg.diag_part(A, k=k), np.diagonal(A, k, 1, 2))
        want = A.copy()
        length = np.diagonal(A, k, 1, 2).shape[-1]
        rows, columns = np.arange(length) + max(-k, 0), np.arange(length) + max(k, 0)
        want[:, rows, columns] = 7.0
        close(tf.linalg.set_diag(A, np.full((2, length), 7.0), k=k), want)
    wide = tf.linalg.diag(v, num_cols=5, padding_value=9.0)
    close(wide, np.where(np.eye(3, 5) == 1, np.pad(np.diag(v), [[0, 0], [0, 2]]), 9.0))
    close(tf.linalg.trace(S), np.trace(S, axis1=1, axis2=2))
    assert tf.linalg.trace(tf.constant([[1, 2], [3, 4]])).dtype == tf.int32
    close(tf.linalg.tensor_diag_part(tf.linalg.tensor_diag(A[0])), A[0])
    close(tf.linalg.band_part(S, 1, 0), np.tril(np.triu(S, -1)))
    close(tf.linalg.band_part(S, -1, 1), np.tril(S, 1))
    close(tf.linalg.matrix_transpose(A), A.transpose(0, 2, 1))
    fails(ValueError, "diag_part", lambda: tf.linalg.diag_part(A, k=9))
    fails(ValueError, "diag", lambda: tf.linalg.diag(v, k=(0, 1)))
    fails(ValueError, "diag", lambda: tf.linalg.diag(v, k=(1, 0)))
    fails(ValueError, "set_diag", lambda: tf.linalg.set_diag(A, v[:2]))
    fails(ValueError, "tensor_diag_part", lambda: tf.linalg.tensor_diag_part(A))


def band(a, low, high, align, fill):
    """Diagonals of one matrix, the highest first, element by element."""
    places = [(i, j) for i in range(a.shape[0]) for j in range(a.shape[1])]
    rows = [[a[i, j] for i, j in places if j - i == k] for k in range(high, low - 1, -1)]
    above, below = align.split("_")
    longest = max(len(row) for row in rows)
    for k, row in zip(range(high, low - 1, -1), rows):
        gap = [fill] * (longest - len(row))
        sides = {above} if k > 0 else {below} if k < 0 else {above, below}
        row[:] = row + gap if "LEFT" in sides else gap + row
    return np.array(rows)


@pytest.mark.parametrize("align", ["LEFT_LEFT", "LEFT_RIGHT", "RIGHT_LEFT", "RIGHT_RIGHT"])
@pytest.mark.parametrize("k", [(-1, 1), (0, 2), (-2, -1), (1, 3), (-2, 3)])
@pytest.mark.parametrize("matrix", [A, A.transpose(0, 2, 1), S])
def test_bands(matrix, k, align):
    low, high = k
    if high >= matrix.shape[2]:
        fails(ValueError, "diag_part", lambda: tf.linalg.diag_part(matrix, k=k))
        return
    rows, columns = matrix.shape[1:]
    inside = (np.triu(np.ones((rows, columns)), low) * np.tril(np.ones((rows, columns)), high)) == 1
    want = np.stack([band(one, low, high, align, 9.0) for one in matrix])
    close(tf.linalg.diag_part(matrix, k=k, padding_value=9.0, align=align), want)
    made = tf.linalg.diag(want, k=k, num_rows=rows, num_cols=columns, padding_value=7.0, align=align)
    close(made, np.where(inside, matrix, 7.0))
    close(tf.linalg.set_diag(np.zeros_like(matrix), want, k=k, align=align), np.where(inside, matrix, 0.0))
    fails(ValueError, "set_diag", lambda: tf.linalg.set_diag(matrix, want[:, 1:], k=k))
    fails(ValueError, "diag_part", lambda: tf.linalg.diag_part(matrix, k=k, align="MIDDLE"))


@pytest.mark.parametrize("matrix", [tf.constant(S), tf.transpose(S.transpose(0, 2, 1).copy(), [0, 2, 1])])
def test_factors(matrix):
    q, r = tf.linalg.qr(matrix)
    close(tf.matmul(q, r), S)
    close(tf.matmul(q, q, transpose_a=True), np.broadcast_to(np.eye(3), (2, 3, 3)))
    s, u, v = tf.linalg.svd(matrix)
    close(s, np.linalg.svd(S, compute_uv=False))
    close(u @ tf.linalg.diag(s) @ tf.linalg.adjoint(v), S)
    close(tf.linalg.svd(matrix, compute_uv=False), np.linalg.svd(S, compute_uv=False))
    close(tf.linalg.det(matrix), np.linalg.det(S))
    sign, size = tf.linalg.slogdet(matrix)
    close(sign * tf.exp(size), np.linalg.det(S))
    close(tf.linalg.inv(matrix), np.linalg.inv(S))
    close(tf.linalg.inv(matrix, adjoint=True), np.linalg.inv(S.transpose(0, 2, 1)))
    close(tf.linalg.expm(matrix), np.stack([scipy.linalg.expm(one) for one in S]))


def test_factors_of_rectangles():
    for full in (False, True):
        u, s, vh = np.linalg.svd(A, full_matrices=full)
        got = tf.linalg.svd(A, full_matrices=full)
        assert [tuple(one.shape) for one in got] == [s.shape, u.shape, vh.transpose(0, 2, 1).shape]
        q, r = tf.linalg.qr(A, full_matrices=full)
        close(q @ r, A)


def test_symmetric():
    values, vectors = tf.linalg.eigh(P)
    close(values, np.linalg.eigvalsh(P))
    close(tf.matmul(P, vectors), vectors * values[:, None, :])
    close(tf.linalg.eigvalsh(P), np.linalg.eigvalsh(P))
    factor = tf.linalg.cholesky(P)
    close(factor, np.linalg.cholesky(P))
    close(tf.linalg.cholesky_solve(factor, A), np.linalg.solve(P, A))
    close(tf.linalg.logdet(P), np.log(np.linalg.det(P)))
    fails(ValueError, "cholesky", lambda: tf.linalg.cholesky(-P))
    fails(ValueError, "cholesky", lambda: tf.linalg.cholesky(A))


def test_solutions():
    close(tf.linalg.solve(S, A), np.linalg.solve(S, A))
    close(tf.linalg.solve(S, A, adjoint=True), np.linalg.solve(S.transpose(0, 2, 1), A))
    close(tf.linalg.triangular_solve(S, A), np.linalg.solve(np.tril(S), A))
    upper = tf.linalg.triangular_solve(S, A, lower=False, adjoint=True)
    close(upper, np.linalg.solve(np.triu(S).transpose(0, 2, 1), A))
    tall, b = A[0].T.copy(), RNG.normal(size=(4, 2))
    close(tf.linalg.lstsq(tall, b), np.linalg.lstsq(tall, b, rcond=None)[0])
    ridge = np.linalg.solve(tall.T @ tall + 0.5 * np.eye(3), tall.T @ b)
    close(tf.linalg.lstsq(tall, b, l2_regularizer=0.5), ridge)
    close(tf.linalg.pinv(A), np.linalg.pinv(A))
    close(tf.linalg.matrix_rank(S), [3, 3])
    assert tf.linalg.matrix_rank(np.ones((3, 3))).numpy() == 1
    assert tf.linalg.matrix_rank(np.diag([4.0, 1.0]), tol=2.0).numpy() == 1
    fails(ValueError, "solve", lambda: tf.linalg.solve(np.zeros((2, 2)), np.ones((2, 1))))
    fails(ValueError, "solve", lambda: tf.linalg.solve(S, [1.0, 2.0, 3.0]))
    fails(ValueError, "inv", lambda: tf.linalg.inv(A))
    fails(ValueError, "expm", lambda: tf.linalg.expm(A))


def test_norms():
    a = A[0]
    close(tf.norm(a), np.linalg.norm(a))
    for order in (1, 2, 3, np.inf):
        close(tf.norm(a, ord=order, axis=1), np.linalg.norm(a, order, axis=1))
    for order in ("fro", 1, 2, np.inf):
        close(tf.norm(a, ord=order, axis=[0, 1]), np.linalg.norm(a, order))
        wanted = np.linalg.norm(A.transpose(1, 0, 2), order, axis=(1, 2), keepdims=True).transpose(1, 0, 2)
        close(tf.norm(A, ord=order, axis=[0, 2], keepdims=True), wanted)
    normalized, size = tf.linalg.normalize(a, axis=1)
    close(size, np.linalg.norm(a, axis=1, keepdims=True))
    close(normalized, a / np.linalg.norm(a, axis=1, keepdims=True))
    close(tf.linalg.global_norm([a, None, A]), np.sqrt((a**2).sum() + (A**2).sum()))
    fails(ValueError, "norm", lambda: tf.norm(a, ord="fro"))
    fails(ValueError, "norm", lambda: tf.norm(a, ord=3, axis=[0, 1]))
    fails(TypeError, "global_norm", lambda: tf.linalg.global_norm(tf.constant(a)))


def test_expm_inside_a_function_halves_as_often_as_needed():
    traced = tf.function(tf.linalg.expm, autograph=False)
    for scale in (0.1, 30.0):
        x = RNG.normal(size=(3, 3)) * scale / 3
        np.testing.assert_allclose(traced(tf.constant(x)), scipy.linalg.expm(x), rtol=1e-6)


def test_products_in_another_type_are_made_in_it():
    a = tf.constant([[100]], tf.int8)
    made = tf.matmul(a, a, output_type=tf.int32)
    assert made.dtype == tf.int32 and made.numpy().tolist() == [[10000]]
    fails(ValueError, "matmul", lambda: tf.matmul(A, A, transpose_a=True, adjoint_a=True))
