"""`keras.ops.image`."""

from taut._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
