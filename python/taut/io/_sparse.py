"""Sparse tensors as strings, examples as JSON, and lists of files."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from ..errors import InvalidArgumentError
from ..sparse_tensor import SparseTensor


def _strings(values: list[bytes], shape: list[int]) -> _native.Tensor:
    flat = _native.string_tensor(np.array(values, object) if values else np.empty(0, object))
    return _native.string_reshape(flat, shape)


def _check_type(name: str, out_type: Any) -> None:
    if dtypes.as_dtype(out_type) != dtypes.string:
        raise ValueError(f"{name}: out_type must be tf.string, got {dtypes.as_dtype(out_type).name}")


def serialize_sparse(sp_input: SparseTensor, out_type: Any = dtypes.string, name: str | None = None) -> _native.Tensor:
    """The indices, the values and the shape of a sparse tensor as three serialized tensors: string [3]."""
    _check_type("serialize_sparse", out_type)
    return _strings([_native.serialize_tensor(part) for part in sp_input._taut_parts()], [3])


def serialize_many_sparse(
    sp_input: SparseTensor, out_type: Any = dtypes.string, name: str | None = None
) -> _native.Tensor:
    """The rows of a sparse tensor, each as `serialize_sparse` writes it: string [rows, 3]."""
    _check_type("serialize_many_sparse", out_type)
    indices, shape = np.asarray(sp_input.indices), list(sp_input.shape)
    if len(shape) < 2:
        raise InvalidArgumentError(f"sp_input must have rank >= 2, got shape {shape}")
    made: list[bytes] = []
    for row in range(shape[0]):
        places = np.flatnonzero(indices[:, 0] == row)
        part = SparseTensor(indices[places, 1:], raw.gather(sp_input.values, places), shape[1:])
        made += [_native.serialize_tensor(one) for one in part._taut_parts()]
    return _strings(made, [shape[0], 3])


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """One sparse tensor of serialized ones, string [rows, 3], along a new first axis; its other sizes are the largest."""
    serialized = _native.string_tensor(serialized_sparse)
    if serialized.ndim != 2 or serialized.shape[1] != 3:
        raise InvalidArgumentError(f"serialized_sparse must have shape [rows, 3], got {list(serialized.shape)}")
    values, wanted = _native.string_values(serialized), dtypes.as_dtype(dtype)
    parts = [
        [_native.parse_tensor(value) for value in values[3 * row : 3 * row + 3]] for row in range(serialized.shape[0])
    ]
    for row, (_, found, shape) in enumerate(parts):
        if found.dtype != wanted:
            raise InvalidArgumentError(f"row {row}: values must have type {wanted.name}, got {found.dtype.name}")
        if shape.shape != parts[0][2].shape:
            raise InvalidArgumentError(
                f"row {row}: all rows must have one rank, got shape {np.asarray(shape).tolist()}"
            )
    if not parts:
        raise InvalidArgumentError("serialized_sparse must have at least one row, got none")
    sizes = np.stack([np.asarray(shape) for _, _, shape in parts]).max(0).tolist()
    if rank is not None and rank != len(sizes) + 1:
        raise ValueError(f"rank must be {len(sizes) + 1}, one more than that of the rows, got {rank}")
    indices = [np.insert(np.asarray(one), 0, row, axis=1) for row, (one, _, _) in enumerate(parts)]
    flat = raw.concat([found for _, found, _ in parts], 0)
    return SparseTensor(np.concatenate(indices), flat, [len(parts), *sizes])


def decode_json_example(json_examples: Any, name: str | None = None) -> _native.Tensor:
    """Examples in the JSON form of protocol buffers, as serialized `tf.train.Example` messages."""
    texts = _native.string_tensor(json_examples)
    made = [_example(text, number) for number, text in enumerate(_native.string_values(texts))]
    return _strings(made, list(texts.shape))


def _example(text: bytes, number: int) -> bytes:
    from ..train import BytesList, Example, Feature, Features, FloatList, Int64List

    kinds: dict[str, Any] = {
        "bytesList": lambda values: Feature(bytes_list=BytesList(value=[_bytes(value) for value in values])),
        "floatList": lambda values: Feature(float_list=FloatList(value=[float(value) for value in values])),
        "int64List": lambda values: Feature(int64_list=Int64List(value=[int(value) for value in values])),
    }
    names = {"bytes_list": "bytesList", "float_list": "floatList", "int64_list": "int64List"}
    try:
        entries = json.loads(text).get("features", {}).get("feature", {})
        features = {}
        for key, entry in entries.items():
            features[key] = Feature()
            for kind, values in entry.items():
                features[key] = kinds[names.get(kind, kind)](values.get("value", []))
    except (ValueError, AttributeError, KeyError, TypeError, binascii.Error) as error:
        raise InvalidArgumentError(
            f"string {number}: expected an Example as JSON, got {error!r} in {text[:80]!r}"
        ) from None
    return Example(features=Features(feature=features)).SerializeToString()


def _bytes(text: str) -> bytes:
    standard = text.rstrip("=").translate(str.maketrans("-_", "+/"))
    return base64.b64decode(standard + "=" * (-len(standard) % 4), validate=True)


def match_filenames_once(pattern: Any, name: str | None = None) -> _native.Tensor:
    """The files that match a pattern when it is called, in alphabetical order: strings."""
    from . import matching_files

    return matching_files(pattern)
