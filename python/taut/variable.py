"""Mutable tensors."""

from __future__ import annotations

import contextlib
import enum
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import _native, _raw_ops as raw, slices
from ._common import refuse, refuse_option
from ._ops.scopes import get_current_name_scope, scoped_name
from .dtypes import as_dtype, int32, int64, string
from .errors import (
    DTypeError,
    DynamicShapeError,
    InvalidIndexError,
    OperatorNotAllowedInGraphError,
    OutOfRangeError,
)
from .function import initial_value_unknown, variable_created
from .indexed_slices import IndexedSlices
from .open_variable import OpenVariable, refuse_in_place
from .shape import TensorShape
from .tensor import text_of

if TYPE_CHECKING:
    from ._typing import DTypeLike, ShapeLike, TensorLike


class VariableSynchronization(enum.Enum):
    """When the copies of a variable on several devices are made equal. There is one copy."""

    AUTO = 0
    NONE = 1
    ON_WRITE = 2
    ON_READ = 3


class VariableAggregation(enum.Enum):
    """How the copies of a variable on several devices are combined. There is one copy."""

    NONE = 0
    SUM = 1
    MEAN = 2
    ONLY_FIRST_REPLICA = 3


class _Creators(threading.local):
    """The functions that make variables in this thread."""

    def __init__(self) -> None:
        #: The innermost is the last.
        self.stack: list[Callable] = []
        #: Whether the constructor that is called next makes the variable itself.
        self.are_skipped = False

    def skipped(self) -> bool:
        """Whether the constructor makes its variable itself. Variables that its initial value makes have creators again."""
        skipped, self.are_skipped = self.are_skipped, False
        return skipped or not self.stack


_creators = _Creators()


@contextlib.contextmanager
def variable_creator_scope(variable_creator: Callable) -> Iterator[None]:
    """A context manager in which `variable_creator(next_creator, **kwargs)` makes variables; it calls `next_creator`."""
    stack = _creators.stack
    stack.append(variable_creator)
    try:
        yield
    finally:
        stack.remove(variable_creator)


def _created(cls: type, arguments: dict[str, Any]) -> Variable:
    """The variable that the creators in force make; the innermost is called first."""

    def chain(outer: list[Callable]) -> Callable:
        if not outer:
            return lambda **kwargs: _without_creators(cls, kwargs)
        return lambda **kwargs: outer[-1](chain(outer[:-1]), **kwargs)

    return chain(list(_creators.stack))(**arguments)


def _without_creators(cls: type, arguments: dict[str, Any]) -> Variable:
    """The variable that the constructor itself makes."""
    _creators.are_skipped = True
    try:
        return Variable.__new__(cls, **arguments)
    finally:
        # An error in the arguments comes before the constructor has read it.
        _creators.are_skipped = False


# By id, so that a variable that the engine returns is the Python object it was created as.
_known: weakref.WeakValueDictionary[int, Variable] = weakref.WeakValueDictionary()


class _VariableClass(type):
    """Variables with open dimensions are variables, although their size is not that of one variable of the engine."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return type.__instancecheck__(cls, instance) or (cls is Variable and type(instance) is OpenVariable)


class Variable(_native.Variable, metaclass=_VariableClass):
    """A mutable tensor, updated in place. With open dimensions in `shape`, values of other sizes may be assigned.

    Tapes watch trainable variables when they are read. An assignment writes into the variable's own memory unless a
    tensor read from it is still alive: tensors are immutable, so the variable moves to new memory then.
    """

    def __new__(
        cls,
        initial_value: Any = None,
        trainable: bool | None = None,
        validate_shape: bool = True,
        caching_device: Any = None,
        name: str | None = None,
        variable_def: Any = None,
        dtype: DTypeLike = None,
        import_scope: Any = None,
        constraint: Callable | None = None,
        synchronization: Any = None,
        aggregation: Any = None,
        shape: ShapeLike | None = None,
    ) -> Variable:
        """Creates a variable with an initial value, or with what a function returns."""
        if not _creators.skipped():
            return _created(cls, {key: value for key, value in locals().items() if key not in ("cls", "__class__")})
        if initial_value is None:
            raise ValueError("initial_value must be given")
        refuse_option("Variable", "caching_device", caching_device, "there is one device")
        for parameter, value in (("variable_def", variable_def), ("import_scope", import_scope)):
            refuse_option("Variable", parameter, value, "it belongs to TensorFlow's graphs")
        if constraint is not None and not callable(constraint):
            raise ValueError(f"Variable: constraint must be a function, got {constraint!r}")
        value = initial_value() if callable(initial_value) else initial_value
        declared = None if shape is None else TensorShape(shape)  # type: ignore[arg-type]
        if declared is not None:
            own = value.shape if isinstance(value, _native.Array) else np.shape(value)
            TensorShape(own).assert_is_compatible_with(declared)
        variable_created()
        if get_current_name_scope():
            name = scoped_name(name or "Variable")
        if _is_of_strings(value, dtype):
            remedy = "keep strings in an object of Python, or in a table of tf.lookup"
            refuse("Variable", f"variables of strings are not supported\n  help: {remedy}", DTypeError)
        try:
            if trainable is None:
                # A variable that is combined when it is read is a statistic, not a parameter.
                trainable = synchronization is not VariableSynchronization.ON_READ
            made: Any = _native.Variable.__new__(cls, value, trainable, name, dtype)
        except OperatorNotAllowedInGraphError as error:
            if isinstance(error, DynamicShapeError) or "depends on an argument of the function" not in str(error):
                raise
            raise initial_value_unknown() from None
        made._constraint = constraint
        made._synchronization = synchronization or VariableSynchronization.AUTO
        made._aggregation = aggregation or VariableAggregation.NONE
        if declared is not None and not declared.is_fully_defined():
            if cls is not Variable:
                refuse("Variable", f"a subclass of tf.Variable must have a known shape, got {declared}", ValueError)
            return OpenVariable(made, declared, _known)  # type: ignore[return-value]
        _known[made.id] = made
        return made

    def __getattr__(self, name: str) -> Any:
        """An attribute of the variable that this object stands in for, in a trace: see `variable_arguments`."""
        original = self.__dict__.get("_original")
        if original is None:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}", name=name, obj=self)
        self._note_identity()
        return getattr(original, name)

    def __setattr__(self, name: str, value: Any) -> None:
        original = self.__dict__.get("_original")
        if original is None:
            super().__setattr__(name, value)
        else:
            self._note_identity()
            setattr(original, name, value)

    def __delattr__(self, name: str) -> None:
        original = self.__dict__.get("_original")
        if original is None:
            super().__delattr__(name)
        else:
            self._note_identity()
            delattr(original, name)

    @property
    def name(self) -> str:
        """The name of the variable."""
        return f"{self._name or 'Variable'}:0"

    @property
    def initializer(self) -> None:
        """None: a variable has its initial value from the start, and there is no op to run."""

    @property
    def constraint(self) -> Callable | None:
        """The function that `tf.optimizers` apply to the value after each update; None without one."""
        return getattr(self, "_constraint", None)

    @property
    def synchronization(self) -> VariableSynchronization:
        """What it was made with. There is one copy of a variable."""
        return getattr(self, "_synchronization", VariableSynchronization.AUTO)

    @property
    def aggregation(self) -> VariableAggregation:
        """What it was made with. There is one copy of a variable."""
        return getattr(self, "_aggregation", VariableAggregation.NONE)

    @property
    def handle(self) -> Variable:
        """What TensorFlow's ops take to update the variable: itself."""
        return self

    @property
    def create(self) -> None:
        """None: a variable exists from the start, and there is no op to run."""

    def initialized_value(self) -> _native.Tensor:
        """The value: a variable is initialized from the start."""
        return self.read_value()

    def is_initialized(self, name: str | None = None) -> _native.Tensor:
        """Whether it has a value: always true."""
        return _native.as_tensor(True)

    def value(self) -> _native.Tensor:
        """Reads the value; tapes record it."""
        return self.read_value()

    def assign(
        self, value: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Assigns a value of the variable's type and shape."""
        self._assign(_typed(self, value))
        return self if read_value else None

    def assign_add(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Adds to the value in place."""
        self._assign_add(_typed(self, delta))
        return self if read_value else None

    def assign_sub(
        self, delta: TensorLike, use_locking: bool = False, name: str | None = None, read_value: bool = True
    ) -> Any:
        """Subtracts from the value in place."""
        self._assign_sub(_typed(self, delta))
        return self if read_value else None

    def __getitem__(self, key: Any) -> _native.Tensor:
        """Reads a part of the value. `variable[key].assign(value)` assigns to that part of the variable."""
        part = super().__getitem__(key)
        slices.remember(part, self, key)
        return part

    def scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
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

    def scatter_div(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Divides rows; integers are rounded towards zero."""
        from ._ops.checks import check_holds
        from ._ops.elementwise import truncatediv
        from ._ops.segment import unsorted_segment_prod

        # A row that occurs more than once is divided by the product.
        indices = _native.as_tensor(sparse_delta.indices)
        inside = raw.all(raw.logical_and(indices >= 0, indices < self.shape[0]))
        check_holds(
            "scatter_div",
            inside,
            lambda: f"indices must be in [0, {self.shape[0]}), got {indices!r}",
            InvalidIndexError,
        )
        values = self._row_values(sparse_delta.values, indices)
        divide = truncatediv if self.dtype.is_integer else raw.div
        return self.assign(divide(self, unsorted_segment_prod(values, indices, self.shape[0])))

    def scatter_max(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Takes the maximum with rows."""
        return self._rows("max", sparse_delta)

    def scatter_min(self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None) -> Variable:
        """Takes the minimum with rows."""
        return self._rows("min", sparse_delta)

    def scatter_nd_update(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Variable:
        """Replaces slices at the coordinates along the last axis of `indices`."""
        return self._slices("update", indices, updates)

    def scatter_nd_add(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Variable:
        """Adds to slices at the coordinates along the last axis of `indices`."""
        return self._slices("add", indices, updates)

    def scatter_nd_sub(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Variable:
        """Subtracts from slices at the coordinates along the last axis of `indices`."""
        return self._slices("sub", indices, updates)

    def scatter_nd_max(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Variable:
        """Takes the maximum with slices at the coordinates along the last axis of `indices`."""
        return self._slices("max", indices, updates)

    def scatter_nd_min(self, indices: TensorLike, updates: TensorLike, name: str | None = None) -> Variable:
        """Takes the minimum with slices at the coordinates along the last axis of `indices`."""
        return self._slices("min", indices, updates)

    def batch_scatter_update(
        self, sparse_delta: IndexedSlices, use_locking: bool = False, name: str | None = None
    ) -> Variable:
        """Replaces rows of each batch: the axes of the indices but the last are the batch's."""
        indices = _native.as_tensor(sparse_delta.indices)
        batch = [int(size) for size in indices.shape[:-1]]
        places = [raw.reshape(raw.cast(axis, indices.dtype), [*batch, 1]) for axis in np.indices(batch)]
        spread = [raw.broadcast_to(place, indices.shape) for place in places]
        return self._slices("update", raw.stack([*spread, indices], -1), sparse_delta.values)

    def count_up_to(self, limit: int) -> _native.Tensor:
        """Adds 1 to an integer scalar that is less than `limit`, and returns the value before; else an OutOfRangeError."""
        if self.dtype not in (int32, int64):
            refuse("count_up_to", f"the variable must be int32 or int64, got {self.dtype.name}")
        before = self.read_value()
        if int(before) >= limit:
            refuse("count_up_to", f"reached the limit of {limit}", OutOfRangeError)
        self.assign_add(1)
        return before

    def sparse_read(self, indices: TensorLike, name: str | None = None) -> _native.Tensor:
        """Gathers rows by index."""
        return raw.gather(self, indices)

    def gather_nd(self, indices: TensorLike, name: str | None = None) -> _native.Tensor:
        """Gathers slices at the coordinates along the last axis of `indices`."""
        return raw.gather_nd(self, indices)

    def _rows(self, how: str, delta: IndexedSlices) -> Variable:
        indices = _native.as_tensor(delta.indices)
        return self._slices(how, raw.expand_dims(indices, -1), self._row_values(delta.values, indices))

    def _row_values(self, values: Any, indices: _native.Tensor) -> Any:
        """The values of rows; a scalar stands for all of their elements."""
        values = _typed(self, values)
        return values if np.ndim(values) else raw.broadcast_to(values, [*indices.shape, *self.shape[1:]])

    def _slices(self, how: str, indices: TensorLike, updates: TensorLike) -> Variable:
        self._scatter(how, indices, _typed(self, updates))
        return self

    __iadd__ = __isub__ = __imul__ = __itruediv__ = __ifloordiv__ = __imod__ = __ipow__ = refuse_in_place
    __imatmul__ = refuse_in_place

    def __repr__(self) -> str:
        text = "traced" if self.is_symbolic else f"numpy={text_of(np.asarray(self), repr)}"
        return f"<tf.Variable '{self.name}' shape={self.shape} dtype={self.dtype.name}, {text}>"

    __str__ = __repr__

    def __reduce__(self) -> tuple:
        return _restored, (np.array(self), self.trainable, self._name, self.dtype)

    def __deepcopy__(self, memo: dict) -> Variable:
        copy = Variable(
            self.read_value(),
            trainable=self.trainable,
            name=self._name,
            constraint=self.constraint,
            synchronization=self.synchronization,
            aggregation=self.aggregation,
        )
        memo[id(self)] = copy
        return copy

    def __copy__(self) -> Variable:
        return self.__deepcopy__({})


def _is_of_strings(value: Any, dtype: DTypeLike) -> bool:
    """Whether an initial value is made of strings."""
    if dtype is not None and as_dtype(dtype) == string:
        return True
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    return isinstance(value, (str, bytes, _native.StringTensor)) or kind in ("S", "U")


def _restored(value: TensorLike, trainable: bool, name: str | None, dtype: DTypeLike) -> Variable:
    return Variable(value, trainable=trainable, name=name, dtype=dtype)


def _typed(variable: Variable, value: TensorLike) -> Any:
    """Lists in the variable's type. The engine converts numbers and arrays, and refuses tensors of another type."""
    if isinstance(value, IndexedSlices):
        return value.__taut_tensor__()
    if isinstance(value, (bool, int, float)) or hasattr(value, "dtype"):
        return value
    return _native.as_tensor(value, variable.dtype)


__all__ = ["Variable", "VariableAggregation", "VariableSynchronization", "variable_creator_scope"]
