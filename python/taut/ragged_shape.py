"""Shapes of ragged tensors: `tf.experimental.RowPartition` and `tf.experimental.DynamicRaggedShape`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native, _raw_ops as raw, dtypes
from ._ragged_broadcast import aligned
from .errors import InvalidArgumentError
from .ragged_tensor import RaggedTensor


class RowPartition:
    """How values are divided into rows. Made by the functions `from_*`, as those of a ragged tensor."""

    def __init__(self, rows: RaggedTensor) -> None:
        self._rows = rows

    @property
    def dtype(self) -> _native.DType:
        """The type of the row splits."""
        return self._rows.row_splits.dtype

    @property
    def static_nrows(self) -> int:
        """The number of rows."""
        return len(self._rows)

    @property
    def static_nvals(self) -> int:
        """The number of values."""
        return int(np.asarray(self._rows.row_splits)[-1])

    @property
    def static_uniform_row_length(self) -> int | None:
        """The length of all rows, if the partition was made of it."""
        return self._rows._uniform_row_length

    def nrows(self) -> _native.Tensor:
        """The number of rows."""
        return self._rows.nrows()

    def nvals(self) -> _native.Tensor:
        """The number of values."""
        return self._rows.row_splits[-1]

    def row_splits(self) -> _native.Tensor:
        """Where rows begin in the values, and where the last one ends."""
        return self._rows.row_splits

    def row_lengths(self) -> _native.Tensor:
        """The length of each row."""
        return self._rows.row_lengths()

    def row_starts(self) -> _native.Tensor:
        """Where each row begins."""
        return self._rows.row_starts()

    def row_limits(self) -> _native.Tensor:
        """Where each row ends."""
        return self._rows.row_limits()

    def value_rowids(self) -> _native.Tensor:
        """The row of each value."""
        return raw.cast(self._rows.value_rowids(), self.dtype)

    def offsets_in_rows(self) -> _native.Tensor:
        """The position of each value in its row."""
        splits = np.asarray(self._rows.row_splits)
        return _native.own_tensor(np.arange(splits[-1]) - np.repeat(splits[:-1], np.diff(splits)), self.dtype)

    def uniform_row_length(self) -> _native.Tensor | None:
        """The length of all rows, if the partition was made of it."""
        return self._rows.uniform_row_length

    def is_uniform(self) -> bool:
        """Whether the partition was made of one length for all rows."""
        return self._rows._uniform_row_length is not None

    def with_dtype(self, dtype: Any) -> RowPartition:
        """The same rows with row splits of type int32 or int64."""
        return RowPartition(self._rows.with_row_splits_dtype(dtype))

    def __repr__(self) -> str:
        if self.is_uniform():
            return f"tf.RowPartition(nrows={self.static_nrows}, uniform_row_length={self.static_uniform_row_length})"
        return f"tf.RowPartition(row_splits={np.asarray(self.row_splits())})"

    @classmethod
    def _made(cls, rows: RaggedTensor, dtype: Any, given: Any) -> RowPartition:
        own = given.dtype if isinstance(given, _native.Tensor) else dtypes.int64
        return cls(rows.with_row_splits_dtype(dtype or own))

    @classmethod
    def from_row_splits(cls, row_splits: Any, validate: bool = True, dtype: Any = None) -> RowPartition:
        """Rows by where they begin and the last one ends."""
        splits = np.asarray(row_splits)
        return cls._made(RaggedTensor.from_row_splits(_values(int(splits[-1])), splits), dtype, row_splits)

    @classmethod
    def from_row_lengths(cls, row_lengths: Any, validate: bool = True, dtype: Any = None) -> RowPartition:
        """Rows by their lengths."""
        lengths = np.asarray(row_lengths)
        return cls._made(RaggedTensor.from_row_lengths(_values(int(lengths.sum())), lengths), dtype, row_lengths)

    @classmethod
    def from_row_starts(cls, row_starts: Any, nvals: Any, validate: bool = True, dtype: Any = None) -> RowPartition:
        """Rows by where they begin."""
        return cls._made(RaggedTensor.from_row_starts(_values(int(nvals)), row_starts), dtype, row_starts)

    @classmethod
    def from_row_limits(cls, row_limits: Any, validate: bool = True, dtype: Any = None) -> RowPartition:
        """Rows by where they end."""
        limits = np.asarray(row_limits)
        count = int(limits[-1]) if len(limits) else 0
        return cls._made(RaggedTensor.from_row_limits(_values(count), limits), dtype, row_limits)

    @classmethod
    def from_value_rowids(
        cls, value_rowids: Any, nrows: Any = None, validate: bool = True, dtype: Any = None
    ) -> RowPartition:
        """Rows by the row of each value."""
        ids = np.asarray(value_rowids)
        return cls._made(RaggedTensor.from_value_rowids(_values(len(ids)), ids, nrows), dtype, value_rowids)

    @classmethod
    def from_uniform_row_length(
        cls, uniform_row_length: Any, nvals: Any = None, nrows: Any = None, validate: bool = True, dtype: Any = None
    ) -> RowPartition:
        """Rows of one length."""
        if nvals is None and nrows is None:
            raise ValueError("At least one of nvals and nrows must be given.")
        count = int(uniform_row_length) * int(nrows) if nvals is None else int(nvals)
        rows = RaggedTensor.from_uniform_row_length(_values(count), uniform_row_length, nrows)
        return cls._made(rows, dtype, uniform_row_length)


def _values(count: int) -> _native.Tensor:
    """Values whose number alone matters."""
    return _native.own_tensor(np.zeros(count, np.bool_))


class DynamicRaggedShape:
    """The shape of a ragged tensor: the partitions into rows, the outermost first, and the shape of the innermost values.

    >>> import taut as tf
    >>> shape = tf.shape(tf.ragged.constant([[1], [2, 3, 4], []]))
    >>> shape
    <DynamicRaggedShape lengths=[3, (1, 3, 0)] num_row_partitions=1>
    >>> tf.ones(shape, tf.int32)
    <tf.RaggedTensor [[1], [1, 1, 1], []]>
    """

    def __init__(
        self,
        row_partitions: Any,
        inner_shape: Any,
        dtype: Any = None,
        validate: bool = False,
        static_inner_shape: Any = None,
    ) -> None:
        partitions = tuple(row_partitions)
        given = inner_shape.dtype if isinstance(inner_shape, _native.Tensor) else None
        kind = dtypes.as_dtype(dtype or (partitions[0].dtype if partitions else given) or dtypes.int64)
        self._partitions = tuple(one.with_dtype(kind) for one in partitions)
        self._inner = tuple(int(one) for one in np.asarray(inner_shape).tolist())
        self._dtype = kind
        counts = [one.static_nvals for one in partitions]
        rows = [one.static_nrows for one in partitions[1:]]
        if partitions and counts != [*rows, *self._inner[:1]]:
            raise InvalidArgumentError(
                f"the values of each partition must be the rows of the next: {counts} values, {[*rows, *self._inner[:1]]} rows"
            )

    @classmethod
    def from_lengths(
        cls, lengths: Any, num_row_partitions: int | None = None, dtype: Any = dtypes.int64
    ) -> DynamicRaggedShape:
        """A shape of sizes; a tuple has the length of each row."""
        ragged = [i for i, one in enumerate(lengths) if not isinstance(one, int)]
        count = (max(ragged) if ragged else 0) if num_row_partitions is None else int(num_row_partitions)
        if ragged and count < max(ragged):
            raise ValueError(f"num_row_partitions must be >= {max(ragged)}, got {count}")
        rows = int(lengths[0]) if len(lengths) else 1
        partitions = []
        for one in lengths[1 : count + 1]:
            if isinstance(one, int):
                made = RowPartition.from_uniform_row_length(one, nrows=rows, dtype=dtype)
            else:
                if len(one) != rows:
                    raise ValueError(f"expected the lengths of {rows} rows, got {len(one)}")
                made = RowPartition.from_row_lengths(one, dtype=dtype)
            partitions.append(made)
            rows = made.static_nvals
        inner = [rows, *lengths[count + 1 :]] if len(lengths) else []
        return cls(partitions, inner, dtype)

    @classmethod
    def from_row_partitions(cls, row_partitions: Any, dtype: Any = None) -> DynamicRaggedShape:
        """The shape of values of rank 1 in these rows."""
        partitions = list(row_partitions)
        if not partitions:
            raise ValueError("row_partitions cannot be empty")
        return cls(partitions, [partitions[-1].static_nvals], dtype)

    @classmethod
    def from_tensor(cls, t: Any, dtype: Any = None) -> DynamicRaggedShape:
        """The shape of a ragged tensor, or of a tensor."""
        if not isinstance(t, RaggedTensor):
            return cls((), _native.as_tensor(t).shape, dtype or dtypes.int64)
        partitions = []
        while isinstance(t, RaggedTensor):
            flat = _values(int(np.asarray(t.row_splits)[-1]))
            partitions.append(RowPartition(RaggedTensor(flat, t.row_splits, t._uniform_row_length)))
            t = t.values
        return cls(partitions, t.shape, dtype)

    @property
    def dtype(self) -> _native.DType:
        """The type of the sizes."""
        return self._dtype

    @property
    def row_partitions(self) -> tuple:
        """The partitions into rows, the outermost first."""
        return self._partitions

    @property
    def num_row_partitions(self) -> int:
        """The number of partitions into rows."""
        return len(self._partitions)

    @property
    def inner_shape(self) -> _native.Tensor:
        """The shape of the innermost values."""
        return _native.own_tensor(np.array(self._inner, np.int64), self._dtype)

    @property
    def inner_rank(self) -> int:
        """The rank of the innermost values."""
        return len(self._inner)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return len(self._partitions) + len(self._inner)

    def is_uniform(self, axis: int) -> bool:
        """Whether an axis has one size."""
        count = len(self._partitions)
        return not 1 <= self._axis(axis) <= count or self._partitions[self._axis(axis) - 1].is_uniform()

    def static_lengths(self, ragged_lengths: bool = True) -> list:
        """The sizes; a tuple has the length of each row, or None if these are not wanted."""
        if not self._partitions:
            return list(self._inner)
        sizes: list[Any] = [self._partitions[0].static_nrows]
        for one in self._partitions:
            rows = tuple(np.asarray(one.row_lengths()).tolist()) if ragged_lengths else None
            sizes.append(one.static_uniform_row_length if one.is_uniform() else rows)
        return sizes + list(self._inner[1:])

    def with_dtype(self, dtype: Any) -> DynamicRaggedShape:
        """The same shape with sizes of type int32 or int64."""
        return DynamicRaggedShape(self._partitions, self._inner, dtype)

    def _axis(self, axis: int) -> int:
        if not -self.rank <= axis < self.rank:
            raise IndexError(f"axis must be in [{-self.rank}, {self.rank}), got {axis}")
        return axis % self.rank

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            if key.step not in (None, 1):
                raise IndexError("Cannot stride through a shape")
            start, stop, _ = key.indices(self.rank)
            if not start and stop > len(self._partitions):
                return DynamicRaggedShape(self._partitions, self._inner[: stop - len(self._partitions)], self._dtype)
            if any(not self.is_uniform(axis) for axis in range(start, stop)):
                if start:
                    raise ValueError("All relevant dimensions must be uniform")
                lengths = self.static_lengths()[:stop]
                return DynamicRaggedShape.from_lengths(lengths, max(0, stop - 1), self._dtype)
            return DynamicRaggedShape((), self.static_lengths()[start:stop], self._dtype)
        axis = self._axis(int(key))
        if not self.is_uniform(axis):
            raise ValueError(f"Index {axis} is not uniform")
        return _native.own_tensor(np.array(self.static_lengths()[axis]), self._dtype)

    def __eq__(self, other: object) -> Any:
        if not isinstance(other, DynamicRaggedShape):
            return NotImplemented
        same = self.rank == other.rank and self.static_lengths() == other.static_lengths()
        return _native.own_tensor(np.array(same))

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        lengths = ", ".join(map(str, self.static_lengths()))
        return f"<DynamicRaggedShape lengths=[{lengths}] num_row_partitions={self.num_row_partitions}>"

    # Functions that take sizes one by one would lose the rows: they fail, and `__taut_dispatch__` is asked.
    __iter__ = None

    def __taut_tensor__(self) -> Any:
        raise TypeError("expected a tensor, got the shape of a ragged tensor")

    def __taut_dispatch__(self, function: Any, args: tuple, kwargs: dict[str, Any], error: Exception) -> Any:
        from ._dispatch import arguments, key

        handler = _HANDLERS.get(key(function))
        if handler is None:
            raise error
        return handler(function, *arguments(function, args, kwargs).values())

    def filled(self, values: Any) -> Any:
        """A ragged tensor of this shape with these innermost values."""
        for one in reversed(self._partitions):
            values = RaggedTensor(values, one.row_splits(), one.static_uniform_row_length)
        return values


_HANDLERS: dict[str, Callable] = {}


def _reshape(function: Any, x: Any, shape: Any) -> Any:
    """The innermost values in another shape, which may be that of a ragged tensor."""
    if isinstance(x, RaggedTensor):
        x = x.flat_values
    if not isinstance(shape, DynamicRaggedShape):
        return function(x, shape)
    return shape.filled(raw.reshape(x, list(shape._inner)))


def _constant(function: Any, shape: DynamicRaggedShape, *rest: Any) -> Any:
    return shape.filled(function(list(shape._inner), *rest))


def _broadcast_to(_function: Any, x: Any, shape: DynamicRaggedShape) -> Any:
    x = x if isinstance(x, RaggedTensor) else _native.as_tensor(x)
    rows = shape.filled(raw.zeros(list(shape._inner), x.dtype))
    if not isinstance(rows, RaggedTensor):
        return raw.broadcast_to(x, list(shape._inner))
    rows, flat = aligned(rows, x)
    return rows.with_flat_values(raw.broadcast_to(flat, list(shape._inner)))


_HANDLERS.update(
    {
        "reshape": _reshape,
        "broadcast_to": _broadcast_to,
        "creation.zeros": _constant,
        "creation.ones": _constant,
        "creation.fill": _constant,
    }
)
