"""Sets in the last dimension of tensors: `tf.sets`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _namespace, _native, dtypes
from .errors import InvalidArgumentError
from .sparse_tensor import SparseTensor

__all__ = ["difference", "intersection", "size", "union"]


def union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that one of two sets has, for each pair of sets; sorted."""
    return _combined(a, b, validate_indices, lambda one, other: one | other)


def intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that both of two sets have, for each pair of sets; sorted."""
    return _combined(a, b, validate_indices, lambda one, other: one & other)


def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The elements of `a` that `b` does not have, for each pair of sets, or the reverse; sorted."""
    return _combined(a, b, validate_indices, lambda one, other: one - other if aminusb else other - one)


def size(a: SparseTensor, validate_indices: bool = True) -> _native.Tensor:
    """The number of different elements of each set, int32."""
    if not isinstance(a, SparseTensor):
        raise TypeError(f"expected a SparseTensor, got {type(a).__name__}")
    groups, found = _sets(a, validate_indices)
    counts = np.zeros(groups, np.int32)
    for place, values in found.items():
        counts[place] = len(values)
    return _native.own_tensor(counts)


def _combined(a: Any, b: Any, validate_indices: bool, combine: Callable[[set, set], set]) -> SparseTensor:
    a = a if isinstance(a, SparseTensor) else _native.as_tensor(a)
    b = b if isinstance(b, SparseTensor) else _native.as_tensor(b)
    if a.dtype != b.dtype:
        raise TypeError(f"the sets must have one type, got {a.dtype.name} and {b.dtype.name}")
    (groups, one), (others, other) = _sets(a, validate_indices), _sets(b, validate_indices)
    if groups != others:
        raise InvalidArgumentError(f"all dimensions but the last must be equal, got {groups} and {others}")
    indices, values, width = [], [], 0
    for place in np.ndindex(*groups):
        found = sorted(combine(one.get(place, set()), other.get(place, set())))
        width = max(width, len(found))
        indices += [(*place, i) for i in range(len(found))]
        values += found
    rank = len(groups) + 1
    flat: Any
    if a.dtype == dtypes.string:
        flat = _native.string_tensor(np.array(values, object) if values else np.empty(0, object))
    else:
        flat = _native.own_tensor(np.array(values, a.dtype.as_numpy_dtype))
    return SparseTensor(np.array(indices, np.int64).reshape(-1, rank), flat, [*groups, width])


def _sets(tensor: Any, validate_indices: bool) -> tuple[tuple[int, ...], dict[tuple, set]]:
    """The shape of the sets, and the elements of those that have some."""
    shape = tuple(int(size) for size in tensor.shape)
    if len(shape) < 2:
        raise InvalidArgumentError(f"sets must have rank >= 2, got shape {list(shape)}")
    if isinstance(tensor, SparseTensor):
        indices, values = np.asarray(tensor.indices), tensor.values.numpy().tolist()
        flat = np.ravel_multi_index(tuple(indices.T), shape) if len(indices) else np.zeros(0)
        if validate_indices and (np.diff(flat) <= 0).any():
            raise InvalidArgumentError("indices must be in ascending order: reorder them with tf.sparse.reorder")
    else:
        indices, values = np.array(list(np.ndindex(*shape))), tensor.numpy().reshape(-1).tolist()
    found: dict[tuple, set] = {}
    for index, value in zip(indices.tolist(), values):
        found.setdefault(tuple(index[:-1]), set()).add(value)
    return shape[:-1], found


__getattr__, __dir__ = _namespace.plain(__name__)
