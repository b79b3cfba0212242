"""Serialized tensors: TensorFlow's `TensorProto`."""

from __future__ import annotations

from typing import Any

from .. import _native, dtypes
from ..errors import InvalidArgumentError
from ..string_tensor import known


def tensor_proto(tensor: Any) -> bytes:
    """A tensor as a serialized `TensorProto`."""
    return _native.serialize_tensor(_native.as_tensor(tensor))


def serialize_tensor(tensor: Any, name: str | None = None) -> _native.Tensor:
    """A tensor as a serialized `TensorProto`, which `parse_tensor` and TensorFlow read."""
    return _native.string_tensor(tensor_proto(known(_native.as_tensor(tensor))))


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> _native.Tensor:
    """The tensor of a serialized `TensorProto`, which must have the type `out_type`."""
    wanted, tensor = dtypes.as_dtype(out_type), _native.parse_tensor(serialized)
    if tensor.dtype != wanted:
        raise InvalidArgumentError(f"the tensor must have type {wanted.name}, got {tensor.dtype.name}")
    return tensor
