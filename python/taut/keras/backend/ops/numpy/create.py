"""Creation of tensors: constants, ranges, windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from keras.src.backend.common import dtypes, standardize_dtype
from keras.src.backend.config import floatx

import taut as tf
from taut.keras.backend.convert import broadcast_shape, convert_to_tensor, own_tensor, promote, shape_of, type_of


def array(x: Any, dtype: Any = None) -> tf.Tensor:
    """Creates a tensor from `x`."""
    return own_tensor(x, dtype)


def copy(x: Any) -> tf.Tensor:
    """Copies a tensor."""
    return tf.identity(convert_to_tensor(x))


def view(x: Any, dtype: Any = None) -> tf.Tensor:
    """Reinterprets the bytes as another type; the last axis grows or shrinks with the element size."""
    x = convert_to_tensor(x)
    if dtype is None:
        return x
    old, new = np.dtype(type_of(x)).itemsize, np.dtype(dtype).itemsize
    if old != new and (len(x.shape) == 0 or x.shape[-1] * old % new):
        raise ValueError(
            f"The bytes of the last axis of shape {shape_of(x)} must be a multiple of the size of {dtype}."
        )
    if old < new:
        *front, last = x.shape
        x = tf.reshape(x, [*front, last * old // new, new // old])
    y = tf.bitcast(x, dtype)
    if old > new:
        y = tf.reshape(y, [*x.shape[:-1], -1])
    return y


def sizes(shape: int | Sequence[int]) -> list[int]:
    """A shape as a list; an integer is the shape of a vector."""
    return [int(shape)] if isinstance(shape, (int, np.integer)) else [int(dim) for dim in shape]


def zeros(shape: int | Sequence[int], dtype: Any = None) -> tf.Tensor:
    """Creates a tensor of zeros."""
    return tf.zeros(sizes(shape), dtype or floatx())


def ones(shape: int | Sequence[int], dtype: Any = None) -> tf.Tensor:
    """Creates a tensor of ones."""
    return tf.ones(sizes(shape), dtype or floatx())


def empty(shape: int | Sequence[int], dtype: Any = None) -> tf.Tensor:
    """Creates a tensor of zeros: memory is never exposed uninitialized."""
    return tf.zeros(sizes(shape), dtype or floatx())


def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None) -> tf.Tensor:
    """Creates a tensor filled with one value, or with a broadcast tensor."""
    return tf.broadcast_to(convert_to_tensor(fill_value, dtype or floatx()), sizes(shape))


def zeros_like(x: Any, dtype: Any = None) -> tf.Tensor:
    """Creates zeros in the shape of `x`."""
    x = convert_to_tensor(x)
    return tf.zeros(x.shape, dtype or x.dtype)


def ones_like(x: Any, dtype: Any = None) -> tf.Tensor:
    """Creates ones in the shape of `x`."""
    x = convert_to_tensor(x)
    return tf.ones(x.shape, dtype or x.dtype)


def empty_like(x: Any, dtype: Any = None) -> tf.Tensor:
    """Creates zeros in the shape of `x`."""
    return zeros_like(x, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> tf.Tensor:
    """Creates a tensor filled with one value, in the shape of `x`."""
    x = convert_to_tensor(x)
    return full(x.shape, fill_value, dtype or x.dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> tf.Tensor:
    """Creates a matrix with ones on diagonal `k`."""
    columns = N if M is None else M
    on_diagonal = tf.equal(tf.range(N)[:, None] + int(k), tf.range(columns)[None, :])
    return tf.cast(on_diagonal, standardize_dtype(dtype or floatx()))


def identity(n: int, dtype: Any = None) -> tf.Tensor:
    """Creates an identity matrix."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> tf.Tensor:
    """Creates a matrix with ones on and below diagonal `k`."""
    columns = N if M is None else M
    below = tf.greater_equal(tf.range(N)[:, None] + int(k), tf.range(columns)[None, :])
    return tf.cast(below, standardize_dtype(dtype or floatx()))


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> tf.Tensor:
    """Creates numbers in [start, stop) with a step."""
    given = [x for x in (start, stop, step) if x is not None]
    if dtype is None:
        dtype = dtypes.result_type(*[getattr(x, "dtype", type(x)) for x in given])
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if all(isinstance(x, (int, float, np.number)) for x in (start, stop, step)):
        return convert_to_tensor(np.arange(start, stop, step), dtype)
    # Ranges of other types are computed in a type with exact steps and cast.
    exact = dtype if dtype in ("int32", "int64", "float32", "float64") else "int32" if "int" in dtype else "float32"
    first, last, distance = (convert_to_tensor(x, exact) for x in (start, stop, step))
    return tf.cast(tf.range(first, last, distance), dtype)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """Creates `num` evenly spaced values from `start` to `stop` along a new axis; with `retstep`, also returns the
    step.
    """
    num = int(num)
    if num < 0:
        raise ValueError(f"`num` must be >= 0. Received: num={num}")
    start, stop = promote(start, stop, least=float)
    result = dtype or type_of(start)
    start, stop = start + tf.zeros_like(stop), stop + tf.zeros_like(start)
    rank = len(start.shape) + 1
    steps = num - 1 if endpoint else num
    step = (stop - start) / steps if steps > 0 else stop * math.nan
    place = axis % rank
    counts = tf.reshape(tf.cast(tf.range(num), start.dtype), broadcast_shape(place, rank))
    first, last = tf.expand_dims(start, place), tf.expand_dims(stop, place)
    if steps > 0:
        values = first + counts * tf.expand_dims(step, place)
        if endpoint:
            values = tf.where(tf.equal(counts, float(steps)), last + tf.zeros_like(values), values)
    else:
        values = first + counts * tf.zeros_like(first)
    if "int" in str(result):
        values = tf.floor(values)
    values = tf.cast(values, result)
    return (values, step) if retstep else values


def logspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    base: float = 10,
    dtype: Any = None,
    axis: int = 0,
) -> tf.Tensor:
    """Creates powers of `base` with evenly spaced exponents from `start` to `stop`."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    powers = tf.pow(convert_to_tensor(base, exponents.dtype), exponents)
    return powers if dtype is None else tf.cast(powers, dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> tf.Tensor:
    """Creates numbers with a constant ratio from `start` to `stop`, which have the same sign."""
    start, stop = promote(start, stop, least=float)
    result = dtype or type_of(start)
    logs = linspace(tf.math.log(tf.abs(start)), tf.math.log(tf.abs(stop)), num, endpoint, axis=axis)
    sign = tf.expand_dims(tf.sign(start + tf.zeros_like(stop)), axis)
    return tf.cast(sign * tf.exp(logs), result)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> tf.Tensor:
    """Creates a Vandermonde matrix, with the highest power first unless `increasing`."""
    x = convert_to_tensor(x)
    dtype = type_of(x)
    wide = "float64" if dtype in ("int64", "float64") else "float32"
    exponents = tf.range(x.shape[0] if N is None else N)
    exponents = exponents if increasing else tf.reverse(exponents, [0])
    return tf.cast(tf.pow(tf.cast(x, wide)[:, None], tf.cast(exponents, wide)[None, :]), dtype)


# Windows.


def window(x: Any, values) -> tf.Tensor:
    """A window of `int(x)` elements; the length must be known."""
    return convert_to_tensor(values(int(x)), floatx())


def bartlett(x: Any) -> tf.Tensor:
    """Creates a Bartlett (triangular) window of length `x`."""
    return window(x, np.bartlett)


def blackman(x: Any) -> tf.Tensor:
    """Creates a Blackman window of length `x`."""
    return window(x, np.blackman)


def hamming(x: Any) -> tf.Tensor:
    """Creates a Hamming window of length `x`."""
    return window(x, np.hamming)


def hanning(x: Any) -> tf.Tensor:
    """Creates a Hann window of length `x`."""
    return window(x, np.hanning)


def kaiser(x: Any, beta: float) -> tf.Tensor:
    """Creates a Kaiser window of length `x` and shape `beta`."""
    return window(x, lambda count: np.kaiser(count, float(beta)))
