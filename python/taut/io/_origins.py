"""Which file a string was read from, for errors about its contents."""

from __future__ import annotations

from typing import Any

from .. import _native


def named(contents: Any, error: Exception) -> Exception:
    """The error about a string, with the file that the string was read from."""
    path = _native.file_of(contents)
    if path is None:
        return error
    text = f"{path}: {error}"
    if "help:" not in text:
        text += "\n  help: the file is damaged or of another format; Dataset.ignore_errors leaves such elements out"
    return type(error)(text)
