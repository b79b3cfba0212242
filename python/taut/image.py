"""Operations on images: tensors of shape [height, width, channels], or batches of them."""

from ._namespace import lazy

__getattr__, __dir__, __all__ = lazy(__name__)
