"""Helpers shared by the implementation of the public functions."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from . import _native, _raw_ops as raw
from .errors import InvalidArgumentError

if TYPE_CHECKING:
    from ._typing import ShapeLike, TensorLike


def refuse(name: str, message: str, kind: type[Exception] = InvalidArgumentError) -> NoReturn:
    """Raises an error that names the public function and the caller's line. A help line comes last."""
    text, _, remedy = message.partition("\n  help: ")
    remedy = f"\n  help: {remedy}" if remedy else ""
    raise kind(f"{name}: {text}\n  at {_native.calling_line()}{remedy}")


def refuse_fraction(name: str, value: object) -> None:
    """Raises TypeError for a number with a fraction, where an integer would lose it."""
    if isinstance(value, float) and not value.is_integer():
        refuse(name, f"expected an integer, got {value!r}", TypeError)


def cast_to(x: _native.Tensor, dtype: _native.DType) -> _native.Tensor:
    """Casts a tensor to an element type, if it has another one."""
    return x if x.dtype == dtype else raw.cast(x, dtype)


def value_range(x: _native.Tensor) -> tuple[Any, Any]:
    """Smallest and largest element as Python numbers, read from the value; (0, -1) for an empty tensor."""
    array = np.asarray(x)
    if array.dtype.kind not in "biuf":
        raise TypeError(f"expected integers, got {x!r}\n  at {_native.calling_line()}")
    return (array.min().item(), array.max().item()) if array.size else (0, -1)


def as_tuple(results: _native.Tensor | tuple[_native.Tensor, ...]) -> tuple[_native.Tensor, ...]:
    """The results of an op as a tuple, also if there is only one."""
    return results if isinstance(results, tuple) else (results,)


def as_shape(dims: ShapeLike) -> Any:
    """A shape as the op table takes it: a single integer is the shape of a vector."""
    return as_ints(dims) if isinstance(dims, (int, np.integer, _native.Array)) else dims


def as_ints(values: Any) -> list[int]:
    """Integers from one integer, a sequence, a shape, an array or a tensor whose value is known."""
    values = values.tolist() if isinstance(values, (_native.Array, np.ndarray)) else values
    if isinstance(values, (int, np.integer)):
        return [int(values)]
    if isinstance(values, (float, np.floating)):
        values = [values]
    found = list(limited(values))
    if any(isinstance(value, (float, np.floating)) and value != int(value) for value in found):
        raise TypeError(f"expected integers, got {found}\n  at {_native.calling_line()}")
    return [int(value) for value in found]


# The most values that an iterable without storage of its own, such as a range, is expanded to, and results that a function
# returns as a list.
MOST_VALUES = 1 << 20


def limited(values: Iterable[Any]) -> Iterable[Any]:
    """The values of an iterable; raises ValueError after the first 2**20 unless it is a list or tuple."""
    if isinstance(values, (list, tuple)):
        return values
    found = list(itertools.islice(values, MOST_VALUES + 1))
    if len(found) > MOST_VALUES:
        raise ValueError(
            f"expected at most {MOST_VALUES} values, got more from an object of type {type(values).__name__}"
        )
    return found


def check_count(name: str, parameter: str, count: int) -> int:
    """Raises ValueError unless a number of results is in [0, 2**20]."""
    if not 0 <= count <= MOST_VALUES:
        refuse(name, f"{parameter} must be in [0, {MOST_VALUES}], got {count}")
    return count


def unify_dtypes(values: Iterable[TensorLike]) -> list[_native.Tensor]:
    """Converts values to tensors. Python numbers, lists and arrays take the element type of the tensors among them; without
    tensors, numbers and lists take that of the arrays. What has no elements takes the type of the others."""
    values = list(values)
    known = next((value.dtype for value in values if isinstance(value, _native.Array)), None)
    if known is not None:
        return [_native.tensor_beside(value, known) for value in values]
    tensors = [_native.as_tensor(value) for value in values]
    pairs = list(zip(values, tensors))
    # The type of what has no elements says nothing.
    full = [pair for pair in pairs if pair[1].size] or pairs
    typed = [tensor.dtype for value, tensor in full if hasattr(value, "dtype")]
    floats = [tensor.dtype for _, tensor in full if tensor.dtype.is_floating]
    dtype = next(iter(typed or floats or [tensor.dtype for _, tensor in full]), None)
    if dtype is None or not (typed or floats or len(full) < len(pairs)):
        return tensors
    return [
        tensor if hasattr(value, "dtype") and tensor.size else _native.tensor_beside(value, dtype)
        for value, tensor in pairs
    ]


def select_rows(x: _native.Tensor, indices: Any, axis: int = 0) -> _native.Tensor:
    """As `raw.gather`, but the gradient with respect to a variable is a tensor, not `IndexedSlices`: for ops that are
    composed of a gather here and are ops of their own in TensorFlow.
    """
    if axis not in (0, -x.ndim) or not isinstance(x, _native.Tensor):
        return raw.gather(x, indices, axis)
    return raw.squeeze(raw.gather(raw.expand_dims(x, 0), indices, 1), [0])


def is_number(value: object) -> bool:
    """Whether it is a Python or NumPy number."""
    return isinstance(value, (bool, int, float, np.number))


def check_choice(name: str, parameter: str, value: object, choices: Sequence[object]) -> None:
    """Raises ValueError unless an option has one of its values."""
    if value not in choices:
        allowed = ", ".join(map(repr, choices))
        refuse(name, f"{parameter} must be one of {allowed}, got {value!r}", ValueError)


def refuse_option(name: str, parameter: str, value: object, reason: str, default: object = None) -> None:
    """Raises ValueError if an option that cannot take effect has another value than its default."""
    if value is not default and value != default:
        refuse(name, f"{parameter} must be {default!r}, got {value!r}: {reason}", ValueError)
