"""Moments and normalization."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _native, _raw_ops as raw, dtypes
from .._common import as_ints, refuse
from .._native import Tensor, as_tensor
from .reduction import reduce_mean, reduce_sum

if TYPE_CHECKING:
    from .._typing import AxisLike, TensorLike


def moments(
    x: TensorLike, axes: AxisLike, shift: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Computes mean and variance over axes by a two-pass algorithm; of integers, rounded toward zero at each step."""
    x = as_tensor(x)
    if x.dtype in (dtypes.int32, dtypes.int64):
        squares = raw.squared_difference(x, reduce_mean(x, axes, True))
        return reduce_mean(x, axes, keepdims), reduce_mean(squares, axes, keepdims)
    mean, variance = raw.moments(x, axes, keepdims)
    return mean, variance


def sufficient_statistics(
    x: TensorLike, axes: AxisLike, shift: TensorLike | None = None, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """Computes count, sum and sum of squares over axes, of the elements minus `shift`; returns them and the shift."""
    x = as_tensor(x)
    axes = as_ints(axes)
    count = 1.0
    for axis in axes:
        if not -x.ndim <= axis < x.ndim:
            refuse("sufficient_statistics", f"axes must be in [{-x.ndim}, {x.ndim}), got {axis}")
        count *= x.shape[axis]
    shift = None if shift is None else as_tensor(shift)
    moved = x if shift is None else x - shift
    total, squares = reduce_sum(moved, axes, keepdims), reduce_sum(raw.square(moved), axes, keepdims)
    return as_tensor(count, x.dtype), total, squares, shift


def normalize_moments(
    counts: TensorLike, mean_ss: TensorLike, variance_ss: TensorLike, shift: TensorLike, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Computes mean and variance from the results of `sufficient_statistics`."""
    counts = as_tensor(counts)
    moved = as_tensor(mean_ss) / counts
    mean = moved if shift is None else moved + shift
    return mean, as_tensor(variance_ss) / counts - raw.square(moved)


def weighted_moments(
    x: TensorLike, axes: AxisLike, frequency_weights: TensorLike, keepdims: bool = False, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """Computes weighted mean and variance over axes."""
    x = as_tensor(x)
    weights = as_tensor(frequency_weights, x.dtype) + 0.0 * x
    total = reduce_sum(weights, axes, True)
    # Without any weight, both are 0.
    mean = raw.div_no_nan(reduce_sum(weights * x, axes, True), total)
    variance = raw.div_no_nan(reduce_sum(weights * raw.square(x - mean), axes, True), total)
    if keepdims:
        return mean, variance
    shape = reduce_sum(x, axes).shape
    return raw.reshape(mean, shape), raw.reshape(variance, shape)


def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike,
    scale: TensorLike,
    variance_epsilon: float,
    name: str | None = None,
) -> Tensor:
    """Computes `(x - mean) / sqrt(variance + epsilon) * scale + offset` with given statistics."""
    x, mean, variance = as_tensor(x), as_tensor(mean), as_tensor(variance)
    given = [mean, variance, *(as_tensor(one) for one in (offset, scale) if one is not None)]
    simple = x.ndim >= 2 and all(one.shape == x.shape[-1:] and one.dtype == x.dtype for one in given)
    if simple and not isinstance(variance_epsilon, _native.Array):
        return raw.batch_norm(x, mean, variance, offset, scale, variance_epsilon, -1)
    inverse = raw.rsqrt(variance + variance_epsilon)
    inverse = inverse if scale is None else inverse * scale
    return x * inverse + ((0.0 if offset is None else offset) - mean * inverse)


def local_response_normalization(
    input: TensorLike,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Divides each element by `(bias + alpha * s) ** beta`, where `s` is the sum of squares over near channels."""
    x = as_tensor(input)
    if x.ndim != 4:
        refuse("local_response_normalization", f"expected rank 4, got shape {x.shape}")
    channels, radius = x.shape[-1], int(depth_radius)
    squares = raw.pad(raw.square(x), [[0, 0]] * 3 + [[radius, radius]])
    total = squares[..., :channels]
    for i in range(1, 2 * radius + 1):
        total = total + squares[..., i : i + channels]
    return x / raw.pow(bias + alpha * total, beta)


def batch_norm_with_global_normalization(
    input: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    beta: TensorLike,
    gamma: TensorLike,
    variance_epsilon: float,
    scale_after_normalization: bool,
    name: str | None = None,
) -> Tensor:
    """`batch_normalization` with an offset and, if `scale_after_normalization`, a scale."""
    scale: Any = gamma if scale_after_normalization else None
    return batch_normalization(input, mean, variance, beta, scale, variance_epsilon)
