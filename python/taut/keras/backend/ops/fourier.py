"""Fourier transforms along the last axis. Complex numbers are pairs of tensors, as in `keras.ops`."""

from __future__ import annotations

from typing import Any

import numpy as np

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, cut, floating, shape_of, type_of
from taut.keras.backend.ops.numpy.shapes import moveaxis, swapaxes

__all__ = ["extract_sequences", "fft", "fft2", "ifft2", "irfft", "istft", "rfft", "stft"]

SMALL = 64
"""Up to this length, a transform is one product with a matrix."""

Complex = tuple[tf.Tensor, tf.Tensor]


def pair(x: Any) -> Complex:
    """A real and an imaginary part of one shape and type."""
    if not isinstance(x, (tuple, list)) or len(x) != 2:
        raise ValueError(f"Complex numbers are a tuple of their real and imaginary parts. Received: x={x}")
    real, imaginary = (convert_to_tensor(part) for part in x)
    if shape_of(real) != shape_of(imaginary):
        raise ValueError(
            f"The real and imaginary parts differ in shape: {shape_of(real)} and {shape_of(imaginary)}"
        )
    if "float" not in type_of(real) or "float" not in type_of(imaginary):
        raise ValueError(
            "The real and imaginary parts have to be floating-point numbers. "
            f"Received: {type_of(real)} and {type_of(imaginary)}"
        )
    return real, tf.cast(imaginary, real.dtype)


def roots(rows: int, columns: int, count: int, sign: float, dtype: Any) -> Complex:
    """exp(sign 2 pi i r c / count) for every row r and column c."""
    turns = np.outer(np.arange(rows), np.arange(columns)) % count * (2.0 * np.pi / count)
    return convert_to_tensor(np.cos(turns), dtype), convert_to_tensor(sign * np.sin(turns), dtype)


def times(x: tuple, y: Complex, product: Any) -> Complex:
    """The product of complex numbers; an imaginary part of `x` that is `None` is zero."""
    (a, b), (c, d) = x, y
    if b is None:
        return product(a, c), product(a, d)
    return product(a, c) - product(b, d), product(a, d) + product(b, c)


def divisor(count: int) -> int:
    """The largest divisor of a length that is small, or all of it if there is none."""
    return next((d for d in range(SMALL, 1, -1) if count % d == 0), count)


def transform(x: tuple, sign: float) -> Complex:
    """The sums of x[n] exp(sign 2 pi i n k / count) over n. The length is taken apart into small factors."""
    *front, count = shape_of(x[0])
    dtype = x[0].dtype
    first = count if count <= SMALL else divisor(count)
    if first == count:
        return times(x, roots(count, count, count, sign, dtype), rows_times)
    rest = count // first
    folded = tuple(None if part is None else tf.reshape(part, [*front, first, rest]) for part in x)
    matrix = roots(first, first, first, sign, dtype)
    inner = times(folded, matrix, lambda part, weights: tf.matmul(weights, part))
    turned = times(inner, roots(first, rest, count, sign, dtype), tf.multiply)
    parts = transform(turned, sign)
    return tuple(tf.reshape(swapaxes(part, -1, -2), [*front, count]) for part in parts)


def rows_times(x: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """The last axis of `x`, multiplied by a matrix."""
    shape = shape_of(x)
    return tf.reshape(tf.matmul(tf.reshape(x, [-1, shape[-1]]), matrix), shape)


def inverse(x: Complex) -> Complex:
    """The transform's way back."""
    count = shape_of(x[0])[-1]
    real, imaginary = transform(x, 1.0)
    return real / count, imaginary / count


def in_two_axes(x: Complex, work: Any) -> Complex:
    """`work` along the last axis, and then along the one before."""
    across = tuple(swapaxes(part, -1, -2) for part in work(x))
    return tuple(swapaxes(part, -1, -2) for part in work(across))


def fft(x: Any) -> Complex:
    """The transform along the last axis."""
    return transform(pair(x), -1.0)


def fft2(x: Any) -> Complex:
    """The transform along the last two axes."""
    return in_two_axes(pair(x), lambda part: transform(part, -1.0))


def ifft2(x: Any) -> Complex:
    """The way back of `fft2`."""
    return in_two_axes(pair(x), inverse)


def resized(x: tf.Tensor, count: int) -> tf.Tensor:
    """The first `count` elements of the last axis, with zeros after them where there are fewer."""
    own = shape_of(x)[-1]
    if own >= count:
        return cut(x, -1, 0, count)
    return tf.pad(x, [[0, 0]] * (len(x.shape) - 1) + [[0, count - own]])


def rfft(x: Any, fft_length: int | None = None) -> Complex:
    """The first half of the transform of real numbers; the other one mirrors it."""
    x = floating(x)
    count = shape_of(x)[-1] if fft_length is None else int(fft_length)
    parts = transform((resized(x, count), None), -1.0)
    return tuple(cut(part, -1, 0, count // 2 + 1) for part in parts)


def irfft(x: Any, fft_length: int | None = None) -> tf.Tensor:
    """The way back of `rfft`, to `fft_length` numbers, by default an even number of them."""
    real, imaginary = pair(x)
    count = 2 * (shape_of(real)[-1] - 1) if fft_length is None else int(fft_length)
    half = count // 2 + 1
    real, imaginary = resized(real, half), resized(imaginary, half)
    last = [len(real.shape) - 1]
    mirrored = (tf.reverse(cut(part, -1, 1, count - half + 1), last) for part in (real, imaginary))
    more_real, more_imaginary = mirrored
    whole = (tf.concat([real, more_real], axis=-1), tf.concat([imaginary, -more_imaginary], axis=-1))
    return inverse(whole)[0]


# Pieces of a signal.


def extract_sequences(x: Any, sequence_length: int, sequence_stride: int) -> tf.Tensor:
    """All the sequences of a length along the last axis, as far apart as the stride."""
    x = convert_to_tensor(x)
    count = 1 + (shape_of(x)[-1] - sequence_length) // sequence_stride
    places = np.arange(count)[:, None] * sequence_stride + np.arange(sequence_length)[None, :]
    return tf.gather(x, convert_to_tensor(places, "int32"), axis=-1)


RAISED = {"hann": 0.5, "hamming": 0.54}
"""The means of windows that are a raised cosine."""


def window_of(window: Any, sequence_length: int, fft_length: int, dtype: Any) -> tf.Tensor:
    """The weights of a piece, in the middle of `fft_length` places."""
    if isinstance(window, str):
        if window not in RAISED:
            raise ValueError(f"A window is one of {sorted(RAISED)}, weights, or None. Received: {window!r}")
        turns = np.arange(sequence_length) * (2.0 * np.pi / sequence_length)
        weights = RAISED[window] - (1.0 - RAISED[window]) * np.cos(turns)
    else:
        weights = np.ones(fft_length) if window is None else window
    weights = convert_to_tensor(weights, dtype)
    if window is None:
        return weights
    if shape_of(weights) != (sequence_length,):
        raise ValueError(
            f"A window for pieces of length {sequence_length} has that many weights. "
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
    """The transforms of overlapping pieces of a signal, weighted by a window."""
    x = convert_to_tensor(x)
    if type_of(x) not in ("float32", "float64"):
        raise TypeError(f"A signal is of type float32 or float64. Received: {type_of(x)}")
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
    """The way back of `stft`: pieces are weighted again, added up, and divided by the weights' squares."""
    pieces = irfft(x, fft_length)
    if len(pieces.shape) < 2:
        raise ValueError(f"`istft` takes pieces along the last but one axis. Received: {shape_of(pieces)}")
    weights = window_of(window, sequence_length, fft_length, pieces.dtype)
    signal = added_up(pieces * weights, sequence_stride)
    if window is not None:
        squares = tf.broadcast_to(tf.square(weights), shape_of(pieces)[-2:])
        total = added_up(squares, sequence_stride)
        signal = signal / tf.where(total > 1e-10, total, 1.0)
    whole = shape_of(signal)[-1]
    start = fft_length // 2 if center else 0
    if length is not None:
        return cut(signal, -1, start, min(start + length, whole))
    return cut(signal, -1, start, whole - start)


def added_up(pieces: tf.Tensor, stride: int) -> tf.Tensor:
    """Pieces (..., count, length), each at its place of one signal."""
    *front, count, length = shape_of(pieces)
    places = (np.arange(count)[:, None] * stride + np.arange(length)).reshape(-1)
    flat = moveaxis(tf.reshape(pieces, [*front, count * length]), -1, 0)
    whole = length + stride * (count - 1)
    return moveaxis(tf.math.unsorted_segment_sum(flat, convert_to_tensor(places, "int32"), whole), 0, -1)
