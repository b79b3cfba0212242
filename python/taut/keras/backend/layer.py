"""The backend's base class of Keras layers: tensors may decide the control flow of `call`, and `build` is not traced."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from keras.src.utils.python_utils import is_default

import taut as tf
from taut._trackable import raise_refused, refused, variables_made
from taut.autograph import callables, needs_no_conversion


class Layer:
    """Base class of `keras.Layer`.

    The `call` of a user's layer or model is converted by AutoGraph when it is traced: in `fit`, inside a
    `taut.function`, and when Keras computes its output shapes. Keras's own layers are not converted.

    A layer that is built inside a trace outlives it, as do the variables that `build` creates.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = vars(cls).get("call")
        if isinstance(own, types.FunctionType) and not callables.is_never_converted(own.__code__.co_filename):
            setattr(cls, "call", converted_in_traces(own))
        build = vars(cls).get("build")
        if isinstance(build, types.FunctionType) and not is_default(build):
            setattr(cls, "build", outside_of_traces(build))

    def _post_track_variable(self, _variable: Any) -> None:
        variables_made(self)


def converted_in_traces(call: Callable) -> Callable:
    """The method, converted by AutoGraph while tracing."""

    @functools.wraps(call)
    def converted(*args: Any, **kwargs: Any) -> Any:
        if refused and tf.executing_eagerly():
            raise_refused(args[0])
        if tf.executing_eagerly() or needs_no_conversion(call, args, kwargs):
            return call(*args, **kwargs)
        from taut.autograph import calls

        return calls.call(call, args, kwargs, entry=False)

    return converted


def outside_of_traces(build: Callable) -> Callable:
    """The method, run eagerly even while tracing."""

    @functools.wraps(build)
    def built(*args: Any, **kwargs: Any) -> Any:
        with tf.init_scope():
            return build(*args, **kwargs)

    return built
