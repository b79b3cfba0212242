"""Linear algebra on matrices; leading axes are batch axes."""

from ._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
