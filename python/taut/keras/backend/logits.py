"""From which logits a tensor of probabilities was made, which the cross-entropies ask, as in Keras on TensorFlow.

The logarithm of a probability that was rounded to 0 or 1 is lost, and its gradient is 0: a model that is wrong and sure would
not learn. As with TensorFlow, it does not matter which of the two functions made the probabilities, nor along which axis.
"""

from __future__ import annotations

import warnings
from typing import Any

from keras.src.backend.common.tensor_attributes import get_tensor_attr, set_tensor_attr

import taut as tf
from taut._ops.probabilities import logits_in_function


def with_logits(probabilities: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """The result of a softmax or a sigmoid; the logits live as long as it does."""
    set_tensor_attr(probabilities, "_keras_logits", logits)
    return probabilities


def logits_of(output: Any, from_logits: bool, function: str) -> tuple[Any, bool]:
    """What a cross-entropy computes with, and whether it is logits. Of TensorFlow's own ops, each has its cross-entropy."""
    logits = get_tensor_attr(output, "_keras_logits")
    if logits is None:
        logits = logits_in_function(output, "sigmoid" if function == "binary_crossentropy" else "softmax")
    if logits is None:
        return output, from_logits
    if from_logits:
        warnings.warn(
            f"{function}: from_logits must be False for the output of a softmax or sigmoid, got True: its logits are used",
            stacklevel=3,
        )
    return logits, True
