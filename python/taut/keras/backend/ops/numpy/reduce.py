"""Reductions and cumulative functions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from keras.src.backend.common import standardize_dtype

import taut as tf
from taut.keras.backend.convert import (
    axes_of,
    broadcast_shape,
    convert_to_tensor,
    floating,
    is_float,
    promote,
    shape_of,
    size_of,
    slice_axis,
    type_of,
)
from taut.keras.backend.ops.numpy.elementwise import isclose, isnan

Axis = int | Sequence[int] | None


def summable(x: Any) -> tf.Tensor:
    """Casts to the type of sums: narrow integers and booleans become 32 bits wide."""
    x = convert_to_tensor(x)
    wider = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
    return tf.cast(x, wider[type_of(x)]) if type_of(x) in wider else x


def sum(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the sum along axes."""
    return tf.reduce_sum(summable(x), axis=axis, keepdims=keepdims)


def prod(x: Any, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> tf.Tensor:
    """Computes the product along axes."""
    x = summable(x)
    return tf.reduce_prod(x if dtype is None else tf.cast(x, dtype), axis=axis, keepdims=keepdims)


def mean(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the mean along axes."""
    return in_32_bits(tf.reduce_mean, floating(x), axis, keepdims)


def var(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the population variance along axes."""
    return in_32_bits(tf.math.reduce_variance, floating(x), axis, keepdims)


def in_32_bits(reduce: Callable, x: tf.Tensor, axis: Axis, keepdims: bool) -> tf.Tensor:
    """Applies `reduce` in 32 bits for 16-bit floats, whose sums overflow."""
    if type_of(x) not in ("float16", "bfloat16"):
        return reduce(x, axis=axis, keepdims=keepdims)
    return tf.cast(reduce(tf.cast(x, "float32"), axis=axis, keepdims=keepdims), x.dtype)


def std(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the population standard deviation along axes."""
    return in_32_bits(tf.math.reduce_std, floating(x), axis, keepdims)


def extreme(x: Any, axis: Axis, keepdims: bool, initial: Any, reduce, combine) -> tf.Tensor:
    """The maximum or minimum, combined with `initial`. Booleans are compared as integers."""
    x = convert_to_tensor(x)
    truths = type_of(x) == "bool"
    x = tf.cast(x, "int32") if truths else x
    if initial is None:
        if size_of(shape_of(x)[i] for i in axes_of(axis, len(x.shape))) == 0:
            raise ValueError("The maximum or minimum of no elements needs `initial`.")
        result = reduce(x, axis=axis, keepdims=keepdims)
    else:
        result = combine(reduce(x, axis=axis, keepdims=keepdims), convert_to_tensor(initial, x.dtype))
    return tf.cast(result, "bool") if truths else result


def max(x: Any, axis: Axis = None, keepdims: bool = False, initial: Any = None) -> tf.Tensor:
    """Computes the maximum along axes, at least `initial`."""
    return extreme(x, axis, keepdims, initial, tf.reduce_max, tf.maximum)


def min(x: Any, axis: Axis = None, keepdims: bool = False, initial: Any = None) -> tf.Tensor:
    """Computes the minimum along axes, at most `initial`."""
    return extreme(x, axis, keepdims, initial, tf.reduce_min, tf.minimum)


def amax(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the maximum along axes."""
    return max(x, axis, keepdims)


def amin(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the minimum along axes."""
    return min(x, axis, keepdims)


def ptp(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the maximum minus the minimum."""
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def all(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Tests whether all elements along axes are true."""
    return tf.reduce_all(convert_to_tensor(x, "bool"), axis=axis, keepdims=keepdims)


def any(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Tests whether any element along axes is true."""
    return tf.reduce_any(convert_to_tensor(x, "bool"), axis=axis, keepdims=keepdims)


def allclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> tf.Tensor:
    """Tests whether all elements are close (see `isclose`)."""
    return tf.reduce_all(isclose(x1, x2, rtol, atol, equal_nan))


def count_nonzero(x: Any, axis: Axis = None) -> tf.Tensor:
    """Counts the nonzero elements along axes."""
    return tf.reduce_sum(tf.cast(convert_to_tensor(x, "bool"), "int32"), axis=axis)


def arg_extreme(x: Any, axis: int | None, keepdims: bool, find) -> tf.Tensor:
    """The index of the maximum or minimum; of the flattened tensor without an axis."""
    x = convert_to_tensor(x)
    x = tf.cast(x, "int32") if type_of(x) == "bool" else x
    rank = len(x.shape)
    place = find(tf.reshape(x, [-1]), axis=0) if axis is None else find(x, axis=axis)
    place = tf.cast(place, "int32")
    if keepdims:
        kept = [1] * rank if axis is None else [1 if i == axis % rank else d for i, d in enumerate(shape_of(x))]
        place = tf.reshape(place, kept)
    return place


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> tf.Tensor:
    """Returns the index of the maximum, the lowest index on ties."""
    return arg_extreme(x, axis, keepdims, tf.argmax)


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> tf.Tensor:
    """Returns the index of the minimum, the lowest index on ties."""
    return arg_extreme(x, axis, keepdims, tf.argmin)


def average(x: Any, axis: Axis = None, weights: Any = None) -> tf.Tensor:
    """Computes the mean along axes, weighted by `weights`."""
    if weights is None:
        return tf.reduce_mean(promote(x, least=float)[0], axis=axis)
    x, weights = promote(x, weights, least=float)
    if len(weights.shape) != len(x.shape):
        if not isinstance(axis, int) or len(weights.shape) != 1:
            raise ValueError("`weights` must have the shape of `x`, or rank 1 with a single `axis`.")
        weights = tf.reshape(weights, broadcast_shape(axis, len(x.shape)))
    weights = weights + tf.zeros_like(x)
    return tf.reduce_sum(x * weights, axis=axis) / tf.reduce_sum(weights, axis=axis)


# Running sums and products.


def running(x: Any, axis: int | None, dtype: Any, function) -> tf.Tensor:
    """Applies a cumulative `function` along an axis; along the flattened tensor without one."""
    x = convert_to_tensor(x)
    dtype = standardize_dtype(dtype or x.dtype)
    x = tf.cast(x, "int32" if dtype == "bool" else dtype)
    return function(tf.reshape(x, [-1]), axis=0) if axis is None else function(x, axis=axis)


def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> tf.Tensor:
    """Computes the cumulative sum."""
    return running(x, axis, dtype, tf.math.cumsum)


def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> tf.Tensor:
    """Computes the cumulative product."""
    return running(x, axis, dtype, tf.math.cumprod)


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> tf.Tensor:
    """Integrates along an axis by the trapezoidal rule, at points `x` or with spacing `dx`."""
    y = floating(y)
    count = shape_of(y)[axis]
    before, after = slice_axis(y, axis, 0, count - 1), slice_axis(y, axis, 1, count)
    if x is None:
        return tf.reduce_sum((before + after) * (0.5 * dx), axis=axis)
    x = convert_to_tensor(x, y.dtype)
    if len(x.shape) == 1:
        x = tf.reshape(x, broadcast_shape(axis, len(y.shape)))
    count = shape_of(x)[axis]
    widths = slice_axis(x, axis, 1, count) - slice_axis(x, axis, 0, count - 1)
    return tf.reduce_sum((before + after) * 0.5 * widths, axis=axis)


# The same, where NaN stands for nothing.


def replace_nan(x: Any, value: float) -> tf.Tensor:
    """Replaces NaN by `value`."""
    x = convert_to_tensor(x)
    return tf.where(isnan(x), convert_to_tensor(value, x.dtype), x) if is_float(x) or x.dtype.is_complex else x


def count_numbers(x: tf.Tensor, axis: Axis, keepdims: bool) -> tf.Tensor:
    """Counts the elements along axes that are not NaN, in the type of `x`."""
    return tf.reduce_sum(tf.cast(tf.logical_not(isnan(x)), x.dtype), axis=axis, keepdims=keepdims)


def nansum(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the sum along axes, ignoring NaN."""
    return sum(replace_nan(x, 0.0), axis, keepdims)


def nanprod(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the product along axes, ignoring NaN."""
    return prod(replace_nan(x, 1.0), axis, keepdims)


def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> tf.Tensor:
    """Computes the cumulative sum, ignoring NaN."""
    return cumsum(replace_nan(x, 0.0), axis, dtype)


def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> tf.Tensor:
    """Computes the cumulative product, ignoring NaN."""
    return cumprod(replace_nan(x, 1.0), axis, dtype)


def nanmean(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the mean along axes, ignoring NaN."""
    x = floating(x)
    total = tf.reduce_sum(replace_nan(x, 0.0), axis=axis, keepdims=keepdims)
    return total / count_numbers(x, axis, keepdims)


def nanvar(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the variance along axes, ignoring NaN. That of complex numbers is real."""
    x = floating(x)
    wide = tf.cast(x, "float32") if type_of(x) in ("float16", "bfloat16") else x
    centred = wide - nanmean(wide, axis, keepdims=True)
    result = nanmean(tf.square(tf.abs(centred) if x.dtype.is_complex else centred), axis, keepdims)
    return tf.cast(result, x.dtype.real_dtype)


def nanstd(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the standard deviation along axes, ignoring NaN."""
    return tf.sqrt(nanvar(x, axis, keepdims))


def nan_extreme(x: Any, axis: Axis, keepdims: bool, reduce, replacement: float) -> tf.Tensor:
    """The maximum or minimum ignoring NaN; NaN where there is no number."""
    x = convert_to_tensor(x)
    if not is_float(x):
        return reduce(x, axis, keepdims)
    found = reduce(replace_nan(x, replacement), axis, keepdims)
    nothing = tf.reduce_all(tf.math.is_nan(x), axis=axis, keepdims=keepdims)
    return tf.where(nothing, math.nan, found)


def nanmax(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the maximum along axes, ignoring NaN."""
    return nan_extreme(x, axis, keepdims, max, -math.inf)


def nanmin(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the minimum along axes, ignoring NaN."""
    return nan_extreme(x, axis, keepdims, min, math.inf)


def nan_arg(x: Any, axis: int | None, keepdims: bool, find, replacement: float) -> tf.Tensor:
    """The index of the maximum or minimum ignoring NaN; -1 where there is no number."""
    x = convert_to_tensor(x)
    place = find(replace_nan(x, replacement), axis, keepdims)
    if not is_float(x):
        return place
    nothing = tf.reduce_all(tf.math.is_nan(x), axis=axis, keepdims=keepdims)
    return tf.where(nothing, -1, place)


def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> tf.Tensor:
    """Returns the index of the maximum ignoring NaN; -1 where there is no number."""
    return nan_arg(x, axis, keepdims, argmax, -math.inf)


def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> tf.Tensor:
    """Returns the index of the minimum ignoring NaN; -1 where there is no number."""
    return nan_arg(x, axis, keepdims, argmin, math.inf)
