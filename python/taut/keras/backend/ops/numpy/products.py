"""Products of vectors, matrices and tensors."""

from __future__ import annotations

from typing import Any

from keras.src.backend.config import floatx

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, promote, promoted_type, shape_of, type_of


def factors(*xs: Any, of_int8: str = "int8") -> tuple[list[tf.Tensor], str]:
    """Operands in the type of the computation, and the type of the result.

    Booleans and small integers are computed as int32 and returned as what they are; `of_int8` is the type for int8 alone.
    """
    operands = [convert_to_tensor(x) for x in xs]
    kinds = {type_of(x) for x in operands}
    result = of_int8 if kinds == {"int8"} else promoted_type(*kinds)
    working = "int32" if result in ("bool", "int8", "uint8", "int16", "uint16") else result
    return [convert_to_tensor(x, working) for x in operands], result


def matmul(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the matrix product, with NumPy's rules for vectors and batch axes. That of int8 is int32."""
    (x1, x2), result = factors(x1, x2, of_int8="int32")
    left, right = len(x1.shape), len(x2.shape)
    if left == 0 or right == 0:
        raise ValueError("`matmul` needs operands of rank >= 1.")
    if left == 1 and right == 1:
        return tf.cast(tf.reduce_sum(x1 * x2), result)
    x1 = x1[None, :] if left == 1 else x1
    x2 = x2[:, None] if right == 1 else x2
    if left > 2 and right <= 2:
        # One matrix for the whole batch: one large product instead of many small ones.
        front, inner = shape_of(x1)[:-1], shape_of(x1)[-1]
        product = tf.reshape(tf.matmul(tf.reshape(x1, [-1, inner]), x2), [*front, shape_of(x2)[-1]])
    else:
        product = tf.matmul(x1, x2)
    if left == 1:
        product = tf.squeeze(product, axis=-2)
    if right == 1:
        product = tf.squeeze(product, axis=-1)
    return tf.cast(product, result)


def dot(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the dot product over the last axis of `x1` and the last but one of `x2`; scalars are multiplied."""
    (x1, x2), result = factors(x1, x2)
    if len(x1.shape) == 0 or len(x2.shape) == 0:
        return tf.cast(x1 * x2, result)
    return tf.cast(tf.tensordot(x1, x2, axes=[[-1 % len(x1.shape)], [max(len(x2.shape) - 2, 0)]]), result)


def inner(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the inner product over the last axes."""
    (x1, x2), result = factors(x1, x2)
    if len(x1.shape) == 0 or len(x2.shape) == 0:
        return tf.cast(x1 * x2, result)
    return tf.cast(tf.tensordot(x1, x2, axes=[[len(x1.shape) - 1], [len(x2.shape) - 1]]), result)


def vdot(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the dot product of the flattened operands; the first one is conjugated if it is complex."""
    (x1, x2), result = factors(x1, x2)
    x1 = tf.math.conj(x1) if x1.dtype.is_complex else x1
    return tf.cast(tf.reduce_sum(tf.reshape(x1, [-1]) * tf.reshape(x2, [-1])), result)


def outer(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the outer product of the flattened operands."""
    (x1, x2), result = factors(x1, x2)
    return tf.cast(tf.reshape(x1, [-1, 1]) * tf.reshape(x2, [1, -1]), result)


def tensordot(x1: Any, x2: Any, axes: Any = 2) -> tf.Tensor:
    """Contracts tensors over the given axes, or over the last and first `axes` axes."""
    (x1, x2), result = factors(x1, x2)
    if not isinstance(axes, int):
        first, second = ([a] if isinstance(a, int) else list(a) for a in axes)
        axes = [[a % len(x1.shape) for a in first], [a % len(x2.shape) for a in second]]
    elif axes == 0:
        shape = [*shape_of(x1), *[1] * len(x2.shape)]
        return tf.cast(tf.reshape(x1, shape) * x2, result)
    return tf.cast(tf.tensordot(x1, x2, axes=axes), result)


def einsum(subscripts: str, *operands: Any, **kwargs: Any) -> tf.Tensor:
    """Contracts tensors by an index equation. The result of int8 is int32."""
    kwargs.pop("optimize", None)
    if kwargs:
        raise TypeError(f"`einsum` got unexpected arguments: {sorted(kwargs)}")
    tensors, result = factors(*operands, of_int8="int32")
    return tf.cast(tf.einsum(subscripts.replace(" ", ""), *tensors), result)


def kron(x1: Any, x2: Any) -> tf.Tensor:
    """Computes the Kronecker product."""
    (x1, x2), result = factors(x1, x2)
    rank = max(len(x1.shape), len(x2.shape))
    first, second = ([1] * (rank - len(x.shape)) + list(shape_of(x)) for x in (x1, x2))
    left = tf.reshape(x1, [size for dim in first for size in (dim, 1)])
    right = tf.reshape(x2, [size for dim in second for size in (1, dim)])
    return tf.cast(tf.reshape(left * right, [a * b for a, b in zip(first, second)]), result)


def cross(x1: Any, x2: Any, axisa: int = -1, axisb: int = -1, axisc: int = -1, axis: int | None = None) -> tf.Tensor:
    """Computes the cross product of vectors with two or three components."""
    from taut.keras.backend.ops.numpy.shapes import moveaxis

    if axis is not None:
        axisa = axisb = axisc = axis
    x1, x2 = promote(x1, x2)
    parts = []
    for x, along in ((x1, axisa), (x2, axisb)):
        x = moveaxis(x, along, -1)
        if shape_of(x)[-1] not in (2, 3):
            raise ValueError(f"`cross` needs vectors with 2 or 3 components. Received: {shape_of(x)[-1]}")
        parts.append([x[..., i] for i in range(shape_of(x)[-1])])
    flat = len(parts[0]) == len(parts[1]) == 2
    (a0, a1, *a), (b0, b1, *b) = parts
    third = a0 * b1 - a1 * b0
    if flat:
        return third
    a2 = a[0] if a else tf.zeros_like(a0)
    b2 = b[0] if b else tf.zeros_like(b0)
    return moveaxis(tf.stack([a1 * b2 - a2 * b1, a2 * b0 - a0 * b2, third], axis=-1), -1, axisc)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> tf.Tensor:
    """Computes the sum along a diagonal of two axes."""
    from taut.keras.backend.ops.numpy.reduce import summable
    from taut.keras.backend.ops.numpy.shapes import diagonal

    x = convert_to_tensor(x)
    result = "int32" if type_of(x) == "bool" else summable(x).dtype
    return tf.cast(tf.reduce_sum(summable(diagonal(x, offset, axis1, axis2)), axis=-1), result)


def correlate(x1: Any, x2: Any, mode: str = "valid") -> tf.Tensor:
    """Computes the cross-correlation of two vectors; the second one is conjugated if it is complex."""
    if mode not in ("valid", "same", "full"):
        raise ValueError(f"`mode` must be 'valid', 'same' or 'full'. Received: mode={mode}")
    x1, x2 = promote(x1, x2)
    kind = type_of(x1)
    if x2.dtype.is_complex:
        x2 = tf.math.conj(x2)
    else:
        kind = kind if "float" in kind else "float64" if kind == "int64" else floatx()
        x1, x2 = tf.cast(x1, kind), tf.cast(x2, kind)
    swapped = shape_of(x1)[0] < shape_of(x2)[0]
    long, short = (x2, x1) if swapped else (x1, x2)
    n, m = shape_of(long)[0], shape_of(short)[0]
    before = {"valid": 0, "same": m // 2 if not swapped else (m - 1) // 2, "full": m - 1}[mode]
    after = {"valid": 0, "same": m - 1 - before, "full": m - 1}[mode]
    long = tf.pad(long, [[before, after]])
    count = n + before + after - m + 1
    windows = tf.stack([long[i : i + count] for i in range(m)], axis=0)
    sums = tf.reduce_sum(windows * short[:, None], axis=0)
    return tf.reverse(sums, [0]) if swapped else sums
