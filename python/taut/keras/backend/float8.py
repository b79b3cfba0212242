"""Values of 8-bit floating-point types, which Keras's quantized layers cast to.

There is no tensor of these types: a cast rounds to the nearest value of the type and keeps the type of the tensor.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

import taut as tf

TYPES = frozenset(("float8_e4m3fn", "float8_e5m2"))


def round_to(x: tf.Tensor, dtype: str) -> tf.Tensor:
    """The nearest values of an 8-bit type, ties to even, in the type of `x`; its gradient is that of a cast."""
    info = ml_dtypes.finfo(dtype)
    digits, least = int(info.nmant), int(np.log2(float(info.smallest_normal)))
    # Beyond the largest value, e4m3fn has NaN, which has no sign, and e5m2 infinity.
    beyond = float("inf") if dtype == "float8_e5m2" else float("nan")

    def rounded(x: tf.Tensor) -> tf.Tensor:
        wide = tf.cast(x, "float32")
        exponent = tf.bitwise.right_shift(tf.bitcast(tf.abs(wide), "int32"), 23) - 127
        exponent = tf.maximum(exponent, least) - digits
        step = tf.bitcast(tf.bitwise.left_shift(exponent + 127, 23), "float32")
        made = tf.round(wide / step) * step
        made = tf.where(tf.abs(made) > float(info.max), tf.sign(wide) * beyond, made)
        return tf.cast(tf.where(tf.math.is_finite(wide), made, wide * beyond), x.dtype)

    return tf.grad_pass_through(rounded)(x)
