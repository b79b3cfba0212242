"""Recorded calls as JSON, in which variables, constants and the results of calls have numbers.

The values of variables and constants are in a file beside it.
"""

from __future__ import annotations

import base64
import collections
import enum
import functools
import importlib
import math
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _native, dtypes
from .._surface import SURFACE
from ..indexed_slices import IndexedSlices
from ..open_variable import OpenVariable
from ..recording import Body, Recording, is_recorded
from ..replay import Call, CastVariable, ChangedError, ObservedValue, Weak, is_made
from ..shape import TensorShape
from ..spec import TensorSpec


class NotSavedError(ValueError):
    """An object that has no place in the file."""


class UntrackedError(NotSavedError):
    """A variable that no attribute of the saved object holds."""


class Encoder:
    """Encodes values and recordings of one file."""

    def __init__(self) -> None:
        #: The tensors of the file.
        self.tensors: list[Any] = []
        self._by_id: dict[int, int] = {}
        self._by_content: dict[tuple, int] = {}
        self._alive: list[Any] = []
        #: The variables of the file.
        self.variables: list[Any] = []
        self._variables: dict[int, int] = {}
        #: The numbers of results by id: of the calls of a program, and of those around it, so far.
        self._registers: dict[int, int] = {}
        self._num_results = 0
        self._names = _public_names()

    def add_variable(self, variable: Any) -> int:
        """The number of a variable, which is saved."""
        found = self._variables.get(id(variable))
        if found is None:
            found = self._variables[id(variable)] = len(self.variables)
            self.variables.append(variable)
        return found

    def variable(self, variable: Any) -> int:
        """The number of a variable that was added."""
        found = self._variables.get(id(variable))
        if found is None:
            name = getattr(variable, "name", None)
            raise UntrackedError(f"it uses the variable {name!r} of type {variable.dtype.name}{list(variable.shape)}")
        return found

    def tensor(self, tensor: Any) -> int:
        """The number of a tensor."""
        found = self._by_id.get(id(tensor))
        if tensor.dtype == dtypes.string:
            raise NotSavedError("it uses a constant of strings")
        if found is None:
            found = self._by_id[id(tensor)] = len(self.tensors)
            self._alive.append(tensor)
            self.tensors.append(tensor)
        return found

    def array(self, array: np.ndarray) -> int:
        """The number of an array."""
        key = (array.dtype.str, array.shape, array.tobytes())
        found = self._by_content.get(key)
        if found is None:
            made = _native.as_tensor(np.array(array)) if array.dtype.kind in "biufc" else None
            if made is None or np.asarray(made).dtype != array.dtype:
                raise NotSavedError(f"it uses an array of type {array.dtype}")
            found = self._by_content[key] = self.tensor(made)
        return found

    def value(self, value: Any) -> Any:
        """A value as JSON."""
        found = self._registers.get(id(value))
        if found is not None:
            return {"result": found}
        if isinstance(value, CastVariable):
            return {"cast": [self.variable(value.variable.get()), value.dtype]}
        if isinstance(value, Weak):
            try:
                value = value.get()
            except ChangedError:
                raise NotSavedError(_why_gone(value.kind)) from None
        if isinstance(value, enum.Enum):
            return {"enum": [*_path(type(value), enum_at), value.name]}
        if value is None or isinstance(value, (bool, str)) or type(value) is int:
            return value
        for kind, encode in self._kinds():
            if isinstance(value, kind):
                return encode(value)
        return self._callable(value)

    def _kinds(self) -> list[tuple[Any, Callable]]:
        return [
            (np.generic, lambda one: {"number": self.array(np.asarray(one))}),
            (float, lambda one: {"float": one.hex()}),
            (complex, lambda one: {"complex": [one.real.hex(), one.imag.hex()]}),
            (bytes, lambda one: {"bytes": base64.b64encode(one).decode()}),
            (range, lambda one: {"range": [one.start, one.stop, one.step]}),
            (type(...), lambda _: {"ellipsis": None}),
            (slice, lambda one: {"slice": [self.value(part) for part in (one.start, one.stop, one.step)]}),
            (TensorShape, lambda one: {"shape": dims(one)}),
            (TensorSpec, lambda one: {"spec": [dims(one.shape), one.dtype.name, one.name]}),
            (_native.DType, lambda one: {"dtype": one.name}),
            (np.dtype, lambda one: {"array_dtype": one.str}),
            ((_native.Variable, OpenVariable), lambda one: {"variable": self.variable(one)}),
            (_native.Tensor, self._constant),
            (np.ndarray, lambda one: {"array": self.array(one)}),
            (IndexedSlices, self._slices),
            (Body, lambda one: {"body": [self.program(each) for each in one.recordings]}),
            (dict, self._dict),
            (list, lambda one: [self.value(part) for part in one]),
            (tuple, self._tuple),
        ]

    def _constant(self, tensor: Any) -> Any:
        if tensor.is_symbolic:
            raise NotSavedError("a tensor comes from a call that is not recorded")
        return {"tensor": self.tensor(tensor)}

    def _slices(self, slices: Any) -> Any:
        return {"slices": [self.value(one) for one in (slices.values, slices.indices, slices._static_shape)]}

    def _dict(self, value: dict) -> Any:
        if type(value) not in (dict, collections.OrderedDict):
            raise NotSavedError(f"it uses an object of class {type(value).__name__}")
        items = [[self.value(key), self.value(part)] for key, part in value.items()]
        return {"dict" if type(value) is dict else "ordered_dict": items}

    def _tuple(self, value: tuple) -> Any:
        parts = [self.value(part) for part in value]
        if hasattr(value, "_fields"):
            return {"named_tuple": [type(value).__name__, list(value._fields), parts]}
        if type(value) is not tuple:
            raise NotSavedError(f"it uses an object of class {type(value).__name__}")
        return {"tuple": parts}

    def _callable(self, value: Any) -> Any:
        name = self._names.get(id(value))
        if name is not None:
            return {"name": list(name)}
        if isinstance(value, type):
            return {"type": _path(value, class_at)}
        own_name = str(getattr(value, "__name__", ""))
        owner: Any = getattr(value, "__objclass__", getattr(value, "__self__", None))
        if isinstance(owner, type):
            path = _path(owner, lambda *_: owner)
            if method_at(path[0], path[1], own_name) == value:
                return {"method": [*path, own_name]}
        if own_name in _NATIVE and getattr(_native, own_name) is value:
            return {"native": own_name}
        if isinstance(value, _native.Op) and getattr(_raw_ops(), own_name, None) is value:
            return {"op": own_name}
        if isinstance(value, types.FunctionType):
            path = [value.__module__, value.__qualname__]
            found = _at(*path)
            if is_recorded(found) and value in (found, getattr(found, "__wrapped__", None)):
                return {"function": path}
        raise NotSavedError(_why_not(value))

    def result(self, value: Any) -> Any:
        """The result of a call as JSON: what calls make gets a number."""
        if is_made(value) and not isinstance(value, IndexedSlices):
            # Kept alive, so that no other object has its id.
            self._alive.append(value)
            if id(value) not in self._registers:
                self._registers[id(value)] = self._num_results
                self._num_results += 1
            number = self._registers[id(value)]
            return {"made": [number, value.dtype.name if isinstance(value, _native.Tensor) else None]}
        if isinstance(value, IndexedSlices):
            self._alive.append(value)
            return {"slices": [self.result(one) for one in (value.values, value.indices, value._static_shape)]}
        if isinstance(value, dict):
            return {"dict": [[self.value(key), self.result(part)] for key, part in value.items()]}
        if isinstance(value, list):
            return [self.result(part) for part in value]
        if isinstance(value, tuple):
            parts = [self.result(part) for part in value]
            if hasattr(value, "_fields"):
                return {"named_tuple": [type(value).__name__, list(value._fields), parts]}
            return {"tuple": parts}
        return self.value(value)

    def program(self, recording: Recording) -> dict:
        """A recording as JSON."""
        count = len(self._registers)
        arguments = self.result(recording.arguments)
        calls = [self._entry(entry) for entry in recording.entries]
        made = {"arguments": arguments, "calls": calls, "result": self.value(recording.result)}
        # Its results are not known outside. A call may return a constant, which others use as one.
        while len(self._registers) > count:
            self._registers.popitem()
        return made

    def _entry(self, entry: Any) -> dict:
        if isinstance(entry, ObservedValue):
            value = None if entry.value is None else {"array": self.array(np.asarray(entry.value))}
            return {"observed": self.value(entry.array), "dims": list(entry.dims), "value": value, "at": entry.at}
        assert isinstance(entry, Call)
        try:
            args = [self.value(one) for one in entry.args]
            kwargs = [[name, self.value(one)] for name, one in entry.kwargs.items()]
            check_call(entry.function, entry.kwargs)
            made = {"call": self.value(entry.function), "args": args, "kwargs": kwargs, "at": list(entry.line)}
            made["result"] = self.result(entry.result)
        except NotSavedError as error:
            if "\n  at " in str(error):
                raise
            text, _, remedy = str(error).partition("\n  help: ")
            file, line = entry.line
            raise type(error)(f"{text}\n  at {file}:{line}" + (f"\n  help: {remedy}" if remedy else "")) from None
        return made


def _path(kind: type, find: Callable) -> list[str]:
    """The module and the name under which `find` finds a class."""
    path = [kind.__module__, kind.__qualname__]
    if getattr(_native, kind.__name__, None) is kind:
        path = ["taut._native", kind.__name__]
    if find(*path) is not kind:
        raise NotSavedError(f"it uses the class {kind.__name__}")
    return path


def _why_gone(kind: type) -> str:
    return f"it uses an object of class {kind.__name__}, which its code makes and drops"


def _why_not(value: Any) -> str:
    from .._trackable import is_layer

    if is_layer(value):
        return f"it calls the Keras layer {getattr(value, 'name', type(value).__name__)!r}"
    if isinstance(value, types.FunctionType):
        return f"it calls the function {value.__qualname__} of {value.__module__}, which a file cannot name"
    return f"it uses an object of class {type(value).__name__}"


def dims(shape: TensorShape) -> list | None:
    """The sizes of a shape; None for an unknown rank."""
    return None if shape.rank is None else list(shape)


def _raw_ops() -> Any:
    from .. import _raw_ops

    return _raw_ops


def _public_names() -> dict[int, tuple[str, str]]:
    """The public names of the objects that are in use, by id. Of a recorded function, that of the recording function, too."""
    found: dict[int, tuple[str, str]] = {}
    for module, rows in SURFACE.items():
        own = vars(sys.modules[module]) if module in sys.modules else {}
        for name in rows:
            one = own.get(name)
            if isinstance(one, _native.Op) or is_recorded(one):
                found.setdefault(id(one), (module, name))
                inner = getattr(one, "__wrapped__", None)
                if inner is not None:
                    found.setdefault(id(inner), (module, name))
    return found


def function_at(module: str, path: str) -> Any:
    """A function of this package whose calls are recorded: it computes tensors, and has no other effects."""
    found = _at(module, path)
    if not is_recorded(found):
        raise NotSavedError(f"{module}.{path} is no function of this package that a file may name")
    return found


def public_at(module: str, name: str) -> Any:
    """An op, or a function whose calls are recorded, by its public name."""
    found = _at(module, name) if name in SURFACE.get(module, ()) else None
    if not (isinstance(found, _native.Op) or is_recorded(found)):
        raise NotSavedError(f"{module}.{name} is no public function that a file may name")
    return found


def op_at(name: str) -> Any:
    """An op of the op table."""
    found = getattr(_raw_ops(), name, None)
    if not isinstance(found, _native.Op):
        raise NotSavedError(f"there is no op {name!r}")
    return found


#: The functions of the extension module that recordings call.
_NATIVE = frozenset(
    [
        "as_tensor",
        "cond",
        "map_fn",
        "own_tensor",
        "scan",
        "switch_case",
        "tensor_beside",
        "vectorized_map",
        "while_loop",
    ]
)


def native_at(name: str) -> Any:
    """A function of the extension module that recordings call."""
    if name not in _NATIVE:
        raise NotSavedError(f"{name!r} is no function of the engine that a file may name")
    return getattr(_native, name)


def class_at(module: str, path: str) -> Any:
    """A tape, or the class of an element type."""
    found = None
    if module in ("builtins", "numpy"):
        plain = (bool, int, float, complex, str, bytes)
        named = getattr(importlib.import_module(module), path, None)
        found = named if named in plain or (isinstance(named, type) and issubclass(named, np.generic)) else None
    elif isinstance(named := _at(module, path), type) and issubclass(named, _TAPES):
        found = named
    if found is None:
        raise NotSavedError(f"it uses the class {path} of {module}")
    return found


def enum_at(module: str, path: str) -> Any:
    """An enumeration of this package."""
    found = _at(module, path)
    if not (isinstance(found, type) and issubclass(found, enum.Enum)):
        raise NotSavedError(f"it uses the class {path} of {module}")
    return found


_TAPES = (_native.GradientTape, _native.ForwardAccumulator)
_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)


def method_at(module: str, path: str, name: str) -> Any:
    """A method of the engine's tensors, variables and tapes, or what makes a tape."""
    kind = _at(module, path)
    kinds = (_native.Array, _native.Variable, *_TAPES)
    found = getattr(kind, name, None) if isinstance(kind, type) and issubclass(kind, kinds) else None
    is_method = isinstance(found, _METHODS) and found.__objclass__ in kinds
    if not (is_method or (kind is _native.GradientTape and name == "__new__")):
        raise NotSavedError(f"{path}.{name} is no method that a file may name")
    return found


def check_call(function: Any, kwargs: Any) -> None:
    """Raises NotSavedError for a call that a file must not make."""
    is_function = isinstance(function, (_native.Op, types.BuiltinFunctionType, *_METHODS)) or is_recorded(function)
    if not is_function and function is not _native.ForwardAccumulator:
        raise NotSavedError(f"it calls {function!r}")
    if kwargs.get("output_stream") is not None:
        raise NotSavedError("it prints to a file")


def _at(module: str, path: str) -> Any:
    """What a module of this package has under this name; None without it."""
    if not (module == "taut" or module.startswith("taut.")):
        return None
    try:
        found: Any = importlib.import_module(module)
    except ImportError:
        return None
    for i, name in enumerate(path.split(".")):
        if i and not isinstance(found, type):
            return None
        found = getattr(found, name, None)
    return found


@functools.cache
def _named_tuple(name: str, fields: tuple[str, ...]) -> Any:
    return collections.namedtuple(name, fields)


class Decoder:
    """Decodes values that `Encoder` has encoded."""

    def __init__(self, tensors: list[Any], variables: list[Any]) -> None:
        self.tensors, self.variables = tensors, variables

    def value(self, data: Any, found: Callable[[int], Any] | None = None, body: Callable | None = None) -> Any:
        """A value. `found` gives the results of calls, `body` makes functions of programs."""

        def of(part: Any) -> Any:
            return self.value(part, found, body)

        if isinstance(data, list):
            return [of(part) for part in data]
        if not isinstance(data, dict):
            return data
        ((kind, own),) = data.items()
        match kind:
            case "result":
                if found is None:
                    raise NotSavedError("a result of a call is used outside of a program")
                return found(own)
            case "body":
                if body is None:
                    raise NotSavedError("the body of a loop is used outside of a program")
                return body(own)
            case "float":
                return float.fromhex(own)
            case "complex":
                return complex(*map(float.fromhex, own))
            case "bytes":
                return base64.b64decode(own)
            case "range":
                return range(*own)
            case "ellipsis":
                return ...
            case "slice":
                return slice(*map(of, own))
            case "shape":
                return TensorShape(own)
            case "spec":
                return TensorSpec(own[0], dtypes.as_dtype(own[1]), own[2])
            case "dtype":
                return dtypes.as_dtype(own)
            case "array_dtype":
                return np.dtype(own)
            case "variable":
                return self.variables[own]
            case "cast":
                return _raw_ops().cast(self.variables[own[0]], dtypes.as_dtype(own[1]))
            case "tensor":
                return self.tensors[own]
            case "array":
                return np.array(self.tensors[own])
            case "number":
                return np.array(self.tensors[own])[()]
            case "slices":
                return IndexedSlices(*map(of, own))
            case "dict" | "ordered_dict":
                made = ((of(key), of(part)) for key, part in own)
                return dict(made) if kind == "dict" else collections.OrderedDict(made)
            case "tuple":
                return tuple(map(of, own))
            case "named_tuple":
                return _named_tuple(own[0], tuple(own[1]))(*map(of, own[2]))
            case "enum":
                return enum_at(own[0], own[1])[own[2]]
            case "type":
                return class_at(*own)
            case "method":
                return method_at(*own)
            case "native":
                return native_at(own)
            case "op":
                return op_at(own)
            case "name":
                return public_at(*own)
            case "function":
                return function_at(*own)
        raise NotSavedError(f"unknown value of kind {kind!r}")


def is_same(one: Any, other: Any) -> bool:
    """Whether a result that is no tensor is the recorded one."""
    if one is other:
        return True
    if isinstance(one, (_native.Array, np.ndarray)) or isinstance(other, (_native.Array, np.ndarray)):
        return False
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other):
        return True
    try:
        return type(one) is type(other) and bool(one == other)
    except Exception:
        return False
