"""`keras.ops`: linear algebra. Leading axes are batch axes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from keras.src import tree

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, floating, promote, shape_of, slice_axis, type_of
from taut.keras.backend.ops.numpy.shapes import moveaxis


def cholesky(a: Any, upper: bool = False) -> tf.Tensor:
    """Computes the Cholesky factor of positive definite matrices."""
    factor = tf.linalg.cholesky(floating(a))
    if tf.executing_eagerly() and not bool(tf.reduce_all(tf.math.is_finite(factor))):
        raise ValueError("The matrix is not positive definite.")
    return tf.linalg.matrix_transpose(factor) if upper else factor


def cholesky_inverse(a: Any, upper: bool = False) -> tf.Tensor:
    """Computes the inverse of a matrix from its Cholesky factor `a`."""
    a = floating(a)
    size = shape_of(a)[-1]
    inverse = tf.linalg.triangular_solve(
        a, tf.eye(size, batch_shape=list(shape_of(a)[:-2]), dtype=a.dtype), lower=not upper
    )
    return tf.matmul(inverse, inverse, transpose_a=not upper, transpose_b=upper)


def det(a: Any) -> tf.Tensor:
    """Computes determinants."""
    return tf.linalg.det(floating(a))


def slogdet(x: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the sign and the logarithm of the absolute value of determinants."""
    sign, logarithm = tf.linalg.slogdet(floating(x))
    return sign, logarithm


def inv(a: Any) -> tf.Tensor:
    """Computes inverses."""
    return tf.linalg.inv(floating(a))


def eig(x: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes eigenvalues and eigenvectors of general matrices, which are complex."""
    return tf.linalg.eig(floating(x))


def eigh(x: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes eigenvalues, in ascending order, and eigenvectors (columns) of symmetric matrices."""
    return tf.linalg.eigh(floating(x))


def lu_factor(a: Any) -> tuple[tf.Tensor, tf.Tensor]:
    """Computes LU decompositions: both factors in one matrix, and for each row the one it was exchanged with, in order."""
    a = floating(a)
    *batch, rows, columns = shape_of(a)
    # The exchanges are those of the first columns; what is beyond them is zeros, or follows from the factors.
    square = slice_axis(a, -1, 0, min(rows, columns))
    if rows > columns:
        square = tf.concat([a, tf.zeros([*batch, rows, rows - columns], a.dtype)], axis=-1)
    found = tf.linalg.lu(square)
    factors = slice_axis(found.lu, -1, 0, min(rows, columns))
    if columns > rows:
        others = tf.gather(slice_axis(a, -1, rows, columns), found.p, axis=-2, batch_dims=len(batch))
        lower = tf.linalg.set_diag(tf.linalg.band_part(factors, -1, 0), tf.ones([*batch, rows], a.dtype))
        factors = tf.concat([factors, tf.linalg.triangular_solve(lower, others)], axis=-1)
    order = tf.cast(found.p, "int32")
    size = shape_of(order)[-1]
    # The exchanges that lead from the rows in their order to the permutation.
    places, current = tf.range(size), tf.broadcast_to(tf.range(size), shape_of(order))
    pivots = []
    for i in range(min(rows, columns)):
        at = tf.cast(tf.argmax(tf.cast(tf.equal(current, order[..., i : i + 1]), "int32"), axis=-1), "int32")[..., None]
        pivots.append(at)
        swapped = tf.where(tf.equal(places, i), at, tf.where(tf.equal(places, at), i, places + tf.zeros_like(at)))
        current = tf.take_along_axis(current, tf.cast(swapped, "int64"), -1)
    return factors, tf.concat(pivots, axis=-1) if pivots else order


def qr(x: Any, mode: str = "reduced") -> tuple[tf.Tensor, tf.Tensor]:
    """Computes the QR decomposition."""
    if mode not in ("reduced", "complete"):
        raise ValueError(f"`mode` must be 'reduced' or 'complete'. Received: mode={mode}")
    q, r = tf.linalg.qr(floating(x), full_matrices=mode == "complete")
    return q, r


def svd(x: Any, full_matrices: bool = True, compute_uv: bool = True) -> Any:
    """Computes the singular value decomposition; singular values in descending order."""
    x = floating(x)
    if not compute_uv:
        return tf.linalg.svd(x, compute_uv=False)
    values, left, right = tf.linalg.svd(x, full_matrices=full_matrices)
    return left, values, tf.linalg.matrix_transpose(right)


def solve(a: Any, b: Any) -> tf.Tensor:
    """Solves `a @ x = b`; `b` is a vector or a matrix."""
    return with_columns(tf.linalg.solve, a, b)


def solve_triangular(a: Any, b: Any, lower: bool = False) -> tf.Tensor:
    """Solves `a @ x = b` for an upper (or lower) triangular `a`."""
    return with_columns(lambda a, b: tf.linalg.triangular_solve(a, b, lower=lower), a, b)


def with_columns(solve: Callable, a: Any, b: Any) -> tf.Tensor:
    """`solve` for a right-hand side that may be a vector."""
    a, b = promote(a, b, least=float)
    if len(b.shape) == len(a.shape) - 1:
        return solve(a, b[..., None])[..., 0]
    return solve(a, b)


def lstsq(a: Any, b: Any, rcond: float | None = None) -> tf.Tensor:
    """Computes the least-squares solution of minimal norm; small singular values are taken as zero."""
    a, b = promote(a, b, least=float)
    if len(a.shape) != 2 or len(b.shape) not in (1, 2):
        raise ValueError(
            f"`lstsq` needs a of rank 2 and b of rank 1 or 2. Received shapes: {shape_of(a)}, {shape_of(b)}"
        )
    if shape_of(a)[0] != shape_of(b)[0]:
        raise ValueError("Leading dimensions of input arrays must match")
    columns = b[:, None] if len(b.shape) == 1 else b
    x = tf.matmul(pinv(a, rcond), columns)
    return x[:, 0] if len(b.shape) == 1 else x


def pinv(x: Any, rcond: float | None = None) -> tf.Tensor:
    """Computes the pseudo-inverse; singular values below `rcond` times the largest are taken as zero."""
    x = floating(x)
    if rcond is None or rcond < 0:
        rcond = float(np.finfo(type_of(x)).eps) * max(shape_of(x)[-2:])
    return tf.linalg.pinv(x, rcond)


def matrix_rank(x: Any, tol: float | None = None) -> tf.Tensor:
    """Computes the rank: the number of singular values above `tol`."""
    x = floating(x)
    return tf.linalg.matrix_rank(x, None if tol is None else convert_to_tensor(tol, x.dtype))


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> tf.Tensor:
    """Computes vector norms (one axis) or matrix norms (two axes), with NumPy's names; of all elements without an axis."""
    x = floating(x)
    rank = len(x.shape)
    if axis is None and (ord is None or (ord == 2 and rank == 1)):
        return tf.reshape(tf.sqrt(tf.reduce_sum(tf.square(magnitudes(x)))), [1] * rank if keepdims else [])
    axes = tuple(range(rank)) if axis is None else (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -rank <= one < rank for one in axes):
        raise ValueError(f"All `axis` values must be in the range [-{rank}, {rank}). Received: axis={axis}")
    axes = tuple(one % rank for one in axes)
    if len(axes) == 1:
        return vector_norm(x, ord, axes[0], keepdims)
    if len(axes) == 2:
        return matrix_norm(x, ord, axes, keepdims)
    raise ValueError(f"`axis` must have one or two elements. Received: axis={axis}")


def magnitudes(x: tf.Tensor) -> tf.Tensor:
    """The absolute values of complex numbers; real numbers as they are."""
    return tf.abs(x) if x.dtype.is_complex else x


def vector_norm(x: tf.Tensor, ord: Any, axis: int, keepdims: bool) -> tf.Tensor:
    """The norm along one axis."""
    if isinstance(ord, str):
        raise ValueError(f"Invalid `ord` argument for vector norm. Received: ord={ord}")
    x = magnitudes(x)
    if ord is None or ord == 2:
        return tf.sqrt(tf.reduce_sum(tf.square(x), axis=axis, keepdims=keepdims))
    if ord == math.inf:
        return tf.reduce_max(tf.abs(x), axis=axis, keepdims=keepdims)
    if ord == -math.inf:
        return tf.reduce_min(tf.abs(x), axis=axis, keepdims=keepdims)
    if ord == 0:
        return tf.reduce_sum(tf.cast(tf.not_equal(x, 0), x.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return tf.reduce_sum(tf.abs(x), axis=axis, keepdims=keepdims)
    total = tf.reduce_sum(tf.pow(tf.abs(x), float(ord)), axis=axis, keepdims=keepdims)
    return tf.pow(total, 1.0 / float(ord))


def matrix_norm(x: tf.Tensor, ord: Any, axes: tuple[int, int], keepdims: bool) -> tf.Tensor:
    """The norm of the matrices in two axes."""
    rows, columns = axes
    if ord is None or ord == "fro":
        return tf.sqrt(tf.reduce_sum(tf.square(magnitudes(x)), axis=list(axes), keepdims=keepdims))
    sums = {1: (rows, columns), -1: (rows, columns), math.inf: (columns, rows), -math.inf: (columns, rows)}
    if ord in sums:
        summed, compared = sums[ord]
        extreme = tf.reduce_max if ord > 0 else tf.reduce_min
        found = extreme(tf.reduce_sum(tf.abs(x), axis=summed, keepdims=True), axis=compared, keepdims=True)
    elif ord in ("nuc", 2, -2):
        reduce = {"nuc": tf.reduce_sum, 2: tf.reduce_max, -2: tf.reduce_min}[ord]
        found = reduce(tf.linalg.svd(moveaxis(x, axes, (-2, -1)), compute_uv=False), axis=-1)
        found = tf.reshape(found, [1 if i in axes else dim for i, dim in enumerate(shape_of(x))])
    else:
        raise ValueError(f"Invalid `ord` argument for matrix norm. Received: ord={ord}")
    return found if keepdims else tf.squeeze(found, axis=list(axes))


def jvp(fun: Callable, primals: Any, tangents: Any, has_aux: bool = False) -> tuple:
    """Computes the results of `fun` and their directional derivatives along `tangents`."""
    inputs = [convert_to_tensor(x) for x in tree.flatten(primals)]
    directions = [convert_to_tensor(t, x.dtype) for t, x in zip(tree.flatten(tangents), inputs)]
    with tf.autodiff.ForwardAccumulator(inputs, directions) as accumulator:
        results = fun(*tree.pack_sequence_as(primals, inputs))
        results, aux = results if has_aux else (results, None)
        moved = tree.map_structure(accumulator.jvp, results)
    return (results, moved, aux) if has_aux else (results, moved)
