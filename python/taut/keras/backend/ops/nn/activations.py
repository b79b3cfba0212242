"""Activation functions."""

from __future__ import annotations

from typing import Any

import taut as tf
from taut.keras.backend.convert import broadcast_shape, convert_to_tensor, floating, shape_of
from taut.keras.backend.logits import with_logits


def relu(x: Any) -> tf.Tensor:
    """Computes max(x, 0)."""
    return tf.nn.relu(convert_to_tensor(x))


def relu6(x: Any) -> tf.Tensor:
    """Computes min(max(x, 0), 6)."""
    return tf.nn.relu6(convert_to_tensor(x))


def leaky_relu(x: Any, negative_slope: float = 0.2) -> tf.Tensor:
    """Computes x, and `negative_slope * x` where x is negative."""
    return tf.nn.leaky_relu(floating(x), alpha=negative_slope)


def sigmoid(x: Any) -> tf.Tensor:
    """Computes 1 / (1 + exp(-x))."""
    x = floating(x)
    return with_logits(tf.math.sigmoid(x), x)


def log_sigmoid(x: Any) -> tf.Tensor:
    """Computes the logarithm of the sigmoid without underflow."""
    return tf.math.log_sigmoid(floating(x))


def hard_sigmoid(x: Any) -> tf.Tensor:
    """Computes x / 6 + 1/2, clamped to [0, 1]."""
    return tf.nn.relu6(floating(x) + 3.0) * (1.0 / 6.0)


def sparse_sigmoid(x: Any) -> tf.Tensor:
    """Computes (x + 1) / 2, clamped to [0, 1]."""
    return tf.clip_by_value(floating(x) * 0.5 + 0.5, 0.0, 1.0)


def tanh(x: Any) -> tf.Tensor:
    """Computes the hyperbolic tangent."""
    return tf.tanh(floating(x))


def hard_tanh(x: Any) -> tf.Tensor:
    """Clamps x to [-1, 1]."""
    return tf.clip_by_value(floating(x), -1.0, 1.0)


def tanh_shrink(x: Any) -> tf.Tensor:
    """Computes x - tanh(x)."""
    x = floating(x)
    return x - tf.tanh(x)


def softplus(x: Any) -> tf.Tensor:
    """Computes log(1 + exp(x))."""
    return tf.math.softplus(floating(x))


def squareplus(x: Any, b: float = 4) -> tf.Tensor:
    """Computes (x + sqrt(x**2 + b)) / 2."""
    x = floating(x)
    return (x + tf.sqrt(x * x + float(b))) * 0.5


def sparse_plus(x: Any) -> tf.Tensor:
    """Computes 0 below -1, x above 1, and a parabola in between."""
    x = floating(x)
    joined = tf.where(tf.less(x, 1.0), tf.square(x + 1.0) * 0.25, x)
    return tf.where(tf.less_equal(x, -1.0), 0.0, joined)


def softsign(x: Any) -> tf.Tensor:
    """Computes x / (1 + |x|)."""
    return tf.math.softsign(floating(x))


def silu(x: Any) -> tf.Tensor:
    """Computes x * sigmoid(x)."""
    return tf.nn.silu(floating(x))


def hard_silu(x: Any) -> tf.Tensor:
    """Computes x * hard_sigmoid(x)."""
    x = floating(x)
    return x * hard_sigmoid(x)


def elu(x: Any, alpha: float = 1.0) -> tf.Tensor:
    """Computes x, and `alpha * (exp(x) - 1)` where x is negative."""
    x = floating(x)
    if alpha == 1.0:
        return tf.nn.elu(x)
    return tf.where(tf.greater(x, 0.0), x, alpha * tf.math.expm1(tf.minimum(x, 0.0)))


def celu(x: Any, alpha: float = 1.0) -> tf.Tensor:
    """Computes x, and `alpha * (exp(x / alpha) - 1)` where x is negative."""
    x = floating(x)
    return tf.maximum(x, 0.0) + alpha * tf.math.expm1(tf.minimum(x, 0.0) / alpha)


def selu(x: Any) -> tf.Tensor:
    """Computes the scaled exponential linear unit."""
    return tf.nn.selu(floating(x))


def gelu(x: Any, approximate: bool = True) -> tf.Tensor:
    """Computes x times the normal distribution function, or its tanh approximation."""
    return tf.nn.gelu(floating(x), approximate=approximate)


def glu(x: Any, axis: int = -1) -> tf.Tensor:
    """Computes the first half along an axis times the sigmoid of the second."""
    x = floating(x)
    if shape_of(x)[axis] % 2:
        raise ValueError(f"axis size must be divisible by 2. Received: x.shape={shape_of(x)} with axis={axis}")
    first, second = tf.split(x, 2, axis=axis)
    return first * tf.math.sigmoid(second)


def soft_shrink(x: Any, threshold: float = 0.5) -> tf.Tensor:
    """Shrinks x toward 0 by `threshold`."""
    x = floating(x)
    return tf.maximum(x - threshold, 0.0) + tf.minimum(x + threshold, 0.0)


def hard_shrink(x: Any, threshold: float = 0.5) -> tf.Tensor:
    """Computes x, and 0 where |x| <= `threshold`."""
    x = floating(x)
    return tf.where(tf.greater(tf.abs(x), threshold), x, 0.0)


def threshold(x: Any, threshold: float, default_value: float) -> tf.Tensor:
    """Computes x where x > `threshold`, else `default_value`."""
    x = floating(x)
    return tf.where(tf.greater(x, threshold), x, float(default_value))


def apply_over(function, x: Any, axis: int | tuple[int, ...] | None) -> tf.Tensor:
    """`function` of x along an axis, along several as if they were one, or along all."""
    x = floating(x)
    if axis is None:
        return tf.reshape(function(tf.reshape(x, [-1]), axis=-1), x.shape)
    if isinstance(axis, int):
        return function(x, axis=axis)
    rank = len(x.shape)
    axes = [one % rank for one in axis]
    order = [i for i in range(rank) if i not in axes] + axes
    moved = tf.transpose(x, order)
    front = shape_of(moved)[: rank - len(axes)]
    result = tf.reshape(function(tf.reshape(moved, [*front, -1]), axis=-1), moved.shape)
    return tf.transpose(result, sorted(range(rank), key=order.__getitem__))


def softmax(x: Any, axis: int | tuple[int, ...] | None = -1) -> tf.Tensor:
    """Computes the softmax along axes."""
    x = floating(x)
    return with_logits(apply_over(tf.nn.softmax, x, axis), x)


def log_softmax(x: Any, axis: int | tuple[int, ...] | None = -1) -> tf.Tensor:
    """Computes the logarithm of the softmax along axes."""
    return apply_over(tf.nn.log_softmax, x, axis)


def sparsemax(x: Any, axis: int = -1) -> tf.Tensor:
    """Sparsemax as Keras defines it: the threshold is the mean of the cumulative sums of the support, less 1, where that of
    the projection onto the probability simplex has the last of them. Results agree for a support of one element.
    """
    x = floating(x)
    count = shape_of(x)[axis]
    ranks = tf.reshape(tf.cast(tf.range(1, count + 1), x.dtype), broadcast_shape(axis, len(x.shape)))
    ordered = tf.sort(x, axis=axis, direction="DESCENDING")
    sums = tf.math.cumsum(ordered, axis=axis)
    inside = tf.cast(tf.greater(ranks * ordered, sums - 1.0), x.dtype)
    size = tf.reduce_sum(inside, axis=axis, keepdims=True)
    level = (tf.reduce_sum(sums * inside, axis=axis, keepdims=True) - 1.0) / size
    return tf.maximum(x - level, 0.0)
