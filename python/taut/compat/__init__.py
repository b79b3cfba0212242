"""Names of TensorFlow 1 that programs of TensorFlow 2 use."""

from . import v1 as v1
