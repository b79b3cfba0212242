"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

def ctc_loss(labels: Any, logits: Any, label_length: Any, logit_length: Any, logits_time_major: bool = ..., unique: Any = ..., blank_index: int | None = ..., name: str | None = ...) -> Tensor:
    """For each sequence, minus the log-probability of its labels, over all ways to stretch them along time."""

def equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is equal to y; NaN is equal to nothing."""

def logical_and(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where both x and y are true."""

def logical_or(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x or y is true."""

def not_equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is not equal to y; NaN is unequal to everything."""

def reduce_logsumexp(input_tensor: TensorLike, axis: int | Sequence[int] | None = ..., keepdims: bool = ..., *, name: str | None = ...) -> Any:
    """log(sum(exp(x))) over some axes, without overflow; over all of them if `axes` is `None`."""
