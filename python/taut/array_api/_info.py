"""Inspection of the namespace."""

from __future__ import annotations

from typing import Any

from .. import _native, dtypes
from .._common import refuse
from ._types import KINDS, check_device

DEVICE = _native.as_tensor(0).device
"""The name that arrays give as their `device`."""


class Info:
    """The inspection API of the standard."""

    def capabilities(self) -> dict[str, Any]:
        """Optional features: boolean indexing and data-dependent shapes are supported."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> str:
        """The default device: the CPU."""
        return DEVICE

    def devices(self) -> list[str]:
        """The devices: the CPU."""
        return [DEVICE]

    def default_dtypes(self, *, device: Any = None) -> dict[str, _native.DType]:
        """The default types."""
        check_device("default_dtypes", device)
        return {
            "real floating": dtypes.float32,
            "complex floating": dtypes.complex64,
            "integral": dtypes.int64,
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, _native.DType]:
        """The standard's types that are supported: all, or those of a kind or several."""
        check_device("dtypes", device)
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        found = {}
        for one in kinds:
            if one not in KINDS:
                refuse("dtypes", f"kind must be one of {', '.join(map(repr, KINDS))}, got {one!r}", ValueError)
            found.update({dtype.name: dtype for dtype in KINDS[one]})
        return found


def __array_namespace_info__() -> Info:  # noqa: N807
    """The inspection object of the namespace."""
    return Info()
