"""Counter-based (Philox) random numbers. A value depends on seed, op and index alone, not on the number of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import as_ints, as_shape, cast_to, check_count, is_number, refuse, value_range
from .._native import Tensor, as_tensor

if TYPE_CHECKING:
    from .._typing import DTypeLike, ShapeLike, TensorLike


_has_seed = False


def set_seed(seed: int | None) -> None:
    """Sets the global seed and resets the counters of random numbers; None removes the seed."""
    global _has_seed
    if seed is None:
        _native.forget_seed()
        _has_seed = False
        return
    try:
        number = int(seed)
    except (TypeError, ValueError):
        refuse("set_seed", f"seed must be an integer, got {seed!r}", TypeError)
    _native.set_seed(number)
    _has_seed = True


def has_seed() -> bool:
    """Whether the global seed was set."""
    return _has_seed


# TensorFlow's names and numbers of the algorithms that are Philox here.
_PHILOX = (None, "auto_select", "philox", 1, 3)


def check_algorithm(name: str, alg: Any) -> None:
    """Raises ValueError for an algorithm other than Philox."""
    if getattr(alg, "value", alg) not in _PHILOX:
        refuse(name, f"alg must be 'auto_select' or 'philox', the only algorithm, got {alg!r}", ValueError)


def next_key(seed: int | None) -> Tensor:
    """A fresh key from the global state, combined with the seed of the call if there is one.

    Where no global seed was set, the keys of calls with a seed are the same in every run of the program.
    """
    if seed is None:
        return _native.next_key()
    if not _has_seed:
        return _native.next_key_of_seed(int(seed))
    return raw.fold_in(_native.next_key(), int(seed))


def seed_key(name: str, seed: Any) -> Tensor:
    """The key of a stateless function: its seed of two integers."""
    seed = as_tensor(seed)
    if seed.shape != (2,) or not seed.dtype.is_integer:
        refuse(name, f"seed must be two integers, got {seed.dtype.name} of shape {seed.shape}")
    return cast_to(seed, dtypes.uint64)


def draw_normal(
    which: Any, key: Tensor, shape: ShapeLike, mean: TensorLike, stddev: TensorLike, dtype: DTypeLike
) -> Tensor:
    """Normal samples for a key. Parameters that are tensors broadcast against the shape."""
    shape = as_shape(shape)
    if is_number(mean) and is_number(stddev):
        return which(key, shape, mean, stddev, dtype)
    drawn = which(key, shape, 0.0, 1.0, dtype)
    return drawn * cast_to(as_tensor(stddev), drawn.dtype) + cast_to(as_tensor(mean), drawn.dtype)


def draw_uniform(name: str, key: Tensor, shape: Any, minval: Any, maxval: Any, dtype: Any) -> Tensor:
    """Uniform samples for a key. Bounds that are tensors broadcast against the shape."""
    dtype, shape = dtypes.as_dtype(dtype), as_shape(shape)
    if not dtype.is_integer:
        maxval = 1 if maxval is None else maxval
        if is_number(minval) and is_number(maxval):
            return raw.stateless_uniform(key, shape, minval, maxval, dtype)
        low, high = cast_to(as_tensor(minval), dtype), cast_to(as_tensor(maxval), dtype)
        return low + (high - low) * raw.stateless_uniform(key, shape, 0.0, 1.0, dtype)
    if minval is None and maxval is None:
        return _draw_bits(key, shape, dtype)
    if maxval is None:
        refuse(name, f"maxval must be given for {dtype.name}, got None", ValueError)
    if is_number(minval) and is_number(maxval):
        return raw.stateless_integers(key, shape, int(minval), int(maxval), dtype)
    low, high = cast_to(as_tensor(minval), dtypes.int64), cast_to(as_tensor(maxval), dtypes.int64)
    # The remainder of 62 random bits: for a range of n values, no probability is off by more than n / 2**62.
    return cast_to(low + raw.stateless_integers(key, shape, 0, 1 << 62, dtypes.int64) % (high - low), dtype)


def _draw_bits(key: Tensor, shape: Any, dtype: Any) -> Tensor:
    """Uniform integers over the whole range of a type."""
    if dtype.size < 8:
        return raw.stateless_integers(key, shape, int(dtype.min), int(dtype.max) + 1, dtype)
    return raw.bitcast(raw.stateless_integers(key, [*as_ints(shape), 2], 0, 1 << 32, dtypes.uint32), dtype)


def _draw_gamma(key: Tensor, shape: list[int], alpha: Any, beta: Any, dtype: Any) -> Tensor:
    """Gamma samples of shape `shape + parameters' shape`."""
    beta = 1.0 if beta is None else beta
    if is_number(alpha) and is_number(beta):
        return raw.stateless_gamma(key, shape, alpha, beta, dtype)
    if any(isinstance(one, _native.Array) and one.is_symbolic for one in (alpha, beta)):
        wide = [cast_to(as_tensor(one), dtypes.float64) for one in (alpha, beta)]
        own = np.broadcast_shapes(*(tuple(one.shape) for one in wide))
        return raw.cast(_gamma_by_rejection(key, [*shape, *own], wide[0]) / wide[1], dtype)
    alphas, betas = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(beta, float))
    drawn = [
        raw.stateless_gamma(raw.fold_in(key, i), shape, float(a), float(b), dtype)
        for i, (a, b) in enumerate(zip(alphas.ravel(), betas.ravel()))
    ]
    return (
        raw.reshape(raw.stack(drawn, -1), [*shape, *alphas.shape])
        if drawn
        else raw.reshape(as_tensor([], dtype), [*shape, *alphas.shape])
    )


def _gamma_by_rejection(key: Tensor, shape: list[int], alpha: Tensor) -> Tensor:
    """Gamma samples for parameters that are known only when a traced function runs: Marsaglia and Tsang's method.

    All elements draw until each has accepted a draw; those that have keep it.
    """
    from ..control import while_loop

    alpha = raw.broadcast_to(alpha, shape)
    small = alpha < 1.0
    d = raw.where(small, alpha + 1.0, alpha) - 1 / 3
    c = 1 / raw.sqrt(9 * d)

    def unfinished(number: Tensor, done: Tensor, found: Tensor) -> Tensor:
        return raw.logical_not(raw.all(done))

    def step(number: Tensor, done: Tensor, found: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        own = fold_in(key, number)
        x = raw.stateless_normal(own, shape, 0.0, 1.0, dtypes.float64)
        u = raw.stateless_uniform(fold_in(own, 1), shape, 0.0, 1.0, dtypes.float64)
        v = raw.pow(raw.maximum(1 + c * x, raw.full([], 0.0, dtypes.float64)), 3.0)
        positive = v > 0.0
        safe = raw.where(positive, v, raw.full([], 1.0, dtypes.float64))
        accepted = raw.log(1 - u) < 0.5 * x * x + d - d * safe + d * raw.log(safe)
        fresh = raw.logical_and(raw.logical_not(done), raw.logical_and(positive, accepted))
        return number + 1, raw.logical_or(done, fresh), raw.where(fresh, d * safe, found)

    start = (raw.full([], 0, dtypes.int64), raw.full(shape, False, dtypes.bool), raw.zeros_like(alpha))
    found = while_loop(unfinished, step, start)[2]
    boost = raw.stateless_uniform(fold_in(key, -1), shape, 0.0, 1.0, dtypes.float64)
    power = 1 / raw.where(small, alpha, raw.full([], 1.0, dtypes.float64))
    return raw.where(small, found * raw.pow(1 - boost, power), found)


def _draw_poisson(name: str, key: Tensor, shape: list[int], lam: TensorLike, dtype: DTypeLike) -> Tensor:
    """Poisson samples of shape `shape + lam's shape`, by inversion of the distribution function."""
    lam = as_tensor(lam)
    if not lam.size:
        return raw.reshape(as_tensor([], dtype), [*shape, *lam.shape])
    least, most = value_range(lam)
    if not np.isfinite(most) or least < 0:
        refuse(name, f"lam must be finite and >= 0, got values from {least} to {most}")
    if most > 1e10:
        refuse(name, f"lam must be <= 1e10, got {most}")
    means = np.asarray(lam).astype(np.float64).reshape(-1, 1)
    # Probabilities beyond twelve standard deviations are below the resolution of a float64 in [0, 1).
    first = np.maximum(np.floor(means - 12 * np.sqrt(means) - 40), 0)
    steps = as_tensor(first + np.arange(int(24 * np.sqrt(most) + 82)))
    rates = as_tensor(means)
    tiny = float(np.finfo(np.float64).tiny)
    mass = raw.exp(steps * raw.log(rates + tiny) - rates - raw.lgamma(steps + 1.0))
    count = int(np.prod(shape))
    even = raw.stateless_uniform(key, [rates.shape[0], count], 0.0, 1.0, dtypes.float64)
    drawn = raw.cast(raw.searchsorted(raw.cumsum(mass, -1), even, True) + as_tensor(first.astype(np.int64)), dtype)
    return raw.reshape(raw.transpose(drawn), [*shape, *lam.shape])


def normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Samples from a normal distribution."""
    return draw_normal(raw.stateless_normal, next_key(seed), shape, mean, stddev, dtype)


def truncated_normal(
    shape: ShapeLike,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Samples from a normal distribution truncated at two standard deviations."""
    return draw_normal(raw.stateless_truncated_normal, next_key(seed), shape, mean, stddev, dtype)


def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Samples from the uniform distribution on [minval, maxval)."""
    return draw_uniform("uniform", next_key(seed), shape, minval, maxval, dtype)


def gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Samples from gamma distributions with mean `alpha / beta`: `shape` samples for each `alpha`."""
    return _draw_gamma(next_key(seed), as_ints(shape), alpha, beta, dtype)


def poisson(
    shape: ShapeLike,
    lam: TensorLike,
    dtype: DTypeLike = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Samples from Poisson distributions: `shape` samples for each mean `lam`."""
    return _draw_poisson("poisson", next_key(seed), as_ints(shape), lam, dtypes.as_dtype(dtype))


def categorical(
    logits: TensorLike, num_samples: Any, dtype: DTypeLike = None, seed: int | None = None, name: str | None = None
) -> Tensor:
    """Samples class indices `[batch, num_samples]` from unnormalized log-probabilities `[batch, classes]`."""
    drawn = raw.stateless_categorical(next_key(seed), logits, num_samples)
    return cast_to(drawn, dtypes.int64 if dtype is None else dtypes.as_dtype(dtype))


def shuffle(value: TensorLike, seed: int | None = None, name: str | None = None) -> Tensor:
    """Shuffles a tensor along its first axis."""
    return raw.stateless_shuffle(next_key(seed), value)


def stateless_normal(
    shape: ShapeLike,
    seed: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """Samples from a normal distribution that depend on `seed` alone."""
    check_algorithm("stateless_normal", alg)
    return draw_normal(raw.stateless_normal, seed_key("stateless_normal", seed), shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: ShapeLike,
    seed: Any,
    mean: TensorLike = 0.0,
    stddev: TensorLike = 1.0,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """Samples from a normal distribution truncated at two standard deviations that depend on `seed` alone."""
    check_algorithm("stateless_truncated_normal", alg)
    return draw_normal(
        raw.stateless_truncated_normal, seed_key("stateless_truncated_normal", seed), shape, mean, stddev, dtype
    )


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> Tensor:
    """Samples from the uniform distribution on [minval, maxval) that depend on `seed` alone."""
    check_algorithm("stateless_uniform", alg)
    key = seed_key("stateless_uniform", seed)
    return draw_uniform("stateless_uniform", key, shape, minval, maxval, dtype)


def stateless_gamma(
    shape: Any,
    seed: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Samples from gamma distributions that depend on `seed` alone. `shape` ends with the parameters' shape."""
    key, shape = seed_key("stateless_gamma", seed), as_ints(shape)
    own = np.broadcast_shapes(np.shape(alpha), np.shape(1.0 if beta is None else beta))
    return _draw_gamma(key, _outer_shape("stateless_gamma", shape, own), alpha, beta, dtype)


def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: str | None = None) -> Tensor:
    """Samples from Poisson distributions that depend on `seed` alone. `shape` ends with the shape of `lam`."""
    key, shape = seed_key("stateless_poisson", seed), as_ints(shape)
    outer = _outer_shape("stateless_poisson", shape, np.shape(lam))
    return _draw_poisson("stateless_poisson", key, outer, lam, dtypes.as_dtype(dtype))


def _outer_shape(name: str, shape: list[int], own: tuple) -> list[int]:
    if tuple(shape[len(shape) - len(own) :]) != tuple(own):
        refuse(name, f"shape must end with that of the parameters, {list(own)}, got {shape}")
    return shape[: len(shape) - len(own)]


def stateless_categorical(
    logits: TensorLike, num_samples: Any, seed: Any, dtype: DTypeLike = dtypes.int64, name: str | None = None
) -> Tensor:
    """Samples class indices `[batch, num_samples]` that depend on the logits and `seed` alone."""
    key = seed_key("stateless_categorical", seed)
    return cast_to(raw.stateless_categorical(key, logits, num_samples), dtypes.as_dtype(dtype))


def stateless_shuffle(value: TensorLike, seed: Any, name: str | None = None) -> Tensor:
    """Shuffles a tensor along its first axis in an order that depends on `seed` alone."""
    return raw.stateless_shuffle(seed_key("stateless_shuffle", seed), value)


def stateless_permutation(n: int, seed: Any, name: str | None = None) -> Tensor:
    """A random int64 permutation of 0 to `n - 1` that depends on `seed` alone."""
    return raw.stateless_permutation(seed_key("stateless_permutation", seed), n)


def stateless_bernoulli(shape: Any, seed: Any, p: Any = 0.5, name: str | None = None) -> Tensor:
    """Boolean samples that are true with probability `p` (a number or a tensor) and depend on `seed` alone."""
    key, shape = seed_key("stateless_bernoulli", seed), as_shape(shape)
    return (
        raw.stateless_bernoulli(key, shape, p)
        if is_number(p)
        else raw.stateless_bernoulli_each(key, raw.broadcast_to(p, shape))
    )


def stateless_exponential(
    shape: ShapeLike, seed: Any, rate: float = 1.0, dtype: DTypeLike = dtypes.float32, name: str | None = None
) -> Tensor:
    """Samples from an exponential distribution that depend on `seed` alone."""
    return raw.stateless_exponential(seed_key("stateless_exponential", seed), as_shape(shape), rate, dtype)


def fold_in(seed: Any, data: TensorLike, alg: str = "auto_select") -> Tensor:
    """Derives a seed from a seed and an integer; different integers give independent seeds."""
    check_algorithm("fold_in", alg)
    seed = as_tensor(seed)
    return cast_to(raw.fold_in(seed_key("fold_in", seed), data), seed.dtype)


def split(seed: Any, num: int = 2, alg: str = "auto_select") -> Tensor:
    """Derives `num` independent seeds from one, along the first axis."""
    check_algorithm("split", alg)
    seed = as_tensor(seed)
    key = seed_key("split", seed)
    count = check_count("split", "num", int(num))
    return cast_to(raw.stack([raw.fold_in(key, i) for i in range(count)], 0), seed.dtype)


def stateless_binomial(
    shape: ShapeLike,
    seed: Any,
    counts: TensorLike,
    probs: TensorLike,
    output_dtype: DTypeLike = dtypes.int32,
    name: str | None = None,
) -> Tensor:
    """Samples from binomial distributions that depend on `seed` alone: the number of successes of `counts` trials."""
    key, sizes = seed_key("stateless_binomial", seed), as_ints(shape)
    trials, chances = cast_to(as_tensor(counts), dtypes.float64), cast_to(as_tensor(probs), dtypes.float64)
    return raw.cast(draw_binomial(key, sizes, trials, chances), output_dtype)


def draw_binomial(key: Tensor, shape: list[int], trials: Tensor, chances: Tensor) -> Tensor:
    """Binomial samples as float64. The rarer of success and failure is counted: where few are expected, by waiting times,
    otherwise by rejection, whose work does not grow with the trials."""
    trials, chances = raw.broadcast_to(trials, shape), raw.broadcast_to(chances, shape)
    rare = raw.minimum(chances, 1 - chances)
    many = trials * rare >= _MANY_SUCCESSES
    few = _few_successes(key, shape, raw.where(many, raw.zeros_like(trials), trials), rare)
    found = raw.where(many, _many_successes(fold_in(key, -1), shape, trials, rare, many), few)
    found = raw.where(chances > 0.5, trials - found, found)
    # Trials with an unknown chance have an unknown number of successes.
    unknown = raw.logical_and(raw.is_nan(chances), trials > 0)
    return raw.where(unknown, raw.full(shape, np.nan, dtypes.float64), found)


#: The expected number of successes from which rejection is faster than waiting times; it is valid from 10.
_MANY_SUCCESSES = 10.0


def _few_successes(key: Tensor, shape: list[int], trials: Tensor, rare: Tensor) -> Tensor:
    """Binomial samples by waiting times: geometric gaps between successes, until all gaps together exceed the trials."""
    from ..control import while_loop

    scale = raw.log1p(-raw.clip_by_value(rare, 1e-300, 0.5))

    def running(number: Tensor, passed: Tensor, found: Tensor) -> Tensor:
        return raw.any(passed <= trials)

    def step(number: Tensor, passed: Tensor, found: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        draw = raw.stateless_uniform(fold_in(key, number), shape, 0.0, 1.0, dtypes.float64)
        passed = passed + raw.floor(raw.log1p(-draw) / scale) + 1
        return number + 1, passed, found + raw.cast(passed <= trials, dtypes.float64)

    zero = raw.zeros_like(trials)
    start = raw.where(rare > 0, zero, trials + 1)
    return while_loop(running, step, (raw.full([], 0, dtypes.int64), start, zero))[2]


def _many_successes(key: Tensor, shape: list[int], trials: Tensor, chances: Tensor, many: Tensor) -> Tensor:
    """Binomial samples where `many` is true: transformed rejection with squeeze (BTRS, Hormann 1993).

    Trials without a distribution (NaN, infinity) are their own result.
    """
    from ..control import while_loop

    active = many & raw.is_finite(trials)
    # Elements without a sample have the parameters of another one.
    n, p = (
        raw.where(active, trials, raw.full_like(trials, 40.0)),
        raw.where(active, chances, raw.full_like(chances, 0.5)),
    )
    spread = raw.sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * spread
    a, middle = -0.0873 + 0.0248 * b + 0.01 * p, n * p + 0.5
    alpha, ratio, mode = (2.83 + 5.1 / b) * spread, p / (1 - p), raw.floor((n + 1) * p)

    def log_weight(k: Tensor) -> Tensor:
        """The logarithm of the probability of k successes, up to a constant; that of the normal distribution where the
        difference of the large terms would have no exact digits."""
        exact = k * raw.log(ratio) - raw.lgamma(k + 1) - raw.lgamma(n - k + 1)
        return raw.where(spread > 1e5, -0.5 * raw.square((k - n * p) / spread), exact)

    top = log_weight(mode)

    def running(number: Tensor, waits: Tensor, found: Tensor) -> Tensor:
        return raw.any(waits)

    def step(number: Tensor, waits: Tensor, found: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        draws = raw.stateless_uniform(fold_in(key, number), [2, *shape], 0.0, 1.0, dtypes.float64)
        u, v = draws[0] - 0.5, 1 - draws[1]
        edge = 0.5 - raw.abs(u)
        k = raw.floor((2 * a / raw.maximum(edge, 1e-300) + b) * u + middle)
        inside = (k >= 0) & (k <= n)
        tried = raw.where(inside, k, mode)
        bound = raw.log(v * alpha / (a / raw.maximum(edge * edge, 1e-300) + b))
        accepted = inside & (((edge >= 0.07) & (v <= 0.92 - 4.2 / b)) | (bound <= log_weight(tried) - top))
        return number + 1, waits & ~accepted, raw.where(waits & accepted, tried, found)

    start = raw.where(active, mode, trials)
    return while_loop(running, step, (raw.full([], 0, dtypes.int64), active, start))[2]


def stateless_parameterized_truncated_normal(
    shape: ShapeLike,
    seed: Any,
    means: TensorLike = 0.0,
    stddevs: TensorLike = 1.0,
    minvals: TensorLike = -2.0,
    maxvals: TensorLike = 2.0,
    name: str | None = None,
) -> Tensor:
    """Samples from normal distributions, truncated to [minvals, maxvals], that depend on `seed` alone."""
    from .special import ndtri

    key, sizes = seed_key("stateless_parameterized_truncated_normal", seed), as_ints(shape)
    given = [as_tensor(one) for one in (means, stddevs, minvals, maxvals)]
    dtype = next((one.dtype for one in given if one.dtype.is_floating), dtypes.float32)
    mean, spread, low, high = (cast_to(one, dtypes.float64) for one in given)

    def below(value: Tensor) -> Tensor:
        return 0.5 * raw.erfc(-value / 2**0.5)

    # Intervals above the mean are mirrored: probabilities near 0 are exact, those near 1 are not.
    first, last = (low - mean) / spread, (high - mean) / spread
    above = first > 0
    first, last = raw.where(above, -last, first), raw.where(above, -first, last)
    draw = raw.stateless_uniform(key, sizes, 0.0, 1.0, dtypes.float64)
    # The quantiles of uniform samples between those of the ends.
    made = ndtri(below(first) + draw * (below(last) - below(first)))
    # Probabilities beyond this are no float64 numbers. There, squares are exponentially distributed but for 1 / square.
    far = last < -37.0
    a, width = raw.where(far, last, raw.full_like(last, -37.0)), raw.expm1((last * last - first * first) * 0.5)
    tail = -raw.sqrt(a * a - 2 * raw.log1p(draw * raw.where(far, width, raw.zeros_like(width))))
    made = raw.where(far, tail, made)
    made = mean + spread * raw.where(above, -made, made)
    return raw.cast(raw.broadcast_to(raw.minimum(raw.maximum(made, low), high), sizes), dtype)
