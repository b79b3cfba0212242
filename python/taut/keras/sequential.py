"""Functions as layers of a `Sequential` model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from keras.src.layers.core.lambda_layer import Lambda
from keras.src.layers.layer import Layer

from taut.keras.backend.layer import converted_in_traces


def accept_functions(sequential: Any) -> None:
    """Makes `sequential.add`, and with it the constructor, accept functions of one tensor.

    A function becomes a `Lambda` layer. Variables that it creates are created at every call and are unknown to the
    model: state belongs into layers.
    """
    if hasattr(sequential.add, "accepts_functions"):
        return
    add = sequential.add

    @functools.wraps(add)
    def add_layer_or_function(self, layer, rebuild=True):
        return add(self, as_layer(layer), rebuild=rebuild)

    setattr(add_layer_or_function, "accepts_functions", True)
    sequential.add = add_layer_or_function


def as_layer(layer: Any) -> Any:
    """The layer itself, or a `Lambda` layer for a function.

    Classes are not wrapped: a class in a list of layers is a missing pair of parentheses, which Keras reports.
    """
    is_function = callable(layer) and not isinstance(layer, (Layer, type)) and not hasattr(layer, "_keras_history")
    return Lambda(calling(layer)) if is_function else layer


def calling(function: Callable) -> Callable:
    """A function of one argument that calls `function`, converted in traces as layers are.

    `Lambda` inspects signatures, which callable objects may not have.
    """
    converted = converted_in_traces(function)

    def call(inputs):
        return converted(inputs)

    return call
