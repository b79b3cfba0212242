"""Reductions of ragged tensors along their axes: sums, means, extremes, softmax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native, _raw_ops as raw, dtypes
from ._ragged_ops import HANDLERS, binary, checked_axis, expand_dims, handles, rank, splits_of, with_splits_of
from .ragged_tensor import RaggedTensor


def _reduction(name: str, segment: str) -> Callable:
    """A reduction that combines elements by `tf.math.unsorted_segment_*`."""

    def reduce(input_tensor: RaggedTensor, axis: Any = None, keepdims: Any = False) -> Any:
        whole = _whole(name)
        if axis is None:
            made = whole(input_tensor.flat_values)
            return made if not keepdims else raw.reshape(made, [1] * rank(input_tensor))
        made = input_tensor
        for one in _axes(axis, rank(input_tensor), name):
            made = _expanded(_reduced(made, one, whole, segment), one, keepdims)
        return made

    return reduce


def _whole(name: str) -> Callable:
    from ._ops import reduction

    return getattr(reduction, name)


def _axes(axis: Any, count: int, what: str) -> list[int]:
    """Axes, the last first, so that those before keep their numbers."""
    axes = [checked_axis(one, count, what) for one in np.atleast_1d(np.asarray(axis)).tolist()]
    if len(set(axes)) < len(axes):
        raise ValueError(f"{what}: axes must be different, got {axes}\n  at {_native.calling_line()}")
    return sorted(axes, reverse=True)


def _expanded(x: Any, axis: int, keepdims: Any) -> Any:
    return expand_dims(x, axis) if keepdims else x


def _reduced(x: Any, axis: int, whole: Callable, segment: str) -> Any:
    """Reduces one axis of a ragged tensor, or of a tensor."""
    if not isinstance(x, RaggedTensor):
        return whole(x, axis)
    if axis > 1:
        return x.with_values(_reduced(x.values, axis - 1, whole, segment))
    return _reduced_rows(x, axis, segment)


def _segments(segment: str, values: Any, places: np.ndarray, count: int) -> Any:
    from ._ops import segment as ops

    return getattr(ops, segment)(values, _native.own_tensor(places.astype(np.int64)), count)


def _reduced_rows(x: RaggedTensor, axis: int, segment: str) -> Any:
    """Reduces the first or second axis of a ragged tensor: its rows, or its values, are combined element by element."""
    lengths = np.diff(splits_of(x))
    if axis == 0:
        places, count = (
            np.arange(int(lengths.sum())) - np.repeat(splits_of(x)[:-1], lengths),
            int(lengths.max(initial=0)),
        )
    else:
        places, count = np.repeat(np.arange(len(lengths)), lengths), len(lengths)
    return _combined(x.values, places, count, segment)


def _combined(rows: Any, places: np.ndarray, count: int, segment: str) -> Any:
    """Combines the rows that have the same place: as many as `count`, each as long as the longest of its rows."""
    if not isinstance(rows, RaggedTensor):
        return _segments(segment, rows, places, count)
    lengths = np.diff(splits_of(rows))
    longest = np.zeros(count, np.int64)
    np.maximum.at(longest, places, lengths)
    firsts = np.concatenate([[0], np.cumsum(longest)])
    inside = np.arange(int(lengths.sum())) - np.repeat(splits_of(rows)[:-1], lengths)
    inner = np.repeat(firsts[:-1][places], lengths) + inside
    made = RaggedTensor.from_row_lengths(_combined(rows.values, inner, int(firsts[-1]), segment), longest)
    return with_splits_of(rows, made)


for _name, _segment in {
    "reduce_sum": "unsorted_segment_sum",
    "reduce_prod": "unsorted_segment_prod",
    "reduce_max": "unsorted_segment_max",
    "reduce_min": "unsorted_segment_min",
}.items():
    HANDLERS[f"reduction.{_name}"] = _reduction(_name, _segment)


def _logical(segment: str) -> Callable:
    """`reduce_all` or `reduce_any`, as a minimum or maximum of integers."""

    def reduce(input_tensor: RaggedTensor, axis: Any = None, keepdims: Any = False) -> Any:
        integers = input_tensor.with_flat_values(raw.cast(input_tensor.flat_values, dtypes.int32))
        # An empty row has the smallest or largest integer: all of its elements are true, none of them is.
        made = HANDLERS[f"reduction.reduce_{segment}"](integers, axis, keepdims)
        return binary(raw.greater, made, 0) if isinstance(made, RaggedTensor) else raw.greater(made, 0)

    return reduce


HANDLERS["all"] = _logical("min")
HANDLERS["any"] = _logical("max")


def _counts(x: RaggedTensor, axis: Any, dtype: Any) -> Any:
    """The number of elements along axes."""
    ones = x.with_flat_values(raw.ones_like(x.flat_values, dtype))
    return HANDLERS["reduction.reduce_sum"](ones, axis)


@handles("reduction.reduce_mean")
def reduce_mean(input_tensor: RaggedTensor, axis: Any = None, keepdims: Any = False) -> Any:
    """The mean along axes; NaN of rows without elements."""
    if axis is None:
        flat = input_tensor.flat_values
        # Integers have a mean with a fraction, as along an axis.
        is_integer = flat.dtype.is_integer
        made = raw.div(_whole("reduce_sum")(flat), flat.size) if is_integer else _whole("reduce_mean")(flat)
        return made if not keepdims else raw.reshape(made, [1] * rank(input_tensor))
    total = HANDLERS["reduction.reduce_sum"](input_tensor, axis)
    count = _counts(input_tensor, axis, total.dtype)
    is_ragged = isinstance(total, RaggedTensor)
    divided: Any = binary(raw.div, total, count) if is_ragged else raw.div(total, count)
    for one in reversed(_axes(axis, rank(input_tensor), "reduce_mean")):
        divided = _expanded(divided, one, keepdims)
    return divided


@handles("reduction.reduce_variance")
def reduce_variance(input_tensor: RaggedTensor, axis: Any = None, keepdims: Any = False) -> Any:
    """The population variance along axes."""
    mean, x = reduce_mean(input_tensor, axis, keepdims), input_tensor
    squares = reduce_mean(x.with_flat_values(raw.square(x.flat_values)), axis, keepdims)
    if not isinstance(mean, RaggedTensor):
        return raw.maximum(squares - raw.square(mean), 0)
    return mean.with_flat_values(raw.maximum(squares.flat_values - raw.square(mean.flat_values), 0))


@handles("reduction.reduce_std")
def reduce_std(input_tensor: RaggedTensor, axis: Any = None, keepdims: Any = False) -> Any:
    """The population standard deviation along axes."""
    made = reduce_variance(input_tensor, axis, keepdims)
    return made.with_flat_values(raw.sqrt(made.flat_values)) if isinstance(made, RaggedTensor) else raw.sqrt(made)


@handles("probabilities.softmax")
def softmax(logits: RaggedTensor, axis: Any = None) -> RaggedTensor:
    """The softmax of each row."""
    if checked_axis(-1 if axis is None else axis, rank(logits), "softmax") != rank(logits) - 1:
        raise ValueError(f"softmax: axis must be the last one for ragged tensors, got {axis}")
    if logits.flat_values.ndim > 1:
        return logits.with_flat_values(raw.softmax(logits.flat_values))
    lengths = np.diff(np.asarray(logits.nested_row_splits[-1]))
    places, count = np.repeat(np.arange(len(lengths)), lengths), len(lengths)
    x = logits.flat_values
    highest = _segments("unsorted_segment_max", x, places, count)
    powers = raw.exp(x - raw.stop_gradient(raw.gather(highest, places)))
    return logits.with_flat_values(
        powers / raw.gather(_segments("unsorted_segment_sum", powers, places, count), places)
    )
