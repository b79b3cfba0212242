"""Functions of sparse tensors: `tf.sparse`.

Indices are known when a function is called; values are computed by ops, so that gradients flow to them.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np

from . import _namespace, _native, _raw_ops as raw, dtypes
from ._common import check_count, select_rows
from ._ops.segment import unsorted_segment_mean, unsorted_segment_sqrt_n
from .crossing import cross, cross_hashed
from .errors import InvalidArgumentError
from .indexed_slices import IndexedSlices
from .ragged_tensor import RaggedTensor
from .sparse_tensor import SparseTensor, from_dense, to_dense

__all__ = [
    "SparseTensor",
    "add",
    "bincount",
    "concat",
    "cross",
    "cross_hashed",
    "expand_dims",
    "eye",
    "fill_empty_rows",
    "from_dense",
    "map_values",
    "mask",
    "maximum",
    "minimum",
    "reduce_max",
    "reduce_sum",
    "reorder",
    "reset_shape",
    "reshape",
    "retain",
    "sampled_addmm",
    "segment_mean",
    "segment_sqrt_n",
    "segment_sum",
    "slice",
    "softmax",
    "sparse_dense_matmul",
    "split",
    "to_dense",
    "to_indicator",
    "transpose",
]


Function = TypeVar("Function", bound=Callable)


def _of_sparse_tensors(function: Function) -> Function:
    """Refuses arguments that are no sparse tensors where the signature has them."""
    names = list(inspect.signature(function).parameters)
    expected = [name for name in names if name in ("sp_input", "sp_a", "sp_b")]

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Any:
        for name, value in itertools.chain(zip(names, args), kwargs.items()):
            if name in expected and not isinstance(value, SparseTensor):
                raise TypeError(
                    f"{function.__name__}: {name} must be a tf.SparseTensor, got {value!r}\n"
                    f"  at {_native.calling_line()}\n  help: tf.sparse.from_dense makes one"
                )
        return function(*args, **kwargs)

    return cast(Function, checked)


def _axis(axis: Any, rank: int, name: str = "axis") -> int:
    """An axis in [0, rank), of one that may be negative."""
    found = int(axis)
    if not -rank <= found < rank:
        raise InvalidArgumentError(f"{name} must be in [{-rank}, {rank}), got {found}")
    return found % rank


@_of_sparse_tensors
def expand_dims(sp_input: SparseTensor, axis: int | None = None, name: str | None = None) -> SparseTensor:
    """Adds an axis of size one; by default, at the end."""
    place = _axis(-1 if axis is None else axis, len(sp_input.shape) + 1)
    indices = np.insert(np.asarray(sp_input.indices), place, 0, axis=1)
    return SparseTensor(indices, sp_input.values, [*sp_input.shape[:place], 1, *sp_input.shape[place:]])


def _selected(sp_input: SparseTensor, indices: np.ndarray, positions: Any, shape: Any) -> SparseTensor:
    """Some of the elements, with other indices."""
    return SparseTensor(indices, select_rows(sp_input.values, np.asarray(positions, np.int64)), shape)


def _flat(indices: np.ndarray, shape: Any) -> np.ndarray:
    """The position of each element in row-major order."""
    return np.ravel_multi_index(tuple(indices.T), tuple(shape)) if len(indices) else np.zeros(0, np.int64)


@_of_sparse_tensors
def reorder(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The elements in the order of their indices."""
    indices = np.asarray(sp_input.indices)
    order = np.argsort(_flat(indices, sp_input.shape), kind="stable")
    return _selected(sp_input, indices[order], order, sp_input.shape)


@_of_sparse_tensors
def transpose(sp_input: SparseTensor, perm: Any = None, name: str | None = None) -> SparseTensor:
    """Permutes the axes; without `perm`, reverses them."""
    rank = len(sp_input.shape)
    axes = list(range(rank))[::-1] if perm is None else [_axis(axis, rank, "perm") for axis in np.asarray(perm)]
    if sorted(axes) != list(range(rank)):
        raise InvalidArgumentError(f"perm must be a permutation of {list(range(rank))}, got {axes}")
    moved = np.asarray(sp_input.indices)[:, axes]
    return reorder(SparseTensor(moved, sp_input.values, [sp_input.shape[axis] for axis in axes]))


@_of_sparse_tensors
def reshape(sp_input: SparseTensor, shape: Any, name: str | None = None) -> SparseTensor:
    """Another shape with as many elements; one size may be -1."""
    old, new = list(sp_input.shape), [int(size) for size in np.asarray(shape)]
    count = int(np.prod(old, dtype=np.int64))
    known = int(np.prod([size for size in new if size != -1], dtype=np.int64))
    if new.count(-1) == 1 and known and count % known == 0:
        new[new.index(-1)] = count // known
    if int(np.prod(new, dtype=np.int64)) != count or min(new, default=0) < 0:
        raise InvalidArgumentError(f"shape must have as many elements as {old}, got {new}")
    flat = _flat(np.asarray(sp_input.indices), old)
    return SparseTensor(
        np.stack(np.unravel_index(flat, tuple(new)), 1).reshape(len(flat), len(new)), sp_input.values, new
    )


@_of_sparse_tensors
def reset_shape(sp_input: SparseTensor, new_shape: Any = None, name: str | None = None) -> SparseTensor:
    """A larger shape of the same rank; without one, the smallest that holds all elements."""
    indices, old = np.asarray(sp_input.indices), list(sp_input.shape)
    if new_shape is None:
        sizes = (indices.max(0) + 1).tolist() if len(indices) else [0] * len(old)
        return SparseTensor(indices, sp_input.values, sizes)
    sizes = [int(size) for size in np.asarray(new_shape)]
    if len(sizes) != len(old) or any(new < size for new, size in zip(sizes, old)):
        raise InvalidArgumentError(f"new_shape must have the rank of {old} and be no smaller, got {sizes}")
    return SparseTensor(indices, sp_input.values, sizes)


@_of_sparse_tensors
def retain(sp_input: SparseTensor, to_retain: Any) -> SparseTensor:
    """The elements for which a boolean is true."""
    kept = np.asarray(to_retain).astype(bool).reshape(-1)
    if len(kept) != sp_input.values.shape[0]:
        raise InvalidArgumentError(f"to_retain must have {sp_input.values.shape[0]} elements, got {len(kept)}")
    return _selected(sp_input, np.asarray(sp_input.indices)[kept], np.flatnonzero(kept), sp_input.shape)


@_of_sparse_tensors
def slice(sp_input: SparseTensor, start: Any, size: Any, name: str | None = None) -> SparseTensor:
    """The block that begins at `start` and has at most `size` elements along each axis."""
    start, size = np.asarray(start, np.int64), np.asarray(size, np.int64)
    shape = np.asarray(list(sp_input.shape), np.int64)
    if len(start) != len(shape) or len(size) != len(shape) or (start < 0).any() or (size < 0).any():
        raise InvalidArgumentError(
            f"start and size must be >= 0 and have {len(shape)} elements, got {start} and {size}"
        )
    sizes = np.clip(shape - start, 0, size)
    indices = np.asarray(sp_input.indices) - start
    inside = ((indices >= 0) & (indices < sizes)).all(1)
    return _selected(sp_input, indices[inside], np.flatnonzero(inside), sizes.tolist())


@_of_sparse_tensors
def split(sp_input: SparseTensor, num_split: int, axis: int, name: str | None = None) -> list[SparseTensor]:
    """Parts along an axis; the first ones are one larger if its size is no multiple."""
    shape = list(sp_input.shape)
    axis = _axis(axis, len(shape))
    check_count("split", "num_split", num_split)
    if not 1 <= num_split <= shape[axis]:
        raise InvalidArgumentError(f"num_split must be in [1, {shape[axis]}], got {num_split}")
    parts, at = [], 0
    for i in range(num_split):
        width = shape[axis] // num_split + (i < shape[axis] % num_split)
        start, size = [0] * len(shape), list(shape)
        start[axis], size[axis] = at, width
        parts.append(slice(sp_input, start, size))
        at += width
    return parts


def concat(axis: int, sp_inputs: Any, expand_nonconcat_dims: bool = False, name: str | None = None) -> SparseTensor:
    """Concatenates along an axis. Other sizes must be equal, unless `expand_nonconcat_dims` takes the largest."""
    parts = [sp_inputs] if isinstance(sp_inputs, SparseTensor) else list(sp_inputs)
    if not parts or not all(isinstance(part, SparseTensor) for part in parts):
        raise TypeError(f"concat: sp_inputs must be a list of tf.SparseTensor, got {sp_inputs!r}")
    axis = _axis(axis, len(parts[0].shape))
    shapes = np.array([list(part.shape) for part in parts])
    others = np.delete(shapes, axis, 1)
    if not expand_nonconcat_dims and (others != others[0]).any():
        raise InvalidArgumentError(f"shapes must be equal but for axis {axis}, got {shapes.tolist()}")
    sizes = shapes.max(0)
    sizes[axis] = shapes[:, axis].sum()
    starts = np.cumsum(shapes[:, axis]) - shapes[:, axis]
    indices = [np.asarray(part.indices).copy() for part in parts]
    for one, start in zip(indices, starts):
        one[:, axis] += start
    joined = raw.concat([part.values for part in parts], 0)
    return reorder(SparseTensor(np.concatenate(indices), joined, sizes.tolist()))


def _union(a: SparseTensor, b: SparseTensor) -> tuple[np.ndarray, Any, Any]:
    """The indices that one of two tensors has, and the values of both there, or 0."""
    if list(a.shape) != list(b.shape):
        raise InvalidArgumentError(f"shapes must be equal, got {list(a.shape)} and {list(b.shape)}")
    flat = [_flat(np.asarray(one.indices), one.shape) for one in (a, b)]
    both = np.unique(np.concatenate(flat))
    found = []
    for one, positions in zip((a, b), flat):
        count = len(positions)
        places = np.full(len(both), count, np.int64)
        places[np.searchsorted(both, positions)] = np.arange(count)
        pool = raw.concat([one.values, raw.zeros_like(one.values[:1]) if count else _zero(one.dtype)], 0)
        found.append(raw.gather(pool, places))
    indices = np.stack(np.unravel_index(both, tuple(a.shape)), 1).reshape(len(both), len(a.shape))
    return indices, found[0], found[1]


def _zero(dtype: Any) -> Any:
    return _native.as_tensor(np.zeros(1, dtype.as_numpy_dtype))


def add(a: Any, b: Any, threshold: Any = 0) -> Any:
    """The sum of two sparse tensors, or of a sparse and a dense one. Sums below `threshold` are left out."""
    if not isinstance(a, SparseTensor) or not isinstance(b, SparseTensor):
        return (to_dense(a) if isinstance(a, SparseTensor) else a) + (to_dense(b) if isinstance(b, SparseTensor) else b)
    indices, one, other = _union(a, b)
    made = SparseTensor(indices, one + other, a.shape)
    limit = np.asarray(threshold)
    return made if not limit else retain(made, np.abs(np.asarray(made.values)) >= limit)


@_of_sparse_tensors
def maximum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The larger of two elements; one that is missing counts as 0."""
    indices, one, other = _union(sp_a, sp_b)
    return SparseTensor(indices, raw.maximum(one, other), sp_a.shape)


@_of_sparse_tensors
def minimum(sp_a: SparseTensor, sp_b: SparseTensor, name: str | None = None) -> SparseTensor:
    """The smaller of two elements; one that is missing counts as 0."""
    indices, one, other = _union(sp_a, sp_b)
    return SparseTensor(indices, raw.minimum(one, other), sp_a.shape)


def _groups(sp_input: SparseTensor, axis: Any, keepdims: bool | None) -> tuple[np.ndarray, int, list[int]]:
    """The group of each element that is reduced to one, the number of groups, and the shape of the result."""
    shape = list(sp_input.shape)
    rank = len(shape)
    reduced = set(range(rank)) if axis is None else {_axis(one, rank) for one in np.atleast_1d(np.asarray(axis))}
    kept = [one for one in range(rank) if one not in reduced]
    sizes = [shape[one] for one in kept]
    groups = (
        _flat(np.asarray(sp_input.indices)[:, kept], sizes) if kept else np.zeros(sp_input.values.shape[0], np.int64)
    )
    count = int(np.prod(sizes, dtype=np.int64))
    return groups, count, [1 if one in reduced else shape[one] for one in range(rank)] if keepdims else sizes


@_of_sparse_tensors
def reduce_sum(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool | None = None, output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The sum along axes, as a tensor, or as a sparse one."""
    groups, count, shape = _groups(sp_input, axis, keepdims)
    made = raw.reshape(raw.unsorted_segment_sum(sp_input.values, groups, count), shape)
    return from_dense(made) if output_is_sparse else made


@_of_sparse_tensors
def reduce_max(
    sp_input: SparseTensor, axis: Any = None, keepdims: bool | None = None, output_is_sparse: bool = False,
    name: str | None = None,
) -> Any:  # fmt: skip
    """The maximum of the elements along axes, as a tensor, or as a sparse one; 0 where there is none."""
    groups, count, shape = _groups(sp_input, axis, keepdims)
    found = np.bincount(groups, minlength=count) > 0
    most = raw.unsorted_segment_max(sp_input.values, groups, count)
    made = raw.reshape(raw.where(found, most, raw.zeros_like(most)), shape)
    return from_dense(made) if output_is_sparse else made


@_of_sparse_tensors
def softmax(sp_input: SparseTensor, name: str | None = None) -> SparseTensor:
    """The softmax of the elements of each row of the last axis."""
    if len(sp_input.shape) < 2:
        raise InvalidArgumentError(f"sp_input must have rank >= 2, got shape {list(sp_input.shape)}")
    groups, count, _ = _groups(sp_input, -1, None)
    most = raw.gather(raw.unsorted_segment_max(sp_input.values, groups, count), groups)
    powers = raw.exp(sp_input.values - most)
    sums = raw.gather(raw.unsorted_segment_sum(powers, groups, count), groups)
    return SparseTensor(sp_input.indices, powers / sums, sp_input.shape)


def _conjugate(x: Any) -> Any:
    return raw.conj(x) if x.dtype.is_complex else x


def _adjoint(x: Any) -> Any:
    return _conjugate(raw.transpose(x, [1, 0]))


def sampled_addmm(
    indices: Any,
    values: Any,
    dense_shape: Any,
    mat1: Any,
    mat2: Any,
    beta: float = 1.0,
    alpha: float = 1.0,
    output_type: Any = dtypes.float32,
) -> tuple:
    """`alpha * (mat1 @ mat2) + beta * values` at the coordinates `indices`: three tensors of a sparse matrix.

    Only the elements of the product at these coordinates are computed.
    """
    indices, mat1, mat2 = (_native.as_tensor(one) for one in (indices, mat1, mat2))
    columns = raw.swapaxes(mat2, -1, -2)
    if mat1.ndim < 2 or mat1.ndim != mat2.ndim or indices.shape[-1] != mat1.ndim or mat1.shape[-1] != columns.shape[-1]:
        text = (
            f"expected coordinates of the product of matrices, got shapes {mat1.shape}, {mat2.shape}, {indices.shape}"
        )
        raise InvalidArgumentError(f"sampled_addmm: {text}")
    batch = indices[..., :-2]
    left = raw.gather_nd(mat1, raw.concat([batch, indices[..., -2:-1]], -1))
    right = raw.gather_nd(columns, raw.concat([batch, indices[..., -1:]], -1))
    made = alpha * raw.sum(left * right, -1) + beta * _native.as_tensor(values)
    return indices, raw.cast(made, dtypes.as_dtype(output_type)), _native.as_tensor(dense_shape)


def sparse_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> _native.Tensor:
    """The product of a sparse and a dense matrix, in either order. An adjoint is the conjugate of the transpose."""
    if isinstance(b, SparseTensor):
        return _adjoint(sparse_dense_matmul(b, sp_a, adjoint_a=not adjoint_b, adjoint_b=not adjoint_a))
    if not isinstance(sp_a, SparseTensor):
        raise TypeError(f"sparse_dense_matmul: one of the matrices must be a tf.SparseTensor, got {sp_a!r} and {b!r}")
    dense = _adjoint(_native.as_tensor(b)) if adjoint_b else _native.as_tensor(b)
    rows, columns = (1, 0) if adjoint_a else (0, 1)
    shape, indices = list(sp_a.shape), np.asarray(sp_a.indices)
    if len(shape) != 2 or dense.ndim != 2 or shape[columns] != dense.shape[0]:
        raise InvalidArgumentError(f"inner dimensions must be equal, got shapes {shape} and {list(dense.shape)}")
    values = _conjugate(sp_a.values) if adjoint_a else sp_a.values
    products = raw.expand_dims(values, -1) * select_rows(dense, indices[:, columns])
    return raw.unsorted_segment_sum(products, indices[:, rows], shape[rows])


@_of_sparse_tensors
def to_indicator(sp_input: SparseTensor, vocab_size: int, name: str | None = None) -> _native.Tensor:
    """A boolean tensor whose last axis says which integers a row has."""
    ids, indices = np.asarray(sp_input.values), np.asarray(sp_input.indices)
    if ((ids < 0) | (ids >= vocab_size)).any():
        raise InvalidArgumentError(f"values must be in [0, {vocab_size}), got {ids.tolist()}")
    made = np.zeros([*list(sp_input.shape)[:-1], int(vocab_size)], bool)
    places = (*indices[:, :-1].T, ids)
    made[places] = True
    return _native.as_tensor(made)


@_of_sparse_tensors
def fill_empty_rows(sp_input: SparseTensor, default_value: Any, name: str | None = None) -> tuple[SparseTensor, Any]:
    """Gives each row without elements one, the default; and says which rows these are."""
    indices, rows = np.asarray(sp_input.indices), sp_input.shape[0]
    empty = np.bincount(indices[:, 0], minlength=rows) == 0
    added = np.zeros((int(empty.sum()), indices.shape[1]), np.int64)
    added[:, 0] = np.flatnonzero(empty)
    default = raw.reshape(_native.as_tensor(default_value, sp_input.dtype), [1])
    values = raw.concat([sp_input.values, raw.gather(default, np.zeros(len(added), np.int64))], 0)
    places = np.concatenate([indices, added])
    # The elements of a row keep their order.
    order = np.argsort(places[:, 0], kind="stable")
    return SparseTensor(places[order], raw.gather(values, order), sp_input.shape), _native.as_tensor(empty)


def eye(
    num_rows: int, num_columns: int | None = None, dtype: Any = dtypes.float32, name: str | None = None
) -> SparseTensor:
    """The identity matrix, or its part of a matrix that is not square."""
    columns = int(num_rows) if num_columns is None else int(num_columns)
    places = np.arange(min(int(num_rows), columns))
    ones = raw.ones([len(places)], dtypes.as_dtype(dtype))
    return SparseTensor(np.stack([places, places], 1), ones, [int(num_rows), columns])


def map_values(op: Any, *args: Any, **kwargs: Any) -> SparseTensor:
    """Applies a function to the values of sparse tensors, which must have equal indices and shapes."""
    found = [one for one in (*args, *kwargs.values()) if isinstance(one, SparseTensor)]
    if not found:
        raise ValueError("map_values needs at least one SparseTensor among its arguments")
    first = found[0]
    for other in found[1:]:
        same = list(first.shape) == list(other.shape)
        if not same or not np.array_equal(np.asarray(first.indices), np.asarray(other.indices)):
            raise InvalidArgumentError("sparse tensors must have equal indices and shapes")

    def values(one: Any) -> Any:
        return one.values if isinstance(one, SparseTensor) else one

    made = op(*map(values, args), **{key: values(one) for key, one in kwargs.items()})
    return SparseTensor(first.indices, made, first.shape)


def mask(a: IndexedSlices, mask_indices: Any, name: str | None = None) -> IndexedSlices:
    """The slices whose indices are not among `mask_indices`."""
    kept = np.flatnonzero(~np.isin(np.asarray(a.indices), np.asarray(mask_indices)))
    indices = raw.gather(_native.as_tensor(a.indices), kept)
    return IndexedSlices(raw.gather(_native.as_tensor(a.values), kept), indices, a.dense_shape)


def _segments(data: Any, indices: Any, segment_ids: Any, num_segments: int | None) -> tuple[Any, np.ndarray, int]:
    """The rows at `indices`, their segments, and the number of segments."""
    segments, places = np.asarray(segment_ids), np.asarray(indices)
    if segments.shape != places.shape:
        raise InvalidArgumentError(
            f"indices and segment_ids must have equal shapes, got {list(places.shape)} and {list(segments.shape)}"
        )
    least = int(segments[-1]) + 1 if len(segments) else 0
    if (np.diff(segments) < 0).any() or (segments < 0).any():
        raise InvalidArgumentError(f"segment_ids must be >= 0 and in ascending order, got {segments.tolist()}")
    count = least if num_segments is None else int(num_segments)
    if count < least:
        raise InvalidArgumentError(f"num_segments must be >= {least}, got {count}")
    return select_rows(_native.as_tensor(data), places), segments, count


def segment_sum(
    data: Any, indices: Any, segment_ids: Any, num_segments: int | None = None, name: str | None = None,
    sparse_gradient: bool = False,
) -> _native.Tensor:  # fmt: skip
    """The sum of the rows at `indices` of each segment. Gradients of a variable's rows are `tf.IndexedSlices` in any case."""
    return raw.unsorted_segment_sum(*_segments(data, indices, segment_ids, num_segments))


def segment_mean(
    data: Any, indices: Any, segment_ids: Any, num_segments: int | None = None, name: str | None = None,
    sparse_gradient: bool = False,
) -> _native.Tensor:  # fmt: skip
    """The mean of the rows at `indices` of each segment, or 0. Gradients are those of `segment_sum`."""
    return unsorted_segment_mean(*_segments(data, indices, segment_ids, num_segments))


def segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, num_segments: int | None = None, name: str | None = None,
    sparse_gradient: bool = False,
) -> _native.Tensor:  # fmt: skip
    """The sum of the rows at `indices` of each segment, divided by the square root of their number."""
    return unsorted_segment_sqrt_n(*_segments(data, indices, segment_ids, num_segments))


def bincount(
    values: Any,
    weights: Any = None,
    axis: int | None = 0,
    minlength: int | None = None,
    maxlength: int | None = None,
    binary_output: bool = False,
    name: str | None = None,
) -> SparseTensor:
    """How often each integer occurs in all values, or with `axis=-1` in each row; with `weights`, their sums."""
    if axis not in (None, 0, -1):
        raise ValueError(f"axis must be 0, -1 or None, got {axis}")
    if binary_output and weights is not None:
        raise InvalidArgumentError("weights must be None with binary_output")
    found, rows, count = _rows_of(values, "values")
    if _rank(values) == 1:
        # A vector is one row, which the result does not name.
        axis = 0
    if (found < 0).any():
        raise InvalidArgumentError(f"values must be >= 0, got {found.min()}")
    sums: Any = np.ones(len(found), np.int32)
    if weights is not None:
        sums, others, _ = _rows_of(weights, "weights")
        if len(sums) != len(found) or (others != rows).any():
            raise InvalidArgumentError("weights must have the shape of values")
        if isinstance(values, SparseTensor) and isinstance(weights, SparseTensor):
            if list(values.shape) != list(weights.shape):
                raise InvalidArgumentError(
                    f"weights must have the shape of values, {values.shape}, got {weights.shape}"
                )
            if not np.array_equal(np.asarray(values.indices), np.asarray(weights.indices)):
                raise InvalidArgumentError("weights must have the indices of values")
    most = int(found.max(initial=-1)) + 1
    width = (
        max(most, minlength or 0) if maxlength is None else max(min(most, maxlength), min(minlength or 0, maxlength))
    )
    inside = found < width
    found, sums = found[inside].astype(np.int64), sums[inside]
    rows, count = (rows[inside], count) if axis else (np.zeros(len(found), np.int64), 1)
    places, inverse = np.unique(rows * max(width, 1) + found, return_inverse=True)
    totals = np.zeros(len(places), sums.dtype)
    np.add.at(totals, inverse.reshape(-1), sums)
    totals = np.ones_like(totals) if binary_output else totals
    if not axis:
        return SparseTensor(places[:, None], _native.own_tensor(totals), [width])
    indices = np.stack(np.divmod(places, max(width, 1)), 1)
    return SparseTensor(indices, _native.own_tensor(totals), [count, width])


def _rank(values: Any) -> int:
    if isinstance(values, SparseTensor):
        return len(values.shape)
    return values.ragged_rank + values.flat_values.ndim if isinstance(values, RaggedTensor) else np.ndim(values)


def _rows_of(values: Any, name: str) -> tuple[np.ndarray, np.ndarray, int]:
    """The values of a tensor of any kind, the row of each, and the number of rows."""
    if isinstance(values, SparseTensor):
        return np.asarray(values.values), np.asarray(values.indices)[:, 0], int(values.shape[0])
    if isinstance(values, RaggedTensor):
        return np.asarray(values.flat_values), np.asarray(values.value_rowids()), len(values)
    array = np.asarray(_native.as_tensor(values))
    if array.ndim > 2:
        raise InvalidArgumentError(f"{name} must have rank <= 2, got shape {list(array.shape)}")
    array = array.reshape(1, -1) if array.ndim < 2 else array
    return array.reshape(-1), np.repeat(np.arange(len(array)), array.shape[1]), len(array)


__getattr__, __dir__ = _namespace.plain(__name__)
