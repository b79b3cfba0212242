"""Norms of vectors, matrices and lists of tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _raw_ops as raw
from .._common import refuse
from .._native import Tensor, as_tensor

if TYPE_CHECKING:
    from .._typing import AxisLike, TensorLike


def norm(
    tensor: TensorLike,
    ord: Any = "euclidean",
    axis: AxisLike = None,
    keepdims: bool | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the norm of vectors (one axis), of matrices (two axes), or of the whole tensor as a vector.

    `ord` is "euclidean", 1, 2, infinity or any positive number for vectors; "euclidean", "fro", 1, 2 or infinity for
    matrices.
    """
    x, keepdims = as_tensor(tensor), bool(keepdims)
    if axis is not None:
        axis = [int(one) for one in np.asarray(axis).reshape(-1)]
    if axis is None or len(axis) == 1:
        if ord == "fro":
            refuse("norm", "ord='fro' is a matrix norm: axis must name two axes")
        if ord != "euclidean" and not (isinstance(ord, (int, float, np.number)) and ord > 0):
            refuse("norm", f"ord must be 'euclidean' or a positive number for vectors, got {ord!r}")
        return _as_input(raw.norm(x, 2.0 if ord == "euclidean" else ord, axis, keepdims), x, ord)
    if len(axis) != 2 or axis[0] == axis[1]:
        refuse("norm", f"axis must be None, one axis or two different axes, got {axis}")
    if ord in ("euclidean", "fro"):
        return _as_input(raw.norm(x, 2.0, axis, keepdims), x, ord)
    rows, columns = (one % x.ndim for one in axis)
    if ord in (1, np.inf):
        # The largest absolute column sum, or row sum.
        first, second = (rows, columns) if ord == 1 else (columns, rows)
        made = raw.max(raw.norm(x, 1.0, first, True), second, True)
    elif ord == 2:
        rest = [one for one in range(x.ndim) if one not in (rows, columns)]
        values = raw.max(raw.svdvals(raw.transpose(x, [*rest, rows, columns])), -1)
        made = raw.reshape(values, [1 if one in (rows, columns) else size for one, size in enumerate(x.shape)])
    else:
        refuse("norm", f"ord must be 'euclidean', 'fro', 1, 2 or infinity for matrices, got {ord!r}")
    return made if keepdims else raw.squeeze(made, sorted((rows, columns)))


def _as_input(size: Tensor, x: Tensor, ord: Any) -> Tensor:
    """The Euclidean norm of complex numbers has their type, as in TensorFlow."""
    return raw.cast(size, x.dtype) if x.dtype.is_complex and ord in ("euclidean", "fro", 2) else size


def global_norm(t_list: Any, name: str | None = None) -> Tensor:
    """Computes the L2 norm of several tensors or IndexedSlices as one vector. None entries are skipped."""
    if not isinstance(t_list, (list, tuple)):
        refuse("global_norm", f"t_list must be a list of tensors, got {type(t_list).__name__}", TypeError)
    parts: list[Any] = [getattr(part, "values", part) for part in t_list if part is not None]
    if not parts:
        refuse("global_norm", "expected at least one tensor, got none")
    return raw.global_norm(parts)


def normalize(
    tensor: TensorLike, ord: Any = "euclidean", axis: AxisLike = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Divides a tensor by its norm; returns the quotient and the norm."""
    tensor = as_tensor(tensor)
    size = norm(tensor, ord, axis, True)
    return tensor / size, size
