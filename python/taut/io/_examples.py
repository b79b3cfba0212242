"""Parsing serialized examples."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from ..errors import InvalidArgumentError
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


class FixedLenSequenceFeature(NamedTuple):
    """A feature with rows of a fixed shape, as many as there are; shorter examples of a batch are padded with the default."""

    shape: Any
    dtype: Any
    allow_missing: bool = False
    default_value: Any = None


class SparseFeature(NamedTuple):
    """A sparse vector of `size` elements, whose indices and values are two features (or several index features)."""

    index_key: Any
    value_key: str
    dtype: Any
    size: Any
    already_sorted: bool = False


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
    return _parsed(features, lambda arguments: _native.parse_examples(serialized, arguments), serialized.shape[0])


def parse_single_example(
    serialized: Any, features: dict[str, Any], example_names: Any = None, name: str | None = None
) -> dict:
    """Parses one serialized `tf.train.Example` message: one tensor per feature."""
    row = _one_row(serialized)
    return _parsed(features, lambda arguments: _native.parse_examples(row, arguments), None)


def parse_sequence_example(
    serialized: Any,
    context_features: dict[str, Any] | None = None,
    sequence_features: dict[str, Any] | None = None,
    example_names: Any = None,
    name: str | None = None,
) -> tuple[dict, dict, dict]:
    """Parses a vector of serialized `tf.train.SequenceExample` messages: features of contexts, lists of features, and the
    number of steps of lists that are padded.
    """
    serialized = _native.string_tensor(serialized)
    if serialized.ndim != 1:
        raise ValueError(f"serialized must be a vector, got shape {serialized.shape}")
    return _parsed_sequences(serialized, context_features, sequence_features, serialized.shape[0])


def parse_single_sequence_example(
    serialized: Any,
    context_features: dict[str, Any] | None = None,
    sequence_features: dict[str, Any] | None = None,
    example_name: Any = None,
    name: str | None = None,
) -> tuple[dict, dict]:
    """Parses one serialized `tf.train.SequenceExample` message: the features of its context, and its lists of features."""
    return _parsed_sequences(_one_row(serialized), context_features, sequence_features, None)[:2]


def _one_row(serialized: Any) -> _native.Tensor:
    serialized = _native.string_tensor(serialized)
    if serialized.ndim:
        raise ValueError(f"serialized must be a scalar, got shape {serialized.shape}")
    return _native.string_reshape(serialized, [1])


#: What is passed to the parser for a feature: its key, type, shape and default.
_Argument = tuple[str, Any, "list[int] | None", Any]


def _arguments(key: str, feature: Any) -> list[_Argument]:
    """The features that are parsed for a feature of the caller: sparse ones are made of several."""
    dtype = dtypes.as_dtype(feature.dtype) if hasattr(feature, "dtype") else None
    if isinstance(feature, FixedLenFeature):
        return [(key, dtype, _sizes(feature.shape), feature.default_value)]
    if isinstance(feature, SparseFeature):
        keys, sizes = _index_keys(feature), _sparse_sizes(feature)
        if len(keys) != len(sizes):
            raise ValueError(
                f"size of the SparseFeature {key!r} must have one number for each index_key, got {len(sizes)} for {keys}"
            )
        indices = [(index, dtypes.int64, None, None) for index in keys]
        return [*indices, (feature.value_key, dtype, None, None)]
    if isinstance(feature, RaggedFeature):
        if feature.partitions:
            raise ValueError(f"partitions must be empty, got {feature.partitions!r} for {key!r}")
        return [(feature.value_key or key, dtype, None, None)]
    if isinstance(feature, (VarLenFeature, FixedLenSequenceFeature)):
        if isinstance(feature, FixedLenSequenceFeature) and not feature.allow_missing:
            raise ValueError(
                f"allow_missing of the FixedLenSequenceFeature {key!r} must be True in examples, got False"
            )
        return [(key, dtype, None, None)]
    raise TypeError(f"expected a feature of tf.io for {key!r}, such as FixedLenFeature, got {feature!r}")


def _index_keys(feature: SparseFeature) -> list[str]:
    return [feature.index_key] if isinstance(feature.index_key, str) else list(feature.index_key)


def _sparse_sizes(feature: SparseFeature) -> list[int]:
    return [int(size) for size in np.atleast_1d(np.asarray(feature.size))]


def _sizes(shape: Any) -> list[int]:
    dims = [shape] if isinstance(shape, int) else list(shape)
    if any(dim is None for dim in dims):
        raise ValueError("all sizes of a feature must be known: use a RaggedFeature or a VarLenFeature")
    return [int(dim) for dim in dims]


def _parsed(features: dict[str, Any] | None, parse: Callable[[list], list], rows: int | None) -> dict:
    """The features of `rows` examples, or of one."""
    if not features:
        raise ValueError("features must have at least one feature, got none")
    arguments = {key: _arguments(key, features[key]) for key in _in_order(features)}
    found = iter(parse([one for parts in arguments.values() for one in parts]))
    return {key: _value(key, features[key], [next(found) for _ in parts], rows) for key, parts in arguments.items()}


def _in_order(features: dict[str, Any]) -> list[str]:
    """The keys in the order of TensorFlow's result: sparse features, dense, ragged, those made of others; each by name."""

    def rank(key: str) -> tuple[int, str]:
        feature = features[key]
        if isinstance(feature, VarLenFeature):
            return 0, key
        if isinstance(feature, (FixedLenFeature, FixedLenSequenceFeature)):
            return 1, key
        return (2 if getattr(feature, "value_key", None) in (None, key) else 3), key

    return sorted(features, key=rank)


def _value(key: str, feature: Any, parts: list[Any], rows: int | None) -> Any:
    if isinstance(feature, FixedLenFeature):
        return parts[0] if rows is not None else raw.squeeze(parts[0], [0])
    values, counts = parts[-1][0], np.asarray(parts[-1][1])
    if isinstance(feature, SparseFeature):
        return _sparse(key, feature, parts, rows)
    if isinstance(feature, FixedLenSequenceFeature):
        padded, _ = _padded(key, feature, values, counts)
        return padded if rows is not None else raw.squeeze(padded, [0])
    if isinstance(feature, RaggedFeature):
        if rows is None:
            return values
        return RaggedTensor.from_row_lengths(values, counts).with_row_splits_dtype(feature.row_splits_dtype)
    if rows is None:
        return SparseTensor(np.arange(values.shape[0])[:, None], values, [values.shape[0]])
    indices = np.stack([np.repeat(np.arange(rows), counts), _places(counts)], 1)
    return SparseTensor(indices, values, [rows, int(counts.max(initial=0))])


def _places(counts: np.ndarray) -> np.ndarray:
    """0, 1, ... for each row of so many elements."""
    ends = np.cumsum(counts)
    return np.arange(int(counts.sum())) - np.repeat(ends - counts, counts)


def _padded(key: str, feature: FixedLenSequenceFeature, values: Any, counts: np.ndarray) -> tuple[Any, np.ndarray]:
    """Rows of `shape` of each example, padded to the most, and how many there are."""
    shape = _sizes(feature.shape)
    size = int(np.prod(shape, dtype=np.int64))
    if (counts % max(size, 1)).any():
        raise InvalidArgumentError(
            f"feature {key!r} must have a multiple of {size} values (shape {shape}), got {counts}"
        )
    lengths = counts // max(size, 1)
    most, rows = int(lengths.max(initial=0)), len(counts)
    default = ("" if values.dtype == dtypes.string else 0) if feature.default_value is None else feature.default_value
    pool = raw.concat([values, raw.reshape(_native.as_tensor(default, values.dtype), [1])], 0)
    positions = np.full((rows, most * size), int(counts.sum()), np.int64)
    positions[np.repeat(np.arange(rows), counts), _places(counts)] = np.arange(int(counts.sum()))
    return raw.gather(pool, positions.reshape([rows, most, *shape])), lengths


def _sparse(key: str, feature: SparseFeature, parts: list[Any], rows: int | None) -> SparseTensor:
    values, counts = parts[-1][0], np.asarray(parts[-1][1])
    sizes = _sparse_sizes(feature)
    columns = []
    for (index, found), index_key, size in zip(parts[:-1], _index_keys(feature), sizes, strict=True):
        if not np.array_equal(np.asarray(found), counts):
            raise InvalidArgumentError(
                f"feature {key!r}: {index_key!r} and {feature.value_key!r} must have equal lengths, "
                f"got {np.asarray(found).tolist()} and {counts.tolist()}"
            )
        column = np.asarray(index)
        if ((column < 0) | (column >= size)).any():
            raise InvalidArgumentError(f"feature {key!r}: indices must be in [0, {size}), got {column.tolist()}")
        columns.append(column)
    columns.insert(0, np.repeat(np.arange(len(counts)), counts))
    if not feature.already_sorted:
        order = np.lexsort(columns[::-1])
        columns, values = [column[order] for column in columns], raw.gather(values, order)
    if rows is None:
        return SparseTensor(np.stack(columns[1:], 1), values, sizes)
    return SparseTensor(np.stack(columns, 1), values, [len(counts), *sizes])


def _parsed_sequences(
    serialized: Any, context: dict[str, Any] | None, lists: dict[str, Any] | None, rows: int | None
) -> tuple[dict, dict, dict]:
    if not context and not lists:
        raise ValueError("context_features or sequence_features must have at least one feature, got none")
    lists = {key: lists[key] for key in _in_order(lists)} if lists else {}
    wanted = []
    for key, feature in lists.items():
        if not isinstance(feature, (FixedLenSequenceFeature, VarLenFeature, RaggedFeature)):
            raise TypeError(
                f"expected a FixedLenSequenceFeature, VarLenFeature or RaggedFeature for {key!r}, got {feature!r}"
            )
        wanted.append((getattr(feature, "value_key", None) or key, dtypes.as_dtype(feature.dtype), None, None))
    found: list[Any] = []

    def parse(arguments: list) -> list:
        features, parsed = _native.parse_sequence_examples(serialized, arguments, wanted)
        found.extend(parsed)
        return features

    features = _parsed(context, parse, rows) if context else dict.fromkeys(parse([]))
    sequences, lengths = {}, {}
    for (key, feature), (values, counts, steps) in zip(lists.items(), found):
        sequences[key], lengths[key] = _sequence(key, feature, values, np.asarray(counts), np.asarray(steps), rows)
    return features, sequences, {key: value for key, value in lengths.items() if value is not None}


def _sequence(
    key: str, feature: Any, values: Any, counts: np.ndarray, steps: np.ndarray, rows: int | None
) -> tuple[Any, Any]:
    """A list of features of all examples, and the number of its steps if it is padded."""
    if isinstance(feature, FixedLenSequenceFeature):
        size = int(np.prod(_sizes(feature.shape), dtype=np.int64))
        missing = np.flatnonzero(steps < 0)
        if len(missing) and not feature.allow_missing:
            raise InvalidArgumentError(
                f"example {missing[0]}: the feature list {key!r} is required, but the example has none: allow_missing=True"
            )
        if (counts != size).any():
            bad = int(np.flatnonzero(counts != size)[0])
            raise InvalidArgumentError(
                f"feature list {key!r}: a step must have {size} values (shape {_sizes(feature.shape)}), got {counts[bad]}"
            )
        padded, lengths = _padded(key, feature, values, np.maximum(steps, 0) * size)
        lengths = np.maximum(steps, 0)
        if rows is None:
            return raw.squeeze(padded, [0]), None
        return padded, _native.as_tensor(lengths.astype(np.int64))
    steps = np.maximum(steps, 0)
    if isinstance(feature, RaggedFeature):
        inner = RaggedTensor.from_row_lengths(values, counts)
        made = inner if rows is None else RaggedTensor.from_row_lengths(inner, steps)
        return made.with_row_splits_dtype(feature.row_splits_dtype), None
    columns = [np.repeat(_places(steps), counts), _places(counts)]
    shape = [int(steps.max(initial=0)), int(counts.max(initial=0))]
    if rows is not None:
        columns.insert(0, np.repeat(np.repeat(np.arange(rows), steps), counts))
        shape.insert(0, rows)
    return SparseTensor(np.stack(columns, 1), values, shape), None
