"""Functions of ragged tensors: `tf.ragged`."""

from __future__ import annotations

import builtins
import itertools
from typing import Any, NamedTuple

import numpy as np

from . import _namespace, _native, _raw_ops as raw, dtypes, nest
from .crossing import ragged_cross as cross, ragged_cross_hashed as cross_hashed
from .errors import InvalidArgumentError
from .ragged_tensor import RaggedTensor, RaggedTensorSpec, map_flat_values

__all__ = [
    "boolean_mask",
    "constant",
    "cross",
    "cross_hashed",
    "map_flat_values",
    "range",
    "row_splits_to_segment_ids",
    "segment_ids_to_row_splits",
    "stack",
    "stack_dynamic_partitions",
]


def constant(
    pylist: Any,
    dtype: Any = None,
    ragged_rank: int | None = None,
    inner_shape: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> Any:
    """Creates a ragged tensor from nested lists. All dimensions but the first are ragged, unless `ragged_rank` or
    `inner_shape` says otherwise.
    """
    depth, has_scalars = _depth(pylist), _has_scalars(pylist)
    if depth == 0 and not ragged_rank and not inner_shape:
        return _native.as_tensor(pylist, dtype)
    inner = None if inner_shape is None else tuple(inner_shape)
    if ragged_rank is None:
        ragged_rank = max(0, depth - 1 - len(inner or ()))
    elif ragged_rank < 0:
        raise ValueError(f"ragged_rank must be >= 0, got {ragged_rank}")
    elif inner is not None:
        needed = ragged_rank + len(inner) + 1
        is_whole = ragged_rank == 0 and depth == len(inner)
        if needed < depth or (has_scalars and needed != depth and not is_whole):
            text = f"ragged_rank + the rank of inner_shape + 1 must be {depth}, the depth of the list"
            raise ValueError(f"{text}, got ragged_rank {ragged_rank} and inner_shape {inner}")
    # A list without any scalar may be less deep: its rows are empty.
    if has_scalars and ragged_rank >= max(depth, 1):
        raise ValueError(f"ragged_rank must be < {depth}, the depth of the list, got {ragged_rank}")
    splits = []
    values = pylist
    for _ in [None] * ragged_rank:
        lengths = [_length(row) for row in values]
        splits.append(np.concatenate([[0], np.cumsum(np.array(lengths, np.int64))]).astype(np.int64))
        values = [item for row in values for item in row]
    if ragged_rank == 0 and inner is not None:
        # The whole shape of a tensor.
        return raw.reshape(_flat(pylist, dtype, inner[1:], depth), inner)
    flat = _flat(values, dtype, inner, depth - ragged_rank)
    if inner is not None:
        flat = raw.reshape(flat, [len(values), *inner])
    integers = dtypes.as_dtype(row_splits_dtype).as_numpy_dtype
    return RaggedTensor.from_nested_row_splits(flat, [one.astype(integers) for one in splits]) if splits else flat


def _length(row: Any) -> int:
    if not isinstance(row, (list, tuple, np.ndarray)):
        raise ValueError(f"all scalars must have the same nesting depth, got {row!r} beside lists")
    return len(row)


def _has_scalars(value: Any) -> bool:
    """Whether nested lists hold anything else than lists."""
    if isinstance(value, np.ndarray):
        return value.size > 0
    if not isinstance(value, (list, tuple)):
        return True
    return any(_has_scalars(part) for part in value)


def _flat(values: list, dtype: Any, inner_shape: Any, depth: int) -> _native.Tensor:
    if not len(values):
        shape = (0, *(() if inner_shape is None else tuple(inner_shape)))
        if dtype is not None and dtypes.as_dtype(dtype) == dtypes.string:
            return _native.string_tensor(np.empty(shape, object))
        return _native.own_tensor(np.zeros(shape, np.float32), dtype)
    if any(isinstance(value, (list, tuple)) for value in values) != (depth > 1):
        raise ValueError("all scalars must have the same nesting depth")
    try:
        return _native.own_tensor(values, dtype)
    except TypeError as error:
        raise ValueError(f"all scalars must have one type: {error}") from None


def _depth(value: Any) -> int:
    if isinstance(value, np.ndarray) and value.dtype != object:
        return value.ndim
    if not isinstance(value, (list, tuple, np.ndarray)):
        return 0
    return 1 + max((_depth(part) for part in value), default=0)


def _number_type(*values: Any) -> Any:
    """The widest of the types, as `tf.range` has it: int32, int64, float32, float64."""
    found = [_native.as_tensor(value).dtype for value in values]
    ranks = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64)
    return max(found, key=lambda dtype: ranks.index(dtype) if dtype in ranks else 0)


def range(
    starts: Any,
    limits: Any = None,
    deltas: Any = 1,
    dtype: Any = None,
    name: str | None = None,
    row_splits_dtype: Any = dtypes.int64,
) -> RaggedTensor:
    """Sequences of numbers, one per row: `tf.range(starts[i], limits[i], deltas[i])`."""
    if limits is None:
        starts, limits = 0, starts
    kind = _number_type(starts, limits, deltas) if dtype is None else dtypes.as_dtype(dtype)
    parts = np.broadcast_arrays(*(np.atleast_1d(np.asarray(value)) for value in (starts, limits, deltas)))
    rows = [np.arange(first, last, step) for first, last, step in zip(*parts)]
    values = np.concatenate(rows) if rows else np.zeros(0)
    made = RaggedTensor.from_row_lengths(_native.own_tensor(values, kind), [len(row) for row in rows])
    return made.with_row_splits_dtype(row_splits_dtype)


def stack(values: Any, axis: int = 0, name: str | None = None) -> Any:
    """Stacks tensors, or ragged tensors of one rank, along a new axis. One tensor is a list of one."""
    if isinstance(values, (RaggedTensor, _native.Array)):
        values = [values]
    parts = [value if isinstance(value, RaggedTensor) else _native.as_tensor(value) for value in values]
    if axis != 0:
        from ._ragged_ops import concat, expand_dims

        ragged = [part if isinstance(part, RaggedTensor) else RaggedTensor.from_tensor(part) for part in parts]
        return concat([expand_dims(part, axis) for part in ragged], axis)
    if not any(isinstance(part, RaggedTensor) for part in parts):
        if not any(part.shape.rank for part in parts):
            return raw.stack(parts, 0)
        return RaggedTensor.from_row_lengths(raw.concat(parts, 0), [part.shape[0] for part in parts])
    flat = [part if isinstance(part, RaggedTensor) else RaggedTensor.from_tensor(part) for part in parts]
    inner = RaggedTensor.from_row_lengths(
        _joined([part.values for part in flat]), np.concatenate([np.diff(np.asarray(part.row_splits)) for part in flat])
    )
    return RaggedTensor.from_row_lengths(inner, [len(part) for part in flat])


def _joined(parts: list) -> Any:
    if not isinstance(parts[0], RaggedTensor):
        return raw.concat(parts, 0)
    lengths = np.concatenate([np.diff(np.asarray(part.row_splits)) for part in parts])
    return RaggedTensor.from_row_lengths(_joined([part.values for part in parts]), lengths)


def boolean_mask(data: Any, mask: Any, name: str | None = None) -> Any:
    """The elements of each row where a mask is true."""
    if not isinstance(data, RaggedTensor):
        data = RaggedTensor.from_tensor(data) if _native.as_tensor(data).ndim > 1 else data
    if not isinstance(mask, RaggedTensor):
        mask = _native.as_tensor(mask)
        if mask.ndim and mask.dtype != dtypes.bool:
            raise TypeError(f"mask must be bool, got {mask.dtype.name}")
        if mask.ndim == 1:
            if len(mask) != len(data):
                raise InvalidArgumentError(f"mask must have one element per row, {len(data)}, got {len(mask)}")
            kept = np.flatnonzero(np.asarray(mask))
            return _taken(data, kept) if isinstance(data, RaggedTensor) else raw.gather(data, kept)
        mask = RaggedTensor.from_tensor(mask)
    if not isinstance(data, RaggedTensor):
        raise ValueError(f"data must have the rows of the mask, got shape {data.shape}")
    if not np.array_equal(np.asarray(mask.row_splits), np.asarray(data.row_splits)):
        raise InvalidArgumentError("data and mask must have equal row lengths")
    if isinstance(mask.values, RaggedTensor):
        return data.with_values(boolean_mask(data.values, mask.values))
    keep = np.asarray(mask.flat_values)
    splits = np.asarray(mask.row_splits)
    lengths = [int(keep[start:end].sum()) for start, end in itertools.pairwise(splits)]
    return RaggedTensor.from_row_lengths(_taken(data.values, np.flatnonzero(keep)), lengths)


def _integers(values: np.ndarray, dtype: Any, like: Any) -> _native.Tensor:
    """Integers of a type; by default that of a tensor, or int64 if it is something else."""
    if dtype is None:
        dtype = like.dtype if isinstance(like, _native.Tensor) else dtypes.int64
    kind = dtypes.as_dtype(dtype)
    if kind not in (dtypes.int32, dtypes.int64):
        raise ValueError(f"out_type must be int32 or int64, got {kind.name}")
    return _native.own_tensor(values.astype(kind.as_numpy_dtype))


def row_splits_to_segment_ids(splits: Any, name: str | None = None, out_type: Any = None) -> _native.Tensor:
    """The row of each value."""
    ends = np.asarray(_native.as_tensor(splits))
    if ends.ndim != 1 or not len(ends) or ends.dtype.kind != "i":
        raise ValueError(f"splits must be integers of rank 1, at least one, got {ends.dtype}{list(ends.shape)}")
    if ends[0] or (np.diff(ends) < 0).any():
        raise InvalidArgumentError(f"splits must begin with 0 and not decrease, got {ends.tolist()}")
    return _integers(np.repeat(np.arange(len(ends) - 1), np.diff(ends)), out_type, splits)


def segment_ids_to_row_splits(
    segment_ids: Any, num_segments: Any = None, out_type: Any = None, name: str | None = None
) -> _native.Tensor:
    """Where each row begins, and the last one ends, of the row of each value."""
    rows = np.asarray(_native.as_tensor(segment_ids))
    if rows.ndim != 1 or (np.diff(rows) < 0).any() or (rows < 0).any():
        raise InvalidArgumentError(f"segment_ids must be >= 0 and in ascending order, got {rows.tolist()}")
    count = int(rows.max(initial=-1)) + 1
    if num_segments is not None:
        if int(num_segments) < count:
            raise InvalidArgumentError(f"num_segments must be >= {count}, got {int(num_segments)}")
        count = int(num_segments)
    lengths = np.bincount(rows, minlength=count) if len(rows) else np.zeros(count, np.int64)
    return _integers(np.concatenate([[0], np.cumsum(lengths)]), out_type, segment_ids)


def stack_dynamic_partitions(data: Any, partitions: Any, num_partitions: Any, name: str | None = None) -> RaggedTensor:
    """Row `i` has the values whose partition is `i`, in their order."""
    places = np.asarray(_native.as_tensor(partitions))
    count, rank = int(num_partitions), places.ndim
    if ((places < 0) | (places >= count)).any():
        raise InvalidArgumentError(f"partitions must be in [0, {count}), got {places.tolist()}")
    data = data if isinstance(data, RaggedTensor) else _native.as_tensor(data)
    if not isinstance(data, RaggedTensor):
        if list(data.shape[:rank]) != list(places.shape):
            raise ValueError(
                f"data must begin with the shape of partitions, got {list(data.shape)} and {list(places.shape)}"
            )
        data = raw.reshape(data, [-1, *data.shape[rank:]])
    flat = places.reshape(-1)
    order = np.argsort(flat, kind="stable")
    return RaggedTensor.from_row_lengths(_taken(data, order), np.bincount(flat, minlength=count).astype(places.dtype))


def _taken(data: Any, order: np.ndarray) -> Any:
    """The rows of a tensor of either kind, in another order."""
    if not isinstance(data, RaggedTensor):
        return raw.gather(data, order)
    splits = np.asarray(data.row_splits)
    places = [np.arange(splits[row], splits[row + 1]) for row in order]
    flat = np.concatenate(places) if places else np.zeros(0, np.int64)
    return RaggedTensor.from_row_lengths(_taken(data.values, flat), [len(one) for one in places])


def has_strings(structure: Any) -> bool:
    """Whether a structure has strings, ragged tensors or extension types: a loop of the engine cannot compute their rows."""
    return any(
        isinstance(leaf, (RaggedTensor, _native.StringTensor)) or hasattr(type(leaf), "_taut_row")
        for leaf in nest.flatten(structure)
    )


def map_rows(function: Any, elems: Any, signature: Any = None) -> Any:
    """Applies a function to each row, op by op. Results of different lengths are stacked to a ragged tensor, and so are
    those for which the signature says so.
    """
    flat = nest.flatten(elems)
    count = flat[0]._taut_rows() if hasattr(type(flat[0]), "_taut_rows") else len(flat[0])
    rows = [nest.pack_sequence_as(elems, [_row(leaf, i) for leaf in flat]) for i in builtins.range(count)]
    made = [function(row) for row in rows]
    if not made:
        raise ValueError("elems must have at least one row, got none")
    columns = [list(column) for column in zip(*(nest.flatten(one) for one in made))]
    specs = [None] * len(columns) if signature is None else nest.flatten(signature)
    stacks = [
        stack(column) if isinstance(spec, RaggedTensorSpec) else _stacked(column)
        for column, spec in itertools.zip_longest(columns, specs)
    ]
    return nest.pack_sequence_as(made[0], stacks)


def _row(leaf: Any, number: int) -> Any:
    return leaf._taut_row(number) if hasattr(type(leaf), "_taut_row") else leaf[number]


def _stacked(parts: list[Any]) -> Any:
    if hasattr(type(parts[0]), "_taut_stacked"):
        return parts[0]._taut_stacked(parts)
    tensors = [part if isinstance(part, RaggedTensor) else _native.as_tensor(part) for part in parts]
    is_equal = len({tuple(tensor.shape) for tensor in tensors if not isinstance(tensor, RaggedTensor)}) == 1
    if is_equal and not any(isinstance(tensor, RaggedTensor) for tensor in tensors):
        return raw.stack(tensors, 0)
    return stack(tensors)


class RaggedFillEmptyRows(NamedTuple):
    """The results of `tf.ragged_fill_empty_rows`."""

    output_value_rowids: Any
    output_values: Any
    empty_row_indicator: Any
    reverse_index_map: Any


class RaggedFillEmptyRowsGrad(NamedTuple):
    """The results of `tf.ragged_fill_empty_rows_grad`."""

    d_values: Any
    d_default_value: Any


def ragged_fill_empty_rows(
    value_rowids: Any, values: Any, nrows: Any, default_value: Any, name: str | None = None
) -> RaggedFillEmptyRows:
    """Gives each row without values one, the default: the row of each new value, the new values, which rows were empty,
    and where each old value is among the new ones.
    """
    rowids, count = np.asarray(value_rowids, np.int64), int(np.asarray(nrows))
    values = _native.as_tensor(values)
    if rowids.ndim != 1 or values.ndim != 1 or len(rowids) != values.shape[0]:
        raise InvalidArgumentError(
            f"value_rowids and values must be vectors of equal lengths, got shapes {list(rowids.shape)} and {values.shape}"
        )
    if ((rowids < 0) | (rowids >= count)).any():
        raise InvalidArgumentError(f"value_rowids must be in [0, {count}), got {rowids.tolist()}")
    empty = np.bincount(rowids, minlength=count) == 0
    rows = np.concatenate([rowids, np.flatnonzero(empty)])
    order = np.argsort(rows, kind="stable")
    default = raw.reshape(_native.as_tensor(default_value, values.dtype), [1])
    # The last value is the default: empty rows take it.
    sources = np.minimum(order, len(rowids))
    places = np.argsort(order, kind="stable")[: len(rowids)]
    return RaggedFillEmptyRows(
        _native.as_tensor(rows[order]),
        raw.gather(raw.concat([values, default], 0), sources),
        _native.as_tensor(empty),
        _native.as_tensor(places),
    )


def ragged_fill_empty_rows_grad(
    reverse_index_map: Any, grad_values: Any, name: str | None = None
) -> RaggedFillEmptyRowsGrad:
    """The gradients of `tf.ragged_fill_empty_rows` with respect to the values, and to the default: the sum over all rows
    that were empty.
    """
    places, grads = np.asarray(reverse_index_map, np.int64), _native.as_tensor(grad_values)
    if ((places < 0) | (places >= grads.shape[0])).any():
        raise InvalidArgumentError(f"reverse_index_map must be in [0, {grads.shape[0]}), got {places.tolist()}")
    added = np.setdiff1d(np.arange(grads.shape[0]), places)
    return RaggedFillEmptyRowsGrad(raw.gather(grads, places), raw.sum(raw.gather(grads, added)))


__getattr__, __dir__ = _namespace.plain(__name__)
