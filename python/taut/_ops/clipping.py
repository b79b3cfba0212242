"""Clipping by norm."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

from .. import _native, _raw_ops as raw
from .._common import refuse
from .._native import Tensor, as_tensor
from ..indexed_slices import IndexedSlices
from .elementwise import scalar_mul
from .norm import global_norm

if TYPE_CHECKING:
    from .._typing import AxisLike, TensorLike

if TYPE_CHECKING:
    from .._typing import TensorLike


@overload
def clip_by_norm(
    t: IndexedSlices, clip_norm: TensorLike, axes: AxisLike = None, name: str | None = None
) -> IndexedSlices: ...
@overload
def clip_by_norm(t: TensorLike, clip_norm: TensorLike, axes: AxisLike = None, name: str | None = None) -> Tensor: ...
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Scales a tensor down to an L2 norm of at most `clip_norm`, over all axes or over `axes`."""
    if isinstance(t, IndexedSlices):
        return IndexedSlices(clip_by_norm(t.values, clip_norm, axes), t.indices, t.dense_shape)
    t = as_tensor(t)
    if not isinstance(clip_norm, _native.Array):
        return raw.clip_by_norm(t, clip_norm, axes)
    size = raw.norm(t, 2.0, axes, True)
    return t * (clip_norm / raw.maximum(size, clip_norm))


def clip_by_global_norm(
    t_list: Sequence, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list, Tensor]:
    """Scales a list of tensors down so that their joint L2 norm is at most `clip_norm`; returns them and that norm.

    None stays None. If the norm is not finite, neither are the results.
    """
    if not isinstance(t_list, (list, tuple)):
        refuse("clip_by_global_norm", f"t_list must be a list of tensors, got {type(t_list).__name__}", TypeError)
    plain = builtins.all(part is not None and not isinstance(part, IndexedSlices) for part in t_list)
    if plain and t_list and use_norm is None and not isinstance(clip_norm, _native.Array):
        *clipped, size = raw.clip_by_global_norm(list(t_list), clip_norm)
        return clipped, size
    size = global_norm(t_list) if use_norm is None else as_tensor(use_norm)
    # `size - size` is NaN for an infinite norm, as in TensorFlow: all results are NaN then.
    scale = clip_norm / raw.maximum(size, clip_norm) + (size - size)
    return [None if part is None else scalar_mul(scale, part) for part in t_list], size
