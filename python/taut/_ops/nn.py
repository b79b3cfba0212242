"""Activations, dropout, embeddings and space-to-depth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import cast_to, check_choice, refuse
from .._native import Tensor, as_tensor
from .clipping import clip_by_norm
from .random import check_algorithm, next_key, seed_key

if TYPE_CHECKING:
    from .._typing import TensorLike


def swish(features: TensorLike, beta: Any = 1.0, name: str | None = None) -> Tensor:
    """Sigmoid linear unit: `features * sigmoid(beta * features)`."""
    if not isinstance(beta, _native.Array):
        return raw.silu(features, beta)
    # A tensor may have a gradient.
    features = as_tensor(features)
    return features * raw.sigmoid(cast_to(as_tensor(beta), features.dtype) * features)


def crelu(features: TensorLike, axis: int = -1, name: str | None = None) -> Tensor:
    """Concatenates the rectified positive and negative parts along an axis."""
    features = as_tensor(features)
    return raw.concat([raw.relu(features), raw.relu(-features)], axis)


_BIAS_FORMATS = (None, "NHWC", "NCHW", "NWC", "NCW", "NDHWC", "NCDHW", "N...C", "NC...")


def bias_add(value: TensorLike, bias: TensorLike, data_format: str | None = None, name: str | None = None) -> Tensor:
    """Adds a bias per channel."""
    check_choice("bias_add", "data_format", data_format, _BIAS_FORMATS)
    value, bias = as_tensor(value), as_tensor(bias)
    if bias.ndim != 1 or value.ndim < 2:
        refuse(
            "bias_add", f"expected a bias of rank 1 and values of rank >= 2, got shapes {bias.shape} and {value.shape}"
        )
    axis = 1 if isinstance(data_format, str) and data_format.startswith("NC") else value.ndim - 1
    if value.shape[axis] != bias.shape[0]:
        refuse("bias_add", f"bias must have one element per channel, {value.shape[axis]}, got {bias.shape[0]}")
    return value + raw.reshape(bias, [-1] + [1] * (value.ndim - 1 - axis))


def dropout(
    x: TensorLike, rate: Any, noise_shape: Any = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Sets elements to zero with probability `rate` and scales the others by `1 / (1 - rate)`.

    With `noise_shape`, the mask is broadcast along the axes where that is 1.
    """
    return _dropout_with_key(x, rate, noise_shape, next_key(seed))


def _dropout_with_key(x: TensorLike, rate: Any, noise_shape: Any, key: Tensor) -> Tensor:
    x = as_tensor(x)
    if np.ndim(rate):
        refuse("dropout", f"rate must be a scalar, got shape {tuple(np.shape(rate))}", ValueError)
    if not isinstance(rate, _native.Array) and not 0 <= rate < 1:
        refuse("dropout", f"rate must be in [0, 1), got {rate}", ValueError)
    plain = not isinstance(rate, _native.Array) or not rate.is_symbolic
    if noise_shape is None and plain:
        return raw.dropout(x, rate, key)
    if noise_shape is None:
        shape = list(x.shape)
    else:
        given = list(noise_shape.tolist() if hasattr(noise_shape, "tolist") else noise_shape)
        # None stands for the size of that axis, which only a shape of the same rank has.
        own = list(x.shape) if len(given) == x.ndim else given
        shape = [other if size is None else int(size) for size, other in zip(given, own)]
    kept = raw.stateless_uniform(key, shape, 0.0, 1.0, dtypes.float32) >= rate
    return raw.where(kept, x / (1 - rate), 0.0)


def embedding_lookup(params: TensorLike, ids: TensorLike, max_norm: Any = None, name: str | None = None) -> Tensor:
    """Looks up rows of an embedding table, scaled down to an L2 norm of at most `max_norm` if given.

    The table may be a list of shards, which are concatenated along the first axis.
    """
    if isinstance(params, (list, tuple)):
        params = params[0] if len(params) == 1 else raw.concat(list(params), 0)
    ids = as_tensor(ids)
    rows = raw.embedding_lookup(params, ids)
    if max_norm is None:
        return rows
    return clip_by_norm(rows, max_norm, list(range(ids.ndim, rows.ndim)))


def space_to_depth(input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Moves blocks of pixels into the channel axis."""
    x, block = _check_image("space_to_depth", input, block_size, data_format), int(block_size)
    batch, height, width, channels = x.shape
    if height % block or width % block:
        refuse("space_to_depth", f"height and width must be multiples of block_size {block}, got {height}x{width}")
    x = raw.reshape(x, [batch, height // block, block, width // block, block, channels])
    x = raw.transpose(x, [0, 1, 3, 2, 4, 5])
    x = raw.reshape(x, [batch, height // block, width // block, block * block * channels])
    return raw.moveaxis(x, -1, 1) if data_format == "NCHW" else x


def depth_to_space(input: TensorLike, block_size: int, data_format: str = "NHWC", name: str | None = None) -> Tensor:
    """Moves channels into blocks of pixels: the inverse of `space_to_depth`."""
    x, block = _check_image("depth_to_space", input, block_size, data_format), int(block_size)
    batch, height, width, channels = x.shape
    if channels % (block * block):
        refuse("depth_to_space", f"the number of channels must be a multiple of {block * block}, got {channels}")
    x = raw.reshape(x, [batch, height, width, block, block, channels // block**2])
    x = raw.transpose(x, [0, 1, 3, 2, 4, 5])
    x = raw.reshape(x, [batch, height * block, width * block, channels // block**2])
    return raw.moveaxis(x, -1, 1) if data_format == "NCHW" else x


def _check_image(name: str, x: TensorLike, block_size: int, data_format: str) -> Tensor:
    x = as_tensor(x)
    if block_size < 1:
        refuse(name, f"block_size must be >= 1, got {block_size}")
    if x.ndim != 4 or data_format not in ("NHWC", "NCHW"):
        refuse(name, f"expected rank 4 in data format 'NHWC' or 'NCHW', got shape {x.shape} in {data_format!r}")
    return raw.moveaxis(x, 1, -1) if data_format == "NCHW" else x


class experimental:  # noqa: N801
    """The namespace `tf.nn.experimental`."""

    @staticmethod
    def general_dropout(
        x: TensorLike, rate: Any, uniform_sampler: Any, noise_shape: Any = None, name: str | None = None
    ) -> Tensor:
        """Dropout with random numbers of `uniform_sampler(shape=..., dtype=...)` in [0, 1)."""
        x = as_tensor(x)
        if not x.dtype.is_floating:
            refuse("general_dropout", f"expected floats, got {x.dtype.name}", ValueError)
        if not isinstance(rate, _native.Array) and not 0 <= rate < 1:
            refuse("general_dropout", f"rate must be in [0, 1), got {rate}", ValueError)
        given = list(x.shape) if noise_shape is None else list(noise_shape)
        shape = [own if size is None else int(size) for size, own in zip(given, x.shape)]
        kept = raw.greater_equal(uniform_sampler(shape=shape, dtype=x.dtype), rate)
        return raw.where(kept, x / (1 - rate), raw.zeros_like(x))

    @staticmethod
    def stateless_dropout(
        x: TensorLike,
        rate: Any,
        seed: Any,
        rng_alg: str = "auto_select",
        noise_shape: Any = None,
        name: str | None = None,
    ) -> Tensor:
        """Dropout with a seed of two integers: equal seeds drop the same elements."""
        check_algorithm("stateless_dropout", rng_alg)
        return _dropout_with_key(x, rate, noise_shape, seed_key("stateless_dropout", seed))
