"""Variables whose declared shape has open dimensions: `tf.Variable(value, shape=[None])`.

A variable of the engine has one shape. So an open variable holds one, and replaces it when a value of another size is
assigned. Plans need sizes: a traced function that reads or assigns an open variable runs op by op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native, slices
from ._common import refuse
from .errors import DTypeError, DynamicShapeError, InvalidArgumentError
from .shape import TensorShape
from .tensor import Reference, shape as tensor_shape, text_of

if TYPE_CHECKING:
    from .variable import Variable


#: What is the same for every size.
_FIXED = frozenset(
    (
        "name",
        "_name",
        "dtype",
        "trainable",
        "constraint",
        "synchronization",
        "aggregation",
        "device",
        "initializer",
        "create",
    )
)


def refuse_in_place(self: Any, _other: Any) -> Any:
    """The method of an operator that assigns."""
    raise RuntimeError(
        "an operator that assigns, such as `variable += value`, would replace the variable by a tensor\n"
        "  help: variable.assign_add(value) changes the variable, `variable + value` is a tensor"
    )


class OpenVariable:
    """A variable to which values of several sizes may be assigned. `isinstance(v, tf.Variable)` is true of it."""

    __array_priority__ = 100
    _current: Variable
    _declared: TensorShape

    def __init__(self, first: Variable, declared: TensorShape, known: MutableMapping[int, Any]) -> None:
        self._current, self._declared, self._known = first, declared, known
        #: The numbers of the engine's variables that it held before: tapes may have recorded reads of them.
        self._former: list[int] = []
        known[first.id] = self

    def __taut_variable__(self) -> Variable:
        """The variable of the engine that holds the value now. In a trace, it would be that one in every call."""
        self._check_eager()
        return self._current

    def __taut_tensor__(self) -> _native.Tensor:
        """The value, as ops convert it."""
        return self.read_value()

    def __taut_shape__(self, out_type: Any) -> _native.Tensor:
        return tensor_shape(self.read_value(), out_type)

    def __taut_dispatch__(self, function: Any, args: tuple, kwargs: dict[str, Any], error: Exception) -> Any:
        """The result of an op that asks for sizes before it converts its arguments: that for the values."""
        is_op = isinstance(function, _native.Op) or function.__module__.startswith("taut._ops.")
        if not is_op or isinstance(error, DynamicShapeError):
            raise error
        return function(*map(_values, args), **{key: _values(value) for key, value in kwargs.items()})

    def _check_eager(self) -> None:
        """A trace would hold for the size of this moment, which the next call need not have."""
        if _native.is_tracing():
            text = f"the size of the variable {self.name!r} of shape {self._declared} may change"
            refuse("Variable", text, DynamicShapeError)

    @property
    def shape(self) -> TensorShape:
        """The declared shape. `tf.shape(v)` is that of the value."""
        return self._declared

    def get_shape(self) -> TensorShape:
        """The declared shape."""
        return self._declared

    @property
    def _id(self) -> int:
        return id(self)

    @property
    def handle(self) -> OpenVariable:
        """What TensorFlow's ops take to update the variable: itself."""
        return self

    def ref(self) -> Reference:
        """A hashable reference to the variable."""
        return Reference(self)

    def read_value(self) -> _native.Tensor:
        """Reads the value; tapes record it."""
        self._check_eager()
        return self._current.read_value()

    value = initialized_value = read_value_no_copy = read_value

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Assigns a value of the variable's type, whose shape is compatible with the declared one."""
        self._check_eager()
        given = self._typed(value)
        if tuple(given.shape) == tuple(self._current.shape):
            self._current.assign(given)
            return self if read_value else None
        self._check_value("assign", given)
        self._replace(given)
        return self if read_value else None

    def _typed(self, value: Any) -> _native.Tensor:
        """A value as a tensor. A number is one of rank 0: it is not repeated to the size of the value."""
        if isinstance(value, _native.Array) or hasattr(value, "__taut_tensor__"):
            return _native.as_tensor(value)
        # Arrays are converted as those beside a tensor, so that float64 becomes float32.
        beside = hasattr(value, "dtype")
        dtype = self._current.dtype
        return _native.tensor_beside(value, dtype) if beside else _native.as_tensor(value, dtype)

    def _check_value(self, name: str, value: _native.Tensor) -> None:
        own = self._current
        if value.dtype != own.dtype:
            text = f"the variable {self.name!r} must be assigned values of {own.dtype.name}, got {value.dtype.name}"
            refuse(f"Variable.{name}", f"{text}\n  help: cast the value", DTypeError)
        if not self._declared.is_compatible_with(value.shape):
            text = f"the shape of the variable {self.name!r} is {self._declared}, got a value of shape {value.shape}"
            refuse(f"Variable.{name}", text, InvalidArgumentError)

    def _replace(self, value: _native.Tensor) -> None:
        """Holds a value of another size."""
        old = self._current
        made: Any = _native.Variable.__new__(type(old), value, old.trainable, old._name, None)
        vars(made).update(vars(old))
        self._known.pop(old.id, None)
        self._former.append(old.id)
        self._current, self._known[made.id] = made, self

    def _updated(self, name: str, *args: Any, **kwargs: Any) -> Any:
        self._check_eager()
        made = getattr(self._current, name)(*args, **kwargs)
        return None if made is None else self

    def assign_add(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds a value of the same size, in place."""
        return self._updated("assign_add", self._typed(delta), read_value=read_value)

    def assign_sub(
        self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts a value of the same size, in place."""
        return self._updated("assign_sub", self._typed(delta), read_value=read_value)

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = refuse_in_place
    __imatmul__ = refuse_in_place

    def __getitem__(self, key: Any) -> _native.Tensor:
        """Reads a part of the value. `variable[key].assign(value)` assigns to that part of the variable."""
        self._check_eager()
        part = _native.Array.__getitem__(self._current, key)
        slices.remember(part, self, key)
        return part

    def __iter__(self) -> Iterator[_native.Tensor]:
        return iter(self.read_value())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.read_value().__array__(dtype, copy)

    def __getattr__(self, name: str) -> Any:
        # Before the constructor has set it, as in copies.
        if name.startswith("__") or name in ("_current", "_declared", "_former", "_known"):
            raise AttributeError(f"'Variable' object has no attribute {name!r}", name=name, obj=self)
        if name not in _FIXED:
            self._check_eager()
        return getattr(self._current, name)

    def __repr__(self) -> str:
        text = "traced" if _native.is_tracing() else f"numpy={text_of(np.asarray(self), repr)}"
        return f"<tf.Variable '{self.name}' shape={self._declared} dtype={self.dtype.name}, {text}>"

    __str__ = __repr__

    def __reduce__(self) -> tuple:
        own = self._current
        return _restored, (np.array(own), own.trainable, own._name, own.dtype, self._declared)

    def __deepcopy__(self, memo: dict) -> OpenVariable:
        own = self._current
        copy = memo[id(self)] = _restored(self.read_value(), own.trainable, own._name, own.dtype, self._declared)
        return copy

    def __copy__(self) -> OpenVariable:
        return self.__deepcopy__({})

    def _saved_state(self) -> _native.Tensor:
        return self._current.read_value()

    def _check_state(self, path: str, value: _native.Tensor) -> None:
        self._check_value(f"restore of {path}", value)

    def _restore_state(self, value: _native.Tensor) -> None:
        self.assign(value)

    def _watched_in(self, watched: tuple) -> list:
        """The variables of the engine that stood for it in a tape, from the oldest to the current one."""
        former = set(self._former)
        return [one for one in watched if one is not self and one.id in former] + [self._current]


def _values(argument: Any) -> Any:
    """An argument with the values of open variables, also in lists and tuples."""
    if type(argument) in (list, tuple):
        return type(argument)(map(_values, argument))
    return argument.read_value() if type(argument) is OpenVariable else argument


def _delegated(name: str) -> Callable:
    def method(self: OpenVariable, *args: Any) -> Any:
        return getattr(self.read_value(), name)(*args)

    return method


_BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor")
_UNARY = ("neg", "pos", "abs", "invert", "bool", "int", "float", "index", "round", "complex")
_COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")
for _name in (*_BINARY, *(f"r{name}" for name in _BINARY), *_UNARY, *_COMPARISONS):
    setattr(OpenVariable, f"__{_name}__", _delegated(f"__{_name}__"))


def _refuse_hash(_self: OpenVariable) -> int:
    raise TypeError("variables are unhashable, since == compares elements: use variable.ref() as a key")


setattr(OpenVariable, "__hash__", _refuse_hash)


def _updating(name: str) -> Callable:
    def method(self: OpenVariable, *args: Any, **kwargs: Any) -> Any:
        return self._updated(name, *args, **kwargs)

    method.__doc__ = "As of other variables, for the value of this moment."
    return method


_ROWS = ("update", "add", "sub", "mul", "div", "max", "min")
_SLICES = ("nd_update", "nd_add", "nd_sub", "nd_max", "nd_min")
for _name in (*_ROWS, *_SLICES):
    setattr(OpenVariable, f"scatter_{_name}", _updating(f"scatter_{_name}"))


def _restored(value: Any, trainable: bool, name: str | None, dtype: Any, declared: TensorShape) -> Any:
    from .variable import Variable

    return Variable(value, trainable=trainable, name=name, dtype=dtype, shape=declared)


def held(variable: Any) -> Any:
    """The engine's variable behind one with open dimensions; other objects as they are."""
    return variable.__taut_variable__() if type(variable) is OpenVariable else variable
