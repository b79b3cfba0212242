"""Examples for training as messages: `tf.train.Example`, its features, and their serialized form.

The serialized form is that of TensorFlow's protocol buffers. There are eight message types with three kinds of lists, so
they are written out here; nothing is generated, and no protocol buffer library is needed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from types import NoneType
from typing import Any

import numpy as np

from .errors import DataLossError

__all__ = [
    "BytesList",
    "Example",
    "Feature",
    "FeatureList",
    "FeatureLists",
    "Features",
    "FloatList",
    "Int64List",
    "SequenceExample",
]


def varint(value: int) -> bytes:
    """An integer of up to 64 bits, seven bits per byte."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(number: int, contents: bytes) -> bytes:
    """A field of bytes."""
    return varint(number << 3 | 2) + varint(len(contents)) + contents


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """An integer, and the position after it."""
    value = shift = 0
    while at < len(data) and shift < 70:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & ((1 << 64) - 1), at
        shift += 7
    raise DataLossError("the message is damaged: an integer has no end")


def fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Number and value of each field: an integer, or bytes (of fixed-size numbers, too)."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = read_varint(data, at)
            yield tag >> 3, value
            continue
        if kind == 2:
            size, at = read_varint(data, at)
        elif kind in (1, 5):
            size = 8 if kind == 1 else 4
        else:
            raise DataLossError(f"the message is damaged: unknown wire type {kind}")
        if at + size > len(data):
            raise DataLossError("the message is damaged: a field goes beyond its end")
        yield tag >> 3, data[at : at + size]
        at += size


class _Message:
    """What all messages have."""

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        """The message as bytes."""
        raise NotImplementedError

    def _merge(self, data: bytes) -> None:
        raise NotImplementedError

    def _lines(self) -> Iterator[str]:
        raise NotImplementedError

    def ParseFromString(self, serialized: bytes) -> int:
        """Replaces the contents by those of a serialized message; returns the number of bytes."""
        self.Clear()
        self._merge(bytes(serialized))
        return len(serialized)

    def MergeFromString(self, serialized: bytes) -> int:
        """Adds the contents of a serialized message; returns the number of bytes."""
        self._merge(bytes(serialized))
        return len(serialized)

    @classmethod
    def FromString(cls, serialized: bytes) -> Any:
        """The message of these bytes."""
        made = cls()
        made.ParseFromString(serialized)
        return made

    def Clear(self) -> None:
        """Removes the contents."""
        type(self).__init__(self)

    def CopyFrom(self, other: _Message) -> None:
        """Replaces the contents by those of another message."""
        self.ParseFromString(other.SerializeToString())

    def ByteSize(self) -> int:
        """The number of bytes of the serialized message."""
        return len(self.SerializeToString())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.SerializeToString() == other.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines())

    __repr__ = __str__


class _List(_Message):
    """A list of values of one type."""

    def __init__(self, value: Iterable[Any] = ()) -> None:
        self.value = _Values(self._checked, value)

    def _checked(self, value: Any) -> Any:
        raise NotImplementedError

    def _text(self, value: Any) -> str:
        return str(value)

    def _lines(self) -> Iterator[str]:
        return (f"value: {self._text(value)}" for value in self.value)


class _Values(list):
    """A list that checks its values."""

    def __init__(self, check: Callable[[Any], Any], values: Iterable[Any] = ()) -> None:
        self._check = check
        super().__init__(check(value) for value in values)

    def append(self, value: Any) -> None:
        super().append(self._check(value))

    def extend(self, values: Iterable[Any]) -> None:
        super().extend(self._check(value) for value in values)

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, self._check(value))


class BytesList(_List):
    """A list of byte strings."""

    def _checked(self, value: Any) -> bytes:
        if not isinstance(value, (bytes, bytearray)):
            raise TypeError(
                f"expected bytes, got {value!r} of type {type(value).__name__}: use .numpy() of a string tensor"
            )
        return bytes(value)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return b"".join(field(1, value) for value in self.value)

    def _merge(self, data: bytes) -> None:
        self.value.extend(value for number, value in fields(data) if number == 1)

    def _text(self, value: bytes) -> str:
        return quoted(value)


class FloatList(_List):
    """A list of floats of 32 bits."""

    def _checked(self, value: Any) -> float:
        if isinstance(value, (str, bytes)) or (not np.isscalar(value) and np.ndim(value)):
            raise TypeError(f"expected a number, got {value!r} of type {type(value).__name__}")
        return float(np.float32(value))

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return field(1, struct.pack(f"<{len(self.value)}f", *self.value)) if self.value else b""

    def _merge(self, data: bytes) -> None:
        for number, value in fields(data):
            if number == 1 and isinstance(value, bytes):
                if len(value) % 4:
                    raise DataLossError("the message is damaged: floats have 4 bytes")
                self.value.extend(struct.unpack(f"<{len(value) // 4}f", value))

    def _text(self, value: float) -> str:
        return f"{np.float32(value):.8g}" if float(f"{np.float32(value)!s}") != value else str(np.float32(value))


class Int64List(_List):
    """A list of integers of 64 bits."""

    def _checked(self, value: Any) -> int:
        if isinstance(value, (str, bytes, float, np.floating)) or not hasattr(value, "__index__"):
            raise TypeError(f"expected an integer, got {value!r} of type {type(value).__name__}")
        number = value.__index__()
        if not -(1 << 63) <= number < 1 << 63:
            raise ValueError(f"expected an integer of 64 bits, got {number}")
        return number

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return field(1, b"".join(map(varint, self.value))) if self.value else b""

    def _merge(self, data: bytes) -> None:
        for number, value in fields(data):
            if number != 1:
                continue
            if isinstance(value, int):
                self.value.append(_signed(value))
                continue
            at = 0
            while at < len(value):
                one, at = read_varint(value, at)
                self.value.append(_signed(one))


def _signed(value: int) -> int:
    return value - (1 << 64) if value >= 1 << 63 else value


_KINDS: dict[str, tuple[int, type[_List]]] = {
    "bytes_list": (1, BytesList),
    "float_list": (2, FloatList),
    "int64_list": (3, Int64List),
}


class Feature(_Message):
    """A list of bytes, floats or integers."""

    def __init__(
        self,
        bytes_list: BytesList | None = None,
        float_list: FloatList | None = None,
        int64_list: Int64List | None = None,
    ) -> None:
        given = {"bytes_list": bytes_list, "float_list": float_list, "int64_list": int64_list}
        found = [(kind, value) for kind, value in given.items() if value is not None]
        for kind, value in found:
            if not isinstance(value, _KINDS[kind][1]):
                raise TypeError(f"{kind} must be a tf.train.{_KINDS[kind][1].__name__}, got {type(value).__name__}")
        # The last one that is given is kept, as in a message whose fields exclude each other.
        self._kind: str | None = found[-1][0] if found else None
        self._list: Any = found[-1][1] if found else None

    def _get(self, kind: str) -> Any:
        if self._kind == kind:
            return self._list
        made = _KINDS[kind][1]()

        # The kind is set with the first value.
        def check(value: Any) -> Any:
            checked = made._checked(value)
            self._kind, self._list = kind, made
            return checked

        made.value._check = check
        return made

    @property
    def bytes_list(self) -> BytesList:
        """The list, if it is one of bytes."""
        return self._get("bytes_list")

    @property
    def float_list(self) -> FloatList:
        """The list, if it is one of floats."""
        return self._get("float_list")

    @property
    def int64_list(self) -> Int64List:
        """The list, if it is one of integers."""
        return self._get("int64_list")

    def WhichOneof(self, oneof_group: str) -> str | None:
        """The name of the list."""
        return self._kind

    def HasField(self, field_name: str) -> bool:
        """Whether it has this list."""
        return self._kind == field_name

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        if self._list is None or self._kind is None:
            return b""
        return field(_KINDS[self._kind][0], self._list.SerializeToString())

    def _merge(self, data: bytes) -> None:
        for number, value in fields(data):
            for kind, (own, made) in _KINDS.items():
                if number == own and isinstance(value, bytes):
                    self._kind, self._list = kind, made.FromString(value)

    def _lines(self) -> Iterator[str]:
        if self._list is not None:
            yield from _block(str(self._kind), self._list)


class _Map(dict):
    """Messages by name; a missing one is created."""

    def __init__(self, made: type[_Message], values: dict[str, Any] | None = None) -> None:
        self._made = made
        super().__init__()
        if not isinstance(values, (dict, NoneType)):
            raise TypeError(f"expected a dict of tf.train.{made.__name__}, got {type(values).__name__}")
        for key, value in (values or {}).items():
            if not isinstance(value, made):
                raise TypeError(f"expected a tf.train.{made.__name__} for {key!r}, got {type(value).__name__}")
            self[key if isinstance(key, str) else key.decode()] = value

    def __missing__(self, key: str) -> Any:
        self[key] = self._made()
        return self[key]


class _Named(_Message):
    """Messages by name."""

    _name = ""
    _made: type[_Message]

    @property
    def _map(self) -> _Map:
        return getattr(self, self._name)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return b"".join(
            field(1, field(1, key.encode()) + field(2, value.SerializeToString()))
            for key, value in sorted(self._map.items())
        )

    def _merge(self, data: bytes) -> None:
        for number, entry in fields(data):
            if number == 1 and isinstance(entry, bytes):
                parts = dict(fields(entry))
                self._map[parts.get(1, b"").decode()] = self._made.FromString(parts.get(2, b""))

    def _lines(self) -> Iterator[str]:
        for key, value in sorted(self._map.items()):
            yield f"{self._name} {{"
            yield f"  key: {quoted(key.encode())}"
            yield from (f"  {line}" for line in _block("value", value))
            yield "}"


class Features(_Named):
    """Features by name."""

    _name, _made = "feature", Feature

    def __init__(self, feature: dict[str, Feature] | None = None) -> None:
        self.feature = _Map(Feature, feature)


class Example(_Message):
    """An example: features by name."""

    def __init__(self, features: Features | None = None) -> None:
        self.features = Features() if features is None else features

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return field(1, self.features.SerializeToString())

    def _merge(self, data: bytes) -> None:
        for number, value in fields(data):
            if number == 1 and isinstance(value, bytes):
                self.features._merge(value)

    def _lines(self) -> Iterator[str]:
        return _block("features", self.features)


class FeatureList(_Message):
    """A list of features."""

    def __init__(self, feature: Iterable[Feature] = ()) -> None:
        self.feature = list(feature)

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return b"".join(field(1, one.SerializeToString()) for one in self.feature)

    def _merge(self, data: bytes) -> None:
        self.feature.extend(Feature.FromString(value) for number, value in fields(data) if number == 1)

    def _lines(self) -> Iterator[str]:
        for one in self.feature:
            yield from _block("feature", one)


class FeatureLists(_Named):
    """Lists of features by name."""

    _name, _made = "feature_list", FeatureList

    def __init__(self, feature_list: dict[str, FeatureList] | None = None) -> None:
        self.feature_list = _Map(FeatureList, feature_list)


class SequenceExample(_Message):
    """An example of sequences: features by name, and lists of features by name."""

    def __init__(self, context: Features | None = None, feature_lists: FeatureLists | None = None) -> None:
        self.context = Features() if context is None else context
        self.feature_lists = FeatureLists() if feature_lists is None else feature_lists

    def SerializeToString(self, deterministic: bool | None = None) -> bytes:
        return field(1, self.context.SerializeToString()) + field(2, self.feature_lists.SerializeToString())

    def _merge(self, data: bytes) -> None:
        for number, value in fields(data):
            if isinstance(value, bytes) and number in (1, 2):
                (self.context if number == 1 else self.feature_lists)._merge(value)

    def _lines(self) -> Iterator[str]:
        yield from _block("context", self.context)
        yield from _block("feature_lists", self.feature_lists)


def _block(name: str, message: _Message) -> Iterator[str]:
    yield f"{name} {{"
    yield from (f"  {line}" for line in message._lines())
    yield "}"


_ESCAPES = {9: r"\t", 10: r"\n", 13: r"\r", 34: r"\"", 39: r"\'", 92: r"\\"}


def quoted(value: bytes) -> str:
    """Bytes in quotation marks, with escapes of three octal digits."""
    text = "".join(_ESCAPES.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in value)
    return f'"{text}"'
