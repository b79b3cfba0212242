"""Taut: a tensor engine whose memory is known, kept and explained, shaped like TensorFlow 2.

>>> import taut as tf
>>> x = tf.constant([[1.0, 2.0], [3.0, 4.0]])
>>> tf.matmul(x, x).numpy().tolist()
[[7.0, 10.0], [15.0, 22.0]]
"""

from __future__ import annotations

import os as _os
import typing as _typing

import numpy as _numpy

from . import _native

# Errors, plans and profiles name the caller's lines, not the package's, nor NumPy's that asks for a tensor's array.
_native.pass_over(_os.path.dirname(__file__) + _os.sep)
_native.pass_over(_os.path.dirname(_numpy.__file__) + _os.sep)

from . import _namespace, _op as _op, dtypes as dtypes, errors as errors, memory as memory, nest as nest  # noqa: E402
from .string_tensor import StringTensor as _StringTensor  # noqa: E402, F401  The module adds its methods.

# The top-level names come from the table in `_surface.py`. They are bound here, after the modules of the same name
# (`function`, `shape`, `custom_gradient`) have been imported.
globals().update(_namespace.eager(__name__))

__version__ = "0.1.0"
newaxis = None

# Submodules that are imported on first use.
_MODULES = frozenset(
    {
        *("array_api", "audio", "autodiff", "autograph", "bitwise", "compat", "config", "data", "debugging"),
        *("distribute", "experimental", "image", "io", "keras", "linalg", "lookup", "math", "nn", "optimizers"),
        *("profiler", "quantization", "queue", "ragged", "random", "sets", "signal", "sparse", "strings"),
        *("saved_model", "summary", "sysconfig", "test", "train", "types", "version"),
    }
)
# Modules of Keras that TensorFlow has at its top level, too.
_KERAS = frozenset(("initializers", "losses", "metrics"))


def __getattr__(name: str) -> _typing.Any:
    if name in _MODULES:
        import importlib

        return importlib.import_module(f"{__name__}.{name}")
    if name in _KERAS:
        from . import keras

        return getattr(keras, name)
    from ._missing import explain

    raise AttributeError(explain(__name__, name))


def __dir__() -> list[str]:
    plain = (
        "dtypes",
        "errors",
        "memory",
        "nest",
        "newaxis",
        "__version__",
        "__doc__",
        "__file__",
        "__name__",
        "__path__",
    )
    return sorted({*plain, *_namespace.SURFACE[__name__], *_MODULES, *_KERAS})
