"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

def bitwise_and(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The bits that are set in both x and y. Also `x & y` on tensors and numbers."""

def bitwise_or(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The bits that are set in x or y. Also `x | y` on tensors and numbers."""

def bitwise_xor(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The bits that are set in one of x and y and not in the other. Also `x ^ y` on tensors and numbers."""

def invert(x: TensorLike, *, name: str | None = ...) -> Any:
    """Every bit of each element the other way round; of bools, [`logical_not`]. Also `!x` on tensors."""

def left_shift(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The bits of x moved up by y places; 0 once all are out. Also `x << y` on tensors and numbers."""

def right_shift(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The bits of x moved down by y places, keeping the sign; 0 or -1 once all are out. Also `x >> y` on tensors and numbers."""
