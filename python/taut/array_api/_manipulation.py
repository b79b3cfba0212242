"""Functions of shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import _native
from .._common import _refuse, _several

op = _native.Op
Array = _native.Tensor

broadcast_to = op("broadcast_to", params=["x", "shape"])
moveaxis = op("moveaxis")

_concat = op("concat")
_expand = op("expand_dims")
_identity = op("identity")
_repeat = op("repeat")
_reshape = op("reshape")
_reverse = op("reverse")
_roll = op("roll")
_squeeze = op("squeeze")
_stack = op("stack")
_tile = op("tile")
_transpose = op("transpose")
_unstack = op("unstack")


def broadcast_arrays(*arrays: Any) -> list[Array]:
    """The arrays in the shape that they meet in."""
    try:
        shape = np.broadcast_shapes(*(tuple(one.shape) for one in arrays))
    except ValueError:
        _refuse("broadcast_arrays", f"shapes {', '.join(str(one.shape) for one in arrays)} do not broadcast")
    return [broadcast_to(one, shape) for one in arrays]


def concat(arrays: Sequence, /, *, axis: int | None = 0) -> Array:
    """The arrays one after the other along an axis; flattened, without one."""
    if axis is None:
        return _concat([_reshape(one, [-1]) for one in arrays], 0)
    return _concat(list(arrays), axis)


def expand_dims(x: Any, /, *, axis: int = 0) -> Array:
    """The array with an axis of size one more."""
    return _expand(x, axis)


def flip(x: Any, /, *, axis: Any = None) -> Array:
    """The elements in reverse order along some axes, or along all of them."""
    return _reverse(x, list(range(x.ndim)) if axis is None else axis)


def permute_dims(x: Any, /, axes: Sequence[int]) -> Array:
    """The axes in another order."""
    return _transpose(x, axes)


def repeat(x: Any, repeats: Any, /, *, axis: int | None = None) -> Array:
    """Each element along an axis several times in a row; of the flattened array, without an axis."""
    return _repeat(x, repeats, axis)


def reshape(x: Any, /, shape: Sequence[int], *, copy: bool | None = None) -> Array:
    """The same elements under another shape. With `copy=False`, what would have to be copied is refused."""
    made = _reshape(x, shape)
    if copy:
        return _identity(made)
    if copy is False and made.size and made.data_ptr() != x.data_ptr():
        _refuse("reshape", f"an array of shape {x.shape} takes shape {made.shape} only in a copy", ValueError)
    return made


def roll(x: Any, /, shift: Any, *, axis: Any = None) -> Array:
    """Elements moved along axes, and in again at the other end; in row-major order, without an axis."""
    if axis is None:
        return _reshape(_roll(_reshape(x, [-1]), shift, 0), x.shape)
    shifts = [shift] if isinstance(shift, int) else list(shift)
    axes = [axis] if isinstance(axis, int) else list(axis)
    return _roll(x, shifts * len(axes) if len(shifts) == 1 else shifts, axes)


def squeeze(x: Any, /, axis: Any) -> Array:
    """The array without these axes, which have size one."""
    return _squeeze(x, axis)


def stack(arrays: Sequence, /, *, axis: int = 0) -> Array:
    """The arrays side by side along a new axis."""
    return _stack(list(arrays), axis)


def tile(x: Any, repetitions: Sequence[int], /) -> Array:
    """Copies of the array side by side, along as many axes as there are numbers or dimensions."""
    missing = len(repetitions) - x.ndim
    x = _reshape(x, [1] * missing + list(x.shape)) if missing > 0 else x
    return _tile(x, [1] * (x.ndim - len(repetitions)) + list(repetitions))


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis, which they no longer have."""
    return _several(_unstack(x, axis))
