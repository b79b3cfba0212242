"""`keras.ops`: segment reductions, Fourier transforms and special functions."""

from taut._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
