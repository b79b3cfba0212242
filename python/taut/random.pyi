"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

class Candidates:
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

class Generator:
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

from .variable import Variable as Variable
def categorical(logits: Any, num_samples: Any, dtype: Any = ..., seed: int | None = ..., name: str | None = ...) -> Tensor:
    """Class numbers `[batch, num_samples]`, drawn by unnormalised log-probabilities `[batch, classes]`."""

def exp(x: TensorLike, *, name: str | None = ...) -> Any:
    """e to the power of each element."""

class experimental:
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def expm1(x: TensorLike, *, name: str | None = ...) -> Any:
    """`exp(x) - 1`, accurate also where x is near zero."""

def floor(x: TensorLike, *, name: str | None = ...) -> Any:
    """The largest whole number that is not above each element."""

def fold_in(seed: Any, data: Any, alg: str = ...) -> Tensor:
    """Another seed, made of this one and a number: each number gives a seed of its own."""

def gamma(shape: Any, alpha: Any, beta: Any = ..., dtype: Any = ..., seed: int | None = ..., name: str | None = ...) -> Tensor:
    """Numbers of gamma distributions with mean `alpha / beta`: `shape` of them for each `alpha`."""

def get_global_generator() -> Generator:
    """A generator for the whole program. Its seed is drawn when it is first asked for: `set_seed` decides it."""

def lgamma(x: TensorLike, *, name: str | None = ...) -> Any:
    """The natural logarithm of the absolute value of the gamma function; infinite at 0 and the negative integers."""

def log(x: TensorLike, *, name: str | None = ...) -> Any:
    """The natural logarithm of each element; NaN below zero."""

def log1p(x: TensorLike, *, name: str | None = ...) -> Any:
    """`log(1 + x)`, accurate also where x is near zero."""

def log_uniform_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = ..., name: str | None = ...) -> Candidates:
    """Classes below `range_max`, the first ones most likely, as words by their rank are."""

def normal(shape: Any, mean: Any = ..., stddev: Any = ..., dtype: Any = ..., seed: int | None = ..., name: str | None = ...) -> Tensor:
    """Numbers of a normal distribution."""

def poisson(shape: Any, lam: Any, dtype: Any = ..., seed: int | None = ..., name: str | None = ...) -> Tensor:
    """Counts of Poisson distributions: `shape` of them for each mean `lam`."""

def set_global_generator(generator: Generator) -> None:
    """Makes another generator that of the whole program."""

def set_seed(seed: int) -> None:
    """Begins all random numbers anew."""

def shuffle(value: Any, seed: int | None = ..., name: str | None = ...) -> Tensor:
    """The slices along the first axis in random order."""

def split(seed: Any, num: int = ..., alg: str = ...) -> Tensor:
    """`num` seeds, made of one, along the first axis."""

def stateless_bernoulli(shape: Any, seed: Any, p: Any = ..., name: str | None = ...) -> Tensor:
    """Booleans by the seed alone that are true with probability `p`: one for all, or one for each."""

def stateless_categorical(logits: Any, num_samples: Any, seed: Any, dtype: Any = ..., name: str | None = ...) -> Tensor:
    """Class numbers `[batch, num_samples]` that depend on the logits and the seed alone."""

def stateless_exponential(shape: Any, seed: Any, rate: float = ..., dtype: Any = ..., name: str | None = ...) -> Tensor:
    """Numbers of an exponential distribution that depend on the seed alone."""

def stateless_gamma(shape: Any, seed: Any, alpha: Any, beta: Any = ..., dtype: Any = ..., name: str | None = ...) -> Tensor:
    """Numbers of gamma distributions by the seed alone. The shape ends with that of the parameters."""

def stateless_normal(shape: Any, seed: Any, mean: Any = ..., stddev: Any = ..., dtype: Any = ..., name: str | None = ..., alg: str = ...) -> Tensor:
    """Numbers of a normal distribution that depend on the seed alone."""

def stateless_permutation(n: int, seed: Any, name: str | None = ...) -> Tensor:
    """The numbers from 0 to `n - 1`, int64, in an order that depends on the seed alone."""

def stateless_poisson(shape: Any, seed: Any, lam: Any, dtype: Any = ..., name: str | None = ...) -> Tensor:
    """Counts of Poisson distributions by the seed alone. The shape ends with that of the means."""

def stateless_shuffle(value: Any, seed: Any, name: str | None = ...) -> Tensor:
    """The slices along the first axis in an order that depends on the seed alone."""

def stateless_truncated_normal(shape: Any, seed: Any, mean: Any = ..., stddev: Any = ..., dtype: Any = ..., name: str | None = ..., alg: str = ...) -> Tensor:
    """Numbers within two standard deviations of a normal distribution that depend on the seed alone."""

def stateless_uniform(shape: Any, seed: Any, minval: Any = ..., maxval: Any = ..., dtype: Any = ..., name: str | None = ..., alg: str = ...) -> Tensor:
    """Numbers of a uniform distribution that depend on the seed alone."""

def truncated_normal(shape: Any, mean: Any = ..., stddev: Any = ..., dtype: Any = ..., seed: int | None = ..., name: str | None = ...) -> Tensor:
    """Numbers of a normal distribution, none further than two standard deviations from the mean."""

def uniform(shape: Any, minval: Any = ..., maxval: Any = ..., dtype: Any = ..., seed: int | None = ..., name: str | None = ...) -> Tensor:
    """Numbers of a uniform distribution, from `minval` up to, and never, `maxval` (1 for floats)."""

def uniform_candidate_sampler(true_classes: Any, num_true: int, num_sampled: int, unique: bool, range_max: int, seed: int | None = ..., name: str | None = ...) -> Candidates:
    """Classes below `range_max`, all equally likely; all different if they are to be `unique`."""
