"""How the package was built: `tf.sysconfig`."""

from __future__ import annotations

from . import _namespace


def get_build_info() -> dict[str, bool]:
    """Which accelerators the package was built for: none."""
    return {"is_cuda_build": False, "is_rocm_build": False, "is_tensorrt_build": False}


__all__ = ["get_build_info"]
__getattr__, __dir__ = _namespace.plain(__name__)
