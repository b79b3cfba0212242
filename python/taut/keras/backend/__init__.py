"""The backend that Keras imports under the name `taut`. Keras imports everything that `__all__` lists."""

from taut._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
