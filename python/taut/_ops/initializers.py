"""Initializers: callables that create the initial value of a variable from a shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import _native, dtypes
from ..tensor import constant
from .creation import ones, zeros
from .random import normal, uniform

if TYPE_CHECKING:
    from .._typing import DTypeLike, ShapeLike, TensorLike


class Initializer:
    """Base class of initializers. Its attributes are its configuration."""

    def get_config(self) -> dict[str, Any]:
        """The configuration, from which `from_config` creates an equal initializer."""
        return dict(vars(self))

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Any:
        """Creates an initializer from a configuration."""
        return cls(**config)


def _dtype(dtype: DTypeLike) -> _native.DType:
    return dtypes.float32 if dtype is None else dtypes.as_dtype(dtype)


class zeros_initializer(Initializer):  # noqa: N801
    """Initializes with zeros."""

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None) -> _native.Tensor:
        """Creates a tensor of this shape."""
        return zeros(shape, _dtype(dtype))


class ones_initializer(Initializer):  # noqa: N801
    """Initializes with ones."""

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None) -> _native.Tensor:
        """Creates a tensor of this shape."""
        return ones(shape, _dtype(dtype))


class constant_initializer(Initializer):  # noqa: N801
    """Initializes with one value, or with these elements."""

    def __init__(self, value: TensorLike = 0) -> None:
        if isinstance(value, _native.Array):
            raise TypeError(f"constant_initializer: value must be a number, a list or an array, got {value!r}")
        self.value = value

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None) -> _native.Tensor:
        """Creates a tensor of this shape."""
        return constant(self.value, dtype, shape)


class random_normal_initializer(Initializer):  # noqa: N801
    """Initializes with samples from a normal distribution."""

    def __init__(self, mean: TensorLike = 0.0, stddev: TensorLike = 0.05, seed: int | None = None) -> None:
        self.mean, self.stddev, self.seed = mean, stddev, seed

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None) -> _native.Tensor:
        """Creates a tensor of this shape."""
        return normal(shape, self.mean, self.stddev, _dtype(dtype), self.seed)


class random_uniform_initializer(Initializer):  # noqa: N801
    """Initializes with samples from a uniform distribution."""

    def __init__(self, minval: TensorLike = -0.05, maxval: TensorLike = 0.05, seed: int | None = None) -> None:
        self.minval, self.maxval, self.seed = minval, maxval, seed

    def __call__(self, shape: ShapeLike, dtype: DTypeLike = None) -> _native.Tensor:
        """Creates a tensor of this shape."""
        return uniform(shape, self.minval, self.maxval, _dtype(dtype), self.seed)
