"""Elementwise functions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from .. import _native, _raw_ops as raw, dtypes
from .._common import refuse
from ._types import result_type

if TYPE_CHECKING:
    from .._typing import TensorLike

Array = _native.Tensor


_BITS = {
    dtypes.float16: dtypes.int16,
    dtypes.bfloat16: dtypes.int16,
    dtypes.float32: dtypes.int32,
    dtypes.float64: dtypes.int64,
}


def positive(x: Any, /) -> Array:
    """Returns the array."""
    return +x


def real(x: Any, /) -> Array:
    """Returns the real part of each element."""
    return raw.real(x)


def imag(x: Any, /) -> Array:
    """Returns the imaginary part of each element of a complex array."""
    if not x.dtype.is_complex:
        refuse("imag", f"expected complex numbers, got {x.dtype.name}", TypeError)
    return raw.imag(x)


def conj(x: Any, /) -> Array:
    """Returns the complex conjugate of each element."""
    return raw.conj(x)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:
    """Clamps elements to bounds, in the array's type."""
    low: Any = min if min is None or not isinstance(min, _native.Array) else raw.cast(min, x.dtype)
    high: Any = max if max is None or not isinstance(max, _native.Array) else raw.cast(max, x.dtype)
    if low is None and high is None:
        return +x
    if low is None:
        return raw.minimum(x, high)
    return raw.maximum(x, low) if high is None else raw.clip_by_value(x, low, high)


def round(x: Any, /) -> Array:
    """Rounds to the nearest integer, ties to even; of complex numbers, both parts."""
    if _native.as_tensor(x).dtype.is_complex:
        return raw.complex(raw.round(raw.real(x)), raw.round(raw.imag(x)))
    return raw.round(x)


def log2(x: TensorLike, /) -> Array:
    """Computes the logarithm to base 2."""
    return raw.log(x) * (1.0 / math.log(2.0))


def log10(x: TensorLike, /) -> Array:
    """Computes the logarithm to base 10."""
    return raw.log(x) * (1.0 / math.log(10.0))


def _floats(name: str, x: TensorLike) -> Any:
    if not isinstance(x, _native.Array) or x.dtype not in _BITS:
        kind = x.dtype.name if isinstance(x, _native.Array) else type(x).__name__
        refuse(name, f"expected a floating-point array, got {kind}", TypeError)
    return _BITS[x.dtype]


def signbit(x: TensorLike, /) -> Array:
    """Tests the sign bit of each element; it is set for -0.0."""
    return raw.less(raw.bitcast(x, _floats("signbit", x)), 0)


def _pair(x1: TensorLike, x2: TensorLike) -> tuple[Array, Array]:
    """Both operands as arrays of their promoted type."""
    dtype = result_type(x1, x2)
    return _native.as_tensor(x1, dtype), _native.as_tensor(x2, dtype)


def copysign(x1: TensorLike, x2: TensorLike, /) -> Array:
    """Combines the magnitudes of `x1` with the signs of `x2`."""
    x1, x2 = _pair(x1, x2)
    return raw.where(signbit(x2), -raw.abs(x1), raw.abs(x1))


def remainder(x1: TensorLike, x2: TensorLike, /) -> Array:
    """Computes the remainder of the quotient rounded down. It has the sign of `x2`, also if it is zero."""
    x1, x2 = _pair(x1, x2)
    rest = raw.mod(x1, x2)
    return raw.where(raw.equal(rest, 0), copysign(rest, x2), rest) if rest.dtype.is_floating else rest


def hypot(x1: TensorLike, x2: TensorLike, /) -> Array:
    """Computes `sqrt(x1**2 + x2**2)` without overflow."""
    x1, x2 = _pair(x1, x2)
    _floats("hypot", x1)
    large, small = raw.maximum(raw.abs(x1), raw.abs(x2)), raw.minimum(raw.abs(x1), raw.abs(x2))
    ratio = small / raw.where(raw.equal(large, 0), 1.0, large)
    made = large * raw.sqrt(1.0 + ratio * ratio)
    return raw.where(raw.logical_or(raw.is_inf(x1), raw.is_inf(x2)), math.inf, made)


def nextafter(x1: TensorLike, x2: TensorLike, /) -> Array:
    """Returns the next representable value after `x1` toward `x2`."""
    x1, x2 = _pair(x1, x2)
    bits = _floats("nextafter", x1)
    least = raw.cast(bits.min, bits)

    def ordered(x: Array) -> Array:
        """Integers in the order of the floats; both zeros are 0."""
        whole = raw.bitcast(x, bits)
        return raw.where(raw.less(whole, 0), least - whole, whole)

    # Comparisons of floats would take denormal numbers for zeros.
    one, other = ordered(x1), ordered(x2)
    moved = one + raw.cast(raw.greater(other, one), bits) - raw.cast(raw.less(other, one), bits)
    negative = raw.logical_or(raw.less(one, 0), raw.less(moved, 0))
    step = raw.bitcast(raw.where(negative, least - moved, moved), x1.dtype)
    step = raw.where(raw.equal(one, other), x2, step)
    return raw.where(raw.logical_or(raw.is_nan(x1), raw.is_nan(x2)), x1 + x2, step)
