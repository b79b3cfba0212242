"""Tensors from nothing: constants, ranges, windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from keras.src.backend.common import dtypes
from keras.src.backend.config import floatx

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, laid_along, own_tensor, shape_of, together, type_of

__all__ = [
    "arange",
    "array",
    "bartlett",
    "blackman",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "hamming",
    "hanning",
    "identity",
    "kaiser",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "tri",
    "vander",
    "view",
    "zeros",
    "zeros_like",
]


def array(x: Any, dtype: Any = None) -> tf.Tensor:
    """A tensor of `x`."""
    return own_tensor(x, dtype)


def copy(x: Any) -> tf.Tensor:
    """A tensor with the same elements."""
    return tf.identity(convert_to_tensor(x))


def view(x: Any, dtype: Any = None) -> tf.Tensor:
    """The bytes of `x`, read as another type; the last axis grows or shrinks with the width of elements."""
    x = convert_to_tensor(x)
    if dtype is None:
        return x
    old, new = np.dtype(type_of(x)).itemsize, np.dtype(dtype).itemsize
    if old != new and (len(x.shape) == 0 or x.shape[-1] * old % new):
        raise ValueError(f"The last axis of a tensor of shape {shape_of(x)} does not divide into {dtype}.")
    if old < new:
        *front, last = x.shape
        x = tf.reshape(x, [*front, last * old // new, new // old])
    y = tf.bitcast(x, dtype)
    if old > new:
        y = tf.reshape(y, [*x.shape[:-1], -1])
    return y


def sizes(shape: int | Sequence[int]) -> list[int]:
    """A shape as a list; a number is the size of the only axis."""
    return [int(shape)] if isinstance(shape, (int, np.integer)) else [int(dim) for dim in shape]


def zeros(shape: int | Sequence[int], dtype: Any = None) -> tf.Tensor:
    """Zeros."""
    return tf.zeros(sizes(shape), dtype or floatx())


def ones(shape: int | Sequence[int], dtype: Any = None) -> tf.Tensor:
    """Ones."""
    return tf.ones(sizes(shape), dtype or floatx())


def empty(shape: int | Sequence[int], dtype: Any = None) -> tf.Tensor:
    """A tensor whose elements do not matter: zeros."""
    return tf.zeros(sizes(shape), dtype or floatx())


def full(shape: int | Sequence[int], fill_value: Any, dtype: Any = None) -> tf.Tensor:
    """A tensor that holds one value everywhere, or a smaller one, broadcast."""
    return tf.broadcast_to(convert_to_tensor(fill_value, dtype or floatx()), sizes(shape))


def zeros_like(x: Any, dtype: Any = None) -> tf.Tensor:
    """Zeros, of the shape of `x`."""
    x = convert_to_tensor(x)
    return tf.zeros(x.shape, dtype or x.dtype)


def ones_like(x: Any, dtype: Any = None) -> tf.Tensor:
    """Ones, of the shape of `x`."""
    x = convert_to_tensor(x)
    return tf.ones(x.shape, dtype or x.dtype)


def empty_like(x: Any, dtype: Any = None) -> tf.Tensor:
    """A tensor of the shape of `x` whose elements do not matter: zeros."""
    return zeros_like(x, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None) -> tf.Tensor:
    """One value everywhere, in the shape of `x`."""
    x = convert_to_tensor(x)
    return full(x.shape, fill_value, dtype or x.dtype)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> tf.Tensor:
    """Ones on the `k`-th diagonal of a matrix, zeros elsewhere."""
    columns = N if M is None else M
    on_diagonal = tf.equal(tf.range(N)[:, None] + int(k), tf.range(columns)[None, :])
    return tf.cast(on_diagonal, dtype or floatx())


def identity(n: int, dtype: Any = None) -> tf.Tensor:
    """Ones on the diagonal of a square matrix, zeros elsewhere."""
    return eye(n, dtype=dtype)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = None) -> tf.Tensor:
    """Ones on and below the `k`-th diagonal of a matrix, zeros above."""
    columns = N if M is None else M
    below = tf.greater_equal(tf.range(N)[:, None] + int(k), tf.range(columns)[None, :])
    return tf.cast(below, dtype or floatx())


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> tf.Tensor:
    """Numbers from `start` (or 0) up to, but without, `stop`, in steps of `step`."""
    given = [x for x in (start, stop, step) if x is not None]
    if dtype is None:
        dtype = dtypes.result_type(*[getattr(x, "dtype", type(x)) for x in given])
    if stop is None:
        start, stop = 0, start
    step = 1 if step is None else step
    if all(isinstance(x, (int, float, np.number)) for x in (start, stop, step)):
        return convert_to_tensor(np.arange(start, stop, step), dtype)
    # Taut's ranges are of types that have exact steps; the others are made of these.
    exact = (
        dtype
        if dtype in ("int32", "int64", "float32", "float64")
        else "int32"
        if "int" in dtype
        else "float32"
    )
    parts = [convert_to_tensor(x, exact) for x in (start, stop, step)]
    return tf.cast(tf.range(*parts), dtype)


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """`num` numbers at equal distances from `start` to `stop`, along a new axis; with `retstep`, the distance
    too."""
    num = int(num)
    if num < 0:
        raise ValueError(f"`num` must not be negative. Received: num={num}")
    start, stop = together(start, stop, least=float)
    result = dtype or type_of(start)
    start, stop = start + tf.zeros_like(stop), stop + tf.zeros_like(start)
    rank = len(start.shape) + 1
    steps = num - 1 if endpoint else num
    step = (stop - start) / steps if steps > 0 else stop * math.nan
    place = axis % rank
    counts = tf.reshape(tf.cast(tf.range(num), start.dtype), laid_along(place, rank))
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
    """Powers of `base` whose exponents are at equal distances from `start` to `stop`."""
    exponents = linspace(start, stop, num, endpoint, axis=axis)
    powers = tf.pow(convert_to_tensor(base, exponents.dtype), exponents)
    return powers if dtype is None else tf.cast(powers, dtype)


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> tf.Tensor:
    """Numbers at equal ratios from `start` to `stop`, which have the same sign."""
    start, stop = together(start, stop, least=float)
    result = dtype or type_of(start)
    logs = linspace(tf.math.log(tf.abs(start)), tf.math.log(tf.abs(stop)), num, endpoint, axis=axis)
    sign = tf.expand_dims(tf.sign(start + tf.zeros_like(stop)), axis)
    return tf.cast(sign * tf.exp(logs), result)


def vander(x: Any, N: int | None = None, increasing: bool = False) -> tf.Tensor:
    """A matrix whose columns are powers of `x`, the highest first unless `increasing`."""
    x = convert_to_tensor(x)
    dtype = type_of(x)
    wide = "float64" if dtype in ("int64", "float64") else "float32"
    exponents = tf.range(x.shape[0] if N is None else N)
    exponents = exponents if increasing else tf.reverse(exponents, [0])
    return tf.cast(tf.pow(tf.cast(x, wide)[:, None], tf.cast(exponents, wide)[None, :]), dtype)


# Windows.


def window(x: Any, values) -> tf.Tensor:
    """The window `values(n)` of `n` elements. Its length is a shape, so it has to be known."""
    return convert_to_tensor(values(int(x)), floatx())


def bartlett(x: Any) -> tf.Tensor:
    """The triangular window of length `x`, which is zero at its ends."""
    return window(x, np.bartlett)


def blackman(x: Any) -> tf.Tensor:
    """The Blackman window of length `x`."""
    return window(x, np.blackman)


def hamming(x: Any) -> tf.Tensor:
    """The Hamming window of length `x`."""
    return window(x, np.hamming)


def hanning(x: Any) -> tf.Tensor:
    """The Hann window of length `x`."""
    return window(x, np.hanning)


def kaiser(x: Any, beta: float) -> tf.Tensor:
    """The Kaiser window of length `x` and shape `beta`."""
    return window(x, lambda count: np.kaiser(count, float(beta)))
