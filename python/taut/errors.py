"""Exceptions, under TensorFlow's names and derived from Python's own classes.

An element type that an op does not take is a ``TypeError``, too, and a file that cannot be read is an ``OSError``;
every other error is one of these.
"""

from __future__ import annotations

import functools
from typing import Any, NoReturn

OK = 0
CANCELLED = 1
UNKNOWN = 2
INVALID_ARGUMENT = 3
DEADLINE_EXCEEDED = 4
NOT_FOUND = 5
ALREADY_EXISTS = 6
PERMISSION_DENIED = 7
RESOURCE_EXHAUSTED = 8
FAILED_PRECONDITION = 9
ABORTED = 10
OUT_OF_RANGE = 11
UNIMPLEMENTED = 12
INTERNAL = 13
UNAVAILABLE = 14
DATA_LOSS = 15
UNAUTHENTICATED = 16


class OpError(Exception):
    """Base class of errors raised by ops: made of a message, or as TensorFlow's of node, op and message."""

    #: The number of the kind of error.
    error_code: int = UNKNOWN

    def __init__(self, *args: Any) -> None:
        # Of `(node_def, op, message, error_code)` the message is what there is here.
        made: Any = (args[0], args[1]) if len(args) >= 3 else (None, None)
        self._node_def, self._op = made
        if len(args) >= 4:
            self.error_code = args[3]
        super().__init__(args[2] if len(args) >= 3 else args[0] if args else "")

    @property
    def message(self) -> str:
        """The message."""
        return str(self)

    @property
    def node_def(self) -> Any:
        """The node that the error was made with."""
        return self._node_def

    @property
    def op(self) -> Any:
        """The op that the error was made with."""
        return self._op


class InvalidArgumentError(OpError, ValueError):
    """An invalid argument, or shapes that do not match."""

    error_code = INVALID_ARGUMENT


class InvalidIndexError(InvalidArgumentError, IndexError):
    """An index or an axis out of range."""


class DTypeError(InvalidArgumentError, TypeError):
    """An element type that an op does not take, or arguments that do not fit an input signature."""


class ResourceExhaustedError(OpError, MemoryError):
    """Out of memory, or the memory limit reached. Nothing has changed."""

    error_code = RESOURCE_EXHAUSTED


class DataLossError(OpError, ValueError):
    """A corrupt file."""

    error_code = DATA_LOSS


class DataFormatError(DataLossError, InvalidArgumentError):
    """A file or string whose contents are malformed. TensorFlow raises one of the two classes, depending on the op:
    `DataLossError` for records, `InvalidArgumentError` for pictures, rows and examples.
    """


class OperatorNotAllowedInGraphError(OpError, TypeError):
    """An operation that needs the value of a traced tensor."""


class NoArrayError(OperatorNotAllowedInGraphError, AttributeError):
    """`numpy()` of a traced tensor, which in TensorFlow has no such method."""


class DynamicShapeError(OperatorNotAllowedInGraphError):
    """A shape that depends on the value of a traced tensor, where it must be known: in a plan, or under a memory budget.

    Without those, a traced function whose shapes depend on values runs op by op.
    """


class OutOfRangeError(OpError, IndexError):
    """The end of a dataset."""

    error_code = OUT_OF_RANGE


class NotFoundError(OpError, FileNotFoundError):
    """A file that does not exist."""

    error_code = NOT_FOUND


class FailedPreconditionError(OpError, RuntimeError):
    """A precondition that does not hold."""

    error_code = FAILED_PRECONDITION


class AbortedError(OpError, RuntimeError):
    """An operation that was aborted, as by another one at the same time."""

    error_code = ABORTED


class AlreadyExistsError(OpError, FileExistsError):
    """Something that exists already."""

    error_code = ALREADY_EXISTS


class CancelledError(OpError, RuntimeError):
    """An operation that was cancelled."""

    error_code = CANCELLED


class DeadlineExceededError(OpError, TimeoutError):
    """An operation that took too long."""

    error_code = DEADLINE_EXCEEDED


class InternalError(OpError, RuntimeError):
    """A fault of the engine."""

    error_code = INTERNAL


class PermissionDeniedError(OpError, PermissionError):
    """An operation that is not permitted."""

    error_code = PERMISSION_DENIED


class UnauthenticatedError(OpError, PermissionError):
    """A request without credentials."""

    error_code = UNAUTHENTICATED


class UnimplementedError(OpError, NotImplementedError):
    """An operation that is not supported."""

    error_code = UNIMPLEMENTED


class UnknownError(OpError, RuntimeError):
    """An error of another kind."""

    error_code = UNKNOWN


class UnavailableError(OpError, ConnectionError):
    """Another process cannot be reached, has ended, or does something else."""

    error_code = UNAVAILABLE


#: TensorFlow's classes for the errors that a function of the user raises. Each is derived from Python's class, too.
_OF_USERS = {
    ValueError: InvalidArgumentError,
    TypeError: DTypeError,
    MemoryError: ResourceExhaustedError,
    # Not derived from Python's class: a loop would take it for the end of its elements.
    StopIteration: InvalidArgumentError,
    NotImplementedError: UnimplementedError,
}


@functools.cache
def _also_unknown(kind: type) -> Any:
    # Some classes have a text that is made of other arguments.
    own = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__str__": BaseException.__str__}
    try:
        made = type(kind.__name__, (UnknownError, kind), own)
        made("")
    except TypeError:
        # The class of an extension module that cannot be combined with another, or one that needs other arguments.
        return UnknownError
    return made


def raise_for(name: str, error: Exception) -> NoReturn:
    """Raises an error of a function that the engine has called, with TensorFlow's class, which is derived from Python's, too.
    TensorFlow's errors, and those whose classes are not Python's, stay as they are.
    """
    kind: Any = type(error)
    try:
        if isinstance(error, OpError) or kind.__module__ != "builtins":
            raise error
        raise (_OF_USERS.get(kind) or _also_unknown(kind))(f"{name}: {kind.__name__}: {error}") from error
    finally:
        # The traceback holds this frame: without the name there is no cycle, which would keep tensors alive.
        del error
