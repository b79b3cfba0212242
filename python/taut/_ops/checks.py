"""Assertions about values, shapes and types, eager and traced."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw, dtypes
from .._common import refuse, unify_dtypes
from .._native import Tensor, as_tensor
from ..errors import InvalidArgumentError
from ..shape import TensorShape

if TYPE_CHECKING:
    from .._typing import DTypeLike, TensorLike


def value_text(x: Any, most: int | None) -> str:
    most = 3 if most is None else most
    if x.is_symbolic:
        return f"{x.dtype.name} of shape {x.shape}"
    threshold = 2**31 - 1 if most < 0 else 2 * most
    return np.array2string(np.asarray(x), threshold=threshold, edgeitems=max(most, 1))


def _prefix(message: str | None) -> str:
    return f"{message}: " if message else ""


def check_holds(
    name: str, holds: Tensor, text: Callable[[], str], kind: type[Exception] = InvalidArgumentError
) -> None:
    """Raises an error with `text()` unless `holds` is true: now, or when the traced function runs."""
    if not holds.is_symbolic:
        if not bool(holds):
            refuse(name, text(), kind)
        return
    raw.ensure(holds, f"{name}: {text()}")


def Assert(condition: TensorLike, data: Sequence, summarize: int | None = None, name: str | None = None) -> None:  # noqa: N802
    """Raises `tf.errors.InvalidArgumentError` with these data unless the condition is true."""
    condition = raw.all(as_tensor(condition))

    def text() -> str:
        return "; ".join(_text(part, summarize) for part in data) or "the condition is false"

    check_holds("Assert", condition, text)


def _text(part: Any, most: int | None) -> str:
    return value_text(part, most) if isinstance(part, _native.Array) else str(part)


def _comparison(name: str, work: Any, words: str) -> Callable:
    def check(
        x: TensorLike, y: TensorLike, message: str | None = None, summarize: int | None = None, name: str | None = None
    ) -> None:
        x, y = as_tensor(x), as_tensor(y)

        def text() -> str:
            values = f"x = {value_text(x, summarize)}, y = {value_text(y, summarize)}"
            return f"{_prefix(message)}x {words} y must hold for all elements, got {values}"

        check_holds(check.__name__, raw.all(work(x, y)), text)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises `tf.errors.InvalidArgumentError` unless `x {words} y` for all elements."
    return check


assert_equal = _comparison("assert_equal", raw.equal, "==")
assert_greater = _comparison("assert_greater", raw.greater, ">")
assert_greater_equal = _comparison("assert_greater_equal", raw.greater_equal, ">=")
assert_less = _comparison("assert_less", raw.less, "<")
assert_less_equal = _comparison("assert_less_equal", raw.less_equal, "<=")


def assert_none_equal(
    x: TensorLike, y: TensorLike, summarize: int | None = None, message: str | None = None, name: str | None = None
) -> None:
    """Raises `tf.errors.InvalidArgumentError` unless `x != y` for all elements."""
    _assert_none_equal(x, y, message, summarize)


_assert_none_equal = _comparison("assert_none_equal", raw.not_equal, "!=")


def _are_near(x: Tensor, y: Tensor, rtol: Any, atol: Any) -> Tensor:
    return raw.abs(x - y) <= atol + rtol * raw.abs(y)


def _are_near_integers(x: Tensor, y: Tensor, rtol: Any, atol: Any) -> Tensor:
    """Integers are compared as such, since differences of unsigned ones wrap; tolerances are applied to float64."""
    if not (isinstance(rtol, _native.Array) or isinstance(atol, _native.Array)) and rtol == 0 and atol == 0:
        return raw.equal(x, y)
    a, b = (raw.cast(one, dtypes.float64) for one in (x, y))
    return raw.logical_or(raw.equal(x, y), _are_near(a, b, rtol, atol))


def assert_near(
    x: TensorLike,
    y: TensorLike,
    rtol: Any = None,
    atol: Any = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raises `tf.errors.InvalidArgumentError` unless `|x - y| <= atol + rtol * |y|` for all elements.

    Both tolerances default to ten times the type's machine epsilon, and to 0 for integers.
    """
    x, y = unify_dtypes([x, y])
    floats = any(one.dtype.is_floating or one.dtype.is_complex for one in (x, y))
    if rtol is None or atol is None:
        eps = 10.0 * float(dtypes.info(y.dtype if x.dtype.is_integer else x.dtype).eps) if floats else 0
        rtol, atol = (eps if one is None else one for one in (rtol, atol))
    near = _are_near(x, y, rtol, atol) if floats else _are_near_integers(x, y, rtol, atol)

    def text() -> str:
        values = f"x = {value_text(x, summarize)}, y = {value_text(y, summarize)}"
        return f"{_prefix(message)}|x - y| must be <= atol + rtol * |y| for atol={atol}, rtol={rtol}, got {values}"

    check_holds("assert_near", raw.all(near), text)


def _comparison_with_zero(name: str, work: Any, words: str) -> Callable:
    def check(x: TensorLike, message: str | None = None, summarize: int | None = None, name: str | None = None) -> None:
        x = as_tensor(x)

        def text() -> str:
            return f"{_prefix(message)}x {words} 0 must hold for all elements, got x = {value_text(x, summarize)}"

        check_holds(check.__name__, raw.all(work(x, 0)), text)

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"Raises `tf.errors.InvalidArgumentError` unless `x {words} 0` for all elements."
    return check


assert_positive = _comparison_with_zero("assert_positive", raw.greater, ">")
assert_negative = _comparison_with_zero("assert_negative", raw.less, "<")
assert_non_negative = _comparison_with_zero("assert_non_negative", raw.greater_equal, ">=")
assert_non_positive = _comparison_with_zero("assert_non_positive", raw.less_equal, "<=")


def assert_all_finite(x: TensorLike, message: str, name: str | None = None) -> Tensor:
    """Returns the tensor, or raises an error with this message if an element is NaN or infinite."""
    return raw.check_numerics(x, message)


def _shape_of(x: Any) -> TensorShape:
    return x.shape if isinstance(x, _native.Array) else TensorShape(np.shape(x))


def assert_rank(x: TensorLike, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless the tensor has this rank."""
    shape = _shape_of(x)
    if len(shape) != int(rank):
        text = f"{_prefix(message)}rank must be {int(rank)}, got shape {shape}"
        refuse("assert_rank", text, ValueError)


def assert_rank_at_least(x: TensorLike, rank: Any, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless the tensor has at least this rank."""
    shape = _shape_of(x)
    if len(shape) < int(rank):
        text = f"{_prefix(message)}rank must be >= {int(rank)}, got shape {shape}"
        refuse("assert_rank_at_least", text, ValueError)


def assert_rank_in(x: TensorLike, ranks: Iterable, message: str | None = None, name: str | None = None) -> None:
    """Raises ValueError unless the tensor has one of these ranks."""
    shape, ranks = _shape_of(x), [int(rank) for rank in ranks]
    if len(shape) not in ranks:
        text = f"{_prefix(message)}rank must be one of {ranks}, got shape {shape}"
        refuse("assert_rank_in", text, ValueError)


def assert_scalar(tensor: TensorLike, message: str | None = None, name: str | None = None) -> Tensor:
    """Returns the tensor, or raises ValueError unless its rank is 0."""
    tensor = as_tensor(tensor)
    if tensor.ndim:
        refuse("assert_scalar", f"{_prefix(message)}rank must be 0, got shape {tensor.shape}", ValueError)
    return tensor


def assert_integer(x: TensorLike, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless the elements are integers."""
    dtype = as_tensor(x).dtype
    if not dtype.is_integer:
        refuse("assert_integer", f"{_prefix(message)}expected an integer type, got {dtype.name}", TypeError)


def assert_type(tensor: TensorLike, tf_type: DTypeLike, message: str | None = None, name: str | None = None) -> None:
    """Raises TypeError unless the elements have this type."""
    dtype, wanted = as_tensor(tensor).dtype, dtypes.as_dtype(tf_type)
    if dtype != wanted:
        refuse("assert_type", f"{_prefix(message)}expected {wanted.name}, got {dtype.name}", TypeError)


def assert_same_float_dtype(tensors: Sequence | None = None, dtype: DTypeLike = None) -> _native.DType:
    """Returns the common floating-point type of tensors; raises ValueError if they differ or are not floating point."""
    found = None if dtype is None else dtypes.as_dtype(dtype)
    for tensor in tensors or ():
        if tensor is None:
            continue
        own = as_tensor(tensor).dtype
        found = own if found is None else found
        if own != found:
            refuse(
                "assert_same_float_dtype",
                f"all tensors must have one type, got {found.name} and {own.name}",
                ValueError,
            )
    found = dtypes.float32 if found is None else found
    if not found.is_floating:
        refuse("assert_same_float_dtype", f"expected a floating-point type, got {found.name}", ValueError)
    return found


def assert_proper_iterable(values: TensorLike) -> None:
    """Raises TypeError for tensors, arrays, strings and non-iterables."""
    if isinstance(values, (_native.Array, np.ndarray, bytes, str)) or not hasattr(values, "__iter__"):
        refuse(
            "assert_proper_iterable",
            f"expected a list or another iterable of tensors, got {type(values).__name__}",
            TypeError,
        )


def assert_shapes(
    shapes: Any,
    data: Sequence | None = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raises ValueError unless tensors have these shapes, given as pairs or as a dict from tensors to shapes.

    A size is an integer, None or "." for any size, or a name that stands for one size everywhere. A leading "..." or
    "*" stands for any number of dimensions.

    >>> import taut as tf
    >>> x, y = tf.zeros([2, 3]), tf.zeros([3])
    >>> tf.debugging.assert_shapes([(x, ("N", "Q")), (y, ("Q",))])
    """
    known: dict[Any, int] = {}
    for tensor, wanted in shapes.items() if isinstance(shapes, Mapping) else shapes:
        given = own = _shape_of(tensor.deref() if hasattr(tensor, "deref") else tensor)
        if not len(own):
            # A scalar counts as a vector of one element, as in TensorFlow.
            own = TensorShape([1])
        sizes = list(wanted) if isinstance(wanted, (list, tuple, str, TensorShape)) else [wanted]
        if sizes and sizes[0] in ("...", "*", Ellipsis):
            sizes = sizes[1:]
            fits = len(own) >= len(sizes)
            own_sizes = own[len(own) - len(sizes) :] if fits else own
        else:
            sizes = sizes or [1]
            fits = len(own) == len(sizes)
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
            names += "".join(f"; {_text(part, summarize)}" for part in data or ())
            refuse("assert_shapes", f"{_prefix(message)}expected shape {wanted}, got {given}{names}", ValueError)


def is_numeric_tensor(tensor: TensorLike) -> bool:
    """Whether it is a tensor of a numeric type."""
    return isinstance(tensor, _native.Array) and tensor.dtype != dtypes.bool


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Makes every op that produces NaN or infinity raise an error that names the op and the caller's line."""
    _native.enable_check_numerics()


def disable_check_numerics() -> None:
    """Turns off `enable_check_numerics`."""
    _native.disable_check_numerics()


_filtering = [True]
_placement = [False]


def enable_traceback_filtering() -> None:
    """Turns filtering of tracebacks on. Errors name the caller's line, and frames of the package remain in tracebacks."""
    _filtering[0] = True


def disable_traceback_filtering() -> None:
    """Turns filtering of tracebacks off."""
    _filtering[0] = False


def is_traceback_filtering_enabled() -> bool:
    """What was set last; true at first."""
    return _filtering[0]


def get_log_device_placement() -> bool:
    """Whether devices of ops are logged: what was set last."""
    return _placement[0]


def set_log_device_placement(enabled: bool) -> None:
    """Sets what `get_log_device_placement` returns. There is one device, and nothing to log."""
    _placement[0] = bool(enabled)
