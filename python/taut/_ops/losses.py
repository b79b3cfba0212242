"""Loss functions."""

from __future__ import annotations

import math as _numbers
from typing import TYPE_CHECKING, Any

from .. import _raw_ops as raw
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from .reduction import reduce_sum
from .shaping import broadcast_static_shape

if TYPE_CHECKING:
    from .._typing import TensorLike


def l2_loss(t: TensorLike, name: str | None = None) -> Tensor:
    """Computes half the sum of squares."""
    t = as_tensor(t)
    if t.dtype.is_complex:
        refuse("l2_loss", f"expected real numbers, got {t.dtype.name}\n  help: use tf.nn.l2_loss(tf.abs(t))", TypeError)
    return reduce_sum(raw.square(t)) / 2


def softmax_cross_entropy_with_logits(
    labels: TensorLike, logits: TensorLike, axis: int = -1, name: str | None = None
) -> Tensor:
    """Computes the cross-entropy `-sum(labels * log(softmax(logits)))` along an axis."""
    logits = as_tensor(logits)
    labels = cast_to(as_tensor(labels), logits.dtype)
    if labels.shape != logits.shape:
        shape = broadcast_static_shape(labels.shape, logits.shape)
        labels, logits = raw.broadcast_to(labels, shape), raw.broadcast_to(logits, shape)
    if axis not in (-1, logits.ndim - 1):
        labels, logits = raw.moveaxis(labels, axis, -1), raw.moveaxis(logits, axis, -1)
    return raw.softmax_cross_entropy_with_logits(labels, logits)


def sigmoid_cross_entropy_with_logits(
    labels: TensorLike | None = None, logits: TensorLike | None = None, name: str | None = None
) -> Tensor:
    """Computes the elementwise binary cross-entropy of logits."""
    if labels is None or logits is None:
        refuse("sigmoid_cross_entropy_with_logits", "labels and logits must both be given", ValueError)
    return raw.sigmoid_cross_entropy_with_logits(labels, logits)


def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any, name: str | None = None) -> Tensor:
    """Computes the elementwise binary cross-entropy of logits with positive labels weighted by `pos_weight`."""
    labels, logits = as_tensor(labels), as_tensor(logits)
    if labels.shape != logits.shape:
        refuse(
            "weighted_cross_entropy_with_logits",
            f"labels and logits must have one shape, got {labels.shape} and {logits.shape}",
            ValueError,
        )
    weight = 1 + (pos_weight - 1) * labels
    return (1 - labels) * logits + weight * (raw.log1p(raw.exp(-raw.abs(logits))) + raw.relu(-logits))


def log_poisson_loss(
    targets: TensorLike, log_input: TensorLike, compute_full_loss: bool = False, name: str | None = None
) -> Tensor:
    """Computes the Poisson loss given the logarithm of the mean; `compute_full_loss` adds Stirling's term."""
    targets, log_input = as_tensor(targets), as_tensor(log_input)
    loss = raw.exp(log_input) - log_input * targets
    if not compute_full_loss:
        return loss
    small = raw.logical_and(targets >= 0, targets <= 1)
    safe = raw.where(small, 1.0, targets)
    stirling = safe * raw.log(safe) - safe + 0.5 * raw.log(2.0 * _numbers.pi * safe)
    return loss + raw.where(small, 0.0, stirling)


def compute_average_loss(
    per_example_loss: TensorLike, sample_weight: TensorLike | None = None, global_batch_size: Any = None
) -> Tensor:
    """Computes the weighted sum of per-example losses divided by the batch size."""
    loss = as_tensor(per_example_loss)
    if not loss.ndim:
        refuse("compute_average_loss", "per_example_loss must have rank >= 1, got a scalar", ValueError)
    count = as_tensor(loss.shape[0] if global_batch_size is None else global_batch_size)
    if not count.dtype.is_integer:
        refuse("compute_average_loss", f"global_batch_size must be an integer, got {count.dtype.name}", TypeError)
    if count.ndim:
        refuse("compute_average_loss", f"global_batch_size must be a scalar, got shape {count.shape}", ValueError)
    if not count.is_symbolic and int(count) < 0:
        refuse("compute_average_loss", f"global_batch_size must be >= 0, got {int(count)}")
    if sample_weight is not None:
        weight = as_tensor(sample_weight, loss.dtype)
        loss = loss * raw.reshape(weight, [*weight.shape, *[1] * (loss.ndim - weight.ndim)])
    return raw.div_no_nan(reduce_sum(loss), raw.cast(count, loss.dtype))


def scale_regularization_loss(regularization_loss: TensorLike) -> Tensor:
    """Sums the losses; they are not divided, since there is one replica."""
    return reduce_sum(regularization_loss)
