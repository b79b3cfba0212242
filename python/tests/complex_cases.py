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
    "gradient of solve": lambda tf: _gradient(tf, tf.linalg.solve, SQUARE, Z.T.copy()),
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
