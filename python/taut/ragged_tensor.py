"""Ragged tensors: rows of different lengths, as values and row splits."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _native, _raw_ops as raw, dtypes
from ._ragged_broadcast import aligned
from .errors import InvalidArgumentError, InvalidIndexError
from .shape import TensorShape
from .sparse_tensor import refuse_batch
from .spec import TensorSpec
from .type_spec import TypeSpec


class RaggedTensor:
    """Rows of different lengths: the values of all rows, and where each row begins and ends in them.

    The values are a tensor, or a ragged tensor with one ragged dimension less.

    >>> import taut as tf
    >>> rows = tf.ragged.constant([[1, 2], [], [3]])
    >>> rows.row_splits.numpy().tolist(), rows.to_tensor().numpy().tolist()
    ([0, 2, 2, 3], [[1, 2], [0, 0], [3, 0]])
    """

    __array_priority__ = 100

    def __init__(self, values: Any, row_splits: Any, uniform_row_length: int | None = None) -> None:
        self._values = values
        self._row_splits = row_splits
        self._uniform_row_length = uniform_row_length

    def __taut_tensor__(self) -> Any:
        raise ValueError(
            "expected a tensor, got a ragged tensor\n  help: to_tensor pads rows to one length; tf.ragged.map_flat_values "
            "applies a function to the values"
        )

    def __taut_shape__(self, out_type: Any) -> Any:
        """What `tf.shape` returns."""
        from .ragged_shape import DynamicRaggedShape

        return DynamicRaggedShape.from_tensor(self, dtypes.int32 if out_type is None else out_type)

    def __taut_dispatch__(self, function: Any, args: tuple, kwargs: dict[str, Any], _error: Exception) -> Any:
        from ._ragged_dispatch import dispatch

        return dispatch(function, args, kwargs)

    # Construction.

    @classmethod
    def from_row_splits(
        cls, values: Any, row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row `i` is `values[row_splits[i]:row_splits[i + 1]]`."""
        values = values if isinstance(values, RaggedTensor) else _native.as_tensor(values)
        _check_partition("row_splits", row_splits)
        splits = np.asarray(row_splits, np.int32 if _is_int32(row_splits) else np.int64)
        count = _rows(values)
        if splits.ndim != 1 or not len(splits) or splits[0] != 0 or (np.diff(splits) < 0).any() or splits[-1] != count:
            raise InvalidArgumentError(
                f"row_splits must begin with 0, must not decrease and must end with {count}, got {splits.tolist()}"
            )
        return cls(values, _native.own_tensor(splits))

    @classmethod
    def from_row_lengths(
        cls, values: Any, row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row `i` has the next `row_lengths[i]` values."""
        _check_partition("row_lengths", row_lengths)
        lengths = np.asarray(row_lengths, np.int64)
        if (lengths < 0).any():
            raise InvalidArgumentError(f"row_lengths must be >= 0, got {lengths.tolist()}")
        return cls.from_row_splits(values, _typed_splits([[0], np.cumsum(lengths)], row_lengths))

    @classmethod
    def from_row_starts(
        cls, values: Any, row_starts: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row `i` begins at `row_starts[i]` and ends where the next one begins."""
        values = values if isinstance(values, RaggedTensor) else _native.as_tensor(values)
        _check_partition("row_starts", row_starts)
        return cls.from_row_splits(values, _typed_splits([np.asarray(row_starts), [_rows(values)]], row_starts))

    @classmethod
    def from_row_limits(
        cls, values: Any, row_limits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Row `i` ends at `row_limits[i]` and begins where the one before ends."""
        _check_partition("row_limits", row_limits)
        return cls.from_row_splits(values, _typed_splits([[0], np.asarray(row_limits)], row_limits))

    @classmethod
    def from_value_rowids(
        cls, values: Any, value_rowids: Any, nrows: Any = None, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Value `i` is in row `value_rowids[i]`; the ids do not decrease."""
        _check_partition("value_rowids", value_rowids)
        ids = np.asarray(value_rowids, np.int64)
        if len(ids) and ids[0] < 0:
            raise InvalidArgumentError(f"value_rowids must be >= 0, got {ids.tolist()}")
        if (np.diff(ids) < 0).any():
            raise InvalidArgumentError(f"value_rowids must not decrease, got {ids.tolist()}")
        count = (int(ids[-1]) + 1 if len(ids) else 0) if nrows is None else int(nrows)
        if len(ids) and ids[-1] >= count:
            raise InvalidArgumentError(f"value_rowids must be < nrows ({count}), got {int(ids[-1])}")
        lengths = np.bincount(ids, minlength=count)
        return cls.from_row_lengths(values, lengths.astype(np.int32) if _is_int32(value_rowids) else lengths)

    @classmethod
    def from_uniform_row_length(
        cls, values: Any, uniform_row_length: Any, nrows: Any = None, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Every row has `uniform_row_length` values."""
        values = values if isinstance(values, RaggedTensor) else _native.as_tensor(values)
        length, count = int(uniform_row_length), _rows(values)
        rows = int(nrows) if nrows is not None else count // length if length else 0
        if rows * length != count:
            raise InvalidArgumentError(f"{count} values must be a multiple of uniform_row_length, got {length}")
        made = cls.from_row_lengths(values, [length] * rows)
        return cls(made.values, made.row_splits, length)

    @classmethod
    def from_nested_row_splits(
        cls, flat_values: Any, nested_row_splits: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Several ragged dimensions, the outermost first."""
        return functools.reduce(cls.from_row_splits, reversed(list(nested_row_splits)), flat_values)

    @classmethod
    def from_nested_value_rowids(
        cls,
        flat_values: Any,
        nested_value_rowids: Any,
        nested_nrows: Any = None,
        name: str | None = None,
        validate: bool = True,
    ) -> RaggedTensor:
        """Several ragged dimensions, the outermost first."""
        ids = list(nested_value_rowids)
        counts = [None] * len(ids) if nested_nrows is None else list(nested_nrows)
        if len(counts) != len(ids):
            raise ValueError(f"nested_nrows must have one element per dimension, {len(ids)}, got {len(counts)}")
        made = flat_values
        for of_dimension, count in reversed(list(zip(ids, counts))):
            made = cls.from_value_rowids(made, of_dimension, count)
        return made

    @classmethod
    def from_nested_row_lengths(
        cls, flat_values: Any, nested_row_lengths: Any, name: str | None = None, validate: bool = True
    ) -> RaggedTensor:
        """Several ragged dimensions, the outermost first."""
        return functools.reduce(cls.from_row_lengths, reversed(list(nested_row_lengths)), flat_values)

    @classmethod
    def from_tensor(
        cls,
        tensor: Any,
        lengths: Any = None,
        padding: Any = None,
        ragged_rank: int = 1,
        name: str | None = None,
        row_splits_dtype: Any = dtypes.int64,
    ) -> RaggedTensor:
        """The rows of a tensor: their first `lengths` elements, or without trailing `padding`, or whole."""
        tensor = _native.as_tensor(tensor)
        if lengths is not None and padding is not None:
            raise ValueError("either lengths or padding must be given, not both")
        if padding is not None and np.shape(padding) != tuple(tensor.shape[ragged_rank + 1 :]):
            wanted = tuple(tensor.shape[ragged_rank + 1 :])
            raise ValueError(f"padding must have the shape of an element, {wanted}, got {np.shape(padding)}")
        parts = lengths if isinstance(lengths, (list, tuple)) else [lengths]
        if lengths is not None and any(np.asarray(part).dtype.kind == "f" for part in parts):
            raise TypeError(f"lengths must be integers, got {lengths}")
        if tensor.ndim < 2:
            raise ValueError(f"tensor must have rank >= 2, got shape {tensor.shape}")
        if not 1 <= ragged_rank < tensor.ndim:
            raise ValueError(f"ragged_rank must be in [1, {tensor.ndim}), got {ragged_rank}")
        if isinstance(lengths, (list, tuple)) and any(np.ndim(one) for one in lengths):
            # Lengths for each of several dimensions, from the outermost on.
            made = cls.from_tensor(tensor, lengths[0], row_splits_dtype=row_splits_dtype)
            for one in lengths[1:]:
                inner = cls.from_tensor(made.flat_values, one, row_splits_dtype=row_splits_dtype)
                made = made.with_flat_values(inner)
            return made
        if ragged_rank > 1:
            flat = raw.reshape(tensor, [int(np.prod(tensor.shape[:ragged_rank])), *tensor.shape[ragged_rank:]])
            made = cls.from_tensor(flat, lengths, padding, row_splits_dtype=row_splits_dtype)
            for axis in reversed(range(1, ragged_rank)):
                count = int(np.prod(tensor.shape[:axis]))
                made = cls.from_uniform_row_length(made, tensor.shape[axis], count)
            return made.with_row_splits_dtype(row_splits_dtype)
        rows, width = tensor.shape[:2]
        if padding is not None:
            equal = np.asarray(tensor == padding)
            same: Any = equal.all(tuple(range(2, equal.ndim)))
            sizes = np.array([width - int(np.argmin(row[::-1])) if not row.all() else 0 for row in same], np.int64)
        else:
            sizes = np.full(rows, width, np.int64) if lengths is None else np.asarray(lengths, np.int64)
        keep = np.arange(width)[None, :] < sizes[:, None]
        flat = raw.reshape(tensor, [rows * width, *tensor.shape[2:]])
        made = cls.from_row_lengths(raw.gather(flat, np.flatnonzero(keep)), sizes)
        return made.with_row_splits_dtype(row_splits_dtype)

    @classmethod
    def from_sparse(cls, st_input: Any, name: str | None = None, row_splits_dtype: Any = dtypes.int64) -> RaggedTensor:
        """The rows of a sparse tensor of rank 2 whose elements are at the beginning of their rows."""
        if st_input.dense_shape.shape[0] != 2:
            raise ValueError(f"rank must be 2, got {st_input.dense_shape.shape[0]}")
        indices = np.asarray(st_input.indices)
        rows, columns = indices[:, 0], indices[:, 1]
        lengths = np.bincount(rows, minlength=int(np.asarray(st_input.dense_shape)[0])) if len(rows) else 0
        lengths = np.broadcast_to(lengths, int(np.asarray(st_input.dense_shape)[0]))
        expected = np.arange(len(rows)) - np.repeat(np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
        if (np.diff(rows) < 0).any() or not np.array_equal(columns, expected):
            raise InvalidArgumentError("SparseTensor is not right-ragged")
        return cls.from_row_lengths(st_input.values, lengths).with_row_splits_dtype(row_splits_dtype)

    # Parts.

    @property
    def values(self) -> Any:
        """The values of all rows: a tensor, or a ragged tensor."""
        return self._values

    @property
    def flat_values(self) -> _native.Tensor:
        """The innermost values."""
        return self._values.flat_values if isinstance(self._values, RaggedTensor) else self._values

    @property
    def row_splits(self) -> _native.Tensor:
        """Where rows begin in the values, and where the last one ends."""
        return self._row_splits

    @property
    def nested_row_splits(self) -> tuple:
        """The row splits of all ragged dimensions, the outermost first."""
        inner = self._values.nested_row_splits if isinstance(self._values, RaggedTensor) else ()
        return (self._row_splits, *inner)

    @property
    def ragged_rank(self) -> int:
        """The number of ragged dimensions."""
        return len(self.nested_row_splits)

    @property
    def dtype(self) -> _native.DType:
        """The element type."""
        return self.flat_values.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape, with None for ragged dimensions."""
        inner = self._values.shape
        return TensorShape([self._row_splits.shape[0] - 1, self._uniform_row_length, *tuple(inner)[1:]])

    def get_shape(self) -> TensorShape:
        """The shape, with None for ragged dimensions."""
        return self.shape

    @property
    def uniform_row_length(self) -> _native.Tensor | None:
        """The length of all rows if it is part of the type, as of `from_uniform_row_length`."""
        if self._uniform_row_length is None:
            return None
        return _native.own_tensor(np.array(self._uniform_row_length), self._row_splits.dtype)

    @property
    def _splits(self) -> np.ndarray:
        return np.asarray(self._row_splits)

    def nrows(self, out_type: Any = None, name: str | None = None) -> _native.Tensor:
        """The number of rows."""
        return _native.own_tensor(np.int64(self._splits.size - 1), out_type or self._row_splits.dtype)

    def row_lengths(self, axis: int = 1, name: str | None = None) -> Any:
        """The length of each row; of the rows along an inner axis, as a ragged tensor."""
        if axis == 0:
            return self.nrows()
        if axis == 1:
            return _native.own_tensor(np.diff(self._splits))
        if not isinstance(self._values, RaggedTensor):
            raise ValueError(f"axis must be in [0, {self.ragged_rank}], got {axis}")
        return self.with_values(self._values.row_lengths(axis - 1))

    def nested_row_lengths(self, name: str | None = None) -> tuple:
        """The row lengths of all ragged dimensions, the outermost first."""
        return tuple(_native.own_tensor(np.diff(np.asarray(splits))) for splits in self.nested_row_splits)

    def nested_value_rowids(self, name: str | None = None) -> tuple:
        """The row of each value, of each ragged dimension."""
        inner = self._values.nested_value_rowids() if isinstance(self._values, RaggedTensor) else ()
        return (self.value_rowids(), *inner)

    def row_starts(self, name: str | None = None) -> _native.Tensor:
        """Where each row begins."""
        return self._row_splits[:-1]

    def row_limits(self, name: str | None = None) -> _native.Tensor:
        """Where each row ends."""
        return self._row_splits[1:]

    def value_rowids(self, name: str | None = None) -> _native.Tensor:
        """The row of each value."""
        return _native.own_tensor(np.repeat(np.arange(self._splits.size - 1), np.diff(self._splits)))

    def bounding_shape(self, axis: Any = None, name: str | None = None, out_type: Any = None) -> _native.Tensor:
        """The shape of the smallest tensor that holds all rows."""
        sizes = [self._splits.size - 1]
        sizes += [int(np.diff(np.asarray(splits)).max(initial=0)) for splits in self.nested_row_splits]
        sizes += list(self.flat_values.shape[1:])
        made = _native.own_tensor(np.array(sizes, np.int64), out_type or self._row_splits.dtype)
        return made if axis is None else made[axis]

    def with_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of other values."""
        if not isinstance(new_values, (RaggedTensor, _native.Array)):
            new_values = _native.as_tensor(new_values)
        return RaggedTensor(new_values, self._row_splits, self._uniform_row_length)

    def with_flat_values(self, new_values: Any) -> RaggedTensor:
        """The same rows of other innermost values."""
        inner = self._values
        return self.with_values(inner.with_flat_values(new_values) if isinstance(inner, RaggedTensor) else new_values)

    def with_row_splits_dtype(self, dtype: Any) -> RaggedTensor:
        """The same rows with row splits of type int32 or int64."""
        values = self._values.with_row_splits_dtype(dtype) if isinstance(self._values, RaggedTensor) else self._values
        return RaggedTensor(values, raw.cast(self._row_splits, dtypes.as_dtype(dtype)), self._uniform_row_length)

    def merge_dims(self, outer_axis: int, inner_axis: int) -> Any:
        """Merges adjacent dimensions."""
        rank = self.ragged_rank + self.flat_values.ndim
        outer, inner = (axis + rank if axis < 0 else axis for axis in (outer_axis, inner_axis))
        if not 0 <= outer <= inner < rank:
            raise ValueError(f"axes must be ascending and in [{-rank}, {rank}), got {outer_axis} and {inner_axis}")
        if outer == inner:
            return self
        if outer != 1:
            merged = _merged(self._values, max(outer - 1, 0), inner - 1)
            return merged if outer == 0 else self.with_values(merged)
        splits, values = self._splits, self._values
        for left in range(inner - 1, 0, -1):
            if not isinstance(values, RaggedTensor):
                splits = splits * int(np.prod(values.shape[1 : 1 + left], dtype=np.int64))
                break
            splits, values = values._splits[splits], values._values
        return RaggedTensor.from_row_splits(_merged(self._values, 0, inner - 1), splits)

    # Conversion.

    def to_list(self) -> list:
        """The rows as nested lists."""
        values = self._values.to_list() if isinstance(self._values, RaggedTensor) else self._values.tolist()
        splits = self._splits.tolist()
        return [values[start:end] for start, end in itertools.pairwise(splits)]

    def numpy(self) -> np.ndarray:
        """The rows as an array: of arrays, if they have different lengths."""
        values, splits = self._values.numpy(), self._splits
        if len(splits) == 1:
            return np.zeros((0, 0, *values.shape[1:]), values.dtype)
        rows = [values[start:end] for start, end in itertools.pairwise(splits)]
        if len({len(row) for row in rows}) == 1:
            return np.array(rows)
        made = np.empty(len(rows), object)
        for i, row in enumerate(rows):
            made[i] = row
        return made

    def to_tensor(self, default_value: Any = None, name: str | None = None, shape: Any = None) -> _native.Tensor:
        """A tensor in which rows are padded with `default_value` (0 or the empty string) to one length, or to a shape."""
        values = self._values
        wanted = None if shape is None else list(shape)
        if isinstance(values, RaggedTensor):
            values = values.to_tensor(default_value, shape=None if wanted is None else [None, *wanted[2:]])
        splits = self._splits
        lengths = np.diff(splits)
        rows, width = len(lengths), int(lengths.max(initial=0))
        if wanted is not None and len(wanted) != 1 + values.ndim:
            raise InvalidArgumentError(f"shape must have {1 + values.ndim} sizes, got {wanted}")
        if wanted is not None:
            rows = rows if wanted[0] in (None, -1) else int(wanted[0])
            width = width if wanted[1] in (None, -1) else int(wanted[1])
            for size, axis in zip(wanted[2:], range(1, values.ndim)):
                if size not in (None, -1) and size != values.shape[axis]:
                    raise ValueError(f"shape {wanted} does not fit values of shape {values.shape}")
        columns = np.arange(width)[None, :]
        starts = np.zeros(rows, np.int64)
        sizes = np.zeros(rows, np.int64)
        kept = min(rows, len(lengths))
        starts[:kept], sizes[:kept] = splits[:-1][:kept], lengths[:kept]
        inside = columns < sizes[:, None]
        # One more row of padding, which positions outside of rows refer to.
        default = "" if self.dtype == dtypes.string else 0
        fill = _native.as_tensor(default if default_value is None else default_value, self.dtype)
        padding = raw.broadcast_to(fill, [1, *values.shape[1:]])
        pool = raw.concat([values, padding], 0)
        return raw.gather(pool, np.where(inside, starts[:, None] + columns, values.shape[0]))

    def to_sparse(self, name: str | None = None) -> Any:
        """A sparse tensor of the values."""
        from .sparse_tensor import SparseTensor

        values = self.flat_values
        inner = np.indices(tuple(values.shape)).reshape(values.ndim, -1)
        at, columns = inner[0], list(inner[1:])
        for splits in map(np.asarray, reversed(self.nested_row_splits)):
            rows = np.searchsorted(splits, at, side="right") - 1
            columns.insert(0, at - splits[rows])
            at = rows
        indices = np.stack([at, *columns], 1).astype(np.int64)
        return SparseTensor(indices, raw.reshape(values, [-1]), np.asarray(self.bounding_shape()).tolist())

    # Indexing.

    def __len__(self) -> int:
        return self._splits.size - 1

    def __iter__(self) -> Iterator:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, key: Any) -> Any:
        key = tuple(key) if isinstance(key, (tuple, list)) else (key,)
        if any(one is Ellipsis for one in key):
            at = next(i for i, one in enumerate(key) if one is Ellipsis)
            missing = self.ragged_rank + self.flat_values.ndim - sum(one is not None for one in key) + 1
            key = (*key[:at], *[slice(None)] * missing, *key[at + 1 :])
        for axis, one in enumerate(key):
            if one is None:
                from ._ragged_ops import expand_dims

                key = (*key[:axis], slice(None), *key[axis + 1 :])
                return expand_dims(self, axis)[key]
            if not isinstance(one, slice):
                break
        while key and isinstance(key[-1], slice) and key[-1] == slice(None):
            key = key[:-1]
        if not key:
            return self
        first, rest = key[0], key[1:]
        if isinstance(first, slice):
            return self._rows_at(np.arange(len(self))[first])._inner(rest)
        try:
            row = operator.index(first)
        except TypeError:
            text = f"an index must be an integer, a slice, ... or None, got {first!r}"
            raise TypeError(text) from None
        if not -len(self) <= row < len(self):
            raise IndexError(f"row must be in [{-len(self)}, {len(self)}), got {row}")
        row %= len(self)
        start, end = self._splits[row : row + 2].tolist()
        found = self._values[start:end]
        return found[rest] if rest else found

    def _rows_at(self, rows: np.ndarray) -> RaggedTensor:
        """The rows at these indices."""
        splits = self._splits
        lengths = np.diff(splits)[rows]
        picked = [np.arange(splits[row], splits[row + 1]) for row in rows]
        positions = np.concatenate(picked) if picked else np.zeros(0, np.int64)
        values = self._values
        inner = values._rows_at(positions) if isinstance(values, RaggedTensor) else raw.gather(values, positions)
        return RaggedTensor.from_row_lengths(inner, lengths)._with_uniform(self._uniform_row_length)

    def _with_uniform(self, length: int | None) -> RaggedTensor:
        """The same rows, which are known to have one length, if one is given."""
        return self if length is None else RaggedTensor(self._values, self._row_splits, length)

    def _inner(self, rest: tuple) -> Any:
        """Applies subscripts to each row."""
        if not rest:
            return self
        if isinstance(rest[0], slice):
            pieces = [np.arange(start, end)[rest[0]] for start, end in itertools.pairwise(self._splits)]
            positions = np.concatenate(pieces) if pieces else np.zeros(0, np.int64)
            values = self._values
            inner = values._rows_at(positions) if isinstance(values, RaggedTensor) else raw.gather(values, positions)
            made = RaggedTensor.from_row_lengths(inner, [len(piece) for piece in pieces])
            if self._uniform_row_length is not None:
                made = made._with_uniform(len(range(self._uniform_row_length)[rest[0]]))
            if len(rest) == 1:
                return made
            key = (slice(None), *rest[1:])
            deeper = made._values._inner(rest[1:]) if isinstance(made._values, RaggedTensor) else made._values[key]
            return made.with_values(deeper)
        if self._uniform_row_length is None:
            raise ValueError("a ragged dimension must be indexed with a slice: rows may be shorter than an index")
        row, length = operator.index(rest[0]), self._uniform_row_length
        if not -length <= row < length:
            raise InvalidIndexError(f"index must be in [{-length}, {length}), got {row}")
        positions = np.asarray(self._splits[:-1]) + row % length
        values = self._values
        found = values._rows_at(positions) if isinstance(values, RaggedTensor) else raw.gather(values, positions)
        if isinstance(found, RaggedTensor):
            return found._inner(rest[1:])
        key = (slice(None), *rest[1:])
        return found[key]

    # Arithmetic.

    def __neg__(self) -> RaggedTensor:
        return self.with_flat_values(raw.neg(self.flat_values))

    def __abs__(self) -> RaggedTensor:
        return self.with_flat_values(raw.abs(self.flat_values))

    def __invert__(self) -> RaggedTensor:
        return self.with_flat_values(~self.flat_values)

    def _taut_parts(self) -> tuple:
        return self._values, self._row_splits

    @classmethod
    def _taut_from_parts(cls, values: Any, row_splits: Any) -> RaggedTensor:
        if row_splits.ndim != 1:
            refuse_batch("ragged")
        return cls(values, row_splits)

    def consumers(self) -> list:
        """The ops that use it: unknown."""
        return []

    def __repr__(self) -> str:
        # The formatter is that of rows, too, which are arrays in an array.
        with np.printoptions(formatter={"all": _text}):
            return f"<tf.RaggedTensor {_text(self.numpy())}>"

    __str__ = __repr__

    def __hash__(self) -> int:
        return id(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        made = self.numpy()
        return made if dtype is None else made.astype(dtype)


def _text(part: Any) -> str:
    """Rows, or one of their elements."""
    if not isinstance(part, np.ndarray):
        return str(part)
    return np.array2string(part, separator=", ") if part.size else str(part.tolist())


def _is_int32(splits: Any) -> bool:
    return getattr(splits, "dtype", None) is not None and str(getattr(splits.dtype, "name", splits.dtype)) == "int32"


def _check_partition(name: str, given: Any) -> None:
    array = np.asarray(given)
    if array.ndim != 1:
        raise ValueError(f"{name} must have rank 1, got shape {array.shape}")
    if array.size and array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be int32 or int64, got {array.dtype.name}")


def _typed_splits(parts: list, given: Any) -> np.ndarray:
    """Row splits of the type of the integers that describe the rows: int32 if those are, else int64."""
    return np.concatenate(parts).astype(np.int32 if _is_int32(given) else np.int64)


def _rows(values: Any) -> int:
    if isinstance(values, RaggedTensor):
        return len(values)
    if not values.ndim:
        raise ValueError("values must have rank >= 1, got a scalar")
    return values.shape[0]


def _merged(values: Any, outer: int, inner: int) -> Any:
    """Merges adjacent dimensions of a tensor or a ragged tensor."""
    if isinstance(values, RaggedTensor):
        return values.merge_dims(outer, inner)
    size = int(np.prod(values.shape[outer : inner + 1], dtype=np.int64))
    return raw.reshape(values, [*values.shape[:outer], size, *values.shape[inner + 1 :]])


def map_flat_values(op: Callable, *args: Any, **kwargs: Any) -> Any:
    """Applies a function to the innermost values of ragged arguments, which must have equal row splits."""
    ragged = [arg for arg in (*args, *kwargs.values()) if isinstance(arg, RaggedTensor)]
    if not ragged:
        return op(*args, **kwargs)
    first = ragged[0]
    for other in ragged[1:]:
        same = other.ragged_rank == first.ragged_rank and all(
            np.array_equal(np.asarray(a), np.asarray(b))
            for a, b in zip(first.nested_row_splits, other.nested_row_splits)
        )
        if not same:
            raise InvalidArgumentError("ragged arguments must have equal row splits")

    def flat(value: Any) -> Any:
        return value.flat_values if isinstance(value, RaggedTensor) else value

    made = op(*map(flat, args), **{key: flat(value) for key, value in kwargs.items()})
    count = first.flat_values.shape[0]
    if not len(made.shape) or made.shape[0] != count:
        raise ValueError(f"map_flat_values: the function must return as many rows as values, {count}, got {made.shape}")
    return first.with_flat_values(made)


def _elementwise(name: str, swapped: bool = False) -> Callable:
    def method(self: RaggedTensor, other: Any) -> Any:
        rows, values = aligned(self, other)
        pair = (values, rows.flat_values) if swapped else (rows.flat_values, values)
        return rows.with_flat_values(getattr(raw, name)(*pair))

    return method


for _dunder, _op in {
    "add": "add",
    "sub": "sub",
    "mul": "mul",
    "truediv": "div",
    "floordiv": "floor_div",
    "mod": "mod",
    "pow": "pow",
    "and": "logical_and",
    "or": "logical_or",
    "xor": "logical_xor",
}.items():
    setattr(RaggedTensor, f"__{_dunder}__", _elementwise(_op))
    setattr(RaggedTensor, f"__r{_dunder}__", _elementwise(_op, swapped=True))
for _dunder, _op in {
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
}.items():
    setattr(RaggedTensor, f"__{_dunder}__", _elementwise(_op))


class RaggedTensorSpec(TypeSpec):
    """The element type and shape of ragged tensors."""

    def __init__(
        self,
        shape: Any = None,
        dtype: Any = dtypes.float32,
        ragged_rank: int | None = None,
        row_splits_dtype: Any = None,
    ) -> None:
        self.shape = TensorShape(shape)
        self.dtype = dtypes.as_dtype(dtype)
        self.ragged_rank = len(self.shape) - 1 if ragged_rank is None else ragged_rank
        self.row_splits_dtype = dtypes.as_dtype(row_splits_dtype or dtypes.int64)

    @property
    def value_type(self) -> type:
        """The class of ragged tensors."""
        return RaggedTensor

    @classmethod
    def from_value(cls, value: RaggedTensor) -> RaggedTensorSpec:
        """The specification of a ragged tensor."""
        return cls(value.shape, value.dtype, value.ragged_rank, value.row_splits.dtype)

    def _taut_part_specs(self) -> list[TensorSpec]:
        """The specs of the tensors that a traced function has in place of a ragged one, in their order."""
        inner = None if self.shape.rank is None else [None, *self.shape[self.ragged_rank + 1 :]]
        return [TensorSpec(inner, self.dtype), *[TensorSpec([None], self.row_splits_dtype)] * self.ragged_rank]

    def _serialize(self) -> tuple:
        return self.shape, self.dtype, self.ragged_rank, self.row_splits_dtype

    def __repr__(self) -> str:
        return f"RaggedTensorSpec({self.shape!r}, {self.dtype!r}, {self.ragged_rank}, {self.row_splits_dtype!r})"
