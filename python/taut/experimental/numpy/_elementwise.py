"""Elementwise functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ... import _native, _raw_ops as raw, dtypes
from ..._native import Tensor
from ._base import binary, cast, floats, numpy_type, promoted, tensor, unary

absolute = unary("absolute", raw.abs, "The absolute value.", False)
abs = unary("abs", raw.abs, "The absolute value.", False)
fabs = unary("fabs", raw.abs, "The absolute value, as floats.")
negative = unary("negative", raw.neg, "The negative value.", False)
positive = unary("positive", raw.identity, "The value.", False)
square = unary("square", raw.square, "The square.", False)
sign = unary("sign", raw.sign, "The sign.", False)
conj = unary("conj", raw.conj, "The complex conjugate.", False)
conjugate = unary("conjugate", raw.conj, "The complex conjugate.", False)
real = unary("real", raw.real, "The real part.", False)
imag = unary("imag", raw.imag, "The imaginary part.", False)
bitwise_not = unary("bitwise_not", raw.bitwise_not, "The bits, inverted.", False)
logical_not = unary("logical_not", lambda x: raw.logical_not(_true(x)), "Whether it is zero or false.", False)
arccos = unary("arccos", raw.acos, "The inverse cosine.")
arccosh = unary("arccosh", raw.acosh, "The inverse hyperbolic cosine.")
arcsin = unary("arcsin", raw.asin, "The inverse sine.")
arcsinh = unary("arcsinh", raw.asinh, "The inverse hyperbolic sine.")
arctan = unary("arctan", raw.atan, "The inverse tangent.")
arctanh = unary("arctanh", raw.atanh, "The inverse hyperbolic tangent.")
ceil = unary("ceil", raw.ceil, "The next integer above.")
cos = unary("cos", raw.cos, "The cosine.")
cosh = unary("cosh", raw.cosh, "The hyperbolic cosine.")
exp = unary("exp", raw.exp, "The exponential.")
expm1 = unary("expm1", raw.expm1, "The exponential minus one.")
floor = unary("floor", raw.floor, "The next integer below.")
log = unary("log", raw.log, "The natural logarithm.")
log1p = unary("log1p", raw.log1p, "The natural logarithm of one plus the value.")
reciprocal = unary("reciprocal", raw.reciprocal, "One over the value.")
sin = unary("sin", raw.sin, "The sine.")
sinh = unary("sinh", raw.sinh, "The hyperbolic sine.")
sqrt = unary("sqrt", raw.sqrt, "The square root.")
tan = unary("tan", raw.tan, "The tangent.")
tanh = unary("tanh", raw.tanh, "The hyperbolic tangent.")
isfinite = unary("isfinite", raw.is_finite, "Whether it is finite.")
isinf = unary("isinf", raw.is_inf, "Whether it is infinite.")
isnan = unary("isnan", raw.is_nan, "Whether it is NaN.")
exp2 = unary("exp2", lambda x: raw.exp(x * math.log(2)), "Two to the power of the value.")
log2 = unary("log2", lambda x: raw.log(x) / math.log(2), "The logarithm to base 2.")
log10 = unary("log10", lambda x: raw.log(x) / math.log(10), "The logarithm to base 10.")
cbrt = unary("cbrt", lambda x: raw.sign(x) * raw.pow(raw.abs(x), 1 / 3), "The cube root.")
deg2rad = unary("deg2rad", lambda x: x * (math.pi / 180), "Degrees as radians.")
rad2deg = unary("rad2deg", lambda x: x * (180 / math.pi), "Radians as degrees.")
fix = unary("fix", raw.trunc, "The value without its fraction.")
isposinf = unary("isposinf", lambda x: raw.equal(x, math.inf), "Whether it is plus infinity.")
isneginf = unary("isneginf", lambda x: raw.equal(x, -math.inf), "Whether it is minus infinity.")
isreal = unary("isreal", lambda x: raw.equal(raw.imag(x), 0), "Whether the imaginary part is zero.", False)
iscomplex = unary(
    "iscomplex", lambda x: raw.not_equal(raw.imag(x), 0), "Whether the imaginary part is not zero.", False
)
signbit = unary("signbit", lambda x: raw.less(x, 0), "Whether the sign is negative.", False)

add = binary("add", lambda a, b: raw.logical_or(a, b) if a.dtype.name == "bool" else raw.add(a, b), "The sum.")
subtract = binary("subtract", raw.sub, "The difference.")
multiply = binary(
    "multiply", lambda a, b: raw.logical_and(a, b) if a.dtype.name == "bool" else raw.mul(a, b), "The product."
)
divide = binary("divide", raw.div, "The quotient.", True)
true_divide = binary("true_divide", raw.div, "The quotient.", True)
floor_divide = binary("floor_divide", raw.floor_div, "The quotient, rounded down.")
mod = binary("mod", raw.mod, "The remainder, with the sign of the divisor.")
remainder = binary("remainder", raw.mod, "The remainder, with the sign of the divisor.")
maximum = binary("maximum", raw.maximum, "The larger value.")
minimum = binary("minimum", raw.minimum, "The smaller value.")
power = binary("power", raw.pow, "The power.")
arctan2 = binary("arctan2", raw.atan2, "The angle of a point.", True)
logaddexp = binary("logaddexp", raw.logaddexp, "The logarithm of the sum of exponentials.", True)
bitwise_and = binary("bitwise_and", raw.bitwise_and, "Bits that both have.")
bitwise_or = binary("bitwise_or", raw.bitwise_or, "Bits that one of them has.")
bitwise_xor = binary("bitwise_xor", raw.bitwise_xor, "Bits that exactly one has.")
equal = binary("equal", raw.equal, "Whether they are equal.")
not_equal = binary("not_equal", raw.not_equal, "Whether they differ.")
less = binary("less", raw.less, "Whether the first is less.")
less_equal = binary("less_equal", raw.less_equal, "Whether the first is less, or they are equal.")
greater = binary("greater", raw.greater, "Whether the first is greater.")
greater_equal = binary("greater_equal", raw.greater_equal, "Whether the first is greater, or they are equal.")
hypot = binary("hypot", lambda a, b: raw.sqrt(a * a + b * b), "The length of a vector.", True)
logaddexp2 = binary(
    "logaddexp2",
    lambda a, b: raw.logaddexp(a * math.log(2), b * math.log(2)) / math.log(2),
    "The logarithm to base 2 of the sum of powers of 2.",
    True,
)


def _true(x: Tensor) -> Tensor:
    return x if x.dtype.name == "bool" else raw.not_equal(x, 0)


logical_and = binary("logical_and", lambda a, b: raw.logical_and(_true(a), _true(b)), "Whether both are true.")
logical_or = binary("logical_or", lambda a, b: raw.logical_or(_true(a), _true(b)), "Whether one of them is true.")
logical_xor = binary("logical_xor", lambda a, b: raw.logical_xor(_true(a), _true(b)), "Whether exactly one is true.")


def float_power(x1: Any, x2: Any) -> Tensor:
    """The power, in float64."""
    return raw.pow(cast(tensor(x1), np.float64), cast(tensor(x2), np.float64))


def heaviside(x1: Any, x2: Any) -> Tensor:
    """0 below zero, 1 above, and `x2` at zero."""
    one, other = (floats(value) for value in promoted(x1, x2))
    step = raw.cast(one > 0, one.dtype)
    return raw.where(raw.equal(one, 0), other, step)


def nextafter(x1: Any, x2: Any) -> Tensor:
    """The next number in the direction of `x2`."""
    from ..._ops.special import nextafter as next_number

    one, other = promoted(x1, x2)
    return next_number(floats(one), floats(other))


def divmod(x1: Any, x2: Any) -> tuple[Tensor, Tensor]:
    """Quotient, rounded down, and remainder."""
    return floor_divide(x1, x2), mod(x1, x2)


def angle(z: Any, deg: bool = False) -> Tensor:
    """The angle of a number in the complex plane, in radians or degrees."""
    angles = raw.angle(floats(z))
    return angles * (180.0 / math.pi) if deg else angles


def clip(a: Any, a_min: Any, a_max: Any) -> Tensor:
    """Values limited to an interval."""
    x = tensor(a)
    if a_min is not None:
        x = maximum(x, a_min)
    return x if a_max is None else minimum(x, a_max)


def round(a: Any, decimals: int = 0) -> Tensor:
    """Values rounded to a number of decimals."""
    x = tensor(a)
    if not x.dtype.is_floating:
        return x
    scale = 10.0**decimals
    return raw.round(x * scale) / scale if decimals else raw.round(x)


around = round


def sinc(x: Any) -> Tensor:
    """sin(pi x) / (pi x), and 1 at zero."""
    value = floats(x)
    safe = raw.where(raw.equal(value, 0), raw.full([], 1.0, value.dtype), value) * math.pi
    return raw.where(raw.equal(value, 0), raw.full([], 1.0, value.dtype), raw.sin(safe) / safe)


def _integers(name: str, x1: Any, x2: Any) -> list[np.ndarray]:
    tensors = promoted(x1, x2)
    if not tensors[0].dtype.is_integer:
        raise TypeError(f"{name}: expected integers, got {tensors[0].dtype.name}")
    return [one.numpy() for one in tensors]


def gcd(x1: Any, x2: Any) -> Tensor:
    """The greatest common divisor of integers, whose values must be known."""
    return tensor(np.gcd(*_integers("gcd", x1, x2)))


def lcm(x1: Any, x2: Any) -> Tensor:
    """The least common multiple of integers, whose values must be known."""
    return tensor(np.lcm(*_integers("lcm", x1, x2)))


def isclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether values are equal up to a tolerance."""
    one, other = (floats(value) for value in promoted(a, b))
    near = raw.less_equal(raw.abs(one - other), atol + rtol * raw.abs(other))
    near = raw.logical_or(raw.equal(one, other), raw.logical_and(near, raw.is_finite(other)))
    if equal_nan:
        near = raw.logical_or(near, raw.logical_and(raw.is_nan(one), raw.is_nan(other)))
    return near


def allclose(a: Any, b: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether all values are equal up to a tolerance."""
    return raw.all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1: Any, a2: Any) -> Tensor:
    """Whether two tensors have the same shape and values."""
    one, other = promoted(a1, a2)
    return raw.all(raw.equal(one, other)) if one.shape == other.shape else tensor(False)


def polyval(p: Any, x: Any) -> Tensor:
    """The value of a polynomial with these coefficients, the highest first."""
    coefficients, value = promoted(p, x)
    total = raw.zeros_like(value)
    for i in range(coefficients.shape[0]):
        total = total * value + coefficients[i]
    return total


def iscomplexobj(x: Any) -> bool:
    """Whether the type is complex."""
    return tensor(x).dtype.is_complex


def isrealobj(x: Any) -> bool:
    """Whether the type is not complex."""
    return not tensor(x).dtype.is_complex


def isscalar(num: Any) -> bool:
    """Whether it is a number or a scalar tensor."""
    return tensor(num).ndim == 0 if not isinstance(num, (list, tuple)) else False


def result_type(*arrays_and_dtypes: Any) -> _native.DType:
    """The type that values are promoted to."""
    parts = [numpy_type(part) if isinstance(part, Tensor) else part for part in arrays_and_dtypes]
    return dtypes.as_dtype(np.result_type(*parts))


def promote_types(type1: Any, type2: Any) -> np.dtype:
    """The type that two types are promoted to."""
    return np.promote_types(type1, type2)
