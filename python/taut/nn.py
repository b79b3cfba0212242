"""Building blocks of neural networks: activations, convolution, pooling, normalization, losses."""

from ._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
