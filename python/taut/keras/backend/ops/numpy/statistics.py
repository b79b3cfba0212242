"""Quantiles, histograms and correlations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import taut as tf
from taut.keras.backend.convert import axes_of, convert_to_tensor, floating, known_value, shape_of, type_of

Axis = int | Sequence[int] | None


def in_last_axis(x: tf.Tensor, axis: Axis) -> tuple[tf.Tensor, list[int]]:
    """Joins axes into one at the end; also returns the shape with these axes of size 1."""
    shape = shape_of(x)
    axes = axes_of(axis, len(shape))
    others = [i for i in range(len(shape)) if i not in axes]
    joined = tf.reshape(tf.transpose(x, [*others, *axes]), [*(shape[i] for i in others), -1])
    return joined, [1 if i in axes else dim for i, dim in enumerate(shape)]


def between(position: tf.Tensor, method: str) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """The two indices around a position, and the weight of the upper one, by NumPy's method."""
    low, high = tf.floor(position), tf.math.ceil(position)
    shares = {
        "linear": lambda: position - low,
        "lower": lambda: tf.zeros_like(position),
        "higher": lambda: tf.ones_like(position),
        "midpoint": lambda: (high - low) * 0.5,
        "nearest": lambda: tf.round(position) - low,
    }
    if method not in shares:
        raise ValueError(f"`method` must be one of {sorted(shares)}. Received: method={method}")
    return low, high, shares[method]()


def quantiles(x: Any, q: Any, axis: Axis, method: str, keepdims: bool, skip_nan: bool) -> tf.Tensor:
    """Computes the quantiles `q` along axes; several of them along a new first axis.

    NaN sorts last. Where there is a NaN, the result is NaN, unless NaN is skipped: then only numbers are counted.
    """
    x = floating(x)
    q = convert_to_tensor(q, x.dtype)
    rows, kept = in_last_axis(x, axis)
    missing = tf.math.is_nan(rows)
    ordered = tf.sort(tf.where(missing, math.inf, rows) if skip_nan else rows, axis=-1)
    counted = tf.logical_not(missing) if skip_nan else tf.ones_like(missing)
    there = tf.reduce_sum(tf.cast(counted, x.dtype), axis=-1)
    found = []
    for one in tf.unstack(tf.reshape(q, [-1])):
        low, high, share = between(one * tf.maximum(there - 1.0, 0.0), method)
        lower, upper = (
            tf.gather(ordered, tf.cast(place, "int32")[..., None], batch_dims=len(rows.shape) - 1)[..., 0]
            for place in (low, high)
        )
        # The upper element may be the infinity that replaces NaN; its weight is 0 then.
        value = tf.where(tf.equal(share, 0.0), lower, lower + (upper - lower) * share)
        found.append(value)
    nothing = tf.equal(there, 0.0)
    if not skip_nan:
        nothing = tf.logical_or(nothing, tf.reduce_any(missing, axis=-1))
    found = [tf.where(nothing, math.nan, each) for each in found]
    found = [tf.reshape(each, kept) for each in found] if keepdims else found
    return found[0] if len(q.shape) == 0 else tf.reshape(tf.stack(found), [*shape_of(q), *shape_of(found[0])])


def quantile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> tf.Tensor:
    """Computes quantiles."""
    return quantiles(x, q, axis, method, keepdims, skip_nan=False)


def nanquantile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> tf.Tensor:
    """Computes quantiles, ignoring NaN."""
    return quantiles(x, q, axis, method, keepdims, skip_nan=True)


def percentile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> tf.Tensor:
    """Computes percentiles."""
    return quantile(x, convert_to_tensor(q, "float64") / 100.0, axis, method, keepdims)


def nanpercentile(x: Any, q: Any, axis: Axis = None, method: str = "linear", keepdims: bool = False) -> tf.Tensor:
    """Computes percentiles, ignoring NaN."""
    return nanquantile(x, convert_to_tensor(q, "float64") / 100.0, axis, method, keepdims)


def median(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the median."""
    return quantile(x, 0.5, axis, keepdims=keepdims)


def nanmedian(x: Any, axis: Axis = None, keepdims: bool = False) -> tf.Tensor:
    """Computes the median, ignoring NaN."""
    return nanquantile(x, 0.5, axis, keepdims=keepdims)


def bincount(x: Any, weights: Any = None, minlength: int = 0, sparse: bool = False) -> tf.Tensor:
    """Counts the occurrences of each integer, or sums its weights; row by row for a matrix.

    The length of the result depends on the values. In a traced function that computes them it is `minlength`, and a larger
    value is an error; without `minlength`, such a function runs op by op.
    """
    if sparse:
        raise ValueError("Sparse tensors are not supported by the taut backend.")
    x = tf.cast(convert_to_tensor(x), "int32")
    *batch, width = shape_of(x)
    rows = tf.reshape(x, [math.prod(batch), width])
    length = int(minlength)
    if x.is_symbolic and length:
        message = (
            "bincount: in a traced function, values must be less than minlength, which is the length of the result"
        )
        tf.debugging.assert_less(x, length, message=message)
        tf.debugging.assert_non_negative(x, message="bincount: values must be >= 0")
    else:
        values = known_value(x, "minlength")
        if values.min(initial=0) < 0:
            raise ValueError(f"bincount: values must be >= 0, got {values.min()}")
        length = max(length, int(values.max(initial=-1)) + 1)
    count = shape_of(rows)[0]
    counted = tf.ones(rows.shape, "int32") if weights is None else tf.reshape(convert_to_tensor(weights), rows.shape)
    places = rows + np.arange(count, dtype="int32")[:, None] * length
    sums = tf.math.unsorted_segment_sum(tf.reshape(counted, [-1]), tf.reshape(places, [-1]), count * length)
    sums = tf.reshape(sums, [count, length])
    return sums if len(x.shape) == 2 else sums[0]


def histogram(x: Any, bins: Any = 10, range: tuple[float, float] | None = None) -> tuple[tf.Tensor, tf.Tensor]:
    """Counts the elements in bins of equal width, or between given edges; returns counts and edges."""
    from taut.keras.backend.ops.numpy.create import linspace
    from taut.keras.backend.ops.numpy.sorting import searchsorted

    x = floating(x)
    x = tf.reshape(x, [-1])
    if isinstance(bins, int):
        low, high = (
            (tf.reduce_min(x), tf.reduce_max(x))
            if range is None
            else (
                convert_to_tensor(range[0], x.dtype),
                convert_to_tensor(range[1], x.dtype),
            )
        )
        alone = tf.equal(low, high)
        low, high = tf.where(alone, low - 0.5, low), tf.where(alone, high + 0.5, high)
        edges = linspace(low, high, bins + 1)
    else:
        edges = convert_to_tensor(bins, x.dtype)
    count = shape_of(edges)[0] - 1
    place = searchsorted(edges, x, side="right") - 1
    # The last bin includes its upper edge.
    place = tf.where(tf.equal(x, edges[-1]), tf.zeros_like(place) + (count - 1), place)
    inside = tf.logical_and(tf.greater_equal(x, edges[0]), tf.less_equal(x, edges[-1]))
    counts = tf.math.unsorted_segment_sum(tf.cast(inside, "int32"), tf.clip_by_value(place, 0, count - 1), count)
    return tf.cast(counts, x.dtype), edges


def corrcoef(x: Any) -> tf.Tensor:
    """Computes the correlation matrix of the rows."""
    x = convert_to_tensor(x)
    x = tf.cast(x, "float64") if type_of(x) in ("int64", "float64") else floating(x)
    if len(x.shape) == 1:
        return tf.ones([], x.dtype)
    away = x - tf.reduce_mean(x, axis=1, keepdims=True)
    products = tf.matmul(away, away, transpose_b=True)
    scale = tf.sqrt(tf.linalg.diag_part(products))
    return tf.clip_by_value(products / (scale[:, None] * scale[None, :]), -1.0, 1.0)
