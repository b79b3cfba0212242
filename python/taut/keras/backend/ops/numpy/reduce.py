"""Functions of many elements: sums, extremes, running sums."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from keras.src.backend.common import standardize_dtype

import taut as tf
from taut.keras.backend.convert import (
    axes_of,
    convert_to_tensor,
    cut,
    floating,
    is_float,
    laid_along,
    shape_of,
    size_of,
    together,
    type_of,
)

__all__ = [
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "average",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "max",
    "mean",
    "min",
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
    "prod",
    "ptp",
    "std",
    "sum",
    "trapezoid",
    "var",
]

Axis = int | Sequence[int] | None


def summable(x: Any) -> tf.Tensor:
    """`x` in the type in which it is summed: narrow whole numbers and truth values become 32 bits wide."""
    x = convert_to_tensor(x)
    wider = {"bool": "int32", "int8": "int32", "int16": "int32", "uint8": "uint32", "uint16": "uint32"}
    return tf.cast(x, wider[type_of(x)]) if type_of(x) in wider else x


def sum(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The sum along axes, by default of all elements."""
    return tf.reduce_sum(summable(x), axis=axis, keepdims=keepdims)


def prod(x: Any, axis: Axis = None, keepdims: bool = False, dtype: Any = None) -> tf.Tensor:
    """The product along axes, by default of all elements."""
    x = summable(x)
    return tf.reduce_prod(x if dtype is None else tf.cast(x, dtype), axis=axis, keepdims=keepdims)


def mean(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The mean along axes, by default of all elements."""
    return in_32_bits(tf.reduce_mean, floating(x), axis, keepdims)


def var(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The mean of squared distances from the mean."""
    return in_32_bits(tf.math.reduce_variance, floating(x), axis, keepdims)


def in_32_bits(reduce: Callable, x: tf.Tensor, axis: Axis, keepdims: bool) -> tf.Tensor:
    """What `reduce` gives, computed in 32 bits for halves: their sums overflow."""
    if type_of(x) not in ("float16", "bfloat16"):
        return reduce(x, axis=axis, keepdims=keepdims)
    return tf.cast(reduce(tf.cast(x, "float32"), axis=axis, keepdims=keepdims), x.dtype)


def std(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The square root of the variance."""
    return in_32_bits(tf.math.reduce_std, floating(x), axis, keepdims)


def extreme(x: Any, axis: Axis, keepdims: bool, initial: Any, reduce, combine) -> tf.Tensor:
    """The largest or smallest element, not short of `initial`. Truth values are compared as numbers."""
    x = convert_to_tensor(x)
    truths = type_of(x) == "bool"
    x = tf.cast(x, "int32") if truths else x
    if initial is None:
        if size_of(shape_of(x)[i] for i in axes_of(axis, len(x.shape))) == 0:
            raise ValueError("Cannot find the largest or smallest of no elements without `initial`.")
        result = reduce(x, axis=axis, keepdims=keepdims)
    else:
        result = combine(reduce(x, axis=axis, keepdims=keepdims), convert_to_tensor(initial, x.dtype))
    return tf.cast(result, "bool") if truths else result


def max(x: Any, axis: Axis = None, keepdims: bool = False, initial: Any = None) -> tf.Tensor:
    """The largest element along axes, and not less than `initial`."""
    return extreme(x, axis, keepdims, initial, tf.reduce_max, tf.maximum)


def min(x: Any, axis: Axis = None, keepdims: bool = False, initial: Any = None) -> tf.Tensor:
    """The smallest element along axes, and not more than `initial`."""
    return extreme(x, axis, keepdims, initial, tf.reduce_min, tf.minimum)


def amax(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The largest element along axes."""
    return max(x, axis, keepdims)


def amin(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The smallest element along axes."""
    return min(x, axis, keepdims)


def ptp(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The largest element less the smallest."""
    return max(x, axis, keepdims) - min(x, axis, keepdims)


def all(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Whether all elements along axes are true."""
    return tf.reduce_all(convert_to_tensor(x, "bool"), axis=axis, keepdims=keepdims)


def any(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Whether an element along axes is true."""
    return tf.reduce_any(convert_to_tensor(x, "bool"), axis=axis, keepdims=keepdims)


def allclose(x1: Any, x2: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> tf.Tensor:
    """Whether all pairs of elements are close (see `isclose`)."""
    from taut.keras.backend.ops.numpy.elementwise import isclose

    return tf.reduce_all(isclose(x1, x2, rtol, atol, equal_nan))


def count_nonzero(x: Any, axis: Axis = None) -> tf.Tensor:
    """How many elements along axes are not zero."""
    return tf.reduce_sum(tf.cast(convert_to_tensor(x, "bool"), "int32"), axis=axis)


def arg_extreme(x: Any, axis: int | None, keepdims: bool, find) -> tf.Tensor:
    """Where the largest or smallest element is; without an axis, among all elements."""
    x = convert_to_tensor(x)
    x = tf.cast(x, "int32") if type_of(x) == "bool" else x
    rank = len(x.shape)
    place = find(tf.reshape(x, [-1]), axis=0) if axis is None else find(x, axis=axis)
    place = tf.cast(place, "int32")
    if keepdims:
        kept = (
            [1] * rank if axis is None else [1 if i == axis % rank else d for i, d in enumerate(shape_of(x))]
        )
        place = tf.reshape(place, kept)
    return place


def argmax(x: Any, axis: int | None = None, keepdims: bool = False) -> tf.Tensor:
    """Where the largest element is: the first of them."""
    return arg_extreme(x, axis, keepdims, tf.argmax)


def argmin(x: Any, axis: int | None = None, keepdims: bool = False) -> tf.Tensor:
    """Where the smallest element is: the first of them."""
    return arg_extreme(x, axis, keepdims, tf.argmin)


def average(x: Any, axis: Axis = None, weights: Any = None) -> tf.Tensor:
    """The mean along axes, weighted if `weights` are given."""
    if weights is None:
        return tf.reduce_mean(together(x, least=float)[0], axis=axis)
    x, weights = together(x, weights, least=float)
    if len(weights.shape) != len(x.shape):
        if not isinstance(axis, int) or len(weights.shape) != 1:
            raise ValueError("Weights of another shape than `x` have to be a vector along one `axis`.")
        weights = tf.reshape(weights, laid_along(axis, len(x.shape)))
    weights = weights + tf.zeros_like(x)
    return tf.reduce_sum(x * weights, axis=axis) / tf.reduce_sum(weights, axis=axis)


# Running sums and products.


def running(x: Any, axis: int | None, dtype: Any, function) -> tf.Tensor:
    """`function` along an axis; without one, along all elements in a row."""
    x = convert_to_tensor(x)
    dtype = standardize_dtype(dtype or x.dtype)
    x = tf.cast(x, "int32" if dtype == "bool" else dtype)
    return function(tf.reshape(x, [-1]), axis=0) if axis is None else function(x, axis=axis)


def cumsum(x: Any, axis: int | None = None, dtype: Any = None) -> tf.Tensor:
    """The sum of every element and all those before it."""
    return running(x, axis, dtype, tf.math.cumsum)


def cumprod(x: Any, axis: int | None = None, dtype: Any = None) -> tf.Tensor:
    """The product of every element and all those before it."""
    return running(x, axis, dtype, tf.math.cumprod)


def trapezoid(y: Any, x: Any = None, dx: float = 1.0, axis: int = -1) -> tf.Tensor:
    """The integral along an axis by the trapezoidal rule, at the places `x` or at distances `dx`."""
    y = floating(y)
    count = shape_of(y)[axis]
    before, after = cut(y, axis, 0, count - 1), cut(y, axis, 1, count)
    if x is None:
        return tf.reduce_sum((before + after) * (0.5 * dx), axis=axis)
    x = convert_to_tensor(x, y.dtype)
    if len(x.shape) == 1:
        x = tf.reshape(x, laid_along(axis, len(y.shape)))
    count = shape_of(x)[axis]
    widths = cut(x, axis, 1, count) - cut(x, axis, 0, count - 1)
    return tf.reduce_sum((before + after) * 0.5 * widths, axis=axis)


# The same, where NaN stands for nothing.


def instead_of_nan(x: Any, value: float) -> tf.Tensor:
    """`x` with `value` in place of every NaN."""
    x = convert_to_tensor(x)
    return tf.where(tf.math.is_nan(x), value, x) if is_float(x) else x


def numbers_there(x: tf.Tensor, axis: Axis, keepdims: bool) -> tf.Tensor:
    """How many elements along axes are not NaN, in the type of `x`."""
    return tf.reduce_sum(tf.cast(tf.logical_not(tf.math.is_nan(x)), x.dtype), axis=axis, keepdims=keepdims)


def nansum(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The sum along axes; NaN counts as 0."""
    return sum(instead_of_nan(x, 0.0), axis, keepdims)


def nanprod(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The product along axes; NaN counts as 1."""
    return prod(instead_of_nan(x, 1.0), axis, keepdims)


def nancumsum(x: Any, axis: int | None = None, dtype: Any = None) -> tf.Tensor:
    """The running sum; NaN counts as 0."""
    return cumsum(instead_of_nan(x, 0.0), axis, dtype)


def nancumprod(x: Any, axis: int | None = None, dtype: Any = None) -> tf.Tensor:
    """The running product; NaN counts as 1."""
    return cumprod(instead_of_nan(x, 1.0), axis, dtype)


def nanmean(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The mean of the elements along axes that are numbers."""
    x = floating(x)
    total = tf.reduce_sum(instead_of_nan(x, 0.0), axis=axis, keepdims=keepdims)
    return total / numbers_there(x, axis, keepdims)


def nanvar(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The variance of the elements along axes that are numbers."""
    x = floating(x)
    wide = tf.cast(x, "float32") if type_of(x) in ("float16", "bfloat16") else x
    result = nanmean(tf.square(wide - nanmean(wide, axis, keepdims=True)), axis, keepdims)
    return tf.cast(result, x.dtype)


def nanstd(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The square root of the variance of the elements along axes that are numbers."""
    return tf.sqrt(nanvar(x, axis, keepdims))


def nan_extreme(x: Any, axis: Axis, keepdims: bool, reduce, stand_in: float) -> tf.Tensor:
    """The extreme of the elements that are numbers; NaN where there are none."""
    x = convert_to_tensor(x)
    if not is_float(x):
        return reduce(x, axis, keepdims)
    found = reduce(instead_of_nan(x, stand_in), axis, keepdims)
    nothing = tf.reduce_all(tf.math.is_nan(x), axis=axis, keepdims=keepdims)
    return tf.where(nothing, math.nan, found)


def nanmax(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The largest of the elements along axes that are numbers."""
    return nan_extreme(x, axis, keepdims, max, -math.inf)


def nanmin(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """The smallest of the elements along axes that are numbers."""
    return nan_extreme(x, axis, keepdims, min, math.inf)


def nan_arg(x: Any, axis: int | None, keepdims: bool, find, stand_in: float) -> tf.Tensor:
    """Where the extreme of the elements that are numbers is; -1 where there are none."""
    x = convert_to_tensor(x)
    place = find(instead_of_nan(x, stand_in), axis, keepdims)
    if not is_float(x):
        return place
    nothing = tf.reduce_all(tf.math.is_nan(x), axis=axis, keepdims=keepdims)
    return tf.where(nothing, -1, place)


def nanargmax(x: Any, axis: int | None = None, keepdims: bool = False) -> tf.Tensor:
    """Where the largest of the elements that are numbers is; -1 where there are none."""
    return nan_arg(x, axis, keepdims, argmax, -math.inf)


def nanargmin(x: Any, axis: int | None = None, keepdims: bool = False) -> tf.Tensor:
    """Where the smallest of the elements that are numbers is; -1 where there are none."""
    return nan_arg(x, axis, keepdims, argmin, math.inf)
