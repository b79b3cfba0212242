"""Linear operators compute what their dense matrices do, with gradients, traced and eager."""

import numpy as np
import pytest

import taut as tf

L = tf.linalg
RNG = np.random.default_rng(3)
A, B = RNG.normal(size=(2, 4, 4)), RNG.normal(size=(4, 4))
POSITIVE = B @ B.T + 4 * np.eye(4)
V, W = RNG.uniform(0.5, 2.0, (2, 4)), RNG.normal(size=(2, 4))
X = RNG.normal(size=(4, 3))


def full(matrix, **hints):
    return L.LinearOperatorFullMatrix(matrix, **hints)


def block(parts):
    return np.block(parts)


TOEPLITZ = np.array([[V[0, i - j] if i >= j else W[0, j - i] for j in range(4)] for i in range(4)])
TRIDIAGONAL = np.diag(V[0]) + np.diag(W[0, :3], 1) + np.diag(W[1, 1:], -1)
REFLECTION = np.eye(4) - 2 * np.outer(V[0], V[0]) / (V[0] @ V[0])
OPERATORS = {
    "full": (lambda: full(A), A),
    "positive": (lambda: full(POSITIVE, is_self_adjoint=True, is_positive_definite=True), POSITIVE),
    "triangular": (lambda: L.LinearOperatorLowerTriangular(POSITIVE), np.tril(POSITIVE)),
    "diagonal": (lambda: L.LinearOperatorDiag(V), np.stack([np.diag(row) for row in V])),
    "identity": (lambda: L.LinearOperatorIdentity(4, dtype=tf.float64), np.eye(4)),
    "scaled": (lambda: L.LinearOperatorScaledIdentity(4, V[0, :2]), V[0, :2, None, None] * np.eye(4)),
    "householder": (lambda: L.LinearOperatorHouseholder(V[0]), REFLECTION),
    "permutation": (lambda: L.LinearOperatorPermutation([2, 0, 3, 1], tf.float64), np.eye(4)[[2, 0, 3, 1]]),
    "toeplitz": (lambda: L.LinearOperatorToeplitz(V[0], W[0]), TOEPLITZ),
    "tridiagonal": (lambda: L.LinearOperatorTridiag(np.stack([W[0], V[0], W[1]])), TRIDIAGONAL),
    "adjoint": (lambda: L.LinearOperatorAdjoint(full(A)), np.swapaxes(A, 1, 2)),
    "inversion": (lambda: L.LinearOperatorInversion(full(A)), np.linalg.inv(A)),
    "composition": (lambda: L.LinearOperatorComposition([full(A), full(B)]), A @ B),
    "blocks": (
        lambda: L.LinearOperatorBlockDiag([full(B[:2, :2]), L.LinearOperatorDiag(V[0, :2])]),
        block([[B[:2, :2], np.zeros((2, 2))], [np.zeros((2, 2)), np.diag(V[0, :2])]]),
    ),
    "triangle of blocks": (
        lambda: L.LinearOperatorBlockLowerTriangular([[full(B[:2, :2])], [full(B[2:, :2]), full(B[2:, 2:])]]),
        block([[B[:2, :2], np.zeros((2, 2))], [B[2:, :2], B[2:, 2:]]]),
    ),
    "kronecker": (lambda: L.LinearOperatorKronecker([full(B[:2, :2]), full(B[2:, 2:])]), np.kron(B[:2, :2], B[2:, 2:])),
    "update": (
        lambda: L.LinearOperatorLowRankUpdate(L.LinearOperatorDiag(V[0]), B[:, :2], V[1, :2], A[0, :, :2]),
        np.diag(V[0]) + B[:, :2] @ np.diag(V[1, :2]) @ A[0, :, :2].T,
    ),
}


@pytest.mark.parametrize("name", OPERATORS)
def test_operators_are_their_matrices(name):
    make, dense = OPERATORS[name]
    operator = make()
    inverse, transposed = np.linalg.inv(dense), np.swapaxes(dense, -1, -2)
    identity = np.broadcast_to(np.eye(4), dense.shape)
    for found, expected in (
        (operator.to_dense(), dense),
        (operator.matmul(X), dense @ X),
        (operator.matmul(X, adjoint=True), transposed @ X),
        (operator.matmul(X.T, adjoint_arg=True), dense @ X),
        (operator.matvec(X[:, 0]), dense @ X[:, 0]),
        (operator.solve(X), inverse @ X),
        (operator.solve(X, adjoint=True), np.swapaxes(inverse, -1, -2) @ X),
        (operator.solve(X.T, adjoint_arg=True), inverse @ X),
        (operator.solvevec(X[:, 0]), inverse @ X[:, 0]),
        (operator.inverse().to_dense(), inverse),
        (operator.inverse().matmul(operator.to_dense()), identity),
        (operator.H.to_dense(), transposed),
        (operator.H.solve(X), np.swapaxes(inverse, -1, -2) @ X),
        (operator.diag_part(), np.diagonal(dense, axis1=-2, axis2=-1)),
        (operator.trace(), np.trace(dense, axis1=-2, axis2=-1)),
        (operator.determinant(), np.linalg.det(dense)),
        (operator.log_abs_determinant(), np.linalg.slogdet(dense)[1]),
        (operator.cond(), np.linalg.cond(dense)),
        (operator.add_to_tensor(np.ones((4, 4))), dense + 1),
        ((operator @ full(B)).to_dense(), dense @ B),
        (operator.solve(full(B)).to_dense(), inverse @ B),
        (tf.function(lambda x: make().solve(x))(tf.constant(X)), inverse @ X),
    ):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-7, atol=1e-9)
    assert operator.shape == dense.shape and operator.batch_shape == dense.shape[:-2] and operator.is_square


@pytest.mark.parametrize("name", ["full", "triangular", "diagonal", "householder", "toeplitz", "tridiagonal", "update"])
def test_gradients_are_slopes(name):
    classes = {
        "full": lambda t: full(t + 4 * np.eye(4)),
        "triangular": lambda t: L.LinearOperatorLowerTriangular(t + 4 * np.eye(4)),
        "diagonal": lambda t: L.LinearOperatorDiag(t[0] + 3.0),
        "householder": lambda t: L.LinearOperatorHouseholder(t[0]),
        "toeplitz": lambda t: L.LinearOperatorToeplitz(t[0] + [5.0, 0, 0, 0], t[1]),
        "tridiagonal": lambda t: L.LinearOperatorTridiag(t[:3] + [[0.0], [4.0], [0.0]]),
        "update": lambda t: L.LinearOperatorLowRankUpdate(L.LinearOperatorDiag(t[0] + 3.0), t[:, :2]),
    }

    def f(t):
        operator = classes[name](t)
        made = tf.reduce_sum(operator.solve(tf.sin(t))) + tf.reduce_sum(tf.cos(operator.matmul(t)))
        return made + operator.log_abs_determinant()

    x = tf.constant(B)
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    gradient = tape.gradient(y, x).numpy()
    for place in [(0, 0), (1, 2), (3, 1)]:
        step = np.zeros((4, 4))
        step[place] = 1e-6
        slope = (f(tf.constant(B + step)) - f(tf.constant(B - step))).numpy() / 2e-6
        assert gradient[place] == pytest.approx(slope, rel=1e-5, abs=1e-6)


def test_diagonals_of_blocks_that_are_not_square_are_those_of_the_matrix():
    tall, wide = RNG.normal(size=(2, 3, 2)), RNG.normal(size=(2, 3))
    operator = L.LinearOperatorBlockDiag([full(wide), full(tall)])
    dense = operator.to_dense().numpy()
    assert dense.shape == (2, 5, 5)
    np.testing.assert_allclose(operator.diag_part().numpy(), np.diagonal(dense, axis1=1, axis2=2))
    np.testing.assert_allclose(operator.trace().numpy(), np.trace(dense, axis1=1, axis2=2))


@pytest.mark.parametrize("assert_proper_shapes", [False, True])
def test_shapes_of_operands_are_always_checked(assert_proper_shapes):
    for operator in (
        L.LinearOperatorIdentity(3, [2], assert_proper_shapes=assert_proper_shapes),
        L.LinearOperatorScaledIdentity(3, [1.0, 2.0], assert_proper_shapes=assert_proper_shapes),
        L.LinearOperatorZeros(3, batch_shape=[2], assert_proper_shapes=assert_proper_shapes),
    ):
        with pytest.raises(ValueError, match="expected an operand with 3 rows"):
            operator.matmul(tf.ones([4, 1]))
        with pytest.raises(ValueError):
            operator.matmul(tf.ones([5, 3, 1]))


def test_variables_keep_their_gradients():
    v = tf.Variable([1.0, 2.0])
    operator = L.LinearOperatorDiag(v)
    assert operator.trainable_variables == (v,) or operator.trainable_variables[0] is v
    v.assign([2.0, 4.0])
    with tf.GradientTape() as tape:
        y = operator.log_abs_determinant()
    np.testing.assert_allclose(tape.gradient(y, v).numpy(), [0.5, 0.25])


def test_structure_is_kept():
    diagonal = L.LinearOperatorDiag([1.0, 2.0], is_positive_definite=True)
    assert isinstance(diagonal @ diagonal, L.LinearOperatorDiag)
    assert isinstance(diagonal.inverse(), L.LinearOperatorDiag)
    assert isinstance(diagonal.cholesky(), L.LinearOperatorDiag)
    lower = L.LinearOperatorLowerTriangular([[1.0, 0.0], [2.0, 3.0]])
    assert isinstance(diagonal @ lower, L.LinearOperatorLowerTriangular)
    assert diagonal.H is diagonal and lower.H.H is lower
    zeros = L.LinearOperatorZeros(2, 3, is_square=False, is_self_adjoint=False)
    assert (diagonal @ zeros).to_dense().numpy().tolist() == [[0.0] * 3] * 2


@pytest.mark.parametrize(
    ("wrong", "kind", "text"),
    [
        (lambda: full(np.ones((2, 3))).solve(np.ones((2, 1))), NotImplementedError, "expected a square operator"),
        (lambda: full(A, is_non_singular=False).solve(X), NotImplementedError, "singular"),
        (lambda: full(A).matmul(np.ones((3, 1))), ValueError, "expected an operand with 4 rows"),
        (lambda: full(A).matmul(tf.ones([4, 1])), TypeError, "expected float64, got float32"),
        (lambda: full(A).cholesky(), ValueError, "is_positive_definite=True"),
        (lambda: full(A).eigvals(), NotImplementedError, "is_self_adjoint=True"),
        (lambda: L.LinearOperatorDiag(1.0), ValueError, "rank >= 1"),
        (lambda: L.LinearOperatorDiag([1]), TypeError, "expected floats, got int32"),
        (lambda: L.LinearOperatorIdentity(-1), ValueError, "num_rows must be one integer >= 0"),
        (
            lambda: L.LinearOperatorIdentity(2, dtype=tf.complex64),
            TypeError,
            "LinearOperatorIdentity: expected a type of real numbers, got complex64",
        ),
        (
            lambda: L.LinearOperatorZeros(2, dtype=tf.complex128),
            TypeError,
            "LinearOperatorZeros: expected a type of real numbers, got complex128",
        ),
        (lambda: L.LinearOperatorDiag([1j]), TypeError, "LinearOperatorDiag: expected floats, got complex"),
        (lambda: full(np.ones((2, 3)), is_square=True), ValueError, "is_square"),
        (lambda: L.LinearOperatorComposition([]), ValueError, "at least one operator"),
        (lambda: L.LinearOperatorComposition([full(A), full(np.ones((3, 3)))]), ValueError, "inner dimensions"),
        (lambda: full([[1.0, 2.0], [3.0, 4.0]]).assert_self_adjoint(), tf.errors.InvalidArgumentError, "adjoint"),
        (lambda: L.LinearOperatorDiag([0.0, 1.0]).assert_non_singular(), tf.errors.InvalidArgumentError, "Singular"),
        (lambda: full(-POSITIVE).assert_positive_definite(), tf.errors.InvalidArgumentError, "positive definite"),
    ],
)
def test_wrong_operators(wrong, kind, text):
    with pytest.raises(kind, match=text):
        wrong()


def test_conjugate_gradient_solves():
    operator = full(POSITIVE, is_self_adjoint=True, is_positive_definite=True)
    found = L.experimental.conjugate_gradient(operator, X[:, 0], tol=1e-12)
    np.testing.assert_allclose(found.x.numpy(), np.linalg.solve(POSITIVE, X[:, 0]), rtol=1e-8)
    assert int(found.i) <= 5
    better = L.LinearOperatorDiag(1 / np.diag(POSITIVE), is_positive_definite=True)
    found = L.experimental.conjugate_gradient(operator, X[:, 0], preconditioner=better, tol=1e-12)
    np.testing.assert_allclose(found.x.numpy(), np.linalg.solve(POSITIVE, X[:, 0]), rtol=1e-8)


@pytest.mark.parametrize("shape", [[5], [2, 3], [2, 2, 2], [4, 3]])
def test_circulant_operators_are_periodic_convolutions(shape):
    depth = {1: 1, 2: 2, 3: 3}[len(shape)]
    kind = [
        tf.linalg.LinearOperatorCirculant,
        tf.linalg.LinearOperatorCirculant2D,
        tf.linalg.LinearOperatorCirculant3D,
    ][depth - 1]
    random = np.random.default_rng(3)
    kernel = random.normal(size=shape)
    op = kind(tf.constant(np.fft.fftn(kernel)), tf.float64)
    size = kernel.size
    indices = list(np.ndindex(*shape))
    dense = np.array(
        [[kernel[tuple((a - b) % n for a, b, n in zip(row, column, shape))] for column in indices] for row in indices]
    )
    np.testing.assert_allclose(op.to_dense(), dense, atol=1e-12)
    x = random.normal(size=[size, 2])
    np.testing.assert_allclose(op.matmul(x), dense @ x, atol=1e-12)
    np.testing.assert_allclose(op.solve(x), np.linalg.solve(dense, x), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(op.adjoint().to_dense(), dense.T, atol=1e-12)
    np.testing.assert_allclose(op.inverse().to_dense(), np.linalg.inv(dense), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(op.determinant(), np.linalg.det(dense), rtol=1e-9)
    np.testing.assert_allclose(op.convolution_kernel(), kernel, atol=1e-12)
    op.assert_hermitian_spectrum()


def test_gradients_of_a_circulant_operator_and_its_errors():
    spectrum = tf.Variable(tf.constant([6.0, 4.0, 2.0, 4.0], tf.float64))
    with tf.GradientTape() as tape:
        y = tf.linalg.LinearOperatorCirculant(spectrum, tf.float64).log_abs_determinant()
    np.testing.assert_allclose(tape.gradient(y, spectrum), 1 / spectrum.numpy())
    with pytest.raises(tf.errors.InvalidArgumentError, match="Hermitian"):
        tf.linalg.LinearOperatorCirculant([6.0, 4.0, 2.0, 1.0]).assert_hermitian_spectrum()
    with pytest.raises(TypeError, match="int32"):
        tf.linalg.LinearOperatorCirculant([1, 2])
    # Other operators are those of real matrices.
    with pytest.raises(TypeError, match="real"):
        tf.linalg.LinearOperatorCirculant([6.0, 4.0]) @ tf.linalg.LinearOperatorCirculant([6.0, 4.0])
