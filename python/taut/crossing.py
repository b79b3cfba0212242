"""Crosses of features: `cross` and `cross_hashed` of `tf.sparse` and `tf.ragged`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from . import _native, dtypes
from .errors import InvalidArgumentError
from .ragged_tensor import RaggedTensor
from .sparse_tensor import SparseTensor

_FIRST_KEY = 0xDECAFCAFFE
_FACTOR = np.uint64(0xC6A4A7935BD1E995)


def cross(inputs: Any, name: str | None = None, separator: Any = None) -> SparseTensor:
    """The crosses of the features of each row: their texts, joined by `separator`, by default "_X_"."""
    between = "_X_" if separator is None else separator
    rows = _texts(
        _sparse_first(inputs), between.encode() if isinstance(between, str) else _native.string_tensor(between).item()
    )
    indices = [(row, i) for row, found in enumerate(rows) for i in range(len(found))]
    values = [text for found in rows for text in found]
    return SparseTensor(np.array(indices, np.int64).reshape(-1, 2), _strings(values), [len(rows), _width(rows)])


def ragged_cross(inputs: Any, name: str | None = None) -> RaggedTensor:
    """The crosses of the features of each row: their texts, joined by "_X_"."""
    rows = _texts(inputs, b"_X_")
    return RaggedTensor.from_row_lengths(_strings([text for row in rows for text in row]), [len(row) for row in rows])


def cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> SparseTensor:
    """The crosses of the features of each row, as buckets of a hash: TensorFlow's, of FarmHash fingerprints."""
    rows = _hashes(_sparse_first(inputs), num_buckets, hash_key)
    indices = [(row, i) for row, found in enumerate(rows) for i in range(len(found))]
    return SparseTensor(np.array(indices, np.int64).reshape(-1, 2), _joined_rows(rows), [len(rows), _width(rows)])


def ragged_cross_hashed(
    inputs: Any, num_buckets: int = 0, hash_key: int | None = None, name: str | None = None
) -> RaggedTensor:
    """The crosses of the features of each row, as buckets of a hash: TensorFlow's, of FarmHash fingerprints."""
    rows = _hashes(inputs, num_buckets, hash_key)
    return RaggedTensor.from_row_lengths(_native.own_tensor(_joined_rows(rows)), [len(row) for row in rows])


def _sparse_first(inputs: Any) -> list:
    """TensorFlow crosses sparse features before dense ones."""
    return sorted(inputs, key=lambda one: not isinstance(one, SparseTensor))


def _width(rows: list) -> int:
    return max((len(row) for row in rows), default=0)


def _strings(values: list[bytes]) -> _native.Tensor:
    return _native.string_tensor(np.array(values, object) if values else np.empty(0, object))


def _joined_rows(rows: list[np.ndarray]) -> np.ndarray:
    return np.concatenate(rows).astype(np.int64) if rows else np.zeros(0, np.int64)


def _same_rows(columns: list[list]) -> int:
    """The number of rows, which all columns must have."""
    counts = [len(column) for column in columns]
    if not counts or any(count != counts[0] for count in counts):
        raise InvalidArgumentError(f"inputs must have equal batch sizes, got {counts}")
    return counts[0]


def _texts(inputs: Any, separator: bytes) -> list[list[bytes]]:
    columns = [_rows(one, _feature_texts) for one in inputs]
    return [
        [separator.join(parts) for parts in itertools.product(*(column[row] for column in columns))]
        for row in range(_same_rows(columns))
    ]


def _hashes(inputs: Any, num_buckets: int, hash_key: int | None) -> list[np.ndarray]:
    columns = [_rows(one, _feature_hashes) for one in inputs]
    found = []
    for row in range(_same_rows(columns)):
        crossed = np.array([_FIRST_KEY if hash_key is None else hash_key], np.uint64)
        for column in columns:
            crossed = _joined(crossed[:, None], column[row][None, :]).reshape(-1)
        found.append(crossed % np.uint64(num_buckets or (1 << 63) - 1))
    return found


def _rows(features: Any, read: Any) -> list:
    """The features of each row, of a sparse, ragged or dense tensor; `read` makes an array of a tensor."""
    if isinstance(features, SparseTensor):
        numbers, flat = np.asarray(features.indices)[:, 0], read(features.values)
        return [flat[numbers == row] for row in range(features.shape[0])]
    if isinstance(features, RaggedTensor):
        flat = read(features.values)
        return [flat[start:end] for start, end in itertools.pairwise(np.asarray(features.row_splits))]
    tensor = _native.as_tensor(features)
    if tensor.ndim != 2:
        raise InvalidArgumentError(f"inputs must have rank 2, got shape {list(tensor.shape)}")
    return list(read(tensor))


def _feature_hashes(tensor: Any) -> np.ndarray:
    """The 64 bits of each feature: fingerprints of strings, integers as they are."""
    if tensor.dtype == dtypes.string:
        return np.asarray(_native.string_fingerprints(tensor))
    return np.asarray(tensor).astype(np.int64).view(np.uint64)


def _feature_texts(tensor: Any) -> np.ndarray:
    if tensor.dtype == dtypes.string:
        return tensor.numpy()
    return np.vectorize(lambda number: str(int(number)).encode(), otypes=[object])(np.asarray(tensor))


def _joined(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One fingerprint of two."""

    def mixed(value: np.ndarray) -> np.ndarray:
        return value ^ (value >> np.uint64(47))

    with np.errstate(over="ignore"):
        found = (a ^ _FACTOR) ^ (mixed(b * _FACTOR) * _FACTOR)
        return mixed(mixed(found * _FACTOR) * _FACTOR)
