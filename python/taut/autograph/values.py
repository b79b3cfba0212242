"""Values of variables where control flow meets: which are tensors, of which type, and which stay Python's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _native, nest
from ..tensor_array import is_array

Array = _native.Array

_cast, _not_equal, _reshape, _zeros = (_native.Op(name) for name in ("cast", "not_equal", "reshape", "zeros"))
_PLAIN = (str, bytes, type(None))


class Slot(NamedTuple):
    """A part of a variable that control flow hands on as a tensor."""

    dtype: Any
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"a tensor of {self.dtype.name}{list(self.shape)}"


# Per variable, its leaves: a slot, or None for what stays a value of Python's. None at all: it is left out.
Plan = list[list["Slot | None"]]


class TypesDiffer(TypeError):
    """Values of different types where control flow meets."""


class Undefined:
    """A variable that has no value yet. Reading it is a mistake."""

    __slots__ = ("symbol_name",)

    def __init__(self, symbol_name: str) -> None:
        self.symbol_name = symbol_name

    def read(self) -> Any:
        """Raises what Python raises."""
        raise UnboundLocalError(f"'{self.symbol_name}' is used before assignment")


class NoReturn:
    """What a function returns that has not returned yet."""


class Unset(Undefined):
    """A variable that has a value on some paths only. Reading it says where it would have needed one."""

    __slots__ = ("reason",)

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name)
        self.reason = reason

    def read(self) -> Any:
        """Raises the error that the variable is there for."""
        raise UnboundLocalError(self.reason)


class Skipped(Undefined, NoReturn):
    """A variable without a value on a path that has returned: nothing reads it there."""

    __slots__ = ()


def is_symbolic(value: Any) -> bool:
    """Whether it is a tensor whose value is not known while a function is traced."""
    return isinstance(value, Array) and value.is_symbolic


def holds(value: Any) -> bool:
    """Whether a value that is known is true. Asking a tensor's array is no op, so it works in a trace."""
    return bool(value.numpy() if isinstance(value, Array) else value)


def is_unset(value: Any) -> bool:
    """Whether it stands for a value that there is none of."""
    return isinstance(value, (Undefined, NoReturn))


def is_number(value: Any) -> bool:
    """Whether it is a number or truth value of Python's."""
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def problem(message: str, help: str) -> str:  # noqa: A002
    """The text of an error, with the line of the statement that it is about."""
    return f"{message}\n  at {_native.calling_line()}\n  help: {help}"


def truth(value: Any, what: str) -> Any:
    """A tensor as one truth value, for a statement of this kind."""
    if value.size != 1:
        message = f"`{what}` needs one truth value, and this tensor has the shape {tuple(value.shape)}"
        raise ValueError(problem(message, "say what is meant: tf.reduce_any, tf.reduce_all, or tf.where"))
    if value.ndim:
        value = _reshape(value, [])
    return value if value.dtype.name == "bool" else _not_equal(value, 0)


def same(one: Any, other: Any) -> bool:
    """Whether two values of Python's are one, as far as control flow is concerned."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, Undefined):
        return one.symbol_name == other.symbol_name
    if isinstance(one, NoReturn):
        return True
    return (is_number(one) or isinstance(one, _PLAIN)) and one == other


def leaves(value: Any) -> list:
    """The parts of a variable's value."""
    return nest.flatten(value)


def slot(value: Any) -> Slot | None:
    """What a value would be handed on as; None if it is no tensor and no number."""
    if is_array(value):
        return Slot(value.dtype, (len(value), *value.element_shape)) if value.knows_shape() else None
    if is_number(value):
        value = _native.as_tensor(value)
    if isinstance(value, (Array, np.ndarray, np.generic)):
        made = value if isinstance(value, Array) else _native.as_tensor(value)
        return Slot(made.dtype, tuple(made.shape))
    return None


def fits(value: Any, wanted: Slot | None) -> bool:
    """Whether a value can be handed on in a slot."""
    if wanted is None:
        return not isinstance(value, Array)
    if is_unset(value):
        return True
    if is_array(value) and not value.knows_shape():
        return (value.dtype, len(value)) == (wanted.dtype, wanted.shape[0])
    own = slot(value)
    if own is None or own.shape != wanted.shape:
        return False
    return own.dtype == wanted.dtype or is_number(value) and _becomes(value, wanted.dtype)


def _becomes(number: Any, dtype: Any) -> bool:
    """Whether a number of Python's takes this type next to tensors of it."""
    if dtype.name == "bool":
        return isinstance(number, bool)
    return not isinstance(number, bool) and (dtype.is_floating or isinstance(number, int))


def handed(values: Sequence, plan: Plan) -> list | None:
    """The tensors that stand for the values; None if the plan is none for them."""
    made = []
    for value, slots in zip(values, plan):
        if not slots:
            continue
        parts = [value] * len(slots) if is_unset(value) else leaves(value)
        if len(parts) != len(slots) or not all(map(fits, parts, slots)):
            return None
        for part, wanted in zip(parts, slots):
            if wanted is not None:
                made.append(_as(part, wanted))
    return made


def _as(value: Any, wanted: Slot) -> Any:
    if is_unset(value):
        return _zeros(list(wanted.shape), wanted.dtype)
    if is_array(value):
        return value.as_rows(wanted.shape[1:])
    return _native.as_tensor(value, wanted.dtype) if is_number(value) else _native.as_tensor(value)


def guess(values: Sequence) -> Plan:
    """The plan for values of which nothing else is known: what can be a tensor is one."""
    return [slots(value) for value in values]


def slots(value: Any) -> list:
    """What the parts of a value would be handed on as."""
    return [] if is_unset(value) else [slot(part) for part in leaves(value)]


def filled(values: Sequence, plan: Plan, tensors: Sequence) -> list:
    """The values, with tensors where the plan says so. What is not set stays so."""
    rest = iter(tensors)
    made = []
    for value, slots in zip(values, plan):
        if is_unset(value):
            made.append(value)
            for _ in filter(None, slots):
                next(rest)
            continue
        parts = [part if wanted is None else became(part, next(rest)) for part, wanted in zip(leaves(value), slots)]
        made.append(nest.pack_sequence_as(value, parts))
    return made


def became(value: Any, tensor: Any) -> Any:
    """A value after it was handed on as this tensor."""
    return value.of_rows(tensor) if is_array(value) else tensor


def described(value: Any) -> str:
    """A value in the words of an error."""
    if is_unset(value):
        return "not set"
    if isinstance(value, Array):
        return str(slot(value))
    if is_array(value):
        return repr(value)
    if nest.is_nested(value):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"


def met(one: Any, other: Any) -> Slot | None:
    """The slot in which two values meet. Raises ValueError if there is none."""
    first, second = slot(one), slot(other)
    if is_array(one) and is_array(other):
        # An array to which nothing was written takes the shape that the other's elements have.
        first, second = first or second, second or first
        if first is None:
            return None
        if not (fits(one, first) and fits(other, first)):
            raise ValueError("their shapes differ")
        return first
    if is_array(one) or is_array(other):
        raise ValueError("they are not of one kind")
    if first is None or second is None:
        raise ValueError("they are not of one kind")
    if first.shape != second.shape:
        raise ValueError("their shapes differ")
    if first.dtype == second.dtype:
        return first
    if is_number(one) and _becomes(one, second.dtype):
        return second
    if is_number(other) and _becomes(other, first.dtype):
        return first
    raise ValueError("their types differ")
