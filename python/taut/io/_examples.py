"""Parsing serialized examples."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from ..ragged_tensor import RaggedTensor
from ..sparse_tensor import SparseTensor


class FixedLenFeature(NamedTuple):
    """A feature with values of a fixed shape. Without a default, every example must have it."""

    shape: Any
    dtype: Any
    default_value: Any = None


class VarLenFeature(NamedTuple):
    """A feature with any number of values; parsed as a sparse tensor."""

    dtype: Any


class RaggedFeature(NamedTuple):
    """A feature with any number of values; parsed as a ragged tensor, or as a tensor for a single example."""

    dtype: Any
    value_key: str | None = None
    partitions: tuple = ()
    row_splits_dtype: Any = dtypes.int32
    validate: bool = False


def parse_example(
    serialized: Any, features: dict[str, Any], example_names: Any = None, name: str | None = None
) -> dict:
    """Parses a vector of serialized `tf.train.Example` messages: one tensor per feature."""
    serialized = _native.string_tensor(serialized)
    if not serialized.ndim:
        return parse_single_example(serialized, features)
    if serialized.ndim != 1:
        raise ValueError(f"serialized must be a vector, got shape {serialized.shape}")
    return {
        key: _batch_value(features[key], parsed, serialized.shape[0]) for key, parsed in _parse(serialized, features)
    }


def parse_single_example(
    serialized: Any, features: dict[str, Any], example_names: Any = None, name: str | None = None
) -> dict:
    """Parses one serialized `tf.train.Example` message: one tensor per feature."""
    serialized = _native.string_tensor(serialized)
    if serialized.ndim:
        raise ValueError(f"serialized must be a scalar, got shape {serialized.shape}")
    parsed = _parse(_native.string_reshape(serialized, [1]), features)
    return {key: _single_value(features[key], value) for key, value in parsed}


def _parse(serialized: Any, features: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    if not features:
        raise ValueError("features must have at least one feature, got none")
    arguments = []
    for key, feature in features.items():
        shape = default = None
        if isinstance(feature, FixedLenFeature):
            shape = [int(feature.shape)] if isinstance(feature.shape, int) else [_size(dim) for dim in feature.shape]
            default = feature.default_value
        elif isinstance(feature, RaggedFeature):
            if feature.partitions:
                raise ValueError(f"partitions must be empty, got {feature.partitions!r} for {key!r}")
        elif not isinstance(feature, VarLenFeature):
            raise TypeError(f"expected a FixedLenFeature, VarLenFeature or RaggedFeature for {key!r}, got {feature!r}")
        source = getattr(feature, "value_key", None) or key
        arguments.append((source, dtypes.as_dtype(feature.dtype), shape, default))
    return zip(features, _native.parse_examples(serialized, arguments))


def _size(dim: Any) -> int:
    if dim is None:
        raise ValueError("all sizes of a FixedLenFeature must be known: use a RaggedFeature or a VarLenFeature")
    return int(dim)


def _batch_value(feature: Any, parsed: Any, rows: int) -> Any:
    if isinstance(feature, FixedLenFeature):
        return parsed
    values, lengths = parsed
    counts = np.asarray(lengths)
    if isinstance(feature, RaggedFeature):
        return RaggedTensor.from_row_lengths(values, counts).with_row_splits_dtype(feature.row_splits_dtype)
    columns = np.concatenate([np.arange(count) for count in counts]) if rows else np.zeros(0)
    indices = np.stack([np.repeat(np.arange(rows), counts), columns.astype(np.int64)], 1)
    return SparseTensor(indices, values, [rows, int(counts.max(initial=0))])


def _single_value(feature: Any, parsed: Any) -> Any:
    if isinstance(feature, FixedLenFeature):
        return raw.squeeze(parsed, [0])
    values, _ = parsed
    if isinstance(feature, RaggedFeature):
        return values
    return SparseTensor(np.arange(values.shape[0])[:, None], values, [values.shape[0]])
