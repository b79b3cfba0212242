"""Tensors as messages: `tf.make_tensor_proto`, `tf.make_ndarray`."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native, dtypes
from .example_protos import fields


class TensorProto:
    """A tensor as a protocol buffer. Its serialized form is what `tf.io.serialize_tensor` writes and TensorFlow reads."""

    def __init__(self, tensor: _native.Tensor | None = None) -> None:
        self._tensor = tensor

    @property
    def dtype(self) -> int:
        """The number of the element type; 0 without a tensor."""
        return dict(fields(self.SerializeToString())).get(1, 0)

    def SerializeToString(self) -> bytes:  # noqa: N802  Protocol buffers' name.
        """The message as bytes."""
        return b"" if self._tensor is None else _native.serialize_tensor(self._tensor)

    def ParseFromString(self, serialized: bytes) -> int:  # noqa: N802
        """Replaces the contents by those of a serialized message; returns the number of bytes."""
        self._tensor = _native.parse_tensor(serialized)
        return len(serialized)

    @classmethod
    def FromString(cls, serialized: bytes) -> TensorProto:  # noqa: N802
        """The message of these bytes."""
        made = cls()
        made.ParseFromString(serialized)
        return made

    def ByteSize(self) -> int:  # noqa: N802
        """The number of bytes of the serialized message."""
        return len(self.SerializeToString())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TensorProto) and self.SerializeToString() == other.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"TensorProto({self._tensor!r})"


def make_tensor_proto(
    values: Any, dtype: Any = None, shape: Any = None, verify_shape: bool = False, allow_broadcast: bool = False
) -> TensorProto:
    """A message with these values. One value fills a larger shape if `allow_broadcast`, others must fit it."""
    tensor = _native.as_tensor(values, None if dtype is None else dtypes.as_dtype(dtype))
    if shape is not None:
        shape = [int(dim) for dim in shape]
        if verify_shape and list(tensor.shape) != shape:
            raise TypeError(f"make_tensor_proto: expected shape {shape}, got {list(tensor.shape)}")
        array = np.asarray(tensor)
        count = int(np.prod(shape, dtype=np.int64))
        if array.size == 1 and count != 1:
            if not allow_broadcast:
                raise TypeError(f"make_tensor_proto: expected {count} values for shape {shape}, got one")
            array = np.broadcast_to(array.reshape(()), shape)
        elif array.size != count:
            raise ValueError(f"make_tensor_proto: expected {count} values for shape {shape}, got {array.size}")
        tensor = _native.own_tensor(np.ascontiguousarray(array.reshape(shape)), tensor.dtype)
    return TensorProto(tensor)


def make_ndarray(tensor: TensorProto) -> np.ndarray:
    """The values of a message as an array."""
    if not isinstance(tensor, TensorProto) or tensor._tensor is None:
        raise TypeError(f"make_ndarray: expected a TensorProto with a tensor, got {tensor!r}")
    return np.array(tensor._tensor.numpy())
