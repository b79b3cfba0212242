"""Which file a string was read from, for errors about its contents."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

from .. import _native
from ..errors import DataLossError, InvalidArgumentError

_PATHS: dict[int, tuple[weakref.ref, str]] = {}


def remember(contents: _native.Tensor, path: str) -> _native.Tensor:
    """Notes the file of a string, for as long as the string exists."""
    key = id(contents)
    _PATHS[key] = weakref.ref(contents, lambda _: _PATHS.pop(key, None)), path
    return contents


@contextlib.contextmanager
def named(contents: Any) -> Iterator[None]:
    """Errors of the block name the file that a string was read from."""
    try:
        yield
    except (DataLossError, InvalidArgumentError) as error:
        reference, path = _PATHS.get(id(contents), (None, ""))
        if reference is None or reference() is not contents:
            raise
        text = f"{path}: {error}"
        if "help:" not in text:
            text += "\n  help: the file is damaged or of another format; Dataset.ignore_errors leaves such elements out"
        raise type(error)(text) from None
