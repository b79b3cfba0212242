"""Discrete Fourier and cosine transforms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import as_ints, check_choice, refuse
from .._native import Array, Tensor, as_tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .._typing import DTypeLike, TensorLike

_NORMS = ("backward", "ortho", "forward")


def resized(x: Tensor, axis: int, length: int) -> Tensor:
    """Truncates or zero-pads an axis to `length` elements."""
    own = x.shape[axis]
    if own == length:
        return x
    axis %= x.ndim
    if own > length:
        return x[(slice(None),) * axis + (slice(0, length),)]
    return raw.pad(x, [[0, length - own if at == axis else 0] for at in range(x.ndim)])


def along(x: Tensor, axis: int, function: Callable[[Tensor], Tensor]) -> Tensor:
    """Applies a function of the last axis along another one."""
    if axis in (-1, x.ndim - 1):
        return function(x)
    return raw.swapaxes(function(raw.swapaxes(x, axis, -1)), axis, -1)


def _operand(x: TensorLike, narrow: DTypeLike) -> Tensor:
    """The tensor; arrays and numbers, of any type, become tensors of a narrow type, as in TensorFlow."""
    if isinstance(x, Array) or hasattr(x, "__taut_tensor__"):
        return as_tensor(x)
    made = as_tensor(x)
    return made if made.dtype.is_complex and not dtypes.as_dtype(narrow).is_complex else raw.cast(made, narrow)


def _complex(name: str, x: TensorLike) -> Tensor:
    x = _operand(x, dtypes.complex64)
    if not x.dtype.is_complex:
        refuse(
            name, f"expected complex64 or complex128, got {x.dtype.name}\n  help: cast it to a complex type", TypeError
        )
    return x


def _real(name: str, x: TensorLike) -> Tensor:
    x = as_tensor(x)
    if x.dtype not in (dtypes.float32, dtypes.float64):
        refuse(name, f"expected float32 or float64, got {x.dtype.name}", TypeError)
    return x


def _rank(name: str, x: Tensor, rank: int) -> Tensor:
    if x.ndim < rank:
        refuse(name, f"expected rank >= {rank}, got shape {x.shape}")
    return x


def _lengths(name: str, fft_length: Any, axes: Sequence[int]) -> list[int | None]:
    if fft_length is None:
        return [None] * len(axes)
    lengths: list[int | None] = list(as_ints(fft_length))
    if len(lengths) != len(axes):
        refuse(name, f"fft_length must have {len(axes)} elements, got {len(lengths)}")
    bad = next((length for length in lengths if length is not None and length < 1), None)
    if bad is not None:
        refuse(name, f"fft_length must be >= 1, got {bad}")
    return lengths


def _scaled(y: Tensor, count: int, norm: str | None, inverse: bool) -> Tensor:
    """The transform of `count` elements, which is divided by them if `inverse`, under another normalization."""
    norm = norm or "backward"
    if norm == "ortho":
        return y * float(np.sqrt(count) if inverse else 1.0 / np.sqrt(count))
    if norm == "forward":
        return y * float(count if inverse else 1.0 / count)
    return y


def transform(
    name: str, x: Tensor, lengths: Sequence[int | None], axes: Sequence[int], norm: str | None, inverse: bool
) -> Tensor:
    """The transform of complex numbers along axes."""
    if norm is not None:
        check_choice(name, "norm", norm, _NORMS)
    count = 1
    for axis, length in zip(reversed(axes), reversed(lengths)):
        x = x if length is None else resized(x, axis, length)
        count *= x.shape[axis]
        x = along(x, axis, raw.ifft if inverse else raw.fft)
    return _scaled(x, count, norm, inverse)


def real_transform(
    name: str, x: Tensor, lengths: Sequence[int | None], axes: Sequence[int], norm: str | None
) -> Tensor:
    """The transform of real numbers along axes: of the last one, the half that determines the other."""
    if norm is not None:
        check_choice(name, "norm", norm, _NORMS)
    last, length = axes[-1], lengths[-1]
    x = x if length is None else resized(x, last, length)
    size = x.shape[last]
    y = along(x, last, lambda rows: raw.fft(rows)[..., : size // 2 + 1])
    rest = transform(name, y, lengths[:-1], axes[:-1], None, False)
    count = size * int(np.prod([rest.shape[axis] for axis in axes[:-1]], dtype=np.int64))
    return _scaled(rest, count, norm, False)


def inverse_real_transform(
    name: str, x: Tensor, lengths: Sequence[int | None], axes: Sequence[int], norm: str | None
) -> Tensor:
    """The inverse of `real_transform`."""
    if norm is not None:
        check_choice(name, "norm", norm, _NORMS)
    last, length = axes[-1], lengths[-1]
    size = 2 * (x.shape[last] - 1) if length is None else length
    if size < 1:
        refuse(name, f"the result must have >= 1 elements along axis {last}, got {size}")
    half = size // 2 + 1
    rest = transform(name, resized(x, last, half), lengths[:-1], axes[:-1], None, True)

    def inverse(rows: Tensor) -> Tensor:
        # Of real numbers, the other half is the conjugate in reverse order.
        mirrored = raw.conj(raw.reverse(rows[..., 1 : size - half + 1], [-1]))
        return raw.real(raw.ifft(raw.concat([rows, mirrored], -1)))

    y = along(rest, last, inverse)
    count = size * int(np.prod([rest.shape[axis] for axis in axes[:-1]], dtype=np.int64))
    return _scaled(y, count, norm, True)


def fft(input: TensorLike, name: str | None = None) -> Tensor:
    """Computes the discrete Fourier transform along the last axis."""
    return raw.fft(_rank("fft", _complex("fft", input), 1))


def ifft(input: TensorLike, name: str | None = None) -> Tensor:
    """Computes the inverse discrete Fourier transform along the last axis."""
    return raw.ifft(_rank("ifft", _complex("ifft", input), 1))


def _inner(rank: int) -> list[int]:
    return list(range(-rank, 0))


def fft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """Computes the discrete Fourier transform along the last two axes."""
    return transform("fft2d", _rank("fft2d", _complex("fft2d", input), 2), [None] * 2, _inner(2), None, False)


def ifft2d(input: TensorLike, name: str | None = None) -> Tensor:
    """Computes the inverse discrete Fourier transform along the last two axes."""
    return transform("ifft2d", _rank("ifft2d", _complex("ifft2d", input), 2), [None] * 2, _inner(2), None, True)


def fft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """Computes the discrete Fourier transform along the last three axes."""
    return transform("fft3d", _rank("fft3d", _complex("fft3d", input), 3), [None] * 3, _inner(3), None, False)


def ifft3d(input: TensorLike, name: str | None = None) -> Tensor:
    """Computes the inverse discrete Fourier transform along the last three axes."""
    return transform("ifft3d", _rank("ifft3d", _complex("ifft3d", input), 3), [None] * 3, _inner(3), None, True)


def _real_forward(name: str, x: TensorLike, fft_length: Any, rank: int) -> Tensor:
    tensor = _rank(name, _real(name, _operand(x, dtypes.float32)), rank)
    return real_transform(name, tensor, _lengths(name, fft_length, _inner(rank)), _inner(rank), None)


def _real_inverse(name: str, x: TensorLike, fft_length: Any, rank: int) -> Tensor:
    tensor = _rank(name, _complex(name, x), rank)
    return inverse_real_transform(name, tensor, _lengths(name, fft_length, _inner(rank)), _inner(rank), None)


def rfft(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the Fourier transform of real numbers along the last axis: the first `fft_length // 2 + 1` elements."""
    return _real_forward("rfft", input_tensor, fft_length, 1)


def irfft(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the inverse of `rfft`, with `fft_length` elements (default: an even number)."""
    return _real_inverse("irfft", input_tensor, fft_length, 1)


def rfft2d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the Fourier transform of real numbers along the last two axes."""
    return _real_forward("rfft2d", input_tensor, fft_length, 2)


def irfft2d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the inverse of `rfft2d`."""
    return _real_inverse("irfft2d", input_tensor, fft_length, 2)


def rfft3d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the Fourier transform of real numbers along the last three axes."""
    return _real_forward("rfft3d", input_tensor, fft_length, 3)


def irfft3d(input_tensor: TensorLike, fft_length: Any = None, name: str | None = None) -> Tensor:
    """Computes the inverse of `rfft3d`."""
    return _real_inverse("irfft3d", input_tensor, fft_length, 3)


def _axes(name: str, x: Tensor, fft_length: Any, axes: Any) -> tuple[list[int | None], list[int]]:
    """Lengths and axes: by default all axes, or as many of the last ones as there are lengths."""
    if axes is None:
        count = x.ndim if fft_length is None else len(as_ints(fft_length))
        chosen = _inner(count)
    else:
        chosen = as_ints(axes)
    if not chosen or any(not -x.ndim <= axis < x.ndim for axis in chosen):
        refuse(name, f"axes must be in [{-x.ndim}, {x.ndim}), got {chosen} for shape {x.shape}")
    chosen = [axis % x.ndim for axis in chosen]
    if len(set(chosen)) != len(chosen):
        refuse(name, f"axes must be distinct, got {chosen}")
    return _lengths(name, fft_length, chosen), chosen


def fftnd(
    input: TensorLike, fft_length: Any = None, axes: Any = None, norm: str | None = None, name: str | None = None
) -> Tensor:
    """Computes the discrete Fourier transform along axes."""
    x = _complex("fftnd", input)
    return transform("fftnd", x, *_axes("fftnd", x, fft_length, axes), norm, False)


def ifftnd(
    input: TensorLike, fft_length: Any = None, axes: Any = None, norm: str | None = None, name: str | None = None
) -> Tensor:
    """Computes the inverse discrete Fourier transform along axes."""
    x = _complex("ifftnd", input)
    return transform("ifftnd", x, *_axes("ifftnd", x, fft_length, axes), norm, True)


def rfftnd(
    input: TensorLike, fft_length: Any = None, axes: Any = None, norm: str | None = None, name: str | None = None
) -> Tensor:
    """Computes the Fourier transform of real numbers along axes."""
    x = _real("rfftnd", _operand(input, dtypes.float32))
    return real_transform("rfftnd", x, *_axes("rfftnd", x, fft_length, axes), norm)


def irfftnd(
    input: TensorLike, fft_length: Any = None, axes: Any = None, norm: str | None = None, name: str | None = None
) -> Tensor:
    """Computes the inverse of `rfftnd`."""
    x = _complex("irfftnd", input)
    return inverse_real_transform("irfftnd", x, *_axes("irfftnd", x, fft_length, axes), norm)


def _shifted(x: TensorLike, axes: Any, sign: int) -> Tensor:
    x = as_tensor(x)
    chosen = list(range(x.ndim)) if axes is None else as_ints(axes)
    for axis in chosen:
        if not -x.ndim <= axis < x.ndim:
            refuse("fftshift" if sign > 0 else "ifftshift", f"axes must be in [{-x.ndim}, {x.ndim}), got {axis}")
    return raw.roll(x, [sign * (x.shape[axis] // 2) for axis in chosen], chosen) if chosen else x


def fftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """Moves the element of frequency zero to the middle of each axis."""
    return _shifted(x, axes, 1)


def ifftshift(x: TensorLike, axes: Any = None, name: str | None = None) -> Tensor:
    """Moves the element in the middle of each axis to its beginning: the inverse of `fftshift`."""
    return _shifted(x, axes, -1)


# Cosine transforms.


def _turns(count: int, sign: float, dtype: DTypeLike) -> Tensor:
    """`2 exp(sign pi i k / (2 count))` for k below `count`."""
    angles = np.arange(count) * (0.5 * np.pi / max(count, 1))
    return raw.cast(as_tensor(2.0 * np.exp(sign * 1j * angles)), dtype)


def _weights(first: float, rest: float, count: int, dtype: DTypeLike) -> Tensor:
    values = np.full(count, rest)
    values[:1] = first
    return raw.cast(as_tensor(values), dtype)


def dct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the discrete cosine transform of type 1, 2, 3 or 4 along the last axis."""
    check_choice("dct", "type", type, (1, 2, 3, 4))
    check_choice("dct", "norm", norm, (None, "ortho"))
    check_choice("dct", "axis", axis, (-1,))
    x = _rank("dct", _real("dct", input), 1)
    if n is not None:
        if int(n) < 1:
            refuse("dct", f"n must be >= 1, got {n}", ValueError)
        x = resized(x, -1, int(n))
    count = x.shape[-1]
    if count < (2 if type == 1 else 1):
        refuse("dct", f"the last axis must have >= {2 if type == 1 else 1} elements, got {count}", ValueError)
    turning = dtypes.complex128 if x.dtype == dtypes.float64 else dtypes.complex64
    if type == 1:
        if norm is not None:
            refuse("dct", "norm must be None for type 1, got 'ortho'", ValueError)
        return raw.real(rfft(raw.concat([x, raw.reverse(x[..., 1:-1], [-1])], -1)))
    if type == 2:
        y = raw.real(rfft(x, [2 * count])[..., :count] * _turns(count, -1.0, turning))
        scale = 0.5 / np.sqrt(count)
        return y if norm is None else y * _weights(scale, scale * np.sqrt(2.0), count, x.dtype)
    if type == 3:
        root = np.sqrt(count)
        x = x * float(count) if norm is None else x * _weights(root, root * np.sqrt(0.5), count, x.dtype)
        return irfft(raw.cast(x, turning) * _turns(count, 1.0, turning), [2 * count])[..., :count]
    y = dct(x, 2, 2 * count)[..., 1::2]
    return y if norm is None else y * float(np.sqrt(0.5 / count))


def idct(
    input: TensorLike,
    type: int = 2,
    n: int | None = None,
    axis: int = -1,
    norm: str | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the inverse of `dct`, but for a factor unless `norm` is "ortho"."""
    check_choice("idct", "type", type, (1, 2, 3, 4))
    return dct(input, {1: 1, 2: 3, 3: 2, 4: 4}[type], n, axis, norm)
