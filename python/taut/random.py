"""Random numbers, counted rather than drawn: the same seed gives the same numbers, whatever the number of threads."""

from __future__ import annotations

from typing import Any

from . import _native, dtypes

_normal = _native.Op("stateless_normal")
_uniform = _native.Op("stateless_uniform")
_integers = _native.Op("stateless_integers")


def set_seed(seed: int) -> None:
    """Begins all random numbers anew."""
    _native.set_seed(int(seed))


def normal(
    shape: Any,
    mean: Any = 0.0,
    stddev: Any = 1.0,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> _native.Tensor:
    """Numbers of a normal distribution."""
    return _normal(_key(seed), shape, mean, stddev, dtype)


def uniform(
    shape: Any,
    minval: Any = 0,
    maxval: Any = None,
    dtype: Any = dtypes.float32,
    seed: int | None = None,
    name: str | None = None,
) -> _native.Tensor:
    """Numbers of a uniform distribution, from `minval` up to `maxval`, which is not among them."""
    dtype = dtypes.as_dtype(dtype)
    if dtype.is_integer:
        if maxval is None:
            raise ValueError("a uniform distribution of integers needs maxval")
        return _integers(_key(seed), shape, minval, maxval, dtype)
    return _uniform(_key(seed), shape, minval, 1 if maxval is None else maxval, dtype)


def _key(seed: int | None) -> _native.Tensor:
    key = _native.next_key()
    return key if seed is None else _native.Op("fold_in")(key, int(seed))
