"""Files, records and encodings: `tf.io`."""

from __future__ import annotations

import base64
import binascii
import glob
import os
import zlib
from typing import Any

import numpy as np

from .. import _namespace, _native, dtypes
from ..errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
)
from ..ragged_tensor import RaggedTensor
from . import gfile as gfile
from ._examples import (
    FixedLenFeature,
    FixedLenSequenceFeature,
    RaggedFeature,
    SparseFeature,
    VarLenFeature,
    parse_example,
    parse_sequence_example,
    parse_single_example,
    parse_single_sequence_example,
)
from ._images import (
    decode_and_crop_jpeg,
    decode_bmp,
    decode_gif,
    decode_image,
    decode_jpeg,
    decode_png,
    decode_webp,
    encode_jpeg,
    encode_png,
    extract_jpeg_shape,
    is_jpeg,
)
from ._protos import parse_tensor, serialize_tensor
from ._records import TFRecordOptions, TFRecordWriter
from ._sparse import (
    decode_json_example,
    deserialize_many_sparse,
    match_filenames_once,
    serialize_many_sparse,
    serialize_sparse,
)

__all__ = [
    "FixedLenFeature",
    "FixedLenSequenceFeature",
    "RaggedFeature",
    "SparseFeature",
    "TFRecordOptions",
    "TFRecordWriter",
    "VarLenFeature",
    "decode_and_crop_jpeg",
    "decode_base64",
    "decode_bmp",
    "decode_compressed",
    "decode_csv",
    "decode_gif",
    "decode_image",
    "decode_jpeg",
    "decode_json_example",
    "decode_png",
    "decode_raw",
    "decode_webp",
    "deserialize_many_sparse",
    "encode_base64",
    "encode_jpeg",
    "encode_png",
    "extract_jpeg_shape",
    "gfile",
    "is_jpeg",
    "match_filenames_once",
    "matching_files",
    "parse_example",
    "parse_sequence_example",
    "parse_single_example",
    "parse_single_sequence_example",
    "parse_tensor",
    "read_file",
    "serialize_many_sparse",
    "serialize_sparse",
    "serialize_tensor",
    "write_file",
]


def path_of(filename: Any) -> str:
    """A path from a string, bytes, a path object or a string tensor."""
    if isinstance(filename, os.PathLike):
        return os.fspath(filename)
    return os.fsdecode(_native.string_tensor(filename).item())


def read_file(filename: Any, name: str | None = None) -> _native.Tensor:
    """The contents of a file, as a scalar string."""
    try:
        return _native.read_file(filename)
    except FileNotFoundError:
        raise NotFoundError(f"{path_of(filename)}: no such file\n  at {_native.calling_line()}") from None
    except (IsADirectoryError, NotADirectoryError) as error:
        message = f"{path_of(filename)}: {error.strerror}\n  at {_native.calling_line()}"
        raise FailedPreconditionError(message) from None
    except PermissionError as error:
        message = f"{path_of(filename)}: {error.strerror}\n  at {_native.calling_line()}"
        raise PermissionDeniedError(message) from None


def write_file(filename: Any, contents: Any, name: str | None = None) -> None:
    """Writes a string to a file, whose folders are created."""
    path = path_of(filename)
    folder = os.path.dirname(path)
    if folder:
        gfile.makedirs(folder)
    with gfile.GFile(path, "wb") as file:
        file.write(_native.string_tensor(contents).item())


def matching_files(pattern: Any, name: str | None = None) -> _native.Tensor:
    """The files that match a pattern, or one of several, in alphabetical order."""
    return _native.string_tensor(np.array(sorted(matching(pattern)), object))


def matching(pattern: Any) -> set[str]:
    """The paths that match one of several patterns of `glob`."""
    patterns = _native.string_tensor([pattern] if isinstance(pattern, (str, bytes, os.PathLike)) else pattern)
    found: set[str] = set()
    for one in _native.string_values(patterns):
        found.update(path for path in glob.glob(os.fsdecode(one)))
    return found


def decode_raw(
    input_bytes: Any,
    out_type: Any,
    little_endian: bool = True,
    fixed_length: int | None = None,
    name: str | None = None,
) -> _native.Tensor:
    """Reads the bytes of each string as numbers, along a new last axis. With `fixed_length`, strings are cut or padded to
    that many bytes.
    """
    x, dtype = _native.string_tensor(input_bytes), dtypes.as_dtype(out_type)
    values = _native.string_values(x)
    if fixed_length is not None:
        values = [value[:fixed_length].ljust(fixed_length, b"\0") for value in values]
    sizes = {len(value) for value in values}
    if len(sizes) > 1:
        raise InvalidArgumentError(f"strings must have equal lengths, got {min(sizes)} and {max(sizes)} bytes")
    size = sizes.pop() if sizes else 0
    if size % dtype.size:
        raise InvalidArgumentError(f"the length must be a multiple of {dtype.size} ({dtype.name}), got {size} bytes")
    kind = np.dtype(dtype.as_numpy_dtype)
    array = np.frombuffer(b"".join(values), kind if little_endian or dtype.size == 1 else kind.newbyteorder(">"))
    return _native.own_tensor(array.reshape(*x.shape, size // dtype.size), dtype)


def decode_compressed(bytes: Any, compression_type: str = "", name: str | None = None) -> _native.Tensor:
    """Decompresses each string."""
    window = {"GZIP": 31, "ZLIB": 15}
    if compression_type not in ("", *window):
        raise ValueError(f"compression_type must be '', 'GZIP' or 'ZLIB', got {compression_type!r}")
    x = _native.string_tensor(bytes)
    if not compression_type:
        return x
    try:
        made = [zlib.decompress(value, window[compression_type]) for value in _native.string_values(x)]
    except zlib.error as error:
        raise DataLossError(f"the data is damaged: {error}") from None
    return _reshaped(made, x)


def _reshaped(values: list[Any], like: Any) -> _native.Tensor:
    return _native.string_reshape(_native.string_tensor(values) if values else like, list(like.shape))


def encode_base64(input: Any, pad: bool = False, name: str | None = None) -> _native.Tensor:
    """Encodes strings in the web-safe form of base64, without `=` at the end unless `pad`."""
    x = _native.string_tensor(input)
    made = [base64.urlsafe_b64encode(value) for value in _native.string_values(x)]
    return _reshaped([value if pad else value.rstrip(b"=") for value in made], x)


def decode_base64(input: Any, name: str | None = None) -> _native.Tensor:
    """Decodes strings in the web-safe form of base64."""
    x = _native.string_tensor(input)
    try:
        made = [_decoded(value) for value in _native.string_values(x)]
    except binascii.Error as error:
        raise InvalidArgumentError(f"expected web-safe base64: {error}") from None
    return _reshaped(made, x)


def _decoded(value: bytes) -> bytes:
    if b"+" in value or b"/" in value:
        raise binascii.Error("the characters are letters, digits, - and _")
    standard = value.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
    return base64.b64decode(standard + b"=" * (-len(standard) % 4), validate=True)


def column_defaults(record_defaults: Any) -> list[tuple[Any, Any]]:
    """Type and default of each column; an empty default, or a type, makes a column required."""
    columns: list[tuple[Any, Any]] = []
    for default in record_defaults:
        if isinstance(default, (_native.DType, type)):
            columns.append((dtypes.as_dtype(default), None))
            continue
        tensor = _native.as_tensor(default)
        if tensor.size > 1 or tensor.ndim > 1:
            raise ValueError(f"a default must have at most one value, got shape {tensor.shape}")
        value = tensor if tensor.size else None
        if tensor.ndim and tensor.size:
            # Not by an op, whose result has no value in a traced function.
            value = tensor[0] if tensor.dtype == dtypes.string else _native.own_tensor(np.asarray(tensor)[0])
        columns.append((tensor.dtype, value))
    return columns


def decode_csv(
    records: Any,
    record_defaults: Any,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    select_cols: Any = None,
    name: str | None = None,
) -> list[_native.Tensor]:
    """Parses strings that are rows of comma-separated values: one tensor per column, of the shape of the rows."""
    if isinstance(records, RaggedTensor):
        raise TypeError("records must be a tensor of strings, got a ragged tensor: use its values")
    select = None if select_cols is None else [int(column) for column in select_cols]
    return _native.decode_csv(
        _native.string_tensor(records),
        column_defaults(record_defaults),
        field_delim.encode(),
        use_quote_delim,
        na_value.encode(),
        select,
    )


__getattr__, __dir__ = _namespace.plain(__name__)
