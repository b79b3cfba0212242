"""Cross-entropies and the peak signal-to-noise ratio."""

from __future__ import annotations

import math
from typing import Any

from keras.src.backend.config import epsilon

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, shape_of
from taut.keras.backend.logits import logits_of
from taut.recording import recorded


@recorded
def categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> tf.Tensor:
    """Computes the cross-entropy of distributions along an axis, from logits or from probabilities, which are
    normalized.
    """
    output, from_logits = logits_of(convert_to_tensor(output), from_logits, "categorical_crossentropy")
    target = convert_to_tensor(target, output.dtype)
    if shape_of(target) != shape_of(output):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. Received: "
            f"target.shape={shape_of(target)}, output.shape={shape_of(output)}"
        )
    if len(target.shape) < 1:
        raise ValueError("Arguments `target` and `output` must be at least rank 1.")
    if from_logits:
        return -tf.reduce_sum(target * tf.nn.log_softmax(output, axis=axis), axis=axis)
    output = output / tf.reduce_sum(output, axis=axis, keepdims=True)
    return -tf.reduce_sum(target * tf.math.log(clip_probabilities(output)), axis=axis)


@recorded
def sparse_categorical_crossentropy(target: Any, output: Any, from_logits: bool = False, axis: int = -1) -> tf.Tensor:
    """Computes the cross-entropy for integer targets. Probabilities are clipped, then normalized, as with TensorFlow."""
    output, from_logits = logits_of(convert_to_tensor(output), from_logits, "sparse_categorical_crossentropy")
    target = convert_to_tensor(target, "int32")
    if len(target.shape) == len(output.shape) and shape_of(target)[-1] == 1:
        target = tf.squeeze(target, axis=-1)
    classes = shape_of(output)[axis]
    others = [dim for i, dim in enumerate(shape_of(output)) if i != axis % len(output.shape)]
    if list(shape_of(target)) != others:
        raise ValueError(
            "Arguments `target` and `output` must have the same shape up until the last dimension. Received: "
            f"target.shape={shape_of(target)}, output.shape={shape_of(output)}"
        )
    if not from_logits:
        output = tf.math.log(clip_probabilities(output))
    if axis in (-1, len(output.shape) - 1):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=output)
    # A label out of range has no one in its one-hot row: its loss would be 0.
    in_range = tf.reduce_all((target >= 0) & (target < classes))
    tf.debugging.Assert(in_range, [f"labels must be in [0, {classes})"])
    logs = tf.nn.log_softmax(output, axis=axis)
    return -tf.reduce_sum(tf.one_hot(target, classes, axis=axis, dtype=output.dtype) * logs, axis=axis)


@recorded
def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> tf.Tensor:
    """Computes the elementwise binary cross-entropy, from logits or from probabilities."""
    output, from_logits = logits_of(convert_to_tensor(output), from_logits, "binary_crossentropy")
    target = convert_to_tensor(target, output.dtype)
    if shape_of(target) != shape_of(output):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. Received: "
            f"target.shape={shape_of(target)}, output.shape={shape_of(output)}"
        )
    if from_logits:
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=output)
    output = clip_probabilities(output)
    return -(target * tf.math.log(output) + (1.0 - target) * tf.math.log(1.0 - output))


def clip_probabilities(probabilities: tf.Tensor) -> tf.Tensor:
    """Clamps probabilities to [epsilon, 1 - epsilon]."""
    return tf.clip_by_value(probabilities, epsilon(), 1.0 - epsilon())


def psnr(x1: Any, x2: Any, max_val: float) -> tf.Tensor:
    """Computes the peak signal-to-noise ratio of two images in decibels."""
    x1 = convert_to_tensor(x1)
    x2 = convert_to_tensor(x2, x1.dtype)
    if shape_of(x1) != shape_of(x2):
        raise ValueError(f"Input shapes {shape_of(x1)} and {shape_of(x2)} must match for PSNR calculation.")
    mse = tf.reduce_mean(tf.square(x1 - x2))
    peak = convert_to_tensor(max_val, x1.dtype)
    return (20.0 * tf.math.log(peak) - 10.0 * tf.math.log(mse)) * (1.0 / math.log(10.0))
