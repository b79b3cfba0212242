"""Mathematics: element by element, over axes, over segments.

Where the meaning is the op table's, a function is a row of that table under TensorFlow's name and parameter names. What
TensorFlow has at its top level as well, `taut` has, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from . import _native, dtypes
from .errors import InvalidArgumentError

op = _native.Op
_tensor = _native.as_tensor
_Tensor = _native.Tensor


def _refuse(name: str, message: str, kind: type[Exception] = InvalidArgumentError) -> NoReturn:
    """Raises an error that names the function and the line that called it."""
    raise kind(f"{name}: {message}\n  at {_native.calling_line()}")


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
trunc = op("trunc")

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

# Over segments of rows.
segment_max = op("segment_max")
segment_mean = op("segment_mean")
segment_min = op("segment_min")
segment_prod = op("segment_prod")
segment_sum = op("segment_sum")

# Over axes.
_REDUCTION = ["input_tensor", "axis", "keepdims"]
reduce_all = op("all", "reduce_all", _REDUCTION)
reduce_any = op("any", "reduce_any", _REDUCTION)
reduce_logsumexp = op("logsumexp", "reduce_logsumexp", _REDUCTION)
cummax = op("cummax")
cummin = op("cummin")

_argmax = op("argmax")
_argmin = op("argmin")
_bincount = op("bincount")
_boolean_mask = op("boolean_mask")
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
_range = op("range")
_reshape = op("reshape")
_scatter_nd = op("scatter_nd")
_softmax = op("softmax")
_stack = op("stack")
_std = op("std")
_sum = op("sum")
_take = op("take_along_axis")
_top_k = op("top_k")
_var = op("var")
_where = op("where")
_zeros_like = op("zeros_like")


def _as(x: _Tensor, dtype: Any) -> _Tensor:
    return x if x.dtype == dtype else _cast(x, dtype)


def _same(name: str, made: _Tensor, x: _Tensor) -> _Tensor:
    """A result in the type of its argument, which counting booleans would lose."""
    if made.dtype == x.dtype:
        return made
    if x.dtype == dtypes.bool:
        _refuse(name, "bool is not supported\n  help: tf.cast makes numbers of booleans", TypeError)
    return _cast(made, x.dtype)


def reduce_sum(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> _Tensor:
    """The sum over some axes, or over all of them, in the tensor's own type."""
    x = _tensor(input_tensor)
    made = _sum(x, axis, keepdims)
    return made if made.dtype == x.dtype else _same("reduce_sum", made, x)


def reduce_prod(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> _Tensor:
    """The product over some axes, or over all of them, in the tensor's own type."""
    x = _tensor(input_tensor)
    return _same("reduce_prod", _prod(x, axis, keepdims), x)


def reduce_mean(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> _Tensor:
    """The mean over some axes, or over all of them, in the tensor's own type: that of integers loses its fraction."""
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


def reduce_max(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> _Tensor:
    """The largest element over some axes, or over all of them; of nothing, the lowest value there is."""
    return _extreme(_max, _tensor(input_tensor), axis, keepdims, "min")


def reduce_min(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> _Tensor:
    """The smallest element over some axes, or over all of them; of nothing, the highest value there is."""
    return _extreme(_min, _tensor(input_tensor), axis, keepdims, "max")


def reduce_variance(
    input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None
) -> _Tensor:
    """The variance of the population over some axes, or over all of them."""
    return _var(input_tensor, axis, 0.0, keepdims)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False, name: str | None = None) -> _Tensor:
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
    """Where the largest element along an axis (the first axis, if none is given) is; the first of several."""
    return _as(_argmax(input, 0 if axis is None else axis), dtypes.as_dtype(output_type))


def argmin(
    input: Any, axis: Any = None, output_type: Any = dtypes.int64, name: str | None = None  # noqa: A002
) -> _Tensor:
    """Where the smallest element along an axis (the first axis, if none is given) is; the first of several."""
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
    """The running log(sum(exp(x))) along an axis. The sum of nothing counts as the lowest finite value."""
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
    nothing = _full(shape, float(x.dtype.min), x.dtype)
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


def in_top_k(targets: Any, predictions: Any, k: Any, name: str | None = None) -> _Tensor:
    """For each row of predictions, whether fewer than `k` classes have more than the target does.

    A target that is no class, and one whose prediction is not finite, is not among them.
    """
    targets, predictions = _tensor(targets), _tensor(predictions)
    if predictions.ndim != 2 or targets.ndim != 1 or len(targets) != len(predictions):
        _refuse("in_top_k", f"predictions of shape {predictions.shape} and targets of shape {targets.shape}, where "
                            "rows of predictions and a target for each are needed")
    classes = predictions.shape[1]
    known = logical_and(targets >= 0, targets < classes)
    place = _where(known, targets, _cast(0, targets.dtype))
    own = _take(predictions, _reshape(place, [-1, 1]), 1)
    above = _count_nonzero(predictions > own, 1)
    fine = logical_and(known, reduce_all(is_finite(own), 1))
    return logical_and(fine, above < _cast(k, dtypes.int64))


# Sums and products of several things.


def add_n(inputs: Sequence, name: str | None = None) -> _Tensor:
    """The sum of tensors that all have one shape."""
    parts = [_tensor(part) for part in (inputs if isinstance(inputs, (list, tuple)) else [inputs])]
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
    if np.ndim(scalar) if not isinstance(scalar, _native.Array) else scalar.ndim:
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


# What is zero, or nothing, at zero. The value that would be infinite is replaced before it is used, so that gradients stay
# finite, too.


def multiply_no_nan(x: Any, y: Any, name: str | None = None) -> _Tensor:
    """`x * y`, and 0 where y is 0, even if x is infinite or not a number."""
    x, y = _tensor(x), _tensor(y)
    return _where(equal(y, 0), _cast(0, x.dtype), x) * y


def reciprocal_no_nan(x: Any, name: str | None = None) -> _Tensor:
    """`1 / x`, or 0 where x is 0."""
    return divide_no_nan(1, _tensor(x))


def xdivy(x: Any, y: Any, name: str | None = None) -> _Tensor:
    """`x / y`, and 0 where x is 0."""
    x, y = _tensor(x), _tensor(y)
    return divide(x, _where(equal(x, 0), _cast(1, y.dtype), y))


def xlogy(x: Any, y: Any, name: str | None = None) -> _Tensor:
    """`x * log(y)`, and 0 where x is 0."""
    x, y = _tensor(x), _tensor(y)
    return x * log(_where(equal(x, 0), _cast(1, y.dtype), y))


def xlog1py(x: Any, y: Any, name: str | None = None) -> _Tensor:
    """`x * log(1 + y)`, and 0 where x is 0."""
    x, y = _tensor(x), _tensor(y)
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


# Counting.


def bincount(
    arr: Any,
    weights: Any = None,
    minlength: Any = None,
    maxlength: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
    axis: int | None = None,
    binary_output: bool = False,
) -> _Tensor:
    """How often each integer occurs, or the sum of the weights where it does.

    Integers from `maxlength` on are left out. With `axis=-1`, each row is counted by itself; with `binary_output`, what
    counts is whether an integer occurs. The length of the result depends on the elements.
    """
    arr = _tensor(arr)
    weights = None if weights is None else _tensor(weights)
    if axis not in (None, 0, -1):
        _refuse("bincount", f"axis is None, 0 or -1, not {axis}")
    if binary_output and weights is not None:
        _refuse("bincount", "binary_output says whether there are any, and weights how much there is: not both")
    rows = 1
    if axis == -1 and arr.ndim == 2:
        rows = len(arr)
    elif axis is not None and axis != 0 and arr.ndim != 1:
        _refuse("bincount", f"rows are counted in matrices, not in shape {arr.shape}")
    length = int(reduce_max(arr)) + 1 if arr.size else 0
    if minlength is not None:
        length = max((length, int(minlength)))
    if maxlength is not None:
        length = min((length, int(maxlength)))
    numbers = _as(arr, dtypes.int64)
    if arr.size and int(reduce_min(numbers)) < 0:
        _refuse("bincount", "negative integers are not counted")
    inside = numbers < length
    if rows > 1:
        numbers = numbers + length * _reshape(_range(0, rows, 1, dtypes.int64), [rows, 1])
    numbers, inside = _reshape(numbers, [-1]), _reshape(inside, [-1])
    numbers = _boolean_mask(numbers, inside)
    if weights is not None:
        weights = _boolean_mask(_reshape(weights, [-1]), inside)
    counts = _bincount(numbers, weights, rows * length)
    if weights is None:
        counts = _as(counts > 0 if binary_output else counts, dtypes.as_dtype(dtype))
    return _reshape(counts, [rows, length]) if axis == -1 and arr.ndim == 2 else counts


def confusion_matrix(
    labels: Any,
    predictions: Any,
    num_classes: Any = None,
    weights: Any = None,
    dtype: Any = dtypes.int32,
    name: str | None = None,
) -> _Tensor:
    """How often each class (row) was predicted as each other one (column), or the weight of those times."""
    labels, predictions = _as(_tensor(labels), dtypes.int64), _as(_tensor(predictions), dtypes.int64)
    if labels.shape != predictions.shape:
        _refuse("confusion_matrix", f"labels of shape {labels.shape}, predictions of shape {predictions.shape}")
    labels, predictions = _reshape(labels, [-1]), _reshape(predictions, [-1])
    if num_classes is None:
        num_classes = max((int(reduce_max(labels)), int(reduce_max(predictions)))) + 1 if labels.size else 0
    dtype = dtypes.as_dtype(dtype)
    values = _full(labels.shape, 1, dtype) if weights is None else _as(_reshape(weights, [-1]), dtype)
    places = _stack([labels, predictions], 1)
    return _scatter_nd(places, values, [num_classes, num_classes])


def invert_permutation(x: Any, name: str | None = None) -> _Tensor:
    """Where each number of a permutation stands: another permutation, which undoes it."""
    x = _tensor(x)
    if x.ndim != 1:
        _refuse("invert_permutation", f"a permutation has one dimension, not shape {x.shape}")
    if not x.is_symbolic and not np.array_equal(np.sort(np.asarray(x)), np.arange(len(x))):
        _refuse("invert_permutation", f"these are not the numbers from 0 to {len(x) - 1}, each once")
    places = _range(0, len(x), 1, x.dtype)
    return _scatter_nd(_reshape(x, [-1, 1]), places, [len(x)])


# Over segments whose rows come in any order. A negative id names no segment.

_segments = {name: op(f"unsorted_segment_{name}") for name in ("max", "mean", "min", "prod", "sum")}


def _unsorted(which: str, data: Any, segment_ids: Any, num_segments: Any) -> _Tensor:
    ids, count = _tensor(segment_ids), int(num_segments)
    work = _segments[which]
    if not ids.is_symbolic and (not ids.size or int(_min(ids)) >= 0):
        return work(data, ids, count)
    # Rows without a segment go to one more, which is left out.
    ids = _where(ids < 0, _cast(count, ids.dtype), ids)
    return work(data, ids, count + 1)[:count]


def unsorted_segment_max(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> _Tensor:
    """The largest of the rows with equal ids; the lowest value there is for an id that does not occur."""
    return _unsorted("max", data, segment_ids, num_segments)


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> _Tensor:
    """The mean of the rows with equal ids; zero for an id that does not occur."""
    return _unsorted("mean", data, segment_ids, num_segments)


def unsorted_segment_min(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> _Tensor:
    """The smallest of the rows with equal ids; the highest value there is for an id that does not occur."""
    return _unsorted("min", data, segment_ids, num_segments)


def unsorted_segment_prod(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> _Tensor:
    """The product of the rows with equal ids; one for an id that does not occur."""
    return _unsorted("prod", data, segment_ids, num_segments)


def unsorted_segment_sum(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> _Tensor:
    """The sum of the rows with equal ids; zero for an id that does not occur."""
    return _unsorted("sum", data, segment_ids, num_segments)


def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> _Tensor:
    """The sum of the rows with equal ids over the root of their number; zero for an id that does not occur."""
    data, ids = _tensor(data), _tensor(segment_ids)
    total = _unsorted("sum", data, ids, num_segments)
    count = _unsorted("sum", _full(ids.shape, 1, data.dtype), ids, num_segments)
    count = _reshape(maximum(count, 1), [*count.shape, *[1] * (total.ndim - count.ndim)])
    return total / sqrt(count)
