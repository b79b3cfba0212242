"""Exceptions, under TensorFlow's names and derived from Python's own classes.

A wrong type is a ``TypeError``, a file that cannot be read an ``OSError``; every other error is one of these.
"""


class OpError(Exception):
    """Base class of errors raised by ops."""

    @property
    def message(self) -> str:
        """The message."""
        return str(self)


class InvalidArgumentError(OpError, ValueError):
    """An invalid argument, or shapes that do not match."""


class InvalidIndexError(InvalidArgumentError, IndexError):
    """An index out of range."""


class ResourceExhaustedError(OpError, MemoryError):
    """Out of memory, or the memory limit reached. Nothing has changed."""


class DataLossError(OpError, ValueError):
    """A corrupt file."""


class OperatorNotAllowedInGraphError(OpError, TypeError):
    """An operation that needs the value of a traced tensor."""


class OutOfRangeError(OpError, IndexError):
    """The end of a dataset."""


class NotFoundError(OpError, FileNotFoundError):
    """A file that does not exist."""


class FailedPreconditionError(OpError, RuntimeError):
    """A precondition that does not hold."""


class UnavailableError(OpError, ConnectionError):
    """Another process cannot be reached, has ended, or does something else."""
