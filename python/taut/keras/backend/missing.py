"""Functions of Keras's backend interface that are not implemented."""

from __future__ import annotations

from collections.abc import Callable


def missing(name: str) -> Callable:
    """A function that raises `NotImplementedError`, naming `keras.ops.<name>`.

    Keras looks up backend functions on import, so the error is raised by the call.
    """

    def function(*args, **kwargs):
        raise NotImplementedError(f"keras.ops.{name} is not implemented on the taut backend")

    function.__name__ = function.__qualname__ = name.rsplit(".", 1)[-1]
    function.__doc__ = f"Raises NotImplementedError: `keras.ops.{name}` is not implemented."
    return function
