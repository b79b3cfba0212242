"""From Python values to tensors and back, and the types in which operands meet.

Keras has its own rules of promotion (an `int32` and a `float32` make a `float32`, a Python number takes the
type of the tensor beside it). They are applied here, before Taut sees the operands, so that every backend of
Keras gives the same types.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  Makes NumPy know `bfloat16` by name.
import numpy as np
from keras.src.backend.common import KerasVariable, dtypes, standardize_dtype
from keras.src.backend.config import floatx

import taut as tf

# Keras halves the width of results on backends without 64-bit numbers. Taut has them. For whole numbers, the
# rule stays for what 32-bit operands would make (see `met`), so that types are those of the other backends.
dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"

NARROW = {"float64": floatx, "int64": lambda: "int32"}
"""The types that plain Python numbers get, where NumPy would take 64 bits."""


def convert_to_tensor(
    x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None
) -> tf.Tensor:
    """A tensor of `x`, of type `dtype` if one is given. A tensor of that type is returned as it is.

    An array's memory is shared: this is for operands. `own_tensor` is for what is kept.
    """
    if sparse or ragged:
        raise ValueError("Sparse and ragged tensors are not supported by the taut backend.")
    dtype = None if dtype is None else standardize_dtype(dtype)
    if isinstance(x, KerasVariable):
        x = x.value
    elif isinstance(x, tf.IndexedSlices):
        x = tf.convert_to_tensor(x)
    if isinstance(x, tf.Variable):
        x = x.value()
    if not tf.is_tensor(x):
        return from_python(x, dtype)
    if dtype is None or type_of(x) == dtype:
        return x
    return tf.cast(x, dtype)


def own_tensor(
    x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None
) -> tf.Tensor:
    """As `convert_to_tensor`, for callers that may change an array afterwards: it is copied."""
    made = convert_to_tensor(x, dtype, sparse, ragged)
    shared = isinstance(x, np.ndarray) and x.flags.writeable and x.dtype.name == type_of(made)
    return tf.constant(x) if shared else made


def from_python(x: Any, dtype: str | None) -> tf.Tensor:
    """A tensor of numbers, arrays, or (nested) sequences of numbers and tensors."""
    if isinstance(x, (list, tuple)) and any(holds_tensors(part) for part in x):
        parts = [convert_to_tensor(part, dtype) for part in x]
        return tf.stack(together(*parts))
    array = np.asarray(x)
    if array.dtype == object:
        raise ValueError(f"Cannot make a tensor of {x!r} (of type {type(x)}).")
    if dtype is None and not hasattr(x, "dtype") and array.dtype.name in NARROW and not holds_arrays(x):
        dtype = NARROW[array.dtype.name]()
    if dtype is not None and array.dtype.name != dtype:
        array = array.astype(dtype)
    return tf.convert_to_tensor(array)


def holds_tensors(x: Any) -> bool:
    """Whether `x` is a tensor or a variable, or a sequence that holds one somewhere."""
    if isinstance(x, (list, tuple)):
        return any(holds_tensors(part) for part in x)
    return isinstance(x, KerasVariable) or tf.is_tensor(x)


def holds_arrays(x: Any) -> bool:
    """Whether `x` is an array or a NumPy number, or a sequence that holds one somewhere."""
    if isinstance(x, (list, tuple)):
        return any(holds_arrays(part) for part in x)
    return hasattr(x, "dtype")


def convert_to_numpy(x: Any) -> np.ndarray:
    """`x` as a NumPy array that the caller may write to."""
    if isinstance(x, (KerasVariable, tf.IndexedSlices)):
        x = convert_to_tensor(x)
    return np.array(x.numpy() if tf.is_tensor(x) else x)


def cast(x: Any, dtype: Any) -> tf.Tensor:
    """`x` as a tensor of type `dtype`."""
    return convert_to_tensor(x, dtype)


def type_of(x: Any) -> Any:
    """Keras's name of the type of a tensor or array; for a Python number, its class, which promotes
    weakly."""
    if isinstance(x, (bool, int, float)):
        return type(x)
    return standardize_dtype(x.dtype)


def is_float(x: tf.Tensor) -> bool:
    """Whether a tensor holds floating-point numbers."""
    return "float" in type_of(x)


def floating(x: Any) -> tf.Tensor:
    """`x` as a tensor of floating-point numbers: whole numbers and truth values become Keras's default."""
    x = convert_to_tensor(x)
    return x if is_float(x) else tf.cast(x, floatx())


def together(*xs: Any, least: Any = None) -> list[tf.Tensor]:
    """Operands as tensors of the one type in which they meet, and in which they meet `least`, if given."""
    xs = [x if isinstance(x, (bool, int, float)) else convert_to_tensor(x) for x in xs]
    kinds = [type_of(x) for x in xs]
    dtype = met(*kinds) if least is None else met(*kinds, least)
    return [convert_to_tensor(x, dtype) for x in xs]


def met(*kinds: Any) -> str:
    """The type in which others meet, by Keras's rules; whole numbers that are 64 bits wide stay so."""
    found = dtypes.result_type(*kinds)
    wide = {"int64", "uint64"}.intersection(kinds)
    if found in ("int32", "uint32") and wide:
        return wide.pop() if len(wide) == 1 else "int64"
    return found


def cut(x: tf.Tensor, axis: int, start: int, stop: int) -> tf.Tensor:
    """The part of a tensor from `start` to `stop` along an axis."""
    index = [slice(None)] * len(x.shape)
    index[axis] = slice(start, stop)
    return x[tuple(index)]


def mixed(x: tf.Tensor, shares: np.ndarray, axis: int) -> tf.Tensor:
    """The places along an axis, mixed by a matrix: a row of shares for every old place."""
    moved = tf.tensordot(x, convert_to_tensor(shares, x.dtype), axes=[[axis], [0]])
    order = list(range(len(x.shape) - 1))
    return tf.transpose(moved, [*order[:axis], len(order), *order[axis:]])


def laid_along(axis: int, rank: int) -> list[int]:
    """The shape that lays a vector along an axis of a tensor of this rank."""
    return [-1 if i == axis % rank else 1 for i in range(rank)]


def size_of(shape: Iterable[int]) -> int:
    """The number of elements of a shape."""
    return math.prod(shape)


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of a tensor as plain numbers."""
    return tuple(int(dim) for dim in x.shape)


def axes_of(axis: int | Sequence[int] | None, rank: int) -> list[int]:
    """Axes as numbers from 0 to `rank` - 1, in increasing order; all of them for `None`."""
    if axis is None:
        return list(range(rank))
    axes = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    for one in axes:
        if not -rank <= one < rank:
            raise ValueError(f"axis {one} is out of bounds for a tensor of rank {rank}")
    return sorted({int(one) % rank for one in axes})
