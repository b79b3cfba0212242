"""Sparse gradients: rows of a tensor and their indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native
from ._ops.segment import unsorted_segment_sum
from .shape import TensorShape


class IndexedSlices:
    """Rows of a tensor and their indices: the gradient of a lookup, whose size is that of the lookup."""

    __slots__ = ("_dense_shape", "indices", "values")

    def __init__(self, values: Any, indices: Any, dense_shape: Any = None) -> None:
        self.values = values
        self.indices = indices
        self._dense_shape = dense_shape

    @property
    def dense_shape(self) -> Any:
        """The shape of the dense tensor, as a tensor; None if it is not known."""
        given = self._dense_shape
        if given is None or isinstance(given, _native.Array):
            return given
        return _native.own_tensor(np.array(tuple(given), np.int32))

    @property
    def _static_shape(self) -> TensorShape | None:
        """The shape of the dense tensor; None if it is not known now."""
        given = self._dense_shape
        is_known = given is not None and not (isinstance(given, _native.Array) and given.is_symbolic)
        return TensorShape(given) if is_known else None

    @property
    def dtype(self) -> _native.DType:
        """The element type of the rows."""
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the dense tensor."""
        known = self._static_shape
        return TensorShape(None) if known is None else known

    @property
    def device(self) -> str:
        """The device that holds it: the CPU."""
        return self.values.device

    @property
    def nbytes(self) -> int:
        """The bytes of rows and indices."""
        return self.values.nbytes + self.indices.nbytes

    def __taut_tensor__(self) -> _native.Tensor:
        """The dense tensor."""
        if self._dense_shape is None:
            raise ValueError("IndexedSlices needs dense_shape to become a dense tensor")
        return unsorted_segment_sum(self.values, self.indices, self._dense_shape[0])

    def numpy(self) -> Any:
        """The dense tensor as an array."""
        return self.__taut_tensor__().numpy()

    def with_values(self, values: Any) -> IndexedSlices:
        """Other values for the same rows."""
        return IndexedSlices(values, self.indices, self._dense_shape)

    def __neg__(self) -> IndexedSlices:
        return self.with_values(-self.values)

    def __mul__(self, scale: Any) -> Any:
        if getattr(scale, "ndim", 0) == 0:
            return self.with_values(self.values * scale)
        return self.__taut_tensor__() * scale

    __rmul__ = __mul__

    def __truediv__(self, scale: Any) -> Any:
        if getattr(scale, "ndim", 0) == 0:
            return self.with_values(self.values / scale)
        return self.__taut_tensor__() / scale

    def __repr__(self) -> str:
        shape = "" if self._dense_shape is None else f", dense_shape={self.dense_shape!s}"
        return f"IndexedSlices(indices={self.indices!s}, values={self.values!s}{shape})"
