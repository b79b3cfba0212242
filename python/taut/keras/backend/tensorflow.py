"""This backend for preprocessing layers, which import Keras's backend "tensorflow" for text and tables.

They also pass ragged and sparse tensors to it.
"""

from __future__ import annotations

from typing import Any

from taut.keras.backend import *  # noqa: F403
from taut.keras.backend import (
    core as core,
    nn as nn,
    numpy as numpy,
    shape as _shape,
)
from taut.ragged_tensor import RaggedTensor
from taut.sparse_tensor import SparseTensor


def shape(x: Any) -> tuple:
    """The shape; unknown sizes of ragged tensors are None."""
    return tuple(x.shape) if isinstance(x, (RaggedTensor, SparseTensor)) else _shape(x)
