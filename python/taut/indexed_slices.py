"""Sparse gradients: rows of a tensor and their indices."""

from __future__ import annotations

from typing import Any

from . import _native
from ._ops.segment import unsorted_segment_sum
from .shape import TensorShape


class IndexedSlices:
    """Rows of a tensor and their indices: the gradient of a lookup, whose size is that of the lookup."""

    __slots__ = ("dense_shape", "indices", "values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values = values
        self.indices = indices
        self.dense_shape = None if dense_shape is None else TensorShape(dense_shape)

    @property
    def dtype(self) -> _native.DType:
        """The element type of the rows."""
        return self.values.dtype

    @property
    def shape(self) -> TensorShape | None:
        """The shape of the dense tensor."""
        return self.dense_shape

    @property
    def nbytes(self) -> int:
        """The bytes of rows and indices."""
        return self.values.nbytes + self.indices.nbytes

    def __taut_tensor__(self) -> _native.Tensor:
        """The dense tensor."""
        if self.dense_shape is None:
            raise ValueError("IndexedSlices needs dense_shape to become a dense tensor")
        return unsorted_segment_sum(self.values, self.indices, self.dense_shape[0])

    def numpy(self) -> Any:
        """The dense tensor as an array."""
        return self.__taut_tensor__().numpy()

    def __neg__(self) -> IndexedSlices:
        return IndexedSlices(-self.values, self.indices, self.dense_shape)

    def __mul__(self, scale: Any) -> Any:
        if getattr(scale, "ndim", 0) == 0:
            return IndexedSlices(self.values * scale, self.indices, self.dense_shape)
        return self.__taut_tensor__() * scale

    __rmul__ = __mul__

    def __truediv__(self, scale: Any) -> Any:
        if getattr(scale, "ndim", 0) == 0:
            return IndexedSlices(self.values / scale, self.indices, self.dense_shape)
        return self.__taut_tensor__() / scale

    def __repr__(self) -> str:
        return f"IndexedSlices(values={self.values!r}, indices={self.indices!r}, dense_shape={self.dense_shape})"
