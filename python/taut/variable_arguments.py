"""Variables among the arguments of traced functions.

One trace serves all variables of a type and shape. So while a function is traced, an object stands in for each variable that
it is given: it reads and assigns as the variable does. Code that depends on which variable it is given shows that. If it asks
for a number, a name or another attribute, if it keeps the object, or if it uses the same variable without being given it, then
the trace is for these variables only. If it compares objects (`is`, `id`), it is traced again with the variables themselves.
"""

from __future__ import annotations

import builtins
import dis
import functools
import gc
import os
import sys
import types
import weakref
from typing import TYPE_CHECKING, Any

from . import _native
from .autograph.callables import is_never_converted

if TYPE_CHECKING:
    from .variable import Variable

#: The objects that stand in for variables, by trace and variable.
_placeholders: weakref.WeakValueDictionary[tuple[int, int], Variable] = weakref.WeakValueDictionary()


def find(key: tuple[int, int]) -> Variable | None:
    """The object that stands in for a variable in a trace."""
    return _placeholders.get(key)


def placeholder(original: Variable, handle: _native.VariableHandle) -> Variable:
    """The object that stands in for a variable in the trace that a handle belongs to."""
    key = handle.key
    assert key is not None
    found = _placeholders.get(key)
    if found is None:
        found = _native.Variable.__new__(type(original), handle)
        found.__dict__["_original"] = original
        _placeholders[key] = found
    return found


def original(variable: Any) -> Any:
    """The variable itself, in place of an object that stands in for it: for code that keeps state by object."""
    found = variable.__dict__.get("_original") if isinstance(variable, _native.Variable) else None
    if found is None:
        return variable
    variable._note_identity()
    return original(found)


def are_held(keys: list[tuple[int, int]]) -> bool:
    """Whether something holds an object that stood in for a variable, after the trace."""
    if not any(key in _placeholders for key in keys):
        return False
    # Functions that refer to themselves, such as bodies of loops, are freed by the garbage collector.
    gc.collect()
    return any(key in _placeholders for key in keys)


class Observer:
    """Notes whether code that runs on this thread compares objects, until `end`."""

    def __init__(self) -> None:
        self._found = False
        self._outer = sys.getprofile()
        sys.setprofile(self._observe)

    def end(self) -> bool:
        """Ends the observation; returns whether objects were compared."""
        sys.setprofile(self._outer)
        return self._found

    def _observe(self, frame: types.FrameType, event: Any, argument: Any) -> None:
        if self._outer is not None:
            self._outer(frame, event, argument)
        if event == "call":
            self._found = self._found or _compares_objects(frame.f_code)
        elif event == "c_call" and argument in _IDENTITY_FUNCTIONS:
            # The package itself looks up objects of a trace in this way, and variables by their numbers.
            self._found = self._found or not _is_own(frame.f_code.co_filename)


_IDENTITY_FUNCTIONS = (builtins.id, builtins.hash)


@functools.cache
def _is_own(file: str) -> bool:
    """Whether code is that of this package or of the standard library. Keras looks up variables by `id`."""
    return is_never_converted(file) and os.path.join("keras", "src", "") not in file


#: By the id of a code object, which is kept so that its id is not reused: whether it compares objects.
_codes: dict[int, tuple[types.CodeType, bool]] = {}


def _compares_objects(code: types.CodeType) -> bool:
    """Whether code compares with `is`, other than with a constant such as None."""
    known = _codes.get(id(code))
    if known is not None:
        return known[1]
    found = not is_never_converted(code.co_filename) and _has_comparison(code)
    if len(_codes) >= 10_000:
        _codes.clear()
    _codes[id(code)] = (code, found)
    return found


def _has_comparison(code: types.CodeType) -> bool:
    before = ""
    for instruction in dis.get_instructions(code):
        if instruction.opname == "IS_OP" and not before.startswith("LOAD_CONST"):
            return True
        before = instruction.opname
    return False
