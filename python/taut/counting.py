"""Counting, and sums over segments of rows, as `tf.math` has them."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native, dtypes
from ._common import _as, _ends, _refuse

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

# Over segments of rows.
segment_max = op("segment_max")
segment_mean = op("segment_mean")
segment_min = op("segment_min")
segment_prod = op("segment_prod")
segment_sum = op("segment_sum")

_all = op("all")
_bincount = op("bincount")
_boolean_mask = op("boolean_mask")
_cast = op("cast")
_count_nonzero = op("count_nonzero")
_full = op("full")
_is_finite = op("is_finite")
_logical_and = op("logical_and")
_maximum = op("maximum")
_range = op("range")
_reshape = op("reshape")
_scatter_nd = op("scatter_nd")
_sqrt = op("sqrt")
_stack = op("stack")
_take = op("take_along_axis")
_where = op("where")


def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> _Tensor:
    """For each row of predictions, whether fewer than `k` classes have more than the target does.

    A target that is no class, and one whose prediction is not finite, is not among them.
    """
    targets, predictions = _tensor(targets), _tensor(predictions)
    if predictions.ndim != 2 or targets.ndim != 1 or len(targets) != len(predictions):
        shapes = f"predictions of shape {predictions.shape} and targets of shape {targets.shape}"
        _refuse("in_top_k", f"{shapes}, where rows of predictions and a target for each are needed")
    classes = predictions.shape[1]
    known = _logical_and(targets >= 0, targets < classes)
    place = _where(known, targets, _cast(0, targets.dtype))
    own = _take(predictions, _reshape(place, [-1, 1]), 1)
    above = _count_nonzero(predictions > own, 1)
    fine = _logical_and(known, _all(_is_finite(own), 1))
    return _logical_and(fine, above < _cast(k, dtypes.int64))


def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> _Tensor:
    """How often each integer occurs, or the sum of the weights where it does.

    Integers from `maxlength` on are left out. With `axis=-1`, each row is counted by itself; with
    `binary_output`, what counts is whether an integer occurs. The length of the result depends on the elements.
    """
    arr = _tensor(arr)
    weights = None if weights is None else _tensor(weights)
    if axis not in (None, 0, -1):
        _refuse("bincount", f"axis is None, 0 or -1, not {axis}")
    if binary_output and weights is not None:
        _refuse(
            "bincount", "binary_output says whether there are any, and weights how much there is: not both"
        )
    if axis == -1 and arr.ndim not in (1, 2):
        _refuse("bincount", f"rows are counted in matrices, not in shape {arr.shape}")
    by_row = axis == -1 and arr.ndim == 2
    rows = len(arr) if by_row else 1
    least, most = _ends(arr)
    length = most + 1
    if minlength is not None:
        length = max(length, int(minlength))
    if maxlength is not None:
        length = min(length, int(maxlength))
    numbers = _as(arr, dtypes.int64)
    if least < 0:
        _refuse("bincount", "negative integers are not counted")
    inside = numbers < length
    if rows > 1:
        numbers = numbers + length * _reshape(_range(0, rows, 1, dtypes.int64), [rows, 1])
    numbers, inside = _reshape(numbers, [-1]), _reshape(inside, [-1])
    numbers = _boolean_mask(numbers, inside)
    if weights is not None:
        weights = _boolean_mask(_reshape(weights, [-1]), inside)
    counts = _bincount(numbers, weights, rows * length)
    if weights is None:
        counts = _as(counts > 0 if binary_output else counts, dtypes.as_dtype(dtype))
    return _reshape(counts, [rows, length]) if by_row else counts


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> _Tensor:
    """How often each class (row) was predicted as each other one (column), or the weight of those times."""
    labels, predictions = _tensor(labels), _tensor(predictions)
    # A column of labels goes with a row of predictions, and the other way round.
    if labels.ndim == predictions.ndim + 1 and labels.shape[-1] == 1:
        labels = _reshape(labels, labels.shape[:-1])
    elif predictions.ndim == labels.ndim + 1 and predictions.shape[-1] == 1:
        predictions = _reshape(predictions, predictions.shape[:-1])
    if labels.shape != predictions.shape:
        _refuse(
            "confusion_matrix", f"labels of shape {labels.shape}, predictions of shape {predictions.shape}"
        )
    if num_classes is None:
        num_classes = max(_ends(labels)[1], _ends(predictions)[1]) + 1
    dtype = dtypes.as_dtype(dtype)
    values = _full([labels.size], 1, dtype) if weights is None else _as(_reshape(weights, [-1]), dtype)
    pairs = [_reshape(_as(one, dtypes.int64), [-1]) for one in (labels, predictions)]
    places = _stack(pairs, 1)
    return _scatter_nd(places, values, [num_classes, num_classes])


def invert_permutation(x: Any, name: str | None = None) -> _Tensor:
    """Where each number of a permutation stands: another permutation, which undoes it."""
    x = _tensor(x)
    if x.ndim != 1:
        _refuse("invert_permutation", f"a permutation has one dimension, not shape {x.shape}")
    if not x.is_symbolic and not np.array_equal(np.sort(np.asarray(x)), np.arange(len(x))):
        _refuse("invert_permutation", f"these are not the numbers from 0 to {len(x) - 1}, each once")
    places = _range(0, len(x), 1, x.dtype)
    return _scatter_nd(_reshape(x, [-1, 1]), places, [len(x)])


# Over segments whose rows come in any order. A negative id names no segment.

_segments = {name: op(f"unsorted_segment_{name}") for name in ("max", "mean", "min", "prod", "sum")}


def _unsorted(which: str, data: Any, segment_ids: Any, num_segments: Any) -> _Tensor:
    ids, count = _tensor(segment_ids), int(num_segments)
    work = _segments[which]
    if not ids.is_symbolic and _ends(ids)[0] >= 0:
        return work(data, ids, count)
    # Rows without a segment go to one more, which is left out.
    ids = _where(ids < 0, _cast(count, ids.dtype), ids)
    return work(data, ids, count + 1)[:count]


def unsorted_segment_max(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> _Tensor:
    """The largest of the rows with equal ids; the lowest value there is for an id that does not occur."""
    return _unsorted("max", data, segment_ids, num_segments)


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> _Tensor:
    """The mean of the rows with equal ids; zero for an id that does not occur. That of integers is a float64."""
    data = _tensor(data)
    data = _cast(data, dtypes.float64) if data.dtype.is_integer else data
    return _unsorted("mean", data, segment_ids, num_segments)


def unsorted_segment_min(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> _Tensor:
    """The smallest of the rows with equal ids; the highest value there is for an id that does not occur."""
    return _unsorted("min", data, segment_ids, num_segments)


def unsorted_segment_prod(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> _Tensor:
    """The product of the rows with equal ids; one for an id that does not occur."""
    return _unsorted("prod", data, segment_ids, num_segments)


def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> _Tensor:
    """The sum of the rows with equal ids; zero for an id that does not occur."""
    return _unsorted("sum", data, segment_ids, num_segments)


def unsorted_segment_sqrt_n(
    data: Any, segment_ids: Any, num_segments: Any, name: str | None = None
) -> _Tensor:
    """The sum of the rows with equal ids over the root of their number; zero where there are none."""
    data, ids = _tensor(data), _tensor(segment_ids)
    total = _unsorted("sum", data, ids, num_segments)
    count = _unsorted("sum", _full(ids.shape, 1, data.dtype), ids, num_segments)
    count = _reshape(_maximum(count, 1), [*count.shape, *[1] * (total.ndim - count.ndim)])
    return total / _sqrt(count)
