"""Conversion between Python values and tensors, and Keras's type promotion.

Keras has its own promotion rules (`int32` and `float32` give `float32`; a Python number takes the type of the tensor
beside it). They are applied here, before Taut sees the operands, so that results have the same types on every backend.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import ml_dtypes  # noqa: F401  Registers `bfloat16` with NumPy.
import numpy as np
from keras.src.backend.common import KerasVariable, dtypes, standardize_dtype
from keras.src.backend.config import floatx

import taut as tf
from taut import _native
from taut.keras.backend import float8
from taut.sparse_tensor import to_dense

# Keras narrows float64 results on backends without 64-bit types. Taut has them. For integers the rule stays (see
# `promoted_type`), so
# that result types are those of the other backends.
dtypes.BIT64_TO_BIT32_DTYPE["float64"] = "float64"
# What `dtype="int"` and `dtype=int` mean, for counters of optimizers and layers, is as in Keras on TensorFlow.
dtypes.PYTHON_DTYPES_MAP |= {int: "int64", "int": "int64", complex: "complex128"}

NARROW = {"float64": floatx, "int64": lambda: "int32"}
"""The types of Python numbers, for which NumPy would use 64 bits."""

# The kinds of NumPy's types of numbers; those of `ml_dtypes` are void.
_NUMBERS = "biufcV"


def convert_to_tensor(x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None) -> tf.Tensor:
    """Converts to a tensor, of type `dtype` if given.

    The memory of an array is shared: this is for operands. Use `own_tensor` for values that are kept.
    """
    if ragged:
        raise ValueError("Ragged tensors are not supported by the taut backend.")
    if sparse is not None and isinstance(x, tf.SparseTensor):
        # The inputs of a model, which say whether they are sparse. Its layers are those of dense tensors.
        x = to_dense(x)
    dtype = None if dtype is None else standardize_dtype(dtype)
    if dtype in float8.TYPES:
        return float8.round_to(floating(x), dtype)
    if isinstance(x, KerasVariable):
        x = x.value
    elif isinstance(x, tf.IndexedSlices):
        x = tf.convert_to_tensor(x)
    # Of most operands the first answer is enough: the second asks a method.
    if type(x) is not tf.Tensor and isinstance(x, tf.Variable):
        x = x.value()
    if not tf.is_tensor(x):
        return from_python(x, dtype)
    if dtype is None or type_of(x) == dtype:
        return x
    return tf.cast(x, dtype)


def own_tensor(x: Any, dtype: Any = None, sparse: bool | None = None, ragged: bool | None = None) -> tf.Tensor:
    """As `convert_to_tensor`, copying arrays that the caller may change afterwards."""
    made = convert_to_tensor(x, dtype, sparse, ragged)
    shared = isinstance(x, np.ndarray) and x.flags.writeable and x.dtype.name == type_of(made)
    return tf.constant(x) if shared else made


def from_python(x: Any, dtype: str | None) -> tf.Tensor:
    """Converts numbers, arrays, and (nested) sequences of numbers and tensors."""
    if isinstance(x, (list, tuple)) and any(holds_tensors(part) for part in x):
        parts = [convert_to_tensor(part, dtype) for part in x]
        return tf.stack(promote(*parts))
    array = np.asarray(x)
    if array.dtype.kind not in _NUMBERS:
        return from_strings(x, dtype)
    if dtype is None and not hasattr(x, "dtype") and array.dtype.name in NARROW and not holds_arrays(x):
        dtype = NARROW[array.dtype.name]()
    if dtype is not None and array.dtype.name != dtype:
        array = array.astype(dtype)
    return tf.convert_to_tensor(array)


def from_strings(x: Any, dtype: str | None) -> tf.Tensor:
    """Converts strings, which the inputs of preprocessing layers are."""
    try:
        made = tf.convert_to_tensor(x)
    except (TypeError, ValueError):
        raise ValueError(f"Cannot convert {x!r} of type {type(x)} to a tensor.") from None
    if dtype not in (None, type_of(made)):
        raise ValueError(f"Cannot convert {x!r} of type {type(x)} to a tensor of type {dtype}.")
    return made


def holds_tensors(x: Any) -> bool:
    """Whether `x` is a tensor or a variable, or a (nested) sequence with one in it."""
    if isinstance(x, (list, tuple)):
        return any(holds_tensors(part) for part in x)
    return isinstance(x, KerasVariable) or tf.is_tensor(x)


def holds_arrays(x: Any) -> bool:
    """Whether `x` is an array or a NumPy number, or a (nested) sequence with one in it."""
    if isinstance(x, (list, tuple)):
        return any(holds_arrays(part) for part in x)
    return hasattr(x, "dtype")


def convert_to_numpy(x: Any) -> np.ndarray:
    """Converts to a writable NumPy array."""
    if isinstance(x, (KerasVariable, tf.IndexedSlices)):
        x = convert_to_tensor(x)
    return np.array(x.numpy() if tf.is_tensor(x) else x)


def cast(x: Any, dtype: Any) -> tf.Tensor:
    """Converts to a tensor of type `dtype`."""
    return convert_to_tensor(x, dtype)


def type_of(x: Any) -> Any:
    """Keras's name of a tensor's or array's type; for a Python number its class, which promotes weakly."""
    if isinstance(x, (bool, int, float)):
        return type(x)
    return standardize_dtype(x.dtype)


def is_float(x: tf.Tensor) -> bool:
    """Whether a tensor has a floating-point type."""
    return "float" in type_of(x)


def floating(x: Any) -> tf.Tensor:
    """Converts to a floating-point or complex tensor; integers and booleans become Keras's default float type."""
    x = convert_to_tensor(x)
    return x if is_float(x) or x.dtype.is_complex else tf.cast(x, floatx())


def promote(*xs: Any, least: Any = None) -> list[tf.Tensor]:
    """Converts operands to tensors of their promoted type, promoted with `least` if given."""
    operands = [x if isinstance(x, (bool, int, float)) else convert_to_tensor(x) for x in xs]
    kinds = [type_of(x) for x in operands]
    dtype = promoted_type(*kinds) if least is None else promoted_type(*kinds, least)
    return [convert_to_tensor(x, dtype) for x in operands]


def promoted_type(*kinds: Any) -> str:
    """The promoted type by Keras's rules; 64-bit integers stay 64-bit."""
    found = dtypes.result_type(*kinds)
    wide = {"int64", "uint64"}.intersection(kinds)
    if found in ("int32", "uint32") and wide:
        return wide.pop() if len(wide) == 1 else "int64"
    return found


def slice_axis(x: tf.Tensor, axis: int, start: int, stop: int) -> tf.Tensor:
    """Slices a tensor from `start` to `stop` along an axis."""
    index = [slice(None)] * len(x.shape)
    index[axis] = slice(start, stop)
    return x[tuple(index)]


def matmul_axis(x: tf.Tensor, shares: Any, axis: int) -> tf.Tensor:
    """Multiplies an axis of a tensor by a matrix `[old size, new size]`."""
    moved = tf.tensordot(x, convert_to_tensor(shares, x.dtype), axes=[[axis], [0]])
    order = list(range(len(x.shape) - 1))
    return tf.transpose(moved, [*order[:axis], len(order), *order[axis:]])


def broadcast_shape(axis: int, rank: int) -> list[int]:
    """The shape of a vector along one axis, for broadcasting with a tensor of this rank."""
    return [-1 if i == axis % rank else 1 for i in range(rank)]


def size_of(shape: Iterable[int]) -> int:
    """The number of elements of a shape."""
    return math.prod(shape)


def shape_of(x: Any) -> tuple[int, ...]:
    """The shape of a tensor as a tuple of integers."""
    return tuple(int(dim) for dim in x.shape)


def open_shape(x: tf.Tensor) -> tuple:
    """The shape of a tensor as a tuple. While a function with open dimensions is recorded, sizes that follow from those are
    tensors, so that the recording holds for all of them.
    """
    if not _native.is_recording_calls():
        return shape_of(x)
    seen = tuple(x.get_shape())
    if None not in seen:
        return seen
    sizes = tf.shape(x)
    return tuple(sizes[i] if dim is None else dim for i, dim in enumerate(seen))


def known_value(x: Any, option: str) -> np.ndarray:
    """The value of a tensor on which the shape of a result depends; in a traced function that computes the tensor, an error
    with which the function runs op by op.
    """
    if x.is_symbolic:
        raise tf.errors.DynamicShapeError(
            f"a shape depends on the value of a traced tensor, {x.dtype.name}{list(x.shape)}\n  help: pass `{option}`"
        )
    return x.numpy()


def axes_of(axis: int | Sequence[int] | None, rank: int) -> list[int]:
    """Normalizes axes to [0, rank), in ascending order; all axes for None."""
    if axis is None:
        return list(range(rank))
    axes = [axis] if isinstance(axis, (int, np.integer)) else list(axis)
    for one in axes:
        if not -rank <= one < rank:
            raise ValueError(f"axis must be in [{-rank}, {rank}), got {one}")
    return sorted({int(one) % rank for one in axes})


def check_images(images: Any) -> None:
    """Raises ValueError unless it is an image or a batch of images."""
    if len(images.shape) not in (3, 4):
        raise ValueError(
            "Invalid images rank: expected rank 3 (single image) or rank 4 (batch of images). "
            f"Received: images.shape={shape_of(images)}"
        )
