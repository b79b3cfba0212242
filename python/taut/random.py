"""Counter-based (Philox) random numbers: a seed gives the same values on any number of threads."""

from ._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
