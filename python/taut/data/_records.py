"""Datasets of examples in record files, and of the results of queries."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from .. import _native, dtypes
from ..errors import InvalidArgumentError
from ..spec import TensorSpec
from . import _specs
from ._dataset import AUTOTUNE, Dataset
from ._sources import TFRecordDataset


def make_batched_features_dataset(
    file_pattern: Any,
    batch_size: int,
    features: dict[str, Any],
    reader: Any = None,
    label_key: str | None = None,
    reader_args: list | None = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: int = 10000,
    shuffle_seed: int | None = None,
    prefetch_buffer_size: int | None = None,
    reader_num_threads: int | None = None,
    parser_num_threads: int | None = None,
    sloppy_ordering: bool = False,
    drop_final_batch: bool = False,
) -> Dataset:
    """Batches of the parsed examples of record files: dicts of features, or pairs of such a dict and the label. Without
    `num_epochs`, the files are repeated without end.
    """
    from ..io import matching, parse_example

    if label_key is not None and label_key not in features:
        raise ValueError(f"label_key must be one of the features {sorted(features)}, got {label_key!r}")
    patterns = file_pattern if isinstance(file_pattern, (list, tuple)) else [file_pattern]
    files = sorted({path for pattern in patterns for path in matching(pattern)})
    if not files:
        raise InvalidArgumentError(f"no file matches {file_pattern!r}")
    if shuffle:
        files = list(np.random.default_rng(shuffle_seed).permutation(files))
    rows: Any = (TFRecordDataset if reader is None else reader)(files, *(reader_args or []))
    if shuffle:
        rows = rows.shuffle(shuffle_buffer_size, shuffle_seed)
    rows = rows.repeat(num_epochs).batch(batch_size, drop_final_batch or num_epochs is None)

    def parse(batch: Any) -> Any:
        # A reader may give pairs of keys and examples.
        made = parse_example(batch[1] if isinstance(batch, tuple) else batch, features)
        return made if label_key is None else (made, made.pop(label_key))

    parsed = rows.map(parse, num_parallel_calls=parser_num_threads or AUTOTUNE)
    return parsed.prefetch(prefetch_buffer_size or AUTOTUNE)


class SqlDataset(Dataset):
    """The rows of a query: tuples of tensors. The only driver is "sqlite", whose source is the path of a file."""

    def __init__(self, driver_name: Any, data_source_name: Any, query: Any, output_types: Any) -> None:
        driver, source, text = (
            _native.string_tensor(one).item().decode() for one in (driver_name, data_source_name, query)
        )
        if driver != "sqlite":
            raise InvalidArgumentError(f"driver_name must be 'sqlite', got {driver!r}")
        types = [dtypes.as_dtype(one) for one in output_types]
        specs = tuple(TensorSpec([], one) for one in types)

        def rows() -> Iterator:
            import contextlib
            import sqlite3

            try:
                with contextlib.closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as base:
                    for row in base.execute(text):
                        if len(row) != len(types):
                            raise InvalidArgumentError(f"output_types must have {len(row)} entries, got {len(types)}")
                        yield tuple(_cell(value, kind) for value, kind in zip(row, types))
            except sqlite3.Error as error:
                raise InvalidArgumentError(f"{source}: {error} in the query {text!r}") from None

        made = Dataset._from_iterators(rows, lambda: _specs.exactly(specs))
        super().__init__(made._native, lambda: _specs.exactly(specs))


def _cell(value: Any, kind: Any) -> Any:
    """A value of a row, converted as by SQLite: NULL is 0 or the empty string, and a text the number that it begins with."""
    if kind == dtypes.string:
        return _native.string_tensor("" if value is None else value if isinstance(value, bytes) else str(value))
    if isinstance(value, (str, bytes)):
        text = value.decode(errors="replace") if isinstance(value, bytes) else value
        number = re.match(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?" if kind.is_floating else r"\s*[+-]?\d+", text)
        value = 0 if number is None else (float if kind.is_floating else int)(number[0])
    value = value or 0
    return _native.own_tensor(bool(value) if kind == dtypes.bool else value if kind.is_floating else int(value), kind)
