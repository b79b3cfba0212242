"""TensorFlow's graph scopes. Ops are identified by source line and run in program order, so most have no effect."""

from __future__ import annotations

import contextlib
import functools
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _native, _raw_ops as raw
from .._common import refuse

if TYPE_CHECKING:
    import logging

_scopes = threading.local()


class name_scope:  # noqa: N801
    """A context manager for a prefix of the names of variables that are made inside of it.

    A name that ends with "/" is the whole prefix. Ops are identified by their source lines and have no names.
    """

    def __init__(self, name: str | None) -> None:
        if name is not None and not isinstance(name, str):
            raise ValueError(f"name_scope: name must be a string, got {name!r}")
        self._name = name
        self._outer: list[str] = []

    @property
    def name(self) -> str | None:
        """The name it was made with."""
        return self._name

    def __enter__(self) -> str:
        outer = _scope()
        self._outer.append(outer)
        if self._name:
            _scopes.name = self._name if self._name.endswith("/") else f"{outer}{self._name}/"
        else:
            _scopes.name = ""
        return _scopes.name

    def __exit__(self, *error: object) -> None:
        _scopes.name = self._outer.pop()

    def __call__(self, function: Callable) -> Callable:
        """Decorates a function to run in the scope."""

        @functools.wraps(function)
        def scoped(*args: Any, **kwargs: Any) -> Any:
            with name_scope(self._name):
                return function(*args, **kwargs)

        return scoped


def _scope() -> str:
    """The prefix of names: "" or one that ends with "/"."""
    return getattr(_scopes, "name", "")


def get_current_name_scope() -> str:
    """The current prefix of names, without the "/" at its end."""
    return _scope().removesuffix("/")


def scoped_name(name: str) -> str:
    """A name with the current prefix."""
    return f"{_scope()}{name}"


@contextlib.contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """A context manager for control dependencies. Ops with side effects always keep their program order. Functions among
    the inputs are called first, unless a function is being traced.
    """
    for one in control_inputs or () if not _native.is_tracing() else ():
        if callable(one) and not isinstance(one, _native.Array):
            one()
    yield


def device(device_name: Any) -> contextlib.AbstractContextManager[None]:
    """A context manager for the device of ops. The CPU is the only device, on which all ops run.

    The name of another device is an error if `tf.config.set_soft_device_placement(False)` was called.
    """
    from ..config import get_soft_device_placement
    from ..device_spec import DeviceSpec

    if device_name is not None and not callable(device_name):
        name = device_name.to_string() if isinstance(device_name, DeviceSpec) else str(device_name)
        # A type alone is a name, too: "cpu".
        spec = DeviceSpec.from_string(f"/{name}:0" if name.lower() in ("cpu", "gpu", "tpu") else name)
        if spec.device_type not in (None, "CPU") and not get_soft_device_placement():
            refuse("device", f"device_name must be a CPU such as '/CPU:0', the only device, got {name!r}", ValueError)
    return contextlib.nullcontext()


def no_op(name: str | None = None) -> None:
    """Does nothing."""


def group(*inputs: Any, name: str | None = None) -> None:
    """Groups operations. Calls have run, or are recorded in the trace, in program order; nothing is left to do."""


def tuple(tensors: Any, control_inputs: Any = None, name: str | None = None) -> list:
    """The tensors as a list. All of them have been computed, or are recorded in the trace, when it returns."""
    return [part if part is None else raw.identity(_native.as_tensor(part)) for part in tensors]


def timestamp(name: str | None = None) -> Any:
    """The seconds since the epoch, as float64; in a traced function, of each run."""
    if _native.is_tracing():
        now = lambda _inputs: [np.float64(time.time()).tobytes()]  # noqa: E731
        return _native.host_callback("numpy_function", now, [], [("float64", [])], True)[0]
    return _native.own_tensor(np.float64(time.time()))


def get_logger() -> logging.Logger:
    """The logger of the package."""
    import logging

    return logging.getLogger("taut")


def guarantee_const(input: Any, name: str | None = None) -> Any:
    """The input: a statement for TensorFlow's compiler that it does not change."""
    return raw.identity(_native.as_tensor(input))


class AggregationMethod:
    """How TensorFlow sums gradients. Here they are added in place as they are computed."""

    ADD_N = 0
    DEFAULT = 0
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2
