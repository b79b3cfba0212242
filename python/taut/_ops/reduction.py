"""Reductions and scans along axes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from .elementwise import truncatediv

if TYPE_CHECKING:
    from .._typing import AxisLike, DTypeLike, TensorLike


def _in_input_dtype(name: str, made: Tensor, x: Tensor) -> Tensor:
    """Casts a reduction's result back to the input's type; refuses booleans, whose sum is a count."""
    if made.dtype == x.dtype:
        return made
    if x.dtype == dtypes.bool:
        refuse(name, "expected a numeric type, got bool\n  help: convert it with tf.cast", TypeError)
    return raw.cast(made, x.dtype)


def reduce_sum(
    input_tensor: TensorLike, axis: AxisLike = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the sum over axes, in the input's element type."""
    x = as_tensor(input_tensor)
    made = raw.sum(x, axis, keepdims)
    return made if made.dtype == x.dtype else _in_input_dtype("reduce_sum", made, x)


def reduce_prod(
    input_tensor: TensorLike, axis: AxisLike = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the product over axes, in the input's element type."""
    x = as_tensor(input_tensor)
    return _in_input_dtype("reduce_prod", raw.prod(x, axis, keepdims), x)


def reduce_mean(
    input_tensor: TensorLike, axis: AxisLike = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the mean over axes, in the input's element type (integers are truncated)."""
    x = as_tensor(input_tensor)
    if x.dtype.is_floating or x.dtype.is_complex:
        return raw.mean(x, axis, keepdims)
    # Integers are summed as such: float32 would round them.
    total = raw.sum(x, axis, keepdims)
    count = max(x.size // max(total.size, 1), 1)
    return _in_input_dtype("reduce_mean", truncatediv(total, count), x)


def _reduce_extreme(which: Any, x: Tensor, axis: AxisLike, keepdims: bool, neutral: str) -> Tensor:
    if x.size:
        return which(x, axis, keepdims)
    # The reduction of no elements is the operation's identity.
    total = raw.sum(x, axis, keepdims)
    if x.dtype.is_floating:
        # Zeros plus an infinity, so that the gradient is that of `x`.
        return total + (-np.inf if neutral == "min" else np.inf)
    return raw.full(total.shape, int(getattr(x.dtype, neutral)), x.dtype)


def reduce_max(
    input_tensor: TensorLike, axis: AxisLike = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the maximum over axes; the type's lowest value if the reduced axes are empty."""
    return _reduce_extreme(raw.max, as_tensor(input_tensor), axis, keepdims, "min")


def reduce_min(
    input_tensor: TensorLike, axis: AxisLike = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the minimum over axes; the type's highest value if the reduced axes are empty."""
    return _reduce_extreme(raw.min, as_tensor(input_tensor), axis, keepdims, "max")


def _inexact(function: str, x: TensorLike) -> Tensor:
    x = as_tensor(x)
    if not (x.dtype.is_floating or x.dtype.is_complex):
        message = f"expected a float or complex tensor, got {x.dtype.name}\n  help: use tf.cast"
        refuse(function, message, TypeError)
    return x


def reduce_variance(
    input_tensor: TensorLike, axis: AxisLike = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the population variance over axes."""
    return raw.var(_inexact("reduce_variance", input_tensor), axis, 0.0, keepdims)


def reduce_std(
    input_tensor: TensorLike, axis: AxisLike = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the population standard deviation over axes."""
    return raw.std(_inexact("reduce_std", input_tensor), axis, 0.0, keepdims)


def reduce_euclidean_norm(
    input_tensor: TensorLike, axis: AxisLike = None, keepdims: bool = False, name: str | None = None
) -> Tensor:
    """Computes the L2 norm over axes, in the input's element type."""
    x = as_tensor(input_tensor)
    return _in_input_dtype("reduce_euclidean_norm", raw.norm(x, 2.0, axis, keepdims), x)


def count_nonzero(
    input: TensorLike,
    axis: AxisLike = None,
    keepdims: bool | None = None,
    dtype: DTypeLike = dtypes.int64,
    name: str | None = None,
) -> Tensor:
    """Counts the nonzero elements over axes; of strings, those that are not empty."""
    values = as_tensor(input)
    if values.dtype == dtypes.string:
        values = raw.not_equal(values, "")
    return cast_to(raw.count_nonzero(values, axis, bool(keepdims)), dtypes.as_dtype(dtype))


def zero_fraction(value: TensorLike, name: str | None = None) -> Tensor:
    """Computes the fraction of elements that are zero, as float32."""
    value = as_tensor(value)
    zeros = raw.cast(value.size - raw.count_nonzero(value), dtypes.float32)
    return zeros / float(value.size) if value.size else raw.full([], np.nan, dtypes.float32)


def argmax(input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """Returns the index of the maximum along an axis (default: the first), the lowest index on ties."""
    return cast_to(raw.argmax(input, 0 if axis is None else axis), dtypes.as_dtype(output_type))


def argmin(input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None) -> Tensor:
    """Returns the index of the minimum along an axis (default: the first), the lowest index on ties."""
    return cast_to(raw.argmin(input, 0 if axis is None else axis), dtypes.as_dtype(output_type))


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Computes the cumulative sum along an axis, in the input's element type."""
    x = as_tensor(x)
    return _in_input_dtype("cumsum", raw.cumsum(x, axis, exclusive, reverse), x)


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None) -> Tensor:
    """Computes the cumulative product along an axis, in the input's element type."""
    x = as_tensor(x)
    return _in_input_dtype("cumprod", raw.cumprod(x, axis, exclusive, reverse), x)


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> Tensor:
    """Computes the cumulative log(sum(exp(x))) along an axis. An exclusive scan starts with minus infinity."""
    x = as_tensor(x)
    axis = int(axis)
    if not exclusive or not x.size:
        return raw.cumulative_logsumexp(x, axis, reverse)
    if not -x.ndim <= axis < x.ndim:
        refuse("cumulative_logsumexp", f"axis must be in [{-x.ndim}, {x.ndim}), got {axis}")
    whole = [slice(None)] * x.ndim
    whole[axis] = slice(1, None) if reverse else slice(None, -1)
    rest = raw.cumulative_logsumexp(x[tuple(whole)], axis, reverse)
    shape = list(x.shape)
    shape[axis] = 1
    nothing = raw.full(shape, -np.inf, x.dtype)
    return raw.concat([rest, nothing] if reverse else [nothing, rest], axis)


def l2_normalize(
    x: TensorLike, axis: AxisLike = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> Tensor:
    """Divides a tensor by its L2 norm along axes."""
    return raw.l2_normalize(x, dim if axis is None else axis, epsilon)


def log_softmax(logits: Any, axis: Any = None, name: str | None = None) -> Tensor:
    """Computes the logarithm of the softmax along an axis (default: the last)."""
    return raw.log_softmax(logits, -1 if axis is None else axis)


class TopKV2(NamedTuple):
    """The largest elements along the last axis, and their indices."""

    values: Tensor
    indices: Tensor


def top_k(
    input: TensorLike,
    k: Any = 1,
    sorted: bool = True,
    index_type: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> TopKV2:
    """Returns the `k` largest elements along the last axis and their indices."""
    values, indices = raw.top_k(input, k, sorted)
    return TopKV2(values, cast_to(indices, dtypes.as_dtype(index_type)))


def lbeta(x: TensorLike, name: str | None = None) -> Tensor:
    """Computes the logarithm of the absolute beta function of the elements along the last axis."""
    x = as_tensor(x)
    if not x.ndim:
        refuse("lbeta", "expected rank >= 1, got a scalar")
    if not x.shape[-1]:
        return raw.full(x.shape[:-1], -np.inf, x.dtype)
    return raw.sum(raw.lgamma(x), -1) - raw.lgamma(raw.sum(x, -1))


def is_non_decreasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether the elements, in row-major order, are non-decreasing."""
    flat = raw.reshape(x, [-1])
    return raw.all(flat[1:] >= flat[:-1])


def is_strictly_increasing(x: TensorLike, name: str | None = None) -> Tensor:
    """Whether the elements, in row-major order, are strictly increasing."""
    flat = raw.reshape(x, [-1])
    return raw.all(flat[1:] > flat[:-1])
