"""Files as datasets: text lines, records, tables."""

from __future__ import annotations

import collections
import csv
import gzip
import itertools
import os
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes, nest
from ..errors import DataLossError, FailedPreconditionError, InvalidArgumentError, NotFoundError
from ..ragged_tensor import RaggedTensor
from ..spec import TensorSpec
from . import _composites, _specs
from ._dataset import AUTOTUNE, Dataset


def paths_of(filenames: Any) -> list[str]:
    """Paths from strings, path objects, lists and string tensors."""
    if isinstance(filenames, (str, bytes, os.PathLike)):
        return [os.fsdecode(filenames)]
    if isinstance(filenames, (list, tuple)):
        return [path for name in filenames for path in paths_of(name)]
    return [os.fsdecode(name) for name in _native.string_values(_native.string_tensor(filenames))]


def _native_source(filenames: Any, read: Callable[[list[str]], Any], parallel_reads: int | None) -> Any:
    """The elements of files one after the other; those of `parallel_reads` files in turns, if it is given."""
    if isinstance(filenames, Dataset):
        names = filenames
    else:
        paths = paths_of(filenames)
        # A file may be written after the dataset is made: it is missing only when it is read.
        are_there = all(os.path.exists(path) and not os.path.isdir(path) for path in paths)
        if are_there and (parallel_reads is None or len(paths) < 2):
            return read(paths)
        names = Dataset.from_tensor_slices(np.array(paths, object))
    cycle = 1 if parallel_reads is None else 4 if parallel_reads == AUTOTUNE else int(parallel_reads)
    return names.interleave(lambda name: Dataset(read(list(map(_checked, paths_of(name))))), cycle, 1)._native


def _checked(path: str) -> str:
    if not os.path.exists(path):
        raise NotFoundError(f"{path}: no such file\n  at {_native.calling_line()}")
    if os.path.isdir(path):
        raise FailedPreconditionError(f"{path}: is a folder\n  at {_native.calling_line()}")
    return path


class _FileStrings(Dataset):
    """The strings of files: lines, or records."""

    def __init__(
        self,
        kind: str,
        lengths: list[int] | None,
        filenames: Any,
        compression_type: Any,
        buffer_size: int | None,
        num_parallel_reads: int | None,
    ) -> None:
        def read(paths: list[str]) -> Any:
            return _native.file_strings(paths, kind, lengths, compression_type or "", buffer_size)

        source = _native_source(filenames, read, num_parallel_reads)
        super().__init__(source, lambda: _specs.exactly(TensorSpec([], dtypes.string)))


class TextLineDataset(_FileStrings):
    """The lines of text files, without their ends. Files may be compressed (`GZIP`, `ZLIB`)."""

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__("lines", None, filenames, compression_type, buffer_size, num_parallel_reads)


class TFRecordDataset(_FileStrings):
    """The records of TFRecord files. Lengths and checksums are verified."""

    def __init__(
        self,
        filenames: Any,
        compression_type: Any = None,
        buffer_size: int | None = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__("records", None, filenames, compression_type, buffer_size, num_parallel_reads)


class FixedLengthRecordDataset(_FileStrings):
    """The records of binary files, each of `record_bytes` bytes, between a header and a footer."""

    def __init__(
        self,
        filenames: Any,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        buffer_size: int | None = None,
        compression_type: Any = None,
        num_parallel_reads: int | None = None,
        name: str | None = None,
    ) -> None:
        lengths = [int(length or 0) for length in (record_bytes, header_bytes, footer_bytes)]
        if lengths[0] < 1 or min(lengths) < 0:
            raise InvalidArgumentError(
                f"record_bytes must be >= 1, header_bytes and footer_bytes >= 0, got {', '.join(map(str, lengths))}"
            )
        super().__init__("fixed", lengths, filenames, compression_type, buffer_size, num_parallel_reads)


class CsvDataset(Dataset):
    """The rows of CSV files: a scalar per column, of the type of its default. A type as default makes it required."""

    def __init__(
        self,
        filenames: Any,
        record_defaults: Any,
        compression_type: Any = None,
        buffer_size: int | None = None,
        header: bool = False,
        field_delim: str = ",",
        use_quote_delim: bool = True,
        na_value: str = "",
        select_cols: Any = None,
        exclude_cols: Any = None,
    ) -> None:
        from ..io import column_defaults

        columns = column_defaults(record_defaults)
        select = None if select_cols is None else [int(column) for column in select_cols]
        most_fields = None
        if exclude_cols is not None:
            if select is not None:
                raise InvalidArgumentError("select_cols and exclude_cols must not both be given")
            excluded = {int(column) for column in exclude_cols}
            kept = (i for i in itertools.count() if i not in excluded)
            select = list(itertools.islice(kept, len(columns)))
            most_fields = next(kept)
        kind = compression_type or ""

        def read(paths: list[str]) -> Any:
            return _native.csv_rows(
                paths,
                columns,
                bool(header),
                field_delim.encode(),
                bool(use_quote_delim),
                na_value.encode(),
                select,
                kind,
                buffer_size,
                most_fields,
            )

        known = _specs.exactly(tuple(TensorSpec([], dtype) for dtype, _ in columns))
        super().__init__(_native_source(filenames, read, None), lambda: known)
        self._read = read


_NUMBERS = ((dtypes.int32, 2**31), (dtypes.int64, 2**63))


def _kind(text: str, kind: Any) -> Any:
    """The type of a column so far, widened so that it holds a field."""
    order = (None, dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)
    found: Any = dtypes.string
    try:
        number = int(text)
        found = next((dtype for dtype, limit in _NUMBERS if -limit <= number < limit), dtypes.float64)
    except ValueError:
        try:
            value = float(text)
            # As in TensorFlow, a column with a value that is not finite is text, unless it has a default.
            if np.isfinite(value):
                single = abs(value) <= float(np.finfo(np.float32).max)
                found = dtypes.float32 if single else dtypes.float64
        except ValueError:
            pass
    return max(found, kind, key=lambda one: order.index(one))


def _rows(path: str, compression: Any, delimiter: str, quote: bool, encoding: str) -> Iterator[list[str]]:
    quoting: Any = csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE
    try:
        if compression == "ZLIB":
            with open(path, "rb") as packed:
                lines: Any = zlib.decompress(packed.read()).decode(encoding).splitlines()
            yield from csv.reader(lines, delimiter=delimiter, quoting=quoting)
            return
        opened: Any = gzip.open if compression == "GZIP" else open
        with opened(path, "rt", encoding=encoding, newline="") as file:
            yield from csv.reader(file, delimiter=delimiter, quoting=quoting)
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(
            f"{path}: the text must be {encoding}, got byte {error.object[error.start]:#x}: pass its encoding as encoding="
        ) from None


def make_csv_dataset(
    file_pattern: Any,
    batch_size: int,
    column_names: Any = None,
    column_defaults: Any = None,
    label_name: str | None = None,
    select_columns: Any = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    num_parallel_reads: int | None = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: Any = None,
    ignore_errors: bool = False,
    encoding: str = "utf-8",
) -> Dataset:
    """Batches of the rows of CSV files: dicts of columns, or pairs of such a dict and the labels.

    Types that are not given are those of the first rows: int32, int64, float32, float64 or string. Empty fields are 0 or
    the empty string.
    """
    from ..io import matching

    patterns = file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]
    files = sorted(path for pattern in patterns for path in matching(pattern))
    if not files:
        raise InvalidArgumentError(f"no file matches {file_pattern!r}")
    if column_names is None:
        if not header:
            raise ValueError("column_names must be given if the files have no header")
        column_names = next(_rows(files[0], compression_type, field_delim, use_quote_delim, encoding), None)
        if column_names is None:
            raise InvalidArgumentError(f"{files[0]}: expected a row of column names, got an empty file")
    names = list(column_names)
    if len(set(names)) != len(names):
        raise ValueError(f"column names must be unique, got {names}")
    select = list(range(len(names)))
    if select_columns is not None:
        unknown = [one for one in select_columns if one not in (names if isinstance(one, str) else select)]
        if unknown:
            raise ValueError(f"select_columns must be among the columns {names}, got {unknown[0]!r}")
        select = sorted(names.index(one) if isinstance(one, str) else int(one) for one in select_columns)
    chosen = [names[i] for i in select]
    if label_name is not None and label_name not in chosen:
        raise ValueError(f"label_name must be one of the columns {chosen}, got {label_name!r}")
    if column_defaults is not None:
        defaults = list(column_defaults)
        if len(defaults) == len(names) and len(select) != len(names):
            defaults = [defaults[i] for i in select]
    else:
        defaults = _inferred(
            files, select, header, na_value, num_rows_for_inference,
            lambda path: _rows(path, compression_type, field_delim, use_quote_delim, encoding),
        )  # fmt: skip
    if len(defaults) != len(select):
        raise ValueError(f"column_defaults must have {len(select)} entries, got {len(defaults)}")
    files = files if not shuffle else list(np.random.default_rng(shuffle_seed).permutation(files))
    one_by_one = CsvDataset(
        files,
        defaults,
        compression_type,
        None,
        header,
        field_delim,
        use_quote_delim,
        na_value,
        None if select_columns is None else select,
    )
    rows: Dataset = one_by_one
    if num_parallel_reads not in (None, AUTOTUNE):
        rows = Dataset(_native_source(files, one_by_one._read, num_parallel_reads), lambda: one_by_one._elements)
    if ignore_errors:
        source: Any = rows
        rows = source.ignore_errors()
    if shuffle:
        rows = rows.shuffle(shuffle_buffer_size, shuffle_seed)
    batches = rows.repeat(num_epochs).batch(int(batch_size), drop_remainder=num_epochs is None)

    def named(*columns: Any) -> Any:
        features = collections.OrderedDict(zip(chosen, columns))
        return features if label_name is None else (features, features.pop(label_name))

    made = batches.map(named)
    # The function moves the columns as they are, and with them their specs.
    made._find_spec = lambda: None if batches._spec is None else named(*batches._spec)
    return made.prefetch(1 if prefetch_buffer_size is None else prefetch_buffer_size)


def _inferred(
    files: list[str], select: list[int], header: bool, na_value: str, most: int | None, rows: Callable
) -> list[Any]:
    """A default of the type of each column, from its first fields."""
    kinds: list[Any] = [None] * len(select)
    count = 0
    for path in files:
        for number, row in enumerate(rows(path)):
            if number == 0 and header:
                continue
            if most is not None and count == most:
                break
            count += 1
            for i, column in enumerate(select):
                text = row[column] if column < len(row) else ""
                if text not in ("", na_value):
                    kinds[i] = _kind(text, kinds[i])
    empty = {None: "", dtypes.string: ""}
    return [_native.as_tensor(empty.get(kind, 0), kind or dtypes.string) for kind in kinds]


def list_files(
    file_pattern: Any, shuffle: bool | None = None, seed: int | None = None, name: str | None = None
) -> Dataset:
    """The names of the files that match a pattern; shuffled anew in each iteration, unless `shuffle` is False."""
    from ..io import matching

    found = sorted(matching(file_pattern))
    if not found:
        raise InvalidArgumentError(f"no file matches {file_pattern!r}\n  at {_native.calling_line()}")
    names = Dataset.from_tensor_slices(np.array(found, object))
    return names if shuffle is False else names.shuffle(len(found), seed)


def columns_of(table: Any) -> dict[str, Any]:
    """The columns of an Arrow table as tensors over its memory; lists become ragged tensors and structs dicts, columns of
    several chunks are copied.
    """
    return {name: _column(table.column(name), name) for name in table.column_names}


def _column(column: Any, name: str) -> Any:
    import pyarrow as pa

    array = column.combine_chunks() if hasattr(column, "combine_chunks") else column
    if isinstance(array, pa.ChunkedArray):
        array = array.chunk(0) if array.num_chunks else pa.array([], column.type)
    kind = array.type
    if pa.types.is_struct(kind) and [field.name for field in kind] == ["bytes", "path"]:
        # Pictures and sounds of Hugging Face: their contents, or the name of their file.
        return {field.name: _column(part.fill_null(""), name) for field, part in zip(kind, array.flatten())}
    if array.null_count:
        text = f"column {name!r} must have no missing values, got {array.null_count}"
        raise InvalidArgumentError(
            f"{text}\n  help: pyarrow.compute.fill_null and Table.drop_null replace or drop them"
        )
    if isinstance(array, pa.ExtensionArray):
        try:
            # Arrays of several dimensions, such as those of Hugging Face.
            return _native.as_tensor(getattr(array, "to_numpy_ndarray", lambda: array.to_numpy(zero_copy_only=False))())
        except (TypeError, ValueError):
            array = array.storage
            kind = array.type
    if pa.types.is_dictionary(kind):
        array = array.dictionary_decode()
        kind = array.type
    if pa.types.is_struct(kind):
        parts = zip(kind, array.flatten())
        return {field.name: _column(part, f"{name}.{field.name}") for field, part in parts}
    if pa.types.is_fixed_size_list(kind):
        return nest.map_structure(
            lambda inner: raw.reshape(inner, [len(array), kind.list_size, *inner.shape[1:]]),
            _column(array.flatten(), name),
        )
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        offsets = np.asarray(array.offsets).astype(np.int64)
        values = array.values.slice(offsets[0], offsets[-1] - offsets[0])
        splits = offsets - offsets[0]
        return nest.map_structure(lambda inner: RaggedTensor.from_row_splits(inner, splits), _column(values, name))
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        array = array.cast(pa.large_binary())
        kind = array.type
    if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
        if not len(array):
            return _native.string_tensor(np.empty(0, object))
        _, offsets, data = array.buffers()
        ends = np.frombuffer(offsets, np.int64)[array.offset : array.offset + len(array) + 1]
        bytes_ = np.frombuffer(data, np.uint8)[ends[0] : ends[-1]] if data else np.zeros(0, np.uint8)
        return _native.string_from_parts(ends[1:], bytes_)
    try:
        return _native.as_tensor(array.to_numpy(zero_copy_only=False))
    except (TypeError, ValueError):
        text = f"column {name!r} of type {kind} cannot be converted to a tensor"
        raise TypeError(f"{text}\n  help: Table.cast converts it to numbers or text, columns= leaves it out") from None


def _table(source: Any) -> Any:
    """An Arrow table, record batch or reader, a frame, or another object with Arrow's stream protocol, as a table."""
    import pyarrow as pa

    if isinstance(source, (pa.Table, pa.RecordBatch)):
        return source
    if isinstance(source, pa.RecordBatchReader):
        return source.read_all()
    if type(source).__module__.partition(".")[0] == "pandas":
        return pa.Table.from_pandas(source, preserve_index=False)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return pa.table(source)
    raise TypeError(f"expected a table of Arrow, a frame or a datasets.Dataset, got {source!r}")


def from_arrow(table: Any, columns: Any = None) -> Dataset:
    """The rows of a `pyarrow.Table`, of a frame of pandas or polars, or of a `datasets.Dataset` of Hugging Face, as dicts.
    Memory is shared.

    Structs are dicts. Of a picture or sound of Hugging Face, `bytes` are the encoded contents and `path` the name of the file;
    what is missing of the two is empty. A `datasets.IterableDataset` is read in parts.
    """
    if not hasattr(table, "with_format"):
        found = _table(table)
    elif hasattr(table, "__len__"):
        found = table.with_format("arrow")[:]
    else:
        return _from_stream(table.with_format("arrow"), columns)
    return Dataset.from_tensor_slices(columns_of(_selected(found, columns)))


def _selected(table: Any, columns: Any) -> Any:
    if columns is None:
        return table
    _check_columns("from_arrow", list(columns), list(table.column_names))
    return table.select(list(columns))


#: The rows of a part of a dataset that is read in parts.
_PART_ROWS = 1024


def _from_stream(stream: Any, columns: Any) -> Dataset:
    """The rows of a dataset of Hugging Face whose size is not known."""

    def rows() -> Iterator:
        for part in stream.iter(_PART_ROWS):
            yield from _composites.rows(columns_of(_selected(part, columns)))

    return Dataset._from_iterators(rows)


def _check_columns(path: str, names: list[str], known: list[str]) -> None:
    for name in names:
        if name not in known:
            raise ValueError(f"{path}: columns must be among {known}, got {name!r}")


def from_parquet(path: Any, columns: Any = None, batch_rows: int = 65536) -> Dataset:
    """The rows of Parquet files as dicts, read `batch_rows` rows at a time. Needs `pyarrow`."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    paths = paths_of(path)
    names = None if columns is None else list(columns)

    def batches() -> Iterator[dict[str, Any]]:
        for one in paths:
            try:
                with pq.ParquetFile(one) as file:
                    if names is not None:
                        _check_columns(one, names, file.schema_arrow.names)
                    for batch in file.iter_batches(batch_rows, columns=names):
                        yield columns_of(pa.Table.from_batches([batch]))
            except InvalidArgumentError as error:
                raise InvalidArgumentError(f"{one}: {error}") from None
            except FileNotFoundError:
                raise NotFoundError(f"{one}: no such file") from None
            except (pa.ArrowInvalid, OSError) as error:
                raise DataLossError(f"{one}: {error}") from None

    if not _has_lists(paths, names):
        return Dataset._from_iterators(batches).unbatch()
    return Dataset._from_iterators(lambda: (row for batch in batches() for row in _composites.rows(batch)))


def _has_lists(paths: list[str], names: list[str] | None) -> bool:
    """Whether a column has lists, which become ragged tensors. A file that cannot be read is an error when its rows are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        fields = [field for one in paths for field in pq.read_schema(one)]
    except (pa.ArrowInvalid, OSError):
        return False

    def has_lists(kind: Any) -> bool:
        if pa.types.is_struct(kind):
            return any(has_lists(field.type) for field in kind)
        return pa.types.is_list(kind) or pa.types.is_large_list(kind)

    return any(has_lists(field.type) for field in fields if names is None or field.name in names)


for _function in (list_files, from_arrow, from_parquet):
    setattr(Dataset, _function.__name__, staticmethod(_function))
