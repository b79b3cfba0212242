"""Fourier transforms of the array API standard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import refuse
from .._ops import fourier
from ._types import check_device

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .._typing import DTypeLike

Array = _native.Tensor


def _complex(name: str, x: Any) -> Array:
    if not (x.dtype.is_complex or x.dtype in (dtypes.float32, dtypes.float64)):
        refuse(name, f"expected floating-point or complex numbers, got {x.dtype.name}", TypeError)
    return x if x.dtype.is_complex else raw.cast(x, _pair(x.dtype))


def _pair(dtype: _native.DType) -> _native.DType:
    return dtypes.complex128 if dtype == dtypes.float64 else dtypes.complex64


def _real(name: str, x: Any) -> Array:
    if x.dtype not in (dtypes.float32, dtypes.float64):
        refuse(name, f"expected floating-point numbers, got {x.dtype.name}", TypeError)
    return x


def _axes(x: Array, s: Sequence[int] | None, axes: Sequence[int] | None) -> tuple[list[int | None], list[int]]:
    chosen = list(range(-(len(s) if s is not None else x.ndim), 0)) if axes is None else list(axes)
    return [None] * len(chosen) if s is None else [int(size) for size in s], chosen


def fft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Computes the discrete Fourier transform along an axis."""
    return fourier.transform("fft", _complex("fft", x), [n], [axis], norm, False)


def ifft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Computes the inverse discrete Fourier transform along an axis."""
    return fourier.transform("ifft", _complex("ifft", x), [n], [axis], norm, True)


def fftn(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Computes the discrete Fourier transform along axes."""
    x = _complex("fftn", x)
    return fourier.transform("fftn", x, *_axes(x, s, axes), norm, False)


def ifftn(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Computes the inverse discrete Fourier transform along axes."""
    x = _complex("ifftn", x)
    return fourier.transform("ifftn", x, *_axes(x, s, axes), norm, True)


def rfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Computes the Fourier transform of real numbers along an axis."""
    return fourier.real_transform("rfft", _real("rfft", x), [n], [axis], norm)


def irfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Computes the inverse of `rfft`."""
    return fourier.inverse_real_transform("irfft", _complex("irfft", x), [n], [axis], norm)


def rfftn(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Computes the Fourier transform of real numbers along axes."""
    x = _real("rfftn", x)
    return fourier.real_transform("rfftn", x, *_axes(x, s, axes), norm)


def irfftn(
    x: Any, /, *, s: Sequence[int] | None = None, axes: Sequence[int] | None = None, norm: str = "backward"
) -> Array:
    """Computes the inverse of `rfftn`."""
    x = _complex("irfftn", x)
    return fourier.inverse_real_transform("irfftn", x, *_axes(x, s, axes), norm)


_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def hfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Computes the Fourier transform of a signal with Hermitian symmetry, which is real."""
    return irfft(raw.conj(_complex("hfft", x)), n=n, axis=axis, norm=_OPPOSITE.get(norm, norm))


def ihfft(x: Any, /, *, n: int | None = None, axis: int = -1, norm: str = "backward") -> Array:
    """Computes the inverse of `hfft`."""
    return raw.conj(rfft(x, n=n, axis=axis, norm=_OPPOSITE.get(norm, norm)))


def _frequencies(name: str, values: Any, dtype: DTypeLike, device: Any) -> Array:
    check_device(name, device)
    return _native.as_tensor(values, dtypes.float32 if dtype is None else dtypes.as_dtype(dtype))


def fftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike = None, device: Any = None) -> Array:
    """Returns the frequencies of the elements of `fft`."""
    return _frequencies("fftfreq", np.fft.fftfreq(n, d), dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: DTypeLike = None, device: Any = None) -> Array:
    """Returns the frequencies of the elements of `rfft`."""
    return _frequencies("rfftfreq", np.fft.rfftfreq(n, d), dtype, device)


def fftshift(x: Any, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Moves the element of frequency zero to the middle."""
    return fourier.fftshift(x, axes)


def ifftshift(x: Any, /, *, axes: int | Sequence[int] | None = None) -> Array:
    """Inverts `fftshift`."""
    return fourier.ifftshift(x, axes)
