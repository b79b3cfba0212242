"""The namespace `tf.experimental.extension_type`."""

from __future__ import annotations

from .. import _namespace
from ..extension_type import as_dict

__all__ = ["as_dict"]
__getattr__, __dir__ = _namespace.plain(__name__)
