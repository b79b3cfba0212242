"""Functions that rearrange arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw
from .._common import as_tuple, refuse

if TYPE_CHECKING:
    from .._typing import AxisLike, TensorLike

Array = _native.Tensor


def broadcast_arrays(*arrays: Any) -> list[Array]:
    """Broadcasts arrays against each other."""
    try:
        shape = np.broadcast_shapes(*(tuple(one.shape) for one in arrays))
    except ValueError:
        refuse("broadcast_arrays", f"shapes {', '.join(str(one.shape) for one in arrays)} are not broadcastable")
    return [raw.broadcast_to(one, shape) for one in arrays]


def concat(arrays: Sequence, /, *, axis: int | None = 0) -> Array:
    """Concatenates arrays along an axis; flattens them first if it is None."""
    if axis is None:
        return raw.concat([raw.reshape(one, [-1]) for one in arrays], 0)
    return raw.concat(list(arrays), axis)


def expand_dims(x: TensorLike, /, axis: int = 0) -> Array:
    """Inserts an axis of size 1."""
    return raw.expand_dims(x, axis)


def flip(x: Any, /, *, axis: Any = None) -> Array:
    """Reverses the order of elements along axes."""
    return raw.reverse(x, list(range(x.ndim)) if axis is None else axis)


def permute_dims(x: TensorLike, /, axes: Sequence[int]) -> Array:
    """Permutes the axes."""
    return raw.transpose(x, axes)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Array:
    """Repeats elements along an axis; flattens the array first if it is None."""
    return raw.repeat(x, repeats, axis)


def reshape(x: Any, /, shape: Sequence[int], *, copy: bool | None = None) -> Array:
    """Reshapes an array. With `copy=False`, a reshape that needs a copy is an error."""
    made = raw.reshape(x, shape)
    if copy:
        return raw.identity(made)
    if copy is False and made.size and made.data_ptr() != x.data_ptr():
        refuse(
            "reshape",
            f"copy=False does not allow the reshape from {x.shape} to {made.shape}, which needs a copy",
            ValueError,
        )
    return made


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Array:
    """Rolls elements along axes; in row-major order if `axis` is None."""
    if axis is None:
        return raw.reshape(raw.roll(raw.reshape(x, [-1]), shift, 0), x.shape)
    shifts = [shift] if isinstance(shift, int) else list(shift)
    axes = [axis] if isinstance(axis, int) else list(axis)
    return raw.roll(x, shifts * len(axes) if len(shifts) == 1 else shifts, axes)


def squeeze(x: TensorLike, /, axis: AxisLike) -> Array:
    """Removes axes of size 1."""
    return raw.squeeze(x, axis)


def stack(arrays: Sequence, /, *, axis: int = 0) -> Array:
    """Joins arrays along a new axis."""
    return raw.stack(list(arrays), axis)


def tile(x: Any, repetitions: Sequence[int], /) -> Array:
    """Repeats the array along axes."""
    missing = len(repetitions) - x.ndim
    x = raw.reshape(x, [1] * missing + list(x.shape)) if missing > 0 else x
    return raw.tile(x, [1] * (x.ndim - len(repetitions)) + list(repetitions))


def unstack(x: TensorLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Splits an array into its slices along an axis, which is removed."""
    return as_tuple(raw.unstack(x, axis))
