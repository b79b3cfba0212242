"""Taut's functions in models that Keras saves: `Dense(3, activation=tf.nn.relu)`."""

from __future__ import annotations

import types
from typing import Any

from keras.src.saving import object_registration

import taut as tf
from taut import _native
from taut._surface import SURFACE


def register_functions() -> None:
    """Registers the ops and the functions of `tf`, `tf.nn` and `tf.math` with Keras, which saves them by name."""
    _register("Op", _native.Op)
    for prefix, module in (("", tf), ("nn.", tf.nn), ("math.", tf.math)):
        for name in SURFACE[module.__name__]:
            function = getattr(module, name)
            if isinstance(function, types.FunctionType):
                _register(prefix + name, function)


def _register(name: str, function: Any) -> None:
    """Registers an object under `taut>name`. A function that has several names keeps the first."""
    object_registration.GLOBAL_CUSTOM_OBJECTS[f"taut>{name}"] = function
    object_registration.GLOBAL_CUSTOM_NAMES.setdefault(function, f"taut>{name}")
