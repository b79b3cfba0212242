"""Sparse tensors: the elements of a tensor that are not zero."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import _dispatch, _native, _raw_ops as raw, dtypes
from .errors import InvalidArgumentError
from .shape import TensorShape


def refuse_batch(kind: str) -> None:
    """An error for tensors of several parts, of which the engine has stacked each."""
    raise InvalidArgumentError(
        f"{kind} tensors in datasets cannot be combined by `batch`, or taken apart by `unbatch`\n  help: use ragged_batch, pad "
        "them before with to_tensor or to_dense, or batch before the function that makes them"
    )


# Functions of one tensor that are 0 at 0: of the other elements alone.
_KEEP_ZERO = _dispatch.names(
    "abs casting.cast erf identity neg sign sin sqrt square stop_gradient tanh tape.stop_gradient"
)


class SparseTensor:
    """The elements of a tensor that are not the default: their indices, their values, and the shape of the tensor."""

    def __init__(self, indices: Any, values: Any, dense_shape: Any) -> None:
        places = np.asarray(indices, np.int64)
        if places.ndim != 2 and places.size:
            raise ValueError(f"indices must have rank 2, got shape {places.shape}")
        self.indices = _native.as_tensor(places.reshape(-1, len(list(dense_shape))))
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

    @classmethod
    def from_value(cls, sparse_tensor_value: Any) -> SparseTensor:
        """A sparse tensor of an object with the same parts."""
        value = sparse_tensor_value
        return value if isinstance(value, cls) else cls(value.indices, value.values, value.dense_shape)

    def with_values(self, new_values: Any) -> SparseTensor:
        """Other values at the same indices."""
        return SparseTensor(self.indices, new_values, np.asarray(self.dense_shape))

    def _beside(self, other: Any) -> Any:
        """The elements of a tensor, which is broadcast to the shape, at the indices."""
        if isinstance(other, SparseTensor):
            raise TypeError(
                f"expected a tensor beside a sparse tensor, got two sparse tensors\n  at {_native.calling_line()}"
                "\n  help: tf.sparse.to_dense converts one of them"
            )
        other = _native.tensor_beside(other, self.dtype)
        if not other.ndim:
            return other
        return raw.gather_nd(raw.broadcast_to(other, list(self.shape)), self.indices)

    def __mul__(self, other: Any) -> SparseTensor:
        return self.with_values(raw.mul(self.values, self._beside(other)))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> SparseTensor:
        return self.with_values(raw.div(self.values, self._beside(other)))

    def __taut_shape__(self, out_type: Any) -> _native.Tensor:
        """What `tf.shape` returns."""
        return raw.cast(self.dense_shape, dtypes.int32 if out_type is None else dtypes.as_dtype(out_type))

    def __taut_dispatch__(self, function: Any, args: tuple, kwargs: dict[str, Any], _error: Exception) -> Any:
        found = _dispatch.registered(function, args, kwargs)
        if found is not NotImplemented:
            return found
        name = _dispatch.key(function)
        first, *rest = _dispatch.arguments(function, args, kwargs).values()
        if name in _KEEP_ZERO and first is self:
            return self.with_values(function(self.values, *rest))
        if name == "tensor.size":
            return _native.own_tensor(np.prod(np.asarray(self.dense_shape)), rest[0] or dtypes.int32)
        if name == "tensor.rank":
            return _native.own_tensor(np.array(self.dense_shape.shape[0]), dtypes.int32)
        raise ValueError(
            f"{function.__name__}: sparse tensors are not supported\n  at {_native.calling_line()}"
            "\n  help: tf.sparse has functions of sparse tensors; tf.sparse.to_dense converts them"
        ) from None

    def _taut_parts(self) -> tuple:
        return self.indices, self.values, self.dense_shape

    @classmethod
    def _taut_from_parts(cls, indices: Any, values: Any, dense_shape: Any) -> SparseTensor:
        if dense_shape.ndim != 1:
            refuse_batch("sparse")
        return cls(indices, values, np.asarray(dense_shape))

    def __repr__(self) -> str:
        return f"SparseTensor(indices={self.indices!s}, values={self.values!s}, dense_shape={self.dense_shape!s})"


def to_dense(
    sp_input: SparseTensor, default_value: Any = None, validate_indices: bool = True, name: str | None = None
) -> _native.Tensor:
    """The tensor, with `default_value` (0 or the empty string) elsewhere."""
    shape = tuple(sp_input.shape)
    indices = np.asarray(sp_input.indices)
    outside = ((indices < 0) | (indices >= np.asarray(shape, np.int64))).any(1)
    if outside.any():
        place = int(outside.argmax())
        raise InvalidArgumentError(f"index {place} must lie in the shape {shape}, got {indices[place].tolist()}")
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
