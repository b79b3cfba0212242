"""Calls in converted functions: the callee is converted in turn, or runs unconverted."""

from __future__ import annotations

import dis
import functools
import inspect
import os
import sys
import threading
import types
import warnings
from collections.abc import Callable
from typing import Any

from .. import control
from . import lazily_converted, operators, source
from .builtins import REPLACED
from .experimental import is_marked

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = ("site-packages", "dist-packages")
_UNCONVERTED_PACKAGES = ("keras", "malt", "ml_dtypes", "numpy")
_JUMPS = frozenset(dis.hasjrel) | frozenset(dis.hasjabs)
_CALLS = frozenset(code for name, code in dis.opmap.items() if name.startswith("CALL"))

_LOOK_AT_FRAMES = frozenset(map(id, (eval, globals, locals, super)))

_warned: set[tuple[str, int]] = set()
_lock = threading.Lock()


@functools.cache
def is_never_converted(file: str) -> bool:
    """Whether functions of a file are never converted: this package, the standard library, and a few others."""
    if file.startswith("<frozen"):
        return True
    path = os.path.abspath(file)
    if path.startswith(_PACKAGE):
        return True
    if path.startswith(_STANDARD):
        inside = path[len(_STANDARD) :].split(os.sep)
        if inside[0] not in _INSTALLED:
            return True
    for name in _UNCONVERTED_PACKAGES:
        origin = getattr(sys.modules.get(name), "__file__", None)
        if origin and path.startswith(os.path.dirname(os.path.abspath(origin)) + os.sep):
            return True
    return False


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


def _python_function(callee: Any) -> tuple[types.FunctionType | None, tuple]:
    """The Python function behind a callable, and the arguments that are already bound."""
    if isinstance(callee, types.MethodType):
        inner, first = callee.__func__, (callee.__self__,)
        return (inner, first) if isinstance(inner, types.FunctionType) else (None, ())
    if isinstance(callee, types.FunctionType):
        return callee, ()
    if isinstance(callee, type):
        return None, ()
    method = getattr(type(callee), "__call__", None)  # noqa: B004
    return (method, (callee,)) if isinstance(method, types.FunctionType) else (None, ())


def _wanted(callee: Any, function: types.FunctionType) -> bool:
    """Whether a callable is to be converted."""
    if is_marked(callee) or is_marked(function):
        return False
    code = function.__code__
    return not (is_never_converted(code.co_filename) or inspect.isgeneratorfunction(function))


def call(callee: Callable, args: tuple, kwargs: dict, recursive: bool = True, entry: bool = True) -> Any:
    """Calls a callable, converted if possible."""
    if isinstance(callee, functools.partial):
        return call(callee.func, (*callee.args, *args), {**callee.keywords, **kwargs}, recursive, entry)
    function, first = _python_function(callee)
    if function is None or not _wanted(callee, function):
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
    function, first = _python_function(entity)
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


_ours = (value for value in vars(control).values() if getattr(value, "__module__", "") == control.__name__)
# Functions whose function arguments are converted when they are called from converted code.
_TAKE_FUNCTIONS = frozenset(map(id, (*_ours, map, filter, functools.reduce)))


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
    if id(callee) in _TAKE_FUNCTIONS:

        def ready(value: Any) -> Any:
            is_function = isinstance(value, (types.FunctionType, types.MethodType))
            return lazily_converted(value) if is_function else value

        args = tuple(map(ready, args))
        kwargs = {name: ready(value) for name, value in kwargs.items()}
    return call(callee, args, kwargs, entry=False)


# The namespace `ag__` of converted functions.
_OPERATORS = types.SimpleNamespace(**{**vars(operators), "converted_call": converted_call})
