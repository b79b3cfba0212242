"""`keras.ops`: NumPy's functions, with Keras's rules of type promotion."""

from taut._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
