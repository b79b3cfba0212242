"""Writing TFRecord files."""

from __future__ import annotations

from typing import Any

from .. import _native
from .._common import refuse_option


class TFRecordOptions:
    """How a TFRecord file is written."""

    def __init__(
        self,
        compression_type: str | None = None,
        flush_mode: Any = None,
        input_buffer_size: int | None = None,
        output_buffer_size: int | None = None,
        window_bits: int | None = None,
        compression_level: int | None = None,
        compression_method: int | None = None,
        mem_level: int | None = None,
        compression_strategy: int | None = None,
    ) -> None:
        for parameter, value in (
            ("flush_mode", flush_mode),
            ("input_buffer_size", input_buffer_size),
            ("output_buffer_size", output_buffer_size),
            ("window_bits", window_bits),
            ("compression_level", compression_level),
            ("compression_method", compression_method),
            ("mem_level", mem_level),
            ("compression_strategy", compression_strategy),
        ):
            refuse_option("TFRecordOptions", parameter, value, "the encoder chooses it", None)
        if compression_type not in (None, "", "GZIP", "ZLIB"):
            raise ValueError(f"compression_type must be '', 'GZIP' or 'ZLIB', got {compression_type!r}")
        self.compression_type = compression_type or ""


class TFRecordWriter:
    """Writes records to a TFRecord file.

    >>> import os, tempfile, taut as tf
    >>> path = os.path.join(tempfile.mkdtemp(), "numbers.tfrecord")
    >>> with tf.io.TFRecordWriter(path) as writer:
    ...     writer.write(b"one")
    ...     writer.write(b"two")
    >>> [record.numpy() for record in tf.data.TFRecordDataset(path)]
    [b'one', b'two']
    """

    def __init__(self, path: Any, options: Any = None) -> None:
        from . import path_of

        if isinstance(options, str):
            options = TFRecordOptions(options)
        self._native = _native.RecordWriter(path_of(path), "" if options is None else options.compression_type)

    def write(self, record: Any) -> None:
        """Appends a record: bytes, or a string."""
        self._native.write(record if isinstance(record, bytes) else _native.string_tensor(record).item())

    def flush(self) -> None:
        """Writes what is buffered."""
        self._native.flush()

    def close(self) -> None:
        """Completes the file."""
        self._native.close()

    def __enter__(self) -> TFRecordWriter:
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()
