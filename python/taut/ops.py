"""The ops that TensorFlow has at its top level.

Where the meaning is the op table's, a function is a row of that table under TensorFlow's name and parameter names.
"""

from __future__ import annotations

from typing import Any

from . import _native, dtypes
from .shape import TensorShape

op = _native.Op

# Element by element.
add = op("add")
subtract = op("sub", "subtract")
multiply = op("mul", "multiply")
divide = op("div", "divide")
negative = op("neg", "negative")
abs = op("abs")  # noqa: A001
exp = op("exp")
square = op("square")
sqrt = op("sqrt")
sign = op("sign")
floor = op("floor")
round = op("round")  # noqa: A001
sin = op("sin")
cos = op("cos")
tan = op("tan")
tanh = op("tanh")
sigmoid = op("sigmoid")
maximum = op("maximum")
minimum = op("minimum")
pow = op("pow")  # noqa: A001
equal = op("equal")
not_equal = op("not_equal")
less = op("less")
less_equal = op("less_equal")
greater = op("greater")
greater_equal = op("greater_equal")
logical_and = op("logical_and")
logical_or = op("logical_or")
logical_not = op("logical_not")
clip_by_value = op("clip_by_value", params=["t", "clip_value_min", "clip_value_max"])

# Reductions.
_REDUCTION = ["input_tensor", "axis", "keepdims"]
reduce_sum = op("sum", "reduce_sum", _REDUCTION)
reduce_mean = op("mean", "reduce_mean", _REDUCTION)
reduce_max = op("max", "reduce_max", _REDUCTION)
reduce_min = op("min", "reduce_min", _REDUCTION)
reduce_prod = op("prod", "reduce_prod", _REDUCTION)
reduce_any = op("any", "reduce_any", _REDUCTION)
reduce_all = op("all", "reduce_all", _REDUCTION)

# Shapes.
reshape = op("reshape", params=["tensor", "shape"])
expand_dims = op("expand_dims")
broadcast_to = op("broadcast_to")
identity = op("identity")
concat = op("concat")
stack = op("stack")


def matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: Any = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> _native.Tensor:
    """The product of matrices; axes before the last two are those of a batch."""
    if transpose_a or adjoint_a or transpose_b or adjoint_b:
        return _matmul_with(a, b, bool(transpose_a or adjoint_a), bool(transpose_b or adjoint_b))
    return _matmul(a, b)


_matmul = op("matmul")


def _matmul_with(a: Any, b: Any, transpose_a: bool, transpose_b: bool) -> _native.Tensor:
    swap = op("swapaxes")
    return _matmul(swap(a, -1, -2) if transpose_a else a, swap(b, -1, -2) if transpose_b else b)


def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """The same values in another element type."""
    from .sparse import IndexedSlices

    if isinstance(x, IndexedSlices):
        return IndexedSlices(_cast(x.values, dtype), x.indices, x.dense_shape)
    return _cast(x, dtype)


_cast = op("cast")


def zeros(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> _native.Tensor:
    """A tensor of zeros."""
    return _zeros(shape, dtype)


_zeros = op("zeros")


def ones(shape: Any, dtype: Any = dtypes.float32, name: str | None = None) -> _native.Tensor:
    """A tensor of ones."""
    return _ones(shape, dtype)


_ones = op("ones")
zeros_like = op("zeros_like")
ones_like = op("ones_like")


def fill(dims: Any, value: Any, name: str | None = None) -> _native.Tensor:
    """A tensor of one value."""
    value = _native.as_tensor(value)
    return broadcast_to(reshape(value, []), TensorShape(dims))


def range(start: Any, limit: Any = None, delta: Any = 1, dtype: Any = None, name: str = "range") -> _native.Tensor:  # noqa: A001
    """Numbers from `start` up to `limit`, which is not among them, `delta` apart."""
    if limit is None:
        start, limit = 0, start
    numbers = [value.item() if isinstance(value, _native.Array) else value for value in (start, limit, delta)]
    if dtype is None:
        given = [value.dtype for value in (start, limit, delta) if hasattr(value, "dtype")]
        whole = all(float(number).is_integer() and not isinstance(number, float) for number in numbers)
        dtype = given[0] if given else (dtypes.int32 if whole else dtypes.float32)
    return _range(*numbers, dtype)


_range = op("range")


def transpose(a: Any, perm: Any = None, conjugate: bool = False, name: str = "transpose") -> _native.Tensor:
    """The tensor with its axes in another order: reversed, unless one is given."""
    return _transpose(a, perm)


_transpose = op("transpose")


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> _native.Tensor:  # noqa: A002
    """Elements, each several times; of the flattened tensor unless an axis is given."""
    return _repeat(input, repeats, axis)


_repeat = op("repeat")
