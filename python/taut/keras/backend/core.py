"""`keras.ops`: shapes, slices, control flow and gradients."""

from taut._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
