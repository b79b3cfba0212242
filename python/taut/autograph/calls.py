"""Calls in converted functions: the callee is converted in turn, or runs unconverted."""

from __future__ import annotations

import dis
import functools
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

from . import analysis, lazily_converted, operators, source
from .builtins import REPLACED
from .callables import is_wanted, python_function
from .callees import TAKE_FUNCTIONS

_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_CALLS = frozenset(code for name, code in dis.opmap.items() if name.startswith("CALL"))

_LOOK_AT_FRAMES = frozenset(map(id, (eval, globals, locals, super)))

_warned: set[tuple[str, int]] = set()
_lock = threading.Lock()


def _has(code: types.CodeType, instructions: frozenset[int]) -> bool:
    """Whether a code object contains one of these instructions."""
    return any(instruction.opcode in instructions for instruction in dis.get_instructions(code))


def _warn(function: types.FunctionType, reason: str) -> None:
    """Warns once that a function runs unconverted."""
    code = function.__code__
    place = (code.co_filename, code.co_firstlineno)
    with _lock:
        if place in _warned:
            return
        _warned.add(place)
    warnings.warn_explicit(
        f"{function.__qualname__} is not converted by AutoGraph, so its control flow cannot depend on tensors: {reason}. "
        "Decorate it with @tf.autograph.experimental.do_not_convert to silence this warning",
        UserWarning,
        code.co_filename,
        code.co_firstlineno,
    )


def call(callee: Callable, args: tuple, kwargs: dict, recursive: bool = True, entry: bool = True) -> Any:
    """Calls a callable, converted if possible."""
    if isinstance(callee, functools.partial):
        return call(callee.func, (*callee.args, *args), {**callee.keywords, **kwargs}, recursive, entry)
    function, first = python_function(callee)
    if function is None or not is_wanted(callee, function):
        return callee(*args, **kwargs)
    # Without `recursive`, the functions that it calls run unconverted in any case.
    if recursive and analysis.runs_as_it_is(function, (*first, *args), kwargs):
        return callee(*args, **kwargs)
    try:
        factory = source.factory(function, recursive)
    except source.ConversionError as reason:
        if _has(function.__code__, _JUMPS | _CALLS if entry else _JUMPS):
            _warn(function, str(reason))
        return callee(*args, **kwargs)
    return factory.made(function, _OPERATORS)(*first, *args, **kwargs)


def converted(entity: Callable, recursive: bool) -> Callable:
    """The converted function; raises ValueError if it cannot be converted."""
    function, first = python_function(entity)
    if function is None:
        raise ValueError(f"expected a Python function, got {entity!r}")
    try:
        made = source.factory(function, recursive).made(function, _OPERATORS)
    except source.ConversionError as reason:
        raise ValueError(f"{function.__qualname__} cannot be converted: {reason}") from None
    setattr(made, "__taut_do_not_convert__", True)
    return functools.partial(made, *first) if first else made


def _by_frame(callee: Callable, args: tuple, scope: Any) -> Any:
    """Calls a built-in function that inspects its caller's frame, in the frame of the scope."""
    from malt.operators import py_builtins

    if callee is super:
        return py_builtins.super_in_original_context(callee, args, scope)
    if callee is eval:
        return py_builtins.eval_in_original_context(callee, args, scope)
    if callee is locals:
        return py_builtins.locals_in_original_context(scope)
    return py_builtins.globals_in_original_context(scope)


def converted_call(callee: Callable, args: tuple, kwargs: dict | None, scope: Any = None, _options: Any = None) -> Any:
    """The replacement of a call in a converted function."""
    kwargs = kwargs or {}
    replaced = REPLACED.get(id(callee))
    if replaced is not None:
        return replaced(*args, **kwargs)
    if scope.name and id(callee) in _LOOK_AT_FRAMES:
        return _by_frame(callee, args, scope)
    if not scope.recursive:
        return callee(*args, **kwargs)
    if id(callee) in TAKE_FUNCTIONS:

        def ready(value: Any) -> Any:
            is_function = isinstance(value, (types.FunctionType, types.MethodType))
            return lazily_converted(value) if is_function else value

        args = tuple(map(ready, args))
        kwargs = {name: ready(value) for name, value in kwargs.items()}
    return call(callee, args, kwargs, entry=False)


# The namespace `ag__` of converted functions.
_OPERATORS = types.SimpleNamespace(**{**vars(operators), "converted_call": converted_call})
