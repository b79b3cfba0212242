"""What every Keras layer inherits from the backend: tensors may decide the control flow of its `call`, and its
`build` is no part of a trace."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from keras.src.utils.python_utils import is_default

import taut as tf
from taut.autograph import calls


class Layer:
    """The backend's part of `keras.Layer`.

    The `call` of a layer or model that somebody wrote is converted when it is traced, as functions are: in
    `fit`, inside a `taut.function`, and where Keras asks for its shapes. Keras's own layers run as they are.

    A layer that is built inside a trace outlives it, and so does all that its `build` makes.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls).get("call")
        if isinstance(own, types.FunctionType) and not calls.runs_as_it_is(own.__code__.co_filename):
            cls.call = converted_in_traces(own)
        build = vars(cls).get("build")
        if isinstance(build, types.FunctionType) and not is_default(build):
            cls.build = outside_of_traces(build)


def converted_in_traces(call: Callable) -> Callable:
    """The method; while something is traced, with operators in place of its control flow."""

    @functools.wraps(call)
    def converted(*args: Any, **kwargs: Any) -> Any:
        if tf.executing_eagerly():
            return call(*args, **kwargs)
        return calls.call(call, args, kwargs, entry=False)

    return converted


def outside_of_traces(build: Callable) -> Callable:
    """The method, which runs at once, whatever is traced."""

    @functools.wraps(build)
    def built(*args: Any, **kwargs: Any) -> Any:
        with tf.init_scope():
            return build(*args, **kwargs)

    return built
