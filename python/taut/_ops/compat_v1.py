"""Functions of `tf.compat.v1.nn` whose signature or meaning is not that of `tf.nn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _raw_ops as raw
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from . import losses, normalization

if TYPE_CHECKING:
    from .._typing import AxisLike, TensorLike

# TensorFlow raises smaller values to this one.
_SMALLEST_EPSILON = 1.001e-5
_RANKS = {"NHWC": 4, "NCHW": 4, "NDHWC": 5, "NCDHW": 5}


def fused_batch_norm(
    x: TensorLike,
    scale: TensorLike,
    offset: TensorLike,
    mean: TensorLike | None = None,
    variance: TensorLike | None = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
    exponential_avg_factor: float = 1.0,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalizes each channel of a batch; returns the result and the running mean and variance.

    While training, the batch is normalized with its own mean and variance. The variance that is returned is the unbiased
    one; with an `exponential_avg_factor` below 1, `mean` and `variance` are moved towards those of the batch by that
    fraction. Otherwise `mean` and `variance` are used and returned. Gradients pass through the normalized batch only.
    Statistics of half-precision batches are computed in float32. `epsilon` is at least 1.001e-5.
    """
    if (not is_training or exponential_avg_factor != 1.0) and (mean is None or variance is None):
        text = "mean and variance must be given unless is_training is True and exponential_avg_factor is 1"
        refuse("fused_batch_norm", text, ValueError)
    x, axis = as_tensor(x), _channel_axis(x, data_format)
    scale, offset = as_tensor(scale), as_tensor(offset)
    wide = cast_to(x, scale.dtype)
    epsilon = max(float(epsilon), _SMALLEST_EPSILON)
    old = [raw.stop_gradient(as_tensor(one)) for one in (mean, variance) if one is not None]
    if not is_training:
        made = raw.batch_norm(wide, old[0], old[1], offset, scale, epsilon, axis)
        return cast_to(made, x.dtype), old[0], old[1]
    batch_mean, batch_variance = raw.moments(wide, [k for k in range(wide.ndim) if k != axis], False)
    made = raw.batch_norm(wide, batch_mean, batch_variance, offset, scale, epsilon, axis)
    count = wide.size // max(wide.shape[axis], 1)
    new = [raw.stop_gradient(batch_mean), raw.stop_gradient(batch_variance) * (count / max(count - 1, 1))]
    if exponential_avg_factor != 1.0:
        factor = float(exponential_avg_factor)
        new = [before * (1.0 - factor) + after * factor for before, after in zip(old, new)]
    return cast_to(made, x.dtype), new[0], new[1]


def _channel_axis(x: Any, data_format: str) -> int:
    """The axis of the channels."""
    rank = _RANKS.get(data_format)
    if rank is None:
        refuse("fused_batch_norm", f"data_format must be one of {', '.join(_RANKS)}, got {data_format!r}", ValueError)
    if as_tensor(x).ndim != rank:
        refuse(
            "fused_batch_norm", f"expected rank {rank} for {data_format}, got shape {as_tensor(x).shape}", ValueError
        )
    return data_format.index("C")


def _keeps(function: str, keepdims: bool | None, keep_dims: bool | None) -> bool:
    """The value of `keepdims`, which has two names."""
    if keepdims is not None and keep_dims is not None:
        refuse(function, "keepdims and keep_dims are one option: give one of them", ValueError)
    return bool(keep_dims if keepdims is None else keepdims)


def moments(
    x: TensorLike,
    axes: AxisLike,
    shift: TensorLike | None = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Computes mean and variance over axes by a two-pass algorithm."""
    return normalization.moments(x, axes, shift, _keeps("moments", keepdims, keep_dims))


def weighted_moments(
    x: TensorLike,
    axes: AxisLike,
    frequency_weights: TensorLike,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """Computes weighted mean and variance over axes."""
    keeps = _keeps("weighted_moments", keepdims, keep_dims)
    return normalization.weighted_moments(x, axes, frequency_weights, keeps)


def sufficient_statistics(
    x: TensorLike,
    axes: AxisLike,
    shift: TensorLike | None = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """Computes count, sum and sum of squares over axes, of the elements minus `shift`; returns them and the shift."""
    return normalization.sufficient_statistics(x, axes, shift, _keeps("sufficient_statistics", keepdims, keep_dims))


def softmax_cross_entropy_with_logits_v2(
    labels: TensorLike, logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None
) -> Tensor:
    """Computes the cross-entropy of softmax probabilities along an axis, the last one unless given."""
    if axis is not None and dim is not None:
        refuse("softmax_cross_entropy_with_logits_v2", "axis and dim are one option: give one of them", ValueError)
    axis = dim if axis is None else axis
    return losses.softmax_cross_entropy_with_logits(labels, logits, -1 if axis is None else axis)
