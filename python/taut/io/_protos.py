"""Serialized tensors: TensorFlow's `TensorProto`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _native, dtypes
from ..errors import DataLossError, InvalidArgumentError
from ..example_protos import field, fields, read_varint, varint

_BY_ENUM = {dtype.as_datatype_enum: dtype for dtype in (*dtypes.ALL, dtypes.string)}


def tensor_proto(tensor: Any) -> bytes:
    """A tensor as a serialized `TensorProto`."""
    tensor = _native.as_tensor(tensor)
    # A dimension of size 0 is a message without fields, as the value 0 is not written.
    dims = b"".join(field(2, varint(1 << 3) + varint(dim) if dim else b"") for dim in tensor.shape)
    if tensor.dtype == dtypes.string:
        content = b"".join(field(8, value) for value in _native.string_values(tensor))
    else:
        array = np.ascontiguousarray(np.asarray(tensor))
        content = field(4, array.tobytes()) if array.size else b""
    return varint(1 << 3) + varint(tensor.dtype.as_datatype_enum) + field(2, dims) + content


def serialize_tensor(tensor: Any, name: str | None = None) -> _native.Tensor:
    """A tensor as a serialized `TensorProto`, which `parse_tensor` and TensorFlow read."""
    return _native.string_tensor(tensor_proto(tensor))


#: The field of each type's values, and how they are stored where they are not in `tensor_content`.
_VALUES: dict[str, tuple[int, str]] = {
    "float32": (5, "<f4"),
    "float64": (6, "<f8"),
    "int64": (10, "varint"),
    "bool": (11, "varint"),
    "float16": (13, "bits"),
    "bfloat16": (13, "bits"),
    "uint32": (16, "varint"),
    "uint64": (17, "varint"),
}


def parse_tensor(serialized: Any, out_type: Any, name: str | None = None) -> _native.Tensor:
    """The tensor of a serialized `TensorProto`, which must have the type `out_type`."""
    data = _native.string_tensor(serialized).item()
    dtype, shape, content = None, [], b""
    values: dict[int, list[Any]] = {}
    for number, value in fields(data):
        if number == 1:
            dtype = _BY_ENUM.get(value)
        elif number == 2:
            shape = [dict(fields(dim)).get(1, 0) for inner, dim in fields(value) if inner == 2]
        elif number == 4:
            content = value
        else:
            values.setdefault(number, []).append(value)
    wanted = dtypes.as_dtype(out_type)
    if dtype != wanted:
        raise InvalidArgumentError(f"the tensor must have type {wanted.name}, got {dtype.name if dtype else 'none'}")
    if dtype == dtypes.string:
        return _strings(content, values.get(8, []), shape)
    kind = np.dtype(dtype.as_numpy_dtype)
    if content:
        if len(content) % kind.itemsize:
            raise DataLossError(f"the tensor is damaged: {len(content)} bytes of {dtype.name}")
        array = np.frombuffer(content, kind)
    else:
        array = _listed(dtype, values)
    count = int(np.prod(shape, dtype=np.int64))
    if (len(array) == 1 and count != 1) or (0 < len(array) < count and not content):
        # Equal values at the end are stored once.
        array = np.concatenate([array, np.full(count - len(array), array[-1])])
    if not len(array) and count:
        array = np.zeros(count, kind)
    if len(array) != count:
        raise DataLossError(f"the tensor is damaged: shape {shape} needs {count} values, got {len(array)}")
    return _native.own_tensor(array.reshape(shape).astype(kind), dtype)


def _listed(dtype: Any, values: dict[int, list[Any]]) -> np.ndarray:
    number, form = _VALUES.get(dtype.name, (7, "varint"))
    found = []
    for value in values.get(number, []):
        if form.startswith("<"):
            found.append(np.frombuffer(value, form))
        elif isinstance(value, int):
            found.append(np.array([value], np.uint64))
        else:
            at, numbers = 0, []
            while at < len(value):
                one, at = read_varint(value, at)
                numbers.append(one)
            found.append(np.array(numbers, np.uint64))
    array = np.concatenate(found) if found else np.zeros(0, np.uint64)
    if form == "bits":
        return array.astype(np.uint16).view(np.dtype(dtype.as_numpy_dtype))
    if form == "varint" and not dtype.is_unsigned and not dtype.is_bool:
        array = array.astype(np.uint64).view(np.int64)
    return array.astype(np.dtype(dtype.as_numpy_dtype))


def _strings(content: bytes, values: list[Any], shape: list[int]) -> _native.Tensor:
    count = int(np.prod(shape, dtype=np.int64))
    if content or not values:
        at, sizes = 0, []
        for _ in range(count if content else 0):
            size, at = read_varint(content, at)
            sizes.append(size)
        values = []
        for size in sizes:
            values.append(content[at : at + size])
            at += size
        if at > len(content):
            raise DataLossError("the tensor is damaged: strings go beyond its end")
        values = values or [b""] * count
    if len(values) != count:
        raise DataLossError(f"the tensor is damaged: shape {shape} needs {count} strings, got {len(values)}")
    array = np.empty(count, object)
    array[:] = values
    return _native.string_tensor(array.reshape(shape))
