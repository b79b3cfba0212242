"""First values of variables: objects that make tensors of a shape."""

from __future__ import annotations

from typing import Any

from . import _native, dtypes
from .ops import ones, zeros
from .random import normal, uniform
from .tensor import constant


class _Initializer:
    """Makes tensors; two with the same settings make the same kind of them."""

    def get_config(self) -> dict[str, Any]:
        """Its settings, from which `from_config` makes another one."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """One with these settings."""
        return cls(**config)


def _dtype(dtype: Any) -> _native.DType:
    return dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)


class zeros_initializer(_Initializer):  # noqa: N801
    """Makes zeros."""

    def __call__(self, shape: Any, dtype: Any = None) -> _native.Tensor:
        return zeros(shape, _dtype(dtype))


class ones_initializer(_Initializer):  # noqa: N801
    """Makes ones."""

    def __call__(self, shape: Any, dtype: Any = None) -> _native.Tensor:
        return ones(shape, _dtype(dtype))


class constant_initializer(_Initializer):  # noqa: N801
    """Makes tensors of one value, or of these elements."""

    def __init__(self, value: Any = 0) -> None:
        self.value = value

    def __call__(self, shape: Any, dtype: Any = None) -> _native.Tensor:
        return constant(self.value, dtype, shape)


class random_normal_initializer(_Initializer):  # noqa: N801
    """Makes numbers of a normal distribution."""

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: Any, dtype: Any = None) -> _native.Tensor:
        return normal(shape, self.mean, self.stddev, _dtype(dtype), self.seed)


class random_uniform_initializer(_Initializer):  # noqa: N801
    """Makes numbers of a uniform distribution."""

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: Any, dtype: Any = None) -> _native.Tensor:
        return uniform(shape, self.minval, self.maxval, _dtype(dtype), self.seed)
