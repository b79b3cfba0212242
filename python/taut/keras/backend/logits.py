"""From which logits a tensor of probabilities was made, which the cross-entropies ask, as in Keras on TensorFlow.

The logarithm of a probability that was rounded to 0 or 1 is lost, and its gradient is 0: a model that is wrong and sure would
not learn. As with TensorFlow, it does not matter which of the two functions made the probabilities, nor along which axis.
"""

from __future__ import annotations

import warnings
from typing import Any

import taut as tf
from taut._ops.probabilities import note_logits, noted_logits

_OF_KERAS = "keras"


def with_logits(probabilities: tf.Tensor, logits: tf.Tensor) -> tf.Tensor:
    """The result of a softmax or a sigmoid of Keras; the logits live as long as it does."""
    note_logits(_OF_KERAS, probabilities, logits)
    return probabilities


def logits_of(output: Any, from_logits: bool, function: str) -> tuple[Any, bool]:
    """What a cross-entropy computes with, and whether it is logits. Of TensorFlow's own ops, each has its cross-entropy."""
    logits = noted_logits(output, _OF_KERAS, "sigmoid" if function == "binary_crossentropy" else "softmax")
    if logits is None:
        return output, from_logits
    if from_logits:
        warnings.warn(
            f"{function}: from_logits must be False for the output of a softmax or sigmoid, got True: its logits are used",
            stacklevel=3,
        )
    return logits, True
