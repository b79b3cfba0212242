"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

def abs(x: TensorLike, *, name: str | None = ...) -> Any:
    """The magnitude of each element; the smallest signed integer has none in its type and stays as it is."""

from .windows import atrous_conv2d as atrous_conv2d
def attention(q: TensorLike, k: TensorLike, v: TensorLike, mask: TensorLike | None = ..., causal: bool = ..., scale: float | None = ..., *, name: str | None = ...) -> Any:
    """`softmax(scale * q @ transpose(k) + mask) @ v`, without ever making the matrix of scores."""

from .windows import avg_pool as avg_pool
from .windows import avg_pool1d as avg_pool1d
from .windows import avg_pool2d as avg_pool2d
from .windows import avg_pool3d as avg_pool3d
def batch_normalization(x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: float, name: str | None = ...) -> Tensor:
    """`(x - mean) / sqrt(variance + epsilon) * scale + offset`, with statistics that are given."""

from .ops import batch_to_space as batch_to_space
def bias_add(value: Any, bias: Any, data_format: str | None = ..., name: str | None = ...) -> Tensor:
    """A number per channel, added."""

from .ops import clip_by_norm as clip_by_norm
def compute_average_loss(per_example_loss: Any, sample_weight: Any = ..., global_batch_size: Any = ...) -> Tensor:
    """The weighted sum of losses over the size of the batch."""

from .windows import conv1d as conv1d
from .windows import conv1d_transpose as conv1d_transpose
from .windows import conv2d as conv2d
from .windows import conv2d_transpose as conv2d_transpose
from .windows import conv3d as conv3d
from .windows import conv3d_transpose as conv3d_transpose
from .windows import conv_transpose as conv_transpose
from .windows import convolution as convolution
def crelu(features: Any, axis: int = ..., name: str | None = ...) -> Tensor:
    """The positive and the negative parts of the elements, one after the other along an axis."""

from .ctc import ctc_loss as ctc_loss
def depth_to_space(input: Any, block_size: int, data_format: str = ..., name: str | None = ...) -> Tensor:
    """Channels become blocks of pixels."""

from .windows import depthwise_conv2d as depthwise_conv2d
def dropout(x: Any, rate: Any, noise_shape: Any = ..., seed: int | None = ..., name: str | None = ...) -> Tensor:
    """Drops elements with probability `rate` and scales the others, so that the expectation stays."""

def elu(features: TensorLike, alpha: float = ..., *, name: str | None = ...) -> Any:
    """Each element, or `alpha * (exp(features) - 1)` where it is negative."""

def embedding_lookup(params: Any, ids: Any, max_norm: Any = ..., name: str | None = ...) -> Tensor:
    """The rows of a table that `ids` name, scaled down to a norm of at most `max_norm` if that is given."""

def exp(x: TensorLike, *, name: str | None = ...) -> Any:
    """e to the power of each element."""

class experimental:
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def gelu(features: TensorLike, approximate: bool = ..., *, name: str | None = ...) -> Any:
    """Each element times the normal distribution function at it; with `approximate`, by the formula with tanh that some"""

def group_norm(x: TensorLike, gamma: TensorLike | None = ..., beta: TensorLike | None = ..., groups: int = ..., axis: int = ..., epsilon: float = ..., *, name: str | None = ...) -> Any:
    """Normalises every group of neighbouring channels of every sample to mean 0 and deviation 1, then scales and shifts by"""

from .counting import in_top_k as in_top_k
def l2_loss(t: Any, name: str | None = ...) -> Tensor:
    """Half the sum of squares."""

from .math import l2_normalize as l2_normalize
def layer_norm(x: TensorLike, gamma: TensorLike | None = ..., beta: TensorLike | None = ..., axes: int = ..., epsilon: float = ..., *, name: str | None = ...) -> Any:
    """Normalises every row to mean 0 and deviation 1, then scales it by `gamma` and shifts it by `beta`. A row is what"""

def leaky_relu(features: TensorLike, alpha: float = ..., *, name: str | None = ...) -> Any:
    """Each element, or `alpha` times it where it is negative."""

def local_response_normalization(input: Any, depth_radius: int = ..., bias: float = ..., alpha: float = ..., beta: float = ..., name: str | None = ...) -> Tensor:
    """Each element over `(bias + alpha * s) ** beta`, with the sum of squares `s` of near channels."""

def log(x: TensorLike, *, name: str | None = ...) -> Any:
    """The natural logarithm of each element; NaN below zero."""

def log1p(x: TensorLike, *, name: str | None = ...) -> Any:
    """`log(1 + x)`, accurate also where x is near zero."""

def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = ..., name: str | None = ...) -> Tensor:
    """The loss of counts by Poisson's law, given the logarithm of their mean; in full, by Stirling."""

from .math import log_softmax as log_softmax
def logical_and(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where both x and y are true."""

def lrn(input: Any, depth_radius: int = ..., bias: float = ..., alpha: float = ..., beta: float = ..., name: str | None = ...) -> Tensor:
    """Each element over `(bias + alpha * s) ** beta`, with the sum of squares `s` of near channels."""

from .windows import max_pool as max_pool
from .windows import max_pool1d as max_pool1d
from .windows import max_pool2d as max_pool2d
from .windows import max_pool3d as max_pool3d
def moments(x: Any, axes: Any, shift: Any = ..., keepdims: bool = ..., name: str | None = ...) -> tuple[Tensor, Tensor]:
    """Mean and variance over some axes. A shift changes nothing: no sums of squares are taken."""

from .sampling import nce_loss as nce_loss
def normalize_moments(counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = ...) -> tuple[Tensor, Tensor]:
    """Mean and variance, from what `sufficient_statistics` gives."""

from .windows import pool as pool
def pow(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x to the power of y. Integers wrap; of a negative power they keep what an integer can: the reciprocal, truncated."""

from .math import reduce_sum as reduce_sum
def relu(features: TensorLike, *, name: str | None = ...) -> Any:
    """Each element, or zero where it is negative."""

def relu6(features: TensorLike, *, name: str | None = ...) -> Any:
    """Each element, kept between 0 and 6."""

def rms_norm(x: TensorLike, gamma: TensorLike | None = ..., axes: int = ..., epsilon: float = ..., *, name: str | None = ...) -> Any:
    """Divides every row by the root of its mean square, then scales it by `gamma`. A row is what the last `axes` axes"""

def rsqrt(x: TensorLike, *, name: str | None = ...) -> Any:
    """`1 / sqrt(x)`."""

from .sampling import sampled_softmax_loss as sampled_softmax_loss
def scale_regularization_loss(regularization_loss: Any) -> Tensor:
    """The sum of the losses: there is one device to share them."""

def selu(features: TensorLike, *, name: str | None = ...) -> Any:
    """[`elu`] scaled so that layers keep mean zero and variance one."""

from .windows import separable_conv2d as separable_conv2d
def sigmoid(x: TensorLike, *, name: str | None = ...) -> Any:
    """`1 / (1 + exp(-x))`, between 0 and 1."""

def sigmoid_cross_entropy_with_logits(labels: Any = ..., logits: Any = ..., name: str | None = ...) -> Tensor:
    """The cross-entropy of independent yes-or-no predictions that are not yet normalised."""

def silu(features: TensorLike, beta: float = ..., *, name: str | None = ...) -> Any:
    """`features * sigmoid(beta * features)`, also called swish. `beta` is 1 in nearly every model."""

from .math import softmax as softmax
def softmax_cross_entropy_with_logits(labels: Any, logits: Any, axis: int = ..., name: str | None = ...) -> Tensor:
    """`-sum(labels * log(softmax(logits)))` along an axis."""

def softplus(features: TensorLike, *, name: str | None = ...) -> Any:
    """`log(1 + exp(features))`, a smooth [`relu`](super::relu()), without overflow."""

from .math import softsign as softsign
from .ops import space_to_batch as space_to_batch
def space_to_depth(input: Any, block_size: int, data_format: str = ..., name: str | None = ...) -> Tensor:
    """Blocks of pixels become channels."""

def sparse_softmax_cross_entropy_with_logits(labels: TensorLike, logits: TensorLike, *, name: str | None = ...) -> Any:
    """The cross-entropy of predictions `[.., classes]` that are not yet normalised, where each label names the one class"""

def square(x: TensorLike, *, name: str | None = ...) -> Any:
    """The square of each element, `x * x`; integers wrap."""

def sufficient_statistics(x: Any, axes: Any, shift: Any = ..., keepdims: bool = ..., name: str | None = ...) -> tuple[Tensor, Tensor, Tensor, Any]:
    """Count, sum and sum of squares over some axes, of elements minus `shift`; and the shift."""

def swish(features: TensorLike, beta: float = ..., *, name: str | None = ...) -> Any:
    """`features * sigmoid(beta * features)`, also called swish. `beta` is 1 in nearly every model."""

def tanh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The hyperbolic tangent of each element, between -1 and 1."""

from .math import top_k as top_k
def weighted_cross_entropy_with_logits(labels: Any, logits: Any, pos_weight: Any, name: str | None = ...) -> Tensor:
    """As `sigmoid_cross_entropy_with_logits`, where what is true counts `pos_weight` times."""

def weighted_moments(x: Any, axes: Any, frequency_weights: Any, keepdims: bool = ..., name: str | None = ...) -> tuple[Tensor, Tensor]:
    """Mean and variance over some axes, where each element counts as often as its weight says."""

from .math import zero_fraction as zero_fraction