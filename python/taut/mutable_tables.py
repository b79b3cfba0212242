"""Tables that can be changed: `tf.lookup.experimental`. A traced function that uses one runs op by op."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from . import _native, dtypes
from ._common import refuse
from .errors import DTypeError, DynamicShapeError, InvalidArgumentError
from .ragged_tensor import RaggedTensor, map_flat_values
from .sparse_tensor import SparseTensor


def on_keys(function: Any, keys: Any, dtype: Any) -> Any:
    """Applies a lookup to a tensor, or to the values of a ragged or sparse one."""
    if isinstance(keys, RaggedTensor):
        return map_flat_values(lambda flat: on_keys(function, flat, dtype), keys)
    if isinstance(keys, SparseTensor):
        return SparseTensor(keys.indices, on_keys(function, keys.values, dtype), list(keys.shape))
    return function(_typed("keys", keys, dtype))


def _typed(what: str, value: Any, dtype: _native.DType) -> _native.Tensor:
    """Keys or values as a tensor of the table's type. A tensor of another type is not converted."""
    tensor = _native.as_tensor(value, None if isinstance(value, _native.Array) else dtype)
    if tensor.dtype != dtype:
        raise DTypeError(f"{what} must be {dtype.name}, got {tensor.dtype.name}\n  at {_native.calling_line()}")
    return tensor


def _array(rows: list, dtype: _native.DType, shape: tuple[int, ...]) -> _native.Tensor:
    """Rows as a tensor of this shape."""
    if dtype == dtypes.string:
        flat = np.array([*(part for row in rows for part in np.ravel(np.array(row, object))), None], object)[:-1]
        return _native.own_tensor(flat.reshape(shape), dtype)
    return _native.own_tensor(np.array(rows, dtype.as_numpy_dtype).reshape(shape), dtype)


class MutableHashTable:
    """A table that can be changed. The values of keys are scalars, or tensors of the shape of `default_value`."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str | None = None,
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        self.key_dtype, self.value_dtype = dtypes.as_dtype(key_dtype), dtypes.as_dtype(value_dtype)
        default = _native.as_tensor(default_value, self.value_dtype)
        if default.ndim > 1:
            raise InvalidArgumentError(
                f"{type(self).__name__}: default_value must be a scalar or a vector, got shape {list(default.shape)}"
            )
        self._key_shape: tuple[int, ...] = ()
        self._value_shape = tuple(default.shape)
        self._default = self._rows(default, self._value_shape)[0]
        self._entries: dict[Any, Any] = {}

    def _check_eager(self) -> None:
        """The table of a moment is no part of a trace."""
        if _native.is_tracing():
            refuse(type(self).__name__, "the contents of a table are those of each call", DynamicShapeError)

    @staticmethod
    def _rows(tensor: Any, shape: tuple[int, ...]) -> list[Any]:
        """The parts of this shape: Python objects, of which those that are no scalars are nested tuples."""
        rows = np.asarray(tensor).reshape(-1, *shape).tolist()
        return [_frozen(row) for row in rows] if shape else rows

    def _keys(self, keys: Any) -> list[Any]:
        self._check_eager()
        tensor = _typed("keys", keys, self.key_dtype)
        self._outer_shape(tensor)
        return self._rows(tensor, self._key_shape)

    def _outer_shape(self, keys: Any) -> tuple[int, ...]:
        """The shape of a tensor of keys, without that of one key."""
        count = len(keys.shape) - len(self._key_shape)
        if count < 0 or tuple(keys.shape[count:]) != self._key_shape:
            raise InvalidArgumentError(f"the last dimensions of keys must be {self._key_shape}, got {keys.shape}")
        return tuple(keys.shape[:count])

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Sets the values of keys."""
        self._check_eager()
        keys, values = _typed("keys", keys, self.key_dtype), _typed("values", values, self.value_dtype)
        rows = self._keys(keys)
        expected = (*self._outer_shape(keys), *self._value_shape)
        if tuple(values.shape) != expected:
            raise InvalidArgumentError(f"values must have the shape {expected}, got {tuple(values.shape)}")
        self._entries.update(zip(rows, self._rows(values, self._value_shape)))

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Removes keys."""
        for key in self._keys(keys):
            self._entries.pop(key, None)

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Any:
        """The value of each key. Keys that the table does not have get the default value, or one of their own."""

        def find(tensor: Any) -> Any:
            rows = self._keys(tensor)
            shape = (*self._outer_shape(tensor), *self._value_shape)
            defaults = [self._default] * len(rows)
            if dynamic_default_values is not None:
                own = _native.as_tensor(dynamic_default_values, self.value_dtype)
                if tuple(own.shape) == self._value_shape:
                    defaults = self._rows(own, self._value_shape) * len(rows)
                elif tuple(own.shape) == shape:
                    defaults = self._rows(own, self._value_shape)
                else:
                    text = f"dynamic_default_values must have the shape {self._value_shape} or {shape}, got {own.shape}"
                    raise InvalidArgumentError(text)
            found = [self._entries.get(key, default) for key, default in zip(rows, defaults)]
            return _array(found, self.value_dtype, shape)

        return on_keys(find, keys, self.key_dtype)

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def size(self, name: str | None = None) -> _native.Tensor:
        """The number of keys."""
        self._check_eager()
        return _native.own_tensor(np.int64(len(self._entries)))

    def export(self, name: str | None = None) -> tuple:
        """Keys and values."""
        self._check_eager()
        count = len(self._entries)
        keys = _array(list(self._entries), self.key_dtype, (count, *self._key_shape))
        return keys, _array(list(self._entries.values()), self.value_dtype, (count, *self._value_shape))

    # In a checkpoint: one tensor of bytes, the serialized keys and values.

    def _saved_state(self) -> _native.Tensor:
        with _native.InitScope():
            parts = [_native.serialize_tensor(one) for one in self.export()]
        state = b"".join(struct.pack("<q", len(part)) + part for part in parts)
        return _native.own_tensor(np.frombuffer(state, np.uint8))

    def _check_state(self, path: str, value: _native.Tensor) -> None:
        self._parsed(path, value)

    def _restore_state(self, value: _native.Tensor) -> None:
        keys, values = self._parsed("", value)
        self._entries = dict(zip(self._rows(keys, self._key_shape), self._rows(values, self._value_shape)))

    def _parsed(self, path: str, state: _native.Tensor) -> list[_native.Tensor]:
        parts = parsed_table(state)
        wanted = [(self.key_dtype, self._key_shape), (self.value_dtype, self._value_shape)]
        for what, part, (dtype, shape) in zip(("keys", "values"), parts or (), wanted):
            if part.dtype != dtype or tuple(part.shape[1:]) != shape:
                own = f"{dtype.name}[None{''.join(f', {dim}' for dim in shape)}]"
                text = f"the {what} of the table {path} must be {own}, got {part.dtype.name}{list(part.shape)}"
                refuse("Checkpoint.restore", text, InvalidArgumentError)
        if parts is None:
            refuse("Checkpoint.restore", f"{path} must hold a table, got {state.dtype.name}{list(state.shape)}")
        return parts


def parsed_table(state: _native.Tensor) -> list[_native.Tensor] | None:
    """Keys and values of a table in a checkpoint; None if it is something else."""
    if state.dtype != dtypes.uint8 or len(state.shape) != 1:
        return None
    rest = np.asarray(state).tobytes()
    parts: list[_native.Tensor] = []
    while len(rest) >= 8 and len(parts) < 2:
        size = struct.unpack("<q", rest[:8])[0]
        if not 0 <= size <= len(rest) - 8:
            return None
        try:
            parts.append(_native.parse_tensor(rest[8 : 8 + size]))
        except ValueError:
            return None
        rest = rest[8 + size :]
    return parts if len(parts) == 2 and not rest else None


def _frozen(row: Any) -> Any:
    return tuple(map(_frozen, row)) if isinstance(row, list) else row


class DenseHashTable(MutableHashTable):
    """A table that can be changed, in which two keys are reserved: `empty_key` and `deleted_key`."""

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        super().__init__(key_dtype, value_dtype, default_value)
        if initial_num_buckets is not None and (
            initial_num_buckets < 1 or initial_num_buckets & (initial_num_buckets - 1)
        ):
            raise InvalidArgumentError(f"initial_num_buckets must be a power of 2, got {initial_num_buckets}")
        keys = {"empty_key": empty_key, "deleted_key": deleted_key}
        reserved = {word: _native.as_tensor(key, self.key_dtype) for word, key in keys.items()}
        self._key_shape = tuple(reserved["empty_key"].shape)
        self._reserved = {word: self._rows(key, self._key_shape)[0] for word, key in reserved.items()}
        if reserved["deleted_key"].shape != self._key_shape:
            raise InvalidArgumentError("Empty and deleted keys must have same shape")
        if self._reserved["empty_key"] == self._reserved["deleted_key"]:
            raise InvalidArgumentError("Empty and deleted keys cannot be equal")

    def _keys(self, keys: Any) -> list[Any]:
        found = super()._keys(keys)
        given = set(found)
        for word, key in self._reserved.items():
            if key in given:
                raise InvalidArgumentError(f"Using the {word} as a table key is not allowed")
        return found

    def lookup(self, keys: Any, name: str | None = None) -> Any:  # type: ignore[override]
        """The value of each key. Keys that the table does not have get the default value."""
        return super().lookup(keys)

    insert_or_assign = MutableHashTable.insert
    erase = MutableHashTable.remove
