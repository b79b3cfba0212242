"""Cross-entropies and other measures of distance."""

from __future__ import annotations

import math
from typing import Any

from keras.src.backend.config import epsilon

import taut as tf
from taut.keras.backend.convert import convert_to_tensor, shape_of

__all__ = ["binary_crossentropy", "categorical_crossentropy", "psnr", "sparse_categorical_crossentropy"]


def categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> tf.Tensor:
    """The cross-entropy of distributions along an axis; of logits, or of probabilities, which are
    normalized."""
    output = convert_to_tensor(output)
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
    return -tf.reduce_sum(target * tf.math.log(within(output)), axis=axis)


def sparse_categorical_crossentropy(
    target: Any, output: Any, from_logits: bool = False, axis: int = -1
) -> tf.Tensor:
    """The cross-entropy for targets that are numbers of classes."""
    output = convert_to_tensor(output)
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
        output = output / tf.reduce_sum(output, axis=axis, keepdims=True)
        logs = tf.math.log(within(output))
        return -tf.reduce_sum(tf.one_hot(target, classes, axis=axis, dtype=output.dtype) * logs, axis=axis)
    if axis in (-1, len(output.shape) - 1):
        return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=target, logits=output)
    logs = tf.nn.log_softmax(output, axis=axis)
    return -tf.reduce_sum(tf.one_hot(target, classes, axis=axis, dtype=output.dtype) * logs, axis=axis)


def binary_crossentropy(target: Any, output: Any, from_logits: bool = False) -> tf.Tensor:
    """The cross-entropy of every element; of logits, or of probabilities."""
    output = convert_to_tensor(output)
    target = convert_to_tensor(target, output.dtype)
    if shape_of(target) != shape_of(output):
        raise ValueError(
            "Arguments `target` and `output` must have the same shape. Received: "
            f"target.shape={shape_of(target)}, output.shape={shape_of(output)}"
        )
    if from_logits:
        return tf.nn.sigmoid_cross_entropy_with_logits(labels=target, logits=output)
    output = within(output)
    return -(target * tf.math.log(output) + (1.0 - target) * tf.math.log(1.0 - output))


def within(probabilities: tf.Tensor) -> tf.Tensor:
    """Probabilities that are neither 0 nor 1, by Keras's small number."""
    return tf.clip_by_value(probabilities, epsilon(), 1.0 - epsilon())


def psnr(x1: Any, x2: Any, max_val: float) -> tf.Tensor:
    """The ratio of peak signal to noise between two images, in decibels."""
    x1 = convert_to_tensor(x1)
    x2 = convert_to_tensor(x2, x1.dtype)
    if shape_of(x1) != shape_of(x2):
        raise ValueError(f"Input shapes {shape_of(x1)} and {shape_of(x2)} must match for PSNR calculation.")
    mse = tf.reduce_mean(tf.square(x1 - x2))
    peak = convert_to_tensor(max_val, x1.dtype)
    return (20.0 * tf.math.log(peak) - 10.0 * tf.math.log(mse)) * (1.0 / math.log(10.0))
