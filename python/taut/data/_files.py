"""Elements of datasets in files."""

from __future__ import annotations

import gzip
import json
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from .. import _native, dtypes, nest
from ..errors import DataLossError, InvalidArgumentError, NotFoundError
from ..ragged_tensor import RaggedTensor, RaggedTensorSpec
from ..sparse_tensor import SparseTensor
from ..spec import TensorSpec
from ..type_spec import NoneTensorSpec, SparseTensorSpec
from ._stages import applied

_INDEX = "dataset.json"
_VERSION = 2
#: How many files of shards are open at once.
_OPEN = 64
_UNCOMPRESSED = (None, "", "NONE", "AUTO")


class Writer:
    """Writes elements into a folder: a file of their bytes for each shard, and an index. The index comes last, so that a folder
    without one is not taken for a dataset."""

    def __init__(self, specs: Any, path: str, compression: str | None, shard_func: Callable | None) -> None:
        if compression not in (*_UNCOMPRESSED, "GZIP"):
            text = f"compression must be None, 'NONE', 'AUTO' or 'GZIP', got {compression!r}"
            raise ValueError(f"{text}: elements are not compressed, or by gzip")
        self._path, self._shard_func = path, shard_func
        self._compression = None if compression in _UNCOMPRESSED else compression
        self._structure = _encoded(specs)
        self._token = secrets.token_hex(8)
        self._files: dict[int, Any] = {}
        self._counts: dict[int, int] = {}
        os.makedirs(path, exist_ok=True)

    def _name(self, shard: int) -> str:
        return f"elements-{self._token}-{shard}.bin"

    def _file(self, shard: int) -> Any:
        found = self._files.pop(shard, None)
        if found is None:
            while len(self._files) >= _OPEN:
                self._close(next(iter(self._files)))
            found = _opened(self._compression)(os.path.join(self._path, self._name(shard)), "ab")
        # The shard that was used last is closed last.
        self._files[shard] = found
        return found

    def _close(self, shard: int) -> None:
        with self._files.pop(shard) as file:
            if self._compression is None:
                file.flush()
                os.fsync(file.fileno())

    def add(self, element: Any) -> None:
        """Writes an element."""
        shard = 0 if self._shard_func is None else _shard(applied(self._shard_func, element))
        parts = [part for leaf in nest.flatten(element) if leaf is not None for part in _parts(leaf)]
        header = json.dumps([list(part.shape) for part in parts]).encode()
        file = self._file(shard)
        file.write(len(header).to_bytes(4, "little") + header)
        for part in parts:
            file.write(_bytes(part))
        self._counts[shard] = self._counts.get(shard, 0) + 1

    def finish(self) -> None:
        """Writes the index, and removes what an earlier dataset has left."""
        for shard in list(self._files):
            self._close(shard)
        shards = [{"data": self._name(shard), "count": count} for shard, count in sorted(self._counts.items())]
        index = {
            "version": _VERSION,
            "compression": self._compression,
            "count": sum(self._counts.values()),
            "shards": shards,
            "structure": self._structure,
        }
        draft = os.path.join(self._path, f"{_INDEX}.{self._token}")
        with open(draft, "w") as file:
            json.dump(index, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, os.path.join(self._path, _INDEX))
        kept = {shard["data"] for shard in shards}
        for name in os.listdir(self._path):
            if name.startswith("elements-") and name not in kept:
                os.remove(os.path.join(self._path, name))

    def abandon(self) -> None:
        """Removes what was written."""
        for shard in list(self._files):
            self._files.pop(shard).close()
        for shard in self._counts:
            os.remove(os.path.join(self._path, self._name(shard)))


def save(elements: Iterable, specs: Any, path: str, compression: str | None, shard_func: Callable | None) -> None:
    """Writes elements into a folder."""
    for _ in saving(elements, specs, path, compression, shard_func):
        pass


def saving(elements: Iterable, specs: Any, path: str, compression: str | None, shard_func: Callable | None) -> Iterator:
    """Yields elements and writes them into a folder. If not all are taken, or one fails, the folder is as it was."""
    writer = Writer(specs, path, compression, shard_func)
    try:
        for element in elements:
            writer.add(element)
            yield element
    except BaseException:
        writer.abandon()
        raise
    writer.finish()


def _shard(found: Any) -> int:
    """The number of a shard, from what a program's function returns."""
    tensor = _native.as_tensor(found)
    if tensor.dtype != dtypes.int64 or len(tensor.shape):
        text = f"shard_func must return a scalar int64, got {tensor.dtype.name}{list(tensor.shape)}"
        raise InvalidArgumentError(f"save: {text}\n  help: cast it, tf.cast(number, tf.int64)")
    return int(tensor)


def _opened(compression: str | None) -> Any:
    return gzip.open if compression == "GZIP" else open


def _parts(leaf: Any) -> list:
    """The tensors of a tensor, or of a ragged or sparse one."""
    if isinstance(leaf, RaggedTensor):
        return [leaf.flat_values, *leaf.nested_row_splits]
    return list(leaf._taut_parts()) if isinstance(leaf, SparseTensor) else [leaf]


def _part_types(spec: Any) -> list:
    """The types of the tensors of a leaf."""
    if isinstance(spec, RaggedTensorSpec):
        return [spec.dtype, *[spec.row_splits_dtype] * spec.ragged_rank]
    if isinstance(spec, SparseTensorSpec):
        return [dtypes.int64, spec.dtype, dtypes.int64]
    return [] if isinstance(spec, NoneTensorSpec) else [spec.dtype]


def _joined(spec: Any, parts: list) -> Any:
    """A leaf of its tensors."""
    if isinstance(spec, RaggedTensorSpec):
        return RaggedTensor.from_nested_row_splits(parts[0], parts[1:]) if spec.ragged_rank else parts[0]
    if isinstance(spec, SparseTensorSpec):
        return SparseTensor(parts[0], parts[1], parts[2])
    return None if isinstance(spec, NoneTensorSpec) else parts[0]


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
    if index.get("version") not in (1, _VERSION):
        raise DataLossError(f"{path!r} was written by another version: {index.get('version')!r}")
    # The first version had one file.
    index.setdefault("shards", [{"data": index.get("data"), "count": index["count"]}])
    return index


def wait_for(path: str) -> None:
    """Waits until a dataset is in a folder."""
    while not os.path.exists(os.path.join(path, _INDEX)):
        time.sleep(0.1)


def load(path: str, index: dict[str, Any], specs: Any, shard: dict[str, Any]) -> Iterator:
    """Reads the elements of a shard one at a time."""
    flat = nest.flatten(specs)
    if not shard["count"]:
        return
    with _opened(index["compression"])(os.path.join(path, shard["data"]), "rb") as file:
        for number in range(shard["count"]):
            yield _element(_Reader(file, path, number), specs, flat)


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


def _element(reader: _Reader, specs: Any, flat: list) -> Any:
    shapes: Any = None
    try:
        shapes = json.loads(reader.read(int.from_bytes(reader.read(4), "little")))
    except ValueError:
        reader.corrupt()
    types = [_part_types(spec) for spec in flat]
    if not isinstance(shapes, list) or len(shapes) != sum(map(len, types)):
        reader.corrupt()
    rest = iter(shapes)
    leaves = [_joined(spec, [_part(reader, next(rest), dtype) for dtype in own]) for spec, own in zip(flat, types)]
    return nest.pack_sequence_as(specs, leaves)


def _part(reader: _Reader, shape: list, dtype: _native.DType) -> _native.Tensor:
    if dtype == dtypes.string:
        size = int.from_bytes(reader.read(8), "little")
        return _native.parse_tensor(_native.string_tensor(reader.read(size)))
    array_type = np.dtype(dtype.as_numpy_dtype)
    count = int(np.prod([int(size) for size in shape], dtype=object)) if shape else 1
    raw = reader.read(count * array_type.itemsize)
    return _native.own_tensor(np.frombuffer(raw, array_type).reshape(shape), dtype)


def _encoded(specs: Any) -> Any:
    if isinstance(specs, dict):
        return {"dict": [[key, _encoded(part)] for key, part in specs.items()]}
    if isinstance(specs, (list, tuple)):
        return {"tuple": [_encoded(part) for part in specs]}
    if isinstance(specs, NoneTensorSpec):
        return {"none": True}
    if not isinstance(specs, (TensorSpec, RaggedTensorSpec, SparseTensorSpec)):
        raise TypeError(f"elements must be tensors to be saved, got {specs!r}")
    rank_known = specs.shape.rank is not None
    tensor = {"dtype": specs.dtype.name, "shape": list(specs.shape) if rank_known else None}
    if isinstance(specs, RaggedTensorSpec):
        return {"ragged": tensor, "ragged_rank": specs.ragged_rank, "row_splits": specs.row_splits_dtype.name}
    return {"sparse": tensor} if isinstance(specs, SparseTensorSpec) else tensor


def decoded(structure: Any) -> Any:
    """The specs of an index."""
    match structure:
        case {"dict": parts}:
            return {key: decoded(part) for key, part in parts}
        case {"tuple": parts}:
            return tuple(decoded(part) for part in parts)
        case {"none": _}:
            return NoneTensorSpec()
        case {"ragged": {"dtype": name, "shape": shape}, "ragged_rank": rank, "row_splits": splits}:
            return RaggedTensorSpec(shape, dtypes.as_dtype(name), rank, dtypes.as_dtype(splits))
        case {"sparse": {"dtype": name, "shape": shape}}:
            return SparseTensorSpec(shape, dtypes.as_dtype(name))
        case {"dtype": name, "shape": shape}:
            return TensorSpec(shape, dtypes.as_dtype(name))
    raise DataLossError(f"the index of the dataset is corrupt: {structure!r}")
