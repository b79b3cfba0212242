"""Connectionist temporal classification (CTC) loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .. import _raw_ops as raw, dtypes
from .._common import cast_to, refuse
from .._native import Tensor, as_tensor
from ..control import foldl as _foldl

if TYPE_CHECKING:
    from .._typing import TensorLike


def ctc_loss(
    labels: TensorLike,
    logits: TensorLike,
    label_length: TensorLike,
    logit_length: TensorLike,
    logits_time_major: bool = True,
    unique: Any = None,
    blank_index: int | None = None,
    name: str | None = None,
) -> Tensor:
    """Computes the CTC loss: minus the log-probability of each label sequence, summed over all alignments.

    `labels` are `[batch, max_labels]`, `logits` `[time, batch, classes]`, or `[batch, time, classes]` if
    `logits_time_major` is false. The blank class is `blank_index` (default 0; negative values count from the last). The
    loss of labels that are too long for the logits is infinite.
    """
    if unique is not None:
        refuse("ctc_loss", "unique must be None: it is an optimization of TensorFlow's implementation", ValueError)
    labels, logits = cast_to(as_tensor(labels), dtypes.int64), as_tensor(logits)
    logits = logits if logits_time_major else raw.swapaxes(logits, 0, 1)
    lengths, times = (cast_to(as_tensor(one), dtypes.int64) for one in (label_length, logit_length))
    batch = labels.shape[:1]
    if logits.ndim != 3 or labels.ndim != 2 or not batch == logits.shape[1:2] == lengths.shape == times.shape:
        shapes = f"labels {labels.shape}, logits {logits.shape} and lengths {lengths.shape} and {times.shape}"
        refuse(
            "ctc_loss",
            f"expected labels [batch, labels], logits [time, batch, classes] and lengths [batch], got {shapes}",
        )
    blank = 0 if blank_index is None else int(blank_index) % logits.shape[2]
    never = float("-inf")

    # A blank before each label, and one at the end. Padding of the labels is replaced by blanks.
    between = raw.full(labels.shape, blank, dtypes.int64)
    labels = raw.where(raw.range(0, labels.shape[1], 1, dtypes.int64) < raw.expand_dims(lengths, -1), labels, between)
    path = raw.reshape(raw.stack([between, labels], -1), [batch[0], -1])
    path = raw.concat([path, raw.full([batch[0], 1], blank, dtypes.int64)], 1)
    count = path.shape[1]
    places = raw.range(0, count, 1, dtypes.int64)
    before = raw.pad(path, [[0, 0], [2, 0]])[:, :count]
    # The blank between two labels may be skipped unless they are equal. Labels are at odd places; one that equals the blank
    # class is a label like any other, as in TensorFlow.
    is_label = raw.logical_and(raw.equal(raw.mod(places, 2), 1), places > 1)
    skips = raw.logical_and(is_label, raw.not_equal(path, before))

    def moved(state: Tensor, by: int) -> Tensor:
        return raw.pad(state, [[0, 0], [by, 0]], "CONSTANT", never)[:, :count]

    def step(state: tuple, now: tuple) -> tuple:
        alpha, time = state
        ways = [alpha, moved(alpha, 1), raw.where(skips, moved(alpha, 2), never)]
        after = raw.logsumexp(raw.stack(ways, -1), -1) + raw.take_along_axis(now, path, 1)
        return raw.where(raw.expand_dims(time < times, -1), after, alpha), time + 1

    chances = raw.log_softmax(logits, -1)
    # Before the first step: a path starts with a blank or with the first label.
    begin = raw.where(raw.equal(places, 0), raw.full([], 0.0, logits.dtype), never)
    begin = raw.broadcast_to(raw.reshape(begin, [1, -1]), [batch[0], count])
    first = raw.logsumexp(raw.stack([begin, moved(begin, 1)], -1), -1) + raw.take_along_axis(chances[0], path, 1)
    first = raw.where(raw.expand_dims(times > 0, -1), first, begin)
    alpha, _ = _foldl(step, chances[1:], (first, as_tensor(np.int64(1))))
    last = raw.expand_dims(2 * lengths, -1)
    ends = raw.logical_or(raw.equal(places, last), raw.equal(places, last - 1))
    return -raw.logsumexp(raw.where(ends, alpha, never), -1)
