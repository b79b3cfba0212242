"""Functions of sparse tensors: `tf.sparse`."""

from __future__ import annotations

from typing import Any

from .sparse_tensor import SparseTensor, from_dense, to_dense

__all__ = ["SparseTensor", "from_dense", "to_dense"]


def __getattr__(name: str) -> Any:
    from ._missing import explain

    raise AttributeError(explain(__name__, name))
