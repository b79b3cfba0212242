"""The exceptions that are raised, under TensorFlow's names and with Python's own classes as bases.

A mistake of type is a ``TypeError``, an index outside a tensor an ``IndexError``, a file that cannot be read an
``OSError``; everything else is one of these.
"""


class OpError(Exception):
    """Something that an op refused or could not do."""

    @property
    def message(self) -> str:
        """What went wrong."""
        return str(self)


class InvalidArgumentError(OpError, ValueError):
    """Arguments that make no sense, or shapes that do not fit together."""


class ResourceExhaustedError(OpError, MemoryError):
    """No memory, or the limit reached. Everything is as it was before the call."""


class DataLossError(OpError, ValueError):
    """A file whose content is not what it claims to be."""


class OperatorNotAllowedInGraphError(OpError, TypeError):
    """A value asked of a tensor that is being traced and has none."""


class OutOfRangeError(OpError, IndexError):
    """A dataset has no more elements."""


class NotFoundError(OpError, FileNotFoundError):
    """A file that is not there."""


class FailedPreconditionError(OpError, RuntimeError):
    """Something that has to happen before did not."""
