"""The namespace `tf.distribute.experimental`: options of the messages between processes, and names that moved."""

from __future__ import annotations

from .. import _namespace
from . import MultiWorkerMirroredStrategy
from ._options import CommunicationImplementation, CommunicationOptions, ValueContext

CollectiveCommunication = CommunicationImplementation

__all__ = [
    "CollectiveCommunication",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "ValueContext",
]

__getattr__, __dir__ = _namespace.plain(__name__)
