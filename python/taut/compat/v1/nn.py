"""Building blocks of neural networks, with the signatures of TensorFlow 1."""

from ..._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
