"""Random numbers, counted rather than drawn: the same seed gives the same, on any number of threads."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from . import _native, dtypes
from ._common import _as, _ends, _ints, _refuse, _shape
from .math import exp, expm1, floor, lgamma, log, log1p
from .variable import Variable

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor

_bitcast = op("bitcast")
_bernoulli = op("stateless_bernoulli")
_broadcast = op("broadcast_to")
_cast = op("cast")
_clip = op("clip_by_value")
_categorical = op("stateless_categorical")
_cumsum = op("cumsum")
_each = op("stateless_bernoulli_each")
_exponential = op("stateless_exponential")
_fold_in = op("fold_in")
_full = op("full")
_gamma = op("stateless_gamma")
_integers = op("stateless_integers")
_normal = op("stateless_normal")
_permutation = op("stateless_permutation")
_range = op("range")
_reshape = op("reshape")
_searchsorted = op("searchsorted")
_shuffle = op("stateless_shuffle")
_stack = op("stack")
_stop = op("stop_gradient")
_top_k = op("top_k")
_transpose = op("transpose")
_truncated = op("stateless_truncated_normal")
_uniform = op("stateless_uniform")


# What a generator's state grows by with each draw.
_STEP = np.array([0, 1], np.uint64)


def set_seed(seed: int) -> None:
    """Begins all random numbers anew."""
    _native.set_seed(int(seed))


def _drawn_key(seed: int | None) -> _Tensor:
    """A key that no draw had before; another one for each seed of a call."""
    key = _native.next_key()
    return key if seed is None else _fold_in(key, int(seed))


def _given_key(name: str, seed: Any) -> _Tensor:
    """The key that two numbers are."""
    seed = _tensor(seed)
    if seed.shape != (2,) or not seed.dtype.is_integer:
        _refuse(name, f"a seed is two integers, not {seed.dtype.name} of shape {seed.shape}")
    return _as(seed, dtypes.uint64)


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float, np.number))


# Distributions, given a key. Parameters that are tensors broadcast against the shape.


def _draw_normal(which: Any, key: _Tensor, shape: Any, mean: Any, stddev: Any, dtype: Any) -> _Tensor:
    shape = _shape(shape)
    if _is_number(mean) and _is_number(stddev):
        return which(key, shape, mean, stddev, dtype)
    drawn = which(key, shape, 0.0, 1.0, dtype)
    return drawn * _as(_tensor(stddev), drawn.dtype) + _as(_tensor(mean), drawn.dtype)


def _draw_uniform(name: str, key: _Tensor, shape: Any, minval: Any, maxval: Any, dtype: Any) -> _Tensor:
    dtype, shape = dtypes.as_dtype(dtype), _shape(shape)
    if not dtype.is_integer:
        maxval = 1 if maxval is None else maxval
        if _is_number(minval) and _is_number(maxval):
            return _uniform(key, shape, minval, maxval, dtype)
        low, high = _as(_tensor(minval), dtype), _as(_tensor(maxval), dtype)
        return low + (high - low) * _uniform(key, shape, 0.0, 1.0, dtype)
    if minval is None and maxval is None:
        return _draw_bits(key, shape, dtype)
    if maxval is None:
        _refuse(name, f"a uniform distribution of {dtype.name} needs maxval", ValueError)
    if _is_number(minval) and _is_number(maxval):
        return _integers(key, shape, int(minval), int(maxval), dtype)
    low, high = _as(_tensor(minval), dtypes.int64), _as(_tensor(maxval), dtypes.int64)
    # 62 bits, of which the range takes what is left over: nobody sees how far from even that is.
    return _as(low + _integers(key, shape, 0, 1 << 62, dtypes.int64) % (high - low), dtype)


def _draw_bits(key: _Tensor, shape: Any, dtype: Any) -> _Tensor:
    """Integers of the whole range of a type."""
    if dtype.size < 8:
        return _integers(key, shape, int(dtype.min), int(dtype.max) + 1, dtype)
    return _bitcast(_integers(key, [*_ints(shape), 2], 0, 1 << 32, dtypes.uint32), dtype)


def _draw_gamma(key: _Tensor, shape: list[int], alpha: Any, beta: Any, dtype: Any) -> _Tensor:
    """Of shape `shape + parameters' shape`."""
    beta = 1.0 if beta is None else beta
    if _is_number(alpha) and _is_number(beta):
        return _gamma(key, shape, alpha, beta, dtype)
    alphas, betas = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(beta, float))
    drawn = [
        _gamma(_fold_in(key, i), shape, float(a), float(b), dtype)
        for i, (a, b) in enumerate(zip(alphas.ravel(), betas.ravel()))
    ]
    return _reshape(_stack(drawn, -1), [*shape, *alphas.shape]) if drawn else \
        _reshape(_tensor([], dtype), [*shape, *alphas.shape])


def _draw_poisson(name: str, key: _Tensor, shape: list[int], lam: Any, dtype: Any) -> _Tensor:
    """Of shape `shape + lam's shape`: how many steps of the distribution function lie below even numbers."""
    lam = _tensor(lam)
    if not lam.size:
        return _reshape(_tensor([], dtype), [*shape, *lam.shape])
    least, most = _ends(lam)
    if not np.isfinite(most) or least < 0:
        _refuse(name, f"means from {least} to {most} do not all exist")
    if most > 1e10:
        _refuse(name, f"a mean of {most} is above 1e10, the largest that counts are drawn for")
    rates = np.asarray(lam).astype(np.float64).reshape(-1, 1)
    # Beyond twelve deviations there is less than the smallest step of an even number.
    first = np.maximum(np.floor(rates - 12 * np.sqrt(rates) - 40), 0)
    steps = _tensor(first + np.arange(int(24 * np.sqrt(most) + 82)))
    rates = _tensor(rates)
    tiny = float(np.finfo(np.float64).tiny)
    mass = exp(steps * log(rates + tiny) - rates - lgamma(steps + 1.0))
    count = int(np.prod(shape))
    even = _uniform(key, [rates.shape[0], count], 0.0, 1.0, dtypes.float64)
    drawn = _cast(_searchsorted(_cumsum(mass, -1), even, True) + _tensor(first.astype(np.int64)), dtype)
    return _reshape(_transpose(drawn), [*shape, *lam.shape])


def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> _Tensor:
    """Numbers of a normal distribution."""
    return _draw_normal(_normal, _drawn_key(seed), shape, mean, stddev, dtype)


def truncated_normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> _Tensor:
    """Numbers of a normal distribution, none further than two standard deviations from the mean."""
    return _draw_normal(_truncated, _drawn_key(seed), shape, mean, stddev, dtype)


def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> _Tensor:
    """Numbers of a uniform distribution, from `minval` up to, and never, `maxval` (1 for floats)."""
    return _draw_uniform("uniform", _drawn_key(seed), shape, minval, maxval, dtype)


def gamma(
    shape: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> _Tensor:
    """Numbers of gamma distributions with mean `alpha / beta`: `shape` of them for each `alpha`."""
    return _draw_gamma(_drawn_key(seed), _ints(shape), alpha, beta, dtype)


def poisson(
    shape: Any, lam: Any, dtype: Any = dtypes.float32, seed: int | None = None, name: str | None = None
) -> _Tensor:
    """Counts of Poisson distributions: `shape` of them for each mean `lam`."""
    return _draw_poisson("poisson", _drawn_key(seed), _ints(shape), lam, dtypes.as_dtype(dtype))


def categorical(
    logits: Any, num_samples: Any, dtype: Any = None, seed: int | None = None, name: str | None = None
) -> _Tensor:
    """Class numbers `[batch, num_samples]`, drawn by unnormalised log-probabilities `[batch, classes]`."""
    drawn = _categorical(_drawn_key(seed), logits, num_samples)
    return _as(drawn, dtypes.int64 if dtype is None else dtypes.as_dtype(dtype))


def shuffle(value: Any, seed: int | None = None, name: str | None = None) -> _Tensor:
    """The slices along the first axis in random order."""
    return _shuffle(_drawn_key(seed), value)


# The same, of two numbers that are the seed: the same seed gives the same numbers each time.


def stateless_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> _Tensor:
    """Numbers of a normal distribution that depend on the seed alone."""
    return _draw_normal(_normal, _given_key("stateless_normal", seed), shape, mean, stddev, dtype)


def stateless_truncated_normal(
    shape: Any,
    seed: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> _Tensor:
    """Numbers within two standard deviations of a normal distribution that depend on the seed alone."""
    return _draw_normal(
        _truncated, _given_key("stateless_truncated_normal", seed), shape, mean, stddev, dtype
    )


def stateless_uniform(
    shape: Any,
    seed: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
    alg: str = "auto_select",
) -> _Tensor:
    """Numbers of a uniform distribution that depend on the seed alone."""
    key = _given_key("stateless_uniform", seed)
    return _draw_uniform("stateless_uniform", key, shape, minval, maxval, dtype)


def stateless_gamma(
    shape: Any,
    seed: Any,
    alpha: Any,
    beta: Any = None,
    dtype: Any = dtypes.float32,
    name: str | None = None,
) -> _Tensor:
    """Numbers of gamma distributions by the seed alone. The shape ends with that of the parameters."""
    key, shape = _given_key("stateless_gamma", seed), _ints(shape)
    own = np.broadcast_shapes(np.shape(alpha), np.shape(1.0 if beta is None else beta))
    return _draw_gamma(key, _without("stateless_gamma", shape, own), alpha, beta, dtype)


def stateless_poisson(
    shape: Any, seed: Any, lam: Any, dtype: Any = dtypes.int32, name: str | None = None
) -> _Tensor:
    """Counts of Poisson distributions by the seed alone. The shape ends with that of the means."""
    key, shape = _given_key("stateless_poisson", seed), _ints(shape)
    outer = _without("stateless_poisson", shape, np.shape(lam))
    return _draw_poisson("stateless_poisson", key, outer, lam, dtypes.as_dtype(dtype))


def _without(name: str, shape: list[int], own: tuple) -> list[int]:
    if tuple(shape[len(shape) - len(own) :]) != tuple(own):
        _refuse(name, f"the shape {shape} ends with that of the parameters, {list(own)}")
    return shape[: len(shape) - len(own)]


def stateless_categorical(
    logits: Any, num_samples: Any, seed: Any, dtype: Any = dtypes.int64, name: str | None = None
) -> _Tensor:
    """Class numbers `[batch, num_samples]` that depend on the logits and the seed alone."""
    key = _given_key("stateless_categorical", seed)
    return _as(_categorical(key, logits, num_samples), dtypes.as_dtype(dtype))


def stateless_shuffle(value: Any, seed: Any, name: str | None = None) -> _Tensor:
    """The slices along the first axis in an order that depends on the seed alone."""
    return _shuffle(_given_key("stateless_shuffle", seed), value)


def stateless_permutation(n: int, seed: Any, name: str | None = None) -> _Tensor:
    """The numbers from 0 to `n - 1`, int64, in an order that depends on the seed alone."""
    return _permutation(_given_key("stateless_permutation", seed), n)


def stateless_bernoulli(shape: Any, seed: Any, p: Any = 0.5, name: str | None = None) -> _Tensor:
    """Booleans by the seed alone that are true with probability `p`: one for all, or one for each."""
    key, shape = _given_key("stateless_bernoulli", seed), _shape(shape)
    return _bernoulli(key, shape, p) if _is_number(p) else _each(key, _broadcast(p, shape))


def stateless_exponential(
    shape: Any, seed: Any, rate: float = 1.0, dtype: Any = dtypes.float32, name: str | None = None
) -> _Tensor:
    """Numbers of an exponential distribution that depend on the seed alone."""
    return _exponential(_given_key("stateless_exponential", seed), _shape(shape), rate, dtype)


def fold_in(seed: Any, data: Any, alg: str = "auto_select") -> _Tensor:
    """Another seed, made of this one and a number: each number gives a seed of its own."""
    seed = _tensor(seed)
    return _as(_fold_in(_given_key("fold_in", seed), data), seed.dtype)


def split(seed: Any, num: int = 2, alg: str = "auto_select") -> _Tensor:
    """`num` seeds, made of one, along the first axis."""
    seed = _tensor(seed)
    key = _given_key("split", seed)
    return _as(_stack([_fold_in(key, i) for i in range(int(num))], 0), seed.dtype)


# Classes, drawn for losses over many of them.


class Candidates(NamedTuple):
    """Classes that were drawn, and how often the true ones, and these, are expected in such a draw."""

    sampled_candidates: _Tensor
    true_expected_count: _Tensor
    sampled_expected_count: _Tensor


def _even(classes: _Tensor, number: int) -> _Tensor:
    return _full(classes.shape, 1.0 / number, dtypes.float32)


def _log_even(classes: _Tensor, number: int) -> _Tensor:
    classes = _as(classes, dtypes.float32)
    return log((classes + 2.0) / (classes + 1.0)) / float(np.log(number + 1.0))


def _drawn(
    name: str, chance: Any, true_classes: Any, num_true: int, count: int, unique: bool, number: int, seed: Any
) -> Candidates:
    true_classes, count, number = _tensor(true_classes), int(count), int(number)
    if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
        _refuse(name, f"true classes are of shape [batch, {num_true}], not {true_classes.shape}")
    if count < 1 or number < 1 or (unique and count > number):
        _refuse(name, f"{count} {'different ' if unique else ''}classes cannot be drawn of {number}")
    key = _drawn_key(seed)
    if unique:
        # Each class comes at a time of its own; the first are taken. As many draws are made as time goes by.
        chances = chance(_range(0, number, 1, dtypes.int64), number)
        negated, classes = _top_k(-_exponential(key, [number], 1.0, dtypes.float32) / chances, count, True)
        tries = -negated[-1]
    else:
        even = _uniform(key, [count], 0.0, 1.0, dtypes.float32)
        spread = even * float(number) if chance is _even else exp(even * float(np.log(number + 1.0))) - 1.0
        classes = _clip(floor(spread), 0.0, float(number - 1))
    classes = _cast(classes, dtypes.int64)

    def expected(which: _Tensor) -> _Tensor:
        part = chance(which, number)
        return -expm1(tries * log1p(-part)) if unique else float(count) * part

    return Candidates(*(_stop(one) for one in (classes, expected(true_classes), expected(classes))))


def uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Classes below `range_max`, all equally likely; all different if they are to be `unique`."""
    name = "uniform_candidate_sampler"
    return _drawn(name, _even, true_classes, num_true, num_sampled, unique, range_max, seed)


def log_uniform_candidate_sampler(
    true_classes: Any,
    num_true: int,
    num_sampled: int,
    unique: bool,
    range_max: int,
    seed: int | None = None,
    name: str | None = None,
) -> Candidates:
    """Classes below `range_max`, the first ones most likely, as words by their rank are."""
    name = "log_uniform_candidate_sampler"
    return _drawn(name, _log_even, true_classes, num_true, num_sampled, unique, range_max, seed)


class Generator:
    """A source of random numbers of its own: what it draws depends on its seed, and on what it drew before.

    >>> import taut as tf
    >>> a, b = tf.random.Generator.from_seed(1), tf.random.Generator.from_seed(1)
    >>> bool(tf.reduce_all(a.normal([3]) == b.normal([3])))
    True
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if (copy_from is None) == (state is None):
            raise ValueError("a generator is made of another one, or of a state: give one of them")
        state = state if copy_from is None else copy_from.state.read_value()
        self._state = Variable(_given_key("Generator", state), trainable=False, name="generator")

    @classmethod
    def from_seed(cls, seed: int, alg: Any = None) -> Generator:
        """A generator that begins at a seed."""
        return cls(state=np.array([int(seed) % 2**64, 0], np.uint64))

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator that begins somewhere else each time."""
        return cls(state=np.random.SeedSequence().generate_state(2, np.uint64))

    @classmethod
    def from_state(cls, state: Any, alg: Any = None) -> Generator:
        """A generator that goes on where another one was."""
        return cls(state=state)

    @property
    def state(self) -> Any:
        """Where it is: a variable of two numbers, which `from_state` takes."""
        return self._state

    def reset_from_seed(self, seed: int) -> None:
        """Begins anew at a seed."""
        self._state.assign(_tensor(np.array([int(seed) % 2**64, 0], np.uint64)))

    def _key(self) -> _Tensor:
        key = self._state.read_value()
        self._state.assign_add(_STEP)
        return key

    def normal(
        self,
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> _Tensor:
        """Numbers of a normal distribution."""
        return _draw_normal(_normal, self._key(), shape, mean, stddev, dtype)

    def truncated_normal(
        self,
        shape: Any,
        mean: Any = 0.0,
        stddev: Any = 1.0,
        dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> _Tensor:
        """Numbers of a normal distribution, none further than two standard deviations from the mean."""
        return _draw_normal(_truncated, self._key(), shape, mean, stddev, dtype)

    def uniform(
        self,
        shape: Any,
        minval: Any = 0,
        maxval: Any = None,
        dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> _Tensor:
        """Numbers of a uniform distribution."""
        return _draw_uniform("uniform", self._key(), shape, minval, maxval, dtype)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64, name: str | None = None) -> _Tensor:
        """Integers of the whole range of a type."""
        return _draw_uniform("uniform_full_int", self._key(), shape, None, None, dtype)

    def make_seeds(self, count: int = 1) -> _Tensor:
        """Seeds for the functions called `stateless_…`: one in each column."""
        key = self._key()
        return _as(_stack([_fold_in(key, i) for i in range(int(count))], 1), dtypes.int64)

    def split(self, count: int = 1) -> list[Generator]:
        """Generators of their own, made of this one."""
        key = self._key()
        return [Generator(state=_fold_in(key, i)) for i in range(int(count))]


_global: Generator | None = None


def get_global_generator() -> Generator:
    """A generator for the whole program. Its seed is drawn when it is first asked for: `set_seed` decides it."""
    global _global
    if _global is None:
        _global = Generator(state=_drawn_key(None))
    return _global


def set_global_generator(generator: Generator) -> None:
    """Makes another generator that of the whole program."""
    global _global
    _global = generator


class experimental:  # noqa: N801
    """Names that TensorFlow keeps here as well."""

    Generator = Generator
    get_global_generator = staticmethod(get_global_generator)
    set_global_generator = staticmethod(set_global_generator)
    stateless_fold_in = staticmethod(fold_in)
    stateless_shuffle = staticmethod(stateless_shuffle)
    stateless_split = staticmethod(split)
