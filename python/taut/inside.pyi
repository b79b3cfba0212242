"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

from .errors import OperatorNotAllowedInGraphError as OperatorNotAllowedInGraphError
from .spec import TensorSpec as TensorSpec
def numpy_function(func: Callable | None = ..., inp: Sequence | None = ..., Tout: Any = ..., stateful: bool = ..., name: str | None = ...) -> Any:
    """What a function of arrays makes of tensors, as tensors of the types `Tout`, without a gradient."""

def print(*inputs: Any, output_stream: Any = ..., summarize: int = ..., sep: str = ..., end: str = ..., name: str | None = ...) -> None:
    """Prints values to the error stream, or another one: the first and the last `summarize` elements of axes."""

def py_function(func: Callable | None = ..., inp: Sequence | None = ..., Tout: Any = ..., name: str | None = ...) -> Any:
    """What a Python function makes of tensors, as tensors of the types `Tout`. Gradients pass through it where it is called at once,"""
