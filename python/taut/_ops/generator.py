"""Random number generators with a state of their own."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import cast_to, check_count
from .._native import Tensor, as_tensor
from ..variable import Variable
from .index_shuffle import index_shuffle
from .random import (
    check_algorithm,
    draw_normal,
    draw_uniform,
    fold_in,
    next_key,
    seed_key,
    split,
    stateless_binomial,
    stateless_shuffle,
)

if TYPE_CHECKING:
    from .._typing import DTypeLike, ShapeLike, TensorLike

# Added to a generator's state by each draw.
_STEP = np.array([0, 1], np.uint64)


# Factors of the three integers of TensorFlow's states: different states are different seeds.
_OF_THREE = np.array([1, 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03], np.uint64)


def _state_of(name: str, state: Any) -> Tensor:
    """A state: two integers. Three, as TensorFlow's states have, make a seed; of `create_rng_state`, it is its seed."""
    state = as_tensor(state)
    if state.shape == (3,) and state.dtype.is_integer:
        seed = raw.sum(cast_to(state, dtypes.uint64) * as_tensor(_OF_THREE))
        return raw.stack([seed, raw.zeros_like(seed)], 0)
    return seed_key(name, state)


class Generator:
    """A random number generator: its samples depend on its seed and on the number of draws before.

    >>> import taut as tf
    >>> a, b = tf.random.Generator.from_seed(1), tf.random.Generator.from_seed(1)
    >>> bool(tf.reduce_all(a.normal([3]) == b.normal([3])))
    True
    """

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        check_algorithm("Generator", alg)
        if (copy_from is None) == (state is None):
            raise ValueError("exactly one of copy_from and state must be given")
        state = state if copy_from is None else copy_from.state.read_value()
        self._state = Variable(_state_of("Generator", state), trainable=False, name="generator")

    def __repr__(self) -> str:
        # A traced function has no values.
        state = "" if _native.is_tracing() else f" with state {self._state.numpy().tolist()}"
        return f"<tf.random.Generator{state}>"

    @classmethod
    def from_seed(cls, seed: int, alg: Any = None) -> Generator:
        """Creates a generator from a seed."""
        return cls(state=np.array([int(seed) % 2**64, 0], np.uint64), alg=alg)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """Creates a generator from entropy of the operating system."""
        return cls(state=np.random.SeedSequence().generate_state(2, np.uint64), alg=alg)

    @classmethod
    def from_state(cls, state: Any, alg: Any = None) -> Generator:
        """Creates a generator from the state of another one, or from three integers, TensorFlow's states."""
        return cls(state=state, alg=alg)

    @property
    def state(self) -> Variable:
        """The state: a variable of two integers, which `from_state` takes."""
        return self._state

    @property
    def algorithm(self) -> int:
        """The number of the algorithm, which `from_state` takes: that of `tf.random.Algorithm.PHILOX`."""
        return Algorithm.PHILOX.value

    def reset(self, state: Any) -> None:
        """Resets the generator to the state of another one."""
        self._state.assign(_state_of("Generator.reset", state))

    def reset_from_seed(self, seed: int) -> None:
        """Resets the generator to a seed."""
        self._state.assign(as_tensor(np.array([int(seed) % 2**64, 0], np.uint64)))

    def _key(self) -> Tensor:
        key = self._state.read_value()
        self._state.assign_add(_STEP)
        return key

    def normal(
        self,
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Samples from a normal distribution."""
        return draw_normal(raw.stateless_normal, self._key(), shape, mean, stddev, dtype)

    def truncated_normal(
        self,
        shape: ShapeLike,
        mean: TensorLike = 0.0,
        stddev: TensorLike = 1.0,
        dtype: DTypeLike = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Samples from a normal distribution truncated at two standard deviations."""
        return draw_normal(raw.stateless_truncated_normal, self._key(), shape, mean, stddev, dtype)

    def uniform(
        self,
        shape: Any,
        minval: Any = 0,
        maxval: Any = None,
        dtype: Any = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Samples from the uniform distribution on [minval, maxval)."""
        return draw_uniform("uniform", self._key(), shape, minval, maxval, dtype)

    def binomial(
        self,
        shape: ShapeLike,
        counts: TensorLike,
        probs: TensorLike,
        dtype: DTypeLike = dtypes.int32,
        name: str | None = None,
    ) -> Tensor:
        """Samples from binomial distributions: the number of successes of `counts` trials."""
        return stateless_binomial(shape, self._key(), counts, probs, dtype)

    def uniform_full_int(self, shape: Any, dtype: Any = dtypes.uint64, name: str | None = None) -> Tensor:
        """Uniform integers over the whole range of a type."""
        return draw_uniform("uniform_full_int", self._key(), shape, None, None, dtype)

    def make_seeds(self, count: int = 1) -> Tensor:
        """Seeds for the `stateless_` functions, one per column."""
        count = check_count("Generator.make_seeds", "count", int(count))
        key = self._key()
        return cast_to(raw.stack([raw.fold_in(key, i) for i in range(count)], 1), dtypes.int64)

    def split(self, count: int = 1) -> list[Generator]:
        """Creates independent generators from this one."""
        count = check_count("Generator.split", "count", int(count))
        key = self._key()
        return [Generator(state=raw.fold_in(key, i)) for i in range(count)]


_global: Generator | None = None


def get_global_generator() -> Generator:
    """The global generator. `tf.random.set_seed` determines its seed, which is drawn on first use."""
    global _global
    if _global is None:
        _global = Generator(state=next_key(None))
    return _global


def set_global_generator(generator: Generator) -> None:
    """Replaces the global generator."""
    global _global
    _global = generator


class experimental:  # noqa: N801
    """The namespace `tf.random.experimental`."""

    Generator = Generator
    index_shuffle = staticmethod(index_shuffle)
    get_global_generator = staticmethod(get_global_generator)
    set_global_generator = staticmethod(set_global_generator)
    stateless_fold_in = staticmethod(fold_in)
    stateless_shuffle = staticmethod(stateless_shuffle)
    stateless_split = staticmethod(split)
    Algorithm: Any
    create_rng_state: Any


class Algorithm(enum.Enum):
    """Algorithms of random numbers. All numbers here are Philox's."""

    PHILOX = 1
    THREEFRY = 2
    AUTO_SELECT = 3


def create_rng_state(seed: int, alg: Any) -> Tensor:
    """The state of a generator for a seed, of TensorFlow's size: three integers."""
    check_algorithm("create_rng_state", alg)
    return as_tensor(np.array([int(seed) % 2**64, 0, 0], np.uint64).view(np.int64))


experimental.Algorithm = Algorithm
experimental.create_rng_state = staticmethod(create_rng_state)
