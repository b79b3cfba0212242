"""This backend for preprocessing layers, which import Keras's backend "tensorflow" for text and tables.

They also pass ragged and sparse tensors to it.
"""

from __future__ import annotations

from typing import Any

from taut.keras.backend import *  # noqa: F403
from taut.keras.backend import cast, image as _image, shape as _shape
from taut.ragged_tensor import RaggedTensor
from taut.sparse_tensor import SparseTensor


class image:  # noqa: N801
    """Image functions: as in TensorFlow, a resized image has floats, unless pixels are copied."""

    @staticmethod
    def resize(images: Any, size: Any, interpolation: str = "bilinear", **options: Any) -> Any:
        """Resizes images."""
        images = images if interpolation == "nearest" else cast(images, "float32")
        return _image.resize(images, size, interpolation=interpolation, **options)


def shape(x: Any) -> tuple:
    """The shape; unknown sizes of ragged tensors are None."""
    return tuple(x.shape) if isinstance(x, (RaggedTensor, SparseTensor)) else _shape(x)
