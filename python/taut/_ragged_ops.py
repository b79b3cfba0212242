"""Functions of tensors for ragged tensors: what `tf.concat`, `tf.reduce_sum`, `tf.abs` and others make of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native, _raw_ops as raw, dtypes
from ._ragged_broadcast import aligned
from .errors import InvalidArgumentError
from .ragged_tensor import RaggedTensor

HANDLERS: dict[str, Callable] = {}


def handles(*names: str) -> Callable:
    """Registers a function of the arguments in the order of the parameters of functions with these keys."""

    def decorate(handler: Callable) -> Callable:
        HANDLERS.update(dict.fromkeys(names, handler))
        return handler

    return decorate


def binary(function: Any, x: Any, y: Any) -> RaggedTensor:
    """A function of two operands, element by element, of which one or both are ragged."""
    if isinstance(x, RaggedTensor):
        rows, other = aligned(x, y)
        return rows.with_flat_values(function(rows.flat_values, other))
    rows, other = aligned(y, x)
    return rows.with_flat_values(function(other, rows.flat_values))


# Axes and rows.


def rank(x: Any) -> int:
    """The number of dimensions of a ragged tensor or a tensor."""
    return x.ragged_rank + x.flat_values.ndim if isinstance(x, RaggedTensor) else _native.as_tensor(x).ndim


def checked_axis(axis: Any, count: int, what: str) -> int:
    """An axis in [0, count)."""
    found = int(axis)
    if not -count <= found < count:
        raise ValueError(f"{what}: axis must be in [{-count}, {count}), got {found}\n  at {_native.calling_line()}")
    return found % count


def splits_of(x: RaggedTensor) -> np.ndarray:
    return np.asarray(x.row_splits, np.int64)


def _take(values: Any, positions: Any) -> Any:
    """The rows at positions."""
    if isinstance(values, RaggedTensor):
        return values._rows_at(np.asarray(positions, np.int64))
    return raw.gather(values, positions)


def as_ragged(value: Any, ragged_rank: int) -> Any:
    """A tensor, or a ragged tensor, with this number of ragged dimensions: uniform dimensions become ragged ones."""
    if not ragged_rank:
        return value
    if isinstance(value, RaggedTensor):
        return RaggedTensor(as_ragged(value.values, ragged_rank - 1), value.row_splits)
    rows, width, *inner = value.shape
    flat = raw.reshape(value, [rows * width, *inner])
    return RaggedTensor.from_row_lengths(as_ragged(flat, ragged_rank - 1), np.full(rows, width))


def _unified(values: Any, what: str) -> list:
    """Tensors as ragged tensors of one rank and one number of ragged dimensions."""
    parts = [value if isinstance(value, RaggedTensor) else _native.as_tensor(value) for value in values]
    if len({rank(part) for part in parts}) > 1:
        raise ValueError(
            f"{what}: expected tensors of one rank, got {[rank(part) for part in parts]}\n  at {_native.calling_line()}"
        )
    deepest = max(part.ragged_rank for part in parts if isinstance(part, RaggedTensor))
    return [as_ragged(part, deepest) for part in parts]


# Joining, splitting and reordering.


@handles("concat", "shaping.concat")
def concat(values: Any, axis: Any = 0) -> Any:
    """Concatenates along an axis: rows after rows, or each row with the rows of the others."""
    values = values if isinstance(values, (list, tuple)) else [values]
    return joined(_unified(values, "concat"), checked_axis(axis, rank(_first(values)), "concat"))


def _first(values: Any) -> Any:
    return next(value for value in values if isinstance(value, RaggedTensor))


def joined(parts: list, axis: int) -> Any:
    """Concatenates tensors of one kind and rank."""
    if not isinstance(parts[0], RaggedTensor):
        return raw.concat(parts, axis)
    if axis == 0:
        lengths = np.concatenate([np.diff(splits_of(part)) for part in parts])
        return with_splits_of(
            parts[0], RaggedTensor.from_row_lengths(joined([part.values for part in parts], 0), lengths)
        )
    if len({len(part) for part in parts}) > 1:
        raise InvalidArgumentError(
            f"concat: expected equal numbers of rows, got {[len(part) for part in parts]}\n  at {_native.calling_line()}"
        )
    if axis > 1:
        if any(not np.array_equal(splits_of(part), splits_of(parts[0])) for part in parts):
            raise InvalidArgumentError(
                f"concat: expected equal row lengths before axis {axis}\n  at {_native.calling_line()}"
            )
        return parts[0].with_values(joined([part.values for part in parts], axis - 1))
    pool = joined([part.values for part in parts], 0)
    firsts = np.concatenate([[0], np.cumsum([int(splits_of(part)[-1]) for part in parts])[:-1]])
    pieces = [
        np.arange(start, end) + first
        for row in range(len(parts[0]))
        for first, part in zip(firsts, parts)
        for start, end in [splits_of(part)[row : row + 2].tolist()]
    ]
    positions = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
    lengths = np.sum([np.diff(splits_of(part)) for part in parts], 0)
    return with_splits_of(parts[0], RaggedTensor.from_row_lengths(_take(pool, positions), lengths))


def with_splits_of(one: RaggedTensor, made: RaggedTensor) -> RaggedTensor:
    """A result with row splits of an argument's type."""
    kind = one.row_splits.dtype
    return made if made.row_splits.dtype == kind else made.with_row_splits_dtype(kind)


@handles("stack", "shaping.stack")
def stack(values: Any, axis: Any = 0) -> Any:
    """Stacks along a new axis."""
    if isinstance(values, RaggedTensor):
        return values
    parts = _unified(values, "stack")
    axis = checked_axis(axis, rank(parts[0]) + 1, "stack")
    return joined(_unified([expand_dims(part, axis) for part in parts], "stack"), axis)


@handles("expand_dims")
def expand_dims(input: Any, axis: Any) -> Any:
    """Adds an axis of size one."""
    if not isinstance(input, RaggedTensor):
        return raw.expand_dims(input, axis)
    axis = checked_axis(axis, rank(input) + 1, "expand_dims")
    if axis == 0:
        return RaggedTensor(input, _native.own_tensor(np.array([0, len(input)]), input.row_splits.dtype), len(input))
    if axis == 1:
        return RaggedTensor(input, _native.own_tensor(np.arange(len(input) + 1), input.row_splits.dtype), 1)
    return input.with_values(expand_dims(input.values, axis - 1))


@handles("squeeze", "shaping.squeeze")
def squeeze(input: RaggedTensor, axis: Any = None) -> Any:
    """Removes axes of size one. The axes must be given."""
    if axis is None:
        raise ValueError(f"squeeze: axis must be given for a ragged tensor\n  at {_native.calling_line()}")
    made: Any = input
    for one in sorted(
        {checked_axis(one, rank(input), "squeeze") for one in np.atleast_1d(np.asarray(axis)).tolist()}, reverse=True
    ):
        made = _squeezed(made, one)
    return made


def _squeezed(x: Any, axis: int) -> Any:
    if not isinstance(x, RaggedTensor):
        return raw.squeeze(x, [axis])
    if axis == 0:
        if len(x) != 1:
            raise InvalidArgumentError(f"squeeze: axis 0 must have size 1, got {len(x)}\n  at {_native.calling_line()}")
        return x[0]
    if axis == 1:
        if (np.diff(splits_of(x)) != 1).any():
            raise InvalidArgumentError(f"squeeze: all rows must have length 1\n  at {_native.calling_line()}")
        return x.values
    return x.with_values(_squeezed(x.values, axis - 1))


@handles("reverse")
def reverse(tensor: RaggedTensor, axis: Any) -> RaggedTensor:
    """Reverses the order along axes: of the rows, or within each row."""
    made: Any = tensor
    for one in np.atleast_1d(np.asarray(axis)).tolist():
        made = _reversed(made, checked_axis(one, rank(tensor), "reverse"))
    return made


def _reversed(x: Any, axis: int) -> Any:
    if not isinstance(x, RaggedTensor):
        return raw.reverse(x, [axis])
    if axis == 0:
        return with_splits_of(x, x._rows_at(np.arange(len(x))[::-1]))
    if axis == 1:
        pieces = [np.arange(start, end)[::-1] for start, end in zip(splits_of(x), splits_of(x)[1:])]
        return x.with_values(_take(x.values, np.concatenate(pieces) if pieces else np.zeros(0, np.int64)))
    return x.with_values(_reversed(x.values, axis - 1))


@handles("tile")
def tile(input: RaggedTensor, multiples: Any) -> RaggedTensor:
    """Repeats along each axis."""
    counts = np.asarray(multiples).tolist()
    if len(counts) != rank(input):
        raise ValueError(f"tile: expected {rank(input)} multiples, got {len(counts)}\n  at {_native.calling_line()}")
    made: Any = input
    for axis, count in enumerate(counts):
        made = joined([made] * count, axis) if count else _emptied(made, axis)
    return made


def _emptied(x: Any, axis: int) -> Any:
    """A ragged tensor without elements along an axis."""
    key = (slice(None),) * axis + (slice(0, 0),)
    return x[key]


@handles("shaping.split")
def split(value: RaggedTensor, num_or_size_splits: Any, axis: Any = 0, _num: Any = None) -> list:
    """Splits the rows into parts of equal or given numbers of rows; an inner axis must be uniform in its sizes."""
    axis = checked_axis(axis, rank(value), "split")
    if axis:
        raise ValueError(f"split: axis must be 0 for a ragged tensor, got {axis}\n  at {_native.calling_line()}")
    sizes = np.asarray(num_or_size_splits)
    if not sizes.ndim:
        if len(value) % int(sizes):
            raise ValueError(f"split: {len(value)} rows cannot be split into {int(sizes)} equal parts")
        sizes = np.full(int(sizes), len(value) // int(sizes))
    ends = np.cumsum(sizes)
    if ends[-1] != len(value):
        raise InvalidArgumentError(f"split: sizes must sum to {len(value)}, got {sizes.tolist()}")
    return [with_splits_of(value, value[int(end - size) : int(end)]) for end, size in zip(ends, sizes)]


@handles("random.shuffle")
def shuffle(value: RaggedTensor, seed: int | None = None) -> RaggedTensor:
    """The rows in random order."""
    from ._ops import random

    order = random.shuffle(_native.own_tensor(np.arange(len(value))), seed)
    return value._rows_at(np.asarray(order))


# Selecting.


@handles("indexing.gather")
def gather(params: Any, indices: Any, _validate_indices: Any = None, axis: Any = None, batch_dims: int = 0) -> Any:
    """Selects rows; with `batch_dims`, elements of each row."""
    if isinstance(batch_dims, int) and batch_dims < 0:
        batch_dims += indices.ragged_rank + 1 if isinstance(indices, RaggedTensor) else _native.as_tensor(indices).ndim
    axis = batch_dims if axis is None else checked_axis(axis, rank(_tensor(params)), "gather")
    if batch_dims:
        if axis != batch_dims:
            raise ValueError(f"gather: axis must be batch_dims ({batch_dims}) for ragged tensors, got {axis}")
        return _batch_gather(_tensor(params), _tensor(indices), batch_dims)
    if axis:
        if not isinstance(params, RaggedTensor) or isinstance(indices, RaggedTensor):
            raise ValueError(f"gather: axis must be 0 for ragged indices, got {axis}\n  at {_native.calling_line()}")
        if axis > 1:
            return params.with_values(_plain_gather(params.values, indices, axis - 1))
        index = np.asarray(_native.as_tensor(indices))
        starts, lengths = splits_of(params)[:-1], np.diff(splits_of(params))
        _check_indices(index[None, ...].reshape(1, -1), lengths[:, None])
        places = starts.reshape((-1,) + (1,) * index.ndim) + index
        return _nested(_take(params.values, places.reshape(-1)), places.shape)
    if isinstance(indices, RaggedTensor):
        return indices.with_flat_values(gather(params, indices.flat_values))
    if not isinstance(params, RaggedTensor):
        return raw.gather(params, indices)
    index = np.asarray(_native.as_tensor(indices), np.int64)
    _check_indices(index, len(params))
    if not index.ndim:
        return params[int(index)]
    return _nested(with_splits_of(params, params._rows_at(index.reshape(-1))), index.shape)


def _plain_gather(values: Any, indices: Any, axis: int) -> Any:
    return gather(values, indices, axis=axis) if isinstance(values, RaggedTensor) else raw.gather(values, indices, axis)


def _tensor(value: Any) -> Any:
    return value if isinstance(value, RaggedTensor) else _native.as_tensor(value)


def _nested(values: Any, shape: tuple) -> Any:
    """Rows in a shape: all of its axes but the last are uniform."""
    for size, count in zip(shape[:0:-1], np.cumprod(shape[:-1])[::-1]):
        if not isinstance(values, RaggedTensor):
            return raw.reshape(values, [*shape, *values.shape[1:]])
        values = RaggedTensor(values, _native.own_tensor(np.arange(count + 1) * size, dtypes.int64))
    return values


def _check_indices(index: Any, limit: Any) -> None:
    outside = (index < 0) | (index >= limit)
    if np.any(outside):
        wrong = np.broadcast_to(index, outside.shape)[outside].flat[0]
        raise InvalidArgumentError(
            f"gather: indices must be in the range of their rows, got {int(wrong)}\n  at {_native.calling_line()}"
        )


def _batch_gather(params: Any, indices: Any, batch_dims: int) -> Any:
    """Elements of each row, by indices of each row."""
    depth = max(one.ragged_rank for one in (params, indices) if isinstance(one, RaggedTensor))
    if batch_dims > 1:
        outer = as_ragged(params, depth), as_ragged(indices, depth)
        if not np.array_equal(splits_of(outer[0]), splits_of(outer[1])):
            raise InvalidArgumentError("gather: params and indices must have equal rows along the batch axes")
        return outer[1].with_values(_batch_gather(outer[0].values, outer[1].values, batch_dims - 1))
    rows = as_ragged(params, 1)
    index: Any = indices if isinstance(indices, RaggedTensor) else None
    ids = np.asarray(indices.flat_values if index is not None else indices, np.int64)
    if len(rows) != (len(index) if index is not None else ids.shape[0]):
        raise InvalidArgumentError("gather: params and indices must have equal numbers of rows")
    owner = np.arange(len(rows))
    if index is None:
        owner = np.broadcast_to(owner.reshape((-1,) + (1,) * (ids.ndim - 1)), ids.shape)
    else:
        for splits in index.nested_row_splits:
            owner = np.repeat(owner, np.diff(np.asarray(splits)))
        owner = np.broadcast_to(owner.reshape((-1,) + (1,) * (ids.ndim - 1)), ids.shape)
    starts, lengths = splits_of(rows)[:-1], np.diff(splits_of(rows))
    _check_indices(ids, lengths[owner])
    places = starts[owner] + ids
    if index is not None:
        return index.with_flat_values(gather(rows.values, places))
    return _nested(_take(rows.values, places.reshape(-1)), places.shape)


@handles("indexing.gather_nd")
def gather_nd(params: Any, indices: Any, batch_dims: int = 0, bad_indices_policy: str = "") -> Any:
    """Selects by coordinates."""
    if bad_indices_policy not in ("", "DEFAULT", "ERROR"):
        raise ValueError("gather_nd: bad_indices_policy must be 'ERROR' for ragged tensors")
    if batch_dims:
        raise ValueError("gather_nd: batch_dims must be 0 for ragged tensors")
    if isinstance(indices, RaggedTensor):
        return indices.with_values(gather_nd(params, indices.values))
    if not isinstance(params, RaggedTensor):
        return raw.gather_nd(params, indices)
    index = np.asarray(_native.as_tensor(indices), np.int64)
    flat = index.reshape(-1, index.shape[-1])
    values: Any = params
    places = np.zeros(len(flat), np.int64)
    for depth in range(flat.shape[1]):
        if not isinstance(values, RaggedTensor):
            rest = np.concatenate([places[:, None], flat[:, depth:]], 1)
            return raw.reshape(
                raw.gather_nd(values, rest), [*index.shape[:-1], *values.shape[1 + flat.shape[1] - depth :]]
            )
        if depth == 0:
            _check_indices(flat[:, 0], len(params))
            places = flat[:, 0]
            continue
        splits = splits_of(values)
        _check_indices(flat[:, depth], np.diff(splits)[places])
        places = splits[:-1][places] + flat[:, depth]
        values = values.values
    return _nested(_take(values, places), index.shape[:-1])


@handles("indexing.where")
def where(condition: Any, x: Any = None, y: Any = None) -> Any:
    """Selects element by element; without `x` and `y`, returns the coordinates of true elements."""
    if x is None and y is None:
        from ._ragged_broadcast import _indices

        mask = np.asarray(condition.flat_values)
        columns = _indices(condition)
        inner = np.argwhere(mask)
        found = [column[inner[:, 0]] for column in columns] + list(inner[:, 1:].T)
        return _native.own_tensor(np.stack(found, 1).astype(np.int64))
    if x is None or y is None:
        raise ValueError("where: x and y must both be given, or none of them")
    rows = _first((condition, x, y))
    flat = [aligned(rows, one)[1] for one in (condition, x, y)]
    return rows.with_flat_values(raw.where(*flat))


@handles("indexing.boolean_mask")
def boolean_mask(tensor: Any, mask: Any, axis: Any = None) -> Any:
    """The elements where a mask is true."""
    from . import ragged

    if axis not in (None, 0):
        raise ValueError(f"boolean_mask: axis must be 0 for ragged tensors, got {axis}")
    return ragged.boolean_mask(tensor, mask)


@handles("indexing.dynamic_partition")
def dynamic_partition(data: RaggedTensor, partitions: Any, num_partitions: Any) -> list:
    """The rows by partition number."""
    from . import ragged

    made = ragged.stack_dynamic_partitions(data, partitions, num_partitions)
    return [made[i] for i in range(int(num_partitions))]


@handles("nn.embedding_lookup")
def embedding_lookup(params: Any, ids: RaggedTensor, max_norm: Any = None) -> RaggedTensor:
    """Rows of a table, by ragged ids."""
    from ._ops import nn

    return ids.with_flat_values(nn.embedding_lookup(params, ids.flat_values, max_norm))


@handles("creation.one_hot")
def one_hot(
    indices: RaggedTensor, depth: Any, on_value: Any = None, off_value: Any = None, axis: Any = None, dtype: Any = None
) -> RaggedTensor:
    """A one-hot row for each index, along a new last axis."""
    from ._ops import creation

    if axis not in (None, -1, rank(indices)):
        raise ValueError(f"one_hot: axis must be the last one for ragged indices, got {axis}")
    return indices.with_flat_values(creation.one_hot(indices.flat_values, depth, on_value, off_value, -1, dtype))


# Sizes.


@handles("reshape")
def reshape(tensor: Any, shape: Any) -> Any:
    """The values in another shape."""
    return raw.reshape(tensor.flat_values if isinstance(tensor, RaggedTensor) else tensor, shape)


@handles("broadcast_to")
def broadcast_to(input: Any, shape: Any) -> Any:
    """Repeats to a shape, which must be that of a ragged tensor."""
    if not hasattr(type(shape), "__taut_dispatch__"):
        raise ValueError(f"broadcast_to: shape must be that of a ragged tensor (tf.shape), got {shape}")
    return shape.__taut_dispatch__(raw.broadcast_to, (input, shape), {}, TypeError("broadcast_to"))


@handles("tensor.size")
def size(input: RaggedTensor, out_type: Any = None) -> _native.Tensor:
    """The number of elements."""
    return _native.own_tensor(np.array(input.flat_values.size), out_type or dtypes.int32)


@handles("tensor.rank")
def rank_tensor(input: RaggedTensor) -> _native.Tensor:
    """The number of dimensions."""
    return _native.own_tensor(np.array(rank(input)), dtypes.int32)


@handles("elementwise.add_n")
def add_n(inputs: Any) -> RaggedTensor:
    """Adds tensors of equal rows."""
    first, *rest = inputs
    for one in rest:
        first = binary(raw.add, first, one)
    return first
