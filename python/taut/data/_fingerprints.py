"""What datasets were made of: a snapshot that was written for another pipeline is not read."""

from __future__ import annotations

import functools
import hashlib
import itertools
import os
import types
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _native
from .._native import StringTensor

_PLAIN = (type(None), bool, int, float, complex, str, bytes)
#: Methods whose results are noted by the methods that they call, or that make no dataset; and those that note the tensors which
#: they have made of their arguments, so that large lists are not kept.
_NOT_NOTED = frozenset(
    [
        "apply",
        "options",
        "with_options",
        "reduce",
        "iterate",
        "cardinality",
        "save",
        "from_tensors",
        "from_tensor_slices",
    ]
)

#: The folders of this package, and of Python's own modules.
_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARY = os.path.dirname(os.__file__)

_numbers = itertools.count()


def next_number() -> int:
    """A number that is larger than those before it."""
    return next(_numbers)


def noted(dataset_class: type) -> type:
    """A class of datasets whose methods note their names and arguments in the datasets that they make."""
    for name, member in list(vars(dataset_class).items()):
        if name.startswith("_") or name in _NOT_NOTED:
            continue
        if isinstance(member, staticmethod):
            setattr(dataset_class, name, staticmethod(_noting(name, member.__func__)))
        elif isinstance(member, types.FunctionType):
            setattr(dataset_class, name, _noting(name, member))
    return dataset_class


def noted_source(dataset_class: Any) -> None:
    """The same for a class whose objects are made by their class."""
    made = dataset_class.__init__

    @functools.wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        made(self, *args, **kwargs)
        object.__setattr__(self, "_made_by", (dataset_class.__name__, args, kwargs))

    dataset_class.__init__ = init


def _noting(name: str, method: Callable) -> Callable:
    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = next_number()
        made = method(*args, **kwargs)
        # A dataset that is not one of the arguments.
        if getattr(made, "__dict__", {}).get("_number", -1) > before:
            made._made_by = (name, args, kwargs)
        return made

    return call


def fingerprint(dataset: Any) -> str:
    """A digest of the stages of a dataset, their arguments, and the code of their functions. It is the same in other runs of
    the program. Of objects that are not tensors, arrays, functions or plain values, the class is a part of it.
    """
    digest, seen, rest = hashlib.blake2b(digest_size=8), {id(dataset): dataset}, [dataset]
    # A dataset may be made of more datasets than functions can be nested.
    while rest:
        _add(digest.update, rest.pop()._made_by, seen, rest)
    return digest.hexdigest()


def outline(dataset: Any) -> tuple[int, str]:
    """A number for the methods that have made a dataset and those it is built on, without their other arguments, and the names
    of the methods, the last one first. `prefetch` is left out: it does not change the elements.
    """
    numbers: dict[int, int] = {}
    names: dict[str, None] = {}
    rest = [dataset]
    while rest:
        one = rest[-1]
        name, *arguments = one._made_by or ("",)
        if name != "prefetch":
            names[name] = None
        inputs = _datasets(arguments)
        missing = [part for part in inputs if id(part) not in numbers]
        if missing:
            rest += missing
            continue
        own = ",".join(str(numbers[id(part)]) for part in inputs)
        numbers[id(one)] = zlib.crc32(f"{name}({own})".encode()) if name != "prefetch" else numbers[id(inputs[0])]
        rest.pop()
    return numbers[id(dataset)], ", ".join(name for name in names if name)


def _datasets(value: Any) -> list:
    """The datasets in a structure."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return [dataset for part in value for dataset in _datasets(part)]
    return [value] if hasattr(value, "_made_by") else []


def _add(put: Callable[[bytes], None], value: Any, seen: dict[int, Any], rest: list) -> None:
    """Adds a value. `seen` holds what was added, by its id, so that none is added twice, and ids stay theirs; `rest` receives
    the datasets that are to be added.
    """

    def parts(*values: Any) -> None:
        put(f"({len(values)}".encode())
        for one in values:
            _add(put, one, seen, rest)
        put(b")")

    put(f"{type(value).__qualname__};".encode())
    if isinstance(value, _PLAIN):
        put(repr(value).encode())
    elif isinstance(value, StringTensor):
        parts(list(value.shape), np.asarray(value.numpy(), object).tolist())
    elif isinstance(value, np.ndarray) and value.dtype == object:
        parts(list(value.shape), value.tolist())
    elif isinstance(value, (np.ndarray, np.generic, _native.Array, _native.Variable)):
        array = np.asarray(value)
        put(f"{array.dtype.name}{array.shape}".encode() + array.tobytes())
    elif id(value) in seen:
        put(b"again")
    else:
        seen[id(value)] = value
        if isinstance(value, dict):
            parts(*(part for pair in value.items() for part in pair))
        elif isinstance(value, (tuple, list)):
            parts(*value)
        elif isinstance(value, (set, frozenset)):
            parts(*sorted(map(repr, value)))
        elif hasattr(value, "_made_by"):
            rest.append(value)
        elif isinstance(value, types.CodeType):
            parts(value.co_code, value.co_consts, value.co_names)
        elif isinstance(value, types.FunctionType):
            parts(value.__code__, value.__defaults__, value.__kwdefaults__, _cells(value), _globals(value))
        elif isinstance(value, types.MethodType):
            parts(value.__func__)
        elif isinstance(value, functools.partial):
            parts(value.func, value.args, value.keywords)
        elif callable(inner := getattr(value, "python_function", None)):
            parts(inner)
        elif hasattr(value, "_taut_parts"):
            parts(*value._taut_parts())
        elif isinstance(name := getattr(value, "__qualname__", None) or getattr(value, "__name__", None), str):
            put(name.encode())
        elif str(type(value).__module__).split(".")[0] == "taut":
            # Types, shapes and specs.
            put(repr(value).encode() if " at 0x" not in repr(value) else b"")


def _cells(function: types.FunctionType) -> list:
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            found.append(None)
    return found


def _globals(function: types.FunctionType) -> dict[str, Any]:
    """The objects that the code names, if it is that of the program; those of installed packages are not looked into."""
    file = function.__code__.co_filename
    if "site-packages" in file or file.startswith((_PACKAGE, _LIBRARY)):
        return {}
    names = [name for name in function.__code__.co_names if name in function.__globals__]
    return {name: function.__globals__[name] for name in names}
