"""Elementwise functions that are composed of ops."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, overload

from .. import _raw_ops as raw, dtypes
from .._common import refuse, unify_dtypes
from .._native import Tensor, as_tensor

if TYPE_CHECKING:
    from .._typing import DTypeLike, ShapeLike, TensorLike

if TYPE_CHECKING:
    from .._typing import TensorLike
    from ..indexed_slices import IndexedSlices


def truncatediv(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Divides `x / y` and rounds toward zero."""
    x, y = unify_dtypes([x, y])
    if x.dtype.is_integer and y.dtype.is_integer:
        return raw.floor_div(x - raw.truncate_mod(x, y), y)
    return raw.trunc(raw.div(x, y))


def add_n(inputs: Sequence, name: str | None = None) -> Tensor:
    """Adds tensors of equal shape. A single tensor is summed over its first axis."""
    parts = unify_dtypes(list(inputs))
    if not parts:
        refuse("add_n", "expected at least one tensor, got an empty list")
    for part in parts[1:]:
        if part.shape != parts[0].shape:
            refuse("add_n", f"all tensors must have one shape, got {parts[0].shape} and {part.shape}")
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def accumulate_n(
    inputs: Sequence, shape: ShapeLike | None = None, tensor_dtype: DTypeLike = None, name: str | None = None
) -> Tensor:
    """Adds tensors of equal shape, checking the shape and element type if given."""
    total = add_n(inputs)
    if shape is not None:
        total.shape.assert_is_compatible_with(shape)
    if tensor_dtype is not None and total.dtype != dtypes.as_dtype(tensor_dtype):
        refuse(
            "accumulate_n", f"expected {dtypes.as_dtype(tensor_dtype).name} tensors, got {total.dtype.name}", TypeError
        )
    return total


@overload
def scalar_mul(scalar: TensorLike, x: IndexedSlices, name: str | None = None) -> IndexedSlices: ...
@overload
def scalar_mul(scalar: TensorLike, x: TensorLike, name: str | None = None) -> Tensor: ...
def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """Multiplies a tensor or an IndexedSlices by a scalar."""
    if as_tensor(scalar).ndim:
        refuse("scalar_mul", f"scalar must have rank 0, got shape {as_tensor(scalar).shape}")
    return (x if hasattr(x, "dense_shape") else as_tensor(x)) * scalar


def polyval(coeffs: Sequence, x: TensorLike, name: str | None = None) -> Tensor:
    """Evaluates a polynomial elementwise by Horner's scheme; the coefficient of the highest power comes first."""
    if not isinstance(coeffs, (list, tuple)):
        refuse("polyval", f"coeffs must be a list, got {type(coeffs).__name__}", ValueError)
    x = as_tensor(x)
    if not coeffs:
        return raw.zeros_like(x)
    total = as_tensor(coeffs[0])
    for coefficient in coeffs[1:]:
        total = coefficient + total * x
    return total


# Functions that are 0 where a factor is 0. The operand that would give an infinite value is replaced before it is used,
# so that gradients stay finite, too.


def multiply_no_nan(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Computes `x * y`, and 0 where y is 0, even if x is infinite or NaN."""
    x, y = unify_dtypes([x, y])
    if not x.dtype.is_complex:
        return raw.mul_no_nan(x, y)
    is_zero = raw.equal(y, 0)
    return raw.where(is_zero, raw.zeros([], y.dtype), raw.mul(raw.where(is_zero, raw.zeros([], x.dtype), x), y))


def reciprocal_no_nan(x: TensorLike, name: str | None = None) -> Tensor:
    """Computes `1 / x`, and 0 where x is 0."""
    return raw.div_no_nan(1, as_tensor(x))


def xdivy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Computes `x / y`, and 0 where x is 0; the gradient there is 0, too."""
    x, y = unify_dtypes([x, y])
    zero = raw.equal(x, 0)
    made = raw.div(x, raw.where(zero, raw.cast(1, y.dtype), y))
    return raw.where(zero, raw.cast(0, made.dtype), made)


def xlogy(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Computes `x * log(y)`, and 0 where x is 0."""
    x, y = unify_dtypes([x, y])
    return x * raw.log(raw.where(raw.equal(x, 0), raw.cast(1, y.dtype), y))


def xlog1py(x: TensorLike, y: TensorLike, name: str | None = None) -> Tensor:
    """Computes `x * log(1 + y)`, and 0 where x is 0."""
    x, y = unify_dtypes([x, y])
    return x * raw.log1p(raw.where(raw.equal(x, 0), raw.cast(0, y.dtype), y))


def log_sigmoid(x: TensorLike, name: str | None = None) -> Tensor:
    """Computes the logarithm of the sigmoid, `-softplus(-x)`, without underflow."""
    return -raw.softplus(-as_tensor(x))


def softsign(features: TensorLike, name: str | None = None) -> Tensor:
    """Computes `x / (1 + |x|)`."""
    from ..custom_gradient import custom_gradient

    @custom_gradient
    def computed(x: Tensor) -> tuple[Tensor, Callable]:
        # The derivative of the quotient would be NaN at infinities.
        return x / (1 + raw.abs(x)), lambda upstream: upstream / raw.square(1 + raw.abs(x))

    return computed(as_tensor(features))


def real(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns the real part of each element."""
    return raw.real(input)


def imag(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns the imaginary part of each element: zeros of real numbers."""
    return raw.imag(input)


def conj(x: TensorLike, name: str | None = None) -> Tensor:
    """Returns the complex conjugate of each element."""
    return raw.conj(x)


def angle(input: TensorLike, name: str | None = None) -> Tensor:
    """Returns the angle of each element in the complex plane, in radians: 0 or pi of real numbers."""
    return raw.angle(input)


def complex(real: TensorLike, imag: TensorLike, name: str | None = None) -> Tensor:
    """Makes complex numbers of their real and imaginary parts, which are float32 or float64 both."""
    first, second = unify_dtypes([real, imag])
    for part in (first, second):
        if part.dtype not in (dtypes.float32, dtypes.float64):
            refuse("complex", f"real and imag must be float32 or float64, got {part.dtype.name}", TypeError)
    if first.dtype != second.dtype:
        message = f"real and imag must have one type, got {first.dtype.name} and {second.dtype.name}"
        refuse("complex", message, TypeError)
    return raw.complex(first, second)
