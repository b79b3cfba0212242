"""`keras.ops`: activations, convolution, pooling, losses and attention."""

from taut._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
