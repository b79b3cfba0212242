"""The namespace `tf.compat.v1`: those of its names that programs of TensorFlow 2 use.

Functions whose arguments or meaning differ from TensorFlow 2's are defined in `_functions.py` and `nn.py`; names that moved are
listed in `_names.py`. What needs graphs and sessions is missing.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import _names, nn as nn


def _part(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name}")


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)
    functions, namespaces = _part("_functions"), _part("_namespaces")
    if name in namespaces.NAMES:
        found = namespaces.module(name)
    elif name in functions.PUBLIC:
        found = getattr(functions, name)
    else:
        found = _of_tensorflow_2(name)
    globals()[name] = found
    return found


def _of_tensorflow_2(name: str) -> Any:
    found: Any = importlib.import_module("taut")
    message = _part("_namespaces").explained(name)
    if name in _names.DIFFERENT[""]:
        raise AttributeError(message, name=name)
    for part in _names.RENAMED.get(name, name).split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise AttributeError(message, name=name) from None
    return found


def __dir__() -> list[str]:
    own = {*_part("_functions").PUBLIC, *_part("_namespaces").NAMES, *_names.RENAMED, "nn"}
    return sorted({*own, *dir(importlib.import_module("taut"))} - _names.DIFFERENT[""])
