"""Functions of sparse tensors: `tf.sparse`."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _namespace, _native, dtypes
from .errors import InvalidArgumentError
from .sparse_tensor import SparseTensor, from_dense, to_dense

__all__ = ["SparseTensor", "cross_hashed", "expand_dims", "from_dense", "to_dense"]

_FIRST_KEY = 0xDECAFCAFFE
_FACTOR = np.uint64(0xC6A4A7935BD1E995)


def cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """The crosses of the features of each row, as buckets of a hash: TensorFlow's, of FarmHash fingerprints."""
    columns = [_feature_hashes(one) for one in inputs]
    rows = len(columns[0])
    if any(len(column) != rows for column in columns):
        raise InvalidArgumentError(f"inputs must have equal batch sizes, got {[len(column) for column in columns]}")
    indices, values = [], []
    for row in range(rows):
        crossed = np.array([_FIRST_KEY if hash_key is None else hash_key], np.uint64)
        for column in columns:
            crossed = _joined(crossed[:, None], column[row][None, :]).reshape(-1)
        indices += [(row, i) for i in range(len(crossed))]
        values.append(crossed % np.uint64(num_buckets) if num_buckets else crossed >> np.uint64(1))
    width = max((len(row) for row in values), default=0)
    found = np.concatenate(values).astype(np.int64) if values else np.zeros(0, np.int64)
    return SparseTensor(np.array(indices, np.int64).reshape(-1, 2), found, [rows, width])


def _feature_hashes(features: Any) -> list[np.ndarray]:
    """The 64 bits of each feature of each row: fingerprints of strings, integers as they are."""
    if isinstance(features, SparseTensor):
        numbers = np.asarray(features.indices)[:, 0]
        flat = _feature_hashes(_native.as_tensor(features.values)[None])[0]
        return [flat[numbers == row] for row in range(features.shape[0])]
    tensor = _native.as_tensor(features)
    if tensor.dtype == dtypes.string:
        return list(np.asarray(_native.string_fingerprints(tensor)))
    return list(np.asarray(tensor).astype(np.int64).view(np.uint64))


def _joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One fingerprint of two."""

    def mixed(value: np.ndarray) -> np.ndarray:
        return value ^ (value >> np.uint64(47))

    with np.errstate(over="ignore"):
        found = (a ^ _FACTOR) ^ (mixed(b * _FACTOR) * _FACTOR)
        return mixed(mixed(found * _FACTOR) * _FACTOR)


def expand_dims(sp_input: SparseTensor, axis: int | None = None, name: str | None = None) -> SparseTensor:
    """Adds an axis of size one; by default, at the end."""
    rank = len(sp_input.shape)
    place = -1 if axis is None else int(axis)
    place = place + rank + 1 if place < 0 else place
    indices = np.insert(np.asarray(sp_input.indices), place, 0, axis=1)
    return SparseTensor(indices, sp_input.values, [*sp_input.shape[:place], 1, *sp_input.shape[place:]])


__getattr__, __dir__ = _namespace.plain(__name__)
