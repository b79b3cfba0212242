"""Functions of single elements, and of pairs of them."""

from __future__ import annotations

import math
from typing import Any

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, floating, is_float, together, type_of
from taut.keras.backend.ops.numpy.bits import signbit, signed

__all__ = [
    "abs",
    "absolute",
    "add",
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "cbrt",
    "ceil",
    "clip",
    "conj",
    "conjugate",
    "cos",
    "cosh",
    "deg2rad",
    "divide",
    "divide_no_nan",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "greater",
    "greater_equal",
    "heaviside",
    "hypot",
    "imag",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "ldexp",
    "less",
    "less_equal",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mod",
    "multiply",
    "nan_to_num",
    "negative",
    "not_equal",
    "power",
    "rad2deg",
    "real",
    "reciprocal",
    "round",
    "sign",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
    "trunc",
    "where",
]


def on_floats(name: str, function) -> Any:
    """The elementwise `function`, made for whole numbers as well: they become Keras's default float."""

    def apply(x):
        return function(floating(x))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"`{name}` of every element, as floating-point numbers."
    return apply


def in_one_type(name: str, function, least: Any = None) -> Any:
    """The elementwise `function` of two operands, brought into the type in which they (and `least`) meet."""

    def apply(x1, x2):
        return function(*together(x1, x2, least=least))

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"`{name}` of pairs of elements; shapes are broadcast."
    return apply


arccos = on_floats("arccos", tf.acos)
arccosh = on_floats("arccosh", tf.acosh)
arcsin = on_floats("arcsin", tf.asin)
arcsinh = on_floats("arcsinh", tf.asinh)
arctan = on_floats("arctan", tf.atan)
arctanh = on_floats("arctanh", tf.atanh)
ceil = on_floats("ceil", tf.math.ceil)
cos = on_floats("cos", tf.cos)
cosh = on_floats("cosh", tf.cosh)
exp = on_floats("exp", tf.exp)
expm1 = on_floats("expm1", tf.math.expm1)
fabs = on_floats("fabs", tf.abs)
log = on_floats("log", tf.math.log)
log1p = on_floats("log1p", tf.math.log1p)
sin = on_floats("sin", tf.sin)
sinh = on_floats("sinh", tf.sinh)
sqrt = on_floats("sqrt", tf.sqrt)
tan = on_floats("tan", tf.tan)
tanh = on_floats("tanh", tf.tanh)

exp2 = on_floats("exp2", lambda x: tf.exp(x * math.log(2.0)))
log2 = on_floats("log2", lambda x: tf.math.log(x) * (1.0 / math.log(2.0)))
log10 = on_floats("log10", lambda x: tf.math.log(x) * (1.0 / math.log(10.0)))

maximum = in_one_type("maximum", tf.maximum)
minimum = in_one_type("minimum", tf.minimum)
subtract = in_one_type("subtract", tf.subtract)
arctan2 = in_one_type("arctan2", tf.atan2, least=float)
true_divide = in_one_type("true_divide", tf.divide, least=float)
equal = in_one_type("equal", tf.equal)
not_equal = in_one_type("not_equal", tf.not_equal)
greater = in_one_type("greater", tf.greater)
greater_equal = in_one_type("greater_equal", tf.greater_equal)
less = in_one_type("less", tf.less)
less_equal = in_one_type("less_equal", tf.less_equal)


def add(x1: Any, x2: Any) -> tf.Tensor:
    """The sum of pairs of elements; of truth values, whether either holds."""
    x1, x2 = together(x1, x2)
    return tf.logical_or(x1, x2) if type_of(x1) == "bool" else tf.add(x1, x2)


def multiply(x1: Any, x2: Any) -> tf.Tensor:
    """The product of pairs of elements; of truth values, whether both hold."""
    x1, x2 = together(x1, x2)
    return tf.logical_and(x1, x2) if type_of(x1) == "bool" else tf.multiply(x1, x2)


def divide(x1: Any, x2: Any) -> tf.Tensor:
    """The quotient of pairs of elements, as floating-point numbers."""
    return true_divide(x1, x2)


def divide_no_nan(x1: Any, x2: Any) -> tf.Tensor:
    """The quotient of pairs of elements, and 0 where the divisor is 0."""
    return tf.math.divide_no_nan(*together(x1, x2, least=float))


def floor_divide(x1: Any, x2: Any) -> tf.Tensor:
    """The quotient of pairs of elements, rounded down."""
    return tf.math.floordiv(*numbers(x1, x2))


def mod(x1: Any, x2: Any) -> tf.Tensor:
    """The remainder of pairs of elements, with the sign of the divisor."""
    return tf.math.floormod(*numbers(x1, x2))


def fmod(x1: Any, x2: Any) -> tf.Tensor:
    """The remainder of pairs of elements, with the sign of the dividend."""
    x1, x2 = numbers(x1, x2)
    if not signed(x1):
        return tf.math.floormod(x1, x2)
    rest = tf.math.floormod(tf.abs(x1), tf.abs(x2))
    return tf.where(tf.less(x1, 0), -rest, rest)


def numbers(x1: Any, x2: Any) -> list[tf.Tensor]:
    """Operands in one type, which is a number's: truth values count."""
    x1, x2 = together(x1, x2)
    return [tf.cast(x, "int32") for x in (x1, x2)] if type_of(x1) == "bool" else [x1, x2]


def power(x1: Any, x2: Any) -> tf.Tensor:
    """The first elements, to the power of the second."""
    return tf.pow(*numbers(x1, x2))


def square(x: Any) -> tf.Tensor:
    """Every element times itself."""
    x = convert_to_tensor(x)
    return tf.square(tf.cast(x, "int32") if type_of(x) == "bool" else x)


def abs(x: Any) -> tf.Tensor:
    """The elements without their signs."""
    x = convert_to_tensor(x)
    return tf.abs(x) if signed(x) else x


def absolute(x: Any) -> tf.Tensor:
    """The elements without their signs."""
    return abs(x)


def negative(x: Any) -> tf.Tensor:
    """The elements with the other sign."""
    return tf.negative(convert_to_tensor(x))


def sign(x: Any) -> tf.Tensor:
    """-1, 0 or 1, by the sign of every element."""
    x = convert_to_tensor(x)
    if type_of(x) == "bool":
        return tf.cast(x, "int32")
    if not signed(x):
        return tf.cast(tf.not_equal(x, tf.zeros_like(x)), x.dtype)
    return tf.sign(x)


def floor(x: Any) -> tf.Tensor:
    """The largest whole numbers that are not larger."""
    return tf.floor(floating(x))


def trunc(x: Any) -> tf.Tensor:
    """The elements without what is behind the point."""
    x = convert_to_tensor(x)
    if type_of(x) == "bool" or not is_float(x):
        return x
    return tf.where(tf.less(x, 0), tf.math.ceil(x), tf.floor(x))


def round(x: Any, decimals: int = 0) -> tf.Tensor:
    """The elements rounded to `decimals` digits behind the point; halves go to the even neighbour."""
    x = convert_to_tensor(x)
    if type_of(x) == "bool":
        raise ValueError("`round` takes numbers. Received: a tensor of truth values")
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
    """One divided by every element."""
    x = floating(x)
    return tf.divide(tf.ones_like(x), x)


def cbrt(x: Any) -> tf.Tensor:
    """The real cube roots."""
    x = exact(x)
    return tf.sign(x) * tf.pow(tf.abs(x), 1.0 / 3.0)


def exact(x: Any) -> tf.Tensor:
    """`x` as floating-point numbers, 64-bit whole numbers as 64-bit ones."""
    x = convert_to_tensor(x)
    return tf.cast(x, "float64") if type_of(x) == "int64" else floating(x)


def deg2rad(x: Any) -> tf.Tensor:
    """Degrees as radians."""
    return exact(x) * (math.pi / 180.0)


def rad2deg(x: Any) -> tf.Tensor:
    """Radians as degrees."""
    return exact(x) * (180.0 / math.pi)


def sinc(x: Any) -> tf.Tensor:
    """sin(pi x) / (pi x), and 1 at 0."""
    x = floating(x)
    zero = tf.equal(x, 0)
    angle = tf.where(zero, tf.ones_like(x), x) * math.pi
    return tf.where(zero, tf.ones_like(x), tf.sin(angle) / angle)


def hypot(x1: Any, x2: Any) -> tf.Tensor:
    """The long side of the right triangles with the given short ones, without overflow on the way."""
    x1, x2 = (tf.abs(x) for x in together(x1, x2, least=float))
    large, small = tf.maximum(x1, x2), tf.minimum(x1, x2)
    none = tf.equal(large, 0)
    ratio = small / tf.where(none, tf.ones_like(large), large)
    length = large * tf.sqrt(1.0 + ratio * ratio)
    infinite = tf.math.is_inf(large)
    return tf.where(infinite, large, length)


def heaviside(x1: Any, x2: Any) -> tf.Tensor:
    """0 for negative elements, 1 for positive ones, and those of `x2` at 0."""
    x1, x2 = together(x1, x2)
    x1, x2 = exact(x1), exact(x2)
    step = tf.where(tf.less(x1, 0), tf.zeros_like(x1), tf.ones_like(x1))
    step = tf.where(tf.equal(x1, 0), x2, step)
    return tf.where(tf.math.is_nan(x1), x1, step)


def ldexp(x1: Any, x2: Any) -> tf.Tensor:
    """The first elements times two to the power of the second."""
    x1 = floating(x1)
    return x1 * tf.pow(tf.constant(2.0, x1.dtype), convert_to_tensor(x2, x1.dtype))


def logaddexp(x1: Any, x2: Any) -> tf.Tensor:
    """log(exp(x1) + exp(x2)), without overflow on the way."""
    x1, x2 = together(x1, x2, least=float)
    large = tf.maximum(x1, x2)
    gap = tf.abs(x1 - x2)
    # Equal infinities have no gap: their difference is not a number.
    return tf.where(tf.math.is_nan(gap), x1 + x2, large + tf.math.log1p(tf.exp(-gap)))


def logaddexp2(x1: Any, x2: Any) -> tf.Tensor:
    """log2(2**x1 + 2**x2), without overflow on the way."""
    x1, x2 = together(x1, x2, least=float)
    return logaddexp(x1 * math.log(2.0), x2 * math.log(2.0)) * (1.0 / math.log(2.0))


def fmax(x1: Any, x2: Any) -> tf.Tensor:
    """The larger of two elements; a number rather than NaN."""
    x1, x2 = together(x1, x2)
    if not is_float(x1):
        return maximum(x1, x2)
    return tf.where(tf.math.is_nan(x1), x2, tf.where(tf.math.is_nan(x2), x1, tf.maximum(x1, x2)))


def fmin(x1: Any, x2: Any) -> tf.Tensor:
    """The smaller of two elements; a number rather than NaN."""
    x1, x2 = together(x1, x2)
    if not is_float(x1):
        return minimum(x1, x2)
    return tf.where(tf.math.is_nan(x1), x2, tf.where(tf.math.is_nan(x2), x1, tf.minimum(x1, x2)))


def clip(x: Any, x_min: Any, x_max: Any) -> tf.Tensor:
    """The elements, moved into the range from `x_min` to `x_max`."""
    x = convert_to_tensor(x)
    if type_of(x) == "bool":
        x = tf.cast(x, "int32")
    if x_min is not None:
        x = tf.maximum(x, convert_to_tensor(x_min, x.dtype))
    return x if x_max is None else tf.minimum(x, convert_to_tensor(x_max, x.dtype))


def where(condition: Any, x1: Any = None, x2: Any = None) -> Any:
    """`x1` where the condition holds, `x2` elsewhere; with the condition alone, the places where it holds."""
    condition = convert_to_tensor(condition, "bool")
    if x1 is None and x2 is None:
        places = tf.cast(tf.where(condition), "int32")
        return tuple(tf.unstack(places, num=len(condition.shape), axis=1))
    if x1 is None or x2 is None:
        raise ValueError("`x1` and `x2` either both should be `None` or both should have non-None value.")
    return tf.where(condition, *together(x1, x2))


# Truth values.


def logical_and(x1: Any, x2: Any) -> tf.Tensor:
    """Whether both hold."""
    return tf.logical_and(convert_to_tensor(x1, "bool"), convert_to_tensor(x2, "bool"))


def logical_or(x1: Any, x2: Any) -> tf.Tensor:
    """Whether at least one holds."""
    return tf.logical_or(convert_to_tensor(x1, "bool"), convert_to_tensor(x2, "bool"))


def logical_xor(x1: Any, x2: Any) -> tf.Tensor:
    """Whether exactly one holds."""
    return tf.not_equal(convert_to_tensor(x1, "bool"), convert_to_tensor(x2, "bool"))


def logical_not(x: Any) -> tf.Tensor:
    """Whether it does not hold."""
    return tf.logical_not(convert_to_tensor(x, "bool"))


def isfinite(x: Any) -> tf.Tensor:
    """Whether elements are neither infinite nor NaN."""
    x = convert_to_tensor(x)
    return tf.math.is_finite(x) if is_float(x) else tf.ones(x.shape, "bool")


def isinf(x: Any) -> tf.Tensor:
    """Whether elements are infinite."""
    x = convert_to_tensor(x)
    return tf.math.is_inf(x) if is_float(x) else tf.zeros(x.shape, "bool")


def isnan(x: Any) -> tf.Tensor:
    """Whether elements are NaN."""
    x = convert_to_tensor(x)
    return tf.math.is_nan(x) if is_float(x) else tf.zeros(x.shape, "bool")


def isposinf(x: Any) -> tf.Tensor:
    """Whether elements are infinite and positive."""
    x = convert_to_tensor(x)
    return tf.equal(x, math.inf) if is_float(x) else tf.zeros(x.shape, "bool")


def isneginf(x: Any) -> tf.Tensor:
    """Whether elements are infinite and negative."""
    x = convert_to_tensor(x)
    return tf.equal(x, -math.inf) if is_float(x) else tf.zeros(x.shape, "bool")


def isclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> tf.Tensor:
    """Whether pairs of elements differ by no more than `atol` + `rtol` times the second."""
    x1, x2 = together(x1, x2, least=float)
    near = tf.less_equal(tf.abs(x1 - x2), atol + rtol * tf.abs(x2))
    # An infinite second element makes every difference small enough.
    near = tf.logical_and(near, tf.math.is_finite(x2))
    close = tf.logical_or(tf.equal(x1, x2), near)
    return (
        tf.logical_or(close, tf.logical_and(tf.math.is_nan(x1), tf.math.is_nan(x2))) if equal_nan else close
    )


def nan_to_num(
    x: Any, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> tf.Tensor:
    """The elements, with numbers in place of NaN and infinities: by default 0, and the type's largest
    ones."""
    x = convert_to_tensor(x)
    if not is_float(x):
        return x
    most = x.dtype.max if posinf is None else posinf
    least = x.dtype.min if neginf is None else neginf
    for place, value in ((isnan(x), nan), (isposinf(x), most), (isneginf(x), least)):
        x = tf.where(place, convert_to_tensor(value, x.dtype), x)
    return x


# Real numbers, where NumPy has complex ones as well.


def real(x: Any) -> tf.Tensor:
    """The elements: all are real."""
    return convert_to_tensor(x)


def conjugate(x: Any) -> tf.Tensor:
    """The elements: all are real."""
    return convert_to_tensor(x)


def conj(x: Any) -> tf.Tensor:
    """The elements: all are real."""
    return convert_to_tensor(x)


def imag(x: Any) -> tf.Tensor:
    """Zeros: all elements are real."""
    return tf.zeros_like(convert_to_tensor(x))


def isreal(x: Any) -> tf.Tensor:
    """True: all elements are real."""
    return tf.ones(convert_to_tensor(x).shape, "bool")


def angle(x: Any) -> tf.Tensor:
    """0 for positive elements and pi for negative ones."""
    x = floating(x)
    return tf.where(signbit(x), tf.constant(math.pi, x.dtype), tf.zeros_like(x))
