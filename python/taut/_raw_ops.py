"""The ops of the op table, under their own names and with their own parameter names.

The package's implementation calls these. A handle is made when its name is first used. Public names, which may differ,
are in `_surface.py`.
"""

from __future__ import annotations

from . import _native


def __getattr__(name: str) -> _native.Op:
    try:
        op = _native.Op(name)
    except ValueError:
        raise AttributeError(f"the op table has no op {name!r}") from None
    globals()[name] = op
    return op


def __dir__() -> list[str]:
    return list(_native.op_names())
