"""Mathematics: element by element, over axes, over segments.

Where the meaning is the op table's, a function is a row of that table under TensorFlow's name and parameter
names. What TensorFlow has at its top level as well, `taut` has, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from . import _native, dtypes
from ._common import _alike, _as, _refuse
from .counting import (  # noqa: F401
    bincount,
    confusion_matrix,
    in_top_k,
    invert_permutation,
    segment_max,
    segment_mean,
    segment_min,
    segment_prod,
    segment_sum,
    unsorted_segment_max,
    unsorted_segment_mean,
    unsorted_segment_min,
    unsorted_segment_prod,
    unsorted_segment_sqrt_n,
    unsorted_segment_sum,
)

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor


# Element by element, one argument.
abs = op("abs")  # noqa: A001
acos = op("acos")
acosh = op("acosh")
asin = op("asin")
asinh = op("asinh")
atan = op("atan")
atanh = op("atanh")
ceil = op("ceil")
cos = op("cos")
cosh = op("cosh")
digamma = op("digamma")
erf = op("erf")
erfc = op("erfc")
erfinv = op("erfinv")
exp = op("exp")
expm1 = op("expm1")
floor = op("floor")
is_finite = op("is_finite")
is_inf = op("is_inf")
is_nan = op("is_nan")
lgamma = op("lgamma")
log = op("log")
log1p = op("log1p")
logical_not = op("logical_not")
negative = op("neg", "negative")
reciprocal = op("reciprocal")
rint = op("round", "rint")
round = op("round")  # noqa: A001
rsqrt = op("rsqrt")
sigmoid = op("sigmoid")
sign = op("sign")
sin = op("sin")
sinh = op("sinh")
softplus = op("softplus")
sqrt = op("sqrt")
square = op("square")
tan = op("tan")
tanh = op("tanh")

# Element by element, two arguments.
add = op("add")
atan2 = op("atan2")
divide = op("div", "divide")
divide_no_nan = op("div_no_nan", "divide_no_nan")
equal = op("equal")
floordiv = op("floor_div", "floordiv")
floormod = op("mod", "floormod")
greater = op("greater")
greater_equal = op("greater_equal")
less = op("less")
less_equal = op("less_equal")
logaddexp = op("logaddexp")
logical_and = op("logical_and")
logical_or = op("logical_or")
logical_xor = op("logical_xor")
maximum = op("maximum")
minimum = op("minimum")
mod = op("mod")
multiply = op("mul", "multiply")
not_equal = op("not_equal")
pow = op("pow")  # noqa: A001
squared_difference = op("squared_difference")
subtract = op("sub", "subtract")
truediv = op("div", "truediv")

# Over axes.
_REDUCTION = ["input_tensor", "axis", "keepdims"]
reduce_all = op("all", "reduce_all", _REDUCTION)
reduce_any = op("any", "reduce_any", _REDUCTION)
reduce_logsumexp = op("logsumexp", "reduce_logsumexp", _REDUCTION)
cummax = op("cummax")
cummin = op("cummin")

_argmax = op("argmax")
_argmin = op("argmin")
_cast = op("cast")
_concat = op("concat")
_count_nonzero = op("count_nonzero")
_cumprod = op("cumprod")
_cumsum = op("cumsum")
_full = op("full")
_l2_normalize = op("l2_normalize")
_log_softmax = op("log_softmax")
_lse = op("cumulative_logsumexp")
_max = op("max")
_mean = op("mean")
_min = op("min")
_norm = op("norm")
_prod = op("prod")
_reshape = op("reshape")
_softmax = op("softmax")
_std = op("std")
_sum = op("sum")
_top_k = op("top_k")
_var = op("var")
_where = op("where")
_zeros_like = op("zeros_like")


def _same(name: str, made: _Tensor, x: _Tensor) -> _Tensor:
    """A result in the type of its argument, which counting booleans would lose."""
    if made.dtype == x.dtype:
        return made
    if x.dtype == dtypes.bool:
        _refuse(name, "bool is not supported\n  help: tf.cast makes numbers of booleans", TypeError)
    return _cast(made, x.dtype)


def reduce_sum(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> _Tensor:
    """The sum over some axes, or over all of them, in the tensor's own type."""
    x = _tensor(input_tensor)
    made = _sum(x, axis, keepdims)
    return made if made.dtype == x.dtype else _same("reduce_sum", made, x)


def reduce_prod(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> _Tensor:
    """The product over some axes, or over all of them, in the tensor's own type."""
    x = _tensor(input_tensor)
    return _same("reduce_prod", _prod(x, axis, keepdims), x)


def reduce_mean(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> _Tensor:
    """The mean over some axes, or over all, in the tensor's own type: that of integers is cut off."""
    x = _tensor(input_tensor)
    made = _mean(x, axis, keepdims)
    return made if made.dtype == x.dtype else _same("reduce_mean", made, x)


def _extreme(which: Any, x: _Tensor, axis: Any, keepdims: bool, neutral: str) -> _Tensor:
    if x.size:
        return which(x, axis, keepdims)
    # What is folded may be nothing, and then the answer is what changes nothing.
    shape = _sum(x, axis, keepdims).shape
    if x.dtype.is_floating:
        return _full(shape, -np.inf if neutral == "min" else np.inf, x.dtype)
    return _full(shape, int(getattr(x.dtype, neutral)), x.dtype)


def reduce_max(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> _Tensor:
    """The largest element over some axes, or over all of them; of nothing, the lowest value there is."""
    return _extreme(_max, _tensor(input_tensor), axis, keepdims, "min")


def reduce_min(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> _Tensor:
    """The smallest element over some axes, or over all of them; of nothing, the highest value there is."""
    return _extreme(_min, _tensor(input_tensor), axis, keepdims, "max")


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> _Tensor:
    """The variance of the population over some axes, or over all of them."""
    return _var(input_tensor, axis, 0.0, keepdims)


def reduce_std(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> _Tensor:
    """The standard deviation of the population over some axes, or over all of them."""
    return _std(input_tensor, axis, 0.0, keepdims)


def reduce_euclidean_norm(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> _Tensor:
    """The root of the sum of squares over some axes, or over all of them, in the tensor's own type."""
    x = _tensor(input_tensor)
    return _same("reduce_euclidean_norm", _norm(x, 2.0, axis, keepdims), x)


def count_nonzero(
    input: Any,  # noqa: A002
    axis: Any = None,
    keepdims: bool | None = None,
    dtype: Any = dtypes.int64,
    name: str | None = None,
) -> _Tensor:
    """How many elements are not zero, over some axes or over all of them."""
    return _as(_count_nonzero(input, axis, bool(keepdims)), dtypes.as_dtype(dtype))


def zero_fraction(value: Any, name: str | None = None) -> _Tensor:
    """How large the part of the elements is that are zero, as a float32."""
    value = _tensor(value)
    zeros = _cast(value.size - _count_nonzero(value), dtypes.float32)
    return zeros / float(value.size) if value.size else _full([], np.nan, dtypes.float32)


def argmax(
    input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None  # noqa: A002
) -> _Tensor:
    """Where the largest element along an axis is (the first axis, if none is given); the first of many."""
    return _as(_argmax(input, 0 if axis is None else axis), dtypes.as_dtype(output_type))


def argmin(
    input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None  # noqa: A002
) -> _Tensor:
    """Where the smallest element along an axis is (the first axis, if none is given); the first of many."""
    return _as(_argmin(input, 0 if axis is None else axis), dtypes.as_dtype(output_type))


def cumsum(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> _Tensor:
    """The running sum along an axis, in the tensor's own type."""
    x = _tensor(x)
    return _same("cumsum", _cumsum(x, axis, exclusive, reverse), x)


def cumprod(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> _Tensor:
    """The running product along an axis, in the tensor's own type."""
    x = _tensor(x)
    return _same("cumprod", _cumprod(x, axis, exclusive, reverse), x)


def cumulative_logsumexp(
    x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False, name: str | None = None
) -> _Tensor:
    """The running log(sum(exp(x))) along an axis. That of nothing is minus infinity."""
    x = _tensor(x)
    axis = int(axis)
    if not exclusive or not x.size:
        return _lse(x, axis, reverse)
    if not -x.ndim <= axis < x.ndim:
        _refuse("cumulative_logsumexp", f"axis {axis} is out of range for rank {x.ndim}")
    whole = [slice(None)] * x.ndim
    whole[axis] = slice(1, None) if reverse else slice(None, -1)
    rest = _lse(x[tuple(whole)], axis, reverse)
    shape = list(x.shape)
    shape[axis] = 1
    nothing = _full(shape, -np.inf, x.dtype)
    return _concat([rest, nothing] if reverse else [nothing, rest], axis)


def l2_normalize(
    x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None
) -> _Tensor:
    """The tensor divided by its Euclidean norm along some axes, or along all of them."""
    return _l2_normalize(x, dim if axis is None else axis, epsilon)


def softmax(logits: Any, axis: Any = None, name: str | None = None) -> _Tensor:
    """e^x / sum(e^x) along an axis, the last one if none is given."""
    return _softmax(logits, -1 if axis is None else axis)


def log_softmax(logits: Any, axis: Any = None, name: str | None = None) -> _Tensor:
    """The logarithm of the softmax along an axis, the last one if none is given."""
    return _log_softmax(logits, -1 if axis is None else axis)


class TopK(NamedTuple):
    """The largest elements of rows, and where they were."""

    values: _Tensor
    indices: _Tensor


def top_k(
    input: Any,  # noqa: A002
    k: Any = 1,
    sorted: bool = True,  # noqa: A002
    index_type: Any = dtypes.int32,
    name: str | None = None,
) -> TopK:
    """The `k` largest elements along the last axis, and their positions."""
    values, indices = _top_k(input, k, sorted)
    return TopK(values, _as(indices, dtypes.as_dtype(index_type)))


# Sums and products of several things.


def add_n(inputs: Sequence, name: str | None = None) -> _Tensor:
    """The sum of tensors that all have one shape. A tensor stands for its slices along the first axis."""
    parts = _alike(list(inputs))
    if not parts:
        _refuse("add_n", "no tensors to add")
    for part in parts[1:]:
        if part.shape != parts[0].shape:
            _refuse("add_n", f"tensors of shapes {parts[0].shape} and {part.shape}, where all have one shape")
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def accumulate_n(
    inputs: Sequence, shape: Any = None, tensor_dtype: Any = None, name: str | None = None
) -> _Tensor:
    """The sum of tensors that all have one shape, and the type and shape that are given, if any are."""
    total = add_n(inputs)
    if shape is not None:
        total.shape.assert_is_compatible_with(shape)
    if tensor_dtype is not None and total.dtype != dtypes.as_dtype(tensor_dtype):
        _refuse("accumulate_n", f"{total.dtype.name}, not {dtypes.as_dtype(tensor_dtype).name}", TypeError)
    return total


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """A tensor, or rows of one, times a number."""
    if _tensor(scalar).ndim:
        _refuse("scalar_mul", f"the scalar has shape {_tensor(scalar).shape}")
    return (x if hasattr(x, "dense_shape") else _tensor(x)) * scalar


def polyval(coeffs: Sequence, x: Any, name: str | None = None) -> _Tensor:
    """A polynomial at each element; the coefficient of the highest power comes first."""
    if not isinstance(coeffs, (list, tuple)):
        _refuse("polyval", f"the coefficients are a list, not a {type(coeffs).__name__}", ValueError)
    x = _tensor(x)
    if not coeffs:
        return _zeros_like(x)
    total = _tensor(coeffs[0])
    for coefficient in coeffs[1:]:
        total = coefficient + total * x
    return total


# What is zero, or nothing, at zero. The value that would be infinite is replaced before it is used, so that
# gradients stay finite, too.


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> _Tensor:
    """`x * y`, and 0 where y is 0, even if x is infinite or not a number."""
    x, y = _alike([x, y])
    nothing = logical_and(equal(y, 0), logical_not(is_finite(x)))
    return _where(nothing, _cast(0, x.dtype), x) * y


def reciprocal_no_nan(x: Any, name: str | None = None) -> _Tensor:
    """`1 / x`, or 0 where x is 0."""
    return divide_no_nan(1, _tensor(x))


def xdivy(x: Any, y: Any, name: str | None = None) -> _Tensor:
    """`x / y`, and 0 where x is 0; there, its gradient is 0 as well."""
    x, y = _alike([x, y])
    zero = equal(x, 0)
    made = divide(x, _where(zero, _cast(1, y.dtype), y))
    return _where(zero, _cast(0, made.dtype), made)


def xlogy(x: Any, y: Any, name: str | None = None) -> _Tensor:
    """`x * log(y)`, and 0 where x is 0."""
    x, y = _alike([x, y])
    return x * log(_where(equal(x, 0), _cast(1, y.dtype), y))


def xlog1py(x: Any, y: Any, name: str | None = None) -> _Tensor:
    """`x * log(1 + y)`, and 0 where x is 0."""
    x, y = _alike([x, y])
    return x * log1p(_where(equal(x, 0), _cast(0, y.dtype), y))


# Small functions made of others.


def log_sigmoid(x: Any, name: str | None = None) -> _Tensor:
    """The logarithm of the sigmoid of each element, without underflow."""
    return -softplus(-_tensor(x))


def softsign(features: Any, name: str | None = None) -> _Tensor:
    """`x / (1 + |x|)` of each element."""
    features = _tensor(features)
    return features / (1 + abs(features))


def lbeta(x: Any, name: str | None = None) -> _Tensor:
    """The logarithm of the absolute value of the beta function of the numbers along the last axis."""
    x = _tensor(x)
    if not x.ndim:
        _refuse("lbeta", "a tensor without dimensions has no last axis")
    if not x.shape[-1]:
        return _full(x.shape[:-1], -np.inf, x.dtype)
    return _sum(lgamma(x), -1) - lgamma(_sum(x, -1))


def real(input: Any, name: str | None = None) -> _Tensor:  # noqa: A002
    """The tensor itself: its numbers are real."""
    return _tensor(input)


def imag(input: Any, name: str | None = None) -> _Tensor:  # noqa: A002
    """Zeros: the tensor's numbers are real."""
    return _zeros_like(input)


def conj(x: Any, name: str | None = None) -> _Tensor:
    """The tensor itself: its numbers are real."""
    return _tensor(x)


def angle(input: Any, name: str | None = None) -> _Tensor:  # noqa: A002
    """The angle of real numbers: pi below zero, and 0 elsewhere."""
    x = _tensor(input)
    return _where(x < 0, _cast(np.pi, x.dtype), _zeros_like(x))


def is_non_decreasing(x: Any, name: str | None = None) -> _Tensor:
    """Whether no element, in row-major order, is below the one before it."""
    flat = _reshape(x, [-1])
    return reduce_all(flat[1:] >= flat[:-1])


def is_strictly_increasing(x: Any, name: str | None = None) -> _Tensor:
    """Whether each element, in row-major order, is above the one before it."""
    flat = _reshape(x, [-1])
    return reduce_all(flat[1:] > flat[:-1])
