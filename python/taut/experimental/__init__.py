"""The namespace `tf.experimental`."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

from .. import _namespace

_LAZY = frozenset(("dlpack", "extension_type", "numpy"))


def async_scope() -> contextlib.AbstractContextManager[None]:
    """A context manager for asynchronous execution. Calls return when they are done, which it allows."""
    return contextlib.nullcontext()


def async_clear_error() -> None:
    """Clears errors of asynchronous execution. There are none: calls raise their errors themselves."""


_DISPATCH = (
    "dispatch_for_api",
    "dispatch_for_binary_elementwise_apis",
    "dispatch_for_binary_elementwise_assert_apis",
    "dispatch_for_unary_elementwise_apis",
    "unregister_dispatch_for",
)
__all__ = [  # noqa: PLE0604
    *(
        "BatchableExtensionType",
        "ExtensionType",
        "ExtensionTypeSpec",
        "Optional",
        "async_clear_error",
        "async_scope",
        "dlpack",
    ),
    *("extension_type", "numpy"),
    *("DynamicRaggedShape", "RowPartition"),
    *_DISPATCH,
]
_missing, __dir__ = _namespace.plain(__name__)


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return importlib.import_module(f"{__name__}.{name}")
    if name in ("BatchableExtensionType", "ExtensionType", "ExtensionTypeSpec"):
        return getattr(importlib.import_module("taut.extension_type"), name)
    if name in ("DynamicRaggedShape", "RowPartition"):
        return getattr(importlib.import_module("taut.ragged_shape"), name)
    if name in _DISPATCH:
        return getattr(importlib.import_module("taut._dispatch"), name)
    if name == "Optional":
        from ..data._iterators import Optional

        return Optional
    return _missing(name)
