"""The namespace `tf.experimental.dlpack`."""

from __future__ import annotations

from typing import Any

from .. import _namespace, _native


def to_dlpack(tf_tensor: Any) -> Any:
    """The tensor as a DLPack capsule, without a copy."""
    return tf_tensor.__dlpack__()


def from_dlpack(dlcapsule: Any) -> Any:
    """The tensor of a DLPack capsule, or of an object that has DLPack's methods, without a copy."""
    return _native.from_dlpack(dlcapsule)


__all__ = ["from_dlpack", "to_dlpack"]
__getattr__, __dir__ = _namespace.plain(__name__)
