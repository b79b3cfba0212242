"""Calls with complex numbers and signals. `python/tools/answers.py` writes TensorFlow's results to `complex_answers.json`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

Z = np.array([[1.0 + 2.0j, -0.5 + 0.25j, 3.0 - 1.0j], [0.1 - 0.7j, -2.0 - 0.5j, 0.4 + 0.9j]])
W = np.array([[0.5 - 1.0j, 2.0 + 0.5j, -1.0 + 1.5j], [1.5 + 0.2j, -0.3 + 0.8j, 0.7 - 0.6j]])
X = np.array([[0.3, -1.2, 2.5], [1.7, 0.4, -0.8]])
SIGNAL = np.sin(np.arange(64) * 0.37) + 0.3 * np.cos(np.arange(64) * 1.1)
SQUARE = np.array([[2.0 + 1.0j, 0.5, -1j], [0.3 - 0.2j, 1.5 - 0.5j, 0.4], [1j, 0.1 + 0.7j, 3.0]])
CUBE = (np.arange(60) % 7 - 2.5 + 1j * (np.arange(60) % 5 - 1.5)).reshape(3, 4, 5)

Case = Callable[[Any], Any]
CASES: dict[str, Case] = {}

_BINARY = "add subtract multiply divide"
_UNARY = """negative square reciprocal sqrt exp log sin cos tan sinh cosh tanh asin acos atan asinh acosh atanh sigmoid log1p expm1
abs angle real imag conj sign rsqrt"""


def _constant(tf: Any, value: Any, kind: str) -> Any:
    return tf.constant(value, kind)


def _gradient(tf: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """The gradients of the sum of a real function, or of what becomes real by weights."""
    tensors = [tf.constant(one) for one in arguments]
    with tf.GradientTape() as tape:
        tape.watch(tensors)
        result = function(*tensors)
        weights = tf.reshape(tf.range(1, tf.size(result) + 1), tf.shape(result))
        loss = tf.reduce_sum(result * tf.cast(weights, result.dtype))
        loss = tf.math.real(loss) + 0.5 * tf.math.imag(loss) if loss.dtype.is_complex else loss
    return tape.gradient(loss, tensors)


def _second(tf: Any, function: Callable[..., Any], argument: Any) -> Any:
    z = tf.constant(argument)
    with tf.GradientTape() as outer:
        outer.watch(z)
        with tf.GradientTape() as inner:
            inner.watch(z)
            loss = tf.reduce_sum(tf.math.real(function(z)))
        first = inner.gradient(loss, z)
        again = tf.reduce_sum(tf.abs(first) ** 2)
    return outer.gradient(again, z)


def _hermitian(tf: Any, z: Any) -> Any:
    """A positive definite matrix made of a square one."""
    return tf.matmul(z, z, adjoint_b=True) + tf.eye(3, dtype=z.dtype)


def _positive_qr(tf: Any, z: Any) -> Any:
    """Both factors in one matrix, with a positive diagonal of r: the signs of rows and columns are arbitrary."""
    q, r = tf.linalg.qr(z)
    signs = tf.math.sign(tf.linalg.diag_part(r))
    return tf.concat([q * signs, tf.math.conj(signs)[:, None] * r], axis=0)


def _of_eigenvectors(tf: Any, vectors: Any) -> Any:
    """A matrix that does not depend on the phases of its columns."""
    return tf.matmul(vectors * tf.constant([1.0, 2.0, 4.0], vectors.dtype), vectors, adjoint_b=True)


def _by_singular_vectors(tf: Any, z: Any) -> Any:
    s, u, v = tf.linalg.svd(z)
    return tf.matmul(u * tf.cast(s**2, u.dtype), v, adjoint_b=True)


for _kind in ("complex64", "complex128"):
    for _name in _UNARY.split():
        CASES[f"{_name} {_kind}"] = lambda tf, n=_name, k=_kind: getattr(tf.math, n)(_constant(tf, Z, k))
    for _name in _BINARY.split():
        CASES[f"{_name} {_kind}"] = lambda tf, n=_name, k=_kind: getattr(tf, n)(
            _constant(tf, Z, k), _constant(tf, W, k)
        )
    CASES[f"pow {_kind}"] = lambda tf, k=_kind: tf.pow(_constant(tf, Z, k), _constant(tf, W, k))
    CASES[f"matmul {_kind}"] = lambda tf, k=_kind: tf.matmul(_constant(tf, Z, k), _constant(tf, W, k), adjoint_b=True)
    CASES[f"fft {_kind}"] = lambda tf, k=_kind: tf.signal.fft(_constant(tf, CUBE, k))
    CASES[f"ifft {_kind}"] = lambda tf, k=_kind: tf.signal.ifft(_constant(tf, CUBE, k))

CASES |= {
    "scalar times tensor": lambda tf: tf.constant([1.0 + 1.0j], "complex64") * 2j + 1.0,
    "constant of Python numbers": lambda tf: tf.constant([1 + 2j, 3]),
    "complex of parts": lambda tf: tf.complex(tf.constant(X, "float32"), tf.constant(X[::-1], "float32")),
    "equal": lambda tf: tf.equal(tf.constant(Z), tf.constant(np.where(X > 0, Z, W))),
    "not equal": lambda tf: tf.constant(Z) != tf.constant(np.where(X > 0, Z, W)),
    "cast to float": lambda tf: tf.cast(tf.constant(Z), "float32"),
    "cast from float": lambda tf: tf.cast(tf.constant(X), "complex64"),
    "cast from int": lambda tf: tf.cast(tf.constant([1, -2]), "complex128"),
    "reduce_sum": lambda tf: tf.reduce_sum(tf.constant(Z), 0),
    "reduce_prod": lambda tf: tf.reduce_prod(tf.constant(Z), 1),
    "reduce_mean": lambda tf: tf.reduce_mean(tf.constant(Z)),
    "reduce_variance": lambda tf: tf.math.reduce_variance(tf.constant(Z), 0),
    "reduce_std": lambda tf: tf.math.reduce_std(tf.constant(Z)),
    "cumsum": lambda tf: tf.cumsum(tf.constant(Z), 1),
    "cumprod": lambda tf: tf.math.cumprod(tf.constant(Z), 1, exclusive=True),
    "norm": lambda tf: tf.norm(tf.constant(Z)),
    "squared_difference": lambda tf: tf.math.squared_difference(tf.constant(Z), tf.constant(W)),
    "concat and gather": lambda tf: tf.gather(tf.concat([tf.constant(Z), tf.constant(W)], 0), [3, 0, 0]),
    "where": lambda tf: tf.where(tf.constant(X) > 0, tf.constant(Z), tf.constant(W)),
    "pad and transpose": lambda tf: tf.transpose(tf.pad(tf.constant(Z), [[1, 0], [0, 1]]), conjugate=True),
    "scatter": lambda tf: tf.tensor_scatter_nd_add(tf.constant(Z), [[0], [0]], tf.constant(W)),
    "segments": lambda tf: tf.math.unsorted_segment_sum(tf.constant(Z), [1, 1], 3),
    "eye and diag": lambda tf: tf.eye(2, dtype="complex64") + tf.linalg.diag(tf.constant([1j, 2.0], "complex64")),
    "adjoint": lambda tf: tf.linalg.adjoint(tf.constant(Z)),
    "einsum": lambda tf: tf.einsum("ij,kj->ik", tf.constant(Z), tf.constant(W)),
    "tensordot": lambda tf: tf.tensordot(tf.constant(Z), tf.constant(W), [[0], [0]]),
    "matvec": lambda tf: tf.linalg.matvec(tf.constant(Z), tf.constant(W[0]), adjoint_a=False),
    "solve": lambda tf: tf.linalg.solve(tf.constant(SQUARE), tf.constant(Z.T.copy())),
    "solve adjoint": lambda tf: tf.linalg.solve(tf.constant(SQUARE), tf.constant(Z.T.copy()), adjoint=True),
    "inv": lambda tf: tf.linalg.inv(tf.constant(SQUARE)),
    "expm": lambda tf: tf.linalg.expm(tf.constant(SQUARE)),
    "cholesky": lambda tf: tf.linalg.cholesky(_hermitian(tf, tf.constant(SQUARE))),
    "cholesky complex64": lambda tf: tf.linalg.cholesky(_hermitian(tf, tf.constant(SQUARE, "complex64"))),
    "cholesky_solve": lambda tf: tf.linalg.cholesky_solve(
        tf.linalg.cholesky(_hermitian(tf, tf.constant(SQUARE))), tf.constant(Z.T.copy())
    ),
    "triangular_solve": lambda tf: tf.linalg.triangular_solve(tf.constant(SQUARE), tf.constant(Z.T.copy())),
    "triangular_solve adjoint": lambda tf: tf.linalg.triangular_solve(
        tf.constant(SQUARE), tf.constant(Z.T.copy()), lower=False, adjoint=True
    ),
    "det": lambda tf: tf.linalg.det(tf.constant(np.stack([SQUARE, SQUARE.T * 2j]))),
    "slogdet": lambda tf: list(tf.linalg.slogdet(tf.constant(SQUARE))),
    "logdet": lambda tf: tf.linalg.logdet(_hermitian(tf, tf.constant(SQUARE))),
    "qr": lambda tf: _positive_qr(tf, tf.constant(SQUARE)),
    "qr tall": lambda tf: _positive_qr(tf, tf.constant(Z.T.copy())),
    "singular values": lambda tf: tf.linalg.svd(tf.constant(Z), compute_uv=False),
    "singular values complex64": lambda tf: tf.linalg.svd(tf.constant(SQUARE, "complex64"))[0],
    "svd": lambda tf: _by_singular_vectors(tf, tf.constant(Z)),
    "svd full": lambda tf: tf.math.abs(tf.linalg.svd(tf.constant(Z), full_matrices=True)[2]),
    "eigh values": lambda tf: tf.linalg.eigh(_hermitian(tf, tf.constant(SQUARE)))[0],
    "eigh vectors": lambda tf: _of_eigenvectors(tf, tf.linalg.eigh(_hermitian(tf, tf.constant(SQUARE)))[1]),
    "eigvalsh complex64": lambda tf: tf.linalg.eigvalsh(_hermitian(tf, tf.constant(SQUARE, "complex64"))),
    "lstsq": lambda tf: tf.linalg.lstsq(tf.constant(Z.T.copy()), tf.constant(W.T.copy())),
    "logm": lambda tf: tf.linalg.logm(tf.constant(SQUARE)),
    "logm complex64": lambda tf: tf.linalg.logm(tf.constant(SQUARE, "complex64")),
    "logm of a defective matrix": lambda tf: tf.linalg.logm(tf.constant([[2.0 + 1j, 1.0], [0.0, 2.0 + 1j]])),
    "gradient of solve": lambda tf: _gradient(tf, tf.linalg.solve, SQUARE, Z.T.copy()),
    "gradient of cholesky": lambda tf: _gradient(tf, lambda z: tf.linalg.cholesky(_hermitian(tf, z)), SQUARE),
    "gradient of triangular_solve": lambda tf: _gradient(tf, tf.linalg.triangular_solve, SQUARE, Z.T.copy()),
    "gradient of slogdet": lambda tf: _gradient(tf, lambda z: tf.math.real(tf.linalg.slogdet(z)[1]), SQUARE[None]),
    "gradient of qr": lambda tf: _gradient(tf, lambda z: _positive_qr(tf, z), SQUARE),
    "gradient of qr tall": lambda tf: _gradient(tf, lambda z: _positive_qr(tf, z), Z.T.copy()),
    "gradient of singular values": lambda tf: _gradient(tf, lambda z: tf.linalg.svd(z)[0], SQUARE),
    "gradient of svd": lambda tf: _gradient(tf, lambda z: _by_singular_vectors(tf, z), SQUARE),
    "gradient of eigh values": lambda tf: _gradient(tf, lambda z: tf.linalg.eigh(_hermitian(tf, z))[0], SQUARE),
    "gradient of eigh vectors": lambda tf: _gradient(
        tf, lambda z: _of_eigenvectors(tf, tf.linalg.eigh(_hermitian(tf, z))[1]), SQUARE
    ),
    "gradient of lstsq": lambda tf: _gradient(tf, tf.linalg.lstsq, Z.T.copy(), W.T.copy()),
    "gradient of inv": lambda tf: _gradient(tf, tf.linalg.inv, SQUARE),
    # Transforms.
    "fft2d": lambda tf: tf.signal.fft2d(tf.constant(CUBE)),
    "ifft2d": lambda tf: tf.signal.ifft2d(tf.constant(CUBE)),
    "fft3d": lambda tf: tf.signal.fft3d(tf.constant(CUBE)),
    "ifft3d": lambda tf: tf.signal.ifft3d(tf.constant(CUBE)),
    "rfft": lambda tf: tf.signal.rfft(tf.constant(CUBE.real)),
    "rfft longer": lambda tf: tf.signal.rfft(tf.constant(CUBE.real), [8]),
    "rfft shorter": lambda tf: tf.signal.rfft(tf.constant(CUBE.real), [3]),
    "irfft": lambda tf: tf.signal.irfft(tf.constant(CUBE)),
    "irfft odd": lambda tf: tf.signal.irfft(tf.constant(CUBE), [7]),
    "rfft2d": lambda tf: tf.signal.rfft2d(tf.constant(CUBE.real)),
    "irfft2d": lambda tf: tf.signal.irfft2d(tf.constant(CUBE)),
    "rfft3d": lambda tf: tf.signal.rfft3d(tf.constant(CUBE.real)),
    "irfft3d": lambda tf: tf.signal.irfft3d(tf.constant(CUBE)),
    "fftshift": lambda tf: tf.signal.fftshift(tf.constant(CUBE.real)),
    "ifftshift": lambda tf: tf.signal.ifftshift(tf.constant(CUBE.real), [2]),
    "dct 1": lambda tf: tf.signal.dct(tf.constant(SIGNAL), 1),
    "dct 2": lambda tf: tf.signal.dct(tf.constant(SIGNAL), 2),
    "dct 2 ortho": lambda tf: tf.signal.dct(tf.constant(SIGNAL), 2, norm="ortho"),
    "dct 2 shorter": lambda tf: tf.signal.dct(tf.constant(SIGNAL), 2, n=20),
    "dct 3": lambda tf: tf.signal.dct(tf.constant(SIGNAL), 3),
    "dct 3 ortho": lambda tf: tf.signal.dct(tf.constant(SIGNAL), 3, norm="ortho"),
    "dct 4": lambda tf: tf.signal.dct(tf.constant(SIGNAL), 4),
    "dct 4 ortho": lambda tf: tf.signal.dct(tf.constant(SIGNAL), 4, norm="ortho"),
    "idct": lambda tf: tf.signal.idct(tf.constant(SIGNAL), 2, norm="ortho"),
    # Signals.
    "frame": lambda tf: tf.signal.frame(tf.constant(SIGNAL), 10, 4),
    "frame pad_end": lambda tf: tf.signal.frame(tf.constant(SIGNAL), 10, 4, pad_end=True, pad_value=7.0),
    "frame axis": lambda tf: tf.signal.frame(tf.constant(CUBE.real), 2, 1, axis=1),
    "overlap_and_add": lambda tf: tf.signal.overlap_and_add(tf.constant(CUBE.real), 2),
    "hann": lambda tf: tf.signal.hann_window(8),
    "hann odd": lambda tf: tf.signal.hann_window(9),
    "hann symmetric": lambda tf: tf.signal.hann_window(8, periodic=False, dtype=tf.float64),
    "hamming": lambda tf: tf.signal.hamming_window(10),
    "kaiser": lambda tf: tf.signal.kaiser_window(9, 5.0),
    "kaiser bessel derived": lambda tf: tf.signal.kaiser_bessel_derived_window(12, 4.0),
    "vorbis": lambda tf: tf.signal.vorbis_window(12),
    "stft": lambda tf: tf.signal.stft(tf.constant(SIGNAL, "float32"), 12, 5),
    "stft pad_end": lambda tf: tf.signal.stft(tf.constant(SIGNAL, "float32"), 12, 5, 20, pad_end=True),
    "inverse_stft": lambda tf: tf.signal.inverse_stft(
        tf.signal.stft(tf.constant(SIGNAL, "float32"), 16, 8), 16, 8, window_fn=tf.signal.inverse_stft_window_fn(8)
    ),
    "mdct": lambda tf: tf.signal.mdct(tf.constant(SIGNAL, "float32"), 16),
    "inverse_mdct": lambda tf: tf.signal.inverse_mdct(tf.signal.mdct(tf.constant(SIGNAL, "float32"), 16)),
    "mdct ortho": lambda tf: tf.signal.mdct(tf.constant(SIGNAL, "float32"), 16, norm="ortho"),
    "mel": lambda tf: tf.signal.linear_to_mel_weight_matrix(6, 17, 8000, 125.0, 3800.0),
    "mfcc": lambda tf: tf.signal.mfccs_from_log_mel_spectrograms(tf.constant(SIGNAL.reshape(8, 8), "float32")),
    # Gradients.
    "gradient of product": lambda tf: _gradient(tf, lambda z, w: z * w, Z, W),
    "gradient of quotient": lambda tf: _gradient(tf, lambda z, w: z / w, Z, W),
    "gradient of power": lambda tf: _gradient(tf, lambda z, w: z**w, Z, W),
    "gradient of abs": lambda tf: _gradient(tf, tf.abs, Z),
    "gradient of angle": lambda tf: _gradient(tf, tf.math.angle, Z),
    "gradient of parts": lambda tf: _gradient(tf, lambda z: tf.math.real(z) * tf.math.imag(z), Z),
    "gradient of conj": lambda tf: _gradient(tf, lambda z: tf.math.conj(z) * z * z, Z),
    "gradient of complex": lambda tf: _gradient(tf, lambda a, b: tf.complex(a, b) ** 2, X, X[::-1].copy()),
    "gradient of cast": lambda tf: _gradient(tf, lambda a: tf.cast(a, "complex128") * (1 + 2j), X),
    "gradient of matmul": lambda tf: _gradient(tf, lambda z, w: tf.matmul(z, w, adjoint_b=True), Z, W),
    "gradient of prod": lambda tf: _gradient(tf, lambda z: tf.reduce_prod(z, 1), Z),
    "gradient of norm": lambda tf: _gradient(tf, lambda z: tf.reshape(tf.norm(z), [1]), Z),
    "gradient of fft": lambda tf: _gradient(tf, tf.signal.fft, Z),
    "gradient of ifft": lambda tf: _gradient(tf, tf.signal.ifft, Z),
    "gradient of rfft": lambda tf: _gradient(tf, tf.signal.rfft, X),
    "gradient of irfft": lambda tf: _gradient(tf, tf.signal.irfft, Z),
    "gradient of gather": lambda tf: _gradient(tf, lambda z: tf.gather(z, [1, 1, 0]) * z[0, 1], Z),
    **{
        f"gradient of {_name}": lambda tf, n=_name: _gradient(tf, getattr(tf.math, n), Z)
        for _name in "exp log sqrt sin cos tan sinh cosh tanh asin acos atan sigmoid reciprocal square rsqrt log1p".split()
    },
    "second order of square": lambda tf: _second(tf, lambda z: z * z * z, Z),
    "second order of exp": lambda tf: _second(tf, tf.exp, Z),
    "second order of abs": lambda tf: _second(tf, lambda z: tf.cast(tf.abs(z) ** 3, "complex128"), Z),
}
