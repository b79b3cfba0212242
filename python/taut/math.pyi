"""Generated from the op table by python/tools/stubs.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from ._native import DType, Tensor
from .shape import TensorShape

TensorLike = Any
DTypeLike = Any

class TopK:
    def __getattr__(self, name: str) -> Any: ...
    def __init__(self, *args: Any, **kwargs: Any) -> None: ...

def abs(x: TensorLike, *, name: str | None = ...) -> Any:
    """The magnitude of each element; the smallest signed integer has none in its type and stays as it is."""

def accumulate_n(inputs: Sequence, shape: Any = ..., tensor_dtype: Any = ..., name: str | None = ...) -> Tensor:
    """The sum of tensors that all have one shape, and the type and shape that are given, if any are."""

def acos(x: TensorLike, *, name: str | None = ...) -> Any:
    """The angle between 0 and pi whose cosine is x; NaN outside -1 to 1."""

def acosh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The inverse hyperbolic cosine of each element; NaN below 1."""

def add(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x + y. Also `x + y` on tensors and numbers."""

def add_n(inputs: Sequence, name: str | None = ...) -> Tensor:
    """The sum of tensors that all have one shape. A tensor stands for its slices along the first axis."""

def angle(input: Any, name: str | None = ...) -> Tensor:
    """The angle of real numbers: pi below zero, and 0 elsewhere."""

def argmax(input: Any, axis: Any = ..., output_type: Any = ..., name: str | None = ...) -> Tensor:
    """Where the largest element along an axis is (the first axis, if none is given); the first of many."""

def argmin(input: Any, axis: Any = ..., output_type: Any = ..., name: str | None = ...) -> Tensor:
    """Where the smallest element along an axis is (the first axis, if none is given); the first of many."""

def asin(x: TensorLike, *, name: str | None = ...) -> Any:
    """The angle between -pi/2 and pi/2 whose sine is x; NaN outside -1 to 1."""

def asinh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The inverse hyperbolic sine of each element."""

def atan(x: TensorLike, *, name: str | None = ...) -> Any:
    """The angle between -pi/2 and pi/2 whose tangent is x."""

def atan2(y: TensorLike, x: TensorLike, *, name: str | None = ...) -> Any:
    """The angle between -pi and pi of the point at abscissa x and ordinate y."""

def atanh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The inverse hyperbolic tangent of each element; NaN outside -1 to 1."""

from .counting import bincount as bincount
def ceil(x: TensorLike, *, name: str | None = ...) -> Any:
    """The smallest whole number that is not below each element."""

from .counting import confusion_matrix as confusion_matrix
def conj(x: Any, name: str | None = ...) -> Tensor:
    """The tensor itself: its numbers are real."""

def cos(x: TensorLike, *, name: str | None = ...) -> Any:
    """The cosine of each element, an angle in radians."""

def cosh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The hyperbolic cosine of each element."""

def count_nonzero(input: Any, axis: Any = ..., keepdims: bool | None = ..., dtype: Any = ..., name: str | None = ...) -> Tensor:
    """How many elements are not zero, over some axes or over all of them."""

def cummax(x: TensorLike, axis: int = ..., reverse: bool = ..., *, name: str | None = ...) -> Any:
    """The largest element so far along an axis; `reverse` runs from the end. NaN wins."""

def cummin(x: TensorLike, axis: int = ..., reverse: bool = ..., *, name: str | None = ...) -> Any:
    """The smallest element so far along an axis; `reverse` runs from the end. NaN wins."""

def cumprod(x: Any, axis: Any = ..., exclusive: bool = ..., reverse: bool = ..., name: str | None = ...) -> Tensor:
    """The running product along an axis, in the tensor's own type."""

def cumsum(x: Any, axis: Any = ..., exclusive: bool = ..., reverse: bool = ..., name: str | None = ...) -> Tensor:
    """The running sum along an axis, in the tensor's own type."""

def cumulative_logsumexp(x: Any, axis: Any = ..., exclusive: bool = ..., reverse: bool = ..., name: str | None = ...) -> Tensor:
    """The running log(sum(exp(x))) along an axis. That of nothing is minus infinity."""

def digamma(x: TensorLike, *, name: str | None = ...) -> Any:
    """The derivative of [`lgamma`]; NaN at the negative integers."""

def divide(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x / y, in floating point: integers give `float64`. Also `x / y` on tensors and numbers."""

def divide_no_nan(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """`x / y`, or 0 where y is 0."""

def equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is equal to y; NaN is equal to nothing."""

def erf(x: TensorLike, *, name: str | None = ...) -> Any:
    """The error function: how much of a normal distribution of variance 1/2 lies within x of its mean."""

def erfc(x: TensorLike, *, name: str | None = ...) -> Any:
    """`1 - erf(x)`, accurate also where that is near zero."""

def erfinv(x: TensorLike, *, name: str | None = ...) -> Any:
    """The number whose error function is x; NaN outside -1 to 1."""

def exp(x: TensorLike, *, name: str | None = ...) -> Any:
    """e to the power of each element."""

def expm1(x: TensorLike, *, name: str | None = ...) -> Any:
    """`exp(x) - 1`, accurate also where x is near zero."""

def floor(x: TensorLike, *, name: str | None = ...) -> Any:
    """The largest whole number that is not above each element."""

def floordiv(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The largest whole number that is not above `x / y`, in the operands' own type; an integer divided by 0 is 0."""

def floormod(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """What [`floor_div`] leaves over: `x - floor_div(x, y) * y`, of the sign of y as in Python; an integer modulo 0 is 0."""

def greater(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is greater than y. NaN compares as false."""

def greater_equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is greater than or equal to y. NaN compares as false."""

def imag(input: Any, name: str | None = ...) -> Tensor:
    """Zeros: the tensor's numbers are real."""

from .counting import in_top_k as in_top_k
from .counting import invert_permutation as invert_permutation
def is_finite(x: TensorLike, *, name: str | None = ...) -> Any:
    """True where an element is neither infinite nor NaN."""

def is_inf(x: TensorLike, *, name: str | None = ...) -> Any:
    """True where an element is infinite, of either sign."""

def is_nan(x: TensorLike, *, name: str | None = ...) -> Any:
    """True where an element is not a number."""

def is_non_decreasing(x: Any, name: str | None = ...) -> Tensor:
    """Whether no element, in row-major order, is below the one before it."""

def is_strictly_increasing(x: Any, name: str | None = ...) -> Tensor:
    """Whether each element, in row-major order, is above the one before it."""

def l2_normalize(x: Any, axis: Any = ..., epsilon: float = ..., name: str | None = ..., dim: Any = ...) -> Tensor:
    """The tensor divided by its Euclidean norm along some axes, or along all of them."""

def lbeta(x: Any, name: str | None = ...) -> Tensor:
    """The logarithm of the absolute value of the beta function of the numbers along the last axis."""

def less(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is less than y. NaN compares as false."""

def less_equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is less than or equal to y. NaN compares as false."""

def lgamma(x: TensorLike, *, name: str | None = ...) -> Any:
    """The natural logarithm of the absolute value of the gamma function; infinite at 0 and the negative integers."""

def log(x: TensorLike, *, name: str | None = ...) -> Any:
    """The natural logarithm of each element; NaN below zero."""

def log1p(x: TensorLike, *, name: str | None = ...) -> Any:
    """`log(1 + x)`, accurate also where x is near zero."""

def log_sigmoid(x: Any, name: str | None = ...) -> Tensor:
    """The logarithm of the sigmoid of each element, without underflow."""

def log_softmax(logits: Any, axis: Any = ..., name: str | None = ...) -> Tensor:
    """The logarithm of the softmax along an axis, the last one if none is given."""

def logaddexp(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """log(exp(x) + exp(y)), without overflow."""

def logical_and(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where both x and y are true."""

def logical_not(x: TensorLike, *, name: str | None = ...) -> Any:
    """True where an element is zero or false."""

def logical_or(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x or y is true."""

def logical_xor(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where one of x and y is true and the other is not."""

def maximum(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The larger of x and y; NaN if either is."""

def minimum(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """The smaller of x and y; NaN if either is."""

def mod(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """What [`floor_div`] leaves over: `x - floor_div(x, y) * y`, of the sign of y as in Python; an integer modulo 0 is 0."""

def multiply(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x * y. Also `x * y` on tensors and numbers."""

def multiply_no_nan(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """`x * y`, and 0 where y is 0, even if x is infinite or not a number."""

def negative(x: TensorLike, *, name: str | None = ...) -> Any:
    """`-x`; integers wrap. Also `-x` on tensors."""

def not_equal(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """True where x is not equal to y; NaN is unequal to everything."""

def polyval(coeffs: Sequence, x: Any, name: str | None = ...) -> Tensor:
    """A polynomial at each element; the coefficient of the highest power comes first."""

def pow(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x to the power of y. Integers wrap; of a negative power they keep what an integer can: the reciprocal, truncated."""

def real(input: Any, name: str | None = ...) -> Tensor:
    """The tensor itself: its numbers are real."""

def reciprocal(x: TensorLike, *, name: str | None = ...) -> Any:
    """`1 / x`, in floating point as all division: of integers it is `float64`."""

def reciprocal_no_nan(x: Any, name: str | None = ...) -> Tensor:
    """`1 / x`, or 0 where x is 0."""

def reduce_all(input_tensor: TensorLike, axis: int | Sequence[int] | None = ..., keepdims: bool = ..., *, name: str | None = ...) -> Any:
    """Whether all elements are true (not zero), over some axes; over all of them if `axes` is `None`."""

def reduce_any(input_tensor: TensorLike, axis: int | Sequence[int] | None = ..., keepdims: bool = ..., *, name: str | None = ...) -> Any:
    """Whether any element is true (not zero), over some axes; over all of them if `axes` is `None`."""

def reduce_euclidean_norm(input_tensor: Any, axis: Any = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The root of the sum of squares over some axes, or over all of them, in the tensor's own type."""

def reduce_logsumexp(input_tensor: TensorLike, axis: int | Sequence[int] | None = ..., keepdims: bool = ..., *, name: str | None = ...) -> Any:
    """log(sum(exp(x))) over some axes, without overflow; over all of them if `axes` is `None`."""

def reduce_max(input_tensor: Any, axis: Any = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The largest element over some axes, or over all of them; of nothing, the lowest value there is."""

def reduce_mean(input_tensor: Any, axis: Any = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The mean over some axes, or over all, in the tensor's own type: that of integers is cut off."""

def reduce_min(input_tensor: Any, axis: Any = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The smallest element over some axes, or over all of them; of nothing, the highest value there is."""

def reduce_prod(input_tensor: Any, axis: Any = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The product over some axes, or over all of them, in the tensor's own type."""

def reduce_std(input_tensor: Any, axis: Any = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The standard deviation of the population over some axes, or over all of them."""

def reduce_sum(input_tensor: Any, axis: Any = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The sum over some axes, or over all of them, in the tensor's own type."""

def reduce_variance(input_tensor: Any, axis: Any = ..., keepdims: bool = ..., name: str | None = ...) -> Tensor:
    """The variance of the population over some axes, or over all of them."""

def rint(x: TensorLike, *, name: str | None = ...) -> Any:
    """The nearest whole number; halves go to the even one."""

def round(x: TensorLike, *, name: str | None = ...) -> Any:
    """The nearest whole number; halves go to the even one."""

def rsqrt(x: TensorLike, *, name: str | None = ...) -> Any:
    """`1 / sqrt(x)`."""

def scalar_mul(scalar: Any, x: Any, name: str | None = ...) -> Any:
    """A tensor, or rows of one, times a number."""

def segment_max(data: TensorLike, segment_ids: TensorLike, *, name: str | None = ...) -> Any:
    """The largest of the rows of `data` with equal ids: row `i` of the result is made of those with id `i`. Ids must not decrease;"""

def segment_mean(data: TensorLike, segment_ids: TensorLike, *, name: str | None = ...) -> Any:
    """The mean of the rows of `data` with equal ids: row `i` of the result is made of those with id `i`. Ids must not decrease;"""

def segment_min(data: TensorLike, segment_ids: TensorLike, *, name: str | None = ...) -> Any:
    """The smallest of the rows of `data` with equal ids: row `i` of the result is made of those with id `i`. Ids must not decrease;"""

def segment_prod(data: TensorLike, segment_ids: TensorLike, *, name: str | None = ...) -> Any:
    """The product of the rows of `data` with equal ids: row `i` of the result is made of those with id `i`. Ids must not decrease;"""

def segment_sum(data: TensorLike, segment_ids: TensorLike, *, name: str | None = ...) -> Any:
    """The sum of the rows of `data` with equal ids: row `i` of the result is made of those with id `i`. Ids must not decrease;"""

def sigmoid(x: TensorLike, *, name: str | None = ...) -> Any:
    """`1 / (1 + exp(-x))`, between 0 and 1."""

def sign(x: TensorLike, *, name: str | None = ...) -> Any:
    """-1, 0 or 1, as each element is below, at or above zero; NaN stays NaN."""

def sin(x: TensorLike, *, name: str | None = ...) -> Any:
    """The sine of each element, an angle in radians."""

def sinh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The hyperbolic sine of each element."""

def softmax(logits: Any, axis: Any = ..., name: str | None = ...) -> Tensor:
    """e^x / sum(e^x) along an axis, the last one if none is given."""

def softplus(features: TensorLike, *, name: str | None = ...) -> Any:
    """`log(1 + exp(features))`, a smooth [`relu`](super::relu()), without overflow."""

def softsign(features: Any, name: str | None = ...) -> Tensor:
    """`x / (1 + |x|)` of each element."""

def sqrt(x: TensorLike, *, name: str | None = ...) -> Any:
    """The square root of each element; NaN below zero."""

def square(x: TensorLike, *, name: str | None = ...) -> Any:
    """The square of each element, `x * x`; integers wrap."""

def squared_difference(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """`(x - y) * (x - y)`; integers wrap."""

def subtract(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x - y. Also `x - y` on tensors and numbers."""

def tan(x: TensorLike, *, name: str | None = ...) -> Any:
    """The tangent of each element, an angle in radians."""

def tanh(x: TensorLike, *, name: str | None = ...) -> Any:
    """The hyperbolic tangent of each element, between -1 and 1."""

def top_k(input: Any, k: Any = ..., sorted: bool = ..., index_type: Any = ..., name: str | None = ...) -> TopK:
    """The `k` largest elements along the last axis, and their positions."""

def truediv(x: TensorLike, y: TensorLike, *, name: str | None = ...) -> Any:
    """x / y, in floating point: integers give `float64`. Also `x / y` on tensors and numbers."""

from .counting import unsorted_segment_max as unsorted_segment_max
from .counting import unsorted_segment_mean as unsorted_segment_mean
from .counting import unsorted_segment_min as unsorted_segment_min
from .counting import unsorted_segment_prod as unsorted_segment_prod
from .counting import unsorted_segment_sqrt_n as unsorted_segment_sqrt_n
from .counting import unsorted_segment_sum as unsorted_segment_sum
def xdivy(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """`x / y`, and 0 where x is 0; there, its gradient is 0 as well."""

def xlog1py(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """`x * log(1 + y)`, and 0 where x is 0."""

def xlogy(x: Any, y: Any, name: str | None = ...) -> Tensor:
    """`x * log(y)`, and 0 where x is 0."""

def zero_fraction(value: Any, name: str | None = ...) -> Tensor:
    """How large the part of the elements is that are zero, as a float32."""
