"""Complex numbers, Fourier transforms and signals: TensorFlow's results, and the behaviour around them."""

from __future__ import annotations

import json
import pathlib
from typing import Any

import complex_cases
import numpy as np
import pytest

import taut as tf

ANSWERS = json.loads((pathlib.Path(__file__).parent / "complex_answers.json").read_text())
TOLERANCE = {"float32": 3e-5, "complex64": 3e-5, "float64": 1e-9, "complex128": 1e-9}


def _array(answer: dict[str, Any]) -> np.ndarray:
    def number(value: Any) -> Any:
        return float(value) if isinstance(value, str) else value

    dtype = np.dtype(answer["type"])
    if dtype.kind != "c":
        flat = np.ravel(np.array(answer["values"], dtype=object))
        return np.array([number(value) for value in flat], dtype).reshape(answer["shape"])
    parts = np.ravel(np.array(answer["values"], dtype=object)).astype(np.float64)
    return (parts[0::2] + 1j * parts[1::2]).astype(dtype).reshape(answer["shape"])


def _check(got: Any, answer: Any) -> None:
    if isinstance(answer, list):
        assert len(got) == len(answer)
        for one, wanted in zip(got, answer):
            _check(one, wanted)
        return
    wanted = _array(answer)
    assert got.dtype.name == answer["type"]
    assert tuple(got.shape) == wanted.shape
    if wanted.dtype.kind not in "fc":
        np.testing.assert_array_equal(got.numpy(), wanted)
        return
    limit = TOLERANCE[wanted.dtype.name]
    np.testing.assert_allclose(got.numpy(), wanted, rtol=limit, atol=limit)


@pytest.mark.parametrize("name", complex_cases.CASES)
def test_result_is_tensorflows(name: str) -> None:
    _check(complex_cases.CASES[name](tf), ANSWERS[name])


@pytest.mark.parametrize(
    "name",
    [
        "fft complex64",
        "stft",
        "dct 3 ortho",
        "gradient of power",
        "gradient of irfft",
        "gradient of svd",
        "logm",
        "slogdet",
    ],
)
def test_traced_result_is_tensorflows(name: str) -> None:
    _check(tf.function(lambda: complex_cases.CASES[name](tf))(), ANSWERS[name])


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_arrays_go_in_and_out(kind: str) -> None:
    array = complex_cases.Z.astype(kind)
    for given in (array, array.T, array[:, ::2], array[::-1], array[0, 0], np.zeros((0, 2), kind)):
        tensor = tf.constant(given)
        assert tensor.dtype.name == kind
        np.testing.assert_array_equal(tensor.numpy(), given)
    np.testing.assert_array_equal(np.from_dlpack(tf.constant(array)), array)
    np.testing.assert_array_equal(tf.from_dlpack(array).numpy(), array)
    assert complex(tf.constant(array[0, 0])) == complex(array[0, 0])


def test_types_have_their_attributes() -> None:
    assert tf.complex64.is_complex and not tf.complex64.is_floating and tf.complex64.is_numeric
    assert tf.complex64.real_dtype is tf.float32 and tf.complex128.real_dtype is tf.float64
    assert tf.float32.real_dtype is tf.float32 and not tf.float32.is_complex
    assert (tf.complex64.size, tf.complex128.size) == (8, 16)
    assert (tf.complex64.as_datatype_enum, tf.complex128.as_datatype_enum) == (8, 18)
    assert tf.as_dtype(complex) is tf.complex128 and tf.as_dtype(np.complex64) is tf.complex64
    assert tf.as_dtype("complex64").as_numpy_dtype is np.complex64


def test_numbers_take_the_precision_of_tensors() -> None:
    single, double = tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0], tf.float64)
    assert (single * 1j).dtype == tf.complex64 and (double + 2j).dtype == tf.complex128
    assert (tf.constant([1j], tf.complex64) * 2.5).dtype == tf.complex64
    assert (tf.cast(single, tf.complex64) + double).dtype == tf.complex128
    assert (tf.constant([1j], tf.complex64) * [1.0, 2j]).dtype == tf.complex64
    assert tf.constant(1j).dtype == tf.complex128


def test_prints_as_numpy() -> None:
    for kind in ("complex64", "complex128"):
        for array in (
            complex_cases.Z,
            complex_cases.Z * 1e7,
            complex_cases.Z.real + 0j,
            np.array([1 + 10j, -0.5 - 2j]),
        ):
            array = array.astype(kind)
            assert str(array) in str(tf.constant(array))
    assert "(1+2j)" in str(tf.constant(1 + 2j, tf.complex64))
    assert "dtype=complex64" in repr(tf.constant(2j, tf.complex64))


def test_what_needs_an_order_is_refused() -> None:
    z = tf.constant(complex_cases.Z)
    functions = [
        lambda: z < z,
        lambda: tf.maximum(z, z),
        lambda: tf.reduce_max(z),
        lambda: tf.argmax(z),
        lambda: tf.sort(z),
        lambda: tf.clip_by_value(z, 0.0, 1.0),
        lambda: tf.floor(z),
        lambda: tf.round(z),
        lambda: z // z,
        lambda: tf.nn.relu(z),
        lambda: tf.nn.softmax(z),
        lambda: tf.math.erf(z),
        lambda: tf.math.cummax(z),
        lambda: tf.math.unsorted_segment_max(z, [0, 1], 2),
        lambda: tf.range(1j),
        lambda: tf.unique(tf.reshape(z, [-1])),
        lambda: tf.nn.dropout(z, 0.5),
        lambda: tf.bitcast(z, tf.float64),
    ]
    for function in functions:
        with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError), match="complex"):
            function()


def test_imaginary_parts_are_not_dropped_in_silence() -> None:
    for make in (
        lambda: tf.constant(1j, tf.float32),
        lambda: tf.constant([1j], tf.float32),
        lambda: tf.constant(complex_cases.Z, tf.float32),
        lambda: tf.convert_to_tensor(tf.constant(1j), tf.float32),
        lambda: tf.Variable([0.0]).assign([1j]),
    ):
        with pytest.raises((TypeError, ValueError)):
            make()
    assert tf.cast(tf.constant([1 + 2j]), tf.float32).numpy().tolist() == [1.0]


def test_variables_loops_and_functions() -> None:
    v = tf.Variable(tf.constant([1 + 1j, 2 - 1j], tf.complex64))

    @tf.function
    def step(x: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.abs(v * x) ** 2)
        gradient = tape.gradient(loss, v)
        v.assign_sub(tf.constant(0.1, tf.complex64) * gradient)
        total = tf.zeros([2], tf.complex64)
        for _ in tf.range(3):
            total = total * 1j + v
        return gradient, total

    x = np.array([1 + 2j, -1j], np.complex64)
    before = v.numpy()
    gradient, total = step(x)
    np.testing.assert_allclose(gradient.numpy(), 2 * before * np.abs(x) ** 2, rtol=1e-6)
    after = before - np.complex64(0.1) * gradient.numpy()
    np.testing.assert_allclose(v.numpy(), after, rtol=1e-6)
    np.testing.assert_allclose(total.numpy(), after * (1 + 1j + 1j**2), rtol=1e-5)


def test_transforms_along_axes_are_numpys() -> None:
    cube = complex_cases.CUBE
    z, x = tf.constant(cube), tf.constant(cube.real)
    for norm in (None, "ortho", "forward"):
        for axes in (None, [0], [2, 0], [-2, -1]):
            wanted = np.fft.fftn(cube, axes=axes, norm=norm)
            np.testing.assert_allclose(tf.signal.fftnd(z, axes=axes, norm=norm).numpy(), wanted, atol=1e-10)
            wanted = np.fft.ifftn(cube, axes=axes, norm=norm)
            np.testing.assert_allclose(tf.signal.ifftnd(z, axes=axes, norm=norm).numpy(), wanted, atol=1e-10)
            wanted = np.fft.rfftn(cube.real, axes=axes, norm=norm)
            np.testing.assert_allclose(tf.signal.rfftnd(x, axes=axes, norm=norm).numpy(), wanted, atol=1e-10)
            got = tf.signal.irfftnd(tf.signal.rfftnd(x, axes=axes, norm=norm), _lengths(cube, axes), axes, norm)
            np.testing.assert_allclose(got.numpy(), cube.real, atol=1e-10)
    np.testing.assert_allclose(
        tf.signal.fftnd(z, [3, 7], [0, 2]).numpy(), np.fft.fftn(cube, [3, 7], [0, 2]), atol=1e-10
    )


def _lengths(cube: np.ndarray, axes: list[int] | None) -> list[int]:
    return [cube.shape[axis] for axis in (range(cube.ndim) if axes is None else axes)]


def test_bad_arguments_of_transforms_are_named() -> None:
    for function, text in [
        (lambda: tf.signal.fft(tf.constant([1, 2])), "complex64"),
        (lambda: tf.signal.rfft(tf.constant([1j])), "float32"),
        (lambda: tf.signal.rfft(tf.constant([1.0]), [0]), "fft_length must be >= 1"),
        (lambda: tf.signal.rfft2d(tf.constant([1.0])), "rank >= 2"),
        (lambda: tf.signal.fftnd(tf.constant([1j]), axes=[3]), "axes must be in"),
        (lambda: tf.signal.dct(tf.constant([1.0]), 5), "type must be one of"),
        (lambda: tf.signal.frame(tf.constant([1.0]), 0, 1), "frame_length must be >= 1"),
        (lambda: tf.signal.mdct(tf.constant([1.0] * 8), 6), "multiple of 4"),
        (lambda: tf.signal.linear_to_mel_weight_matrix(lower_edge_hertz=5000.0), "lower_edge_hertz must be <"),
    ]:
        with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError), match=text):
            function()


def test_memory_goes_back() -> None:
    before = tf.memory.live_bytes()
    z = tf.signal.fft(tf.constant(complex_cases.CUBE)) * 2j
    assert tf.memory.live_bytes() == before + complex_cases.CUBE.nbytes
    del z
    assert tf.memory.live_bytes() == before


Z, W = complex_cases.Z, complex_cases.W


def test_the_right_hand_side_of_a_tridiagonal_system_is_conjugated() -> None:
    diagonals = np.array([[1.0 + 1j, 2.0, 0.0], [4.0, 5.0 - 1j, 6.0 + 2j], [0.0, 1j, 1.0]])
    matrix = np.diag(diagonals[1]) + np.diag(diagonals[0, :-1], 1) + np.diag(diagonals[2, 1:], -1)
    rhs = Z.T.copy()
    for conjugated in (False, True):
        wanted = np.linalg.solve(matrix, rhs.conj() if conjugated else rhs)
        got = tf.linalg.tridiagonal_solve(diagonals, rhs, conjugate_rhs=conjugated)
        np.testing.assert_allclose(got, wanted, rtol=1e-9)
        got = tf.linalg.tridiagonal_solve(diagonals, rhs.T.copy(), transpose_rhs=True, conjugate_rhs=conjugated)
        np.testing.assert_allclose(got, wanted, rtol=1e-9)
        got = tf.linalg.tridiagonal_solve(diagonals, rhs[:, 0].copy(), conjugate_rhs=conjugated)
        np.testing.assert_allclose(got, wanted[:, 0], rtol=1e-9)
    assert tf.linalg.tridiagonal_solve([[0.0], [2.0], [0.0]], [[4.0]], conjugate_rhs=True).numpy().tolist() == [[2.0]]


def test_functions_of_numpy_conjugate() -> None:
    tnp = tf.experimental.numpy
    np.testing.assert_allclose(tnp.vdot(Z, W), np.vdot(Z, W), rtol=1e-9)
    for axis in (None, 0, 1):
        assert not tnp.var(Z, axis=axis).dtype.is_complex
        np.testing.assert_allclose(tnp.var(Z, axis=axis), np.var(Z, axis=axis), rtol=1e-9)
        np.testing.assert_allclose(tnp.std(Z, axis=axis), np.std(Z, axis=axis), rtol=1e-9)
    holes = np.where(Z.real > 2, np.nan, Z)
    for name in ("nansum", "nanprod", "nanmean"):
        np.testing.assert_allclose(getattr(tnp, name)(holes), getattr(np, name)(holes), rtol=1e-9)


def test_norms_are_of_absolute_values() -> None:
    size = np.linalg.norm(Z)
    for limit in (1.0, tf.constant(1.0, tf.float64)):
        np.testing.assert_allclose(tf.clip_by_norm(tf.constant(Z), limit), Z / size, rtol=1e-9)
        (clipped,), found = tf.clip_by_global_norm([tf.constant(Z)], limit)
        np.testing.assert_allclose(clipped, Z / size, rtol=1e-9)
        np.testing.assert_allclose(found, size, rtol=1e-9)
    rows = np.linalg.norm(Z, axis=1, keepdims=True)
    found = tf.clip_by_norm(tf.constant(Z), tf.constant(3.0, tf.float64), axes=[1])
    np.testing.assert_allclose(found, Z * 3 / np.maximum(rows, 3), rtol=1e-9)
    with pytest.raises(TypeError, match="l2_loss: expected real numbers, got complex128"):
        tf.nn.l2_loss(tf.constant(Z))


def _slopes(function: Any, at: np.ndarray, step: float = 1e-6) -> np.ndarray:
    """The gradient of a real function by differences, in TensorFlow's convention: the slope along the real axis plus i times the other."""
    made = np.zeros_like(at)
    for index in np.ndindex(at.shape):
        for direction in (1.0, 1j):
            more, less = at.copy(), at.copy()
            more[index] += direction * step
            less[index] -= direction * step
            made[index] += (
                direction * (float(function(tf.constant(more))) - float(function(tf.constant(less)))) / step / 2
            )
    return made


# TensorFlow's gradient of `det` is not the slope (it has the determinant where its conjugate belongs), and it has none of the sign
# of `slogdet` and of `logm`.
SLOPES = {
    "det": lambda z: tf.math.real((2 - 1j) * tf.linalg.det(z)),
    "phase of slogdet": lambda z: tf.math.real((1 + 2j) * tf.linalg.slogdet(z)[0]),
    "logm": lambda z: tf.reduce_sum(tf.math.imag(tf.linalg.logm(z)) * complex_cases.SQUARE.real),
    "pinv": lambda z: tf.reduce_sum(tf.math.real(tf.linalg.pinv(z[:, :2]))),
    "lstsq of a wide matrix": lambda z: tf.reduce_sum(tf.math.real(tf.linalg.lstsq(z[:2], z[:2, :1]) * (1 - 2j))),
}


@pytest.mark.parametrize("name", SLOPES)
def test_gradient_is_the_slope(name: str) -> None:
    z = tf.constant(complex_cases.SQUARE)
    with tf.GradientTape() as tape:
        tape.watch(z)
        result = SLOPES[name](z)
    gradient = tape.gradient(result, z).numpy()
    np.testing.assert_allclose(gradient, _slopes(SLOPES[name], complex_cases.SQUARE), rtol=1e-5, atol=1e-6)


def test_gradient_of_det_of_a_singular_matrix_is_the_slope() -> None:
    singular = np.outer([1 + 1j, 2.0, -1j], [0.5, 1j, 2 - 1j])
    singular[2] = [1.0, 2j, 3.0]
    z = tf.constant(singular)
    with tf.GradientTape() as tape:
        tape.watch(z)
        result = SLOPES["det"](z)
    np.testing.assert_allclose(tape.gradient(result, z).numpy(), _slopes(SLOPES["det"], singular), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_decompositions_of_many_matrices_multiply_to_them(kind: str) -> None:
    rng = np.random.default_rng(5)
    limit = 3e-4 if kind == "complex64" else 1e-11

    def near(a: Any, b: Any) -> None:
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=limit, atol=limit * 10)

    def adjoint(a: Any) -> Any:
        return np.conj(np.swapaxes(a, -1, -2))

    # Numbers with parts below 1 and an absolute value above it: their reciprocals once were 0.
    for n in [*range(1, 25), 90]:
        a = (rng.uniform(-1, 1, (3, n, n)) + 1j * rng.uniform(-1, 1, (3, n, n))).astype(kind)
        tall, wide, rhs = a[..., : max(1, n // 2)], a[:, : max(1, n // 2)], a[..., :1]
        for matrix in (a, tall, wide):
            q, r = tf.linalg.qr(matrix)
            assert q.dtype == kind and (np.diagonal(r.numpy(), axis1=-2, axis2=-1).imag == 0).all()
            near(q.numpy() @ r.numpy(), matrix)
            near(adjoint(q.numpy()) @ q.numpy(), np.broadcast_to(np.eye(q.shape[-1]), (3, q.shape[-1], q.shape[-1])))
            s, u, v = tf.linalg.svd(matrix)
            assert s.dtype == ("float32" if kind == "complex64" else "float64")
            near(s, np.linalg.svd(matrix, compute_uv=False))
            near(u.numpy() * s.numpy()[..., None, :] @ adjoint(v.numpy()), matrix)
        near(tall @ tf.linalg.lstsq(tall, rhs).numpy(), tall @ (np.linalg.pinv(tall.astype("complex128")) @ rhs))
        near(wide @ tf.linalg.lstsq(wide, rhs[:, : wide.shape[1]]).numpy(), rhs[:, : wide.shape[1]])
        hermitian = a @ adjoint(a) + np.eye(n, dtype=kind)
        factor = tf.linalg.cholesky(hermitian).numpy()
        near(factor @ adjoint(factor), hermitian)
        values, vectors = (part.numpy() for part in tf.linalg.eigh(hermitian))
        near(vectors * values[..., None, :] @ adjoint(vectors), hermitian)
        logarithm = tf.linalg.logm(hermitian).numpy()
        near(logarithm, vectors * np.log(values.real)[..., None, :] @ adjoint(vectors))
        sign, log = (part.numpy() for part in tf.linalg.slogdet(a))
        near(sign, np.linalg.slogdet(a.astype("complex128"))[0])
        near(log, np.linalg.slogdet(a.astype("complex128"))[1])
        values, vectors = (part.numpy() for part in tf.linalg.eig(a))
        near(a @ vectors, vectors * values[..., None, :])


def test_logarithms_of_matrices() -> None:
    rotation = np.array([[0.0, -1.0], [1.0, 0.0]])
    np.testing.assert_allclose(tf.linalg.logm(rotation).numpy(), rotation * np.pi / 2, atol=1e-14)
    np.testing.assert_allclose(
        tf.linalg.logm(np.diag([-1.0, -np.e])).numpy(), np.diag([np.pi * 1j, 1 + np.pi * 1j]), atol=1e-14
    )
    # Eigenvalues far apart, and one block that is not diagonalizable.
    shifted = np.array([[1e8, 1.0, 0.0], [0.0, 1e-8, 1.0], [0.0, 0.0, 1e-8]])
    back = tf.linalg.expm(tf.linalg.logm(shifted)).numpy()
    np.testing.assert_allclose(back, shifted, rtol=1e-6, atol=1e-11 * 1e8)
    assert tf.linalg.logm(np.ones((1, 1), np.float32)).dtype == tf.complex64
    assert tf.linalg.logm(np.zeros((2, 0, 0))).shape == (2, 0, 0)
    for bad, message in ((np.zeros((2, 2)), "singular"), (np.full((2, 2), np.nan), "converge")):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            tf.linalg.logm(bad)


def test_least_squares_with_a_regularizer() -> None:
    a, b = complex_cases.Z.T, complex_cases.W.T
    wanted = np.linalg.solve(a.conj().T @ a + 0.5 * np.eye(2), a.conj().T @ b)
    np.testing.assert_allclose(tf.linalg.lstsq(a, b, 0.5).numpy(), wanted, atol=1e-12)


def test_only_the_lower_triangle_and_the_real_diagonal_of_a_hermitian_matrix_are_read() -> None:
    hermitian = complex_cases.SQUARE @ complex_cases.SQUARE.conj().T + np.eye(3)
    other = hermitian + 1j * np.diag([1.0, -2.0, 0.5]) + np.triu(np.ones((3, 3)), 1)
    np.testing.assert_array_equal(tf.linalg.cholesky(other).numpy(), tf.linalg.cholesky(hermitian).numpy())
    np.testing.assert_array_equal(tf.linalg.eigvalsh(other).numpy(), tf.linalg.eigvalsh(hermitian).numpy())
    np.testing.assert_array_equal(tf.linalg.eigh(other)[1].numpy(), tf.linalg.eigh(hermitian)[1].numpy())


def test_linspace_between_complex_numbers():
    assert tf.linspace(0j, 1j, 3).numpy().tolist() == [0j, 0.5j, 1j]
    line = tf.linspace(tf.constant(0j), tf.constant(1 + 1j), 5)
    assert line.dtype == tf.complex128
    assert line.numpy().tolist() == [0j, 0.25 + 0.25j, 0.5 + 0.5j, 0.75 + 0.75j, 1 + 1j]
    rows = tf.linspace(tf.constant([0j, 2.0 + 1j]), tf.constant([1j, 4]), 3, axis=1)
    assert rows.numpy().tolist() == [[0j, 0.5j, 1j], [2 + 1j, 3 + 0.5j, 4]]
    assert tf.linspace(tf.constant(1j, tf.complex64), tf.constant(2, tf.complex64), 1).numpy().tolist() == [1j]
    # Mixed types are promoted; TensorFlow refuses them.
    assert tf.linspace(0.0, tf.constant(1j), 2).numpy().tolist() == [0j, 1j]
