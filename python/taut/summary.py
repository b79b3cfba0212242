"""Event files for TensorBoard: `tf.summary`."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from . import _namespace, _native, _raw_ops as raw, dtypes
from ._common import refuse
from .errors import DynamicShapeError
from .example_protos import field, varint
from .io._protos import tensor_proto
from .summary_trace import trace_export, trace_off, trace_on

__all__ = [
    "SummaryMetadata",
    "SummaryWriter",
    "audio",
    "create_file_writer",
    "create_noop_writer",
    "experimental",
    "flush",
    "graph",
    "histogram",
    "image",
    "record_if",
    "scalar",
    "should_record_summaries",
    "text",
    "trace_export",
    "trace_off",
    "trace_on",
    "write",
]

_SCALAR, _TENSOR, _BLOBS = 1, 2, 3


class _State(threading.local):
    """The writer, the step and the condition of this thread."""

    writer: SummaryWriter | None = None
    step: Any = None
    condition: Any = True


_state = _State()
_files = iter(range(1 << 62))


class PluginData:
    """The plugin of TensorBoard that shows a value, and what it needs to know."""

    def __init__(self, plugin_name: str = "", content: bytes = b"") -> None:
        self.plugin_name, self.content = plugin_name, content


class SummaryMetadata:
    """How TensorBoard shows a value."""

    def __init__(
        self, plugin_name: str = "", content: bytes = b"", data_class: int = 0, description: str | None = None
    ) -> None:
        self.plugin_data = PluginData(plugin_name, content)
        self.data_class, self.summary_description, self.display_name = data_class, description or "", ""

    def SerializeToString(self) -> bytes:
        """The message as bytes."""
        plugin = field(1, self.plugin_data.plugin_name.encode()) + field(2, self.plugin_data.content)
        made = field(1, plugin)
        if self.display_name:
            made += field(2, self.display_name.encode())
        if self.summary_description:
            made += field(3, self.summary_description.encode())
        return made + (varint(4 << 3) + varint(self.data_class) if self.data_class else b"")


class SummaryWriter:
    """Writes events to a file."""

    def __init__(self, path: str, max_queue: int = 10, flush_millis: int = 120_000) -> None:
        self._path, self._file, self._queued, self._most = path, _native.RecordWriter(path, ""), 0, max_queue
        self._seconds, self._flushed = flush_millis / 1000, time.monotonic()
        self._lock = threading.Lock()
        self._closed = False
        self._add(field(3, b"brain.Event:2"), None)

    def _add(self, contents: bytes, step: int | None) -> None:
        event = varint(1 << 3 | 1) + struct.pack("<d", time.time())
        if step:
            event += varint(2 << 3) + varint(step)
        with self._lock:
            self._file.write(event + contents)
            self._queued += 1
            if self._queued >= self._most or time.monotonic() - self._flushed >= self._seconds:
                self._file.flush()
                self._queued, self._flushed = 0, time.monotonic()

    @contextlib.contextmanager
    def as_default(self, step: Any = None) -> Iterator[SummaryWriter]:
        """Makes this the writer of the functions of this module, with a step."""
        before = _state.writer, _state.step
        _state.writer = self
        if step is not None:
            _state.step = step
        try:
            yield self
        finally:
            self.flush()
            _state.writer, _state.step = before

    def set_as_default(self, step: Any = None) -> None:
        """Makes this the writer of the functions of this module, with a step."""
        _state.writer = self
        if step is not None:
            _state.step = step

    def init(self) -> None:
        """Has no effect: the file exists."""

    def flush(self) -> None:
        """Writes what is buffered."""
        with self._lock:
            if not self._closed:
                self._file.flush()
                self._queued = 0

    def close(self) -> None:
        """Completes the file."""
        with self._lock:
            self._closed = True
            self._file.close()


class _NoWriter(SummaryWriter):
    """A writer that writes nothing."""

    def __init__(self) -> None:
        self._closed = True

    def _add(self, _contents: bytes, _step: int | None) -> None:
        pass

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def create_file_writer(
    logdir: Any,
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
    experimental_trackable: bool = False,
    experimental_mesh: Any = None,
) -> SummaryWriter:
    """Creates an event file in a folder. It is flushed every `max_queue` events (10), at the first event after
    `flush_millis` (two minutes), and at the end of `as_default`.
    """
    folder = os.fsdecode(logdir) if isinstance(logdir, (str, bytes, os.PathLike)) else logdir.item().decode()
    os.makedirs(folder, exist_ok=True)
    suffix = ".v2" if filename_suffix is None else filename_suffix
    parts = f"{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_files)}"
    path = os.path.join(folder, f"events.out.tfevents.{parts}{suffix}")
    return SummaryWriter(
        path, 10 if max_queue is None else max_queue, 120_000 if flush_millis is None else flush_millis
    )


def create_noop_writer() -> SummaryWriter:
    """A writer that writes nothing."""
    return _NoWriter()


@contextlib.contextmanager
def record_if(condition: Any) -> Iterator[None]:
    """Records values only if a condition, or the result of a function, is true."""
    before = _state.condition
    _state.condition = condition
    try:
        yield
    finally:
        _state.condition = before


def should_record_summaries() -> bool:
    """Whether values are recorded: there is a writer, and the condition of `record_if` holds."""
    condition = _state.condition() if callable(_state.condition) else _state.condition
    return _state.writer is not None and bool(condition)


def write(tag: Any, tensor: Any, step: Any = None, metadata: Any = None, name: str | None = None) -> bool:
    """Writes a tensor. In a traced function, it is written whenever the function runs."""
    return _write(tag, step, metadata, lambda value: value, tensor)


def _step_of(step: Any) -> Any:
    """The step of a value: the one that is given, or the one that is set."""
    step = _state.step if step is None else step
    if step is None:
        raise ValueError("step must be given, or set with tf.summary.experimental.set_step")
    return step


def _tag(name: str) -> str:
    """The tag of a value within the current name scopes."""
    from ._ops.scopes import _scope

    return _scope() + name


def _write(tag: str, step: Any, metadata: Any, made: Callable[[Any], Any], data: Any) -> bool:
    """Writes what a function makes of a value."""
    writer = _state.writer
    if writer is None or not should_record_summaries():
        return False
    step = _step_of(step)
    serialized = b"" if metadata is None else metadata if isinstance(metadata, bytes) else metadata.SerializeToString()

    def record(value: Any, number: Any) -> None:
        contents = field(1, tag.encode()) + field(8, tensor_proto(made(value)))
        if serialized:
            contents += field(9, serialized)
        writer._add(field(5, field(1, contents)), int(number))

    data = _native.as_tensor(data)
    if _native.is_tracing():
        from ._ops.py_function import py_function

        if isinstance(data, _native.StringTensor):  # Strings of a traced function are constants.
            py_function(lambda number: record(data, number), [_native.as_tensor(step)], [])
        else:
            py_function(record, [data, _native.as_tensor(step)], [])
    else:
        record(data, step)
    return True


def scalar(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Writes a number."""
    metadata = SummaryMetadata("scalars", b"", _SCALAR, description)
    return _write(_tag(name), step, metadata, lambda value: raw.cast(raw.reshape(value, []), dtypes.float32), data)


def text(name: str, data: Any, step: Any = None, description: str | None = None) -> bool:
    """Writes strings, which TensorBoard shows as Markdown."""
    return _write(_tag(name), step, SummaryMetadata("text", b"", _TENSOR, description), _native.string_tensor, data)


def image(name: str, data: Any, step: Any = None, max_outputs: int = 3, description: str | None = None) -> bool:
    """Writes up to `max_outputs` images of [images, height, width, channels]: uint8, or floats in [0, 1]."""

    def encode(value: Any) -> Any:
        from ._ops.color import convert_image_dtype
        from .io import encode_png

        if value.ndim != 4:
            raise ValueError(f"data must have shape [images, height, width, channels], got {value.shape}")
        pixels = convert_image_dtype(value[:max_outputs], dtypes.uint8, saturate=True)
        sizes = [str(value.shape[2]), str(value.shape[1])]
        pictures = [encode_png(pixels[i]).item() for i in range(pixels.shape[0])]
        return _native.string_tensor([*(size.encode() for size in sizes), *pictures])

    return _write(_tag(name), step, SummaryMetadata("images", b"", _BLOBS, description), encode, data)


def audio(
    name: str,
    data: Any,
    sample_rate: Any,
    step: Any = None,
    max_outputs: int = 3,
    encoding: str | None = None,
    description: str | None = None,
) -> bool:
    """Writes up to `max_outputs` sounds of [sounds, samples, channels], floats in [-1, 1], as WAV files."""
    if encoding not in (None, "wav"):
        raise ValueError(f"encoding must be 'wav', got {encoding!r}")

    def encode(value: Any) -> Any:
        from .audio import encode_wav

        if value.ndim != 3:
            raise ValueError(f"data must have shape [sounds, samples, channels], got {value.shape}")
        sounds = [encode_wav(value[i], sample_rate).item() for i in range(min(max_outputs, value.shape[0]))]
        # Each sound has a label, which is empty.
        return _native.string_tensor(np.array([[sound, b""] for sound in sounds], object).reshape(-1, 2))

    # Of the plugin's data, field 2 is the encoding (11: WAV).
    return _write(_tag(name), step, SummaryMetadata("audio", b"\x10\x0b", 0, description), encode, data)


def histogram(
    name: str, data: Any, step: Any = None, buckets: int | None = None, description: str | None = None
) -> bool:
    """Writes the distribution of values, in `buckets` (30) buckets of equal width."""
    count = 30 if buckets is None else int(buckets)

    def counted(value: Any) -> np.ndarray:
        flat = np.asarray(value).reshape(-1).astype(np.float64)
        if not flat.size or not count:
            return np.zeros((count, 3))
        low, high = flat.min(), flat.max()
        if low == high:
            rows = np.full((count, 3), [low, high, 0.0])
            rows[-1, 2] = flat.size
            return rows
        numbers = np.clip(((flat - low) / (high - low) * count).astype(int), 0, count - 1)
        edges = np.linspace(low, high, count + 1)
        return np.stack([edges[:-1], edges[1:], np.bincount(numbers, minlength=count)], 1)

    return _write(_tag(name), step, SummaryMetadata("histograms", b"", _TENSOR, description), counted, data)


def graph(graph_data: Any, name: str | None = None) -> bool:
    """Writes the graph of a plan, or of a function for one signature (`f.get_concrete_function(...)`): a node per step with the
    line that called it, its type and its shape, in the order in which they run.
    """
    writer = _state.writer
    if writer is None or not should_record_summaries():
        return False
    plan = getattr(graph_data, "plan", graph_data)
    if not isinstance(plan, _native.Plan):
        raise TypeError(f"graph_data must be a plan or a concrete function, got {type(graph_data).__name__}")
    writer._add(field(4, graph_message(plan)), None)
    return True


def graph_message(plan: _native.Plan) -> bytes:
    """The graph of a plan as a serialized `GraphDef`."""

    def attribute(key: str, value: bytes) -> bytes:
        return field(5, field(1, key.encode()) + field(2, value))

    nodes = b""
    for label, op, reads, line, dtype, shape in plan._nodes():
        node = field(1, label.encode()) + field(2, op.encode())
        node += b"".join(field(3, one.encode()) for one in reads)
        sizes = b"".join(field(2, varint(1 << 3) + varint(size) if size else b"") for size in shape)
        node += attribute("_output_shapes", field(1, field(7, sizes)))
        node += attribute("dtype", varint(6 << 3) + varint(dtypes.as_dtype(dtype).as_datatype_enum))
        if line:
            node += attribute("line", field(2, line.encode()))
        nodes += field(1, node)
    # `versions` with the producer that TensorBoard knows.
    return nodes + field(4, varint(1 << 3) + varint(1))


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Writes what is buffered, of the writer or of the default one."""
    chosen = writer or _state.writer
    if chosen is not None:
        chosen.flush()


class experimental:  # noqa: N801
    """The namespace `tf.summary.experimental`."""

    @staticmethod
    def set_step(step: Any) -> None:
        """Sets the step of values that are written without one."""
        _state.step = step

    @staticmethod
    def get_step() -> Any:
        """The step of values that are written without one."""
        return _state.step

    @staticmethod
    @contextlib.contextmanager
    def summary_scope(name: str, default_name: str = "summary", values: Any = None) -> Iterator[tuple[str, str]]:
        """The tag of a value within the current scopes."""
        from ._ops.scopes import name_scope

        with name_scope(name or default_name) as scope:
            yield scope.rstrip("/"), scope

    @staticmethod
    def write_raw_pb(tensor: Any, step: Any = None, name: str | None = None) -> bool:
        """Writes a serialized `Summary` message, a scalar string."""
        writer = _state.writer
        if writer is None or not should_record_summaries():
            return False
        message = _native.as_tensor(tensor)
        if message.dtype != dtypes.string or len(message.shape):
            raise ValueError(f"write_raw_pb: tensor must be a scalar string, got {message.dtype.name}{message.shape}")
        if _native.is_tracing():
            refuse("write_raw_pb", "a summary is written in every call", DynamicShapeError)
        # Of an event, field 5 is the summary.
        writer._add(field(5, message.item()), int(_step_of(step)))
        return True


__getattr__, __dir__ = _namespace.plain(__name__)
