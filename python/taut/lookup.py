"""Lookup tables: `tf.lookup`.

Tables of strings are looked up without the interpreter lock. Tables of numbers are sorted, so that a lookup is two ops that
also run in traced functions.
"""

from __future__ import annotations

import contextlib
import os
from typing import Any

import numpy as np

from . import _namespace, _native, _raw_ops as raw, dtypes
from .errors import FailedPreconditionError, InvalidArgumentError, NotFoundError
from .mutable_tables import DenseHashTable, MutableHashTable, on_keys
from .recording import call_recorded
from .tensor import shape

__all__ = [
    "KeyValueTensorInitializer",
    "StaticHashTable",
    "StaticVocabularyTable",
    "TextFileIndex",
    "TextFileInitializer",
    "experimental",
]


class TextFileIndex:
    """What of a line of a file is a key or a value: all of it, or its number. Columns are counted from 0."""

    WHOLE_LINE = -2
    LINE_NUMBER = -1


class KeyValueTensorInitializer:
    """Keys and values of a table as tensors."""

    def __init__(
        self, keys: Any, values: Any, key_dtype: Any = None, value_dtype: Any = None, name: str | None = None
    ) -> None:
        self.keys = raw.reshape(_native.as_tensor(keys, key_dtype), [-1])
        self.values = raw.reshape(_native.as_tensor(values, value_dtype), [-1])
        if self.keys.shape != self.values.shape:
            raise InvalidArgumentError(
                f"keys and values must have equal lengths, got {self.keys.shape[0]} and {self.values.shape[0]}"
            )

    @property
    def key_dtype(self) -> _native.DType:
        """The type of the keys."""
        return self.keys.dtype

    @property
    def value_dtype(self) -> _native.DType:
        """The type of the values."""
        return self.values.dtype


class TextFileInitializer(KeyValueTensorInitializer):
    """Keys and values of a table from the lines of a file."""

    def __init__(
        self,
        filename: Any,
        key_dtype: Any,
        key_index: int,
        value_dtype: Any,
        value_index: int,
        vocab_size: int | None = None,
        delimiter: str = "\t",
        name: str | None = None,
        value_index_offset: int = 0,
    ) -> None:
        path = os.fsdecode(filename) if isinstance(filename, (str, bytes, os.PathLike)) else filename.item().decode()
        if not os.path.exists(path):
            raise NotFoundError(f"{path}: no such file\n  at {_native.calling_line()}")
        with open(path, "rb") as file:
            lines = [line.rstrip(b"\n").rstrip(b"\r") for line in file]
        if vocab_size is not None:
            if len(lines) < vocab_size:
                raise InvalidArgumentError(f"{path}: expected {vocab_size} lines, got {len(lines)}")
            lines = lines[:vocab_size]
        split = delimiter.encode()

        def column(index: int, dtype: Any, offset: int = 0) -> _native.Tensor:
            dtype = dtypes.as_dtype(dtype)
            if index == TextFileIndex.LINE_NUMBER:
                return _native.as_tensor(np.arange(len(lines), dtype=np.int64) + offset, dtype)
            found = list(lines)
            if index != TextFileIndex.WHOLE_LINE:
                for number, line in enumerate(lines):
                    parts = line.split(split)
                    if index >= len(parts):
                        raise InvalidArgumentError(
                            f"{path}, line {number + 1}: expected at least {index + 1} columns, got {len(parts)}"
                        )
                    found[number] = parts[index]
            strings = _native.string_tensor(np.array([*found, None], object)[:-1])
            if dtype == dtypes.string:
                return strings
            wide = dtypes.float32 if dtype.is_floating else dtypes.int64
            try:
                return raw.cast(_native.string_to_number(strings, wide), dtype)
            except InvalidArgumentError as error:
                for number, text in enumerate(found):
                    with contextlib.suppress(ValueError):
                        float(text)
                        continue
                    raise InvalidArgumentError(
                        f"{path}, line {number + 1}: expected a number of type {dtype.name}, "
                        f"got {text.decode(errors='replace')!r}"
                    ) from None
                raise InvalidArgumentError(f"{path}: {error}") from None

        super().__init__(column(key_index, key_dtype), column(value_index, value_dtype, value_index_offset))


class _Lookup:
    """The positions of keys, or -1."""

    def __init__(self, keys: _native.Tensor) -> None:
        self._strings = _native.StringTable(keys) if keys.dtype == dtypes.string else None
        if self._strings is None:
            values = np.asarray(keys)
            self._order = np.argsort(values, kind="stable").astype(np.int64)
            self._sorted = values[self._order]
            if (self._sorted[1:] == self._sorted[:-1]).any():
                raise InvalidArgumentError("keys must be distinct")

    def positions(self, keys: Any) -> _native.Tensor:
        """The position of each key, or -1."""
        if self._strings is not None:
            return self._strings.positions(keys)
        if not len(self._sorted):
            return raw.cast(raw.zeros_like(keys), dtypes.int64) - 1
        flat = raw.reshape(keys, [-1])
        at = raw.minimum(raw.searchsorted(self._sorted, flat), len(self._sorted) - 1)
        found = raw.where(raw.equal(raw.gather(self._sorted, at), flat), raw.gather(self._order, at), -1)
        # In a recording, for keys of any size.
        return raw.reshape(found, call_recorded(shape, keys) if _native.is_recording_calls() else keys.shape)


class _Constant:
    """A table that a checkpoint may hold: it is made again by the program, and nothing of it is saved."""

    _taut_is_constant = True


def _distinct(keys: Any, values: Any) -> tuple[Any, Any]:
    """Keys and values without those that occur again. A key must not have two values."""
    from ._ops.sorting import unique

    found, places = unique(keys)
    if found.shape == keys.shape:
        return keys, values
    numbers = np.asarray(places)
    first = np.unique(numbers, return_index=True)[1]
    kept = raw.gather(values, first)
    differs = np.asarray(raw.not_equal(raw.gather(kept, places), values))
    if differs.any():
        at = int(differs.argmax())
        key, one, other = (np.asarray(x).tolist() for x in (keys[at], kept[int(numbers[at])], values[at]))
        raise FailedPreconditionError(
            f"a key must have one value: key {key!r} has {one!r} and {other!r}\n  at {_native.calling_line()}"
        )
    return found, kept


class StaticHashTable(_Constant):
    """A table that does not change. Keys that it does not have get the default value.

    >>> import taut as tf
    >>> table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(["a", "b"], [1, 2]), default_value=-1)
    >>> table.lookup(tf.constant(["b", "?"])).numpy().tolist()
    [2, -1]
    """

    def __init__(
        self, initializer: Any, default_value: Any, name: str | None = None, experimental_is_anonymous: bool = False
    ) -> None:
        self._is_initialized = hasattr(initializer, "keys")
        if self._is_initialized:
            self._keys, self._values = initializer.keys, initializer.values
        else:
            # An initializer that knows types alone, as Keras's layers have before they are adapted.
            self._keys, self._values = (
                _native.own_tensor(np.empty(0, dtypes.as_dtype(dtype).as_numpy_dtype), dtype)
                for dtype in (initializer.key_dtype, initializer.value_dtype)
            )
        if default_value is None:
            raise ValueError("default_value must be given: it is the value of keys that the table does not have")
        self._default = raw.reshape(_native.as_tensor(default_value, self._values.dtype), [1])
        self._keys, self._values = _distinct(self._keys, self._values)
        self._pool = raw.concat([self._values, self._default], 0)
        self._lookup = _Lookup(self._keys)

    @property
    def key_dtype(self) -> _native.DType:
        """The type of the keys."""
        return self._keys.dtype

    @property
    def value_dtype(self) -> _native.DType:
        """The type of the values."""
        return self._values.dtype

    @property
    def default_value(self) -> _native.Tensor:
        """The value of keys that are not in the table."""
        return raw.reshape(self._default, [])

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The value of each key."""
        if not self._is_initialized:
            raise FailedPreconditionError(
                f"Table not initialized: it has no keys\n  at {_native.calling_line()}"
                "\n  help: adapt the layer that has the table, or give it a vocabulary"
            )

        def find(tensor: Any) -> Any:
            positions = self._lookup.positions(tensor)
            return raw.gather(self._pool, raw.where(positions < 0, self._values.shape[0], positions))

        return on_keys(find, keys, self.key_dtype)

    __getitem__ = lookup

    def size(self, name: str | None = None) -> _native.Tensor:
        """The number of keys."""
        return _native.own_tensor(np.int64(self._keys.shape[0]))

    def export(self, name: str | None = None) -> tuple:
        """Keys and values."""
        return self._keys, self._values


class StaticVocabularyTable(_Constant):
    """A table from strings or integers to ids, with buckets for keys that it does not have."""

    def __init__(
        self,
        initializer: Any,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        if num_oov_buckets < 1:
            raise ValueError(f"num_oov_buckets must be >= 1, got {num_oov_buckets}")
        self._buckets = int(num_oov_buckets)
        self._table = None
        self._key_dtype = dtypes.as_dtype(lookup_key_dtype or dtypes.string)
        if initializer is not None:
            if initializer.value_dtype != dtypes.int64:
                raise TypeError(f"values must be int64, got {initializer.value_dtype.name}")
            self._key_dtype = dtypes.as_dtype(lookup_key_dtype or initializer.key_dtype)
            self._table = StaticHashTable(initializer, -1)

    def size(self, name: str | None = None) -> _native.Tensor:
        """The number of keys and buckets."""
        known = 0 if self._table is None else int(self._table.size())
        return _native.own_tensor(np.int64(known + self._buckets))

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The id of each key; of others, that of a bucket, by a hash of the key."""

        def find(tensor: Any) -> Any:
            text = tensor
            if tensor.dtype != dtypes.string:
                from .strings import as_string

                text = as_string(tensor)
                tensor = tensor if self._table is None else raw.cast(tensor, self._table.key_dtype)
            buckets = _native.string_hash_buckets(text, self._buckets)
            if self._table is None:
                return buckets
            found = self._table.lookup(tensor)
            return raw.where(found < 0, buckets + int(self._table.size()), found)

        return on_keys(find, keys, self._key_dtype)

    __getitem__ = lookup


class experimental:  # noqa: N801
    """The namespace `tf.lookup.experimental`."""

    DenseHashTable = DenseHashTable
    MutableHashTable = MutableHashTable


__getattr__, __dir__ = _namespace.plain(__name__)
