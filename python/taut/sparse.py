"""Functions of sparse tensors: `tf.sparse`."""

from __future__ import annotations

from . import _namespace
from .sparse_tensor import SparseTensor, from_dense, to_dense

__all__ = ["SparseTensor", "from_dense", "to_dense"]


__getattr__, __dir__ = _namespace.plain(__name__)
