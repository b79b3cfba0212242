"""The namespace `tf.compat.v1`: those of its names that programs of TensorFlow 2 use."""

from . import nn as nn
