"""Sorting, searching and unique elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, known_value, promote, shape_of, type_of
from taut.keras.backend.ops.numpy.shapes import moveaxis


def sort(x: Any, axis: int | None = -1) -> tf.Tensor:
    """Sorts in ascending order along an axis."""
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    if type_of(x) == "bool":
        return tf.cast(tf.sort(tf.cast(x, "int32"), axis=axis), "bool")
    return tf.sort(x, axis=axis)


def argsort(x: Any, axis: int | None = -1) -> tf.Tensor:
    """Returns the indices that sort along an axis. The sort is stable."""
    x = convert_to_tensor(x)
    x = tf.cast(x, "int32") if type_of(x) == "bool" else x
    if axis is None or len(x.shape) == 0:
        x, axis = tf.reshape(x, [-1]), 0
    return tf.cast(tf.argsort(x, axis=axis, stable=True), "int32")


def argpartition(x: Any, kth: int, axis: int | None = -1) -> tf.Tensor:
    """Returns indices that partition an axis at `kth`: those of a full sort, which is a partition."""
    count = shape_of(convert_to_tensor(x))[-1 if axis is None else axis]
    if axis is not None and not -count <= kth < count:
        raise ValueError(f"`kth` must be in [{-count}, {count}). Received: kth={kth}")
    return argsort(x, axis)


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> tf.Tensor:
    """Finds where values would be inserted into a sorted vector: before or after equal elements."""
    if side not in ("left", "right"):
        raise ValueError(f"`side` must be 'left' or 'right'. Received: side={side}")
    sequence, values = promote(sorted_sequence, values)
    if len(sequence.shape) != 1:
        raise ValueError(f"`sorted_sequence` must have rank 1. Received: shape {shape_of(sequence)}")
    found = tf.searchsorted(sequence, tf.reshape(values, [-1]), side=side)
    return tf.cast(tf.reshape(found, values.shape), "int32")


def digitize(x: Any, bins: Any) -> tf.Tensor:
    """Returns the index of the bin of each element, for ascending `bins`."""
    bins = convert_to_tensor(bins)
    # Compared as an array: in a trace, the result of an op has no value, even if its inputs are constants.
    if not bins.is_symbolic and (np.diff(bins.numpy()) < 0).any():
        raise ValueError(f"digitize: bins must be ascending, got {bins.numpy().tolist()}")
    return searchsorted(bins, x, side="right")


def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> tf.Tensor:
    """Tests whether elements of `x1` are in `x2`."""
    x1, x2 = promote(x1, x2)
    x2 = tf.reshape(x2, [-1])
    if shape_of(x2)[0] == 0:
        return tf.fill(x1.shape, invert)
    if type_of(x1) == "bool":
        x1, x2 = tf.cast(x1, "int32"), tf.cast(x2, "int32")
    ordered = tf.sort(x2)
    place = tf.minimum(searchsorted(ordered, x1), shape_of(ordered)[0] - 1)
    found = tf.equal(tf.gather(ordered, place), x1)
    return tf.logical_not(found) if invert else found


def _row_order(rows: tf.Tensor) -> tf.Tensor:
    """The indices that sort rows, by their first elements and then by the next ones: stable sorts from the last column on."""
    count, columns = shape_of(rows)
    order = tf.range(count)
    for column in range(columns - 1, -1, -1):
        order = tf.gather(order, argsort(tf.gather(rows[:, column], order), 0))
    return order


def unique(
    x: Any,
    sorted: bool = True,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """Finds the unique elements in ascending order. Without `size`, the number of results depends on the values, which
    must be known.

    Returns the values and, if requested, the index of their first occurrence, the index of each element among them, and
    counts.
    """
    x = convert_to_tensor(x)
    if size is None:
        known_value(x, "size")
    # The things that are compared: elements, or slices along the axis.
    flat = tf.reshape(x, [-1]) if axis is None else moveaxis(x, axis, 0)
    count = shape_of(flat)[0]
    rows = tf.reshape(flat, [count, math.prod(shape_of(flat)[1:])])
    order = _row_order(rows)
    ordered = tf.gather(flat, order)
    sorted_rows = tf.gather(rows, order)
    changed = tf.reduce_any(tf.not_equal(sorted_rows[1:], sorted_rows[:-1]), axis=1)
    fresh = tf.concat([tf.ones([min(count, 1)], "bool"), changed], axis=0)
    group = tf.cumsum(tf.cast(fresh, "int32")) - 1
    found = int(known_value(tf.reduce_sum(tf.cast(fresh, "int32")), "size")) if size is None else int(size)
    # The stable sort puts the first element of each group in front, in the order of groups.
    firsts = argsort(tf.logical_not(fresh), 0)[:found]
    groups = group[-1] + 1 if count else 0
    if size is not None and found > count:
        firsts = tf.concat([firsts, tf.zeros([found - count], "int32")], axis=0)
    values = tf.gather(ordered, firsts)
    index = tf.gather(order, firsts)
    if size is not None:
        there = tf.less(tf.range(found), groups)
        filling = values[0] if fill_value is None else convert_to_tensor(fill_value, values.dtype)
        kept = tf.reshape(there, [found] + [1] * (len(values.shape) - 1))
        values = tf.where(kept, values, filling + tf.zeros_like(values))
        index = tf.where(there, index, tf.zeros_like(index) + index[0])
    results = [values if axis is None else moveaxis(values, 0, axis)]
    if return_index:
        results.append(index)
    if return_inverse:
        back = tf.scatter_nd(order[:, None], tf.minimum(group, found - 1), [count])
        results.append(tf.reshape(back, x.shape) if axis is None else back)
    if return_counts:
        kept = tf.where(tf.less(group, found), tf.ones_like(group), tf.zeros_like(group))
        results.append(tf.math.unsorted_segment_sum(kept, tf.minimum(group, found - 1), found))
    return results[0] if len(results) == 1 else tuple(results)
