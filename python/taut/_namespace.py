"""Modules whose names come from the table in `_surface.py`."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
import types
from collections.abc import Callable
from typing import Any

from . import _native, _raw_ops
from ._missing import explain
from ._surface import SURFACE, Object, OpName, Row, Wrapped
from .recording import recorded

#: Modules of functions that compute tensors from tensors. Their calls are recorded as one each.
_RECORDED = ("taut._ops.", "taut.math_special", "taut.tensor")
#: Functions of these modules that make no tensors.
_PLAIN = ("control_dependencies", "device", "get_logger", "is_tensor")
#: Those behind `keras.ops` whose code reads sizes.
_RECORDED_OF_KERAS = tuple(
    f"taut.keras.backend.ops.{name}" for name in ("fourier", "image", "linalg", "math", "nn.", "numpy.", "warping")
)


@functools.cache
def resolve(name: str, row: Row) -> Any:
    """The object behind a public name. One object per row."""
    match row:
        case OpName(op, None) if op == name:
            return getattr(_raw_ops, name)
        case OpName(op, params):
            return _native.Op(op, name, None if params is None else list(params))
        case Object(module, ""):
            return importlib.import_module(module)
        case Object(module, own):
            found = getattr(importlib.import_module(module), own)
            if isinstance(found, types.FunctionType) and module.startswith(_RECORDED) and own not in _PLAIN:
                found = recorded(found)
                # A pickle names the module.
                setattr(sys.modules[module], own, found)
            elif isinstance(found, types.FunctionType) and module.startswith("taut.keras.backend."):
                if module.startswith(_RECORDED_OF_KERAS):
                    found = recorded(found)
                    setattr(sys.modules[module], own, found)
                found.__signature__ = _without_annotations(found)  # type: ignore[attr-defined]
            return found
        case Wrapped(module, function, op):
            return getattr(importlib.import_module(module), function)(name, getattr(_raw_ops, op))


def _without_annotations(function: Callable[..., Any]) -> inspect.Signature:
    """The signature of a function of the backend as that of Keras's own, which has names and defaults alone."""
    own = inspect.signature(function)
    parameters = [one.replace(annotation=inspect.Parameter.empty) for one in own.parameters.values()]
    return own.replace(parameters=parameters, return_annotation=inspect.Signature.empty)


def lazy(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """`__getattr__`, `__dir__` and `__all__` of a module. Names are resolved when they are first used."""
    rows = SURFACE[module]
    own = vars(sys.modules[module])

    def __getattr__(name: str) -> Any:  # noqa: N807
        row = rows.get(name)
        if row is None:
            raise AttributeError(explain(module, name), name=name, obj=sys.modules[module])
        own[name] = value = resolve(name, row)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*rows, *(name for name in own if name.startswith("__"))})

    return __getattr__, __dir__, sorted(rows)


def plain(module: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a module that defines its names itself: its `__all__` is what is meant for users."""
    own = vars(sys.modules[module])

    def __getattr__(name: str) -> Any:  # noqa: N807
        raise AttributeError(explain(module, name), name=name, obj=sys.modules[module])

    def __dir__() -> list[str]:  # noqa: N807
        return sorted({*own["__all__"], *(name for name in own if name.startswith("__"))})

    return __getattr__, __dir__


def eager(module: str) -> dict[str, Any]:
    """All names of a module, resolved now."""
    return {name: resolve(name, row) for name, row in SURFACE[module].items()}
