"""Operations on sets of integers or strings: `tf.sets`.

The last axis of a tensor holds the elements of a set, or a sparse tensor holds them; the other axes are a batch. The number
of elements depends on the values, so the tensors must not be traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import _namespace, _native
from ._common import refuse
from .errors import DynamicShapeError
from .sparse_tensor import SparseTensor

__all__ = ["difference", "intersection", "size", "union"]

Sets = dict[tuple[int, ...], set]


def _read(name: str, value: Any, validate: bool) -> tuple[Sets, tuple[int, ...], _native.DType]:
    """The sets of a batch by their index, the batch's shape, and the type of the elements."""
    sparse = value if isinstance(value, SparseTensor) else None
    tensor = _native.as_tensor(value) if sparse is None else sparse.values
    if tensor.is_symbolic:
        refuse(name, "the number of elements depends on the values of traced tensors", DynamicShapeError)
    if not (tensor.dtype.is_integer or tensor.dtype.name == "string"):
        raise TypeError(f"{name}: expected integers or strings, got {tensor.dtype.name}")
    if sparse is not None:
        shape, indices = tuple(sparse.shape), np.asarray(sparse.indices)
    else:
        shape = tuple(tensor.shape)
    if len(shape) < 2:
        refuse(name, f"expected rank >= 2, got shape {shape}")
    found: Sets = {}
    array = np.asarray(tensor)
    if sparse is None:
        for index in np.ndindex(*shape[:-1]):
            found[index] = set(array[index].tolist())
        return found, shape[:-1], tensor.dtype
    if validate and len(indices) > 1:
        flat = np.ravel_multi_index(tuple(indices.T), shape)
        if (np.diff(flat) <= 0).any():
            refuse(name, "indices must be unique and in ascending order: pass validate_indices=False otherwise")
    for index, element in zip(indices[:, :-1].tolist(), array.tolist()):
        found.setdefault(tuple(index), set()).add(element)
    return found, shape[:-1], tensor.dtype


def _combine(name: str, a: Any, b: Any, validate: bool, function: Callable[[set, set], set]) -> SparseTensor:
    left, batch, dtype = _read(name, a, validate)
    right, other, other_dtype = _read(name, b, validate)
    if batch != other:
        refuse(name, f"a and b must have one batch shape, got {batch} and {other}")
    if dtype != other_dtype:
        raise TypeError(f"{name}: a and b must have one type, got {dtype.name} and {other_dtype.name}")
    indices, values, longest = [], [], 0
    for index in sorted({*left, *right}):
        elements = sorted(function(left.get(index, set()), right.get(index, set())))
        longest = max(longest, len(elements))
        indices += [(*index, i) for i in range(len(elements))]
        values += elements
    return SparseTensor(
        np.reshape(np.asarray(indices, np.int64), (-1, len(batch) + 1)),
        _native.as_tensor(values, dtype),
        [*batch, longest],
    )


def difference(a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True) -> SparseTensor:
    """The elements of `a` that are not in `b`, or those of `b` that are not in `a` if `aminusb` is False."""
    return _combine("difference", a, b, validate_indices, (lambda x, y: x - y) if aminusb else (lambda x, y: y - x))


def intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that are in both sets."""
    return _combine("intersection", a, b, validate_indices, lambda x, y: x & y)


def union(a: Any, b: Any, validate_indices: bool = True) -> SparseTensor:
    """The elements that are in one of the sets."""
    return _combine("union", a, b, validate_indices, lambda x, y: x | y)


def size(a: SparseTensor, validate_indices: bool = True) -> _native.Tensor:
    """The number of different elements of each set of a sparse tensor."""
    if not isinstance(a, SparseTensor):
        raise TypeError(f"size: expected a SparseTensor, got {type(a).__name__}")
    found, batch, _ = _read("size", a, validate_indices)
    counts = np.zeros(batch, np.int32)
    for index, elements in found.items():
        counts[index] = len(elements)
    return _native.own_tensor(counts)


__getattr__, __dir__ = _namespace.plain(__name__)
