"""Functions that rearrange, join and split tensors."""

from __future__ import annotations

import builtins
import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import as_ints, as_tuple, cast_to, check_choice, refuse, refuse_fraction, unify_dtypes
from .._native import Tensor, as_tensor
from ..shape import TensorShape
from ..tensor import shape as _shape_tensor
from .py_function import note_shape

if TYPE_CHECKING:
    from .._typing import DTypeLike, IntsLike, TensorLike


def transpose(a: TensorLike, perm: IntsLike | None = None, conjugate: bool = False, name: str = "transpose") -> Tensor:
    """Permutes the axes of a tensor; reverses them if `perm` is not given. Conjugates the elements if `conjugate` is set."""
    turned = raw.transpose(a, perm)
    return raw.conj(turned) if conjugate else turned


def concat(values: Any, axis: Any, name: str = "concat") -> Tensor:
    """Concatenates tensors along an existing axis."""
    return raw.concat(unify_dtypes(values) if isinstance(values, (list, tuple)) else [values], axis)


def stack(values: TensorLike, axis: int = 0, name: str = "stack") -> Tensor:
    """Stacks tensors along a new axis. A single tensor is stacked from its slices along the first axis."""
    if isinstance(values, (list, tuple)):
        # As in TensorFlow, an empty list is an empty tensor of floats.
        return raw.stack(unify_dtypes(values), axis) if values else as_tensor(values)
    return raw.stack(list(as_tuple(raw.unstack(values, 0))), axis)


def parallel_stack(values: TensorLike, name: str = "parallel_stack") -> Tensor:
    """Stacks tensors along a new first axis."""
    return stack(values, 0)


def unstack(value: TensorLike, num: int | None = None, axis: int = 0, name: str = "unstack") -> list[Tensor]:
    """Splits a tensor into its slices along an axis, which is removed."""
    made = list(as_tuple(raw.unstack(value, axis)))
    if num is not None and num != len(made):
        refuse("unstack", f"num must equal the size of axis {axis}, {len(made)}, got {num}")
    return made


def split(
    value: Any, num_or_size_splits: Any, axis: Any = 0, num: int | None = None, name: str = "split"
) -> list[Tensor]:
    """Splits a tensor along an axis into `num_or_size_splits` equal parts, or into parts of these sizes (one may be
    -1).
    """
    value, axis = as_tensor(value), int(axis)
    sizes = num_or_size_splits
    if not isinstance(sizes, (int, np.integer)) and not (isinstance(sizes, _native.Array) and not sizes.ndim):
        sizes = as_ints(sizes)
        if num is not None and num != len(sizes):
            refuse("split", f"num must equal the number of sizes, {len(sizes)}, got {num}")
        if sizes.count(-1) == 1 and -value.ndim <= axis < value.ndim:
            sizes[sizes.index(-1)] = value.shape[axis] - sum(sizes) - 1
    return list(as_tuple(raw.split(value, sizes, axis)))


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Repeats elements along an axis; flattens the input if `axis` is None."""
    return raw.repeat(input, repeats, axis)


def pad(
    tensor: Any, paddings: Any, mode: str = "CONSTANT", constant_values: Any = 0, name: str | None = None
) -> Tensor:
    """Pads a tensor with a constant, or by reflection without ("REFLECT") or with ("SYMMETRIC") the edge."""
    mode = mode.upper() if isinstance(mode, str) else mode
    check_choice("pad", "mode", mode, ("CONSTANT", "REFLECT", "SYMMETRIC"))
    if mode == "CONSTANT" and isinstance(constant_values, _native.Array):
        tensor = as_tensor(tensor)
        if tensor.dtype.is_floating:
            # A tensor may have a gradient, and is known only when a traced function runs.
            inside = raw.pad(raw.ones_like(tensor, dtypes.bool), paddings, mode, False)
            return raw.where(
                inside, raw.pad(tensor, paddings, mode, 0), cast_to(as_tensor(constant_values), tensor.dtype)
            )
    if mode == "CONSTANT" and isinstance(constant_values, float) and as_tensor(tensor).dtype.is_integer:
        refuse_fraction("pad", constant_values)
    return raw.pad(tensor, paddings, mode, constant_values if mode == "CONSTANT" else None)


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """Checks that a tensor has a shape, where None matches any size, and returns it."""
    x = as_tensor(x)
    if shape is not None and not (note_shape(x, shape) or x.shape.is_compatible_with(shape)):
        refuse("ensure_shape", f"expected shape {TensorShape(shape)}, got {x.shape}")
    return x


def squeeze(input: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Removes axes of size one: the given ones, or all if none are given."""
    axes = None if axis is None else list(dict.fromkeys(as_ints(axis)))
    return raw.squeeze(input, axes or None)


def broadcast_static_shape(shape_x: Any, shape_y: Any) -> TensorShape:
    """Computes the shape to which two shapes broadcast."""
    x, y = TensorShape(shape_x), TensorShape(shape_y)
    sizes = []
    for a, b in itertools.zip_longest(reversed(x), reversed(y), fillvalue=1):
        if None in (a, b):
            # A known size above 1 is that of the result; beside 1, the unknown size is.
            known = b if a is None else a
            sizes.append(None if known == 1 else known)
        elif a == b or 1 in (a, b):
            sizes.append(b if a == 1 else a)
        else:
            refuse("broadcast_static_shape", f"shapes {x} and {y} are not broadcastable")
    return TensorShape(reversed(sizes))


def broadcast_dynamic_shape(shape_x: Any, shape_y: Any) -> Tensor:
    """Computes the shape to which two shapes broadcast, as a tensor."""
    dtype = next((one.dtype for one in (shape_x, shape_y) if hasattr(one, "dtype")), dtypes.int32)
    made = broadcast_static_shape(as_ints(shape_x), as_ints(shape_y))
    return as_tensor(list(made), dtype) if made.rank else raw.zeros([0], dtype)


def shape_n(input: Sequence, out_type: DTypeLike = dtypes.int32, name: str | None = None) -> list[Tensor]:
    """Returns the shapes of several tensors as tensors."""
    return [_shape_tensor(one, out_type) for one in input]


def identity_n(input: Sequence, name: str | None = None) -> list[Tensor]:
    """Copies several tensors."""
    return [raw.identity(one) for one in input]


def _check_blocks(name: str, blocks: list[int]) -> None:
    if builtins.any(block < 1 for block in blocks):
        refuse(name, f"block_shape must be >= 1, got {blocks}")


def space_to_batch(input: Any, block_shape: Any, paddings: Any, name: str | None = None) -> Tensor:
    """Zero-pads the spatial axes and moves blocks of them into the batch axis."""
    x, blocks = as_tensor(input), as_ints(block_shape)
    margins = [as_ints(pair) for pair in (paddings.tolist() if hasattr(paddings, "tolist") else paddings)]
    count = len(blocks)
    rest = x.ndim - 1 - count
    _check_blocks("space_to_batch", blocks)
    if rest < 0 or len(margins) != count:
        refuse(
            "space_to_batch",
            f"block_shape {blocks} and paddings {margins} must have one entry per spatial axis of shape {x.shape}",
        )
    x = raw.pad(x, [[0, 0], *margins, *[[0, 0]] * rest])
    sizes = x.shape[1 : count + 1]
    if builtins.any(size % block for size, block in zip(sizes, blocks)):
        refuse("space_to_batch", f"padded sizes {list(sizes)} must be multiples of block_shape {blocks}")
    parts = [part for size, block in zip(sizes, blocks) for part in (size // block, block)]
    x_shape = x.shape
    x = raw.reshape(x, [x_shape[0], *parts, *x_shape[count + 1 :]])
    outer = [1 + 2 * i for i in builtins.range(count)]
    after = builtins.range(1 + 2 * count, 1 + 2 * count + rest)
    x = raw.transpose(x, [*(axis + 1 for axis in outer), 0, *outer, *after])
    return raw.reshape(x, [x_shape[0] * math.prod(blocks), *(parts[0::2]), *x_shape[count + 1 :]])


def batch_to_space(input: Any, block_shape: Any, crops: Any, name: str | None = None) -> Tensor:
    """Moves blocks of the batch axis back into the spatial axes and crops them: the inverse of `space_to_batch`."""
    x, blocks = as_tensor(input), as_ints(block_shape)
    margins = [as_ints(pair) for pair in (crops.tolist() if hasattr(crops, "tolist") else crops)]
    _check_blocks("batch_to_space", blocks)
    count, total = len(blocks), math.prod(blocks)
    if x.ndim < 1 + count or len(margins) != count or x.shape[0] % total:
        refuse(
            "batch_to_space",
            f"block_shape {blocks} and crops {margins} must have one entry per spatial axis of shape {x.shape}, "
            f"and the batch size must be a multiple of {total}",
        )
    batch, sizes, rest = x.shape[0] // total, x.shape[1 : count + 1], x.shape[count + 1 :]
    for (low, high), size, block in zip(margins, sizes, blocks):
        if low < 0 or high < 0 or low + high > size * block:
            refuse("batch_to_space", f"crops must be >= 0 and at most {size * block} together, got {[low, high]}")
    x = raw.reshape(x, [*blocks, batch, *sizes, *rest])
    pairs = [axis for i in builtins.range(count) for axis in (count + 1 + i, i)]
    x = raw.transpose(x, [count, *pairs, *builtins.range(2 * count + 1, x.ndim)])
    x = raw.reshape(x, [batch, *(size * block for size, block in zip(sizes, blocks)), *rest])
    inner = (builtins.slice(low, x.shape[i + 1] - high) for i, (low, high) in enumerate(margins))
    key = (builtins.slice(None), *inner)
    return x[key]


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The paddings that make sizes multiples of blocks, and the crops that undo them."""
    sizes, blocks = as_ints(input_shape), as_ints(block_shape)
    base = [[0, 0] for _ in blocks] if base_paddings is None else [as_ints(pair) for pair in base_paddings]
    _check_blocks("required_space_to_batch_paddings", blocks)
    if not len(sizes) == len(blocks) == len(base):
        refuse("required_space_to_batch_paddings", f"expected as many sizes as blocks, got {sizes} and {blocks}")
    extra = [-(size + low + high) % block for size, block, (low, high) in zip(sizes, blocks, base)]
    pads = [[low, high + more] for (low, high), more in zip(base, extra)]
    crops = [[0, more] for more in extra]
    return as_tensor(np.asarray(pads, np.int32).reshape(-1, 2)), as_tensor(np.asarray(crops, np.int32).reshape(-1, 2))
