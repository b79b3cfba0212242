"""Functions whose names keep the objects that they have now, as in a function that is traced at once."""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Iterator
from typing import Any

_WRITES = {dis.opmap[name] for name in ("STORE_DEREF", "DELETE_DEREF", "STORE_GLOBAL", "DELETE_GLOBAL")}
_READS_ALL_NAMES = {"globals", "eval", "exec", "locals", "vars", "__import__"}
#: The entry of a copy's globals that holds the globals, and the pairs of copied and own cells, of the function itself.
_LIVE = "__taut_live_names__"


def with_present_names(function: Callable) -> Callable:
    """A copy of a function in which the names that it reads keep their objects. The variable of a loop, for instance, has
    another value when the function is called.
    """
    if type(function) is not types.FunctionType or hasattr(function, "__taut_converted__"):
        return function
    used: set[str] = set()
    written: set[Any] = set()
    for one in _codes(function.__code__):
        used.update(one.co_names)
        if not _WRITES.isdisjoint(one.co_code[::2]):
            written.update(step.argval for step in dis.get_instructions(one) if step.opcode in _WRITES)
    if used & (_READS_ALL_NAMES | written):
        return function
    own = function.__closure__ or ()
    cells = tuple(
        cell if name in written or not _is_set(cell) else types.CellType(cell.cell_contents)
        for name, cell in zip(function.__code__.co_freevars, own)
    )
    names = {name: value for name, value in function.__globals__.items() if name in used or name.startswith("__")}
    names[_LIVE] = function.__globals__, tuple(zip(cells, own))
    return _copy(function, names, cells)


def with_live_names(function: Any) -> Any:
    """The function itself, for one that a copy with present names has made: `py_function` calls it when the program runs,
    with the objects that its names have then.
    """
    live = function.__globals__.get(_LIVE) if type(function) is types.FunctionType else None
    if live is None:
        return function
    names, pairs = live
    closure = function.__closure__ or ()
    return _copy(function, names, tuple(next((own for copy, own in pairs if copy is cell), cell) for cell in closure))


def _copy(function: types.FunctionType, names: dict[str, Any], cells: tuple[types.CellType, ...]) -> types.FunctionType:
    made = types.FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells or None)
    made.__kwdefaults__, made.__annotations__ = function.__kwdefaults__, function.__annotations__
    made.__module__, made.__qualname__, made.__doc__ = function.__module__, function.__qualname__, function.__doc__
    made.__dict__.update(function.__dict__)
    return made


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code of a function, and of the functions in it."""
    yield code
    for one in code.co_consts:
        if isinstance(one, types.CodeType):
            yield from _codes(one)


def _is_set(cell: Any) -> bool:
    try:
        return cell.cell_contents is cell.cell_contents
    except ValueError:
        return False
