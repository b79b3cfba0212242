"""Distances and fingerprints of sequences."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from .. import _native, dtypes
from ..errors import InvalidArgumentError
from ..sparse_tensor import SparseTensor


def edit_distance(
    hypothesis: SparseTensor, truth: SparseTensor, normalize: bool = True, name: str | None = None
) -> Any:
    """Levenshtein distances of the sequences along the last axis of two sparse tensors, float32. With `normalize`, they are
    divided by the length of the sequence in `truth`: infinite where that is 0 and the distance is not.
    """
    for one in (hypothesis, truth):
        if not isinstance(one, SparseTensor):
            raise TypeError(f"expected a SparseTensor, got {type(one).__name__}")
    if hypothesis.dtype != truth.dtype or len(hypothesis.shape) != len(truth.shape):
        raise InvalidArgumentError(
            f"the sequences must have one type and rank, got {hypothesis.dtype.name}{list(hypothesis.shape)} and "
            f"{truth.dtype.name}{list(truth.shape)}"
        )
    shape = [max(sizes) for sizes in zip(list(hypothesis.shape)[:-1], list(truth.shape)[:-1])]
    guesses, truths = _sequences(hypothesis), _sequences(truth)
    found = np.zeros(shape, np.float32)
    for place in {*guesses, *truths}:
        guess, true = guesses.get(place, []), truths.get(place, [])
        distance = np.float32(_distance(guess, true))
        if normalize:
            distance = distance / np.float32(len(true)) if true else np.float32(np.inf if guess else 0)
        found[place] = distance
    return _native.own_tensor(found)


def _sequences(sparse: SparseTensor) -> dict[tuple, list]:
    found: dict[tuple, list] = {}
    for index, value in zip(np.asarray(sparse.indices).tolist(), sparse.values.numpy().tolist()):
        found.setdefault(tuple(index[:-1]), []).append(value)
    return found


def _distance(a: list, b: list) -> int:
    """The least number of insertions, deletions and replacements that make one sequence of another."""
    row = list(range(len(b) + 1))
    for i, one in enumerate(a, 1):
        before, row = row, [i]
        for (old, new), other in zip(itertools.pairwise(before), b):
            row.append(min(old + (one != other), new + 1, row[-1] + 1))
    return row[-1]


def fingerprint(data: Any, method: str = "farmhash64", name: str | None = None) -> Any:
    """FarmHash's 64-bit fingerprint of each row of a tensor, as 8 bytes: uint8 [rows, 8]."""
    if _native.string_tensor(method).item() != b"farmhash64":
        raise InvalidArgumentError(f"method must be 'farmhash64', got {method!r}")
    data = _native.as_tensor(data)
    if not data.ndim:
        raise InvalidArgumentError("data must have rank >= 1, got a scalar")
    count = data.shape[0]
    if data.dtype == dtypes.string:
        prints = np.asarray(_native.string_fingerprints(data))
        if data.ndim == 1:
            return _bytes(prints)
        rows = [row.astype("<u8").tobytes() for row in prints.reshape(count, -1)]
    else:
        array = np.ascontiguousarray(np.asarray(data))
        rows = [array[i].tobytes() for i in range(count)]
    texts = _native.string_tensor(np.array(rows, object) if rows else np.empty(0, object))
    return _bytes(np.asarray(_native.string_fingerprints(texts)))


def _bytes(prints: np.ndarray) -> Any:
    return _native.own_tensor(prints.astype("<u8").view(np.uint8).reshape(len(prints), 8))
