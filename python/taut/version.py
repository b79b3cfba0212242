"""The version of the package."""

from __future__ import annotations

from . import __version__ as _own, _namespace

VERSION: str = _own
GIT_VERSION: str = f"v{_own}"

__all__ = ["GIT_VERSION", "VERSION"]
__getattr__, __dir__ = _namespace.plain(__name__)
