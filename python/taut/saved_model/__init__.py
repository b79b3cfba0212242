"""Saved models: the variables and traced functions of an object in a folder: `tf.saved_model`.

The format is this package's own: TensorFlow does not read it, and a SavedModel of TensorFlow is refused with an error.
"""

from __future__ import annotations

from .. import _namespace
from ._load import contains_saved_model, load
from ._save import DEFAULT_SERVING_SIGNATURE_DEF_KEY, save
from .options import LoadOptions, SaveOptions

#: The tags of a model: one that is served has the first.
SERVING, TRAINING = "serve", "train"

__all__ = [
    "DEFAULT_SERVING_SIGNATURE_DEF_KEY",
    "SERVING",
    "TRAINING",
    "LoadOptions",
    "SaveOptions",
    "contains_saved_model",
    "load",
    "save",
]
__getattr__, __dir__ = _namespace.plain(__name__)
