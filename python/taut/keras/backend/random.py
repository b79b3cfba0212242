"""`keras.random`: random numbers that depend on a seed alone.

A seed is two integers. Keras's `SeedGenerator` holds them and advances with every draw, so that a traced function draws
anew at every call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from keras.src.backend.config import floatx
from keras.src.random.seed_generator import SeedGenerator, draw_seed, make_default_seed

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, floating, open_shape, shape_of

__all__ = [
    "SeedGenerator",
    "beta",
    "binomial",
    "categorical",
    "draw_seed",
    "dropout",
    "gamma",
    "make_default_seed",
    "normal",
    "randint",
    "shuffle",
    "truncated_normal",
    "uniform",
]


def wide(dtype: str) -> str:
    """The type in which numbers of `dtype` are drawn."""
    return "float64" if dtype == "float64" else "float32"


def normal(
    shape: Sequence[int], mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None
) -> tf.Tensor:
    """Samples from a normal distribution."""
    dtype = dtype or floatx()
    drawn = tf.random.stateless_normal(shape, seed=draw_seed(seed), dtype=wide(dtype))
    return tf.cast(drawn * stddev + mean, dtype)


def truncated_normal(
    shape: Sequence[int], mean: float = 0.0, stddev: float = 1.0, dtype: Any = None, seed: Any = None
) -> tf.Tensor:
    """Samples from a normal distribution truncated at two standard deviations."""
    dtype = dtype or floatx()
    drawn = tf.random.stateless_truncated_normal(shape, seed=draw_seed(seed), dtype=wide(dtype))
    return tf.cast(drawn * stddev + mean, dtype)


def uniform(
    shape: Sequence[int], minval: float = 0.0, maxval: float = 1.0, dtype: Any = None, seed: Any = None
) -> tf.Tensor:
    """Samples from the uniform distribution on [minval, maxval)."""
    dtype = dtype or floatx()
    kind = wide(dtype)
    low, high = convert_to_tensor(minval, kind), convert_to_tensor(maxval, kind)
    drawn = tf.random.stateless_uniform(shape, seed=draw_seed(seed), dtype=kind)
    return tf.cast(drawn * (high - low) + low, dtype)


def randint(shape: Sequence[int], minval: Any, maxval: Any, dtype: Any = "int32", seed: Any = None) -> tf.Tensor:
    """Uniform integers in [minval, maxval)."""
    kind = dtype if dtype in ("int32", "int64") else "int64"
    low, high = convert_to_tensor(minval, kind), convert_to_tensor(maxval, kind)
    drawn = tf.random.stateless_uniform(shape, seed=draw_seed(seed), minval=low, maxval=high, dtype=kind)
    return tf.cast(drawn, dtype)


def categorical(logits: Any, num_samples: int, dtype: Any = "int32", seed: Any = None) -> tf.Tensor:
    """Samples class indices from the unnormalized log-probabilities of each row."""
    drawn = tf.random.stateless_categorical(floating(logits), num_samples, seed=draw_seed(seed))
    return tf.cast(drawn, dtype)


def gamma(shape: Sequence[int], alpha: Any, dtype: Any = None, seed: Any = None) -> tf.Tensor:
    """Samples from gamma distributions with shape parameter `alpha` and rate 1."""
    dtype = dtype or floatx()
    return tf.cast(gammas(shape, alpha, wide(dtype), draw_seed(seed)), dtype)


def gammas(shape: Sequence[int], alpha: Any, dtype: str, seed: tf.Tensor) -> tf.Tensor:
    """Gamma samples for a seed that was drawn already."""
    alpha = tf.broadcast_to(convert_to_tensor(alpha, dtype), shape)
    return tf.random.stateless_gamma(shape, seed=seed, alpha=alpha, dtype=dtype)


def beta(shape: Sequence[int], alpha: Any, beta: Any, dtype: Any = None, seed: Any = None) -> tf.Tensor:
    """Samples from beta distributions, as the ratio of gamma samples."""
    dtype = dtype or floatx()
    seed = draw_seed(seed)
    first = gammas(shape, alpha, wide(dtype), seed)
    second = gammas(shape, beta, wide(dtype), second_seed(seed))
    return tf.cast(first / (first + second), dtype)


def second_seed(seed: tf.Tensor) -> tf.Tensor:
    """A second seed for an independent draw."""
    return seed + convert_to_tensor([0x6995, 0x1B87], seed.dtype)


def binomial(shape: Sequence[int], counts: Any, probabilities: Any, dtype: Any = None, seed: Any = None) -> tf.Tensor:
    """Counts of successes in `counts` trials."""
    from taut._ops.random import draw_binomial, seed_key

    key = seed_key("binomial", draw_seed(seed))
    trials, chances = convert_to_tensor(counts, "float64"), convert_to_tensor(probabilities, "float64")
    return tf.cast(draw_binomial(key, list(shape), trials, chances), dtype or floatx())


def dropout(inputs: Any, rate: float, noise_shape: Sequence[int | None] | None = None, seed: Any = None) -> tf.Tensor:
    """Sets a fraction `rate` of the inputs to zero and scales the others by `1 / (1 - rate)`."""
    inputs = convert_to_tensor(inputs)
    if rate == 1.0:
        return tf.zeros_like(inputs)
    if rate == 0.0:
        return inputs
    shape: Sequence[Any] = open_shape(inputs)
    if noise_shape is not None:
        shape = [own if given is None else given for given, own in zip(noise_shape, shape)]
    drawn = tf.random.stateless_uniform(shape, seed=draw_seed(seed), dtype="float32")
    kept = tf.greater_equal(drawn, rate)
    return tf.where(kept, inputs * (1.0 / (1.0 - rate)), tf.zeros_like(inputs))


def shuffle(x: Any, axis: int = 0, seed: Any = None) -> tf.Tensor:
    """Shuffles `x` along an axis."""
    x = convert_to_tensor(x)
    order = tf.random.stateless_permutation(shape_of(x)[axis], seed=draw_seed(seed))
    return tf.gather(x, order, axis=axis)
