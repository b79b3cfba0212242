"""Order: sorting, searching, what is unique."""

from __future__ import annotations

from typing import Any

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, shape_of, together, type_of

__all__ = ["argpartition", "argsort", "digitize", "isin", "searchsorted", "sort", "unique"]


def sort(x: Any, axis: int | None = -1) -> tf.Tensor:
    """The elements in increasing order along an axis."""
    x = convert_to_tensor(x)
    if axis is None:
        x, axis = tf.reshape(x, [-1]), 0
    if type_of(x) == "bool":
        return tf.cast(tf.sort(tf.cast(x, "int32"), axis=axis), "bool")
    return tf.sort(x, axis=axis)


def argsort(x: Any, axis: int | None = -1) -> tf.Tensor:
    """The places of the elements in increasing order; equal ones keep theirs."""
    x = convert_to_tensor(x)
    x = tf.cast(x, "int32") if type_of(x) == "bool" else x
    if axis is None or len(x.shape) == 0:
        x, axis = tf.reshape(x, [-1]), 0
    return tf.cast(tf.argsort(x, axis=axis, stable=True), "int32")


def argpartition(x: Any, kth: int, axis: int | None = -1) -> tf.Tensor:
    """Places such that the `kth` is that of the `kth` element in order, with smaller ones before it.

    A full order is one of these, and the one that is given.
    """
    count = shape_of(convert_to_tensor(x))[-1 if axis is None else axis]
    if axis is not None and not -count <= kth < count:
        raise ValueError(f"`kth` is out of range: {kth}, of {count} elements")
    return argsort(x, axis)


def searchsorted(sorted_sequence: Any, values: Any, side: str = "left") -> tf.Tensor:
    """Where the values would go in a sorted vector: before equal elements, or after them."""
    if side not in ("left", "right"):
        raise ValueError(f"`side` must be 'left' or 'right'. Received: side={side}")
    sequence, values = together(sorted_sequence, values)
    if len(sequence.shape) != 1:
        raise ValueError(f"`searchsorted` takes a 1-D sequence. Received: shape {shape_of(sequence)}")
    found = tf.searchsorted(sequence, tf.reshape(values, [-1]), side=side)
    return tf.cast(tf.reshape(found, values.shape), "int32")


def digitize(x: Any, bins: Any) -> tf.Tensor:
    """Into which of the ranges between increasing `bins` every element falls."""
    return searchsorted(convert_to_tensor(bins), x, side="right")


def isin(x1: Any, x2: Any, assume_unique: bool = False, invert: bool = False) -> tf.Tensor:
    """Whether elements of `x1` are among those of `x2`."""
    x1, x2 = together(x1, x2)
    x2 = tf.reshape(x2, [-1])
    if shape_of(x2)[0] == 0:
        return tf.fill(x1.shape, invert)
    if type_of(x1) == "bool":
        x1, x2 = tf.cast(x1, "int32"), tf.cast(x2, "int32")
    ordered = tf.sort(x2)
    place = tf.minimum(searchsorted(ordered, x1), shape_of(ordered)[0] - 1)
    found = tf.equal(tf.gather(ordered, place), x1)
    return tf.logical_not(found) if invert else found


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
    """The different elements in increasing order; without `size`, their number depends on the data, which has
    to be there.

    Returns the elements, and as asked: where each is found first, which one every element is, how often each
    occurs.
    """
    if axis is not None:
        raise NotImplementedError("keras.ops.unique with an axis is not there yet on the taut backend")
    x = convert_to_tensor(x)
    flat = tf.reshape(x, [-1])
    count = shape_of(flat)[0]
    order = argsort(flat, 0)
    ordered = tf.gather(flat, order)
    fresh = tf.concat([tf.ones([min(count, 1)], "bool"), tf.not_equal(ordered[1:], ordered[:-1])], axis=0)
    group = tf.cumsum(tf.cast(fresh, "int32")) - 1
    found = int(tf.reduce_sum(tf.cast(fresh, "int32"))) if size is None else int(size)
    # The first of each group, in the order of groups: stable sorting puts those in front.
    firsts = argsort(tf.logical_not(fresh), 0)[:found]
    groups = group[-1] + 1 if count else 0
    if size is not None and found > count:
        firsts = tf.concat([firsts, tf.zeros([found - count], "int32")], axis=0)
    values = tf.gather(ordered, firsts)
    index = tf.gather(order, firsts)
    if size is not None:
        there = tf.less(tf.range(found), groups)
        filling = values[0] if fill_value is None else convert_to_tensor(fill_value, values.dtype)
        values = tf.where(there, values, filling + tf.zeros_like(values))
        index = tf.where(there, index, tf.zeros_like(index) + index[0])
    results = [values]
    if return_index:
        results.append(index)
    if return_inverse:
        back = tf.scatter_nd(order[:, None], tf.minimum(group, found - 1), [count])
        results.append(tf.reshape(back, x.shape))
    if return_counts:
        kept = tf.where(tf.less(group, found), tf.ones_like(group), tf.zeros_like(group))
        results.append(tf.math.unsorted_segment_sum(kept, tf.minimum(group, found - 1), found))
    return results[0] if len(results) == 1 else tuple(results)
