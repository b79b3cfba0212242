"""Elementwise functions of one and two operands."""

from __future__ import annotations

import math
from typing import Any

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, floating, is_float, promote, type_of
from taut.keras.backend.ops.numpy.bits import signbit, signed


def on_floats(name: str, function) -> Any:
    """The elementwise `function` for any type: integers become Keras's default float type."""

    def apply(x):
        return function(floating(x))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"Computes `{name}` elementwise, in floating point."
    return apply


def on_promoted(name: str, function, least: Any = None) -> Any:
    """The elementwise `function` of two operands, promoted to one type (and with `least`)."""

    def apply(x1, x2):
        return function(*promote(x1, x2, least=least))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"Computes `{name}` elementwise, with broadcasting."
    return apply


def on_promoted_floats(name: str, function) -> Any:
    """The elementwise `function` of two operands, promoted to one floating-point type."""
    return on_promoted(name, function, least=float)


exp2 = on_floats("exp2", lambda x: tf.exp(x * math.log(2.0)))
log2 = on_floats("log2", lambda x: tf.math.log(x) * (1.0 / math.log(2.0)))
log10 = on_floats("log10", lambda x: tf.math.log(x) * (1.0 / math.log(10.0)))


def add(x1: Any, x2: Any) -> tf.Tensor:
    """Adds elementwise; the logical or of booleans."""
    x1, x2 = promote(x1, x2)
    return tf.logical_or(x1, x2) if type_of(x1) == "bool" else tf.add(x1, x2)


def multiply(x1: Any, x2: Any) -> tf.Tensor:
    """Multiplies elementwise; the logical and of booleans."""
    x1, x2 = promote(x1, x2)
    return tf.logical_and(x1, x2) if type_of(x1) == "bool" else tf.multiply(x1, x2)


def divide(x1: Any, x2: Any) -> tf.Tensor:
    """Divides elementwise, in floating point."""
    return tf.divide(*promote(x1, x2, least=float))


def divide_no_nan(x1: Any, x2: Any) -> tf.Tensor:
    """Divides elementwise, with 0 where the divisor is 0."""
    return tf.math.divide_no_nan(*promote(x1, x2, least=float))


def floor_divide(x1: Any, x2: Any) -> tf.Tensor:
    """Divides elementwise and rounds down."""
    return tf.math.floordiv(*numbers(x1, x2))


def mod(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the elementwise remainder with the sign of the divisor."""
    return tf.math.floormod(*numbers(x1, x2))


def fmod(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the elementwise remainder with the sign of the dividend."""
    x1, x2 = numbers(x1, x2)
    if not signed(x1):
        return tf.math.floormod(x1, x2)
    rest = tf.math.floormod(tf.abs(x1), tf.abs(x2))
    return tf.where(tf.less(x1, 0), -rest, rest)


def numbers(x1: Any, x2: Any) -> list[tf.Tensor]:
    """Promotes operands to one numeric type: booleans become int32."""
    x1, x2 = promote(x1, x2)
    return [tf.cast(x, "int32") for x in (x1, x2)] if type_of(x1) == "bool" else [x1, x2]


def power(x1: Any, x2: Any) -> tf.Tensor:
    """Computes `x1 ** x2` elementwise."""
    return tf.pow(*numbers(x1, x2))


def square(x: Any) -> tf.Tensor:
    """Squares elementwise."""
    x = convert_to_tensor(x)
    return tf.square(tf.cast(x, "int32") if type_of(x) == "bool" else x)


def abs(x: Any) -> tf.Tensor:
    """Computes absolute values."""
    x = convert_to_tensor(x)
    return tf.abs(x) if signed(x) else x


def absolute(x: Any) -> tf.Tensor:
    """Computes absolute values."""
    return abs(x)


def negative(x: Any) -> tf.Tensor:
    """Negates elementwise."""
    return tf.negative(convert_to_tensor(x))


def sign(x: Any) -> tf.Tensor:
    """Computes -1, 0 or 1 by the sign of each element."""
    x = convert_to_tensor(x)
    if type_of(x) == "bool":
        return tf.cast(x, "int32")
    if not signed(x):
        return tf.cast(tf.not_equal(x, tf.zeros_like(x)), x.dtype)
    return tf.sign(x)


def floor(x: Any) -> tf.Tensor:
    """Rounds down."""
    return tf.floor(floating(x))


def trunc(x: Any) -> tf.Tensor:
    """Rounds toward zero."""
    x = convert_to_tensor(x)
    if type_of(x) == "bool" or not is_float(x):
        return x
    return tf.where(tf.less(x, 0), tf.math.ceil(x), tf.floor(x))


def round(x: Any, decimals: int = 0) -> tf.Tensor:
    """Rounds to `decimals` decimal places; ties go to the even neighbour."""
    x = convert_to_tensor(x)
    if type_of(x) == "bool":
        raise ValueError("`round` needs a numeric type. Received: bool")
    if not is_float(x):
        if decimals >= 0:
            return x
        unit = 10**-decimals
        return tf.cast(tf.round(tf.cast(x, "float64") / unit) * unit, x.dtype)
    if decimals == 0:
        return tf.round(x)
    scale = 10.0**decimals
    return tf.round(x * scale) / scale


def reciprocal(x: Any) -> tf.Tensor:
    """Computes `1 / x`."""
    x = floating(x)
    return tf.divide(tf.ones_like(x), x)


def cbrt(x: Any) -> tf.Tensor:
    """Computes real cube roots."""
    x = exact(x)
    return tf.sign(x) * tf.pow(tf.abs(x), 1.0 / 3.0)


def exact(x: Any) -> tf.Tensor:
    """Converts to floating point: float64 for 64-bit integers."""
    x = convert_to_tensor(x)
    return tf.cast(x, "float64") if type_of(x) == "int64" else floating(x)


def deg2rad(x: Any) -> tf.Tensor:
    """Converts degrees to radians."""
    return exact(x) * (math.pi / 180.0)


def rad2deg(x: Any) -> tf.Tensor:
    """Converts radians to degrees."""
    return exact(x) * (180.0 / math.pi)


def sinc(x: Any) -> tf.Tensor:
    """Computes sin(pi x) / (pi x), and 1 at 0."""
    x = floating(x)
    zero = tf.equal(x, 0)
    angle = tf.where(zero, tf.ones_like(x), x) * math.pi
    return tf.where(zero, tf.ones_like(x), tf.sin(angle) / angle)


def hypot(x1: Any, x2: Any) -> tf.Tensor:
    """Computes `sqrt(x1**2 + x2**2)` without overflow."""
    x1, x2 = (tf.abs(x) for x in promote(x1, x2, least=float))
    large, small = tf.maximum(x1, x2), tf.minimum(x1, x2)
    none = tf.equal(large, 0)
    ratio = small / tf.where(none, tf.ones_like(large), large)
    length = large * tf.sqrt(1.0 + ratio * ratio)
    infinite = tf.math.is_inf(large)
    return tf.where(infinite, large, length)


def heaviside(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the Heaviside step function, with `x2` at 0."""
    x1, x2 = promote(x1, x2)
    x1, x2 = exact(x1), exact(x2)
    step = tf.where(tf.less(x1, 0), tf.zeros_like(x1), tf.ones_like(x1))
    step = tf.where(tf.equal(x1, 0), x2, step)
    return tf.where(tf.math.is_nan(x1), x1, step)


def ldexp(x1: Any, x2: Any) -> tf.Tensor:
    """Computes `x1 * 2**x2`."""
    x1 = floating(x1)
    return x1 * tf.pow(tf.constant(2.0, x1.dtype), convert_to_tensor(x2, x1.dtype))


def logaddexp(x1: Any, x2: Any) -> tf.Tensor:
    """Computes log(exp(x1) + exp(x2)) without overflow."""
    x1, x2 = promote(x1, x2, least=float)
    large = tf.maximum(x1, x2)
    gap = tf.abs(x1 - x2)
    # The difference of equal infinities is NaN.
    return tf.where(tf.math.is_nan(gap), x1 + x2, large + tf.math.log1p(tf.exp(-gap)))


def logaddexp2(x1: Any, x2: Any) -> tf.Tensor:
    """Computes log2(2**x1 + 2**x2) without overflow."""
    x1, x2 = promote(x1, x2, least=float)
    return logaddexp(x1 * math.log(2.0), x2 * math.log(2.0)) * (1.0 / math.log(2.0))


def fmax(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the elementwise maximum, ignoring NaN."""
    x1, x2 = promote(x1, x2)
    if not is_float(x1):
        return tf.maximum(x1, x2)
    return tf.where(tf.math.is_nan(x1), x2, tf.where(tf.math.is_nan(x2), x1, tf.maximum(x1, x2)))


def fmin(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the elementwise minimum, ignoring NaN."""
    x1, x2 = promote(x1, x2)
    if not is_float(x1):
        return tf.minimum(x1, x2)
    return tf.where(tf.math.is_nan(x1), x2, tf.where(tf.math.is_nan(x2), x1, tf.minimum(x1, x2)))


def clip(x: Any, x_min: Any, x_max: Any) -> tf.Tensor:
    """Clamps elements to [x_min, x_max]; to `x_min` if it is greater than `x_max`, as with TensorFlow."""
    x = convert_to_tensor(x)
    if type_of(x) == "bool":
        x = tf.cast(x, "int32")
    if x_max is not None:
        x = tf.minimum(x, convert_to_tensor(x_max, x.dtype))
    return x if x_min is None else tf.maximum(x, convert_to_tensor(x_min, x.dtype))


def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    """Selects from `x1` where the condition is true, else from `x2`; with the condition alone, returns indices."""
    condition = convert_to_tensor(condition, "bool")
    if x1 is None and x2 is None:
        places = tf.cast(tf.where(condition), "int32")
        return tuple(tf.unstack(places, num=len(condition.shape), axis=1))
    if x1 is None or x2 is None:
        raise ValueError("`x1` and `x2` either both should be `None` or both should have non-None value.")
    x1, x2 = promote(x1, x2)
    return tf.where(condition, x1, x2)


# Truth values.


def logical_and(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the logical and."""
    return tf.logical_and(convert_to_tensor(x1, "bool"), convert_to_tensor(x2, "bool"))


def logical_or(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the logical or."""
    return tf.logical_or(convert_to_tensor(x1, "bool"), convert_to_tensor(x2, "bool"))


def logical_xor(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the exclusive or."""
    return tf.not_equal(convert_to_tensor(x1, "bool"), convert_to_tensor(x2, "bool"))


def logical_not(x: Any) -> tf.Tensor:
    """Computes the logical negation."""
    return tf.logical_not(convert_to_tensor(x, "bool"))


def isfinite(x: Any) -> tf.Tensor:
    """Tests for elements that are neither infinite nor NaN."""
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        return tf.logical_and(isfinite(tf.math.real(x)), isfinite(tf.math.imag(x)))
    return tf.math.is_finite(x) if is_float(x) else tf.ones(x.shape, "bool")


def isinf(x: Any) -> tf.Tensor:
    """Tests for infinite elements."""
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        return tf.logical_or(isinf(tf.math.real(x)), isinf(tf.math.imag(x)))
    return tf.math.is_inf(x) if is_float(x) else tf.zeros(x.shape, "bool")


def isnan(x: Any) -> tf.Tensor:
    """Tests for NaN."""
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        return tf.logical_or(isnan(tf.math.real(x)), isnan(tf.math.imag(x)))
    return tf.math.is_nan(x) if is_float(x) else tf.zeros(x.shape, "bool")


def isposinf(x: Any) -> tf.Tensor:
    """Tests for positive infinity."""
    x = convert_to_tensor(x)
    return tf.equal(x, math.inf) if is_float(x) else tf.zeros(x.shape, "bool")


def isneginf(x: Any) -> tf.Tensor:
    """Tests for negative infinity."""
    x = convert_to_tensor(x)
    return tf.equal(x, -math.inf) if is_float(x) else tf.zeros(x.shape, "bool")


def isclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> tf.Tensor:
    """Tests whether |x1 - x2| <= atol + rtol * |x2|."""
    x1, x2 = promote(x1, x2, least=float)
    near = tf.less_equal(tf.abs(x1 - x2), atol + rtol * tf.abs(x2))
    # With an infinite `x2` every difference would be small enough.
    near = tf.logical_and(near, isfinite(x2))
    close = tf.logical_or(tf.equal(x1, x2), near)
    return tf.logical_or(close, tf.logical_and(isnan(x1), isnan(x2))) if equal_nan else close


def nan_to_num(x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> tf.Tensor:
    """Replaces NaN and infinities: by default with 0 and the type's limits. For complex numbers, in both parts."""
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        real_part, imaginary = (nan_to_num(part, nan, posinf, neginf) for part in (tf.math.real(x), tf.math.imag(x)))
        return tf.complex(real_part, imaginary)
    if not is_float(x):
        return x
    most = x.dtype.max if posinf is None else posinf
    least = x.dtype.min if neginf is None else neginf
    for place, value in ((isnan(x), nan), (isposinf(x), most), (isneginf(x), least)):
        x = tf.where(place, convert_to_tensor(value, x.dtype), x)
    return x


# Complex numbers.


def real(x: Any) -> tf.Tensor:
    """Returns the real part of each element."""
    return tf.math.real(convert_to_tensor(x))


def conjugate(x: Any) -> tf.Tensor:
    """Returns the complex conjugate of each element."""
    return tf.math.conj(convert_to_tensor(x))


conj = conjugate


def imag(x: Any) -> tf.Tensor:
    """Returns the imaginary part of each element."""
    return tf.math.imag(convert_to_tensor(x))


def isreal(x: Any) -> tf.Tensor:
    """Tests for elements whose imaginary part is zero."""
    return tf.equal(tf.math.imag(convert_to_tensor(x)), 0)


def angle(x: Any) -> tf.Tensor:
    """Returns the angle of each element in the complex plane: 0 or pi of real numbers."""
    x = floating(x)
    if x.dtype.is_complex:
        return tf.math.angle(x)
    return tf.where(signbit(x), tf.constant(math.pi, x.dtype), tf.zeros_like(x))


def i0(x: Any) -> tf.Tensor:
    """The modified Bessel function of the first kind of order 0."""
    return tf.math.bessel_i0(floating(x))
