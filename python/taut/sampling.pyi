"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

from .random import Candidates as Candidates
def equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is equal to y; NaN is equal to nothing."""

def log(x: TensorLike, *, name: str | None = ...) -> Any:
    """The natural logarithm of each element; NaN below zero."""

from .random import log_uniform_candidate_sampler as log_uniform_candidate_sampler
def nce_loss(weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int = ..., sampled_values: Any = ..., remove_accidental_hits: bool = ..., name: str = ...) -> Tensor:
    """How well each row tells its true classes from some others: the sum of yes-or-no cross-entropies."""

from .math import reduce_sum as reduce_sum
def sampled_softmax_loss(weights: Any, biases: Any, labels: Any, inputs: Any, num_sampled: int, num_classes: int, num_true: int = ..., sampled_values: Any = ..., remove_accidental_hits: bool = ..., seed: int | None = ..., name: str = ...) -> Tensor:
    """The softmax cross-entropy of each row over its true classes and some others, instead of over all."""
