"""Bitwise functions, signs, and number theory."""

from __future__ import annotations

from typing import Any

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, is_float, promote, type_of


def bits(name: str, function, of_truths=None) -> Any:
    """The bitwise `function` of two operands; `of_truths` for booleans."""

    def apply(x, y):
        x, y = promote(x, y)
        return of_truths(x, y) if of_truths is not None and type_of(x) == "bool" else function(x, y)

    apply.__name__ = apply.__qualname__ = name
    apply.__doc__ = f"Computes `{name}` elementwise."
    return apply


bitwise_and = bits("bitwise_and", tf.bitwise.bitwise_and, tf.logical_and)
bitwise_or = bits("bitwise_or", tf.bitwise.bitwise_or, tf.logical_or)
bitwise_xor = bits("bitwise_xor", tf.bitwise.bitwise_xor, tf.not_equal)
bitwise_left_shift = left_shift = bits("bitwise_left_shift", tf.bitwise.left_shift)
bitwise_right_shift = right_shift = bits("bitwise_right_shift", tf.bitwise.right_shift)


def bitwise_invert(x: Any) -> tf.Tensor:
    """Inverts every bit."""
    x = convert_to_tensor(x)
    return tf.logical_not(x) if type_of(x) == "bool" else tf.bitwise.invert(x)


def bitwise_not(x: Any) -> tf.Tensor:
    """Inverts every bit."""
    return bitwise_invert(x)


def signed(x: tf.Tensor) -> bool:
    """Whether a tensor's type has negative numbers."""
    return not type_of(x).startswith(("uint", "bool"))


def signbit(x: Any) -> tf.Tensor:
    """Tests the sign bit; it is set for -0.0."""
    x = convert_to_tensor(x)
    if not is_float(x):
        return tf.less(x, tf.zeros_like(x)) if signed(x) else tf.zeros_like(x, dtype="bool")
    if type_of(x) in ("float16", "bfloat16"):
        x = tf.cast(x, "float32")
    whole = "int64" if type_of(x) == "float64" else "int32"
    return tf.less(tf.bitcast(x, whole), tf.zeros(x.shape, whole))


def nextafter(x1: Any, x2: Any) -> tf.Tensor:
    """Returns the next representable value after `x1` toward `x2`."""
    x1, x2 = promote(x1, x2, least=float)
    return tf.math.nextafter(x1, x2)


def gcd(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the greatest common divisor by Euclid's algorithm."""
    x1, x2 = promote(x1, x2)
    if is_float(x1):
        raise TypeError(f"`gcd` needs an integer type. Received: dtype={type_of(x1)}")
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
    """Computes the least common multiple; 0 if an operand is 0."""
    x1, x2 = promote(x1, x2)
    if type_of(x1) == "bool":
        return tf.logical_and(x1, x2)
    divisor = gcd(x1, x2)
    if signed(x1):
        x1, x2 = tf.abs(x1), tf.abs(x2)
    divisor = tf.where(tf.equal(divisor, tf.zeros_like(divisor)), tf.ones_like(divisor), divisor)
    return tf.math.floordiv(x1 + tf.zeros_like(divisor), divisor) * x2
