"""Bits, signs, and what whole numbers share."""

from __future__ import annotations

from typing import Any

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, is_float, together, type_of

__all__ = [
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "gcd",
    "lcm",
    "left_shift",
    "nextafter",
    "right_shift",
    "signbit",
]


def bits(name: str, function, of_truths=None) -> Any:
    """The `function` of the bits of pairs of whole numbers; of truth values, `of_truths`."""

    def apply(x, y):
        x, y = together(x, y)
        return of_truths(x, y) if of_truths is not None and type_of(x) == "bool" else function(x, y)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"`{name}` of pairs of whole numbers."
    return apply


bitwise_and = bits("bitwise_and", tf.bitwise.bitwise_and, tf.logical_and)
bitwise_or = bits("bitwise_or", tf.bitwise.bitwise_or, tf.logical_or)
bitwise_xor = bits("bitwise_xor", tf.bitwise.bitwise_xor, tf.not_equal)
bitwise_left_shift = left_shift = bits("bitwise_left_shift", tf.bitwise.left_shift)
bitwise_right_shift = right_shift = bits("bitwise_right_shift", tf.bitwise.right_shift)


def bitwise_invert(x: Any) -> tf.Tensor:
    """Every bit, the other way round."""
    x = convert_to_tensor(x)
    return tf.logical_not(x) if type_of(x) == "bool" else tf.bitwise.invert(x)


def bitwise_not(x: Any) -> tf.Tensor:
    """Every bit, the other way round."""
    return bitwise_invert(x)


def signed(x: tf.Tensor) -> bool:
    """Whether a tensor's type has negative numbers."""
    return not type_of(x).startswith(("uint", "bool"))


def signbit(x: Any) -> tf.Tensor:
    """Whether the sign is negative; that of -0.0 is."""
    x = convert_to_tensor(x)
    if not is_float(x):
        return tf.less(x, tf.zeros_like(x)) if signed(x) else tf.zeros_like(x, dtype="bool")
    if type_of(x) in ("float16", "bfloat16"):
        x = tf.cast(x, "float32")
    whole = "int64" if type_of(x) == "float64" else "int32"
    return tf.less(tf.bitcast(x, whole), tf.zeros(x.shape, whole))


def nextafter(x1: Any, x2: Any) -> tf.Tensor:
    """The number next to `x1` that its type has, towards `x2`."""
    x1, x2 = together(x1, x2, least=float)
    x1, x2 = x1 + tf.zeros_like(x2), x2 + tf.zeros_like(x1)
    whole = {"float64": "int64", "float32": "int32"}.get(type_of(x1), "int16")
    bits = tf.bitcast(x1, whole)
    one = tf.ones_like(bits)
    # Numbers of one sign are ordered as their bits are: one further from zero, or one nearer.
    outwards = tf.equal(tf.less(x1, x2), tf.greater(x1, tf.zeros_like(x1)))
    moved = tf.bitcast(tf.where(outwards, bits + one, bits - one), x1.dtype)
    least = tf.bitcast(one, x1.dtype)
    from_zero = tf.where(tf.greater(x2, tf.zeros_like(x2)), least, -least)
    moved = tf.where(tf.equal(x1, tf.zeros_like(x1)), from_zero, moved)
    moved = tf.where(tf.equal(x1, x2), x2, moved)
    return tf.where(tf.logical_or(tf.math.is_nan(x1), tf.math.is_nan(x2)), x1 + x2, moved)


def gcd(x1: Any, x2: Any) -> tf.Tensor:
    """The greatest common divisor of pairs of whole numbers, by Euclid."""
    x1, x2 = together(x1, x2)
    if is_float(x1):
        raise TypeError(f"`gcd` takes whole numbers. Received: dtype={type_of(x1)}")
    if type_of(x1) == "bool":
        return tf.logical_or(x1, x2)
    if signed(x1):
        x1, x2 = tf.abs(x1), tf.abs(x2)
    x1, x2 = x1 + tf.zeros_like(x2), x2 + tf.zeros_like(x1)

    def rest(a, b):
        done = tf.equal(b, tf.zeros_like(b))
        divisor = tf.where(done, tf.ones_like(b), b)
        return tf.where(done, a, b), tf.where(done, b, tf.math.floormod(a, divisor))

    found, _ = tf.while_loop(lambda a, b: tf.reduce_any(tf.not_equal(b, tf.zeros_like(b))), rest, (x1, x2))
    return found


def lcm(x1: Any, x2: Any) -> tf.Tensor:
    """The least common multiple of pairs of whole numbers; 0 if one of them is."""
    x1, x2 = together(x1, x2)
    if type_of(x1) == "bool":
        return tf.logical_and(x1, x2)
    divisor = gcd(x1, x2)
    if signed(x1):
        x1, x2 = tf.abs(x1), tf.abs(x2)
    divisor = tf.where(tf.equal(divisor, tf.zeros_like(divisor)), tf.ones_like(divisor), divisor)
    return tf.math.floordiv(x1 + tf.zeros_like(divisor), divisor) * x2
