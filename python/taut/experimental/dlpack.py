"""The namespace `tf.experimental.dlpack`."""

from __future__ import annotations

from typing import Any

from .. import _namespace, _native


def to_dlpack(tf_tensor: Any) -> Any:
    """The tensor as a DLPack capsule, without a copy."""
    return tf_tensor.__dlpack__()


def from_dlpack(dlcapsule: Any) -> Any:
    """The tensor of a DLPack capsule, or of an object that has DLPack's methods, without a copy."""
    is_object = hasattr(dlcapsule, "__dlpack__")
    return _native.from_dlpack(dlcapsule if is_object else _Capsule(dlcapsule))


class _Capsule:
    """A capsule of the CPU's memory as an object that has DLPack's methods."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


__all__ = ["from_dlpack", "to_dlpack"]
__getattr__, __dir__ = _namespace.plain(__name__)
