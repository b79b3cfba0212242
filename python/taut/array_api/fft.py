"""Fourier transforms of the array API standard."""

from .._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
