"""Functions of elements."""

from __future__ import annotations

import math
from typing import Any

from .. import _native, dtypes
from .._common import _refuse
from ._types import result_type

op = _native.Op
Array = _native.Tensor

_PAIR = ["x1", "x2"]

abs = op("abs")  # noqa: A001
acos = op("acos")
acosh = op("acosh")
add = op("add", params=_PAIR)
asin = op("asin")
asinh = op("asinh")
atan = op("atan")
atan2 = op("atan2", params=_PAIR)
atanh = op("atanh")
bitwise_and = op("bitwise_and", params=_PAIR)
bitwise_invert = op("bitwise_not", "bitwise_invert")
bitwise_left_shift = op("left_shift", "bitwise_left_shift", _PAIR)
bitwise_or = op("bitwise_or", params=_PAIR)
bitwise_right_shift = op("right_shift", "bitwise_right_shift", _PAIR)
bitwise_xor = op("bitwise_xor", params=_PAIR)
ceil = op("ceil")
cos = op("cos")
cosh = op("cosh")
divide = op("div", "divide", _PAIR)
equal = op("equal", params=_PAIR)
exp = op("exp")
expm1 = op("expm1")
floor = op("floor")
floor_divide = op("floor_div", "floor_divide", _PAIR)
greater = op("greater", params=_PAIR)
greater_equal = op("greater_equal", params=_PAIR)
isfinite = op("is_finite", "isfinite")
isinf = op("is_inf", "isinf")
isnan = op("is_nan", "isnan")
less = op("less", params=_PAIR)
less_equal = op("less_equal", params=_PAIR)
log = op("log")
log1p = op("log1p")
logaddexp = op("logaddexp", params=_PAIR)
logical_and = op("logical_and", params=_PAIR)
logical_not = op("logical_not")
logical_or = op("logical_or", params=_PAIR)
logical_xor = op("logical_xor", params=_PAIR)
maximum = op("maximum", params=_PAIR)
minimum = op("minimum", params=_PAIR)
multiply = op("mul", "multiply", _PAIR)
negative = op("neg", "negative")
not_equal = op("not_equal", params=_PAIR)
pow = op("pow", params=_PAIR)  # noqa: A001
reciprocal = op("reciprocal")
remainder = op("mod", "remainder", _PAIR)
round = op("round")  # noqa: A001
sign = op("sign")
sin = op("sin")
sinh = op("sinh")
sqrt = op("sqrt")
square = op("square")
subtract = op("sub", "subtract", _PAIR)
tan = op("tan")
tanh = op("tanh")
trunc = op("trunc")

_bitcast = op("bitcast")
_cast = op("cast")
_clip = op("clip_by_value")
_where = op("where")

_BITS = {
    dtypes.float16: dtypes.int16,
    dtypes.bfloat16: dtypes.int16,
    dtypes.float32: dtypes.int32,
    dtypes.float64: dtypes.int64,
}


def positive(x: Any, /) -> Array:
    """The array itself."""
    return +x


def real(x: Any, /) -> Array:
    """The array itself: its numbers are real."""
    return +x


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:  # noqa: A002
    """Each element, or the bound that it exceeds, in the array's own type."""
    low = min if min is None or not isinstance(min, _native.Array) else _cast(min, x.dtype)
    high = max if max is None or not isinstance(max, _native.Array) else _cast(max, x.dtype)
    if low is None and high is None:
        return +x
    if low is None:
        return minimum(x, high)
    return maximum(x, low) if high is None else _clip(x, low, high)


def log2(x: Any, /) -> Array:
    """The logarithm to base 2."""
    return log(x) * (1.0 / math.log(2.0))


def log10(x: Any, /) -> Array:
    """The logarithm to base 10."""
    return log(x) * (1.0 / math.log(10.0))


def _floats(name: str, x: Any) -> Any:
    if not isinstance(x, _native.Array) or x.dtype not in _BITS:
        kind = x.dtype.name if isinstance(x, _native.Array) else type(x).__name__
        _refuse(name, f"floats are needed, not {kind}", TypeError)
    return _BITS[x.dtype]


def signbit(x: Any, /) -> Array:
    """Whether each element's sign is minus: that of -0.0 is."""
    return less(_bitcast(x, _floats("signbit", x)), 0)


def _pair(x1: Any, x2: Any) -> tuple[Array, Array]:
    """Both operands as arrays of the type they meet in."""
    dtype = result_type(x1, x2)
    return _native.as_tensor(x1, dtype), _native.as_tensor(x2, dtype)


def copysign(x1: Any, x2: Any, /) -> Array:
    """The magnitudes of the one with the signs of the other."""
    x1, x2 = _pair(x1, x2)
    return _where(signbit(x2), -abs(x1), abs(x1))


def hypot(x1: Any, x2: Any, /) -> Array:
    """The root of the sum of two squares, without overflow."""
    x1, x2 = _pair(x1, x2)
    _floats("hypot", x1)
    large, small = maximum(abs(x1), abs(x2)), minimum(abs(x1), abs(x2))
    ratio = small / _where(equal(large, 0), 1.0, large)
    made = large * sqrt(1.0 + ratio * ratio)
    return _where(logical_or(isinf(x1), isinf(x2)), math.inf, made)


def nextafter(x1: Any, x2: Any, /) -> Array:
    """The next number that the type has after `x1`, on the way to `x2`."""
    x1, x2 = _pair(x1, x2)
    bits = _floats("nextafter", x1)
    whole = _bitcast(x1, bits)
    # Floats are ordered as their bits are, but that negative ones run the other way.
    away = equal(greater(x2, x1), greater_equal(whole, 0))
    step = _bitcast(whole + _where(away, _cast(1, bits), _cast(-1, bits)), x1.dtype)
    smallest = _bitcast(_cast(1, bits), x1.dtype)
    step = _where(equal(x1, 0), _where(greater(x2, 0), smallest, -smallest), step)
    step = _where(equal(x1, x2), x2, step)
    return _where(logical_or(isnan(x1), isnan(x2)), x1 + x2, step)
