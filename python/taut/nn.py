"""What layers are made of: activations, convolutions, pooling, normalisation, losses."""

from __future__ import annotations

import math as _numbers
from typing import Any

from . import _native, dtypes
from ._common import _as, _ints, _refuse
from .ctc import ctc_loss  # noqa: F401
from .math import (  # noqa: A004, F401
    abs,
    exp,
    in_top_k,
    l2_normalize,
    log,
    log1p,
    log_softmax,
    logical_and,
    pow,
    reduce_sum,
    rsqrt,
    sigmoid,
    softmax,
    softplus,
    softsign,
    square,
    tanh,
    top_k,
    zero_fraction,
)
from .ops import batch_to_space, clip_by_norm, space_to_batch  # noqa: F401
from .ops import broadcast_static_shape as _broadcast_shape
from .random import _drawn_key, _given_key
from .sampling import nce_loss, sampled_softmax_loss  # noqa: F401
from .windows import (  # noqa: F401
    atrous_conv2d,
    avg_pool,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    conv1d,
    conv1d_transpose,
    conv2d,
    conv2d_transpose,
    conv3d,
    conv3d_transpose,
    conv_transpose,
    convolution,
    depthwise_conv2d,
    max_pool,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    pool,
    separable_conv2d,
)

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

elu = op("elu")
gelu = op("gelu")
leaky_relu = op("leaky_relu")
relu = op("relu")
relu6 = op("relu6")
selu = op("selu")
silu = swish = op("silu")
sparse_softmax_cross_entropy_with_logits = op("sparse_softmax_cross_entropy_with_logits")

# What the op table has, and TensorFlow only in layers.
attention = op("attention")
group_norm = op("group_norm")
layer_norm = op("layer_norm")
rms_norm = op("rms_norm")

_batch_norm = op("batch_norm")
_broadcast = op("broadcast_to")
_concat = op("concat")
_cross_entropy = op("softmax_cross_entropy_with_logits")
_dropout = op("dropout")
_embedding_lookup = op("embedding_lookup")
_moments = op("moments")
_moveaxis = op("moveaxis")
_pad = op("pad")
_reshape = op("reshape")
_sigmoid_cross_entropy = op("sigmoid_cross_entropy_with_logits")
_transpose = op("transpose")
_uniform = op("stateless_uniform")
_where = op("where")


def crelu(features: Any, axis: int = -1, name: str | None = None) -> _Tensor:
    """The positive and the negative parts of the elements, one after the other along an axis."""
    features = _tensor(features)
    return _concat([relu(features), relu(-features)], axis)


def bias_add(value: Any, bias: Any, data_format: str | None = None, name: str | None = None) -> _Tensor:
    """A number per channel, added."""
    value, bias = _tensor(value), _tensor(bias)
    if bias.ndim != 1 or value.ndim < 2:
        _refuse("bias_add", f"a bias of shape {bias.shape} for values of shape {value.shape}")
    axis = 1 if data_format is not None and data_format.startswith("NC") else value.ndim - 1
    if value.shape[axis] != bias.shape[0]:
        _refuse("bias_add", f"{bias.shape[0]} numbers for {value.shape[axis]} channels")
    return value + _reshape(bias, [-1] + [1] * (value.ndim - 1 - axis))


def dropout(
    x: Any, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> _Tensor:
    """Drops elements with probability `rate` and scales the others, so that the expectation stays.

    With `noise_shape`, elements are dropped together along the axes where it is 1.
    """
    return _dropped(x, rate, noise_shape, _drawn_key(seed))


def _dropped(x: Any, rate: Any, noise_shape: Any, key: _Tensor) -> _Tensor:
    x = _tensor(x)
    if not isinstance(rate, _native.Array) and not 0 <= rate < 1:
        _refuse("dropout", f"a rate of {rate} does not lie between 0 and 1", ValueError)
    plain = not isinstance(rate, _native.Array) or not rate.is_symbolic
    if noise_shape is None and plain:
        return _dropout(x, rate, key)
    if noise_shape is None:
        shape = list(x.shape)
    else:
        given = noise_shape.tolist() if hasattr(noise_shape, "tolist") else noise_shape
        shape = [own if size is None else int(size) for size, own in zip(given, x.shape)]
    kept = _uniform(key, shape, 0.0, 1.0, dtypes.float32) >= rate
    return _where(kept, x / (1 - rate), 0.0)


def embedding_lookup(params: Any, ids: Any, max_norm: Any = None, name: str | None = None) -> _Tensor:
    """The rows of a table that `ids` name, scaled down to a norm of at most `max_norm` if that is given.

    A table may be a list of pieces, the first rows first.
    """
    if isinstance(params, (list, tuple)):
        params = params[0] if len(params) == 1 else _concat(list(params), 0)
    ids = _tensor(ids)
    rows = _embedding_lookup(params, ids)
    if max_norm is None:
        return rows
    return clip_by_norm(rows, max_norm, list(range(ids.ndim, rows.ndim)))


# Normalisation.


def moments(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[_Tensor, _Tensor]:
    """Mean and variance over some axes. A shift changes nothing: no sums of squares are taken."""
    mean, variance = _moments(x, axes, keepdims)
    return mean, variance


def sufficient_statistics(
    x: Any, axes: Any, shift: Any = None, keepdims: bool = False, name: str | None = None
) -> tuple[_Tensor, _Tensor, _Tensor, Any]:
    """Count, sum and sum of squares over some axes, of elements minus `shift`; and the shift."""
    x = _tensor(x)
    axes = _ints(axes)
    count = 1.0
    for axis in axes:
        count *= x.shape[axis]
    shift = None if shift is None else _tensor(shift)
    moved = x if shift is None else x - shift
    total, squares = reduce_sum(moved, axes, keepdims), reduce_sum(square(moved), axes, keepdims)
    return _tensor(count, x.dtype), total, squares, shift


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[_Tensor, _Tensor]:
    """Mean and variance, from what `sufficient_statistics` gives."""
    counts = _tensor(counts)
    moved = _tensor(mean_ss) / counts
    mean = moved if shift is None else moved + shift
    return mean, _tensor(variance_ss) / counts - square(moved)


def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keepdims: bool = False, name: str | None = None
) -> tuple[_Tensor, _Tensor]:
    """Mean and variance over some axes, where each element counts as often as its weight says."""
    x = _tensor(x)
    weights = _tensor(frequency_weights, x.dtype) + 0.0 * x
    total = reduce_sum(weights, axes, True)
    mean = reduce_sum(weights * x, axes, True) / total
    variance = reduce_sum(weights * square(x - mean), axes, True) / total
    if keepdims:
        return mean, variance
    shape = reduce_sum(x, axes).shape
    return _reshape(mean, shape), _reshape(variance, shape)


def batch_normalization(
    x: Any,
    mean: Any,
    variance: Any,
    offset: Any,
    scale: Any,
    variance_epsilon: float,
    name: str | None = None,
) -> _Tensor:
    """`(x - mean) / sqrt(variance + epsilon) * scale + offset`, with statistics that are given."""
    x, mean, variance = _tensor(x), _tensor(mean), _tensor(variance)
    given = [mean, variance, *(_tensor(one) for one in (offset, scale) if one is not None)]
    simple = x.ndim >= 2 and all(one.shape == x.shape[-1:] and one.dtype == x.dtype for one in given)
    if simple and not isinstance(variance_epsilon, _native.Array):
        return _batch_norm(x, mean, variance, offset, scale, variance_epsilon, -1)
    inverse = rsqrt(variance + variance_epsilon)
    inverse = inverse if scale is None else inverse * scale
    return x * inverse + ((0.0 if offset is None else offset) - mean * inverse)


def local_response_normalization(
    input: Any,  # noqa: A002
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> _Tensor:
    """Each element over `(bias + alpha * s) ** beta`, with the sum of squares `s` of near channels."""
    x = _tensor(input)
    if x.ndim != 4:
        _refuse("local_response_normalization", f"four dimensions are needed, not shape {x.shape}")
    channels, radius = x.shape[-1], int(depth_radius)
    squares = _pad(square(x), [[0, 0]] * 3 + [[radius, radius]])
    total = squares[..., :channels]
    for i in range(1, 2 * radius + 1):
        total = total + squares[..., i : i + channels]
    return x / pow(bias + alpha * total, beta)


lrn = local_response_normalization


# Blocks of pixels and channels.


def space_to_depth(
    input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None  # noqa: A002
) -> _Tensor:
    """Blocks of pixels become channels."""
    x, block = _image("space_to_depth", input, data_format), int(block_size)
    batch, height, width, channels = x.shape
    if height % block or width % block:
        _refuse("space_to_depth", f"blocks of {block} do not fill {height}x{width} pixels")
    x = _reshape(x, [batch, height // block, block, width // block, block, channels])
    x = _transpose(x, [0, 1, 3, 2, 4, 5])
    x = _reshape(x, [batch, height // block, width // block, block * block * channels])
    return _moveaxis(x, -1, 1) if data_format == "NCHW" else x


def depth_to_space(
    input: Any, block_size: int, data_format: str = "NHWC", name: str | None = None  # noqa: A002
) -> _Tensor:
    """Channels become blocks of pixels."""
    x, block = _image("depth_to_space", input, data_format), int(block_size)
    batch, height, width, channels = x.shape
    if channels % (block * block):
        _refuse("depth_to_space", f"{channels} channels do not fill blocks of {block}x{block}")
    x = _reshape(x, [batch, height, width, block, block, channels // block**2])
    x = _transpose(x, [0, 1, 3, 2, 4, 5])
    x = _reshape(x, [batch, height * block, width * block, channels // block**2])
    return _moveaxis(x, -1, 1) if data_format == "NCHW" else x


def _image(name: str, x: Any, data_format: str) -> _Tensor:
    x = _tensor(x)
    if x.ndim != 4 or data_format not in ("NHWC", "NCHW"):
        _refuse(
            name, f"images in data format 'NHWC' or 'NCHW' are needed, not shape {x.shape} in {data_format!r}"
        )
    return _moveaxis(x, 1, -1) if data_format == "NCHW" else x


# Losses.


def l2_loss(t: Any, name: str | None = None) -> _Tensor:
    """Half the sum of squares."""
    return reduce_sum(square(t)) / 2


def softmax_cross_entropy_with_logits(
    labels: Any, logits: Any, axis: int = -1, name: str | None = None
) -> _Tensor:
    """`-sum(labels * log(softmax(logits)))` along an axis."""
    logits = _tensor(logits)
    labels = _as(_tensor(labels), logits.dtype)
    if labels.shape != logits.shape:
        shape = _broadcast_shape(labels.shape, logits.shape)
        labels, logits = _broadcast(labels, shape), _broadcast(logits, shape)
    if axis not in (-1, logits.ndim - 1):
        labels, logits = _moveaxis(labels, axis, -1), _moveaxis(logits, axis, -1)
    return _cross_entropy(labels, logits)


def sigmoid_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, name: str | None = None
) -> _Tensor:
    """The cross-entropy of independent yes-or-no predictions that are not yet normalised."""
    if labels is None or logits is None:
        _refuse("sigmoid_cross_entropy_with_logits", "labels and logits are both needed", ValueError)
    return _sigmoid_cross_entropy(labels, logits)


def weighted_cross_entropy_with_logits(
    labels: Any, logits: Any, pos_weight: Any, name: str | None = None
) -> _Tensor:
    """As `sigmoid_cross_entropy_with_logits`, where what is true counts `pos_weight` times."""
    labels, logits = _tensor(labels), _tensor(logits)
    if labels.shape != logits.shape:
        _refuse("weighted_cross_entropy_with_logits",
                f"labels of shape {labels.shape}, logits of shape {logits.shape}", ValueError)
    weight = 1 + (pos_weight - 1) * labels
    return (1 - labels) * logits + weight * (log1p(exp(-abs(logits))) + relu(-logits))


def log_poisson_loss(
    targets: Any, log_input: Any, compute_full_loss: bool = False, name: str | None = None
) -> _Tensor:
    """The loss of counts by Poisson's law, given the logarithm of their mean; in full, by Stirling."""
    targets, log_input = _tensor(targets), _tensor(log_input)
    loss = exp(log_input) - log_input * targets
    if not compute_full_loss:
        return loss
    small = logical_and(targets >= 0, targets <= 1)
    safe = _where(small, 1.0, targets)
    stirling = safe * log(safe) - safe + 0.5 * log(2.0 * _numbers.pi * safe)
    return loss + _where(small, 0.0, stirling)


def compute_average_loss(
    per_example_loss: Any, sample_weight: Any = None, global_batch_size: Any = None
) -> _Tensor:
    """The weighted sum of losses over the size of the batch."""
    loss = _tensor(per_example_loss)
    if not loss.ndim:
        _refuse("compute_average_loss", "a loss per example is needed, and this is one number", ValueError)
    count = loss.shape[0] if global_batch_size is None else global_batch_size
    if sample_weight is not None:
        weight = _tensor(sample_weight, loss.dtype)
        loss = loss * _reshape(weight, [*weight.shape, *[1] * (loss.ndim - weight.ndim)])
    return reduce_sum(loss) / count


def scale_regularization_loss(regularization_loss: Any) -> _Tensor:
    """The sum of the losses: there is one device to share them."""
    return reduce_sum(regularization_loss)


class experimental:  # noqa: N801
    """Names that TensorFlow keeps here."""

    @staticmethod
    def stateless_dropout(
        x: Any, rate: Any, seed: Any, rng_alg: str = "auto_select", noise_shape: Any = None, name: str | None = None
    ) -> _Tensor:
        """As `dropout`, by a seed of two numbers: the same seed drops the same elements."""
        return _dropped(x, rate, noise_shape, _given_key("stateless_dropout", seed))
