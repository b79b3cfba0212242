"""Values of variables where control flow paths join: which become tensors, of which type, and which stay Python values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _native, _raw_ops as raw, nest
from ..errors import DynamicShapeError
from ..replay import sizes
from ..tensor_array import is_array

Array = _native.Array

_PLAIN = (str, bytes, type(None))

SHAPES_DIFFER = "the shapes differ"
KINDS_DIFFER = "the kinds of values differ"
STRINGS_DIFFER = "the strings differ"


class CarriedSlot(NamedTuple):
    """A leaf of a variable that control flow carries as a tensor."""

    dtype: Any
    shape: tuple[int, ...]

    def __str__(self) -> str:
        return f"a tensor of {self.dtype.name}{list(self.shape)}"


# Per variable, its leaves: a slot, or None for a leaf that stays a Python value. An empty list: the variable is left out.
Plan = list[list["CarriedSlot | None"]]


class TypesDifferError(TypeError):
    """Values of different types where control flow paths join."""


class Undefined:
    """A variable without a value. Reading it raises UnboundLocalError."""

    __slots__ = ("symbol_name",)

    def __init__(self, symbol_name: str) -> None:
        self.symbol_name = symbol_name

    def read(self) -> Any:
        """Raises UnboundLocalError."""
        raise UnboundLocalError(f"local variable '{self.symbol_name}' is used before assignment")


class NoReturn:
    """The return value of a function that has not returned yet."""


class Unset(Undefined):
    """A variable that has a value on some paths only. Reading it raises an error with the reason."""

    __slots__ = ("reason",)

    def __init__(self, name: str, reason: str) -> None:
        super().__init__(name)
        self.reason = reason

    def read(self) -> Any:
        """Raises UnboundLocalError with the reason."""
        raise UnboundLocalError(self.reason)


class NoneBefore(Undefined):
    """A variable that is None before a loop and a tensor after each step: a program for all steps cannot read it."""

    __slots__ = ("line",)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.line = _native.calling_line()

    def read(self) -> Any:
        """Raises DynamicShapeError: the function runs op by op, where the first step reads None."""
        name = self.symbol_name
        message = f"`{name}` is None in the first step of a loop and a tensor in the others\n  at {self.line}"
        raise DynamicShapeError(f"{message}\n  help: set `{name}` to a tensor before the loop")


class Skipped(Undefined, NoReturn):
    """A variable without a value on a path that has returned: it is not read there."""

    __slots__ = ()


def is_symbolic(value: Any) -> bool:
    """Whether it is a traced tensor."""
    return isinstance(value, Array) and value.is_symbolic


def holds(value: Any) -> bool:
    """The truth of a known value. Reading a tensor's array is not an op, so it works in a trace."""
    return bool(value.numpy() if isinstance(value, Array) else value)


def is_unset(value: Any) -> bool:
    """Whether it marks a missing value."""
    return isinstance(value, (Undefined, NoReturn))


def is_number(value: Any) -> bool:
    """Whether it is a Python number or boolean."""
    return isinstance(value, (bool, int, float)) and not isinstance(value, np.generic)


def problem(message: str, help: str) -> str:
    """An error message with the line of the statement and a help line."""
    return f"{message}\n  at {_native.calling_line()}\n  help: {help}"


def truth(value: Any, what: str) -> Any:
    """Converts a tensor to a scalar boolean, for a statement of this kind."""
    if value.size != 1:
        message = f"`{what}` needs a scalar condition, got shape {tuple(value.shape)}"
        raise ValueError(problem(message, "use tf.reduce_any, tf.reduce_all or tf.where"))
    if value.ndim:
        value = raw.reshape(value, [])
    return value if value.dtype.name == "bool" else raw.not_equal(value, 0)


def same(one: Any, other: Any) -> bool:
    """Whether two Python values are equal as far as control flow is concerned."""
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
    """The leaves of a variable's value; of ragged and sparse tensors and extension types, those of their parts."""
    flat: list[Any] = []
    for leaf in nest.flatten(value):
        flat += leaves(leaf._taut_parts()) if hasattr(type(leaf), "_taut_parts") else [leaf]
    return flat


def packed(value: Any, parts: Sequence) -> Any:
    """A value with other leaves."""
    return _packed(value, iter(parts))


def _packed(value: Any, rest: Iterator) -> Any:
    def of(leaf: Any) -> Any:
        if hasattr(type(leaf), "_taut_parts"):
            return type(leaf)._taut_from_parts(*_packed(leaf._taut_parts(), rest))
        return next(rest)

    return nest.map_structure(of, value)


def slot(value: Any) -> CarriedSlot | None:
    """The slot of a value; None if it is neither a tensor nor a number."""
    if is_array(value):
        return CarriedSlot(value.dtype, (len(value), *value.element_shape)) if value.knows_shape() else None
    if is_number(value):
        value = _native.as_tensor(value)
    if isinstance(value, (Array, np.ndarray, np.generic)):
        made = value if isinstance(value, Array) else _native.as_tensor(value)
        # Sizes are compared with those of the same trace alone, and loops and branches check them again.
        return CarriedSlot(made.dtype, sizes(made))
    return None


def fits(value: Any, wanted: CarriedSlot | None) -> bool:
    """Whether a value can be carried in a slot."""
    if wanted is None:
        return not isinstance(value, Array)
    if is_unset(value):
        return True
    if is_array(value) and not value.knows_shape():
        return (value.dtype, len(value)) == (wanted.dtype, wanted.shape[0])
    own = slot(value)
    if own is None or own.shape != wanted.shape:
        return False
    return own.dtype == wanted.dtype or (is_number(value) and _becomes(value, wanted.dtype))


def _becomes(number: Any, dtype: Any) -> bool:
    """Whether a Python number takes this type beside a tensor of it."""
    if dtype.name == "bool":
        return isinstance(number, bool)
    return not isinstance(number, bool) and (dtype.is_floating or isinstance(number, int))


def handed(values: Sequence, plan: Plan) -> list | None:
    """The tensors of the values by a plan; None if the plan does not fit."""
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


def _as(value: Any, wanted: CarriedSlot) -> Any:
    if is_unset(value):
        return raw.zeros(list(wanted.shape), wanted.dtype)
    if is_array(value):
        return value.as_rows(wanted.shape[1:])
    return _native.as_tensor(value, wanted.dtype) if is_number(value) else _native.as_tensor(value)


def guess(values: Sequence) -> Plan:
    """The plan for values alone: everything that can be a tensor is one."""
    return [slots(value) for value in values]


def slots(value: Any) -> list:
    """The slots of the leaves of a value."""
    return [] if is_unset(value) else [slot(part) for part in leaves(value)]


def filled(values: Sequence, plan: Plan, tensors: Sequence) -> list:
    """The values with tensors in place of planned leaves. Unset values stay unset."""
    rest = iter(tensors)
    made = []
    for value, slots in zip(values, plan):
        if is_unset(value):
            made.append(value)
            for _ in filter(None, slots):
                next(rest)
            continue
        parts = [part if wanted is None else became(part, next(rest)) for part, wanted in zip(leaves(value), slots)]
        made.append(packed(value, parts))
    return made


def became(value: Any, tensor: Any) -> Any:
    """The value of a leaf after it was carried as this tensor."""
    return value.of_rows(tensor) if is_array(value) else tensor


def described(value: Any) -> str:
    """A value in the words of an error message."""
    if is_unset(value):
        return "not set"
    if isinstance(value, Array):
        return str(slot(value))
    if is_array(value):
        return repr(value)
    if nest.is_nested(value):
        return f"a {type(value).__name__} of {len(value)}"
    if hasattr(type(value), "_taut_parts"):
        return f"a {type(value).__name__}"
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"


def met(one: Any, other: Any) -> CarriedSlot | None:
    """The slot in which two values join; raises ValueError if there is none."""
    first, second = slot(one), slot(other)
    if is_array(one) and is_array(other):
        # An array to which nothing was written takes the shape that the other's elements have.
        first, second = first or second, second or first
        if first is None:
            return None
        if not (fits(one, first) and fits(other, first)):
            raise ValueError(SHAPES_DIFFER)
        return first
    if is_array(one) or is_array(other):
        raise ValueError(KINDS_DIFFER)
    if all(isinstance(value, (str, bytes, _native.StringTensor)) for value in (one, other)):
        # The bytes of strings are known only when the function runs.
        raise ValueError(STRINGS_DIFFER)
    if first is None or second is None:
        raise ValueError(KINDS_DIFFER)
    if first.shape != second.shape:
        raise ValueError(SHAPES_DIFFER)
    if first.dtype == second.dtype:
        return first
    if is_number(one) and _becomes(one, second.dtype):
        return second
    if is_number(other) and _becomes(other, first.dtype):
        return first
    raise ValueError("the types differ")
