"""Sequences of labels, and regression of ordered values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor

if TYPE_CHECKING:
    from .._typing import TensorLike


def collapse_repeated(labels: TensorLike, seq_length: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Merges repeated labels of sequences `[batch, length]`, padded with zeros; returns labels and lengths.

    The labels have the length of the longest sequence, which is known only with their values.
    """
    values, lengths = as_tensor(labels), cast_to(as_tensor(seq_length), dtypes.int64)
    if values.ndim != 2 or lengths.shape != values.shape[:1]:
        refuse("collapse_repeated", f"expected labels [batch, length] and lengths [batch], got {values.shape}")
    array = values.numpy()
    there = np.arange(array.shape[1]) < lengths.numpy()[:, None]
    kept = there & np.concatenate([np.ones((array.shape[0], 1), bool), array[:, 1:] != array[:, :-1]], 1)
    counts = kept.sum(1)
    made = np.zeros((array.shape[0], int(counts.max(initial=0))), array.dtype)
    made[np.arange(made.shape[1]) < counts[:, None]] = array[kept]
    return _native.own_tensor(made), _native.own_tensor(counts.astype(seq_type(seq_length)))


def seq_type(seq_length: TensorLike) -> np.dtype:
    """The type of lengths."""
    return np.dtype(as_tensor(seq_length).dtype.as_numpy_dtype)


def ctc_unique_labels(labels: TensorLike, name: str | None = None) -> tuple[Tensor, Tensor]:
    """The unique labels of each row of `[batch, length]`, padded with zeros, and the index of each label among them."""
    values = as_tensor(labels)
    if values.ndim != 2:
        refuse("ctc_unique_labels", f"expected labels [batch, length], got shape {values.shape}")
    array = values.numpy()
    unique, places = np.zeros(array.shape, np.int64), np.zeros(array.shape, np.int32)
    for row in range(array.shape[0]):
        seen: dict[int, int] = {}
        for column, label in enumerate(array[row].tolist()):
            places[row, column] = seen.setdefault(label, len(seen))
        unique[row, : len(seen)] = list(seen)
    return _native.own_tensor(unique), _native.own_tensor(places)


def isotonic_regression(
    inputs: TensorLike, decreasing: bool = True, axis: int = -1, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The nearest non-increasing values (non-decreasing unless `decreasing`) along an axis, and the segments that are equal.

    A gradient flows to every value of a segment alike.
    """
    x = as_tensor(inputs)
    if not x.dtype.is_floating:
        x = cast_to(x, dtypes.float32 if x.dtype in (dtypes.int8, dtypes.int16) else dtypes.float64)
    moved = raw.moveaxis(x, axis, -1)
    array = np.asarray(moved.numpy(), np.float64)
    ids = np.zeros(array.shape, np.int32)
    for index in np.ndindex(array.shape[:-1]):
        row = -array[index] if decreasing else array[index]
        blocks: list[list[float]] = []
        for value in row:
            blocks.append([value, 1.0])
            while len(blocks) > 1 and blocks[-2][0] >= blocks[-1][0]:
                mean, count = blocks.pop()
                other, more = blocks[-1]
                blocks[-1] = [(mean * count + other * more) / (count + more), count + more]
        ids[index] = np.repeat(np.arange(len(blocks)), [int(count) for _, count in blocks])
    # The mean of each segment, as a product with a matrix of shares.
    same = ids[..., :, None] == ids[..., None, :]
    shares = same / same.sum(-1, keepdims=True)
    found = raw.matmul(raw.cast(as_tensor(shares), moved.dtype), raw.expand_dims(moved, -1))[..., 0]
    return raw.moveaxis(found, -1, axis), raw.moveaxis(as_tensor(ids), -1, axis)
