"""Clipping by value and by norm."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from .. import _raw_ops as raw
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from ..indexed_slices import IndexedSlices
from .elementwise import scalar_mul
from .norm import global_norm

if TYPE_CHECKING:
    from .._typing import AxisLike, TensorLike


_NUMBERS = (int, float)


@overload
def clip_by_value(
    t: IndexedSlices, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> IndexedSlices: ...
@overload
def clip_by_value(
    t: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorLike, name: str | None = None
) -> Tensor: ...
def clip_by_value(t: Any, clip_value_min: Any, clip_value_max: Any, name: str | None = None) -> Any:
    """Clips each element to `[clip_value_min, clip_value_max]`. Where the minimum exceeds the maximum, the result is the
    minimum; NaN stays NaN.
    """
    if isinstance(t, IndexedSlices):
        return t.with_values(clip_by_value(t.values, clip_value_min, clip_value_max))
    are_numbers = type(clip_value_min) in _NUMBERS and type(clip_value_max) in _NUMBERS
    if are_numbers and clip_value_min <= clip_value_max:
        return raw.clip_by_value(t, clip_value_min, clip_value_max)
    t, bounds = as_tensor(t), (clip_value_min, clip_value_max)
    return _like("clip_by_value", raw.maximum(raw.minimum(t, clip_value_max), clip_value_min), t, bounds)


def _like(function: str, made: Tensor, t: Tensor, bounds: Sequence) -> Tensor:
    """The result, if the bounds have not broadcast it to another shape than that of `t`."""
    if builtins.any(np.ndim(bound) for bound in bounds) and made.shape != t.shape:
        message = f"the bounds must broadcast to the shape of t, {t.shape}, but the result has shape {made.shape}"
        refuse(function, message, ValueError)
    return made


@overload
def clip_by_norm(
    t: IndexedSlices, clip_norm: TensorLike, axes: AxisLike = None, name: str | None = None
) -> IndexedSlices: ...
@overload
def clip_by_norm(t: TensorLike, clip_norm: TensorLike, axes: AxisLike = None, name: str | None = None) -> Tensor: ...
def clip_by_norm(t: Any, clip_norm: Any, axes: Any = None, name: str | None = None) -> Any:
    """Scales a tensor down to an L2 norm of at most `clip_norm`, over all axes or over `axes`."""
    if isinstance(t, IndexedSlices):
        return t.with_values(clip_by_norm(t.values, clip_norm, axes))
    t = as_tensor(t)
    if isinstance(clip_norm, (int, float)) and clip_norm > 0:
        return raw.clip_by_norm(t, clip_norm, axes)
    size, clip_norm = raw.norm(t, 2.0, axes, True), raw.maximum(clip_norm, 0.0)
    return _like("clip_by_norm", t * (clip_norm / raw.maximum(size, clip_norm)), t, [clip_norm])


def clip_by_global_norm(
    t_list: Sequence, clip_norm: Any, use_norm: Any = None, name: str | None = None
) -> tuple[list, Tensor]:
    """Scales a list of tensors down so that their joint L2 norm is at most `clip_norm`; returns them and that norm.

    None stays None. If the norm is not finite, neither are the results.
    """
    if not isinstance(t_list, (list, tuple)):
        refuse("clip_by_global_norm", f"t_list must be a list of tensors, got {type(t_list).__name__}", TypeError)
    plain = builtins.all(part is not None and not isinstance(part, IndexedSlices) for part in t_list)
    fused = plain and t_list and use_norm is None
    if fused and isinstance(clip_norm, (int, float)) and clip_norm > 0:
        *clipped, size = raw.clip_by_global_norm(list(t_list), clip_norm)
        return clipped, size
    size = global_norm(t_list) if use_norm is None else as_tensor(use_norm)
    # `size - size` is NaN for an infinite norm, as in TensorFlow: all results are NaN then. So is the form of the
    # scale for a `clip_norm` of 0 and below, which is not a limit.
    scale = clip_norm * raw.minimum(1.0 / size, 1.0 / as_tensor(clip_norm, size.dtype)) + (size - size)
    return [None if part is None else scalar_mul(cast_to(scale, part.dtype), part) for part in t_list], size
