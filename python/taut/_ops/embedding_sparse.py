"""Embeddings of several ids per row, combined: sparse and ragged ids."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import _native, _raw_ops as raw
from ..errors import InvalidArgumentError
from ..ragged_tensor import RaggedTensor
from ..sparse_tensor import SparseTensor
from .clipping import clip_by_norm
from .shaping import concat

_COMBINERS = ("mean", "sqrtn", "sum")


def embedding_lookup_sparse(
    params: Any,
    sp_ids: Any,
    sp_weights: Any,
    combiner: str | None = None,
    max_norm: float | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> _native.Tensor:
    """The embeddings of the ids of each row, combined: their sum, their mean (the default), or their sum divided by the square
    root of the sum of squared weights. Rows up to the last one that has ids; one between without ids is 0.
    """
    combiner = "mean" if combiner is None else combiner
    if combiner not in _COMBINERS:
        raise ValueError(f"combiner must be one of {', '.join(_COMBINERS)}, got {combiner!r}")
    ids, rows = _parts(sp_ids, "sp_ids")
    if len(rows) and (np.diff(rows) < 0).any():
        raise InvalidArgumentError("rows must be in ascending order: reorder the ids with tf.sparse.reorder")
    found = raw.gather(_whole(params), ids)
    if max_norm is not None:
        found = clip_by_norm(found, max_norm, axes=list(range(1, found.ndim)))
    count = int(rows[-1]) + 1 if len(rows) else 0
    if sp_weights is None:
        numbers = np.bincount(rows, minlength=count).astype(found.dtype.as_numpy_dtype)
        sums = raw.unsorted_segment_sum(found, rows, count)
        divisor: Any = _native.as_tensor(numbers if combiner == "mean" else np.sqrt(numbers))
    else:
        weights, others = _parts(sp_weights, "sp_weights")
        if len(others) != len(rows) or (others != rows).any():
            raise InvalidArgumentError("sp_weights must have the rows of sp_ids")
        weights = raw.cast(weights, found.dtype)
        sums = raw.unsorted_segment_sum(found * _column(weights, found.ndim), rows, count)
        divisor = raw.unsorted_segment_sum(weights if combiner == "mean" else weights * weights, rows, count)
        divisor = divisor if combiner == "mean" else raw.sqrt(divisor)
    return sums if combiner == "sum" else raw.div_no_nan(sums, _column(divisor, sums.ndim))


def _column(values: Any, rank: int) -> Any:
    return raw.reshape(values, [-1, *[1] * (rank - 1)])


def _whole(params: Any) -> Any:
    """The table of embeddings; several are its parts, one after the other."""
    if not isinstance(params, (list, tuple)):
        return params
    if not params:
        raise ValueError("params must have at least one tensor, got none")
    return params[0] if len(params) == 1 else concat(list(params), 0)


def _parts(of: Any, name: str) -> tuple[Any, np.ndarray]:
    """The values of a sparse or ragged tensor, and the row of each."""
    if isinstance(of, SparseTensor):
        return of.values, np.asarray(of.indices)[:, 0]
    if isinstance(of, RaggedTensor):
        return of.flat_values, np.asarray(of.value_rowids())
    raise TypeError(f"{name} must be a SparseTensor or a RaggedTensor, got {type(of).__name__}")


def safe_embedding_lookup_sparse(
    embedding_weights: Any,
    sparse_ids: Any,
    sparse_weights: Any = None,
    combiner: str = "mean",
    default_id: int | None = None,
    max_norm: float | None = None,
    name: str | None = None,
    allow_fast_lookup: bool = False,
) -> _native.Tensor:
    """`embedding_lookup_sparse` for any ids: negative ones, and ones with a weight <= 0, are left out (with "sum",
    weights may be negative); a row without ids is the embedding of `default_id`, or 0.
    """
    ids, rows = _parts(sparse_ids, "sparse_ids")
    if isinstance(sparse_ids, SparseTensor):
        outer = list(sparse_ids.shape)[:-1]
        indices = np.asarray(sparse_ids.indices)
        rows = np.ravel_multi_index(tuple(indices[:, :-1].T), outer) if len(indices) else rows
    else:
        outer = [len(sparse_ids)]
    count = int(np.prod(outer, dtype=np.int64))
    weights = None if sparse_weights is None else _parts(sparse_weights, "sparse_weights")[0]
    kept = np.asarray(ids) >= 0
    if weights is not None and combiner != "sum":
        kept &= np.asarray(weights) > 0
    places = np.flatnonzero(kept)
    rows, ids = rows[places], np.asarray(ids)[places]
    empty = np.bincount(rows, minlength=count) == 0
    rows = np.concatenate([rows, np.flatnonzero(empty)])
    ids = np.concatenate([ids, np.full(int(empty.sum()), default_id or 0, ids.dtype)])
    order = np.argsort(rows, kind="stable")
    indices = np.stack([rows[order], np.arange(len(order))], 1)
    shape = [count, max(len(order), 1)]
    weighted = None
    if weights is not None:
        ones = raw.ones([int(empty.sum())], weights.dtype)
        joined = raw.gather(raw.concat([raw.gather(weights, places), ones], 0), order)
        weighted = SparseTensor(indices, joined, shape)
    wanted = SparseTensor(indices, _native.own_tensor(ids[order]), shape)
    found = embedding_lookup_sparse(embedding_weights, wanted, weighted, combiner, max_norm)
    if default_id is None:
        found = raw.where(_column(_native.as_tensor(empty), found.ndim), raw.zeros_like(found), found)
    return raw.reshape(found, [*outer, *found.shape[1:]])
