"""Names of TensorFlow 1 that programs of TensorFlow 2 use, and conversions between text and bytes."""

from __future__ import annotations

import datetime
import importlib
import numbers
import os
from typing import Any

import numpy as np

from . import v1 as v1

#: Types of text, and of numbers.
bytes_or_text_types = (bytes, str)
complex_types = (numbers.Complex, np.number)
integral_types = (numbers.Integral, np.integer)
real_types = (numbers.Real, np.integer, np.floating)


def __getattr__(name: str) -> Any:
    if name == "v2":
        return importlib.import_module("taut")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def forward_compatible(year: int, month: int, day: int) -> bool:
    """Whether files and graphs may be such that programs of before that day do not read them: since the day has come."""
    return datetime.date.today() > datetime.date(year, month, day)


def as_bytes(bytes_or_text: Any, encoding: str = "utf-8") -> bytes:
    """Bytes as they are, text encoded."""
    if isinstance(bytes_or_text, (bytes, bytearray)):
        return bytes(bytes_or_text)
    if isinstance(bytes_or_text, str):
        return bytes_or_text.encode(encoding)
    raise TypeError(f"expected bytes or str, got {bytes_or_text!r}")


def as_text(bytes_or_text: Any, encoding: str = "utf-8") -> str:
    """Text as it is, bytes decoded."""
    if isinstance(bytes_or_text, str):
        return bytes_or_text
    if isinstance(bytes_or_text, bytes):
        return bytes_or_text.decode(encoding)
    raise TypeError(f"expected bytes or str, got {bytes_or_text!r}")


as_str = as_text


def as_str_any(value: Any, encoding: str = "utf-8") -> str:
    """Any object as text; bytes are decoded."""
    return as_text(value, encoding) if isinstance(value, bytes) else str(value)


def path_to_str(path: Any) -> Any:
    """The path of a path object."""
    return os.fspath(path) if isinstance(path, os.PathLike) else path
