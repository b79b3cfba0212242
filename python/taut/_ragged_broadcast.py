"""Broadcasting between ragged tensors, and between a ragged tensor and a tensor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native, _raw_ops as raw
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from .ragged_tensor import RaggedTensor


def aligned(ragged: RaggedTensor, other: Any) -> tuple[RaggedTensor, Any]:
    """The ragged tensor whose rows the result has, and what its innermost values are combined with.

    Axes are aligned from the last one, as those of tensors. A size of 1 is repeated; other sizes must be equal, also those of
    every row of a ragged axis.
    """
    from .ragged_tensor import RaggedTensor

    if isinstance(other, RaggedTensor):
        if _same_rows(ragged, other):
            return ragged, other.flat_values
        if _is_uniform(other):
            other = other.to_tensor()
        else:
            _refuse(ragged, other)
    other = _native.tensor_beside(other, ragged.dtype)
    if not other.ndim:
        return ragged, other
    depth = ragged.ragged_rank + 1
    rank = depth + ragged.flat_values.ndim - 1
    if other.ndim > rank:
        _refuse(ragged, other)
    sizes = [1] * (rank - other.ndim) + list(other.shape)
    if all(size == 1 for size in sizes[:depth]):
        return ragged, raw.reshape(other, [1, *sizes[depth:]])
    columns = [
        column if size != 1 else np.zeros_like(column)
        for column, size, fits in zip(_indices(ragged), sizes, _fits(ragged, sizes))
        if fits or _refuse(ragged, other)
    ]
    return ragged, raw.gather_nd(raw.reshape(other, sizes), np.stack(columns, 1))


def _splits(ragged: RaggedTensor) -> list[np.ndarray]:
    return [np.asarray(splits, np.int64) for splits in ragged.nested_row_splits]


def _same_rows(one: RaggedTensor, other: RaggedTensor) -> bool:
    pairs = list(zip(_splits(one), _splits(other)))
    return one.ragged_rank == other.ragged_rank and all(np.array_equal(*pair) for pair in pairs)


def _is_uniform(ragged: RaggedTensor) -> bool:
    """Whether all rows of an axis have one length."""
    return all(len(set(np.diff(splits).tolist())) <= 1 for splits in _splits(ragged))


def _fits(ragged: RaggedTensor, sizes: list[int]) -> list[bool]:
    """By axis of the ragged tensor, the innermost axes aside: whether it has the size, or the size is 1."""
    splits = _splits(ragged)
    fits = [sizes[0] in (1, len(splits[0]) - 1)]
    return fits + [size == 1 or bool((np.diff(one) == size).all()) for one, size in zip(splits, sizes[1:])]


def _indices(ragged: RaggedTensor) -> list[np.ndarray]:
    """The indices of the innermost values, by axis."""
    splits = _splits(ragged)
    found = [np.arange(len(splits[0]) - 1)]
    for one in splits:
        lengths = np.diff(one)
        found = [np.repeat(column, lengths) for column in found]
        found.append(np.arange(one[-1]) - np.repeat(one[:-1], lengths))
    return found


def _refuse(ragged: RaggedTensor, other: Any) -> bool:
    raise InvalidArgumentError(
        f"shapes {ragged.shape} and {other.shape} do not broadcast: every row of an axis must have the other's size, or that "
        f"must be 1\n  at {_native.calling_line()}"
    )
