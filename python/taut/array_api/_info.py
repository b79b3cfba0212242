"""What the namespace has and can do."""

from __future__ import annotations

from typing import Any

from .. import _native, dtypes
from .._common import _refuse
from ._types import KINDS, check_device


class Info:
    """Answers about the namespace."""

    def capabilities(self) -> dict[str, Any]:
        """What is there beyond what every library has: masks as indices, and shapes that depend on values."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> str:
        """The processor."""
        return "cpu"

    def devices(self) -> list[str]:
        """The processor, and nothing else."""
        return ["cpu"]

    def default_dtypes(self, *, device: Any = None) -> dict[str, _native.DType]:
        """The types that are taken when none is given."""
        check_device("default_dtypes", device)
        return {"real floating": dtypes.float32, "integral": dtypes.int64, "indexing": dtypes.int64}

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, _native.DType]:
        """The types of the standard that are there: all of them, or those of a kind or several."""
        check_device("dtypes", device)
        kinds = ("bool", "numeric") if kind is None else kind if isinstance(kind, tuple) else (kind,)
        found = {}
        for one in kinds:
            if one == "complex floating":
                continue
            if one not in KINDS:
                _refuse("dtypes", f"kind {one!r} is unknown", ValueError)
            found.update({dtype.name: dtype for dtype in KINDS[one]})
        return found


def __array_namespace_info__() -> Info:
    """Answers about the namespace."""
    return Info()
