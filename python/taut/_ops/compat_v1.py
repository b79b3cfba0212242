"""Functions of `tf.compat.v1.nn` whose signature or meaning is not that of `tf.nn`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _raw_ops as raw
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from . import conv, histogram, losses, nn, normalization, pool, probabilities, reduction

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


def _one_of(function: str, **values: Any) -> Any:
    """The value of an option that has several names; raises ValueError if more than one is given."""
    given = {name: value for name, value in values.items() if value is not None}
    if len(given) > 1:
        refuse(function, f"{' and '.join(given)} are one option: give one of them", ValueError)
    return next(iter(given.values()), None)


def conv2d(
    input: TensorLike,
    filter: TensorLike | None = None,
    strides: Any = None,
    padding: Any = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = None,
    name: str | None = None,
    filters: TensorLike | None = None,
) -> Tensor:
    """Two-dimensional convolution."""
    kernel = _one_of("conv2d", filter=filter, filters=filters)
    return conv.conv2d(input, kernel, 1 if strides is None else strides, padding, data_format, dilations)


def conv2d_transpose(
    value: TensorLike | None = None,
    filter: TensorLike | None = None,
    output_shape: Any = None,
    strides: Any = None,
    padding: Any = "SAME",
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
    filters: TensorLike | None = None,
    dilations: Any = None,
) -> Tensor:
    """Transposed convolution: the gradient of conv2d with respect to its input."""
    x = _one_of("conv2d_transpose", value=value, input=input)
    kernel = _one_of("conv2d_transpose", filter=filter, filters=filters)
    return conv.conv2d_transpose(x, kernel, output_shape, strides, padding, data_format, dilations)


def depthwise_conv2d(
    input: TensorLike,
    filter: TensorLike,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Convolution of each channel with filters of its own."""
    rate = _one_of("depthwise_conv2d", rate=rate, dilations=dilations)
    return conv.depthwise_conv2d(input, filter, strides, padding, data_format, rate)


def separable_conv2d(
    input: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: Any,
    padding: Any,
    rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Tensor:
    """Depthwise convolution, followed by a convolution of the channels."""
    rate = _one_of("separable_conv2d", rate=rate, dilations=dilations)
    return conv.separable_conv2d(input, depthwise_filter, pointwise_filter, strides, padding, data_format, rate)


def max_pool(
    value: TensorLike | None,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """The maximum of each window."""
    return pool.max_pool2d(_one_of("max_pool", value=value, input=input), ksize, strides, padding, data_format)


def avg_pool(
    value: TensorLike | None,
    ksize: Any,
    strides: Any,
    padding: Any,
    data_format: str = "NHWC",
    name: str | None = None,
    input: TensorLike | None = None,
) -> Tensor:
    """The mean of each window."""
    return pool.avg_pool2d(_one_of("avg_pool", value=value, input=input), ksize, strides, padding, data_format)


def softmax(logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """Softmax along an axis, the last one unless given."""
    axis = _one_of("softmax", axis=axis, dim=dim)
    return probabilities.softmax(logits, -1 if axis is None else axis)


def log_softmax(logits: TensorLike, axis: int | None = None, name: str | None = None, dim: int | None = None) -> Tensor:
    """The logarithm of softmax along an axis, the last one unless given."""
    axis = _one_of("log_softmax", axis=axis, dim=dim)
    return reduction.log_softmax(logits, -1 if axis is None else axis)


def dropout(
    x: TensorLike,
    keep_prob: Any = None,
    noise_shape: Any = None,
    seed: int | None = None,
    name: str | None = None,
    rate: Any = None,
) -> Tensor:
    """Sets elements to zero with the probability `rate`, or `1 - keep_prob`, and scales the others."""
    if (keep_prob is None) == (rate is None):
        refuse("dropout", "exactly one of rate and keep_prob must be given", ValueError)
    return nn.dropout(x, 1.0 - keep_prob if rate is None else rate, noise_shape, seed)


def sparse_softmax_cross_entropy_with_logits(
    _sentinel: None = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The cross-entropy of softmax probabilities with class numbers."""
    _check_named("sparse_softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    return raw.sparse_softmax_cross_entropy_with_logits(labels, logits)


def sigmoid_cross_entropy_with_logits(
    _sentinel: None = None, labels: Any = None, logits: Any = None, name: str | None = None
) -> Tensor:
    """The cross-entropy of independent probabilities."""
    _check_named("sigmoid_cross_entropy_with_logits", _sentinel, labels, logits)
    return losses.sigmoid_cross_entropy_with_logits(labels, logits)


def softmax_cross_entropy_with_logits(
    _sentinel: None = None,
    labels: Any = None,
    logits: Any = None,
    dim: int = -1,
    name: str | None = None,
    axis: int | None = None,
) -> Tensor:
    """The cross-entropy of softmax probabilities; no gradient passes to the labels."""
    _check_named("softmax_cross_entropy_with_logits", _sentinel, labels, logits)
    return losses.softmax_cross_entropy_with_logits(raw.stop_gradient(labels), logits, dim if axis is None else axis)


def _check_named(function: str, sentinel: Any, labels: Any, logits: Any) -> None:
    if sentinel is not None or labels is None or logits is None:
        refuse(function, "labels and logits must be given, as keyword arguments", ValueError)


def weighted_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, pos_weight: Any = None, name: str | None = None, targets: Any = None
) -> Tensor:
    """The cross-entropy of independent probabilities, with a weight for positive labels."""
    labels = _one_of("weighted_cross_entropy_with_logits", labels=labels, targets=targets)
    return losses.weighted_cross_entropy_with_logits(labels, logits, pos_weight)


def embedding_lookup(
    params: Any,
    ids: TensorLike,
    partition_strategy: str = "mod",
    name: str | None = None,
    validate_indices: bool = True,
    max_norm: Any = None,
) -> Tensor:
    """Rows by index. `params` is one tensor, or a list of one."""
    if isinstance(params, (list, tuple)):
        if len(params) != 1:
            text = f"params must be one tensor, got {len(params)}: there is one device"
            refuse("embedding_lookup", f"{text}\n  help: tf.concat the parts", ValueError)
        params = params[0]
    if partition_strategy not in ("mod", "div"):
        refuse("embedding_lookup", f"partition_strategy must be 'mod' or 'div', got {partition_strategy!r}", ValueError)
    return nn.embedding_lookup(params, ids, max_norm)


def xw_plus_b(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Tensor:
    """`x @ weights + biases`."""
    return nn.bias_add(raw.matmul(as_tensor(x), as_tensor(weights)), biases)


def relu_layer(x: TensorLike, weights: TensorLike, biases: TensorLike, name: str | None = None) -> Tensor:
    """`relu(x @ weights + biases)`."""
    return raw.relu(xw_plus_b(x, weights, biases))


def convolution(
    input: TensorLike,
    filter: TensorLike | None = None,
    padding: Any = None,
    strides: Any = None,
    dilation_rate: Any = None,
    name: str | None = None,
    data_format: str | None = None,
    filters: TensorLike | None = None,
    dilations: Any = None,
) -> Tensor:
    """Computes a convolution with as many spatial dimensions as the filters have: one, two or three."""
    filters = _one_of("convolution", filter=filter, filters=filters)
    spread = _one_of("convolution", dilation_rate=dilation_rate, dilations=dilations)
    return conv.convolution(input, filters, strides, padding, data_format, spread)


def in_top_k(predictions: TensorLike, targets: TensorLike, k: Any, name: str | None = None) -> Tensor:
    """Whether the targets are among the `k` largest predictions."""
    return histogram.in_top_k(targets, predictions, k)


def depth_to_space(input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Moves channels to blocks of pixels."""
    return nn.depth_to_space(input, block_size, data_format)


def space_to_depth(input: TensorLike, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Moves blocks of pixels to channels."""
    return nn.space_to_depth(input, block_size, data_format)


def crelu(features: TensorLike, name: str | None = None, axis: int = -1) -> Tensor:
    """The positive and the negative part, concatenated."""
    return nn.crelu(features, axis)
