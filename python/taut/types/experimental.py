"""Types of functions and of what becomes a tensor: `tf.types.experimental`."""

from __future__ import annotations

import abc

from .._namespace import plain
from .._typing import TensorLike
from ..concrete_function import ConcreteFunction
from ..function import Function as GenericFunction

PolymorphicFunction = GenericFunction


class Callable(abc.ABC):  # noqa: B024  Its subclasses are registered.
    """What `tf.function` makes, and the concrete functions of it."""


Callable.register(GenericFunction)
Callable.register(ConcreteFunction)

__all__ = ["Callable", "ConcreteFunction", "GenericFunction", "PolymorphicFunction", "TensorLike"]

__getattr__, __dir__ = plain(__name__)
