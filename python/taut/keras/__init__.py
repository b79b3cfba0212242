"""Keras 3 on Taut.

`taut.keras` is the package `keras` itself with Taut as its backend: `taut.keras.layers` is `keras.layers`. Importing it
registers the backend (see `taut.keras.hook`), so it must be imported before Keras is imported with another one.

Four things are added, which `tf.keras` has and `keras` has not: `Sequential` takes plain functions of a tensor, `losses`,
`metrics` and `layers` have the names of `tf.keras` (`MSE`, `mae`, `ThresholdedReLU`, ...), `preprocessing` has its generators
and tokenizers, and `backend` the functions of Keras 2 (`backend.get_value`, `backend.mean`, ...).
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any

from taut import _native, recording
from taut.keras import hook

hook.install()
os.environ["KERAS_BACKEND"] = hook.NAME

try:
    _keras: Any = importlib.import_module("keras")
except ModuleNotFoundError as error:
    if error.name != "keras":
        raise
    raise ModuleNotFoundError("taut.keras needs Keras 3: pip install keras", name="keras") from None

from keras.src.backend.common.stateless_scope import in_stateless_scope  # noqa: E402

from taut.keras import inputs, registration, sequential  # noqa: E402  Keras must be imported before its classes are changed.
from taut.keras.backend.export import refuse_other_formats  # noqa: E402

# Ops that Keras calls, directly or through optree, are attributed to the lines of the program that calls Keras.
for _package in ("keras", "optree"):
    _native.pass_over(os.path.dirname(str(importlib.import_module(_package).__file__)) + os.sep)

hook.check_not_loaded()
sequential.accept_functions(_keras.Sequential)
refuse_other_formats(_keras.Model)
inputs.accept_sparse(importlib.import_module("keras.src.layers.core.input_layer"))
recording.record_calls(_keras.layers.Layer, in_stateless_scope)
registration.register_functions()

for _name in ("losses", "metrics", "layers"):
    _module = getattr(_keras, _name)
    for _short, _value in vars(getattr(_keras._tf_keras.keras, _name)).items():
        if not _short.startswith("_"):
            _module.__dict__.setdefault(_short, _value)

# With `text` and the generators, which `tf.keras` has and `keras` has not.
preprocessing = importlib.import_module("keras._tf_keras.keras.preprocessing")
sys.modules["taut.keras.preprocessing"] = preprocessing
for _name in ("image", "sequence", "text"):
    sys.modules[f"taut.keras.preprocessing.{_name}"] = importlib.import_module(f"{preprocessing.__name__}.{_name}")

for _name, _module in list(sys.modules.items()):
    if _name.startswith("keras.") and not _name.startswith(("keras.src", "keras._", "keras.backend")):
        sys.modules.setdefault("taut." + _name, _module)

backend = _keras._tf_keras.keras.backend
"""Keras's public module, with the functions of Keras 2. The package `taut.keras.backend`, which implements the backend, is
found by its full name."""

__version__ = _keras.__version__


def __getattr__(name: str) -> Any:
    """Every attribute of `keras`."""
    return getattr(_keras, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_keras)})
