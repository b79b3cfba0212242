"""Types for annotations and `isinstance`: `tf.types`."""

from . import experimental as experimental

__all__ = ["experimental"]
