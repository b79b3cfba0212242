"""Connectionist temporal classification (CTC): loss and decoding."""

from __future__ import annotations

from typing import Any

import numpy as np

import taut as tf
from taut import _native
from taut._ops.ctc import best_paths
from taut.keras.backend.convert import convert_to_tensor, promoted_type, shape_of, type_of


def ctc_loss(target: Any, output: Any, target_length: Any, output_length: Any, mask_index: int = 0) -> tf.Tensor:
    """Computes the CTC loss of label sequences, given logits (batch, time, classes)."""
    return tf.nn.ctc_loss(
        convert_to_tensor(target, "int32"),
        wide(output),
        convert_to_tensor(target_length, "int32"),
        convert_to_tensor(output_length, "int32"),
        logits_time_major=False,
        blank_index=mask_index,
    )


def wide(logits: Any) -> tf.Tensor:
    """Casts logits to at least 32 bits."""
    logits = convert_to_tensor(logits)
    return tf.cast(logits, promoted_type(type_of(logits), "float32"))


def ctc_decode(
    inputs: Any,
    sequence_lengths: Any,
    strategy: str = "greedy",
    beam_width: int = 100,
    top_paths: int = 1,
    merge_repeated: bool = True,
    mask_index: int = 0,
) -> tuple[tf.Tensor, tf.Tensor]:
    """Decodes logits (batch, time, classes); returns labels padded with -1, and scores.

    With "greedy", each step takes its most likely class; repeated classes are merged, and blanks are dropped; the score is
    minus the sum of the logits. With "beam_search", the most likely label sequences, and the logarithms of their
    probabilities.
    """
    if strategy == "beam_search":
        return _beam_search(wide(inputs), sequence_lengths, int(beam_width), int(top_paths), mask_index)
    if strategy != "greedy":
        raise ValueError(f"Invalid strategy {strategy}. Supported values are 'greedy' and 'beam_search'.")
    logits = wide(inputs)
    batch, steps, classes = shape_of(logits)
    blank = (classes - 1 if mask_index is None else int(mask_index)) % classes
    lengths = tf.reshape(convert_to_tensor(sequence_lengths, "int32"), [batch, 1])
    there = tf.range(steps)[None, :] < lengths
    best = tf.cast(tf.argmax(logits, axis=-1), "int32")
    kept = tf.logical_and(there, tf.not_equal(best, blank))
    if merge_repeated:
        before = tf.concat([tf.fill([batch, 1], -1), best[:, :-1]], axis=1)
        kept = tf.logical_and(kept, tf.not_equal(best, before))
    order = tf.argsort(tf.cast(tf.logical_not(kept), "int32"), axis=1, stable=True)
    count = tf.reduce_sum(tf.cast(kept, "int32"), axis=1, keepdims=True)
    labels = tf.where(tf.range(steps)[None, :] < count, tf.take_along_axis(best, order, 1), -1)
    likeliest = tf.where(there, tf.reduce_max(logits, axis=-1), 0.0)
    return labels[None], -tf.reduce_sum(likeliest, axis=1, keepdims=True)


def _beam_search(
    logits: tf.Tensor, sequence_lengths: Any, beam_width: int, top_paths: int, mask_index: int | None
) -> tuple[tf.Tensor, tf.Tensor]:
    """Beam search on the host, in a traced function when it runs: its steps depend on the values."""
    batch, steps, classes = shape_of(logits)
    blank = (classes - 1 if mask_index is None else int(mask_index)) % classes
    lengths = tf.reshape(convert_to_tensor(sequence_lengths, "int32"), [batch])
    kind = type_of(logits)

    def decoded(values: list) -> list[bytes]:
        chances, counts = np.asarray(values[0], np.float64), np.asarray(values[1])
        paths, scores = np.full((top_paths, batch, steps), -1, np.int32), np.full((batch, top_paths), -np.inf)
        for row in range(batch):
            found = best_paths(chances[row, : counts[row]], beam_width, blank)
            for place, (path, score) in enumerate(found[:top_paths]):
                paths[place, row, : len(path)] = path
                scores[row, place] = score
        return [paths.tobytes(), scores.astype(kind).tobytes()]

    results = [("int32", [top_paths, batch, steps]), (kind, [batch, top_paths])]
    labels, scores = _native.host_callback(
        "numpy_function", decoded, [tf.nn.log_softmax(logits), lengths], results, False
    )
    return labels, scores
