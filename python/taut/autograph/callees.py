"""Calls in analysed code: what is known about the result, and that the callee needs no conversion."""

from __future__ import annotations

import builtins
import functools
import inspect
import math
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from .. import _native, control
from .._ops import creation
from . import abstract, experimental
from .abstract import BOTTOM, LIBRARY, PLAIN, UNKNOWN, Closure, Items, Known, Mapping, Method, Parts, Unproven
from .callables import is_wanted, python_function

if TYPE_CHECKING:
    from .analysis import Analysis

# Functions whose function arguments are converted when they are called from converted code.
_CONTROL = frozenset(
    id(value) for value in vars(control).values() if getattr(value, "__module__", "") == control.__name__
)
TAKE_FUNCTIONS = _CONTROL | frozenset(map(id, (map, filter, functools.reduce)))

_GROWING = frozenset(("add", "append", "extend", "insert", "setdefault", "update"))


def call(analysis: Analysis, callee: Any, args: Sequence, kwargs: dict) -> Any:
    """What a call returns. Raises Unproven if the callee may need conversion."""
    match callee:
        case Closure():
            return analysis.call_closure(callee, args, kwargs)
        case Method(owner, name):
            return _method(analysis, owner, name, args, kwargs)
        case Known(value):
            return _known(analysis, value, args, kwargs)
    if callee is BOTTOM:
        return BOTTOM
    if callee is not PLAIN and callee is not LIBRARY:
        raise Unproven("a call of an unknown function")
    given = [*args, *kwargs.values()]
    for one in given:
        if not abstract.is_library(one):
            analysis.put(one)
    plain = callee is PLAIN and all(one is PLAIN or one is BOTTOM for one in given)
    return _library(analysis, PLAIN if plain else LIBRARY, args, kwargs)


def _known(analysis: Analysis, callee: Any, args: Sequence, kwargs: dict) -> Any:
    """A call of an object that is known."""
    if isinstance(callee, functools.partial):
        bound = (*map(abstract.of, callee.args), *args)
        named = {**{name: abstract.of(value) for name, value in callee.keywords.items()}, **kwargs}
        return _known(analysis, callee.func, bound, named)
    special = SPECIAL.get(id(callee))
    if special is not None:
        return special(analysis, args, kwargs)
    if isinstance(callee, types.BuiltinFunctionType) and abstract.is_container(Known(callee.__self__)):
        return _method(analysis, Known(callee.__self__), callee.__name__, args, kwargs)
    if id(callee) in TAKE_FUNCTIONS:
        return _takes_functions(analysis, callee, args, kwargs)
    function, first = python_function(callee)
    if function is None or not is_wanted(callee, function):
        kind = LIBRARY if _is_of_library(callee) else UNKNOWN
        return _library(analysis, kind, args, kwargs)
    return analysis.call_function(function, (*map(abstract.of, first), *args), kwargs)


def _library(analysis: Analysis, kind: Any, args: Sequence, kwargs: dict) -> Any:
    """A call of a function that is never converted. Given no function of the user, it returns none."""
    given = [*args, *kwargs.values()]
    for one in given:
        analysis.escape(one)
    return kind if all(map(abstract.is_library, given)) else UNKNOWN


def _is_of_library(callee: Any) -> bool:
    """Whether it is a function or class of the engine, of NumPy, or of Python's mathematics."""
    if experimental.is_marked(callee):
        return False
    if isinstance(callee, _native.Op):
        return True
    if not isinstance(callee, (type, types.FunctionType, types.BuiltinFunctionType)):
        return isinstance(callee, _NUMPY_FUNCTIONS)
    package = str(getattr(callee, "__module__", "")).split(".")
    return package[0] in ("numpy", math.__name__) or (package[0] == "taut" and package[1:2] != ["keras"])


def _numpy_functions() -> tuple[type, ...]:
    import numpy as np

    return type(np.add), type(np.concatenate)


_NUMPY_FUNCTIONS = _numpy_functions()


def _takes_functions(analysis: Analysis, callee: Callable, args: Sequence, kwargs: dict) -> Any:
    """A call of a function that calls its function arguments with its other arguments, or parts of them."""
    given = [*args, *kwargs.values()]
    functions = [one for one in given if isinstance(one, Closure) or _is_function(one)]
    others = [one for one in given if one not in functions]
    # The functions' parameters are parts of the other arguments, or results of the functions.
    part = LIBRARY if id(callee) in _CONTROL and all(map(abstract.is_library, others)) else UNKNOWN
    for _ in range(2):
        results = [_called_with(analysis, one, part) for one in functions]
        if part is UNKNOWN or all(map(abstract.is_library, results)):
            break
        part = UNKNOWN
    if callee is map or callee is filter:
        return Items(UNKNOWN)
    return part


def _is_function(kind: Any) -> bool:
    return isinstance(kind, Known) and isinstance(kind.value, (types.FunctionType, types.MethodType))


def _called_with(analysis: Analysis, callee: Any, kind: Any) -> Any:
    """A call with any number of arguments of one kind."""
    if isinstance(callee, Closure):
        params = callee.node.args
        if params.vararg or params.kwarg:
            raise Unproven("an unknown number of arguments")
        required = len(params.posonlyargs) + len(params.args) - len(callee.defaults)
        defaults = [abstract.join(kind, default) for default in callee.defaults]
        return analysis.call_closure(callee, [kind] * required + defaults, {})
    function, first = python_function(callee.value)
    if function is None or not is_wanted(callee.value, function):
        return LIBRARY if _is_of_library(callee.value) else UNKNOWN
    code = function.__code__
    if code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
        raise Unproven("an unknown number of arguments")
    defaults = [abstract.join(kind, abstract.of(default)) for default in function.__defaults__ or ()]
    required = code.co_argcount - len(first) - len(defaults)
    return call(analysis, callee, [kind] * required + defaults, {})


def _method(analysis: Analysis, owner: Any, name: str, args: Sequence, kwargs: dict) -> Any:
    """A call of a method of a container."""
    given = [analysis.escape(one) for one in (*args, *kwargs.values())]
    pairs = abstract.pairs(owner)
    if name in _GROWING:
        for one in given:
            analysis.put(analysis.element(one) if name in ("extend", "update") else one)
        if name == "update":
            analysis.put(abstract.joined(abstract.item(one) for one in given))
    value = abstract.join(abstract.item(owner), analysis.contents)
    match name:
        case "items" if pairs:
            return Items(Parts((pairs.key, value)))
        case "keys" if pairs:
            return Items(pairs.key)
        case "values" if pairs:
            return Items(value)
        case "get" | "pop" | "setdefault":
            return abstract.joined([value, PLAIN, *given])
        case "copy":
            return owner if pairs else Items(value)
        case "add" | "append" | "count" | "extend" | "index" | "insert" | "update":
            return PLAIN
    return UNKNOWN


# Built-in functions, by their identity. Those that converted code replaces must get no traced tensor.


def _only_plain(result: Any) -> Callable:
    def special(_analysis: Analysis, args: Sequence, kwargs: dict) -> Any:
        if not all(one is PLAIN or one is BOTTOM for one in (*args, *kwargs.values())):
            raise Unproven("a built-in function of a tensor")
        return result

    return special


def _always(result: Any) -> Callable:
    def special(analysis: Analysis, args: Sequence, kwargs: dict) -> Any:
        for one in (*args, *kwargs.values()):
            analysis.escape(one)
        return result

    return special


def _enumerate(analysis: Analysis, args: Sequence, _kwargs: dict) -> Any:
    if not args or not abstract.is_iterated_by_python(args[0]):
        raise Unproven("a loop")
    return Items(Parts((PLAIN, analysis.element(args[0]))))


def _zip(analysis: Analysis, args: Sequence, _kwargs: dict) -> Any:
    # With one iterable of Python, the others are iterated over by Python as well.
    if args and not any(map(abstract.is_iterated_by_python, args)):
        raise Unproven("a loop")
    return Items(Parts(tuple(map(analysis.element, args))))


def _reduced(result: Any) -> Callable:
    """`sum`, `any` and `all`, of containers of Python only."""

    def special(analysis: Analysis, args: Sequence, _kwargs: dict) -> Any:
        if not args or not abstract.is_iterated_by_python(args[0]):
            raise Unproven("a built-in function of a tensor")
        kinds = [analysis.element(args[0]), *args[1:], PLAIN]
        return result or (abstract.joined(kinds) if all(map(abstract.is_library, kinds)) else UNKNOWN)

    return special


def _extreme(analysis: Analysis, args: Sequence, kwargs: dict) -> Any:
    """`max` and `min`, of numbers only."""
    parts = [analysis.element(args[0])] if len(args) == 1 and abstract.is_iterated_by_python(args[0]) else args
    return _only_plain(PLAIN)(analysis, parts, kwargs)


def _refuse(_analysis: Analysis, _args: Sequence, _kwargs: dict) -> Any:
    """Functions that may bind any name."""
    raise Unproven("a call that may bind any name")


def _arithmetic(analysis: Analysis, args: Sequence, kwargs: dict) -> Any:
    plain = all(one is PLAIN or one is BOTTOM for one in (*args, *kwargs.values()))
    return PLAIN if plain else _library(analysis, LIBRARY, args, kwargs)


def _sequence(analysis: Analysis, args: Sequence, kwargs: dict) -> Any:
    """`list`, `tuple`, `set` and `reversed`: iterate as Python does, and return a container."""
    for one in kwargs.values():
        analysis.escape(one)
    return Items(analysis.element(args[0]) if args else BOTTOM)


def _sorted(analysis: Analysis, args: Sequence, kwargs: dict) -> Any:
    if not args or not abstract.is_iterated_by_python(args[0]):
        raise Unproven("a built-in function of a tensor")
    return _sequence(analysis, args, kwargs)


def _dict(analysis: Analysis, args: Sequence, kwargs: dict) -> Any:
    values = [analysis.escape(one) for one in kwargs.values()]
    if not args:
        return Mapping(PLAIN if values else BOTTOM, abstract.joined(values))
    found = abstract.pairs(args[0]) or Mapping(UNKNOWN, UNKNOWN)
    return Mapping(abstract.join(found.key, PLAIN), abstract.joined([found.value, *values]))


SPECIAL: dict[int, Callable] = {
    id(python): special
    for python, special in (
        (builtins.range, _only_plain(Items(PLAIN))),
        (creation.range, _only_plain(LIBRARY)),
        (builtins.enumerate, _enumerate),
        (builtins.zip, _zip),
        (builtins.float, _only_plain(PLAIN)),
        (builtins.int, _only_plain(PLAIN)),
        (builtins.bool, _only_plain(PLAIN)),
        (builtins.sum, _reduced(None)),
        (builtins.any, _reduced(PLAIN)),
        (builtins.all, _reduced(PLAIN)),
        (builtins.max, _extreme),
        (builtins.min, _extreme),
        *((one, _always(PLAIN)) for one in (callable, format, hasattr, hash, id, isinstance, issubclass, len)),
        *((one, _always(PLAIN)) for one in (ord, print, repr, str)),
        *((one, _refuse) for one in (eval, exec, setattr)),
        *((one, _arithmetic) for one in (abs, divmod, pow, round)),
        *((one, _sequence) for one in (frozenset, list, reversed, set, tuple)),
        (builtins.sorted, _sorted),
        (builtins.dict, _dict),
    )
}
