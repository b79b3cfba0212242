"""Functions of Keras's backend interface that are not there yet."""

from __future__ import annotations

from collections.abc import Callable


def missing(name: str) -> Callable:
    """A function that raises `NotImplementedError`, naming `keras.ops.<name>`.

    Keras looks its backend's functions up by name as it goes, so what is missing is said when it is called.
    """

    def function(*args, **kwargs):
        raise NotImplementedError(f"keras.ops.{name} is not there yet on the taut backend")

    function.__name__ = function.__qualname__ = name.rsplit(".", 1)[-1]
    function.__doc__ = f"Raises: `keras.ops.{name}` is not there yet."
    return function
