"""Which callables AutoGraph converts."""

from __future__ import annotations

import functools
import inspect
import os
import sys
import types
from typing import Any

from .experimental import is_marked

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = ("site-packages", "dist-packages")
_UNCONVERTED_PACKAGES = ("keras", "malt", "ml_dtypes", "numpy")


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


def python_function(callee: Any) -> tuple[types.FunctionType | None, tuple]:
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


def is_wanted(callee: Any, function: types.FunctionType) -> bool:
    """Whether a callable is to be converted."""
    if is_marked(callee) or is_marked(function):
        return False
    code = function.__code__
    return not (is_never_converted(code.co_filename) or inspect.isgeneratorfunction(function))
