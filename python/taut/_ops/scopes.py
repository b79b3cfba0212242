"""TensorFlow's graph scopes. Ops are identified by source line and run in program order, so most have no effect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .._common import refuse


@contextlib.contextmanager
def name_scope(name: str | None) -> Iterator[str]:
    """A context manager for a name prefix. Ops are identified by their source lines, so the name has no effect."""
    yield f"{name}/" if name else ""


@contextlib.contextmanager
def control_dependencies(control_inputs: Any) -> Iterator[None]:
    """A context manager for control dependencies. Ops with side effects always keep their program order."""
    yield


def device(device_name: Any) -> contextlib.AbstractContextManager[None]:
    """A context manager for the device of ops. The CPU is the only device; any other name is an error."""
    if device_name is not None and "cpu" not in str(device_name).lower():
        refuse(
            "device", f"device_name must be a CPU such as '/CPU:0', the only device, got {device_name!r}", ValueError
        )
    return contextlib.nullcontext()


def no_op(name: str | None = None) -> None:
    """Does nothing."""


def group(*inputs: Any, name: str | None = None) -> None:
    """Groups operations. Calls have run, or are recorded in the trace, in program order; nothing is left to do."""
