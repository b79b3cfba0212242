"""Plain functions as layers of a `Sequential` model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from keras.src.layers.core.lambda_layer import Lambda
from keras.src.layers.layer import Layer

from taut.keras.backend.layer import converted_in_traces


def accept_functions(sequential: type) -> None:
    """Let `sequential.add`, and with it the constructor, take functions of one tensor beside layers.

    A function becomes a `Lambda` layer. What the function creates inside, it creates at every call, and
    the model does not know of it: state belongs into layers.
    """
    if hasattr(sequential.add, "accepts_functions"):
        return
    add = sequential.add

    @functools.wraps(add)
    def add_layer_or_function(self, layer, rebuild=True):
        return add(self, as_layer(layer), rebuild=rebuild)

    add_layer_or_function.accepts_functions = True
    sequential.add = add_layer_or_function


def as_layer(layer: Any) -> Any:
    """`layer` itself, or a layer that calls it if it is a mere function.

    Classes are not wrapped: a class in a list of layers is a forgotten pair of parentheses, and Keras says
    so.
    """
    is_function = (
        callable(layer) and not isinstance(layer, (Layer, type)) and not hasattr(layer, "_keras_history")
    )
    return Lambda(calling(layer)) if is_function else layer


def calling(function: Callable) -> Callable:
    """A Python function of one argument that calls `function`, converted in traces as layers are: `Lambda`
    reads signatures, and callable objects such as those with their own gradient need not have one."""
    converted = converted_in_traces(function)

    def call(inputs):
        return converted(inputs)

    return call
