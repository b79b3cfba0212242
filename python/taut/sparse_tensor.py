"""Sparse tensors, as far as examples of variable length need them."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _native, _raw_ops as raw, dtypes
from .errors import InvalidArgumentError
from .shape import TensorShape


def refuse_batch(kind: str) -> None:
    """An error for tensors of several parts, of which the engine has stacked each."""
    raise InvalidArgumentError(
        f"{kind} tensors in datasets cannot be combined by `batch`, or taken apart by `unbatch`\n  help: use ragged_batch, pad "
        "them before with to_tensor or to_dense, or batch before the function that makes them"
    )


class SparseTensor:
    """The elements of a tensor that are not the default: their indices, their values, and the shape of the tensor."""

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        self.indices = _native.as_tensor(np.asarray(indices, np.int64).reshape(-1, len(list(dense_shape))))
        self.values = _native.as_tensor(values)
        self.dense_shape = _native.as_tensor(np.asarray(dense_shape, np.int64))
        if self.indices.shape[0] != self.values.shape[0]:
            raise InvalidArgumentError(
                f"indices and values must have equal lengths, got {self.indices.shape[0]} and {self.values.shape[0]}"
            )

    @property
    def dtype(self) -> _native.DType:
        """The element type."""
        return self.values.dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of the tensor."""
        return TensorShape(np.asarray(self.dense_shape).tolist())

    def get_shape(self) -> TensorShape:
        """The shape of the tensor."""
        return self.shape

    def _taut_parts(self) -> tuple:
        return self.indices, self.values, self.dense_shape

    @classmethod
    def _taut_from_parts(cls, indices: Any, values: Any, dense_shape: Any) -> SparseTensor:
        if dense_shape.ndim != 1:
            refuse_batch("sparse")
        return cls(indices, values, np.asarray(dense_shape))

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices}, values={self.values}, dense_shape={self.dense_shape})"


def to_dense(
    sp_input: SparseTensor, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> _native.Tensor:
    """The tensor, with `default_value` (0 or the empty string) elsewhere."""
    shape = tuple(sp_input.shape)
    indices = np.asarray(sp_input.indices)
    flat = np.ravel_multi_index(tuple(indices.T), shape) if len(indices) else np.zeros(0, np.int64)
    if validate_indices and (np.diff(flat) <= 0).any():
        raise InvalidArgumentError(
            "indices must be unique and in ascending order: pass validate_indices=False otherwise"
        )
    count = len(flat)
    positions = np.full(int(np.prod(shape, dtype=np.int64)), count, np.int64)
    positions[flat] = np.arange(count)
    default = ("" if sp_input.dtype == dtypes.string else 0) if default_value is None else default_value
    pool = raw.concat([sp_input.values, raw.reshape(_native.as_tensor(default, sp_input.dtype), [1])], 0)
    return raw.gather(pool, positions.reshape(shape))


def from_dense(tensor: Any, name: str | None = None) -> SparseTensor:
    """The elements that are not 0 (or the empty string)."""
    tensor = _native.as_tensor(tensor)
    zero = "" if tensor.dtype == dtypes.string else 0
    indices = np.argwhere(np.asarray(tensor != zero))
    return SparseTensor(indices, raw.gather_nd(tensor, indices), list(tensor.shape))
