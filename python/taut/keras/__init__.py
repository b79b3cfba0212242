"""Keras 3, running on Taut.

`taut.keras` is the package `keras` itself, with Taut as its backend: `taut.keras.layers` is `keras.layers`,
and what one makes, the other takes. Importing it registers the backend (see `taut.keras.hook`), so it has to
happen before Keras is imported with another one.

Two things are added to what Keras has: `Sequential` takes plain functions of a tensor, and `losses` and
`metrics` have the short names that `tf.keras` gives them (`MSE`, `mae`, ...).
"""

from __future__ import annotations

import os
import sys
from typing import Any

from taut import _native
from taut.keras import hook

hook.install()
os.environ["KERAS_BACKEND"] = hook.NAME

try:
    import keras as _keras
except ModuleNotFoundError as error:
    if error.name != "keras":
        raise
    raise ModuleNotFoundError("taut.keras needs Keras 3: pip install keras", name="keras") from None

from taut.keras import sequential  # noqa: E402  Keras has to be there before its classes are changed.

# Keras works for others: what it calls is attributed to the lines that call it.
_native.pass_over(os.path.dirname(_keras.__file__) + os.sep)

hook.check_not_loaded()
sequential.accept_functions(_keras.Sequential)

for _name in ("losses", "metrics"):
    _module = getattr(_keras, _name)
    for _short, _value in vars(getattr(_keras._tf_keras.keras, _name)).items():
        if not _short.startswith("_"):
            _module.__dict__.setdefault(_short, _value)

for _name, _module in list(sys.modules.items()):
    if _name.startswith("keras.") and not _name.startswith(("keras.src", "keras._", "keras.backend")):
        sys.modules.setdefault("taut." + _name, _module)

backend = _keras.backend
"""Keras's public module of this name. The package that implements it is found by its full name only."""

__version__ = _keras.__version__


def __getattr__(name: str) -> Any:
    """Whatever `keras` has."""
    return getattr(_keras, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_keras)})
