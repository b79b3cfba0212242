"""Elements of datasets in files."""

from __future__ import annotations

import gzip
import json
import os
import secrets
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .. import _native, dtypes, nest
from ..errors import DataLossError, NotFoundError
from ..spec import TensorSpec
from ..type_spec import NoneTensorSpec

_INDEX = "dataset.json"
_VERSION = 1


def save(elements: Iterable, specs: Any, path: str, compression: str | None) -> None:
    """Writes elements into a folder: one file of their bytes, and an index. The index comes last, so that a folder without one
    is not taken for a dataset."""
    if compression not in (None, "GZIP", "NONE"):
        raise ValueError(f"compression must be None, 'NONE' or 'GZIP', got {compression!r}")
    os.makedirs(path, exist_ok=True)
    data, count = f"elements-{secrets.token_hex(8)}.bin", 0
    opened: Any = gzip.open if compression == "GZIP" else open
    with opened(os.path.join(path, data), "wb") as file:
        for element in elements:
            parts = [leaf for leaf in nest.flatten(element) if leaf is not None]
            shapes = [list(part.shape) for part in parts]
            header = json.dumps(shapes).encode()
            file.write(len(header).to_bytes(4, "little") + header)
            for part in parts:
                file.write(_bytes(part))
            count += 1
        if compression != "GZIP":
            file.flush()
            os.fsync(file.fileno())
    index = {
        "version": _VERSION,
        "compression": compression,
        "count": count,
        "data": data,
        "structure": _encoded(specs),
    }
    draft = os.path.join(path, f"{_INDEX}.{secrets.token_hex(8)}")
    with open(draft, "w") as file:
        json.dump(index, file)
        file.flush()
        os.fsync(file.fileno())
    os.replace(draft, os.path.join(path, _INDEX))
    for name in os.listdir(path):
        if name.startswith("elements-") and name != data:
            os.remove(os.path.join(path, name))


def _bytes(part: Any) -> bytes:
    """The bytes of numbers; of strings, whose lengths are not known from their shape, a message behind its length."""
    if part.dtype != dtypes.string:
        return np.asarray(part).tobytes()
    message = _native.serialize_tensor(part)
    return len(message).to_bytes(8, "little") + message


def read_index(path: str) -> dict[str, Any]:
    """The index of a folder that `save` has written."""
    try:
        with open(os.path.join(path, _INDEX)) as file:
            index = json.load(file)
    except FileNotFoundError:
        raise NotFoundError(f"no dataset in {path!r}: it has no {_INDEX}") from None
    except ValueError as error:
        raise DataLossError(f"{os.path.join(path, _INDEX)} is corrupt: {error}") from None
    if index.get("version") != _VERSION:
        raise DataLossError(f"{path!r} was written by another version: {index.get('version')!r}")
    return index


def load(path: str, index: dict[str, Any], specs: Any) -> Iterator:
    """Reads the elements one at a time."""
    opened: Any = gzip.open if index["compression"] == "GZIP" else open
    flat = nest.flatten(specs)
    kinds = [spec.dtype for spec in flat if isinstance(spec, TensorSpec)]
    with opened(os.path.join(path, index["data"]), "rb") as file:
        for number in range(index["count"]):
            yield _element(_Reader(file, path, number), specs, flat, kinds)


class _Reader:
    """Reads exact numbers of bytes of an element."""

    def __init__(self, file: Any, path: str, number: int) -> None:
        self._file, self._path, self._number = file, path, number

    def read(self, count: int) -> bytes:
        """The next bytes; an error if there are fewer."""
        found = self._file.read(count)
        if len(found) != count:
            self.corrupt()
        return found

    def corrupt(self) -> None:
        """Raises the error."""
        raise DataLossError(f"element {self._number} of the dataset in {self._path!r} is corrupt")


def _element(reader: _Reader, specs: Any, flat: list, kinds: list) -> Any:
    shapes: Any = None
    try:
        shapes = json.loads(reader.read(int.from_bytes(reader.read(4), "little")))
    except ValueError:
        reader.corrupt()
    if not isinstance(shapes, list) or len(shapes) != len(kinds):
        reader.corrupt()
    parts = []
    for shape, dtype in zip(shapes, kinds):
        if dtype == dtypes.string:
            parts.append(
                _native.parse_tensor(_native.string_tensor(reader.read(int.from_bytes(reader.read(8), "little"))))
            )
            continue
        array_type = np.dtype(dtype.as_numpy_dtype)
        count = int(np.prod([int(size) for size in shape], dtype=object)) if shape else 1
        raw = reader.read(count * array_type.itemsize)
        parts.append(_native.own_tensor(np.frombuffer(raw, array_type).reshape(shape), dtype))
    rest = iter(parts)
    return nest.pack_sequence_as(specs, [next(rest) if isinstance(spec, TensorSpec) else None for spec in flat])


def _encoded(specs: Any) -> Any:
    if isinstance(specs, dict):
        return {"dict": [[key, _encoded(part)] for key, part in specs.items()]}
    if isinstance(specs, (list, tuple)):
        return {"tuple": [_encoded(part) for part in specs]}
    if isinstance(specs, NoneTensorSpec):
        return {"none": True}
    if not isinstance(specs, TensorSpec):
        raise TypeError(f"elements must be tensors to be saved, got {specs!r}")
    rank_known = specs.shape.rank is not None
    return {"dtype": specs.dtype.name, "shape": list(specs.shape) if rank_known else None}


def decoded(structure: Any) -> Any:
    """The specs of an index."""
    match structure:
        case {"dict": parts}:
            return {key: decoded(part) for key, part in parts}
        case {"tuple": parts}:
            return tuple(decoded(part) for part in parts)
        case {"none": _}:
            return NoneTensorSpec()
        case {"dtype": name, "shape": shape}:
            return TensorSpec(shape, dtypes.as_dtype(name))
    raise DataLossError(f"the index of the dataset is corrupt: {structure!r}")
