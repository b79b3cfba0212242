"""Fourier transforms along the last axis. Complex numbers are pairs of tensors, as in `keras.ops`."""

from __future__ import annotations

from typing import Any

import numpy as np

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, floating, shape_of, slice_axis, type_of
from taut.keras.backend.ops.numpy.shapes import swapaxes

Complex = tuple[tf.Tensor, tf.Tensor]


def pair(x: Any) -> Complex:
    """A real and an imaginary part of one shape and type."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"`x` must be a tuple of real and imaginary parts. Received: x={x}")
    real, imaginary = (convert_to_tensor(part) for part in x)
    if shape_of(real) != shape_of(imaginary):
        raise ValueError(
            f"Real and imaginary parts must have one shape. Received: {shape_of(real)} and {shape_of(imaginary)}"
        )
    if "float" not in type_of(real) or "float" not in type_of(imaginary):
        raise ValueError(
            "Real and imaginary parts must have a floating-point type. "
            f"Received: {type_of(real)} and {type_of(imaginary)}"
        )
    return real, tf.cast(imaginary, real.dtype)


def complex_of(x: Any) -> tf.Tensor:
    """Complex numbers from a pair of their parts."""
    real, imaginary = pair(x)
    return tf.complex(real, imaginary)


def transform(x: tuple, sign: float) -> Complex:
    """Computes the sums of x[n] exp(sign 2 pi i n k / count) over n; an imaginary part that is None is zero."""
    real, imaginary = x
    dtype = real.dtype
    wide = dtype if dtype in (tf.float32, tf.float64) else tf.float32
    real = tf.cast(real, wide)
    z = tf.complex(real, tf.zeros_like(real) if imaginary is None else tf.cast(imaginary, wide))
    y = tf.signal.fft(z) if sign < 0 else tf.signal.ifft(z) * float(shape_of(z)[-1])
    return tf.cast(tf.math.real(y), dtype), tf.cast(tf.math.imag(y), dtype)


def inverse(x: Complex) -> Complex:
    """The inverse transform."""
    count = shape_of(x[0])[-1]
    real, imaginary = transform(x, 1.0)
    return real / count, imaginary / count


def in_two_axes(x: Complex, work: Any) -> Complex:
    """Applies `work` along the last axis, then along the one before."""
    real, imaginary = (swapaxes(part, -1, -2) for part in work(x))
    real, imaginary = (swapaxes(part, -1, -2) for part in work((real, imaginary)))
    return real, imaginary


def fft(x: Any) -> Complex:
    """Computes the Fourier transform along the last axis."""
    return transform(pair(x), -1.0)


def fft2(x: Any) -> Complex:
    """Computes the Fourier transform along the last two axes."""
    return in_two_axes(pair(x), lambda part: transform(part, -1.0))


def ifft2(x: Any) -> Complex:
    """Computes the inverse of `fft2`."""
    return in_two_axes(pair(x), inverse)


def resized(x: tf.Tensor, count: int) -> tf.Tensor:
    """Truncates or zero-pads the last axis to `count` elements."""
    own = shape_of(x)[-1]
    if own >= count:
        return slice_axis(x, -1, 0, count)
    return tf.pad(x, [[0, 0]] * (len(x.shape) - 1) + [[0, count - own]])


def rfft(x: Any, fft_length: int | None = None) -> Complex:
    """Computes the Fourier transform of real numbers: the first half, which determines the other."""
    x = floating(x)
    count = shape_of(x)[-1] if fft_length is None else int(fft_length)
    parts = transform((resized(x, count), None), -1.0)
    real, imaginary = (slice_axis(part, -1, 0, count // 2 + 1) for part in parts)
    return real, imaginary


def irfft(x: Any, fft_length: int | None = None) -> tf.Tensor:
    """Computes the inverse of `rfft`, with `fft_length` elements (default: an even number)."""
    real, imaginary = pair(x)
    count = 2 * (shape_of(real)[-1] - 1) if fft_length is None else int(fft_length)
    half = count // 2 + 1
    real, imaginary = resized(real, half), resized(imaginary, half)
    last = [len(real.shape) - 1]
    mirrored = (tf.reverse(slice_axis(part, -1, 1, count - half + 1), last) for part in (real, imaginary))
    more_real, more_imaginary = mirrored
    whole = (tf.concat([real, more_real], axis=-1), tf.concat([imaginary, -more_imaginary], axis=-1))
    return inverse(whole)[0]


# Pieces of a signal.


def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> tf.Tensor:
    """Extracts sequences of a length along the last axis, `sequence_stride` apart."""
    x = convert_to_tensor(x)
    return tf.signal.frame(x, sequence_length, sequence_stride)


WINDOWS = {"hann": tf.signal.hann_window, "hamming": tf.signal.hamming_window}
"""The windows that have names. As with TensorFlow, those of odd length are symmetric."""


def window_of(window: Any, sequence_length: int, fft_length: int, dtype: Any) -> tf.Tensor:
    """The window's weights, centred in `fft_length` elements."""
    if isinstance(window, str):
        if window not in WINDOWS:
            raise ValueError(f"`window` must be one of {sorted(WINDOWS)}, a vector, or None. Received: {window!r}")
        weights = WINDOWS[window](sequence_length, periodic=True, dtype=dtype)
    else:
        weights = convert_to_tensor(np.ones(fft_length) if window is None else window, dtype)
    if window is None:
        return weights
    if shape_of(weights) != (sequence_length,):
        raise ValueError(
            f"`window` must have {sequence_length} elements, the sequence length. "
            f"Received: window.shape={shape_of(weights)}"
        )
    before = (fft_length - sequence_length) // 2
    return tf.pad(weights, [[before, fft_length - sequence_length - before]])


def stft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    window: Any = "hann",
    center: bool = True,
) -> Complex:
    """Computes the short-time Fourier transform of overlapping, windowed sequences."""
    x = convert_to_tensor(x)
    if type_of(x) not in ("float32", "float64"):
        raise TypeError(f"`x` must have type float32 or float64. Received: {type_of(x)}")
    if fft_length < sequence_length:
        raise ValueError(
            "`fft_length` must not be less than `sequence_length`. "
            f"Received: sequence_length={sequence_length}, fft_length={fft_length}"
        )
    if center:
        around = [[0, 0]] * (len(x.shape) - 1) + [[fft_length // 2] * 2]
        x = tf.pad(x, around, mode="REFLECT")
    pieces = extract_sequences(x, fft_length, sequence_stride)
    return rfft(pieces * window_of(window, sequence_length, fft_length, x.dtype))


def istft(
    x: Any,
    sequence_length: int,
    sequence_stride: int,
    fft_length: int,
    length: int | None = None,
    window: Any = "hann",
    center: bool = True,
) -> tf.Tensor:
    """Computes the inverse of `stft` by adding overlapping sequences. Windows are normalized as if sequences overlapped
    everywhere: the ends of a signal, which fewer sequences cover, are damped, as with TensorFlow.
    """
    pieces = irfft(x, fft_length)
    if len(pieces.shape) < 2:
        raise ValueError(f"`istft` needs rank >= 2. Received: {shape_of(pieces)}")
    if window is not None:
        weights = window_of(window, sequence_length, fft_length, pieces.dtype)
        inverse = tf.signal.inverse_stft_window_fn(sequence_stride, lambda length, dtype: weights)
        pieces = pieces * inverse(fft_length, dtype=pieces.dtype)
    signal = tf.signal.overlap_and_add(pieces, sequence_stride)
    whole = shape_of(signal)[-1]
    start = fft_length // 2 if center else 0
    if length is not None:
        return slice_axis(signal, -1, start, min(start + length, whole))
    return slice_axis(signal, -1, start, whole - start)
