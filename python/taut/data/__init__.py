"""Input pipelines: datasets with background threads and buffers bounded in bytes."""

from __future__ import annotations

from .. import _namespace
from ..type_spec import DatasetSpec, IteratorSpec
from . import _arguments as _arguments, experimental
from ._dataset import AUTOTUNE, INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Dataset
from ._iterators import (
    DatasetIterator as DatasetIterator,
    Iterator,
    NumpyIterator,
    Optional as Optional,
    Report as Report,
    TracedIterator as TracedIterator,
)
from ._options import DatasetOptions as Options, ThreadingOptions
from ._sources import FixedLengthRecordDataset, TextLineDataset, TFRecordDataset

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "UNKNOWN_CARDINALITY",
    "Dataset",
    "DatasetSpec",
    "FixedLengthRecordDataset",
    "Iterator",
    "IteratorSpec",
    "NumpyIterator",
    "Options",
    "TFRecordDataset",
    "TextLineDataset",
    "ThreadingOptions",
    "experimental",
]
__getattr__, __dir__ = _namespace.plain(__name__)
