"""Frames of signals, windows, and spectrograms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import as_ints, refuse, select_rows
from .._native import Tensor, as_tensor
from .fourier import dct, irfft, resized, rfft

if TYPE_CHECKING:
    from collections.abc import Callable

    from .._typing import DTypeLike, TensorLike


def _whole(name: str, parameter: str, value: Any, least: int = 1) -> int:
    (number,) = as_ints(value)
    if number < least:
        refuse(name, f"{parameter} must be >= {least}, got {number}", ValueError)
    return number


def frame(
    signal: TensorLike,
    frame_length: Any,
    frame_step: Any,
    pad_end: bool = False,
    pad_value: Any = 0,
    axis: int = -1,
    name: str | None = None,
) -> Tensor:
    """Splits an axis into frames of a length, `frame_step` elements apart: `axis` becomes two, frames and their elements."""
    x = as_tensor(signal)
    for parameter, value in (("frame_length", frame_length), ("frame_step", frame_step), ("pad_value", pad_value)):
        if np.ndim(value):
            refuse("frame", f"{parameter} must be a scalar, got shape {tuple(np.shape(value))}", ValueError)
    length, step = _whole("frame", "frame_length", frame_length), _whole("frame", "frame_step", frame_step)
    if not -x.ndim <= axis < x.ndim:
        refuse("frame", f"axis must be in [{-x.ndim}, {x.ndim}), got {axis}", ValueError)
    axis %= x.ndim
    own = x.shape[axis]
    count = -(-own // step) if pad_end else max(0, 1 + (own - length) // step)
    needed = length + step * (count - 1)
    if count and needed > own:
        paddings = [[0, needed - own if at == axis else 0] for at in range(x.ndim)]
        x = raw.pad(x, paddings, "CONSTANT", pad_value)
    places = np.arange(count)[:, None] * step + np.arange(length)[None, :]
    return select_rows(x, as_tensor(places), axis)


def overlap_and_add(signal: TensorLike, frame_step: Any, name: str | None = None) -> Tensor:
    """Adds overlapping frames `[..., frames, length]`, `frame_step` elements apart, into one signal."""
    x = as_tensor(signal)
    if x.ndim < 2:
        refuse("overlap_and_add", f"expected rank >= 2, got shape {x.shape}", ValueError)
    step = _whole("overlap_and_add", "frame_step", frame_step)
    *front, count, length = x.shape
    if not count:
        return raw.zeros([*front, max(0, length - step)], x.dtype)
    places = (np.arange(count)[:, None] * step + np.arange(length)).reshape(-1)
    flat = raw.moveaxis(raw.reshape(x, [*front, count * length]), -1, 0)
    summed = raw.unsorted_segment_sum(flat, as_tensor(places), length + step * (count - 1))
    return raw.moveaxis(summed, 0, -1)


# Windows.


def _raised_cosine(name: str, window_length: Any, periodic: bool, dtype: DTypeLike, mean: float) -> Tensor:
    count = _whole(name, "window_length", window_length, 0)
    if count <= 1:
        return raw.ones([count], dtype)
    # As in TensorFlow, a window of odd length is symmetric.
    period = count if periodic and count % 2 == 0 else count - 1
    return raw.cast(as_tensor(mean - (1.0 - mean) * np.cos(np.arange(count) * (2.0 * np.pi / period))), dtype)


def hann_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Generates a Hann window."""
    return _raised_cosine("hann_window", window_length, periodic, dtype, 0.5)


def hamming_window(
    window_length: Any, periodic: bool = True, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Generates a Hamming window."""
    return _raised_cosine("hamming_window", window_length, periodic, dtype, 0.54)


def kaiser_window(
    window_length: Any, beta: float = 12.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Generates a Kaiser window."""
    count = _whole("kaiser_window", "window_length", window_length, 0)
    return raw.cast(as_tensor(np.kaiser(count, float(beta))), dtype)


def kaiser_bessel_derived_window(
    window_length: Any, beta: float = 12.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Generates a Kaiser-Bessel derived window, of even length."""
    count = _whole("kaiser_bessel_derived_window", "window_length", window_length, 0)
    sums = np.cumsum(np.kaiser(count // 2 + 1, float(beta)))
    half = np.sqrt(sums[:-1] / sums[-1])
    return raw.cast(as_tensor(np.concatenate([half, half[::-1]])), dtype)


def vorbis_window(window_length: Any, dtype: DTypeLike = dtypes.float32, name: str | None = None) -> Tensor:
    """Generates a Vorbis power complementary window."""
    count = _whole("vorbis_window", "window_length", window_length, 0)
    places = (np.arange(count) + 0.5) * (np.pi / max(count, 1))
    return raw.cast(as_tensor(np.sin(0.5 * np.pi * np.sin(places) ** 2)), dtype)


# Short-time transforms.


def _power_of_two(length: int) -> int:
    return 1 << max(length - 1, 0).bit_length()


def stft(
    signals: TensorLike,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable[..., Tensor] | None = hann_window,
    pad_end: bool = False,
    name: str | None = None,
) -> Tensor:
    """Computes the short-time Fourier transform `[..., frames, fft_length // 2 + 1]` of real signals."""
    length = _whole("stft", "frame_length", frame_length)
    size = _power_of_two(length) if fft_length is None else _whole("stft", "fft_length", fft_length)
    frames = frame(signals, length, frame_step, pad_end)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=frames.dtype)
    return rfft(frames, [size])


def inverse_stft(
    stfts: TensorLike,
    frame_length: Any,
    frame_step: Any,
    fft_length: Any = None,
    window_fn: Callable[..., Tensor] | None = hann_window,
    name: str | None = None,
) -> Tensor:
    """Computes the inverse of `stft` by adding overlapping frames. `inverse_stft_window_fn` makes the window that restores a
    signal."""
    x = as_tensor(stfts)
    length = _whole("inverse_stft", "frame_length", frame_length)
    size = _power_of_two(length) if fft_length is None else _whole("inverse_stft", "fft_length", fft_length)
    frames = resized(irfft(x, [size]), -1, length)
    if window_fn is not None:
        frames = frames * window_fn(length, dtype=frames.dtype)
    return overlap_and_add(frames, frame_step)


def inverse_stft_window_fn(
    frame_step: Any, forward_window_fn: Callable[..., Tensor] = hann_window, name: str | None = None
) -> Callable[..., Tensor]:
    """Makes a window function for `inverse_stft` from that of `stft`."""
    step = _whole("inverse_stft_window_fn", "frame_step", frame_step)

    def inverse_window(frame_length: Any, dtype: DTypeLike = dtypes.float32) -> Tensor:
        length = _whole("inverse_stft_window_fn", "frame_length", frame_length)
        forward = forward_window_fn(length, dtype=dtype)
        overlaps = -(-length // step)
        squares = raw.reshape(resized(raw.square(forward), 0, overlaps * step), [overlaps, step])
        total = raw.broadcast_to(raw.sum(squares, 0, True), [overlaps, step])
        # A window without overlap may end in 0, which no frame can restore.
        return raw.div_no_nan(forward, raw.reshape(total, [overlaps * step])[:length])

    return inverse_window


def mdct(
    signals: TensorLike,
    frame_length: Any,
    window_fn: Callable[..., Tensor] | None = vorbis_window,
    pad_end: bool = False,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the modified discrete cosine transform of frames that overlap by half."""
    length = _whole("mdct", "frame_length", frame_length)
    if length % 4:
        refuse("mdct", f"frame_length must be a multiple of 4, got {length}", ValueError)
    frames = frame(signals, length, length // 2, pad_end)
    frames = frames * (float(np.sqrt(0.5)) if window_fn is None else window_fn(length, dtype=frames.dtype))
    quarter = length // 4
    a, b, c, d = (frames[..., i * quarter : (i + 1) * quarter] for i in range(4))
    return dct(raw.concat([-raw.reverse(c, [-1]) - d, a - raw.reverse(b, [-1])], -1), 4, norm=norm)


def inverse_mdct(
    mdcts: TensorLike,
    window_fn: Callable[..., Tensor] | None = vorbis_window,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the inverse of `mdct`."""
    x = as_tensor(mdcts)
    half = x.shape[-1]
    y = dct(x, 4, norm=norm)
    y = y * (0.5 / half) if norm is None else y
    first, second = y[..., : half // 2], y[..., half // 2 :]
    frames = raw.concat([second, -raw.reverse(second, [-1]), -raw.reverse(first, [-1]), -first], -1)
    frames = frames * (float(np.sqrt(0.5)) if window_fn is None else window_fn(2 * half, dtype=frames.dtype))
    return overlap_and_add(frames, half)


# Mel scale.


def _mel(hertz: Any) -> Any:
    return 1127.0 * np.log1p(np.asarray(hertz, np.float64) / 700.0)


def linear_to_mel_weight_matrix(
    num_mel_bins: int = 20,
    num_spectrogram_bins: Any = 129,
    sample_rate: Any = 8000,
    lower_edge_hertz: float = 125.0,
    upper_edge_hertz: float = 3800.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Generates the matrix `[num_spectrogram_bins, num_mel_bins]` that maps a spectrogram to the mel scale."""
    function = "linear_to_mel_weight_matrix"
    bins = _whole(function, "num_mel_bins", num_mel_bins)
    spectrum = _whole(function, "num_spectrogram_bins", num_spectrogram_bins)
    lower, upper, rate = float(lower_edge_hertz), float(upper_edge_hertz), float(sample_rate)
    if rate <= 0:
        refuse(function, f"sample_rate must be > 0, got {sample_rate}", ValueError)
    if lower < 0:
        refuse(function, f"lower_edge_hertz must be >= 0, got {lower_edge_hertz}", ValueError)
    if lower >= upper:
        message = f"lower_edge_hertz must be < upper_edge_hertz, got {lower_edge_hertz} and {upper_edge_hertz}"
        refuse(function, message, ValueError)
    if upper > rate / 2:
        message = f"upper_edge_hertz must be <= half of sample_rate, got {upper_edge_hertz} and {sample_rate}"
        refuse(function, message, ValueError)
    # The band of frequency zero has no weight.
    frequencies = _mel(np.linspace(0.0, rate / 2, spectrum)[1:])[:, None]
    edges = np.linspace(_mel(lower), _mel(upper), bins + 2)
    low, center, high = edges[:-2], edges[1:-1], edges[2:]
    weights = np.maximum(0.0, np.minimum((frequencies - low) / (center - low), (high - frequencies) / (high - center)))
    return raw.cast(as_tensor(np.pad(weights, [[1, 0], [0, 0]])), dtype)


def mfccs_from_log_mel_spectrograms(log_mel_spectrograms: TensorLike, name: str | None = None) -> Tensor:
    """Computes mel-frequency cepstral coefficients from log-magnitude mel spectrograms."""
    x = as_tensor(log_mel_spectrograms)
    bins = x.shape[-1]
    if not bins:
        refuse(
            "mfccs_from_log_mel_spectrograms", f"the last axis must have >= 1 elements, got shape {x.shape}", ValueError
        )
    return dct(x, 2) * float(1.0 / np.sqrt(2.0 * bins))
