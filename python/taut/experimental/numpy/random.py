"""The namespace `tf.experimental.numpy.random`."""

from __future__ import annotations

from typing import Any

from ... import _namespace
from ..._ops import random as draws
from ._base import cast, tensor


def _shape(size: Any) -> list[int]:
    return [] if size is None else [size] if isinstance(size, int) else list(size)


def seed(s: int) -> None:
    """Sets the seed."""
    draws.set_seed(s)


def standard_normal(size: Any = None) -> Any:
    """Samples of the standard normal distribution."""
    return draws.normal(_shape(size), dtype="float64")


def randn(*args: int) -> Any:
    """Samples of the standard normal distribution, of this shape."""
    return standard_normal(args)


def uniform(low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
    """Samples of the uniform distribution on [low, high)."""
    first, last = cast(tensor(low), "float64"), cast(tensor(high), "float64")
    shape = list((first + last).shape) if size is None else _shape(size)
    return first + (last - first) * draws.uniform(shape, dtype="float64")


def random(size: Any = None) -> Any:
    """Samples of the uniform distribution on [0, 1)."""
    return uniform(0.0, 1.0, _shape(size))


def rand(*size: int) -> Any:
    """Samples of the uniform distribution on [0, 1), of this shape."""
    return uniform(0.0, 1.0, size)


def randint(low: int, high: int | None = None, size: Any = None, dtype: Any = None) -> Any:
    """Integers in [low, high), or [0, low) if `high` is None."""
    first, last = (0, low) if high is None else (low, high)
    return cast(draws.uniform(_shape(size), first, last, dtype="int64"), dtype or "int64")


def poisson(lam: float = 1.0, size: Any = None) -> Any:
    """Samples of the Poisson distribution."""
    return cast(draws.poisson(_shape(size), float(lam), dtype="float64"), "int64")


__all__ = ["poisson", "rand", "randint", "randn", "random", "seed", "standard_normal", "uniform"]
__getattr__, __dir__ = _namespace.plain(__name__)
