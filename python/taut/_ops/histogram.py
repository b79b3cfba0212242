"""Counts of values: histograms, confusion matrices, top-k membership."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _raw_ops as raw, dtypes
from .._common import cast_to, refuse, value_range
from .._native import Tensor, as_tensor
from ..ragged_tensor import RaggedTensor
from ..sparse_tensor import SparseTensor
from .checks import check_holds

if TYPE_CHECKING:
    from .._typing import DTypeLike, TensorLike


def in_top_k(targets: TensorLike, predictions: TensorLike, k: Any, name: str | None = None) -> Tensor:
    """Tests whether each target is among the `k` largest predictions of its row.

    A target that is out of range, or whose prediction is not finite, is not.
    """
    targets, predictions = as_tensor(targets), as_tensor(predictions)
    if predictions.ndim != 2 or targets.ndim != 1 or len(targets) != len(predictions):
        shapes = f"predictions of shape {predictions.shape} and targets of shape {targets.shape}"
        refuse("in_top_k", f"expected predictions [batch, classes] and targets [batch], got {shapes}")
    classes = predictions.shape[1]
    known = raw.logical_and(targets >= 0, targets < classes)
    place = raw.where(known, targets, raw.cast(0, targets.dtype))
    own = raw.take_along_axis(predictions, raw.reshape(place, [-1, 1]), 1)
    above = raw.count_nonzero(predictions > own, 1)
    fine = raw.logical_and(known, raw.all(raw.is_finite(own), 1))
    return raw.logical_and(fine, above < raw.cast(k, dtypes.int64))


def _ragged_bincount(
    rows: RaggedTensor, weights: Any, minlength: Any, maxlength: Any, dtype: Any, axis: Any, binary_output: bool
) -> Tensor:
    """Counts the integers of each row, or of all rows."""
    values = rows.flat_values
    flat_weights = weights.flat_values if isinstance(weights, RaggedTensor) else weights
    if axis != -1:
        return bincount(values, flat_weights, minlength, maxlength, dtype, None, axis, binary_output)
    count, most = len(rows), value_range(values)[1]
    length = max(most + 1, 0 if minlength is None else int(minlength))
    length = length if maxlength is None else min(length, int(maxlength))
    numbers = cast_to(values, dtypes.int64)
    outside = count * length
    place = raw.where(numbers < length, numbers + length * rows.value_rowids(), outside)
    flat = bincount(place, flat_weights, outside + 1, None, dtype, None, None, binary_output)
    return raw.reshape(flat[:outside], [count, length])


def _stored_rows(values: Any) -> Any:
    """The stored elements of a sparse tensor, row by row if it has rows. Those that are not stored are not counted."""
    if not isinstance(values, SparseTensor):
        refuse("bincount", "weights of a sparse tensor must be a sparse tensor", ValueError)
    if len(values.shape) < 2:
        return values.values
    return RaggedTensor.from_value_rowids(values.values, values.indices[:, 0], values.shape[0])


def bincount(
    arr: TensorLike,
    weights: TensorLike | None = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> Tensor:
    """Counts the occurrences of each integer, or sums the weights at its occurrences.

    Integers >= `maxlength` are dropped. With `axis=-1`, each row is counted separately; with `binary_output`, the
    result is 1 where an integer occurs and 0 elsewhere. The length of the result depends on the values.
    """
    if isinstance(arr, SparseTensor):
        arr, weights = _stored_rows(arr), weights if weights is None else _stored_rows(weights)
    if isinstance(arr, RaggedTensor):
        return _ragged_bincount(arr, weights, minlength, maxlength, dtype, axis, binary_output)
    arr = as_tensor(arr)
    if arr.dtype.is_floating:
        arr = raw.cast(arr, dtypes.int32)
    weights = None if weights is None else as_tensor(weights)
    if arr.is_symbolic and weights is None and axis == -1 and minlength is not None and minlength == maxlength:
        # The length is known, so that the values need not be: integers beyond it have no position.
        hot = raw.one_hot(arr, int(minlength), 1, 0, -1, dtypes.int32)
        counts = raw.sum(hot, -2) if arr.ndim else hot
        return cast_to(counts > 0 if binary_output else counts, dtypes.as_dtype(dtype))
    if axis not in (None, 0, -1):
        refuse("bincount", f"axis must be None, 0 or -1, got {axis}")
    if binary_output and weights is not None:
        refuse("bincount", "binary_output and weights cannot be combined")
    if axis == -1 and arr.ndim not in (1, 2):
        refuse("bincount", f"axis=-1 needs rank 1 or 2, got shape {arr.shape}")
    by_row = axis == -1 and arr.ndim == 2
    rows = len(arr) if by_row else 1
    least, most = value_range(arr)
    length = most + 1
    if minlength is not None:
        length = max(length, int(minlength))
    if maxlength is not None:
        length = min(length, int(maxlength))
    numbers = cast_to(arr, dtypes.int64)
    if least < 0:
        refuse("bincount", f"values must be >= 0, got {least}")
    inside = numbers < length
    if rows > 1:
        numbers = numbers + length * raw.reshape(raw.range(0, rows, 1, dtypes.int64), [rows, 1])
    numbers, inside = raw.reshape(numbers, [-1]), raw.reshape(inside, [-1])
    numbers = raw.boolean_mask(numbers, inside)
    if weights is not None:
        weights = raw.boolean_mask(raw.reshape(weights, [-1]), inside)
    counts = raw.bincount(numbers, weights, rows * length)
    if weights is None:
        counts = cast_to(counts > 0 if binary_output else counts, dtypes.as_dtype(dtype))
    return raw.reshape(counts, [rows, length]) if by_row else counts


def confusion_matrix(
    labels: TensorLike,
    predictions: TensorLike,
    num_classes: Any = None,
    weights: TensorLike | None = None,
    dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Computes the confusion matrix: counts, or sums of weights, by label (row) and prediction (column)."""
    labels, predictions = (cast_to(as_tensor(one), dtypes.int64) for one in (labels, predictions))
    # A trailing axis of size 1 on one side only is dropped.
    if labels.ndim == predictions.ndim + 1 and labels.shape[-1] == 1:
        labels = raw.reshape(labels, labels.shape[:-1])
    elif predictions.ndim == labels.ndim + 1 and predictions.shape[-1] == 1:
        predictions = raw.reshape(predictions, predictions.shape[:-1])
    if labels.shape != predictions.shape:
        refuse(
            "confusion_matrix",
            f"labels and predictions must have one shape, got {labels.shape} and {predictions.shape}",
        )
    if num_classes is None:
        num_classes = max(value_range(labels)[1], value_range(predictions)[1]) + 1
    dtype = dtypes.as_dtype(dtype)
    values = raw.full([labels.size], 1, dtype) if weights is None else cast_to(raw.reshape(weights, [-1]), dtype)
    pairs = [raw.reshape(one, [-1]) for one in (labels, predictions)]
    places = raw.stack(pairs, 1)
    return raw.scatter_nd(places, values, [num_classes, num_classes])


def histogram_fixed_width_bins(
    values: TensorLike, value_range: Any, nbins: Any = 100, dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """Returns the index of the equal-width bin of each value; values outside the range go to the first or last bin."""
    values, nbins = as_tensor(values), int(nbins)
    low, high = (float(end) for end in value_range)
    if nbins < 1 or not low < high:
        refuse(
            "histogram_fixed_width",
            f"expected nbins >= 1 and an increasing value_range, got {nbins} bins in [{low}, {high}]",
        )
    # In float64, where the width of a range of float32 is finite.
    values = cast_to(values, dtypes.float64)
    check_holds("histogram_fixed_width", raw.logical_not(raw.any(raw.is_nan(values))), lambda: "values must not be NaN")
    place = raw.clip_by_value((values - low) / (high - low) * nbins, 0.0, float(nbins - 1))
    return raw.cast(place, dtypes.as_dtype(dtype))


def histogram_fixed_width(
    values: TensorLike, value_range: Any, nbins: Any = 100, dtype: DTypeLike = dtypes.int32, name: str | None = None
) -> Tensor:
    """Counts the values in each of `nbins` bins of equal width."""
    places = raw.reshape(histogram_fixed_width_bins(values, value_range, nbins), [-1, 1])
    return raw.scatter_nd(places, raw.full([places.shape[0]], 1, dtypes.as_dtype(dtype)), [int(nbins)])
