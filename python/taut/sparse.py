"""Gradients of tables: the rows that were used, and which they are."""

from __future__ import annotations

from typing import Any

from . import _native
from .counting import unsorted_segment_sum
from .shape import TensorShape


class IndexedSlices:
    """Rows of a tensor, and their numbers. The gradient of a lookup is one, so that it is as large as the lookup was."""

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
        """The shape of the whole tensor."""
        return self.dense_shape

    @property
    def nbytes(self) -> int:
        """The bytes of rows and numbers."""
        return self.values.nbytes + self.indices.nbytes

    def __taut_tensor__(self) -> _native.Tensor:
        """The whole tensor: as large as the table is."""
        if self.dense_shape is None:
            raise ValueError("rows without the shape of the whole cannot become a tensor")
        return unsorted_segment_sum(self.values, self.indices, self.dense_shape[0])

    def numpy(self) -> Any:
        """The whole tensor as an array."""
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
