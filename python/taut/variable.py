"""Variables."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import numpy as np

from . import _native, slices
from .shape import TensorShape
from .sparse import IndexedSlices
from .tensor import text_of

_expand = _native.Op("expand_dims")
_gather = _native.Op("gather")
_gather_nd = _native.Op("gather_nd")


# What the engine names by its number is the same object again.
_known: weakref.WeakValueDictionary[int, Variable] = weakref.WeakValueDictionary()


class Variable(_native.Variable):
    """A tensor that can be changed, in its own memory.

    Trainable variables are followed by tapes as soon as they are read. Assignments write where the variable is, unless
    somebody still holds a tensor that was read from it: nothing changes a tensor that somebody has.
    """

    def __new__(
        cls,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: Any = None,
        import_scope: Any = None,
        constraint: Callable | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: Any = None,
    ) -> Variable:
        if initial_value is None:
            raise ValueError("a variable needs a first value")
        if constraint is not None:
            raise ValueError("a variable has no constraint here: assign what it makes of the variable after each update")
        value = initial_value() if callable(initial_value) else initial_value
        if shape is not None:
            own = value.shape if isinstance(value, _native.Array) else np.shape(value)
            TensorShape(own).assert_is_compatible_with(shape)
        made = super().__new__(cls, value, trainable is not False, name, dtype)
        _known[made.id] = made
        return made

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self._name or 'Variable'}:0"

    def value(self) -> _native.Tensor:
        """Its value now, as tapes see it."""
        return self.read_value()

    def assign(self, value: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Gives it another value, of its own type and shape."""
        self._assign(_typed(self, value))
        return self if read_value else None

    def assign_add(self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Adds to it, in place."""
        self._assign_add(_typed(self, delta))
        return self if read_value else None

    def assign_sub(self, delta: Any, use_locking: bool = False, name: str | None = None, read_value: bool = True) -> Any:
        """Subtracts from it, in place."""
        self._assign_sub(_typed(self, delta))
        return self if read_value else None

    def __getitem__(self, key: Any) -> _native.Tensor:
        """A part of its value. `variable[key].assign(value)` changes that part of the variable."""
        part = super().__getitem__(key)
        slices.remember(part, self, key)
        return part

    def scatter_update(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Replaces rows."""
        return self._rows("update", sparse_delta)

    def scatter_add(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Adds to rows."""
        return self._rows("add", sparse_delta)

    def scatter_sub(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Subtracts from rows."""
        return self._rows("sub", sparse_delta)

    def scatter_mul(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Multiplies rows."""
        return self._rows("mul", sparse_delta)

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Raises rows to what is larger."""
        return self._rows("max", sparse_delta)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Lowers rows to what is smaller."""
        return self._rows("min", sparse_delta)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Replaces slices: the last axis of `indices` holds coordinates."""
        return self._slices("update", indices, updates)

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Adds to slices: the last axis of `indices` holds coordinates."""
        return self._slices("add", indices, updates)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Subtracts from slices: the last axis of `indices` holds coordinates."""
        return self._slices("sub", indices, updates)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Raises slices to what is larger: the last axis of `indices` holds coordinates."""
        return self._slices("max", indices, updates)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Variable:
        """Lowers slices to what is smaller: the last axis of `indices` holds coordinates."""
        return self._slices("min", indices, updates)

    def sparse_read(self, indices: Any, name: str | None = None) -> _native.Tensor:
        """The rows that the indices name."""
        return _gather(self, indices)

    def gather_nd(self, indices: Any, name: str | None = None) -> _native.Tensor:
        """The slices at the coordinates along the last axis of `indices`."""
        return _gather_nd(self, indices)

    def _rows(self, how: str, delta: IndexedSlices) -> Variable:
        return self._slices(how, _expand(_native.as_tensor(delta.indices), -1), delta.values)

    def _slices(self, how: str, indices: Any, updates: Any) -> Variable:
        self._scatter(how, indices, _typed(self, updates))
        return self

    def __repr__(self) -> str:
        text = "traced" if self.is_symbolic else f"numpy={text_of(np.asarray(self), repr)}"
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, {text}>"

    __str__ = __repr__

    def __reduce__(self) -> tuple:
        return _restored, (np.array(self), self.trainable, self._name, self.dtype)

    def __deepcopy__(self, memo: dict) -> Variable:
        copy = Variable(self.read_value(), trainable=self.trainable, name=self._name)
        memo[id(self)] = copy
        return copy

    def __copy__(self) -> Variable:
        return self.__deepcopy__({})


def _restored(value: Any, trainable: bool, name: str | None, dtype: Any) -> Variable:
    return Variable(value, trainable=trainable, name=name, dtype=dtype)


def _typed(variable: Variable, value: Any) -> Any:
    """Numbers and lists take the variable's type; a tensor of another type is refused by the engine."""
    if isinstance(value, (_native.Array, bool, int, float)):
        return value
    if isinstance(value, IndexedSlices):
        return value.__taut_tensor__()
    return _native.as_tensor(value, None if hasattr(value, "dtype") else variable.dtype)


__all__ = ["Variable"]
