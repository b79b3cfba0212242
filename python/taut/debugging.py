"""Checks of values, shapes and types, at once or inside traced functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from . import _native, dtypes
from ._common import _refuse
from .math import (
    abs,
    equal,
    greater,
    greater_equal,
    less,
    less_equal,
    not_equal,
    reduce_all,
)
from .shape import TensorShape

_tensor = _native.as_tensor
_Tensor = _native.Tensor
_ensure = _native.Op("ensure")

check_numerics = _native.Op("check_numerics")


def _value(x: Any, most: int | None) -> str:
    most = 3 if most is None else most
    if x.is_symbolic:
        return f"{x.dtype.name} of shape {x.shape}"
    threshold = 2**31 - 1 if most < 0 else 2 * most
    return np.array2string(np.asarray(x), threshold=threshold, edgeitems=max(most, 1))


def _said(message: str | None) -> str:
    return f"{message}: " if message else ""


def _hold(name: str, holds: _Tensor, text: Callable[[], str]) -> None:
    """Raises unless `holds`. What is being traced is checked when it runs."""
    if not holds.is_symbolic:
        if not bool(holds):
            _refuse(name, text())
        return
    _ensure(holds, f"{name}: {text()}")


def Assert(
    condition: Any, data: Sequence, summarize: int | None = None, name: str | None = None  # noqa: N802
) -> None:
    """Raises `tf.errors.InvalidArgumentError` with these data unless the condition holds."""
    condition = reduce_all(_tensor(condition))

    def text() -> str:
        return "; ".join(_text(part, summarize) for part in data) or "it does not hold"

    _hold("Assert", condition, text)


def _text(part: Any, most: int | None) -> str:
    return _value(part, most) if isinstance(part, _native.Array) else str(part)


def _compared(name: str, work: Any, words: str) -> Callable:
    def check(
        x: Any, y: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None:
        x, y = _tensor(x), _tensor(y)

        def text() -> str:
            values = f"x = {_value(x, summarize)}, y = {_value(y, summarize)}"
            return f"{_said(message)}x {words} y does not hold for all elements, {values}"

        _hold(check.__name__, reduce_all(work(x, y)), text)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises `tf.errors.InvalidArgumentError` unless `x {words} y` holds for all elements."
    return check


assert_equal = _compared("assert_equal", equal, "==")
assert_greater = _compared("assert_greater", greater, ">")
assert_greater_equal = _compared("assert_greater_equal", greater_equal, ">=")
assert_less = _compared("assert_less", less, "<")
assert_less_equal = _compared("assert_less_equal", less_equal, "<=")


def assert_none_equal(
    x: Any, y: Any, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Raises `tf.errors.InvalidArgumentError` unless `x != y` holds for all elements."""
    _assert_none_equal(x, y, message, summarize)


_assert_none_equal = _compared("assert_none_equal", not_equal, "!=")


def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raises `tf.errors.InvalidArgumentError` unless `|x - y| <= atol + rtol * |y|` holds for all elements.

    Both tolerances are ten times the type's precision unless they are given.
    """
    x, y = _tensor(x), _tensor(y)
    if rtol is None or atol is None:
        eps = 10.0 * float(dtypes.info(x.dtype).eps)
        rtol, atol = (eps if one is None else one for one in (rtol, atol))
    near = abs(x - y) <= atol + rtol * abs(y)

    def text() -> str:
        values = f"x = {_value(x, summarize)}, y = {_value(y, summarize)}"
        return f"{_said(message)}x and y are not equal to tolerance rtol = {rtol}, atol = {atol}, {values}"

    _hold("assert_near", reduce_all(near), text)


def _against_zero(name: str, work: Any, words: str) -> Callable:
    def check(
        x: Any, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None:
        x = _tensor(x)

        def text() -> str:
            return f"{_said(message)}x {words} 0 does not hold for all elements, x = {_value(x, summarize)}"

        _hold(check.__name__, reduce_all(work(x, 0)), text)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises `tf.errors.InvalidArgumentError` unless `x {words} 0` holds for all elements."
    return check


assert_positive = _against_zero("assert_positive", greater, ">")
assert_negative = _against_zero("assert_negative", less, "<")
assert_non_negative = _against_zero("assert_non_negative", greater_equal, ">=")
assert_non_positive = _against_zero("assert_non_positive", less_equal, "<=")


def assert_all_finite(x: Any, message: str, name: str | None = None) -> _Tensor:
    """The tensor itself, or an error with this message if an element is NaN or infinite."""
    return check_numerics(x, message)


# Shapes and types, which are always known.


def _shape_of(x: Any) -> TensorShape:
    return x.shape if isinstance(x, _native.Array) else TensorShape(np.shape(x))


def assert_rank(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless the tensor has this rank."""
    shape = _shape_of(x)
    if len(shape) != int(rank):
        text = f"{_said(message)}shape {shape} has rank {len(shape)}, not {int(rank)}"
        _refuse("assert_rank", text, ValueError)


def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless the tensor has this rank or a higher one."""
    shape = _shape_of(x)
    if len(shape) < int(rank):
        text = f"{_said(message)}shape {shape} has rank {len(shape)}, below {int(rank)}"
        _refuse("assert_rank_at_least", text, ValueError)


def assert_rank_in(x: Any, ranks: Iterable, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless the tensor has one of these ranks."""
    shape, ranks = _shape_of(x), [int(rank) for rank in ranks]
    if len(shape) not in ranks:
        text = f"{_said(message)}shape {shape} has rank {len(shape)}, none of {ranks}"
        _refuse("assert_rank_in", text, ValueError)


def assert_scalar(tensor: Any, message: str | None = None, name: str | None = None) -> _Tensor:
    """The tensor itself, or ValueError if it has dimensions."""
    tensor = _tensor(tensor)
    if tensor.ndim:
        _refuse("assert_scalar", f"{_said(message)}shape {tensor.shape} is not that of a scalar", ValueError)
    return tensor


def assert_integer(x: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless the elements are integers."""
    dtype = _tensor(x).dtype
    if not dtype.is_integer:
        _refuse("assert_integer", f"{_said(message)}{dtype.name} elements are not integers", TypeError)


def assert_type(tensor: Any, tf_type: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless the elements have this type."""
    dtype, wanted = _tensor(tensor).dtype, dtypes.as_dtype(tf_type)
    if dtype != wanted:
        _refuse("assert_type", f"{_said(message)}{dtype.name} elements, not {wanted.name}", TypeError)


def assert_same_float_dtype(tensors: Sequence | None = None, dtype: Any = None) -> Any:
    """The one floating-point type of all these; ValueError if there are several, or if it is none."""
    found = None if dtype is None else dtypes.as_dtype(dtype)
    for tensor in tensors or ():
        if tensor is None:
            continue
        own = _tensor(tensor).dtype
        found = own if found is None else found
        if own != found:
            _refuse("assert_same_float_dtype", f"{own.name} and {found.name} are two types", ValueError)
    found = dtypes.float32 if found is None else found
    if not found.is_floating:
        _refuse("assert_same_float_dtype", f"{found.name} is no floating-point type", ValueError)
    return found


def assert_proper_iterable(values: Any) -> None:
    """Raises TypeError for what can be iterated over and is one thing nevertheless: tensors, arrays, text."""
    if isinstance(values, (_native.Array, np.ndarray, bytes, str)) or not hasattr(values, "__iter__"):
        _refuse("assert_proper_iterable", f"a {type(values).__name__} is no list of things", TypeError)


def assert_shapes(
    shapes: Any,
    data: Sequence | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raises ValueError unless tensors have these shapes, given as pairs or as a dict from tensors to shapes.

    A size is a number, None or "." for any, or a name, which stands for the same size everywhere. "..." or
    "*" in front of sizes stands for any number of dimensions before them.

    >>> import taut as tf
    >>> x, y = tf.zeros([2, 3]), tf.zeros([3])
    >>> tf.debugging.assert_shapes([(x, ("N", "Q")), (y, ("Q",))])
    """
    known: dict[Any, int] = {}
    for tensor, wanted in shapes.items() if isinstance(shapes, Mapping) else shapes:
        own = _shape_of(tensor.deref() if hasattr(tensor, "deref") else tensor)
        sizes = list(wanted) if isinstance(wanted, (list, tuple, str)) else [wanted]
        if sizes and sizes[0] in ("...", "*", Ellipsis):
            sizes = sizes[1:]
            fits = len(own) >= len(sizes)
            own_sizes = own[len(own) - len(sizes) :] if fits else own
        else:
            fits = len(own) == len(sizes) if wanted != () else not own
            own_sizes = own
        for size, got in zip(sizes, own_sizes):
            if size is None or size == ".":
                continue
            if isinstance(size, str) and not size.isdigit():
                fits = fits and known.setdefault(size, got) == got
            else:
                fits = fits and int(size) == got
        if not fits:
            names = "".join(f", {key} = {value}" for key, value in known.items())
            _refuse(
                "assert_shapes", f"{_said(message)}shape {own} where {wanted} is needed{names}", ValueError
            )


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers."""
    return isinstance(tensor, _native.Array) and tensor.dtype != dtypes.bool


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Makes every op that gives NaN or infinity an error, which names the op and the line of the call."""
    _native.enable_check_numerics()


def disable_check_numerics() -> None:
    """Ends what `enable_check_numerics` began."""
    _native.disable_check_numerics()


__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_numerics",
    "disable_check_numerics",
    "enable_check_numerics",
    "is_numeric_tensor",
]
